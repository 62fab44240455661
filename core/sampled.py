"""Values made of samples: how many each has, and what one is worth.

A counter that interrupts the program every so many events, or a clock every so many seconds, charges the function then
running with all of them: a value is n samples of worth w each. Samples are Poisson counts: its standard error is ``w
sqrt(n)``, one over the root of n of itself, and what no sample fell on is known to be less than a few w, not to be
zero. That a sample may hit an instruction late (skid), and so a neighbouring function, is not in it.

A run keeps this in its table ``sampling``: ``kernel``, ``rank``, ``metric``, ``samples`` and ``worth``. Of sums and
differences of sampled events, samples are effective ones: as many as would scatter as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.contract import beyond
from ranksight.core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.core.experiment import Experiment, Run


TABLE = "sampling"
"""Name of the table."""
HANDFUL = 5
"""Samples over all runs below which a kernel's values are chance, and no function is fitted to them."""


def sampling(counters: pd.DataFrame, worth: Mapping[str, Array | float]) -> pd.DataFrame:
    """The table of a run whose counters are made of samples.

    `counters`: ``kernel``, ``rank`` and the metrics, in which rows without a sample have zero. `worth` (mapping of
    metric to (n,) or float): what a sample is worth in each row, above zero, in the metric's unit. Raises InputError
    where it is worth so little that a value had more samples than 64 bits count.
    """
    import pandas as pd

    parts = []
    for name, each in worth.items():
        values = counters[name].to_numpy(dtype=np.float64)
        one = np.broadcast_to(np.asarray(each, dtype=np.float64), values.shape)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            samples = values / one
        if (at := beyond(samples, 0.0)) is not None:
            raise InputError(
                f"kernel {counters['kernel'].iloc[at]!r} has {values[at]:g} of {name} from samples worth {one[at]:g}",
                "no sampler takes so many samples: the file is damaged",
            )
        part = counters[["kernel", "rank"]].assign(metric=name, samples=samples, worth=one)
        parts.append(part[np.isfinite(values)])
    columns = ["kernel", "rank", "metric", "samples", "worth"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame({name: [] for name in columns})


def sampled_runs(experiment: Experiment, runs: Iterable[Run]) -> Iterator[tuple[Run, pd.DataFrame]]:
    """Those of `runs` whose values are made of samples, each with the table of these (:func:`sampling_of`)."""
    for run in runs:
        if (table := sampling_of(experiment, run)) is not None:
            yield run, table


def sampling_of(experiment: Experiment, run: Run) -> pd.DataFrame | None:
    """The table of a run; None where its values are not made of samples, or it does not say of how many.

    Tables without a metric are those of times. Raises InputError when a number in it is out of range.
    """
    columns = experiment.columns(run, TABLE)
    if not columns or ("metric" not in columns and "event" in columns):
        return None
    table = experiment.table(run, TABLE)
    if table is None or not {"kernel", "rank", "samples"} <= set(table.columns):
        return None
    if "metric" not in table.columns or "worth" not in table.columns:
        times = experiment.table(run, "counters")
        if times is None or "time" not in times.columns:
            return None
        table = table[["kernel", "rank", "samples"]].astype({"kernel": str})
        table = table.merge(times[["kernel", "rank", "time"]].astype({"kernel": str}), on=["kernel", "rank"])
        table = table[(table["samples"] > 0) & (table["time"] > 0)]
        table = table.assign(metric="time", worth=table["time"] / table["samples"]).drop(columns="time")
    samples, worth = (table[name].to_numpy(dtype=np.float64) for name in ("samples", "worth"))
    if not (np.isfinite(samples) & np.isfinite(worth) & (samples >= 0) & (worth > 0)).all():
        raise InputError(
            f"{experiment.path / 'runs' / run.id}: its table {TABLE} holds a number of samples that cannot be",
            "the file is damaged; measure this run again",
        )
    return table


def effective(value: Array, variance: Array, one: Array) -> Array:
    """What a sample of values is worth whose variance is known, so that as many of them scatter as much.

    `value`, `variance` (n,). `one` (n,): what the next sample would change: the worth of what no sample fell on.
    """
    known = (variance > 0) & (value**2 >= variance)
    return np.where(known, variance / np.where(known, value, 1.0), np.maximum(np.sqrt(variance), one))
