"""The tables of the paper from their models: divergences, matches and warnings, every cell.

From the printed formulas, and again from values that the printed models give, through the whole check.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from published import COEFFICIENTS, MACHINES, MAFIA, TABLE_2, TABLE_3, N, T
from studies import study_of

from ranksight.analysis.expectations.checking import check
from ranksight.analysis.expectations.document import LEAST_R2
from ranksight.analysis.expectations.grammar import growth
from ranksight.analysis.expectations.match import limit_of, match
from ranksight.analysis.expectations.rules import holds_in_the_limit
from ranksight.core.experiment import Experiment, Run

LIMIT = growth("O(p^0.5)")
CELLS = [
    (name, machine, row[0], *row[1 + at])
    for table in (TABLE_2, TABLE_3)
    for name, row in table.items()
    for at, machine in enumerate(MACHINES)
]
STUDY = """
[search]
deviation = "O(p^0.5)"
[search.terms.p]
powers = ["0", "1/4", "1/3", "1/2", "2/3", "3/4", "1", "5/4", "4/3", "3/2", "5/3", "7/4", "2"]
logs = ["0", "1"]
"""


def test_there_are_24_and_15_cells() -> None:
    assert sum(name in TABLE_2 for name, *_ in CELLS) == 24
    assert sum(name in TABLE_3 for name, *_ in CELLS) == 15


@pytest.mark.parametrize(("name", "machine", "expected", "model", "r2", "delta", "rank"), CELLS)
def test_every_cell_follows_from_its_model(
    name: str, machine: str, expected: str, model: str, r2: float, delta: str, rank: str
) -> None:
    found = match(growth(model), growth(expected), limit_of(growth(expected), LIMIT))
    assert str(found.divergence) == f"O({delta})"
    assert found.rank == rank


def test_one_printed_match_rests_on_too_low_an_r2() -> None:
    assert [(name, machine) for name, machine, _, _, r2, *_ in CELLS if r2 < LEAST_R2] == [("MPI_memory", "Piz Daint")]


@pytest.mark.parametrize(("machine", "at"), list(zip(MACHINES, range(3))))
def test_guidelines_follow_from_the_models(machine: str, at: int) -> None:
    models = {name: growth(row[1 + at][0]) for name, row in TABLE_2.items()}
    allreduce = holds_in_the_limit([models["Allreduce"]], [models["Reduce"], models["Bcast"]])
    allgather = holds_in_the_limit([models["Allgather"]], [models["Gather"], models["Bcast"]])
    # The paper flags the first on Piz Daint; its own models break the second there as well.
    assert (allreduce, allgather) == ((False, False) if machine == "Piz Daint" else (True, True))


def store(folder: Path, values: Mapping[str, np.ndarray], ranks: np.ndarray, metric: str) -> Experiment:
    experiment = Experiment.create(folder, "mpi", ["ranks"])
    for i, p in enumerate(ranks):
        counters = pd.DataFrame({"kernel": list(values), "rank": -1, metric: [values[name][i] for name in values]})
        experiment.add(Run({"ranks": float(p)}, 0, "csv", provenance={metric: "measured"}), counters)
    return experiment


def shape(text: str, p: np.ndarray) -> np.ndarray:
    order = growth(text)["p"]
    return p ** float(order.power) * np.log2(p) ** float(order.log)


@pytest.mark.parametrize(("machine", "at"), list(zip(MACHINES, range(3))))
def test_table_2_again_from_values_of_its_models(tmp_path: Path, machine: str, at: int) -> None:
    p = 2.0 ** np.arange(4, 14)
    values = {name: 2e-6 + 3e-7 * shape(row[1 + at][0], p) for name, row in TABLE_2.items()}
    lines = "\n".join(f'{name} = "O({row[0]})"' for name, row in TABLE_2.items())
    rules = 'time = ["Allreduce <= Reduce + Bcast", "Allgather <= Gather + Bcast"]'
    study = study_of(f"{STUDY}\n[expect.time]\n{lines}\n[rules]\n{rules}\n[litmus]\ntime = 'Bcast_tree'")
    result = check(study, store(tmp_path / "e", values, p, "time"))
    short = {"ranks": "p"}
    for finding in result.findings:
        model, _, delta, rank = TABLE_2[finding.function][1 + at]
        assert finding.match is not None
        assert finding.match.found.renamed(short) == growth(model), finding.function
        assert str(finding.match.divergence.renamed(short)) == f"O({delta})"
        assert finding.verdict == rank
        if finding.verdict != T and finding.function != "Bcast_tree" and finding.match.faster:
            # On these machines the reference tree broadcast deviated as well.
            assert finding.litmus.startswith("the architecture")
    assert [each.in_the_limit for each in result.rules] == ["violated" if at == 2 else "holds"] * 2
    assert result.exit_code == (0 if at == 0 else 3)


@pytest.mark.parametrize(("machine", "at"), list(zip(MACHINES, range(3))))
def test_table_3_again_from_values_of_its_models(tmp_path: Path, machine: str, at: int) -> None:
    p = 2.0 ** np.arange(4, 14)
    values = {
        name: COEFFICIENTS[name][at][0] + COEFFICIENTS[name][at][1] * shape(row[1 + at][0], p)
        for name, row in TABLE_3.items()
    }
    lines = "\n".join(f'{name} = "O({row[0]})"' for name, row in TABLE_3.items())
    study = study_of(f"{STUDY}\n[expect.memory_allocated]\n{lines}")
    result = check(study, store(tmp_path / "e", values, p, "memory_allocated"))
    for finding in result.findings:
        model, _, _, rank = TABLE_3[finding.function][1 + at]
        assert finding.match is not None
        assert finding.match.found.renamed({"ranks": "p"}) == growth(model), finding.function
        # Without the scatter of the real measurements the model of MPI memory on Piz Daint is a total match.
        assert finding.verdict == rank


def test_memory_wall_of_juropa(tmp_path: Path, shared: Path) -> None:
    import json

    p = 2.0 ** np.arange(4, 13)
    experiment = store(tmp_path / "e", {"MPI_memory": 16 + 0.56 * p}, p, "memory_allocated")
    study = study_of(f'{STUDY}\n[expect.memory_allocated]\nMPI_memory = "O(log p)"')
    (finding,) = check(study, experiment, targets={"ranks": [8192.0]}).findings
    facts = json.loads((shared / "papers" / "facts.json").read_text())
    assert finding.costs[0].value == pytest.approx(facts["juropa_mem_MB_p8192"], rel=1e-6)
    # Eight processes a node of 24 GB: the paper's wall.
    assert 8 * finding.costs[0].value / 1024 == pytest.approx(35.97, abs=0.01)
    assert finding.verdict == N


@pytest.mark.parametrize("scatter", [0.1, 0.2, 0.4])
@pytest.mark.parametrize("expected", ["log p", "p"])
def test_poor_evidence_gives_no_verdict(tmp_path: Path, scatter: float, expected: str) -> None:
    p = 2.0 ** np.arange(4, 14)
    wiggle = 1 + scatter * np.array([1, -1, -1, 1, -1, 1, 1, -1, 1, -1])
    experiment = store(tmp_path / "e", {"MPI_memory": (46 + 1.35 * np.log2(p)) * wiggle}, p, "memory_allocated")
    study = study_of(f'{STUDY}\n[expect.memory_allocated]\nMPI_memory = "O({expected})"')
    result = check(study, experiment)
    assert result.findings[0].verdict == "insufficient"
    assert result.findings[0].reason
    assert result.exit_code == 4


def test_good_evidence_gives_one(tmp_path: Path) -> None:
    p = 2.0 ** np.arange(4, 14)
    wiggle = 1 + 0.02 * np.array([1, -1, -1, 1, -1, 1, 1, -1, 1, -1])
    experiment = store(tmp_path / "e", {"MPI_memory": (46 + 1.35 * np.log2(p)) * wiggle}, p, "memory_allocated")
    for expected, verdict in (("log p", T), ("p", N)):
        study = study_of(f'{STUDY}\n[expect.memory_allocated]\nMPI_memory = "O({expected})"')
        assert check(study, experiment).findings[0].verdict == verdict


@pytest.mark.parametrize(("name", "row"), MAFIA.items())
def test_table_4_follows_from_its_models(name: str, row: tuple[str, str, str, str]) -> None:
    expected, model, delta, rank = row
    found = match(growth(model), growth(expected), limit_of(growth(expected)))
    assert (str(found.divergence), found.rank) == (f"O({delta})", rank)


def test_table_4_again_from_values_of_its_models(tmp_path: Path) -> None:
    k = np.arange(3.0, 17.0)
    rng = np.random.default_rng(0)
    experiment = Experiment.create(tmp_path / "e", "mafia", ["k"])
    powers = {"gen": 4, "dedup": 4, "pcount": 1, "unjoin": 2}
    for each in k:
        for repetition in range(3):
            time = [1e-3 + 1e-7 * each**power * 2**each * rng.lognormal(0, 0.01) for power in powers.values()]
            counters = pd.DataFrame({"kernel": list(powers), "rank": -1, "time": time})
            experiment.add(Run({"k": float(each)}, repetition, "csv", provenance={"time": "measured"}), counters)
    lines = "\n".join(f'{name} = "O({row[0]})"' for name, row in MAFIA.items())
    result = check(study_of(f"[expect.time]\n{lines}"), experiment)
    for finding in result.findings:
        _, model, delta, rank = MAFIA[finding.function]
        assert finding.match is not None
        assert finding.match.found == growth(model), finding.function
        assert (str(finding.match.divergence), finding.verdict) == (f"O({delta})", rank)
    assert result.exit_code == 0


def counted_subsets(power: int) -> list[float]:
    """Work of visiting every subset of k dimensions at the cost of a power of its size, with all lower-order terms."""
    return [float(sum(comb(k, j) * j**power for j in range(k + 1))) for k in range(3, 17)]


def store_subsets(folder: Path) -> Experiment:
    experiment = Experiment.create(folder, "subspaces", ["k"])
    counts = {"gen": counted_subsets(3), "dedup": counted_subsets(4), "pcount": counted_subsets(1)}
    for i, k in enumerate(range(3, 17)):
        table = pd.DataFrame(
            {"kernel": list(counts), "rank": -1, "instructions": [1000 + 20 * v[i] for v in counts.values()]}
        )
        experiment.add(Run({"k": float(k)}, 0, "csv", provenance={"instructions": "measured"}), table)
    return experiment


def test_exponential_growth_of_counted_subsets_is_found(tmp_path: Path) -> None:
    lines = 'gen = "O(k^3 2^k)"\ndedup = "O(k^4 2^k)"\npcount = "O(k 2^k)"'
    result = check(study_of(f"[expect.instructions]\n{lines}"), store_subsets(tmp_path / "e"))
    assert [finding.verdict for finding in result.findings] == [T, T, T]


def test_who_expects_a_power_is_reported_of_an_exponential(tmp_path: Path) -> None:
    lines = 'gen = "O(k^3)"\ndedup = "O(k^4)"\npcount = "O(k)"'
    result = check(study_of(f"[expect.instructions]\n{lines}"), store_subsets(tmp_path / "e"))
    for finding in result.findings:
        assert finding.verdict == N
        assert finding.widened
        assert finding.match is not None
        assert finding.match.found["k"].rate == 1, finding.function
