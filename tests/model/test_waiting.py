"""Programs that were counted as a whole: the time in which cores run, and that in which they wait."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.application.waiting import HALTED, parted, unworked
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.series.computation import RUNNING
from ranksight.platforms import load

NODES = (1, 2, 3, 4)
NODE = 24
WORK, SHARE, START = 2400.0, 0.004, 9.0


def truth(nodes: float) -> tuple[float, float]:
    """Seconds that cores run, and that they wait, of a program that starts node after node."""
    running = WORK / nodes
    return running, SHARE * running + START * nodes


def whole(path: Path, nodes: tuple[int, ...] = NODES, scatter: float = 0.0, **columns: float) -> Experiment:
    """Runs of a program with its halted time by rank."""
    made = Experiment.create(path, "made-up", ["ranks"])
    rng = np.random.default_rng(3)
    for count in nodes:
        ranks = NODE * count
        running, waiting = truth(count)
        waiting *= float(np.exp(rng.normal(0, scatter)))
        table = pd.DataFrame({"kernel": WHOLE, "rank": np.arange(ranks), "time": running + waiting})
        table = table.assign(cycles=2e9 * running, instructions=3e9 * running, frequency=2e9)
        made.add(Run({"ranks": float(ranks)}, collector="likwid"), table.assign(**{HALTED: waiting} | columns))
    return made


def program(model: Model, nodes: float) -> tuple[float, float, float]:
    """Value and interval of the program's time."""
    answer = next(each for each in model.predict(ranks=NODE * nodes, metrics=["time"]).answers if each.kernel is None)
    return answer.value, answer.lower, answer.upper


@pytest.mark.parametrize("ranks_per_node", [None, NODE])
@pytest.mark.parametrize("scatter", [0.0, 0.15])
def test_waiting_grows_with_the_nodes_where_running_falls(
    tmp_path: Path, scatter: float, ranks_per_node: int | None
) -> None:
    cores = None if ranks_per_node is None else 12
    made = whole(tmp_path / "x", scatter=scatter)
    model = fit(made, platform=None, ranks_per_node=ranks_per_node, cores_per_domain=cores)
    for nodes in (8, 16):
        expected = sum(truth(nodes))
        value, lower, upper = program(model, nodes)
        assert lower < expected < upper
        assert value == pytest.approx(expected, rel=0.15 if scatter == 0 else 0.35)
    broken = model.breakdown(np.array([[16.0 * NODE]]))
    assert broken.kernels == (RUNNING,)
    assert broken.by_kernel[0, 0] == pytest.approx(truth(16)[0], rel=0.05)


def test_inside_a_node_waiting_is_a_share_and_a_constant(tmp_path: Path) -> None:
    """Other jobs make single runs wait longer; no growth follows from that with the node known."""
    made = Experiment.create(tmp_path / "x", "made-up", ["ranks"])
    for ranks, longer in ((1, 1.0), (2, 1.0), (4, 1.2), (8, 1.0), (12, 2.5)):
        running = WORK / ranks
        waiting = (4.0 + SHARE * running) * longer
        table = pd.DataFrame({"kernel": WHOLE, "rank": np.arange(ranks), "time": running + waiting, HALTED: waiting})
        made.add(Run({"ranks": float(ranks)}, collector="likwid"), table)
    model = fit(made, platform=load("haswell-e5-2680v3"))
    inside, beyond = model.breakdown(np.array([[24.0], [96.0]])).others.value[0]
    assert inside < 8.0
    others = model.breakdown(np.array([[24.0], [96.0]])).others
    width = np.log(others.upper[0] / others.lower[0])
    assert width[1] > width[0] + 1, "how long other nodes take to start was not seen"
    assert beyond < 3 * inside


def test_counts_of_the_program_stay_its_own(tmp_path: Path) -> None:
    model = fit(whole(tmp_path / "x"), platform=None)
    answers = model.predict(ranks=8 * NODE, metrics=["instructions", "frequency"]).answers
    found = {answer.metric: answer.value for answer in answers if answer.kernel in (None, WHOLE)}
    assert found["instructions"] == pytest.approx(3e9 * truth(8)[0], rel=0.01)
    assert found["frequency"] == pytest.approx(2e9, rel=0.01)


