# ruff: noqa: E501
"""Write docs/papers.md and docs/papers-expectations.md: what the five papers print, next to what this package computes.

Run ``python docs/papers.py``; a test holds the pages against what is computed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "helpers"))

import published as paper  # noqa: E402

from ranksight.analysis.expectations.document import LEAST_R2  # noqa: E402
from ranksight.analysis.expectations.grammar import growth  # noqa: E402
from ranksight.analysis.expectations.match import limit_of, match  # noqa: E402
from ranksight.analysis.phases.distant import distant_point  # noqa: E402
from ranksight.analysis.phases.instructions import InstructionTable  # noqa: E402
from ranksight.analysis.phases.weights import fit_weight  # noqa: E402
from ranksight.core.experiment import Experiment, Run  # noqa: E402
from ranksight.model.assembly import fit  # noqa: E402
from ranksight.model.spaces.pmnf import EXPONENTS, LOGARITHMS  # noqa: E402
from ranksight.model.structure.coordinates import Coordinates  # noqa: E402
from ranksight.platforms import load  # noqa: E402

HASWELL = "haswell-e5-2680v3"
"""The processor of Ding et al. 2018."""


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(str(cell) for cell in line)} |" for line in lines] + [""]


def work_per_rank() -> dict[int, dict[int, float]]:
    """Work per rank of the runs of HOMME, by problem size and ranks, from the formula that ``--derive`` takes."""
    found = {}
    for size, ranks in paper.HOMME_RUNS.items():
        runs = np.array([[float(p), float(size)] for p in ranks])
        x = Coordinates(("ranks", "ne"), {"x": paper.WORK_PER_RANK}, runs)
        column = x.parameters.index("x")
        found[size] = dict(zip(ranks, x.points(runs)[:, column].tolist(), strict=True))
    return found


def figure_8() -> pd.DataFrame:
    """CPI and BF_mem of the pair of figure 8 as a diagnosis gives them, from counters of 2 to 20 ranks.

    Returns
    -------
    DataFrame
        ``kernel``, ``ranks``, ``cpi``, ``bf_mem`` in the printed unit, ``memory`` (share of the computing that caches
        and memory hold up), and ``verdict``.
    """
    platform = load(HASWELL)
    with tempfile.TemporaryDirectory() as folder:
        made = Experiment.create(Path(folder) / "cice", "cice", ["ranks"])
        for ranks in (2, 4, 8, 12, 16, 20):
            rows = [{"kernel": name, "rank": -1, **row} for name, row in paper.cice(ranks, platform).items()]
            made.add(Run({"ranks": float(ranks)}, 0, "figure 8"), pd.DataFrame(rows))
        found = fit(made, platform=platform).diagnose(ranks=list(paper.FIGURE_8_RANKS)).verdicts()
    found = found.assign(memory=found[["L2", "L3", "memory"]].sum(axis=1), bf_mem=found["bf_mem"] / paper.LATENCY)
    return found[["kernel", "ranks", "cpi", "bf_mem", "memory", "verdict"]]


def ding() -> list[str]:
    """Ding et al. 2018: work per rank, and the pair of kernels that CPI cannot distinguish."""
    lines = [
        "## Ding, Xu, Song, Zhang, Li, Zheng 2018",
        "Using hardware counter-based performance model to diagnose scaling issues of HPC applications. One equation:",
        "T_app = sum_i (T_comp_i + BF_mem_i T_mem_i) + BF_comm T_comm + T_others; see [the resource model](resource-model.md).",
        "",
        f"Work per rank of HOMME (section 2), `--derive 'x={paper.WORK_PER_RANK}'`:",
        "",
    ]
    for size, points in work_per_rank().items():
        lines += table([f"ne{size}: ranks", *points], [["x", *(f"{x:g}" for x in points.values())]])
    lines += [
        "Figure 8, BF_mem of two kernels of CICE at 2 and 20 ranks, from counters whose CPI is 0.6 everywhere. At 2 ranks",
        "`stress` waits more, at 20 ranks `transport_integral` does, which no CPI shows:",
        "",
    ]
    rows = []
    for row in figure_8().itertuples():
        printed = paper.FIGURE_8[row.kernel][paper.FIGURE_8_RANKS.index(int(row.ranks))]
        rows.append(
            [row.kernel, f"{row.ranks:g}", f"{row.cpi:.2f}", f"{1e4 * printed:.1f}e-4", f"{1e4 * row.bf_mem:.1f}e-4"]
        )
    return lines + table(["kernel", "ranks", "CPI", "BF_mem printed", "BF_mem computed"], rows)


def calotoiu() -> list[str]:
    """Calotoiu et al. 2013 and its overview: the normal form, and the target that table 4 has."""
    lines = [
        "## Calotoiu, Hoefler, Poke, Wolf 2013",
        "Using automated performance modeling to find scalability bugs in complex codes, and its overview, Mass-producing",
        "insightful performance models, which prints no table. The normal form is f(p) = sum_k c_k p^i_k log2(p)^j_k:",
        f"{len(EXPONENTS)} powers and {len(LOGARITHMS)} logarithms are {len(EXPONENTS) * len(LOGARITHMS)} terms.",
        "",
        "Table 4 prints two models of each quadratic kernel of HOMME and their errors at the target, p_t = 130k. Both errors hold",
        "at one number of processes alone, t4 / (1 - e4) (1 + e5) = a + b p^2:",
        "",
    ]
    rows = [
        [name, *(f"{value:g}" for value in values), f"{paper.target_of(name):,.0f}"]
        for name, values in paper.QUADRATIC.items()
    ]
    return lines + table(["kernel", "t4 [s]", "e4 [%]", "a [s]", "b [s]", "e5 [%]", "p_t computed"], rows)


def shudler() -> list[str]:
    """Shudler et al. 2015: divergence and match of every cell; a page of its own."""
    lines = [
        "# Expectations of a paper, recomputed",
        "Tables 2 to 4 of Shudler, Calotoiu, Hoefler, Strube and Wolf 2015, *Exascaling your library: will your implementation",
        "meet your expectations?* Each row has an expected growth and a printed model. Divergence and match are computed from",
        "these two as `ranksight check` judges them ([expectations](expectations.md)). Written by `python docs/papers.py`.",
        "",
    ]
    limit = growth("O(p^0.5)")
    for number, content in ((2, paper.TABLE_2), (3, paper.TABLE_3)):
        rows = []
        for name, (expected, *cells) in content.items():
            for machine, (model, r2, delta, rank) in zip(paper.MACHINES, cells, strict=True):
                found = match(growth(model), growth(expected), limit_of(growth(expected), limit))
                verdict = "insufficient" if r2 < LEAST_R2 else found.rank
                rows.append([name, machine, expected, model, f"O({delta})", found.divergence, rank, verdict])
        head = [
            "function",
            "machine",
            "expected",
            "model",
            "divergence printed",
            "computed",
            "match printed",
            "computed",
        ]
        lines += [f"## Table {number}", "", *table(head, rows)]
    rows = []
    for name, (expected, model, delta, rank) in paper.MAFIA.items():
        found = match(growth(model), growth(expected), limit_of(growth(expected)))
        rows.append([name, expected, model, f"O({delta})", found.divergence, rank, found.rank])
    head = ["function", "expected", "model", "divergence printed", "computed", "match printed", "computed"]
    return [*lines, "## Table 4", "", *table(head, rows)]


def panadero() -> list[str]:
    """Panadero et al.: instruction prediction table, distant point, errors."""
    weight = fit_weight(paper.RANKS, paper.WEIGHTS)
    given = InstructionTable.of(paper.RANKS, paper.INSTRUCTIONS, paper.WEIGHTS, weight, total=paper.PREDICTED_TOTAL)
    rows = [
        [p, f"{instructions:,}", f"{float(given.at(float(p))):,.0f}", occurrences, f"{weight.at(p):g}"]
        for p, (instructions, occurrences, _) in paper.PREDICTED.items()
    ]
    lines = [
        "## Panadero, Wong, Rexachs, Luque",
        "Scalability of parallel applications: an approach to predict the computational behavior. See [phases](phases.md).",
        "Table 1, phase 1 of BT, from the rows of 16 to 100 ranks:",
        "",
        *table(["ranks", "instructions printed", "computed", "weight printed", "computed"], rows),
    ]
    ranks, instructions, cycles, _, nanoseconds = paper.SMALL.T
    measured = InstructionTable.of(paper.RANKS, paper.INSTRUCTIONS, paper.WEIGHTS, weight)
    far = distant_point(ranks, instructions, nanoseconds * 1e-9, cycles / instructions, measured)
    lines += [
        f"Table 2: the distant point is {far.instructions:,.0f} instructions at {far.measured_ranks:g} ranks of the small problem, "
        f"which stand for {far.ranks:g} ranks of the large one ({far.difference:.2%} apart; printed: 1,759,558 at 100, 1681, 0.87 %).",
        "",
        "Table 3, errors recomputed as |predicted - real| / real; those of LU and N-BODY1 are printed relative to the prediction:",
        "",
    ]
    rows = [
        [name, p, f"{real:,}", f"{said:,}", f"{printed:.2f}", f"{100 * abs(said - real) / real:.2f}"]
        for name, p, real, said, printed, *_ in paper.SUMMARY
    ]
    head = ["phase", "ranks", "real [ns]", "predicted [ns]", "error printed [%]", "computed [%]"]
    return lines + table(head, rows)


def text() -> str:
    """The page, as Markdown."""
    lines = [
        "# The papers' tables, recomputed",
        "What the papers that this package implements print, and what it computes from the same numbers. For example, the",
        "paper of Ding et al. prints a memory blocking factor of 4.2e-4 for CICE's kernel `stress` at 2 ranks; the same counters",
        "give 4.2e-4 here. Written by `python docs/papers.py` from [the published numbers](../tests/helpers/published.py); a",
        "[page of its own](papers-expectations.md) has the tables of Shudler et al. 2015.",
        "",
        *ding(),
        *calotoiu(),
        *panadero(),
    ]
    return _page(lines)


def expectations() -> str:
    """The page of the tables of Shudler et al., as Markdown."""
    return _page(shudler())


def _page(lines: list[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    (HERE / "papers.md").write_text(text())
    (HERE / "papers-expectations.md").write_text(expectations())
