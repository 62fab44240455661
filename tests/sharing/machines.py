"""A node whose truth is known: ranks of a program that share memory interfaces, by another law than the model's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.core.experiment import WHOLE, Experiment, Run

CORES, COUNT = 18, 4
"""Cores of a domain and domains of a node, as the platform icelake-8360y has them."""
CLOCK = 2.4e9
DOMAIN = 80e9
CORE = 16e9


def fullest(ranks: int, placement: str = "compact") -> int:
    """Ranks in the fullest domain."""
    return min(ranks, CORES) if placement == "compact" else -(-ranks // COUNT)


def smooth(core: float, memory: float, n: int) -> float:
    """Time of a rank: the larger of both needs, with a soft edge of the sixth power."""
    return (core**6 + (n * memory) ** 6) ** (1 / 6)


def write(
    path: Path,
    ranks: tuple[int, ...],
    *,
    instructions: float = 4e13,
    cpi: float = 0.5,
    traffic: float = 1e14,
    replicated: float = 0.0,
    serial: float = 0.0,
    claimed: float = 0.0,
    fits: float = 0.0,
    jitter: float = 0.003,
    placement: str = "compact",
    spinning: bool = True,
    split: bool = True,
    counters: tuple[str, ...] = ("instructions", "cycles", "bytes"),
) -> Experiment:
    """Write a strong scaling of a whole program, as LIKWID counts it.

    Parameters
    ----------
    instructions, traffic : float
        Of all ranks together; a third of the traffic is written.
    replicated : float
        Bytes that every rank reads besides.
    serial : float
        Instructions that every rank executes besides.
    claimed : float
        Share of the reads that a full domain saves, in proportion to its active cores.
    fits : float
        Share of the traffic per doubling of the ranks that caches take.
    """
    experiment = Experiment.create(path, "made-up", ["ranks"])
    rng = np.random.default_rng(7)
    for p in ranks:
        time, volume, work = truth(p, instructions, cpi, traffic, replicated, serial, claimed, fits, placement)
        time *= float(np.exp(rng.normal(0, jitter)))
        waits = np.linspace(0.0, 0.8, p) if spinning and p > 1 else np.zeros(p)
        table = pd.DataFrame({"kernel": WHOLE, "rank": np.arange(p), "time": time})
        if "instructions" in counters:
            table["instructions"] = work * (1 + waits)
        if "cycles" in counters:
            table["cycles"] = time * CLOCK
        first = (np.arange(p) == 0).astype(float)
        if "bytes" in counters and split:
            table["bytes_mem_read"] = first * volume[0] * p
            table["bytes_mem_written"] = first * volume[1] * p
        if "bytes" in counters:
            table["bytes_mem"] = first * sum(volume) * p
        experiment.add(Run({"ranks": p}, collector="likwid"), table)
    return experiment


def truth(
    p: int,
    instructions: float = 4e13,
    cpi: float = 0.5,
    traffic: float = 1e14,
    replicated: float = 0.0,
    serial: float = 0.0,
    claimed: float = 0.0,
    fits: float = 0.0,
    placement: str = "compact",
) -> tuple[float, tuple[float, float], float]:
    """Time, bytes read and written per rank, and instructions per rank."""
    n = fullest(p, placement)
    work = instructions / p + serial
    caught = (1 - fits) ** np.log2(p)
    reads = (traffic * 2 / 3 / p) * caught * (1 - claimed * (n - 1) / (CORES - 1)) + replicated
    writes = traffic / 3 / p * caught
    total = reads + writes
    return smooth(work * cpi / CLOCK + total / CORE, total / DOMAIN, n), (reads, writes), work
