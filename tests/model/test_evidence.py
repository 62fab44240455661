"""What was counted decides which equation carries a kernel, and what contradicts itself carries none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ranksight.cli import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.resource.counters import contradictions, memory_slots, with_stalls
from ranksight.model.resource.equation import Machine
from ranksight.model.series.reducing import Series
from ranksight.platforms import load

MACHINE = Machine.of(load("icelake-8360y"))
RANKS = (1, 2, 4, 8, 16)
CPI, BLOCKING = 0.5, 0.4


def counters(ranks: int, names: tuple[str, ...]) -> dict[str, float]:
    """Of one rank of a kernel that follows the equation exactly; memory asks most of few ranks."""
    i = 1e10 / ranks
    served = np.array([0.3, 0.03, 0.01, 0.004 / np.sqrt(ranks)]) * i
    stalls = BLOCKING * float(served @ MACHINE.latencies)
    cycles = CPI * i + stalls
    every = {
        "instructions": i, "cycles": cycles, "time": cycles / MACHINE.frequency, "stall_cycles": stalls,
        "loads": served.sum(), "loads_l1": served[0], "loads_l2": served[1], "loads_l3": served[2], "loads_mem": served[3],
        "bytes_mem_read": 64 * served[3], "TOPDOWN_SLOTS": 5 * cycles, "TOPDOWN_MEM_BOUND": 5 * stalls,
        "Memory Bound": 100 * stalls / cycles,
    }  # fmt: skip
    return {name: every[name] for name in names}


def write(path, names: tuple[str, ...], change=None) -> Experiment:
    experiment = Experiment.create(path, "made-up", ["ranks"])
    for p in RANKS:
        row = counters(p, names)
        row = row if change is None else change(p, row)
        table = pd.DataFrame({"kernel": "k", "rank": np.arange(p), **row})
        experiment.add(Run({"ranks": p}, collector="made-up"), table)
    return experiment


LOADS = ("loads", "loads_l1", "loads_l2", "loads_l3", "loads_mem")
EVIDENCE = {
    "full counters": (("instructions", "cycles", "time", "stall_cycles", *LOADS), "stalls counted"),
    "no stalls": (("instructions", "cycles", "time", *LOADS), "cost per work"),
    "time for cycles": (("instructions", "time", *LOADS), "cost per work"),
    "slots": (("instructions", "cycles", "time", "Memory Bound", "bytes_mem_read"), "stalls counted"),
    "instructions alone": (("instructions", "time"), "cost per work"),
    "time alone": (("time",), "cost per work"),
}


@pytest.mark.parametrize("name", EVIDENCE)
def test_every_answer_names_its_method(tmp_path, name):
    names, expected = EVIDENCE[name]
    model = fit(write(tmp_path / "e", names), platform=MACHINE_FILE)
    (answer,) = (a for a in model.predict(ranks=8, metrics=["time"]).answers if a.kernel == "k")
    assert expected in answer.evidence
    assert answer.value == pytest.approx(counters(8, ("time",))["time"], rel=0.03)
    (whole,) = (a for a in model.predict(ranks=8, metrics=["time"]).answers if a.kernel is None)
    assert expected in whole.evidence


MACHINE_FILE = "icelake-8360y"


def test_closure_at_every_measured_point(tmp_path):
    model = fit(write(tmp_path / "e", EVIDENCE["full counters"][0]), platform=MACHINE_FILE)
    assert not model.equation.resources
    broken = model.breakdown(np.array([[float(p)] for p in RANKS]))
    assert broken.terms.cpi.value[0] == pytest.approx(CPI, rel=1e-3)
    assert broken.terms.blocking.value[0] == pytest.approx(BLOCKING, rel=1e-2)
    said = broken.total.value[0]
    assert said == pytest.approx([counters(p, ("time",))["time"] for p in RANKS], rel=3e-3)


def test_the_printed_equation_counts_stalls_twice(tmp_path):
    """As docs/resource-model.md computes it from the terms: the printed equation is too long by the stalls' share."""
    model = fit(write(tmp_path / "e", EVIDENCE["full counters"][0]), platform=MACHINE_FILE)
    at = counters(4, ("cycles", "instructions", "stall_cycles", "time"))
    said = model.predict(ranks=4, metrics=["time", "cycles", "stall_cycles"])
    value = {a.metric: a.value for a in said.answers if a.kernel == "k"}
    assert value["time"] == pytest.approx(at["time"], rel=3e-3)
    printed = (value["cycles"] + value["stall_cycles"]) / MACHINE.frequency
    assert printed / value["time"] == pytest.approx(1 + at["stall_cycles"] / at["cycles"], rel=1e-2)
    with pytest.raises(TypeError, match="equation"):
        fit(write(tmp_path / "f", EVIDENCE["full counters"][0]), platform=MACHINE_FILE, equation="literal")


