"""Shares of kernels in the totals of metrics, and how far they may grow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.experiment import ALL_RANKS, COUNTER_KEYS, WHOLE, Experiment, Run
from ranksight.core.leftout import MPI, OTHER
from ranksight.core.metrics import metric
from ranksight.core.sampled import HANDFUL, sampled_runs

if TYPE_CHECKING:
    pass

FAR, FARTHER = 8.0, 64.0
"""How many times the largest value of a parameter, and of ranks, a kernel must stay small, as it grew so far."""
STEEPEST = 3.0
"""Largest exponent that a kernel is taken to grow on with."""
NO_PART = (WHOLE, MPI, OTHER)
"""Kernels that stay: they are no part of the program's kernels."""
SENT = ("messages", "bytes_sent", "mpi_time", "peers")
"""Metrics of messages, which are not folded."""
OTHER_COLUMNS = (*COUNTER_KEYS, *SENT)


@dataclass
class Shares:
    """Shares of kernels in the totals of metrics."""

    parameters: tuple[str, ...]
    kernels: list[str]
    values: dict[str, Array]  # mapping of metric to (K, n)
    sums: dict[str, Array]  # mapping of metric to (K, n)
    tables: dict[str, Array]  # mapping of metric to (K, n)
    """Sum over ranks, its share of all kernels', and the larger of it and that of the largest values of a rank; 0 where
    absent."""
    places: dict[str, Array]  # mapping of metric to (n, m): configurations at which the metric was measured
    samples: dict[str, Array]  # mapping of metric to (K,): samples over all runs, of metrics that were sampled
    whole: set[str]  # kernels whose source had reduced their values over ranks, where it had not those of others

    def trusted(self, name: str) -> Mask:
        """Kernels (K,) whose values of a metric are more than chance."""
        return np.broadcast_to(self.samples.get(name, np.inf) >= HANDFUL, len(self.kernels))

    @classmethod
    def of(cls, experiment: Experiment, metrics: Sequence[str] | None) -> Shares:
        """Read them, a run at a time."""
        rows: dict[str, int] = {}
        shares: dict[tuple[str, tuple[float, ...]], list[tuple[Index, Array, Array]]] = {}
        samples: dict[str, list[tuple[Index, Array]]] = {}
        reduced: set[str] = set()
        by_rank: set[str] = set()
        for run, table in experiment.counted(run for run in experiment.runs if run.state == "complete"):
            if not len(table):
                continue
            names, codes, rank = table.kernels, table.code, table.rank
            index = np.array([rows.setdefault(name, len(rows)) for name in names], dtype=np.intp)
            at = run.point(experiment.parameters)
            whole = rank == ALL_RANKS
            reduced |= {names[code] for code in np.unique(codes[whole])}
            by_rank |= {names[code] for code in np.unique(codes[~whole])} - set(NO_PART)
            summed = np.array([name not in NO_PART for name in names], dtype=bool)
            for name, column in table.values.items():
                if name in OTHER_COLUMNS or not metric(name).additive or (metrics is not None and name not in metrics):
                    continue
                values = np.nan_to_num(column, posinf=0.0, neginf=0.0)
                values = np.where(summed[codes], np.maximum(values, 0.0), 0.0)
                total: Array = np.bincount(codes, values, len(names)).astype(np.float64)
                largest: Array = np.zeros(len(names))
                np.maximum.at(largest, codes, values)
                if total.sum() > 0:
                    most: Array = largest / float(np.bincount(rank - rank.min(), values).max())
                    shares.setdefault((name, at), []).append((index, total, most))
            _count(samples, experiment, run, rows)
        return cls(
            experiment.parameters,
            list(rows),
            *_stacked(shares, len(rows)),
            {name: _summed(parts, len(rows)) for name, parts in samples.items()},
            reduced if by_rank - reduced else set(),
        )


def _count(
    samples: dict[str, list[tuple[Index, Array]]], experiment: Experiment, run: Run, rows: Mapping[str, int]
) -> None:
    """Add the samples of a run."""
    for _, table in sampled_runs(experiment, [run]):
        for name, part in table.groupby("metric", observed=True):
            each = part.groupby(part["kernel"].astype(str))["samples"].sum()
            each = each[[kernel in rows for kernel in each.index]]
            index = np.array([rows[kernel] for kernel in each.index], dtype=np.intp)
            samples.setdefault(str(name), []).append((index, each.to_numpy(dtype=np.float64)))


def _stacked(
    shares: Mapping[tuple[str, tuple[float, ...]], Iterable[tuple[Index, Array, Array]]], count: int
) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array], dict[str, Array]]:
    """Values, shares and configurations of each metric; runs of one configuration are added."""
    values: dict[str, list[Array]] = {}
    most: dict[str, list[Array]] = {}
    places: dict[str, list[tuple[float, ...]]] = {}
    for (name, at), parts in shares.items():
        largest = np.zeros(count)
        for index, _, each in parts:
            largest[index] = np.maximum(largest[index], each)
        values.setdefault(name, []).append(_summed([(index, each) for index, each, _ in parts], count))
        most.setdefault(name, []).append(largest)
        places.setdefault(name, []).append(at)
    total = {name: np.stack(each, axis=1) for name, each in values.items()}
    share = {name: each / each.sum(axis=0) for name, each in total.items()}
    return (
        total,
        share,
        {name: np.maximum(share[name], np.stack(each, axis=1)) for name, each in most.items()},
        {name: np.array(each, dtype=np.float64).reshape(len(each), -1) for name, each in places.items()},
    )


def _summed(parts: Iterable[tuple[Index, Array]], count: int) -> Array:
    """Values of `count` kernels, from some of them at a time."""
    total = np.zeros(count)
    for index, each in parts:
        np.add.at(total, index, each)
    return total


def far(parameters: tuple[str, ...], points: Array, values: Array, share: Array) -> Array:
    """The share (K,) that each kernel reaches beyond the runs, where it grows on as it did.

    It grows as a power of each parameter, the smaller of those of its value on a rank and of its share: what stays as
    it is where all else shrinks is no growth of its own.
    """
    largest: Array = share.max(axis=1)
    varied = np.flatnonzero((points > 0).all(axis=0) & (np.ptp(points, axis=0) > 0))
    enough = (share > 0).sum(axis=1) > len(varied) + 1
    if not len(varied) or not enough.any():
        return largest
    terms = np.column_stack([np.ones(len(points)), np.log(points[:, varied])])
    ranks = points[:, parameters.index("ranks")] if "ranks" in parameters else 1.0
    steep = np.minimum(_powers(terms, values[enough] / ranks), _powers(terms, share[enough]))
    length = np.log([FARTHER if parameters[at] == "ranks" else FAR for at in varied.tolist()])
    largest[enough] *= np.exp((np.clip(steep, 0.0, STEEPEST) * length).max(axis=1))
    return largest


def _powers(terms: Array, values: Array) -> Array:
    """Exponents (K, m) of values (K, n) by least squares of logarithms over `terms` (n, 1 + m), less two errors."""
    weight = (values > 0).astype(np.float64)
    logs = np.log(np.where(values > 0, values, 1.0))
    inverse = np.linalg.pinv(np.einsum("kn,ni,nj->kij", weight, terms, terms), hermitian=True)
    power = np.einsum("kij,nj,kn->ki", inverse, terms, weight * logs)
    variance = (weight * (logs - power @ terms.T) ** 2).sum(axis=1) / (weight.sum(axis=1) - terms.shape[1])
    error = np.sqrt(variance[:, None] * np.maximum(np.einsum("kii->ki", inverse), 0.0))
    return np.asarray((power - 2 * error)[:, 1:])
