"""The law of power against programs whose power is known at any number of ranks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.core.reading import READERS
from ranksight.model.energy.agreeing import fit_law
from ranksight.model.energy.metered import metered
from ranksight.model.energy.predicted import parts
from ranksight.model.energy.stored import Profile
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.priors import STARTING
from ranksight.platforms import Platform, load

IDLE, CORE, SLEEPING = 92.0, 3.5, 40.0
"""Watts of a package awake without cores, of a core, and of a package whose cores are halted."""
CLOCK = 2.4e9
TRAINED = (1, 2, 3, 4, 6, 8, 12, 16)
ICE_LAKE = "icelake-8360y"


def seconds(ranks: float) -> float:
    return 2000.0 / ranks + 3.0


def counters(ranks: int, size: int = 36, noise: float = 1.0, halted: float = 0.0) -> pd.DataFrame:
    """What LIKWID shows of a program that computes: the first rank of each package has its energy."""
    time = seconds(ranks)
    table = pd.DataFrame({"kernel": WHOLE, "rank": range(ranks), "time": time + halted, "energy_package": 0.0})
    table["cycles"] = time * CLOCK
    table["frequency"] = CLOCK
    table["time_halted"] = halted
    for first in range(0, ranks, size):
        here = min(size, ranks - first)
        joules = (IDLE + CORE * here) * time + SLEEPING * halted
        table.loc[first, "energy_package"] = joules * noise
    return table


def experiment(folder: Path, tables: Mapping[int, pd.DataFrame], name: str = "e") -> Experiment:
    found = Experiment.create(folder / f"{name}.exp", name, ["ranks"])
    for ranks, table in tables.items():
        found.add(Run({"ranks": float(ranks)}), table)
    return found


def one(model: Model, metric: str, **at: float) -> tuple[float, float, float]:
    """Value and interval of the whole program."""
    (found,) = model.predict(metrics=metric, **at).answers
    return found.value, found.lower, found.upper


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    tables = {ranks: counters(ranks) for ranks in TRAINED}
    return fit(experiment(tmp_path_factory.mktemp("law"), tables), platform=ICE_LAKE)


@pytest.mark.parametrize(("ranks", "packages"), [(24, 1), (36, 1), (37, 2), (72, 2), (144, 4)])
def test_packages_and_cores_are_told_apart(model: Model, ranks: int, packages: int) -> None:
    value, low, high = one(model, "power_package", ranks=ranks)
    assert value == pytest.approx(IDLE * packages + CORE * ranks, rel=0.02)
    assert low < IDLE * packages + CORE * ranks < high


def test_energy_is_power_times_the_predicted_time(model: Model) -> None:
    asked = {name: one(model, name, ranks=72) for name in ("energy_package", "power_package", "time")}
    assert asked["energy_package"][0] == pytest.approx(asked["power_package"][0] * asked["time"][0], rel=1e-9)
    widths = {name: high / low for name, (_, low, high) in asked.items()}
    assert widths["energy_package"] > max(widths["power_package"], widths["time"])


def test_bytes_are_moved_once_however_long_a_run_takes(model: Model, tmp_path: Path) -> None:
    """What is fixed makes the power fall where the time is longer: its doubt is not counted again in the energy."""
    tables = {n: counters(n).assign(bytes_mem=8e12 / n) for n in TRAINED}
    for n, table in tables.items():
        table.loc[0, "energy_package"] += 8e12 * 1e-9
        table["time"] *= 1 + 0.05 * (n % 3)
    moving = fit(experiment(tmp_path, tables), platform=ICE_LAKE)
    at, doubt = np.array([[36.0]]), np.array([0.2])
    parts_of_time = []
    for each in (model, moving):
        found = parts(each.energy, each, at, predicted=(np.array([58.0]), doubt))["package"]
        parts_of_time.append(float((found.of_energy**2 - found.of_power**2)[0] / doubt[0] ** 2))
    assert parts_of_time[0] == pytest.approx(1, abs=0.05)
    assert parts_of_time[1] < 0.9


def test_intervals_widen_with_the_distance(model: Model) -> None:
    widths = [high / low for _, low, high in (one(model, "power_package", ranks=n) for n in (16, 24, 36, 72, 144))]
    assert widths == sorted(widths)
    assert widths[0] < 1.08


def test_power_that_was_measured_is_known(tmp_path: Path) -> None:
    """Two packages of which the table says nothing: the terms miss the runs, which are met all the same."""
    joules = {n: (IDLE * (1 + (n > 36)) + CORE * n) * seconds(n) for n in (4, 8, 16, 24, 36, 54, 72)}
    tables = {
        n: pd.DataFrame({"kernel": WHOLE, "rank": [-1], "time": [seconds(n)], "energy": [each]})
        for n, each in joules.items()
    }
    model = fit(experiment(tmp_path, tables), platform=ICE_LAKE)
    for ranks in (36, 54):
        value, low, high = one(model, "power", ranks=ranks)
        assert value == pytest.approx(joules[ranks] / seconds(ranks), rel=0.01)
        assert high / low < 1.1
    _, low, high = one(model, "power", ranks=144)
    assert high / low > 1.3


def test_power_of_other_sizes_is_not_that_measured(tmp_path: Path) -> None:
    """Large problems take more power, by what no count shows: as many cores say little of another size."""
    found = Experiment.create(tmp_path / "e.exp", "e", ["ranks", "size"])
    for n in TRAINED:
        for size in (1.0, 2.0, 4.0):
            time, watts = size * seconds(n), IDLE + CORE * n * (1 + 0.1 * np.log2(size))
            table = pd.DataFrame({"kernel": WHOLE, "rank": [-1], "time": [time], "energy": [watts * time]})
            found.add(Run({"ranks": float(n), "size": size}), table)
    _, low, high = one(fit(found, platform=ICE_LAKE), "power", ranks=16, size=8)
    assert high / low > 1.06


def test_energy_needs_a_time_that_is_predicted(model: Model) -> None:
    """Where the time is not predicted, neither is the energy: hundreds of nodes after runs on one."""
    status = {name: model.predict(ranks=72 * 500, metrics=name).answers.ok.all() for name in ("time", "energy")}
    assert status == {"time": False, "energy": False}
    at = np.array([[144.0]])
    assert model.predict_at(at, metrics=["energy"], times=np.array([seconds(144)])).answers.ok.all()


def test_a_package_without_a_rank_is_named(model: Model) -> None:
    assert any("without a rank" in note for note in model.predict(ranks=18, metrics="energy").notes)
    assert not any("without a rank" in note for note in model.predict(ranks=72, metrics="energy").notes)


def test_a_package_without_a_rank_costs_its_idle_power(model: Model) -> None:
    """Half of what a package takes awake, where none was seen halted; in the job's energy, not in that of packages with
    ranks."""
    for ranks, empty in ((18, 1), (36, 1), (72, 0), (80, 1)):
        at, times = np.array([[float(ranks)]]), np.array([seconds(ranks)])
        answers = model.predict_at(at, metrics=["energy", "energy_package"], times=times).answers
        found = {answer.metric: answer for answer in answers}
        extra = found["energy"].value - found["energy_package"].value
        assert extra == pytest.approx(empty * 0.5 * IDLE * seconds(ranks), rel=0.05)
        assert (found["energy"].upper - found["energy"].lower > 1.2 * (found["energy_package"].upper - found["energy_package"].lower)) == bool(empty)  # fmt: skip


def test_a_known_time_replaces_the_predicted_one(model: Model) -> None:
    at, longer = np.array([[72.0]]), np.array([1.5 * seconds(72)])
    predicted, given = (parts(model.energy, model, at, times)["package"] for times in (None, longer))
    assert given.joules[0] / 1.5 == pytest.approx((2 * IDLE + CORE * 72) * seconds(72), rel=0.02)
    assert given.of_energy[0] < predicted.of_energy[0]


def test_waiting_for_the_start_grows_with_the_nodes(tmp_path: Path) -> None:
    """Nodes are started 20 s apart; what cores rest besides is a share of the time that they are awake."""
    tables = {}
    for nodes in (1, 2, 3, 4):
        table = counters(72 * nodes)
        late = 20.0 * (table["rank"] // 72)
        resting = 0.01 * seconds(72 * nodes)
        halted = late.max() - late + resting
        table = table.assign(time=table["time"] + halted, time_halted=halted)
        opened = table["energy_package"] > 0
        table["energy_package"] += opened * SLEEPING * halted
        tables[72 * nodes] = table
    model = fit(experiment(tmp_path, tables), platform=ICE_LAKE)
    profile = model.energy.profile
    assert profile is not None
    assert profile.starting == pytest.approx([0, 20, 40, 60], abs=1e-6)
    assert profile.resting == pytest.approx([0.01] * 4)
    (later,), _ = profile.starting_at(np.array([576.0]), np.array([2.0]))
    assert later == pytest.approx(60.0 * 2 ** STARTING[0])


def test_energies_are_no_series_beside_the_law(model: Model) -> None:
    assert "energy_package" not in model.fitted.metrics
    assert set(model.metered) == {"energy", "power", "energy_package", "power_package"}
    with pytest.raises(InputError, match="energy_nod"):
        model.predict(ranks=4, metrics="energy_nod")


def test_a_model_keeps_its_laws_in_its_file(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "m.json")
    assert one(Model.load(tmp_path / "m.json"), "energy", ranks=72) == pytest.approx(one(model, "energy", ranks=72))


def test_halted_packages_take_less(tmp_path: Path) -> None:
    """Ranks that wait to be started cost what their package takes asleep."""
    tables = {ranks: counters(ranks, halted=50.0 * at) for at, ranks in enumerate(TRAINED)}
    found = metered(experiment(tmp_path, tables), "package", load(ICE_LAKE))
    assert found is not None
    law, _ = fit_law(found, "package")
    coefficients = dict(zip(law.terms, law.coefficients.tolist(), strict=True))
    assert coefficients["halted"] == pytest.approx(SLEEPING, abs=4.0)
    assert coefficients["awake"] == pytest.approx(IDLE, abs=2.0)
    assert coefficients["cycles"] == pytest.approx(CORE / (CLOCK / 1e9), abs=0.1)


def test_coefficients_are_not_negative_whatever_is_measured(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for trial in range(5):
        tables = {ranks: counters(ranks, noise=float(rng.uniform(0.5, 1.5))) for ranks in TRAINED}
        found = metered(experiment(tmp_path, tables, f"e{trial}"), "package", load(ICE_LAKE))
        assert found is not None
        law, _ = fit_law(found, "package")
        assert (law.coefficients >= 0).all()
        assert np.isfinite(law.covariance).all()


@pytest.mark.slow
def test_intervals_of_the_power_hold(tmp_path: Path) -> None:
    """Programs of 20 seeds with 2 % scatter: nine in ten intervals at twice the cores hold the power."""
    rng, inside, platform = np.random.default_rng(7), [], load(ICE_LAKE)
    for trial in range(20):
        tables = {ranks: counters(ranks, noise=float(np.exp(0.02 * rng.normal()))) for ranks in TRAINED}
        found = metered(experiment(tmp_path, tables, f"e{trial}"), "package", platform)
        assert found is not None
        law, _ = fit_law(found, "package")
        truth = (IDLE + CORE * 32) * np.exp(0.02 * rng.normal())
        amounts = {"awake": np.ones(1), "cycles": np.full(1, 32 * CLOCK / 1e9)}
        said = float(law.joules(amounts).sum() * np.exp(law.residual_at(np.array([32.0])))[0])
        matrix = law.matrix(amounts)
        own = float((matrix.T @ law.covariance @ matrix)[0, 0]) / said**2
        spread = np.sqrt(own + law.beyond(np.array([32.0]))[0] ** 2)
        inside.append(abs(np.log(truth / said)) < 1.645 * spread)
    assert 0.75 <= np.mean(inside) <= 1.0


Spoiled = Callable[[pd.DataFrame], pd.DataFrame]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda table: table.assign(energy_package=table["energy_package"] - 2**32 * 6.1e-5 / 3), "left out"),
        (lambda table: table.assign(energy_package=table["energy_package"] * 1.9), "left out"),
        (lambda table: table.assign(energy_package=np.nan), ""),
        (lambda table: table.assign(energy_package=0.0), "is 0 on all ranks in 1 run (ranks=4)"),
        (lambda table: table.assign(energy_package=[np.nan, 0.0, 0.0, 1.0]), "lacks a meter"),
    ],
)  # fmt: skip
def test_a_spoiled_run_changes_nothing_and_is_named(tmp_path: Path, spoil: Spoiled, said: str) -> None:
    tables = {ranks: counters(ranks) for ranks in TRAINED}
    model = fit(experiment(tmp_path, {**tables, 4: spoil(tables[4])}), platform=ICE_LAKE)
    assert one(model, "power_package", ranks=72)[0] == pytest.approx(2 * IDLE + CORE * 72, rel=0.03)
    notes = " ".join(model.energy.notes)
    assert said in notes
    assert bool(notes) == bool(said)


RANGE = 2.0**18
"""Joules after which a counter of 32 bits of 61 uJ starts again."""


def spoiled(folder: Path, change: Callable[[int, float], float], name: str = "e") -> tuple[Model, str]:
    """The model of long runs whose energies are changed, and its notes on energy."""
    tables = {}
    for ranks in TRAINED:
        table = counters(ranks)
        for of_time in ("time", "energy_package", "cycles"):
            table[of_time] *= 5
        table.loc[0, "energy_package"] = change(ranks, table.loc[0, "energy_package"])
        tables[ranks] = table
    model = fit(experiment(folder, tables, name), platform=ICE_LAKE)
    return model, " ".join(model.energy.notes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda ranks, joules: joules % RANGE if ranks < 4 else joules, "in 3 runs, .*lacks whole ranges"),
        (lambda ranks, joules: joules % RANGE, "lacks whole ranges"),
        (lambda ranks, joules: joules * (1.6 if ranks in (1, 3, 6, 12) else 1.0), "in 4 runs, .*is more than"),
        (lambda ranks, joules: joules * (0.6 if ranks in (2, 8) else 1.0), "in 2 runs, .*is less than"),
        (lambda ranks, joules: joules % RANGE if ranks < 3 else joules * (1.7 if ranks == 12 else 1.0), "ranges.*more"),
    ],
)  # fmt: skip
def test_several_spoiled_runs_do_not_hide_each_other(
    tmp_path: Path, change: Callable[[int, float], float], said: str
) -> None:
    """Counters that wrapped, and nodes that other jobs shared, in up to all or half of the runs."""
    model, notes = spoiled(tmp_path, change)
    assert re.search(said, notes)
    assert one(model, "power_package", ranks=72)[0] == pytest.approx(2 * IDLE + CORE * 72, rel=0.03)
    sound, none = spoiled(tmp_path, lambda ranks, joules: joules, "sound")
    assert none == ""
    assert one(sound, "power_package", ranks=16)[0] == pytest.approx(IDLE + CORE * 16, rel=0.02)


def test_energies_that_contradict_each_other_have_no_law(tmp_path: Path) -> None:
    tables = {}
    for ranks, factor in zip(TRAINED, (1.0, 0.3, 4.0, 1.0, 0.1, 2.2, 0.03, 1.0), strict=True):
        tables[ranks] = counters(ranks, noise=factor)
        tables[ranks][["time", "energy_package", "cycles"]] *= 0.1
    found = metered(experiment(tmp_path, tables), "package", load(ICE_LAKE))
    assert found is not None
    law, notes = fit_law(found, "package")
    assert law is None
    assert "half or more of the energies of the package are left out" in notes[-1]


def test_watts_are_no_joules(tmp_path: Path) -> None:
    tables = {n: counters(n).assign(energy_package=[150.0, *[0.0] * (n - 1)]) for n in TRAINED}
    with pytest.raises(InputError, match="look like watts: import them as power_package"):
        fit(experiment(tmp_path, tables), platform=ICE_LAKE)
    watts = {n: table.rename(columns={"energy_package": "power_package"}) for n, table in tables.items()}
    model = fit(experiment(tmp_path, watts, "watts"), platform=ICE_LAKE)
    assert one(model, "power_package", ranks=16)[0] == pytest.approx(150.0, rel=0.02)


def test_watts_of_a_program_that_gets_faster_are_no_joules(tmp_path: Path) -> None:
    """As joules the power of each core would rise with their number, though something is awake with the first."""
    tables = {n: counters(n).assign(time=100 / n, energy_package=[60.0 + 4.0 * n, *[0.0] * (n - 1)]) for n in TRAINED}
    with pytest.raises(InputError, match="look like watts: import them as power_package"):
        fit(experiment(tmp_path, tables), platform=ICE_LAKE)


def test_kilojoules_are_no_joules(tmp_path: Path) -> None:
    tables = {n: counters(n).assign(energy_package=(IDLE + CORE * n) * seconds(n) / 1e3) for n in TRAINED}
    with pytest.raises(InputError, match="look like kilojoules: name their column energy_package_kJ"):
        fit(experiment(tmp_path, tables), platform=ICE_LAKE)


def test_a_run_without_a_power_is_left_out(tmp_path: Path) -> None:
    """A meter that wrapped to nearly nothing is one run's: the others keep their law."""
    tables = {n: counters(n) for n in TRAINED}
    tables[4].loc[0, "energy_package"] = 1.0
    model = fit(experiment(tmp_path, tables), platform=ICE_LAKE)
    assert any("over time is not between" in note for note in model.energy.notes)
    assert one(model, "power_package", ranks=72)[0] == pytest.approx(2 * IDLE + CORE * 72, rel=0.03)


