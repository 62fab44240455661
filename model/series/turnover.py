"""Kernels that work at some numbers of ranks and not at others: the sign of a program that changes its algorithms.

A program that does the same at every number of ranks has the same functions in every run, whatever they take. One that
cuts its domain along a second side, takes another transform or another tree from some ranks on, has functions that come
and go, and may well have others where nobody has looked. One rank is left out, as nothing is exchanged there.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment
from ranksight.core.leftout import MPI, OTHER

LEAST = 1e-3
"""Share of a metric's total from which kernels that come and go are a sign."""
COUNTED = {"instructions": "instructions", "bytes_sent": "bytes sent"}
"""Metrics that follow from the program alone, and what they are called."""


def turnover(experiment: Experiment) -> str:
    """What kernels that come and go with the ranks say of predictions on more ranks; empty where there are few.

    Their share is the largest over the numbers of ranks above one, at each combination of the other parameters.
    """
    if "ranks" not in experiment.parameters:
        return ""
    for name, said in COUNTED.items():
        most, which = 0.0, ""
        for table in _by_ranks(experiment, name):
            shares, ranks = table.to_numpy(), table.columns.to_numpy()
            changing = np.where((shares == 0).any(axis=1)[:, None], shares, 0.0)
            if (share := float(changing.sum(axis=0).max())) > most:
                kernel = int(changing.max(axis=1).argmax())
                on, off = (", ".join(f"{p:g}" for p in ranks[yes]) for yes in (shares[kernel] > 0, shares[kernel] == 0))
                most, which = share, f"{table.index[kernel]}: on {on}, not on {off}"
        if most >= LEAST:
            return (
                f"kernels with {most:.1%} of the {said} work on some numbers of ranks and not on others (the most in "
                f"{which}): the program changes its algorithms with the ranks, and predictions beyond the ranks "
                "measured hold only if it does not change them again"
            )
    return ""


def _by_ranks(experiment: Experiment, name: str) -> list[pd.DataFrame]:
    """At each combination of the other parameters shares of kernels (rows) by number of ranks above one (columns)."""
    found: dict[tuple[float, ...], dict[float, pd.Series]] = {}
    for run in experiment.runs:
        ranks = float(run.configuration["ranks"])
        place = tuple(float(run.configuration[other]) for other in experiment.parameters if other != "ranks")
        here = found.setdefault(place, {})
        if ranks < 2 or ranks in here or run.state != "complete" or run.sampled(name) or run.inclusive(name):
            continue
        if name not in experiment.columns(run, "counters"):
            continue
        table = experiment.table(run, "counters", ["kernel", "rank", name])
        if table is None or (table["rank"] == ALL_RANKS).any():
            continue
        total = table.groupby("kernel", observed=True)[name].sum()
        total = total[(total > 0) & ~total.index.isin([WHOLE, MPI, OTHER])]
        if len(total):
            here[ranks] = total / float(total.sum())
    several = (dict(sorted(each.items())) for each in found.values() if len(each) > 1)
    return [pd.concat(each, axis=1).astype(np.float64).fillna(0.0) for each in several]
