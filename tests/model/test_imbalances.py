"""The imbalance of single kernels: whose it is, how it goes on, and that sums stay."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.application.imbalances import Imbalances
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model

RANKS = (2, 4, 8, 16, 32)
EVEN, UNEVEN = 0.010, 0.005


def _most(ranks: int) -> float:
    """What the last rank does in the uneven kernel, times what others do."""
    return 1 + 0.25 * float(np.log2(ranks))


def _mean(ranks: int) -> float:
    return 1 + (_most(ranks) - 1) / ranks


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    made = Experiment.create(tmp_path_factory.mktemp("planted") / "planted.exp", "planted", ["ranks"])
    noise = np.random.default_rng(3)
    for p in RANKS:
        more = np.where(np.arange(p) == p - 1, _most(p), 1.0)
        parts = [
            pd.DataFrame(
                {
                    "kernel": name,
                    "rank": np.arange(p),
                    "time": base * work * noise.uniform(0.995, 1.005, p),
                    "instructions": 2e9 * base * work,
                }
            )
            for name, base, work in (("even", EVEN, np.ones(p)), ("uneven", UNEVEN, more))
        ]
        made.add(Run({"ranks": p}), pd.concat(parts, ignore_index=True))
    return made


@pytest.mark.parametrize("over_ranks", ["max", "mean"])
def test_imbalance_belongs_to_the_kernel_that_has_it_and_goes_on(
    planted: Experiment, over_ranks: str, tmp_path: Path
) -> None:
    fit(planted, over_ranks={"time": over_ranks}).save(tmp_path / "m.json")
    model = Model.load(tmp_path / "m.json")
    points = np.array([[32.0], [128.0]])
    broken = model.breakdown(points)
    waiting = dict(zip(broken.kernels, broken.each["imbalance"], strict=True))
    assert waiting["even"] == pytest.approx([0, 0])
    true = [UNEVEN * (_most(p) - _mean(p)) for p in (32, 128)]
    assert waiting["uneven"] == pytest.approx(true, rel=0.1)
    assert sum(broken.each.values()).sum(axis=0) == pytest.approx(broken.total.value[0])
    assert broken.total.value[0] == pytest.approx([EVEN + UNEVEN * _most(p) for p in (32, 128)], rel=0.06)
    verdicts = model.diagnose(ranks=128).verdicts().set_index("kernel")["verdict"]
    assert verdicts["uneven"] == "imbalance-bound"
    assert verdicts["even"] != "imbalance-bound"
    balance = model.diagnose(ranks=128).balance().set_index("kernel")
    assert balance.loc["uneven", "ahead"] == pytest.approx(_most(128) / _mean(128), rel=0.05)
    assert balance["named"].to_dict() == {"uneven": True, "even": False}
    load = model.diagnose(ranks=128).efficiencies()["load_balance"].iloc[-1]
    assert load == pytest.approx((EVEN + UNEVEN * _mean(128)) / (EVEN + UNEVEN * _most(128)), rel=0.03)


def test_what_the_first_rank_does_besides_goes_on_with_the_ranks(tmp_path: Path) -> None:
    """Work divided among the ranks, and a part that rank 0 does by itself within the same kernel (Amdahl)."""
    made = Experiment.create(tmp_path / "serial.exp", "serial", ["ranks"])
    noise = np.random.default_rng(5)

    def work(p: int) -> np.ndarray:
        return 1.0 / p + 0.02 * (np.arange(p) == 0)

    for p in RANKS:
        time = work(p) * noise.uniform(0.998, 1.002, p)
        table = {"kernel": "k", "rank": np.arange(p), "time": time, "instructions": 2e9 * work(p)}
        made.add(Run({"ranks": p}), pd.DataFrame(table))
    model = fit(made, over_ranks={"time": "mean"})
    balance = model.diagnose(ranks=1024).balance().set_index("kernel")
    assert balance.loc["k", "ahead"] == pytest.approx(work(1024).max() / work(1024).mean(), rel=0.05)
    broken = model.breakdown(np.array([[128.0], [1024.0]]))
    assert broken.total.value[0] == pytest.approx([work(p).max() for p in (128, 1024)], rel=0.05)


def test_people_read_whose_imbalance_it_is(
    planted: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "m.json")
    assert main(["fit", str(planted.path), "-o", model, "--quiet"]) == 0
    assert main(["diagnose", model, "--ranks", "128"]) == 0
    expected = " ".join(capsys.readouterr().out.split())
    assert "imbalance: uneven: rank 31, the last, does 2.17 times the mean (instructions, 32 ranks)" in expected
    (busiest,) = re.findall(r"the busiest rank (\S+) times at 128", expected)
    assert float(busiest) == pytest.approx(_most(128) / _mean(128), rel=0.06)
    assert "imbalance: even" not in expected
    assert main(["report", model, "--experiment", str(planted.path), "--ranks", "128"]) == 0
    assert "uneven" in capsys.readouterr().out


def test_an_even_program_is_known_as_one(tmp_path: Path) -> None:
    """Processor times of ranks that shared cores scatter; counts show that they do the same work."""
    made = Experiment.create(tmp_path / "even.exp", "even", ["ranks"])
    noise = np.random.default_rng(1)
    for p in RANKS:
        table = pd.DataFrame({"kernel": "k", "rank": np.arange(p), "time": 1.0, "instructions": 1e9})
        made.add(Run({"ranks": p}), table)
        whole = {"kernel": WHOLE, "rank": np.arange(p), "compute_cpu_time": noise.uniform(0.9, 1.1, p)}
        made.add(Run({"ranks": p}, collector="pmpi"), pd.DataFrame(whole))
    found = fit(made, over_ranks={"time": "mean"}).diagnose(ranks=64)
    assert found.evidence.imbalance.max() == 0
    assert not found.balance()["named"].any()


@pytest.mark.parametrize("over_ranks", ["max", "mean"])
@pytest.mark.parametrize("together", [True, False])
def test_imbalances_that_fall_on_different_ranks_do_not_add_up(tmp_path: Path, together: bool, over_ranks: str) -> None:
    made = Experiment.create(tmp_path / "two.exp", "two", ["ranks"])
    for p in RANKS[1:]:
        first, other = np.where(np.arange(p) == 0, 2.0, 1.0), np.where(np.arange(p) == 1, 1.5, 1.0)
        parts = [("a", 0.01 * first), ("b", 0.01 * (other[[1, 0, *range(2, p)]] if together else other))]
        frames = [
            pd.DataFrame({"kernel": name, "rank": np.arange(p), "time": t, "instructions": 1e9 * t})
            for name, t in parts
        ]
        made.add(Run({"ranks": p}), pd.concat(frames, ignore_index=True))
    evidence = fit(made, over_ranks={"time": over_ranks}).diagnose(ranks=32).evidence
    true = 0.01 * (3.5 if together else 3.0)
    assert evidence.whole[:, -1].sum() == pytest.approx(true, rel=0.02)


def test_waiting_inside_of_kernels_is_not_counted_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a rank computes longer it waits less in the exchange: all ranks end together."""
    made = Experiment.create(tmp_path / "waits.exp", "waits", ["ranks"])
    noise = np.random.default_rng(5)

    def compute(p: int) -> np.ndarray:
        return 8.0 / p * (1 + 0.2 * np.cos(np.pi * (np.arange(p) + 0.5) / p))

    def program(p: int) -> float:
        return float(compute(p).max()) + 0.1

    for p in (2, 4, 8, 16, 32):
        for repetition in range(2):
            work = compute(p) * noise.uniform(0.998, 1.002, p)
            frames = [
                pd.DataFrame({"kernel": name, "rank": np.arange(p), "time": t})
                for name, t in (("compute", work), ("exchange", program(p) - work))
            ]
            made.add(Run({"ranks": p}, repetition), pd.concat(frames, ignore_index=True))
    path = tmp_path / "m.json"
    fit(made).save(path)
    model = Model.load(path)
    broken = model.breakdown(np.array([[16.0], [32.0]]))
    assert broken.total.value[0] == pytest.approx([program(p) for p in (16, 32)], rel=0.01)
    for at, p in enumerate((16, 32)):
        assert broken.total.lower[0, at] < program(p) < broken.total.upper[0, at]
    assert sum(broken.each.values()).sum(axis=0) == pytest.approx(broken.total.value[0])
    assert model.diagnose(ranks=32).balance().set_index("kernel").loc["compute", "named"]
    assert np.isnan(model.diagnose(ranks=32).efficiencies()["load_balance"]).all()
    assert main(["predict", str(path), "--ranks", "32"]) == 0
    assert "the program takes less than their sum" in " ".join(capsys.readouterr().out.split())