def test_a_meter_that_all_ranks_read_counts_once(tmp_path: Path) -> None:
    """Tools that show each rank its package's energy show one energy many times."""
    tables = {n: counters(n).assign(energy_package=(IDLE + CORE * n) * seconds(n)) for n in TRAINED}
    model = fit(experiment(tmp_path, tables), platform=ICE_LAKE)
    assert one(model, "power_package", ranks=72)[0] == pytest.approx(2 * IDLE + CORE * 72, rel=0.03)
    assert any("taken once" in note for note in model.energy.notes)


def test_nothing_is_predicted_of_meters_that_show_nothing(tmp_path: Path) -> None:
    tables = {n: counters(n).assign(energy_package=0.0) for n in TRAINED}
    model = fit(experiment(tmp_path, tables), platform=ICE_LAKE)
    with pytest.raises(InputError, match="energy is not predicted: .* 0 on all ranks in 8 runs"):
        model.predict(ranks=4, metrics="energy")
    assert model.predict(ranks=4, metrics="time").answers.ok.all()


def test_a_count_of_no_known_uncertainty_is_that_of_the_rate() -> None:
    """Energy was not predicted where the function of a count says nothing, though runs say how many a second holds."""
    one = np.ones(2)
    profile = Profile(np.array([1.0, 2.0]), *(2e9 * one, 3e9 * one, 1e9 * one), 0 * one, 0 * one)
    work, count, total = np.array([5.0]), np.array([8.0]), np.array([7.0])
    said = profile.counted("instructions", total, np.array([np.inf]), np.array([0.1]), work, count)
    assert np.isfinite(said).all()
    assert said[0] == pytest.approx(3e9 * work)


