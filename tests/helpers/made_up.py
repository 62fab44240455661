"""An experiment whose truth is known: a halo program on a grid, with counts, sampled times and messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.comm.patterns.grid import Cartesian
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.platforms import Platform

GRID = Cartesian(3, (False, False, False))
CLOCK = 2.0e9


def stencil(n: float) -> float:
    """Instructions of the stencil: cells and rows."""
    return 20 * n**3 + 15 * n**2


def counts(kernel: str, n: float, neighbours: np.ndarray, ranks: int) -> np.ndarray:
    """Instructions of a kernel on every rank."""
    if kernel == "stencil":
        return np.full(ranks, stencil(n))
    if kernel == "pack":
        return neighbours @ np.array([7.0, 8.0, 9.0]) * n**2
    return np.full(ranks, 300.0 * ranks)


def write(
    path: Path,
    ranks: tuple[int, ...],
    sizes: tuple[int, ...],
    platform: Platform,
    bug: bool = False,
    unseen: tuple[str, ...] = (),
    samples: int = 1_000_000,
) -> Experiment:
    """Write the experiment, `samples` of each kernel and none of `unseen`; times follow the equation with CPI 0.5 and BF 0.3, and larger sizes load more from L2."""
    experiment = Experiment.create(path, "made-up", ["ranks", "size"])
    latency = [*(cache.latency for cache in platform.caches[:3]), platform.memory.latency * platform.frequency]
    for p in ranks:
        neighbours = GRID.neighbours(p)
        for n in sizes:
            frames, times = [], []
            for kernel in ("stencil", "pack", *(("search",) if bug else ())):
                i = counts(kernel, n, neighbours, p)
                if kernel == "pack" and p == 1:
                    continue
                served = {
                    "loads_l1": 0.2 * i,
                    "loads_l2": 0.02 * (n / 12) * i,
                    "loads_l3": 0.0 * i,
                    "loads_mem": 0.0 * i,
                }
                waiting = served["loads_l1"] * latency[0] + served["loads_l2"] * latency[1]
                who = {"kernel": kernel, "rank": np.arange(p)}
                frames.append(pd.DataFrame({**who, "instructions": i, "loads": sum(served.values()), **served}))
                times.append(pd.DataFrame({**who, "time": (0.5 * i + 0.3 * waiting) / platform.frequency}))
            run = {"ranks": p, "size": n}
            experiment.add(Run(run, collector="callgrind", provenance={"instructions": "simulated"}), pd.concat(frames))
            sampled = pd.concat(times)
            sampled = sampled[~sampled["kernel"].isin(unseen)]
            table = sampled[["kernel", "rank"]].assign(samples=samples)
            experiment.add(
                Run(run, collector="perf-clock", provenance={"time": f"sampled, n = {samples}"}),
                sampled,
                tables={"sampling": table},
            )
            _messages(experiment, p, n, sampled, neighbours)
    return experiment


def _messages(experiment: Experiment, p: int, n: int, sampled: pd.DataFrame, neighbours: np.ndarray) -> None:
    pairs = sorted(GRID.pairs(p))
    each = neighbours.sum(axis=1)
    sends = pd.DataFrame(
        {
            "kernel": "pack", "rank": np.arange(p), "operation": "Isend", "comm_size": p, "size_class": 1024,
            "count": 10 * each, "bytes": 10 * each * 8 * n**2, "seconds": 1e-6, "peers": each,
        }
    )  # fmt: skip
    sums = sends.assign(kernel="solve", operation="Allreduce", count=5, bytes=40, size_class=8, peers=0)
    peers = pd.DataFrame({"rank": [a for a, _ in pairs], "peer": [b for _, b in pairs]}).assign(
        operation="Isend", count=10, bytes=1
    )
    compute = sampled.groupby("rank")["time"].sum()
    whole = pd.DataFrame({"kernel": WHOLE, "rank": np.arange(p), "compute_cpu_time": compute.to_numpy()})
    experiment.add(
        Run({"ranks": p, "size": n}, collector="pmpi", provenance={"compute_cpu_time": "measured"}),
        whole,
        pd.concat([sends[sends["count"] > 0], sums]),
        tables={"peers": peers},
    )
