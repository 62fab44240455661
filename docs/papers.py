# ruff: noqa: E501
"""Write docs/papers.md and docs/papers-expectations.md: what the five papers print, next to what this package computes.

Run ``python docs/papers.py``; a test holds the pages against what is computed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "helpers"))

import published as paper  # noqa: E402

from ranksight.analysis.diagnosis.layouts import layouts  # noqa: E402
from ranksight.analysis.expectations.document import LEAST_R2  # noqa: E402
from ranksight.analysis.expectations.grammar import growth  # noqa: E402
from ranksight.analysis.expectations.match import limit_of, match  # noqa: E402
from ranksight.analysis.phases.distant import distant_point  # noqa: E402
from ranksight.analysis.phases.instructions import InstructionTable  # noqa: E402
from ranksight.analysis.phases.weights import fit_weight  # noqa: E402
from ranksight.comm.patterns.grid import Cartesian  # noqa: E402
from ranksight.core.formula import read_formula  # noqa: E402
from ranksight.counters.frames import from_frame  # noqa: E402
from ranksight.model.fit import fit  # noqa: E402
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


def evaluated(text: str, **parameters: float) -> float:
    """Value of a printed formula, read as ``--derive`` reads it, with log2(p) as a parameter and numbers written out."""
    values = {name: np.array(float(x)) for name, x in parameters.items()}
    if "p" in values:
        values["L"] = np.log2(values["p"])
    plain = re.sub(r"\d[\d.]*e-?\d+", lambda number: f"{float(number[0]):.12f}", text.replace("log2(p)", "L"))
    return float(read_formula(plain, "a printed model")(values))


def ding() -> list[str]:
    """Ding et al. 2018: work per rank, flops/byte against the roofline, and the layout of ranks."""
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
        "Figure 8 prints BF_mem of two kernels of CICE at 2 and 20 ranks, 4.2e-4 and 0.2e-4 of `stress`, 0.9e-4 and 0.3e-4",
        "of `transport_integral`. It prints none of the counters that they follow from, so nothing is computed here.",
        "",
        "Table 5, flops/byte of `stress`. Memory moves more bytes than the algorithm needs, by the quotient of the two. The",
        f"processor's description ({HASWELL}) has the bandwidth of that many cores; at the measured flops/byte it feeds",
        "no more than these flops:",
        "",
    ]
    platform = load(HASWELL)
    rows = []
    for cores, (theory, measured) in paper.FLOPS_PER_BYTE.items():
        domains = -(-cores // platform.layout.cores_per_domain)
        bandwidth = domains * platform.bandwidth(-(-cores // domains))
        limit = f"{measured * bandwidth / 1e9:.2g} GFlop/s"
        rows.append([cores, theory, measured, f"{theory / measured:.3g}", limit])
    lines += table(["cores", "theoretical", "measured", "bytes over those needed", "limit by memory"], rows)
    lines += layouts_of_openfoam()
    return lines


def layouts_of_openfoam() -> list[str]:
    """Figure 10: what the change of the layout of 12 ranks does to messages and to idle time."""
    grid = Cartesian(3, (False, False, False))
    sent = layouts(grid, 12).set_index("layout")
    rows = [
        [layout, f"{sent['directions'][layout]}", f"{sent['messages'][layout]:.3g}", idle, variance]
        for layout, (idle, variance) in paper.OPENFOAM.items()
    ]
    (idle, variance), (less, calmer) = paper.OPENFOAM.values()
    first, second = (sent["messages"][layout] for layout in paper.OPENFOAM)
    saved = (idle - less) / idle * paper.IDLE
    return [
        "Figure 10, OpenFOAM on 12 ranks: directions and messages of a rank by layout, as `diagnose` counts them for its",
        "advice on layouts, and the printed idle times:",
        "",
        *table(["layout", "directions", "messages a rank", "mean idle [ms], printed", "variance, printed"], rows),
        f"The idle time falls by a factor of {idle / less:.2f}, its variance by {variance / calmer:.2f}. As the first is "
        f"{paper.IDLE:.0%} of the runtime, {saved:.1%} of it are saved.",
        f"Messages fall by {1 - second / first:.0%} on a grid of boxes; the paper prints 6 % for its mesh of any shape.",
        "",
    ]


def calotoiu() -> list[str]:
    """Calotoiu et al. 2013 and its overview: the normal form, tables 1 to 3, and the target that table 4 has."""
    return [
        "## Calotoiu, Hoefler, Poke, Wolf 2013",
        "Using automated performance modeling to find scalability bugs in complex codes, and its overview, Mass-producing",
        "insightful performance models, which prints no table. The normal form is f(p) = sum_k c_k p^i_k log2(p)^j_k:",
        f"{len(EXPONENTS)} powers and {len(LOGARITHMS)} logarithms are {len(EXPONENTS) * len(LOGARITHMS)} terms.",
        "",
        *sweep3d(),
        *milc(),
        *homme(),
    ]


def sweep3d() -> list[str]:
    """Table 1: shares and growth at the target from the printed models."""
    few, many = paper.SWEEP3D_RANKS
    then = {name: evaluated(model, p=many) for name, (_, _, model, _) in paper.SWEEP3D.items()}
    total = sum(then.values())
    now = sum(evaluated(model, p=few) for _, _, model, _ in paper.SWEEP3D.values())
    rows = []
    for name, (share, growth_, model, _) in paper.SWEEP3D.items():
        grown = then[name] / total / (evaluated(model, p=few) / now)
        rows.append(
            [name, model, f"{then[name]:,.1f}", share, f"{100 * then[name] / total:.2f}", growth_, f"{grown:.2f}"]
        )
    head = ["kernel", "model [s]", f"at {many:,} [s]", "share printed [%]", "computed", "increase printed", "computed"]
    return [
        f"Table 1, Sweep3D at {many:,} processes: the printed models evaluated, their shares of their sum, and the growth of",
        f"each share since {few} processes. The printed shares are of measured times:",
        "",
        *table(head, rows),
        "The column of increases is one of shares: kernels of constant time have 0.23, the inverse growth of the whole. The",
        "0.04 of `source` does not agree with its model, whose share falls like that of the other constant kernels.",
        "",
    ]


def milc() -> list[str]:
    """Tables 2 and 3 of MILC, and the size of its messages."""
    lines = [f"Table 2, MILC at {paper.MILC_RANKS:,} processes, the printed models evaluated:", ""]
    rows = [
        [name, model, error, f"{evaluated(model, p=paper.MILC_RANKS):.4g}"]
        for name, (model, error) in paper.MILC.items()
    ]
    lines += table(["kernel", "model [s]", "error printed [%]", "time computed [s]"], rows)
    rows = []
    for name, (flops, calls, each) in paper.MILC_FLOPS.items():
        ratios = [
            evaluated(f"({each})*({calls})/({flops})", V=v) for v in (paper.GRID_POINTS[0], paper.GRID_POINTS[-1])
        ]
        rows.append([name, flops, calls, each, *(f"{ratio:.3f}" for ratio in ratios)])
    least, most = paper.GRID_POINTS[0], paper.GRID_POINTS[-1]
    lines += [
        "Table 3, MILC: flops per invocation times invocations, over the printed flops, at the fewest and the most grid",
        "points of a process. Four kernels agree within 0.2 %; the models of `ks_congrad` do not compose:",
        "",
        *table(["kernel", "flops", "invocations", "flops/invocation", f"at V = {least}", f"at V = {most:,}"], rows),
    ]
    sizes = [18 * 4 * v**0.75 for v in paper.GRID_POINTS]
    frame = pd.DataFrame({"V": paper.GRID_POINTS, "bytes_sent": sizes})
    model = fit(from_frame(frame, ["V"], metrics=["bytes_sent"]))
    return [
        *lines,
        "The paper prints no message sizes but their law, 18 s V^(3/4) bytes with s = 4, and the V of the runs. `fit`, given",
        f"the bytes of that law at these V, finds `{model.table()['formula'].iloc[0]}`.",
        "",
    ]


def homme() -> list[str]:
    """Table 4: the number of processes at which both printed errors hold."""
    rows = [
        [name, *(f"{value:g}" for value in values), f"{paper.target_of(name):,.0f}"]
        for name, values in paper.QUADRATIC.items()
    ]
    return [
        "Table 4 prints two models of each quadratic kernel of HOMME and their errors at the target, p_t = 130k. Both errors hold",
        "at one number of processes alone, t4 / (1 - e4) (1 + e5) = a + b p^2:",
        "",
        *table(["kernel", "t4 [s]", "e4 [%]", "a [s]", "b [s]", "e5 [%]", "p_t computed"], rows),
    ]


def shudler() -> list[str]:
    """Shudler et al. 2015: divergence and match of every cell; a page of its own."""
    lines = [
        "# Expectations of a paper, recomputed",
        "Tables 2 to 4 of Shudler, Calotoiu, Hoefler, Strube and Wolf 2015, *Exascaling your library: will your implementation",
        "meet your expectations?* Each row has an expected growth and a printed model. Divergence and match are computed from",
        "these two as `ranksight check` judges them ([expectations](expectations.md)). The paper prints a total match for MPI",
        "memory on Piz Daint, whose model has R^2 = 0.23: too little for a verdict here. Written by `python docs/papers.py`.",
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
    measured = InstructionTable.of(paper.RANKS, paper.INSTRUCTIONS, paper.WEIGHTS, weight)
    rows = []
    for p, (instructions, occurrences, _) in paper.PREDICTED.items():
        found = float(measured.at(float(p)))
        rows.append(
            [
                p,
                f"{instructions:,}",
                f"{found:,.0f}",
                f"{found / instructions - 1:.1e}",
                occurrences,
                f"{weight.at(p):g}",
            ]
        )
    lines = [
        "## Panadero, Wong, Rexachs, Luque",
        "Scalability of parallel applications: an approach to predict the computational behavior. See [phases](phases.md).",
        "Table 1, phase 1 of BT, from the rows of 16 to 100 ranks. The total of all ranks is the mode of the rows' totals; the",
        "paper does not say how it chose its own:",
        "",
        *table(["ranks", "instructions printed", "computed", "difference", "weight printed", "computed"], rows),
    ]
    ranks, instructions, cycles, _, nanoseconds = paper.SMALL.T
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
        "What the papers that this package implements print, and what it computes from the same numbers. Where a paper prints",
        "a result without its inputs, the result is quoted and nothing is computed. Written by `python docs/papers.py` from",
        "[the published numbers](../tests/helpers/published.py); a [page of its own](papers-expectations.md) has the tables of Shudler et al. 2015.",
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