def test_a_damaged_description_is_refused(planted: Experiment) -> None:
    held = fit(planted).equation.imbalances
    assert held is not None
    content = json.loads(json.dumps(held.to_dict()))
    assert Imbalances.from_dict(content).kernels == ("uneven",)
    for broken in ({"unwaited": {}}, {"held": 1}, {"classes": {}}, {"together": 2.0}):
        with pytest.raises(InputError):
            Imbalances.from_dict({**content, **broken})


def test_what_one_rank_does_alone_is_lost_once(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "alone.exp", "alone", ["ranks"])
    for p in (2, 4, 8):
        most = np.where(np.arange(p) == p - 1, 1.5, 1.0)
        parts = [("even", 0.010 * np.ones(p)), ("uneven", 0.005 * most), ("root", np.array([0.001]))]
        frames = [
            pd.DataFrame({"kernel": name, "rank": np.arange(len(t)), "time": t, "instructions": 2e9 * t})
            for name, t in parts
        ]
        made.add(Run({"ranks": p}), pd.concat(frames, ignore_index=True))
    found = fit(made, over_ranks={"time": "mean"}).diagnose(ranks=8)
    lost = found.balance().set_index("kernel")["lost"]
    whole = float(found.evidence.whole[:, -1].sum())
    assert lost["root"] == pytest.approx(0.001 * 7 / 8 / whole, rel=0.05)


