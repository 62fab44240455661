"""Programs with other laws than those of :mod:`benchmarks.known_laws`: forms that no part of the model was made for.

Work grows with the surface, a logarithm, a tree, an odd power or a share that every rank repeats; CPI and the blocking
factor saturate, step or follow the ranks; clocks fall in steps; ranks that wait spin in several ways; programs start in
shares, as a square root or as a tree; messages go around a ring, to all others, along faces, down a tree or as long
reductions, with a blocking factor that follows the ranks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.known_laws import MACHINE, METRICS, TOTAL, answers, as_table, row
from benchmarks.settings import Settings
from ranksight.core.arrays import Array
from ranksight.platforms.files import load
from ranksight.platforms.platform import Platform

TITLE = "Programs with further laws"
SEED, PROGRAMS, REPETITIONS, NOISE = 20260102, 6, 3, 0.01
RANKS, ASKED, SIZE = (1, 2, 4, 8, 12, 24, 48), (96, 192, 384, 768), 96
TYPICAL = 1e5
"""Cells per rank at which rates have their typical value."""
LATENCY, GAP = 2e-6, 1e-10
"""Seconds of a message, and of each of its bytes."""
TURBO = 1.08
"""The clock of a full node over the nominal one."""

Law = Callable[[float, float, float], float]
"""A factor or a time from the cells per rank x, the ranks p and a number that was drawn."""

WORK: Mapping[str, Law] = {
    "plain": lambda x, p, a: x,
    "surface": lambda x, p, a: x + 30 * a * x ** (2 / 3),
    "constant": lambda x, p, a: x + 3000 * a,
    "sorting": lambda x, p, a: x * np.log2(max(x, 2.0)) / 16,
    "tree": lambda x, p, a: x * (1 + 0.15 * a * np.log2(p)),
    "odd power": lambda x, p, a: x * (x / TYPICAL) ** 0.15,
    "repeated": lambda x, p, a: x + 0.001 * a * x * p,
}
CPI: Mapping[str, Law] = {
    "saturates": lambda x, p, a: 1 + 0.3 * a / (1 + x / TYPICAL),
    "logarithm": lambda x, p, a: 1 + 0.03 * a * np.log(x / TYPICAL),
    "step": lambda x, p, a: 1 + 0.3 * a / (1 + (x / TYPICAL) ** 3),
    "ranks": lambda x, p, a: 1 + 0.03 * a * np.log2(p),
}
BLOCKING: Mapping[str, Law] = {
    "decay": lambda x, p, a: 1 + 0.5 * a * np.exp(-x / TYPICAL),
    "logarithm": lambda x, p, a: 1 + 0.05 * a * np.log(x / TYPICAL),
    "saturates": lambda x, p, a: 1 + 0.5 * a / (1 + x / TYPICAL),
    "ranks": lambda x, p, a: p ** (0.15 * a),
}
WAITING: Mapping[str, Law] = {
    "saturates": lambda x, p, a: 1 + 0.8 * a * (1 - 1 / p),
    "power": lambda x, p, a: 1 + 0.2 * a * (p**0.35 - 1),
    "steps": lambda x, p, a: 1 + 0.2 * a * np.floor(np.log2(p)),
}
START: Mapping[str, Law] = {
    "tree": lambda x, p, a: 0.1 + 0.03 * a * np.log2(p),
    "square root": lambda x, p, a: 0.1 + 0.006 * a * np.sqrt(p),
    "constant": lambda x, p, a: 0.1,
    "shares": lambda x, p, a: 0.1 + 0.3 * a / p,
    "each rank": lambda x, p, a: 0.1 + 3e-4 * a * p,
}
MESSAGES: Mapping[str, Law] = {
    "ring": lambda x, p, a: (p - 1) * (LATENCY + GAP * 8000 / p),
    "to all": lambda x, p, a: (p - 1) * LATENCY / 10 + GAP * 4 * x,
    "faces": lambda x, p, a: 4 * (LATENCY + GAP * 8 * SIZE**2 / np.sqrt(p)),
    "down a tree": lambda x, p, a: np.ceil(np.log2(p)) * (LATENCY + GAP * 160_000),
    "long reduction": lambda x, p, a: 2 * np.ceil(np.log2(p)) * LATENCY + 2 * GAP * 8e5 * (1 - 1 / p),
}
CLOCKS: Mapping[str, Callable[[float], float]] = {
    "steps": lambda share: np.floor(5 * share) / 4,
    "square root": np.sqrt,
    "wide vectors": lambda share: 1.0 if share > 0.05 else 0.0,
}
"""How far the clock has come from that of one core to that of a full node, over the share of cores at work."""
PARTS = ("work", "CPI", "blocking factor", "clock", "time outside kernels", "waiting as instructions", "communication",
         "levels")  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """A law and its number."""

    law: Law
    number: float

    @classmethod
    def of(cls, laws: Mapping[str, Law], rng: np.random.Generator, number: float) -> Drawn:
        """One of the laws."""
        return cls(laws[str(rng.choice(list(laws)))], number)

    def __call__(self, x: float, p: float) -> float:
        return float(self.law(x, p, self.number))


def _one(x: float, p: float) -> float:
    return 1.0


def _none(x: float, p: float) -> float:
    return 0.0


Curve = Callable[[float, float], float]


@dataclass(frozen=True)
class Kernel:
    """Laws of a kernel.

    Attributes
    ----------
    instructions : float
        For each cell, or each unit of work in its place.
    work, cpi, blocking : callable
        Cells, and factors of the two rates.
    rates : (2,)
        CPI_exec and BF_mem at :data:`TYPICAL` cells.
    loads : (4,)
        For each instruction, served by each level.
    flops : float
        For each instruction.
    streams : tuple of (share, bytes, power)
        Loads for each instruction of a stream, its bytes for each cell, and how steeply a level takes over.
    """

    instructions: float
    work: Curve
    cpi: Curve
    blocking: Curve
    rates: tuple[float, float]
    loads: Array
    flops: float
    streams: tuple[tuple[float, float, float], ...]

    def at(self, ranks: float, clock: float, platform: Platform) -> Array:
        """Instructions, cycles, stalls, loads of four levels, operations and seconds of a rank."""
        x = SIZE**3 / ranks
        work = self.instructions * self.work(x, ranks)
        loads = work * self.loads
        capacity = np.array([cache.size / cache.shared_by for cache in platform.caches])
        for share, size, power in self.streams:
            past = 1 / (1 + (capacity / (size * x)) ** power)
            loads = loads + work * share * -np.diff([1.0, *past, 0.0])
        latency = np.array(list(platform.latencies().values()))
        latency[-1] *= clock / platform.frequency
        execution = work * self.rates[0] * self.cpi(x, ranks)
        stalls = self.rates[1] * self.blocking(x, ranks) * float(loads @ latency)
        cycles = execution + stalls
        return np.array([work, cycles, stalls, *loads, work * self.flops, cycles / clock])


@dataclass(frozen=True)
class Program:
    """Laws of a program: its kernels, the clock over the share of cores at work, and the factor of instructions of its
    largest kernel, and seconds outside of kernels and in messages over cells per rank and ranks."""

    kernels: tuple[Kernel, ...]
    clock: Callable[[float], float]
    waiting: Curve
    start: Curve
    messages: Curve

    def times(self, ranks: float, platform: Platform) -> tuple[Array, float, float]:
        """Metrics of the kernels (K, 9), seconds of messages and outside of everything."""
        share = min(ranks, platform.cores) / platform.cores
        full = TURBO * platform.frequency
        alone = platform.clock.single or full
        clock = alone - (alone - full) * self.clock(share)
        x = SIZE**3 / ranks
        each = np.array([kernel.at(ranks, clock, platform) for kernel in self.kernels])
        return each, self.messages(x, ranks) if ranks > 1 else 0.0, self.start(x, ranks)


def draw(rng: np.random.Generator, varied: frozenset[str]) -> Program:
    """A program in which these of :data:`PARTS` vary."""

    def some(part: str, laws: Mapping[str, Law], number: float, otherwise: Curve) -> Curve:
        return Drawn.of(laws, rng, number) if part in varied else otherwise

    kernels = []
    for _ in range(rng.integers(3, 8)):
        streams = tuple(
            (rng.uniform(0.01, 0.05), float(np.exp(rng.uniform(0, np.log(60)))), float(rng.choice([1.5, 2, 4, 6])))
            for _ in range(rng.integers(1, 3) if "levels" in varied else 0)
        )
        levels = (rng.uniform(0.2, 0.45), rng.uniform(0.005, 0.04), rng.uniform(0.001, 0.006))
        kernels.append(
            Kernel(
                10 ** rng.uniform(1.5, 3),
                some("work", WORK, rng.uniform(0, 1), Drawn(WORK["plain"], 0.0)),
                some("CPI", CPI, rng.uniform(-1, 1), _one),
                some("blocking factor", BLOCKING, rng.uniform(-1, 1), _one),
                (rng.uniform(0.3, 1.1), rng.uniform(0.05, 0.5)),
                np.array([*levels, 10 ** rng.uniform(-4, -2.6)]),
                rng.uniform(0.1, 0.6),
                streams,
            )
        )
    steps, power = rng.uniform(50, 200) * np.exp(rng.uniform(np.log(0.3), np.log(3))), rng.choice([-0.15, 0, 0.15])
    messages = some("communication", MESSAGES, 0.0, _none)
    return Program(
        tuple(kernels),
        CLOCKS[str(rng.choice(list(CLOCKS)))] if "clock" in varied else lambda share: 1.0,
        some("waiting as instructions", WAITING, rng.uniform(0.2, 1), _one),
        some("time outside kernels", START, rng.uniform(0.2, 1), _none),
        lambda x, p: steps * (p / 16) ** power * messages(x, p),
    )


def write(folder: Path, program: Program, platform: Platform, rng: np.random.Generator) -> None:
    """The files that the generator of shared data writes: ``counters.csv``, as measured, and ``truth.csv``."""
    measured, true = [], []
    for ranks in (*RANKS, *ASKED):
        kernels, messages, start = program.times(ranks, platform)
        names = [f"kernel_{at}" for at in range(len(kernels))]
        parts = {**dict(zip(names, kernels[:, -1].tolist(), strict=True)), **({"mpi": messages} if messages else {})}
        parts[TOTAL] = sum(parts.values()) + start
        true += [(ranks, SIZE, name, value, int(ranks in RANKS)) for name, value in parts.items()]
        for rep in range(REPETITIONS if ranks in RANKS else 0):
            each = kernels.copy()
            clock = each[:, 1] / each[:, -1]
            scatter = np.exp(NOISE * rng.normal(size=(2, len(each))) * [[0.5], [1.0]])
            each[:, 1] = (kernels[:, 1] - kernels[:, 2]) * scatter[0] + kernels[:, 2] * scatter[1]
            each[:, 2] *= scatter[1]
            each[:, -1] = each[:, 1] / clock
            each[int(kernels[:, 1].argmax()), 0] *= program.waiting(SIZE**3 / ranks, ranks)
            sent, began = np.array([messages, start]) * np.exp(NOISE * rng.normal(size=2))
            whole = each[:, -1].sum() + sent + began
            measured += [(ranks, SIZE, rep, name, *values) for name, values in zip(names, each.tolist(), strict=True)]
            if messages or (ranks == 1 and program.times(2, platform)[1]):
                measured.append((ranks, SIZE, rep, "mpi", *[np.nan] * 8, sent))
            measured.append((ranks, SIZE, rep, TOTAL, *[np.nan] * 8, whole))
    columns = ["ranks", "size", "rep", "kernel", *METRICS]
    pd.DataFrame(measured, columns=columns).to_csv(folder / "counters.csv", index=False)
    pd.DataFrame(true, columns=["ranks", "size", "kernel", "time", "trained"]).to_csv(folder / "truth.csv", index=False)


def run(settings: Settings) -> str:
    """The section of RESULTS.md."""
    platform, rows = load(MACHINE), []
    count = 2 if settings.quick else PROGRAMS
    varied = {part: frozenset({part}) for part in PARTS}
    varied["all but levels"] = frozenset(PARTS) - {"levels"}
    with tempfile.TemporaryDirectory() as temporary:
        for at, (name, parts) in enumerate(varied.items()):
            found = []
            for number in range(count):
                rng = np.random.default_rng([SEED, at, number])
                folder = Path(temporary) / f"{at}-{number}"
                folder.mkdir()
                write(folder, draw(rng, parts), platform, rng)
                found += answers(folder, MACHINE)
            rows.append(row(name, found))
    text = (
        "As in the table before, with laws that the model has no form for: work that grows with a logarithm, an odd "
        "power or a share that each rank repeats, rates that saturate, step or follow the ranks, clocks in steps, "
        "starts in shares or as a square root, rings, exchanges with all others and long reductions, whose blocking "
        f"factor follows the ranks. {count} random programs a row, seed {SEED}.\n\n"
    )
    return text + as_table(rows)
