"""Time, energy and money over rank counts, and the command lines that ask for them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from ranksight.analysis.planning.spending import COST, DELAY, ENERGY, TIME, Spending, Spent, spending
from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.model.energy import predicted
from ranksight.model.energy.prices import Prices
from ranksight.model.fitted_model import Model
from ranksight.model.machine.anchor import on
from ranksight.model.uncertainty.forecast import NO_DATA
from ranksight.reports.spending import choices, ties

COUNTS = (1, 2, 4, 8, 16, 32)


def seconds(ranks: float) -> float:
    return 3600.0 / ranks + 60.0


def watts(ranks: float) -> float:
    return 300.0 + 5.0 * ranks


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("spending")
    lines = [f"{n},{seconds(n)},{watts(n) * seconds(n)}" for n in COUNTS]
    (place / "runs.csv").write_text("\n".join(["ranks,time,energy", *lines]) + "\n")
    given = ["--parameter", "ranks", "--metric", "time", "--metric", "energy", "-q"]
    assert main(["import", "csv", str(place / "runs.csv"), *given, "-o", str(place / "e.exp")]) == 0
    assert main(["fit", "-q", str(place / "e.exp"), "-o", str(place / "m.json")]) == 0
    return place


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return Model.load(folder / "m.json")


def test_each_quantity_and_the_best_by_each(model: Model) -> None:
    prices = Prices.read(["0.02 EUR/core-hour", "0.3 EUR/kWh"])
    found = spending(model, np.array([[64.0]]), prices, 0.9)
    assert found is not None
    n = found.counts
    assert n.tolist() == [*COUNTS, 64]
    time, energy = 3600 / n + 60, (300 + 5 * n) * (3600 / n + 60)
    cost = n * time / 3600 * 0.02 + energy / 3.6e6 * 0.3
    for name, truth in ((TIME, time), (ENERGY, energy), (DELAY, energy * time), (COST, cost)):
        np.testing.assert_allclose(found.quantities[name].value, truth, rtol=0.03)
        assert (found.quantities[name].lower <= truth).all()
        assert (truth <= found.quantities[name].upper).all()
    best = {name: int(n[at]) for name, at in found.best().items()}
    assert best == {name: int(n[np.argmin(truth)]) for name, truth in
                    ((TIME, time), (ENERGY, energy), (DELAY, energy * time), (COST, cost))}  # fmt: skip
    losses = found.losses()
    assert all(losses[name][name] == 0 for name in best)
    assert losses[TIME][ENERGY] == pytest.approx(energy[-1] / energy.min() - 1, rel=0.1)


def test_a_price_of_one_machine_replaces_that_of_all() -> None:
    common = Prices.read(["1 EUR/node-hour", "0.3 EUR/kWh"])
    assert Prices.read(["2 EUR/node-hour"], others=common) == Prices("EUR", node_hour=2.0, kwh=0.3)
    assert Prices.read([], others=common) == common
    with pytest.raises(InputError, match=r"in \$ and EUR"):
        Prices.read(["2 $/node-hour"], others=common)


def test_machine_time_that_is_charged_twice_is_named(model: Model) -> None:
    at = np.array([[64.0]])
    for texts, said in ((["1 EUR/node-hour", "0.02 EUR/core-hour"], True), (["0.02 EUR/core-hour"], False)):
        prices = Prices.read(texts)
        assert prices is not None
        assert bool(prices.remark) == said
    found = spending(model, at, Prices.read(["0.02 EUR/core-hour", "0.3 EUR/kWh"]), 0.9)
    assert found is not None
    assert not any("both" in note for note in found.notes)


def test_a_stated_time_far_from_the_predicted_one_is_named(model: Model) -> None:
    for seconds_stated, said in ((20.0, True), (seconds(64), False), (1200.0, True)):
        found = model.predict_at(np.array([[64.0]]), metrics=["power"], times=np.array([seconds_stated]))
        assert any("is outside of" in note for note in found.notes) == said


def test_least_is_what_differs_by_more_than_is_uncertain() -> None:
    """Three counts of 100 J +- 5 %, 101 J +- 5 % and 150 J +- 5 %: the first two are the same."""
    spread = np.full(4, 0.05)
    energy = Spent.of(np.array([101.0, 100.0, 150.0, np.nan]), spread, 0.9)
    time = Spent.of(np.array([4.0, 3.0, 2.0, 1.0]), spread, 0.9)
    found = Spending("ranks", np.array([1.0, 2.0, 4.0, 8.0]), {}, {TIME: time, ENERGY: energy}, "", 0.9)
    assert found.same()[ENERGY].tolist() == [True, True, False, False]
    assert found.same()[TIME].tolist() == [False, False, False, True]
    assert choices(found)[1] == ["energy", "2", "x 3", "(least)"]
    (line,) = ties(found)
    assert line.startswith("(least): energy at 1, 2 ranks differs by less")


def test_plan_and_report_list_the_same_counts(folder: Path) -> None:
    model = str(folder / "m.json")
    assert main(["report", model, "-q", "--ranks", "64", "-o", str(folder / "s.html")]) == 0
    table = (folder / "s.html").read_text().split("What a run takes")[1].split("</table>")[0]
    assert re.findall(r'<th scope="row">(\d+)</th>', table) == [str(n) for n in (*COUNTS, 64)]


@pytest.mark.parametrize(
    ("texts", "prices"),
    [
        (["0.02 EUR/core-hour"], Prices("EUR", core_hour=0.02)),
        (["1.5 $/node-hour", "300 $/MWh"], Prices("$", node_hour=1.5, kwh=0.3)),
        (["2e-2EUR/core-h"], Prices("EUR", core_hour=0.02)),
        ([], None),
    ],
)
def test_prices(texts: list[str], prices: Prices | None) -> None:
    assert Prices.read(texts) == prices


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["0.02"], "has no unit"),
        (["0.02 EUR"], "has no unit"),
        (["EUR/kWh"], "is not a price"),
        (["-1 EUR/kWh"], "is not a price"),
        (["1 EUR/fortnight"], "is not a price"),
        (["1 EUR/kWh", "2 EUR/kWh"], "two prices"),
        (["1 EUR/kWh", "2 $/core-hour"], "in EUR and"),
    ],
)
def test_a_price_needs_its_unit(texts: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Prices.read(texts)


def test_the_command_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(folder / "m.json")
    asked = ["--ranks", "64", "--metric", "energy,power", "--format", "json"]
    assert main(["predict", model, *asked]) == 0
    found = {each["metric"]: each for each in json.loads(capsys.readouterr().out)["predictions"]}
    assert found["power"]["value"] == pytest.approx(watts(64), rel=0.03)
    assert found["energy"]["interval"][0] < watts(64) * seconds(64) < found["energy"]["interval"][1]
    assert found["energy"]["method"] == "power"
    assert main(["predict", model, *asked, "--time", "100"]) == 0
    found = {each["metric"]: each for each in json.loads(capsys.readouterr().out)["predictions"]}
    assert found["energy"]["value"] == pytest.approx(watts(64) * 100, rel=0.05)
    plan = ["plan", model, "--ranks", "128", "--max-ranks", "128", "--price", "0.02 EUR/core-hour"]
    assert main([*plan, "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)["spending"]
    assert said["currency"] == "EUR"
    assert said["best"]["time"]["ranks"] == 128
    assert main(["report", model, "-q", "--price", "0.02 EUR/core-hour", "-o", str(folder / "r.html")]) == 0
    assert "Energy and cost" in (folder / "r.html").read_text()


@pytest.mark.parametrize(
    ("jobs", "nodes"),
    [
        (((8, 1, 64), (16, 1, 64), (32, 1, 64), (64, 1, 64)), 2),  # all processors of a node, whatever the ranks
        (((16, 1, 16), (32, 1, 32), (64, 2, 64), (128, 4, 128)), 4),  # 32 ranks on each of several nodes
        (((4, 1, 4), (8, 1, 8), (16, 1, 16), (32, 1, 32)), None),  # parts of a node that may have any size
    ],
)
@pytest.mark.parametrize("energy", [False, True])
def test_nodes_of_a_batch_system_have_a_price(
    tmp_path: Path, jobs: tuple[tuple[int, int, int], ...], nodes: int | None, energy: bool
) -> None:
    rows = [
        f"{at}.0|{ranks}|{each}|{cpus}|{600 + 36000 // ranks}|COMPLETED|{each * (200 + 4 * ranks) * 100 if energy else 0}"
        for at, (ranks, each, cpus) in enumerate(jobs)
    ]
    (tmp_path / "j.txt").write_text(
        "\n".join(["JobID|NTasks|NNodes|AllocCPUS|ElapsedRaw|State|ConsumedEnergyRaw", *rows])
    )
    assert main(["import", "sacct", str(tmp_path / "j.txt"), "-q", "-o", str(tmp_path / "j.exp")]) == 0
    assert main(["fit", str(tmp_path / "j.exp"), "-q", "-o", str(tmp_path / "j.json")]) == 0
    prices = Prices.read(["1 EUR/node-hour"])
    model, at = Model.load(tmp_path / "j.json"), np.array([[128.0]])
    if nodes is None:
        with pytest.raises(InputError, match="nodes of a run"):
            spending(model, at, prices, 0.9)
        return
    found = spending(model, at, prices, 0.9)
    assert found is not None
    bill = found.quantities[COST].value[-1] / found.quantities[TIME].value[-1] * 3600
    assert bill == pytest.approx(nodes)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (["plan", "m.json", "--ranks", "64", "--price", "0.02"], 1, "has no unit"),
        (["plan", "m.json", "--ranks", "64", "--price", "1 EUR/node-hour"], 1, "nodes of a run"),
        (["predict", "m.json", "--ranks", "64", "--time", "3", "--metric", "time"], 2, "not time"),
        (["predict", "m.json", "--ranks", "64,128", "--time", "3"], 2, "1 values for 2"),
        (["predict", "m.json", "--ranks", "64", "--time", "nan"], 2, "is no time"),
    ],
)
def test_bad_questions_get_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], line: list[str], code: int, said: str
) -> None:
    verb, model, *rest = line
    assert main([verb, str(folder / model), *rest]) == code
    told = capsys.readouterr().err.strip()
    assert said in told
    assert "\n" not in told


def test_energy_without_an_uncertainty_is_no_answer(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a count that power depends on has no interval there is neither: "1.33 MJ nan J .. nan J" was printed."""
    nothing = np.array([np.nan])
    known = predicted.Parts(np.array([1.33e6]), np.array([120.0]), nothing, nothing, np.ones(1))
    monkeypatch.setattr(predicted, "parts", lambda *_: {"package": known})
    for answer in predicted.forecasts(model, np.array([[64.0]]), ["energy_package", "power_package"]).values():
        assert answer.status[0, 0] == NO_DATA
        assert np.isnan([answer.value, answer.lower, answer.upper]).all()