def test_ranks_that_have_a_kernel_are_a_line_over_the_ranks(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "e", "roles", ["ranks"])
    for p in (2, 4, 8):
        who = [("all", range(p), 0.01), ("root", [0], 0.02), ("workers", range(1, p), 0.01)]
        frames = [
            pd.DataFrame({"kernel": name, "rank": [*ranks], "time": time, "instructions": 1e9 * time})
            for name, ranks, time in who
        ]
        made.add(Run({"ranks": p}), pd.concat(frames))
    fit(made, over_ranks={"time": "mean"}).save(tmp_path / "m.json")
    model = Model.load(tmp_path / "m.json")
    expected = model.equation.imbalances
    assert expected is not None
    part = expected.part(("all", "root", "workers", "unseen"), np.array([[8.0], [100.0]]))
    assert part == pytest.approx(np.array([[1, 1], [1 / 8, 0.01], [7 / 8, 0.99], [1, 1]]))
    # Workers work while the root does: of its time all but what the mean rank does is waited for, in the breakdown as in
    # the diagnosis.
    broken = model.breakdown(np.array([[100.0]]))
    waiting = dict(zip(broken.kernels, broken.each["imbalance"][:, 0], strict=True))
    assert broken.total.value[0] == pytest.approx(0.03, rel=0.02)
    assert waiting["root"] == pytest.approx(0.02 - 0.01 * 0.99 - 0.02 * 0.01, rel=0.02)
    assert broken.by_kernel.sum(axis=0) == pytest.approx(broken.total.value[0])
    evidence = model.diagnose(ranks=100).evidence
    assert evidence.lost[evidence.kernels.index("root"), -1] == pytest.approx(waiting["root"])
    assert evidence.computing[evidence.kernels.index("root"), -1] == pytest.approx(0.02, rel=0.02)
    assert evidence.total[-1] == pytest.approx(broken.total.value[0])
