"""Kernels that work at some numbers of ranks and not at others: the sign of a program that changes its algorithms.

A program that does the same at every number of ranks has the same functions in every run, whatever they take. One that
cuts its domain along a second side, takes another transform or another tree from some ranks on, has functions that come
and go, and may well have others where nobody has looked. One rank is left out, as nothing is exchanged there.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.columns import Columns
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment
from ranksight.core.leftout import MPI, OTHER
from ranksight.model import priors

COUNTED = {"instructions": "instructions", "bytes_sent": "bytes sent"}
"""Metrics that follow from the program alone, and what they are called."""


def turnover(experiment: Experiment) -> str:
    """What kernels that come and go with the ranks say of predictions on more ranks; empty where there are few.

    Their share is the largest over the numbers of ranks above one, at each combination of the other parameters.
    """
    if "ranks" not in experiment.parameters:
        return ""
    for name, words in COUNTED.items():
        most, which = 0.0, ""
        for kernels, ranks, shares in _by_ranks(experiment, name):
            changing = np.where((shares == 0).any(axis=1)[:, None], shares, 0.0)
            if (share := float(changing.sum(axis=0).max())) > most:
                kernel = int(changing.max(axis=1).argmax())
                on, off = (", ".join(f"{p:g}" for p in ranks[yes]) for yes in (shares[kernel] > 0, shares[kernel] == 0))
                most, which = share, f"{kernels[kernel]}: on {on}, not on {off}"
        if most >= priors.TURNOVER:
            return (
                f"kernels with {most:.1%} of the {words} work on some numbers of ranks and not on others (the most in "
                f"{which}): the program changes its algorithms with the ranks, and predictions beyond the ranks "
                "measured hold only if it does not change them again"
            )
    return ""


def _by_ranks(experiment: Experiment, name: str) -> list[tuple[list[str], Array, Array]]:
    """At each combination of the other parameters K kernels, n numbers of ranks above one, and shares (K, n)."""
    by_place: dict[tuple[float, ...], dict[float, dict[str, float]]] = {}
    for run in experiment.runs:
        ranks = float(run.configuration["ranks"])
        place = tuple(float(run.configuration[other]) for other in experiment.parameters if other != "ranks")
        at_place = by_place.setdefault(place, {})
        if ranks < 2 or ranks in at_place or run.state != "complete" or run.sampled(name) or run.inclusive(name):
            continue
        for _, table in experiment.counted([run] if name in experiment.columns(run, "counters") else ()):
            if by_name := _totals(table, name):
                at_place[ranks] = by_name
    several = []
    for each in by_place.values():
        if len(each) < 2:
            continue
        kernels = list(dict.fromkeys(kernel for by_name in each.values() for kernel in by_name))
        seen = sorted(each)
        totals = np.array([[each[p].get(kernel, 0.0) for p in seen] for kernel in kernels])
        several.append((kernels, np.array(seen), totals / totals.sum(axis=0)))
    return several


def _totals(table: Columns, name: str) -> dict[str, float]:
    """A metric of the program's kernels over all ranks, of those above zero; none where ranks are not distinguished."""
    if (table.rank == ALL_RANKS).any():
        return {}
    total = np.bincount(table.code, np.nan_to_num(table.values[name]), len(table.kernels))
    return {
        kernel: float(value)
        for kernel, value in zip(table.kernels, total, strict=True)
        if value > 0 and kernel not in (WHOLE, MPI, OTHER)
    }