def test_a_table_of_a_users_jobs(tmp_path: Path) -> None:
    """Ranks, time and energy alone: joules of the whole job, of nodes whose cores the platform knows."""
    tables = {
        n: pd.DataFrame({"kernel": WHOLE, "rank": [-1], "time": [seconds(n)], "energy": [(300 + 4 * n) * seconds(n)]})
        for n in (2, 4, 8, 16, 32, 64)
    }
    model = fit(experiment(tmp_path, tables), platform=ICE_LAKE)
    assert one(model, "power", ranks=144)[0] == pytest.approx(2 * 300 + 4 * 144, rel=0.05)
    alone = fit(experiment(tmp_path, tables, "alone"))
    assert any("Without --platform" in note for note in alone.predict(ranks=144, metrics="energy").notes)


def test_repetitions_do_not_say_how_many_cores_a_node_has(tmp_path: Path) -> None:
    """Beyond the largest run all ranks are taken to share a node, and the interval holds if they need another."""
    answers = []
    for times in (1, 2):
        found = Experiment.create(tmp_path / f"{times}.exp", "job", ["ranks"])
        for n in (1, 2, 4, 8, 16):
            table = pd.DataFrame({"kernel": WHOLE, "rank": [-1], "time": [seconds(n)]})
            table["energy"] = (60 + 4 * n) * table["time"]
            for repetition in range(times):
                found.add(Run({"ranks": float(n)}, repetition=repetition), table)
        model = fit(found)
        assert model.energy is not None
        assert model.energy.profile is not None
        assert model.energy.profile.cores.tolist() == [1, 2, 4, 8, 16]
        assert any("share one package and node" in note for note in model.predict(ranks=17, metrics="energy").notes)
        answers.append([one(model, "energy", ranks=n) for n in (16, 17, 32)])
    np.testing.assert_allclose(answers[0], answers[1], rtol=0.02)
    for n, (value, lower, upper) in zip((16, 17, 32), answers[0], strict=True):
        together, apart = (60 + 4 * n) * seconds(n), (60 * np.ceil(n / 16) + 4 * n) * seconds(n)
        assert value == pytest.approx(together, rel=0.02)
        assert lower < together <= apart < upper
        assert upper < 1.1 * apart