def test_a_saved_model_gives_the_same_answers(tmp_path: Path) -> None:
    model = fit(whole(tmp_path / "x", scatter=0.1), platform=load("haswell-e5-2680v3"))
    model.save(tmp_path / "model.json")
    assert program(Model.load(tmp_path / "model.json"), 16) == pytest.approx(program(model, 16))


def test_more_ranks_on_a_node_start_on_fewer_nodes(tmp_path: Path) -> None:
    model = fit(whole(tmp_path / "x"), platform=None, ranks_per_node=NODE, cores_per_domain=12)
    at = np.array([[16.0 * NODE]])
    dense = model.placed(ranks_per_node=2 * NODE).breakdown(at).others
    usual = model.breakdown(at).others
    assert dense is not None
    assert usual is not None
    assert dense.value[0, 0] < 0.75 * usual.value[0, 0]


def test_nothing_is_parted_where_nothing_waits_or_waiting_is_not_known(tmp_path: Path) -> None:
    none = whole(tmp_path / "none", **{HALTED: 0.1})
    assert parted(none) is none
    kernels = Experiment.create(tmp_path / "kernels", "made-up", ["ranks"])
    table = pd.DataFrame({"kernel": ["a", WHOLE], "rank": 0, "time": [5.0, 10.0], HALTED: [1.0, 4.0]})
    kernels.add(Run({"ranks": 1.0}, collector="likwid"), table)
    assert parted(kernels) is kernels
    unknown = whole(tmp_path / "unknown", **{HALTED: np.nan})
    assert parted(unknown) is unknown


def test_cores_halted_for_longer_than_the_run_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"time_halted is 1e\+04 s on rank 0 at ranks=24"):
        fit(whole(tmp_path / "x", **{HALTED: 1e4}), platform=None)


def test_the_program_is_the_sum_of_its_parts_where_one_is_of_mpi(tmp_path: Path) -> None:
    """Time of MPI's kernels, which is a kernel's and that of messages, is in the program once."""
    made = Experiment.create(tmp_path / "x", "made-up", ["ranks"])
    for ranks in (1, 2, 4, 8, 16, 32, 64):
        parts = {"solve": 4.0 / ranks, "MPI_Allreduce": 0.02 * np.log2(ranks)}
        rows = {"kernel": [*parts, WHOLE], "rank": 0, "time": [*parts.values(), sum(parts.values())]}
        made.add(Run({"ranks": float(ranks)}, collector="table"), pd.DataFrame(rows))
    model = fit(made, platform=None)
    assert model.equation.others is not None
    value, lower, upper = program(model, 512.0 / NODE)
    expected = 4.0 / 512 + 0.02 * 9
    assert lower < expected < upper
    assert value == pytest.approx(expected, rel=0.03)


def traced(path: Path, slept: float, cores: int) -> Experiment:
    """Runs whose ranks work for a second between MPI calls, and write files."""
    made = Experiment.create(path, "writer", ["ranks"])
    for ranks in (1, 2, 4):
        table = pd.DataFrame({"kernel": WHOLE, "rank": np.arange(ranks), "compute_cpu_time": 1.0})
        run = Run({"ranks": ranks}, collector="pmpi", environment={"cores": str(cores)})
        made.add(run, table.assign(compute_time=1.0 + slept, wall_time=2.0 + slept))
    return made


def test_time_in_which_no_processor_works_is_named(tmp_path: Path) -> None:
    """Files that a program writes are no computation; ranks that share cores wait for these."""
    note = unworked(traced(tmp_path / "io", 3.0, 8))
    assert "in up to 75% of the time between MPI calls" in note
    assert "files were read or written" in note
    assert note in fit(traced(tmp_path / "fitted", 3.0, 8)).remarks.notes
    assert unworked(traced(tmp_path / "busy", 0.05, 8)) == ""
    assert "ranks=1" in unworked(traced(tmp_path / "few", 3.0, 1)), "two and four ranks share the core"