@pytest.mark.parametrize(
    ("name", "unit"), [("Memory Bound", 100.0), ("topdown.memory_bound", 1.0), ("TOPDOWN_MEM_BOUND", 5e9)]
)
def test_stalls_from_slots(name, unit):
    assert memory_slots(name)
    names = ["cycles", name, *(["TOPDOWN_SLOTS"] if unit > 100 else [])]
    values = {"cycles": 1e9, name: 0.25 * unit, "TOPDOWN_SLOTS": 5e9}
    series = Series(
        ("ranks",), np.array([[1.0]]), np.array([[[values[n]]] for n in names]), ("k",) * len(names), tuple(names)
    )
    found = with_stalls(series)
    assert found.metrics[-1] == "stall_cycles"
    assert found.values[-1, 0, 0] == pytest.approx(2.5e8)
    assert found.provenance["stall_cycles"] == f"derived from {name}"


def test_no_stalls_from_what_is_no_share():
    names = ("cycles", "memory_bound")
    series = Series(("ranks",), np.array([[1.0]]), np.array([[[1e9]], [[4e7]]]), ("k", "k"), names)
    assert with_stalls(series) is series
    assert not memory_slots("bytes_mem")
    assert not memory_slots("backend_bound")


@pytest.mark.parametrize(
    ("name", "factor", "said"),
    [
        ("loads_l1", 2.0, "loads_l1 of"),
        ("stall_cycles", 30.0, "stall_cycles of"),
        ("loads", 0.5, "loads_l1 of"),
    ],
)
def test_counters_that_contradict_each_other_carry_nothing(tmp_path, capsys, name, factor, said):
    def change(ranks, row):
        return {**row, name: row[name] * factor} if ranks == 4 else row

    experiment = write(tmp_path / "e", EVIDENCE["full counters"][0], change)
    model = fit(experiment, platform=MACHINE_FILE)
    (answer,) = (a for a in model.predict(ranks=8, metrics=["time"]).answers if a.kernel == "k")
    assert not answer.ok
    assert "counters contradict each other" in answer.reason
    assert said in answer.reason
    assert "ranks = 4" in answer.reason
    model.save(tmp_path / "m.json")
    assert main(["predict", str(tmp_path / "m.json"), "--ranks", "8", "--metric", "time"]) == 4
    assert "insufficient: " in capsys.readouterr().out


def test_a_few_per_cent_are_no_contradiction():
    values = np.array([[[1.04e6]], [[1e6]], [[900.0]], [[10.0]]])
    series = Series(
        ("ranks",), np.array([[1.0]]), values, ("a", "a", "b", "b"), ("loads_l1", "loads", "stall_cycles", "cycles")
    )
    assert contradictions(series) == {}


def test_misses_are_reported_at_other_sizes(tmp_path):
    experiment = Experiment.create(tmp_path / "e", "made-up", ["size"])
    for n in (8, 12, 16, 24):
        row = {"instructions": 10.0 * n**3, "loads": 3.0 * n**3, "loads_mem": 0.01 * n**3}
        experiment.add(Run({"size": n}, collector="x"), pd.DataFrame({"kernel": ["k"], "rank": [0], **row}))
    model = fit(experiment, platform=None)
    assert model.predict(size=16).notes == ()
    (note,) = model.predict(size=48).notes
    assert note.startswith("E, loads served by memory over all loads, is 0.003 to 0.003 (most in k), above 0.0001")


def test_ranks_whose_caches_hold_the_work_are_named(tmp_path):
    """Ding et al. 2018, section 2: where E is above 1e-4, other numbers of ranks are to be compared."""
    experiment = Experiment.create(tmp_path / "e", "made-up", ["ranks", "size"])
    for p in (4, 8, 16, 64):
        for n in (8, 12, 16, 24):
            row = {"instructions": 10.0 * n**3 / p, "loads": 3.0 * n**3 / p, "loads_mem": 0.144 * n**3 / p**3}
            row = pd.DataFrame({"kernel": "k", "rank": range(p), **row})
            experiment.add(Run({"ranks": p, "size": n}, collector="x"), row)
    (note,) = (text for text in fit(experiment, platform=None).predict(ranks=16, size=48).notes if "E, loads" in text)
    assert note.endswith("it is below with 64 ranks: ask there")


FULL = EVIDENCE["full counters"][0]


def time_of(model: Model, ranks: int) -> float:
    return next(a.value for a in model.predict(ranks=ranks, metrics=["time"]).answers if a.kernel == "k")


@pytest.mark.parametrize("names", [FULL, EVIDENCE["no stalls"][0]])
def test_time_that_is_no_cycles_is_unknown_by_them(tmp_path, names):
    """A kernel that waits for files takes seconds and few cycles: its time does not fall with what it computes."""

    def waiting(p, row):
        return {**row, "time": row["time"] + 5.0}

    model = fit(write(tmp_path / "e", names, waiting), platform=MACHINE_FILE)
    for p in (16, 64):
        assert time_of(model, p) == pytest.approx(5.0 + counters(p, ("time",))["time"], rel=0.15)