@pytest.mark.parametrize("program", ["tealeaf", "soma"])
def test_a_node_from_one_domain(tmp_path: Path, shared: Path, program: str) -> None:
    """LIKWID's energies of 1 to 18 ranks give those of 72, twice the packages, with the time that they took."""
    folder = shared / "data" / "counters" / "spechpc_likwid_icelake" / "MEM_DP"
    found = Experiment.create(tmp_path / "e.exp", program, ["ranks"])
    readings = {n: next(iter(READERS["likwid"].read(folder / f"{program}-FritzRank{n}-MEM_DP.txt")))
                for n in (1, 2, 3, 4, 6, 8, 9, 10, 12, 16, 18, 72)}  # fmt: skip
    for n, reading in readings.items():
        if n <= 18:
            found.add(Run({"ranks": float(n)}), reading.counters, tables=reading.tables)
    model = fit(found, metrics=["time", "cycles", "frequency", "instructions", "bytes_mem"], platform=ICE_LAKE)
    truth = readings[72].counters
    assert truth is not None
    at, times = np.array([[72.0]]), np.array([truth["time"].max()])
    said = parts(model.energy, model, at, times)
    assert said["package"].joules[0] == pytest.approx(truth["energy_package"].sum(), rel=0.08)
    assert said["dram"].joules[0] == pytest.approx(truth["energy_dram"].sum(), rel=0.2)


def test_scattered_ranks_wake_all_packages(tmp_path: Path) -> None:
    platform = load(ICE_LAKE)
    assert isinstance(platform, Platform)
    model = fit(experiment(tmp_path, {n: counters(n) for n in TRAINED}), platform=platform)
    at = np.array([[1.0], [2.0], [16.0], [72.0]])
    spread = model.placed("scattered").energy
    assert spread is not None
    assert spread.places("package", at, ("ranks",)).tolist() == [1, 2, 2, 2]
    assert model.energy.places("package", at, ("ranks",)).tolist() == [1, 1, 1, 2]