def test_the_laws_of_power_are_of_the_machine_of_the_runs(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On another machine energy is not predicted, in no answer; the machine of the runs has what its meters say."""
    path = str(tmp_path / "m.json")
    assert main(["fit", "-q", str(folder / "e.exp"), "--platform", "icelake-8360y", "-o", path]) == 0
    capsys.readouterr()
    assert main(["predict", path, "--ranks", "16", "--on", "grace", "--metric", "energy,power"]) == 4
    assert " ".join(capsys.readouterr().out.split()).count("was measured on another machine than grace") == 2
    assert main(["compare", path, "--on", "icelake-8360y,grace", "--ranks", "16", "--format", "json"]) == 0
    machines = {each["machine"]: each["energy"] for each in json.loads(capsys.readouterr().out)["machines"]}
    assert machines["grace"] is None
    assert machines["icelake-8360y"] == pytest.approx(watts(16) * seconds(16), rel=0.03)
    stated = ["compare", path, "--on", "icelake-8360y,grace", "--ranks", "16", "--power", "grace=500"]
    assert main([*stated, "--price", "0.3 EUR/kWh", "--price", "grace=0.2 EUR/kWh"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "grace: energy is of whole nodes at 500 W, as stated" in shown
    assert "icelake-8360y: energy is of the job, by the law of power" in shown
    assert "energies of different things do not compare" in shown
    assert main([*stated, "--power", "icelake-8360y=700"]) == 0
    assert "700 W, as stated; meters there say" in " ".join(capsys.readouterr().out.split())
    moved = on(Model.load(path), "grace")
    found = spending(moved, np.array([[16.0]]), Prices.read(["1 EUR/node-hour"]), 0.9)
    assert found is not None
    assert ENERGY not in found.quantities


def test_energy_that_was_metered_on_the_other_machine(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs there with energy have their own law: one run says what that many cores take, three what others do."""
    rows = {n: (0.8 * seconds(n), 200 + 3 * n) for n in (4, 8, 16)}
    home = ["fit", "-q", str(folder / "e.exp"), "--platform", "icelake-8360y", "--platform", "zen4"]
    asked = ["--on", "zen4", "--ranks", "8,16", "--metric", "energy", "--format", "json"]
    for name, counts, fine in (("one", (8,), (True, False)), ("three", (4, 8, 16), (True, True))):
        lines = [f"{n},{rows[n][0]},{rows[n][0] * rows[n][1]}" for n in counts]
        (tmp_path / f"{name}.csv").write_text("\n".join(["ranks,time,energy", *lines]) + "\n")
        given = ["--parameter", "ranks", "--metric", "time", "--metric", "energy", "-q"]
        assert main(["import", "csv", str(tmp_path / f"{name}.csv"), *given, "-o", str(tmp_path / f"{name}.exp")]) == 0
        path = str(tmp_path / f"{name}.json")
        assert main([*home, "--also", str(tmp_path / f"{name}.exp"), "-o", path]) == 0
        capsys.readouterr()
        main(["predict", path, *asked])
        found = json.loads(capsys.readouterr().out)["predictions"]
        assert tuple(each["status"] == "ok" for each in found) == fine
        assert found[0]["interval"][0] < rows[8][0] * rows[8][1] < found[0]["interval"][1]
        assert found[0]["value"] == pytest.approx(rows[8][0] * rows[8][1], rel=0.1)
