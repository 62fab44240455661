"""Honesty on laws of programs and machines, most of them no sums of powers: truth known, asked at 2 to 16 times more.

Ranks up to 48 or sizes up to 128 train, three repetitions of 2 % noise each, every series by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.measures import covered, judge
from benchmarks.methods.engine import Engine
from benchmarks.settings import Settings
from benchmarks.synthetic_functions import FACTORS
from benchmarks.table import markdown
from benchmarks.tasks import Task

TITLE = "Laws of programs"
SEED = 23
COUNT = 60
NOISE = 0.02
REPETITIONS = 3
RANKS = ((4, 8, 16, 32), (2, 4, 8, 16, 32), (3, 6, 12, 24, 48), (3, 5, 8, 12, 20, 32), (1, 2, 3, 4, 5, 6, 7, 8))
SIZES = ((8, 16, 32, 64, 128), (20, 30, 40, 50, 60), (32, 48, 64, 96))
Array = NDArray[np.float64]
Truth = Callable[[float], float]
Generator = np.random.Generator
Drawn = tuple[str, Array, Truth]


def _even(generator: Generator, low: float, high: float) -> float:
    """A number whose logarithm is even."""
    return float(np.exp(generator.uniform(np.log(low), np.log(high))))


def _ranks(generator: Generator, least: int = 1) -> Array:
    axis = np.array(RANKS[int(generator.integers(len(RANKS)))], dtype=np.float64)
    return axis[axis >= least]


def _sizes(generator: Generator) -> Array:
    return np.array(SIZES[int(generator.integers(len(SIZES)))], dtype=np.float64)


def _sides(ranks: float) -> tuple[int, int]:
    """Sides of a process grid that are as equal as its ranks allow."""
    short = max(side for side in range(1, int(ranks**0.5) + 1) if ranks % side == 0)
    return int(ranks) // short, short


def _ceiling(p: float, cores: float, full: float, sharp: float) -> float:
    """Divided work on compact ranks of domains that `full` of their `cores` fill."""
    return float(((1 / p) ** sharp + (1 / (full * max(p / cores, 1))) ** sharp) ** (1 / sharp))


def domains(generator: Generator) -> Drawn:
    """A memory domain that fills up, run on up to all of its cores; the next ranks bring others."""
    cores, sharp = int(generator.choice([8, 12, 16, 24])), _even(generator, 2, 12)
    full = cores * generator.uniform(0.2, 0.9)
    axis = np.unique([1, 2, 4, 8, cores] if generator.integers(2) else np.arange(1, cores + 1)).astype(np.float64)
    return "ranks", axis, lambda p: _ceiling(p, cores, full, sharp)


def within(generator: Generator) -> Drawn:
    """One that fills up near the last ranks that are run, and has cores beyond."""
    full, sharp = _even(generator, 3, 12), _even(generator, 2, 20)
    return "ranks", np.array([1.0, 2, 3, 4, 5, 6, 7, 8]), lambda p: _ceiling(p, np.inf, full, sharp)


def farm(generator: Generator) -> Drawn:
    """Tasks that a master deals out to all other ranks."""
    tasks, cost = int(_even(generator, 50, 5000)), _even(generator, 1e-4, 5e-2)
    return "ranks", _ranks(generator, 2), lambda p: float(np.ceil(tasks / (p - 1)) / tasks + cost)


def tree(generator: Generator) -> Drawn:
    """Divided work, and messages along a tree of whole levels."""
    cost = _even(generator, 5e-4, 0.5)
    return "ranks", _ranks(generator), lambda p: float(1 / p + cost * np.ceil(np.log2(p)))


def surfaces(generator: Generator) -> Drawn:
    """Divided work, and halos of a process grid whose sides are what the number of ranks allows."""
    share, latency = _even(generator, 5e-3, 0.2), _even(generator, 1e-5, 1e-3)

    def law(p: float) -> float:
        x, y = _sides(p)
        return 1 / p + share * ((x > 1) / y + (y > 1) / x) + latency * (min(x - 1, 2) + min(y - 1, 2))

    return "ranks", _ranks(generator), law


def multigrid(generator: Generator) -> Drawn:
    """Levels that become smaller than the ranks: those left over have nothing to do and wait."""
    edge, latency = _even(generator, 64, 512), _even(generator, 10, 1e4)

    def law(p: float) -> float:
        cells = edge**3 / 8 ** np.arange(int(np.log2(edge)) - 1)
        local = cells / np.clip(cells / 64, 1, p)
        return float((local + (p > 1) * (6 * local ** (2 / 3) + latency)).sum())

    return "ranks", _ranks(generator), law


def patches(generator: Generator) -> Drawn:
    """Refined patches of unlike cost, cut into stretches: the fullest rank decides."""
    cost = np.exp(generator.normal(0, generator.uniform(0.1, 1), int(_even(generator, 2000, 20000))))
    share = np.cumsum(cost) / cost.sum()

    def law(p: float) -> float:
        ends = np.concatenate([[0.0], share[np.searchsorted(share, np.arange(1, int(p)) / p)], [1.0]])
        return float(np.diff(ends).max())

    return "ranks", _ranks(generator), law


def sums(generator: Generator) -> Drawn:
    """Work on volumes and faces of a domain, in steps that may shrink with its cells."""
    share, power = _even(generator, 0.02, 3), int(generator.choice([2, 3, 4]))
    return "size", _sizes(generator), lambda n: (n / 128) ** power + share * (n / 128) ** (power - 1)


def sorting(generator: Generator) -> Drawn:
    """n log n and what is done once."""
    share = _even(generator, 1e-2, 100)
    return "size", _sizes(generator), lambda n: float(n * np.log2(n) + share)


def blocks(generator: Generator) -> Drawn:
    """Counts of whole blocks of an edge, an area or a volume."""
    edge, power = int(generator.choice([3, 4, 5, 6, 8, 10])), int(generator.integers(1, 4))
    return (
        "size",
        np.array([12.0, 18.0, 24.0, 36.0])[: int(generator.integers(3, 5))],
        lambda n: np.ceil(n / edge) ** power,
    )


def dealt(generator: Generator) -> Drawn:
    """Counts of whole units dealt out to ranks, on the fullest."""
    units = int(_even(generator, 500, 5000))
    return "ranks", np.array([2.0, 4.0, 8.0, 16.0]), lambda p: float(np.ceil(units / p))


LAWS: dict[str, Callable[[Generator], Drawn]] = {
    "memory domains that fill up": domains,
    "one that fills up near the last ranks": within,
    "tasks dealt out by a master": farm,
    "trees of whole levels": tree,
    "surfaces of two-dimensional grids": surfaces,
    "levels of a multigrid": multigrid,
    "patches of unlike cost": patches,
    "volumes and faces": sums,
    "sorting": sorting,
    "counts of whole blocks": blocks,
    "counts of units dealt out": dealt,
}


def tasks_of(seed: int, count: int) -> list[Task]:
    """`count` series of every law."""
    tasks = []
    for at, (split, draw) in enumerate(LAWS.items()):
        for number in range(count):
            generator = np.random.default_rng([seed, at, number])
            parameter, axis, law = draw(generator)
            targets = axis[-1] * np.array(FACTORS)
            truth, held = (np.array([law(x) for x in points.tolist()]) for points in (axis, targets))
            counted = split.startswith("counts")
            values = truth[:, None] * np.exp(
                (not counted) * NOISE * generator.standard_normal((len(axis), REPETITIONS))
            )
            metric = "instructions" if counted else "time"
            name = f"{split} {number}"
            tasks.append(
                Task(split, name, "made up", (parameter,), axis[:, None], values, targets[:, None], held, metric)
            )
    return tasks


def run(settings: Settings) -> str:
    """One table: unwarned errors, abstentions and coverage of every law."""
    tasks = tasks_of(SEED, COUNT // 10 if settings.quick else COUNT)
    points = judge(tasks, Engine(alone=True).answer(tasks))
    far = np.tile(np.array(FACTORS), len(tasks))
    splits = np.array([task.split for task in tasks])
    rows: list[list[object]] = []
    for split in LAWS:
        row: list[object] = [split]
        here = splits[points.task] == split
        for factor in FACTORS:
            at = here & (far == factor)
            row.append(f"{points.gross[at].mean():.1%} / {points.flagged[at].mean():.0%}")
        mine = points.of(splits == split)
        answered = mine.error[~mine.flagged]
        rows.append([*row, 100 * covered(mine), float(np.median(answered)) if len(answered) else float("nan")])
    text = (
        f"{len(tasks) // len(LAWS)} series of each law, truth known, most of them no sum of powers that the search "
        "offers. At each multiple of the largest value that was run: errors above 50 % that are neither abstained from "
        "nor inside the 90 % interval / abstained. *Covered* and *median error* are of what is answered, in %.\n\n"
    )
    return text + markdown(["law", *(f"{factor:g}x" for factor in FACTORS), "covered", "median error"], rows)