def test_a_kernel_may_have_a_clock_of_its_own(tmp_path):
    """Vector units lower the clock: 1.3 times as long for the same cycles is what is predicted, by the same equation."""
    slowed = {"slow": 1.3, "k": 1.0}
    made = Experiment.create(tmp_path / "e", "two clocks", ["ranks"])
    for p in RANKS:
        rows = [{"kernel": name, "rank": 0, **counters(p, FULL)} for name in slowed]
        for row in rows:
            row["time"] *= slowed[row["kernel"]]
        made.add(Run({"ranks": p}), pd.DataFrame(rows))
    said = {a.kernel: a for a in fit(made, platform=MACHINE_FILE).predict(ranks=32, metrics=["time"]).answers}
    for name, factor in slowed.items():
        assert said[name].value == pytest.approx(factor * counters(32, ("time",))["time"], rel=0.02)
        assert said[name].evidence.endswith("stalls counted")


def test_mean_cycles_show_the_time_of_the_slowest_rank(tmp_path):
    """Times are those of slowest ranks, cycles are means: the imbalance lies between, and grows."""

    def most(p):
        return 1 + 0.1 * np.log2(p)

    made = Experiment.create(tmp_path / "e", "uneven", ["ranks"])
    for p in (2, 4, 8, 16, 32):
        work = np.linspace(2 - most(p), most(p), p)
        rows = {name: value * work for name, value in counters(p, FULL).items()}
        made.add(Run({"ranks": p}), pd.DataFrame({"kernel": "k", "rank": np.arange(p), **rows}))
    model = fit(made, platform=MACHINE_FILE)
    for p in (8, 32):
        assert time_of(model, p) == pytest.approx(counters(p, ("time",))["time"] * most(p), rel=2e-2)
    (far,) = (a for a in model.predict(ranks=128, metrics=["time"]).answers if a.kernel == "k")
    assert "counted equation" in far.evidence
    assert far.lower < counters(128, ("time",))["time"] * most(128) < far.upper
    broken = model.breakdown(np.array([[8.0], [128.0]]))
    assert sum(broken.each.values()).sum(axis=0) == pytest.approx(broken.total.value[0])
    execution, waiting = (broken.each[name][0] for name in ("execution", "imbalance"))
    assert execution[0] == pytest.approx(CPI * 1e10 / 8 / MACHINE.frequency, rel=1e-2)
    assert waiting[0] == pytest.approx(counters(8, ("time",))["time"] * (most(8) - 1), rel=1e-2)


def test_one_configuration_shows_causes_there_and_nowhere_else(tmp_path):
    made = Experiment.create(tmp_path / "e", "once", ["ranks", "size"])
    made.add(Run({"ranks": 2, "size": 8}), pd.DataFrame({"kernel": "k", "rank": [0, 1], **counters(2, FULL)}))
    model = fit(made, platform=MACHINE_FILE)
    assert model.diagnose(ranks=2, size=8).verdicts()["verdict"].tolist() != ["undecided"]
    assert model.diagnose(ranks=[2, 64], size=16).verdicts()["verdict"].tolist() == ["undecided"] * 2


@pytest.mark.parametrize("ranks", [0, 1.5, -2])
def test_runs_on_no_number_of_ranks_are_refused(ranks):
    with pytest.raises(InputError, match="whole numbers from 1"):
        Run({"ranks": ranks})


def test_a_value_asked_for_twice_is_answered_once(tmp_path):
    model = fit(write(tmp_path / "e", FULL), platform=MACHINE_FILE)
    assert model.predict(ranks=[8, 8, 4], metrics=["time"]).table()["ranks"].tolist() == [8, 8, 4, 4]  # whole and k
    assert model.diagnose(ranks=[8, 8]).verdicts()["ranks"].tolist() == [8]


def test_cycles_of_one_rank_alone_are_its_own(tmp_path):
    """A serial section: the mean of those that have it is the slowest rank."""
    made = Experiment.create(tmp_path / "e", "serial", ["ranks"])
    for p in (2, 4, 8, 16):
        rows = [{"kernel": "k", "rank": 0, **counters(1, FULL)}]
        rows += [{"kernel": "other", "rank": r, **counters(p, FULL)} for r in range(p)]
        made.add(Run({"ranks": p}), pd.DataFrame(rows))
    model = fit(made, platform=MACHINE_FILE)
    said = {a.kernel: a for a in model.predict(ranks=64, metrics=["time"]).answers}
    assert said["k"].value == pytest.approx(counters(1, ("time",))["time"], rel=0.02)
    assert "stalls counted" in said["k"].evidence
    verdict = model.diagnose(ranks=64).verdicts().set_index("kernel").loc["k"]
    # Of its seconds on the mean rank, the part that counters say, as on the ranks that share the other.
    execution = CPI * 1e10 / counters(1, ("cycles",))["cycles"]
    assert verdict["compute"] / (1 - verdict["imbalance"]) == pytest.approx(execution, rel=0.05)
