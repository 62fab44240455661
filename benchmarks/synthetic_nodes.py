"""Times of made-up programs on made-up nodes (:mod:`benchmarks.nodes`), from runs inside one or two domains."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.natures import NATURES, drawn
from benchmarks.nodes import Program
from benchmarks.settings import Settings
from benchmarks.table import markdown
from ranksight.core.errors import InputError
from ranksight.model.fit import fit

TITLE = "Made-up programs on made-up nodes"
PROGRAMS = 24
OF_A_NATURE = 4
"""Programs of each nature."""
COUNTED = tuple((evidence, "platform") for evidence in ("whole, counters", "kernels, counters"))
"""What natures are asked with."""
GROSS = 0.5
"""Error from which on a value outside of its interval that is not called insufficient is gross."""
EVIDENCE = {
    "whole, counters": ("time", "instructions", "cycles", "bytes_mem_read", "bytes_mem_written", "bytes_l3"),
    "kernels, counters": ("time", "instructions", "bytes_mem_read", "bytes_mem_written", "bytes_l3"),
    "whole, no traffic": ("time", "instructions", "cycles"),
    "kernels, no traffic": ("time", "instructions"),
    "whole, time alone": ("time",),
}
RUNS = ("half a domain", "one domain, dense", "one domain, powers", "two domains", "sizes", "nodes")
"""Kinds of sets of runs; ``nodes`` has up to four of them, and is asked at eight and sixteen."""
KNOWN = ("platform", "cores of a domain", "nothing")
GROUPS = tuple((evidence, known) for evidence in EVIDENCE for known in KNOWN)


@dataclass(frozen=True)
class Score:
    """One answer against what would have been measured."""

    group: tuple[str, str]
    train: str
    asked: str
    error: float
    inside: bool
    sure: bool
    width: float
    seed: int


def trained(program: Program, seed: int) -> tuple[str, list[tuple[int, float]]]:
    """Ranks and sizes that are run: a kind of set, and its points."""
    rng = np.random.default_rng([7, seed])
    n, full = program.node.cores, program.node.cores * program.node.count
    kind = str(
        rng.choice(["half a domain", "one domain, dense", "one domain, powers", "two domains", "sizes", "nodes"])
    )
    if kind == "half a domain":
        ranks = list(range(1, max(n // 2, 4) + 1))
    elif kind == "one domain, dense":
        ranks = sorted({round(x) for x in np.linspace(1, n, min(n, 12))})
    elif kind == "two domains" and program.node.count > 1:
        ranks = sorted({*(round(x) for x in np.geomspace(1, 2 * n, 8)), n, 2 * n})
    elif kind == "nodes":
        ranks = sorted({1, 2, 4, 8, n, *(max(full // 2, 1), full, 2 * full, 4 * full)})
    else:
        kind = kind if kind == "sizes" else "one domain, powers"
        ranks = sorted({1, 2, 4, 8, *(x for x in (16, 32, 64) if x <= n), n})
    if program.placement == "scattered" and kind != "nodes":
        ranks = sorted({min(r * program.node.count, full) if r > 1 else r for r in ranks} | {2})
    sizes = (0.25, 0.5, 1.0) if kind == "sizes" else (1.0,)
    return kind, [(r, s) for s in sizes for r in ranks]


def asked(program: Program, points: list[tuple[int, float]]) -> dict[str, tuple[int, float]]:
    """What is asked for."""
    node = program.node
    full, most = node.cores * node.count, max(ranks for ranks, _ in points)
    found = {"full node": (full, 1.0), "two domains": (2 * node.cores, 1.0), "four nodes": (4 * full, 1.0)}
    if most == 4 * full:
        found = {"eight nodes": (8 * full, 1.0), "sixteen nodes": (16 * full, 1.0)}
    if len({size for _, size in points}) > 1:
        found |= {"full node, size 2": (full, 2.0), "most ranks, size 2": (most, 2.0)}
    seen = set(points)
    return {
        name: point
        for name, point in found.items()
        if point not in seen and (name != "two domains" or 2 * node.cores < full)
    }


def scores(
    seeds: Iterable[int], wanted: Container[tuple[str, str]] = GROUPS, nature: str = "as drawn"
) -> Iterator[Score]:
    """Fit and ask; the same programs and runs for every kind of evidence and knowledge."""
    for seed in seeds:
        program = drawn(seed, nature)
        kind, points = trained(program, seed)
        targets = asked(program, points)
        rng = np.random.default_rng([11, seed])
        measured = {
            name: program.at(*at).total * float(np.exp(rng.normal(0, program.noise))) for name, at in targets.items()
        }
        with tempfile.TemporaryDirectory() as folder:
            for evidence, metrics in EVIDENCE.items():
                groups = [(evidence, known) for known in KNOWN if (evidence, known) in wanted]
                if not groups or not targets:
                    continue
                path, whole = Path(folder) / evidence.replace(" ", "-"), evidence.startswith("whole")
                experiment = program.write(path, points, np.random.default_rng([13, seed]), whole, metrics)
                for group in groups:
                    yield from _answers(program, experiment, group, kind, targets, measured, seed)


def _answers(
    program: Program,
    experiment: Any,
    group: tuple[str, str],
    kind: str,
    targets: dict[str, tuple[int, float]],
    measured: dict[str, float],
    seed: int,
) -> Iterator[Score]:
    node, (_, knowledge) = program.node, group
    options: dict[str, Any] = {"placement": program.placement}
    if knowledge == "platform":
        options["platform"] = node.platform()
    elif knowledge == "cores of a domain":
        options |= {"platform": None, "cores_per_domain": node.cores, "ranks_per_node": node.cores * node.count}
    else:
        options["platform"] = None
    train = kind if program.placement == "compact" else f"{kind}, scattered"
    try:
        model = fit(experiment, **options)
    except InputError:  # no prediction
        for name in targets:
            yield Score(group, train, name, float("nan"), False, False, float("nan"), seed)
        return
    sized = "size" in experiment.parameters
    points = np.array([at if sized else at[:1] for at in targets.values()], dtype=np.float64).reshape(len(targets), -1)
    answers = [a for a in model.predict_at(points, metrics=["time"]).answers if a.kernel is None]
    for (name, _), answer in zip(targets.items(), answers, strict=True):
        true = measured[name]
        yield Score(
            group,
            train,
            name,
            answer.value / true - 1,
            bool(answer.lower <= true <= answer.upper),
            answer.ok,
            answer.upper / answer.value - 1,
            seed,
        )


def summary(found: list[Score], key: Callable[[Score], str]) -> str:
    """A table, a row a group."""
    groups: dict[str, list[Score]] = defaultdict(list)
    for score in found:
        groups[key(score)].append(score)
    rows: list[list[object]] = []
    for name, held in groups.items():
        sure = [s for s in held if s.sure]
        row: list[object] = [name, len(held), 100 * len(sure) / len(held)]
        if sure:
            errors = np.abs([s.error for s in sure])
            row += [
                100 * float(np.median(errors)),
                100 * float(np.quantile(errors, 0.9)),
                100 * float(np.median([s.width for s in sure])),
                100 * float(np.mean([s.inside for s in sure])),
                sum(abs(s.error) > GROSS and not s.inside for s in sure),
            ]
        rows.append([*row, *[float("nan")] * (8 - len(row))])
    header = ["", "asked", "predicted, %", "median error, %", "90 % of errors below, %", "interval, +%", "covered, %"]
    return markdown([*header, "gross"], rows)


def run(settings: Settings) -> str:
    """The tables."""
    count = PROGRAMS // 10 if settings.quick else PROGRAMS
    found = list(scores(range(count)))
    known = [s for s in found if s.group[1] == "platform"]
    few = 1 if settings.quick else OF_A_NATURE
    natures = [replace(s, group=(name, s.group[0])) for name in NATURES for s in scores(range(few), COUNTED, name)]
    return (
        f"{count} programs of one to four kernels (computing, streaming, mixed, sinking into caches), each on a node "
        "of its own with 1 to 8 domains of 8 to 64 cores, compact or scattered, with messages, blocks and 1 to 5 % "
        "noise; run on half a domain, one or two of them, some at three sizes, or on up to four nodes; asked at two "
        "domains, the full node, four to sixteen nodes and twice the size. What is predicted is not called "
        "`insufficient`; errors and intervals are of that; gross is 50 % and more off, outside of the interval.\n\n"
        "By what was counted and what is known of the node:\n\n"
        + summary(found, lambda s: ", ".join(s.group))
        + "\n\nBy what was run, all evidence, with the platform:\n\n"
        + summary(known, lambda s: s.train)
        + "\n\nBy what is asked, the same:\n\n"
        + summary(known, lambda s: s.asked)
        + f"\n\nBy what is peculiar to the first {few} of them, counters and the platform:\n\n"
        + summary(natures, lambda s: ": ".join(s.group))
    )
