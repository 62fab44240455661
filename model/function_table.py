"""The functions of a model as a table, and the share of each in its metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, ratio
from ranksight.core.errors import RanksightError
from ranksight.core.experiment import WHOLE
from ranksight.core.html import table
from ranksight.core.units import counted
from ranksight.model.uncertainty.forecast import OK, REASONS

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.model.predicting import Learned

LOOSE = 0.25
"""Relative error of configurations left out from which a function is inexact, as a report judges it."""
INEXACT = f"misses configurations left out by more than {LOOSE:.0%}"
NOT_ASKED = {"factor": float("nan"), "bound": float("nan"), "parameter": "a parameter"}
"""What reasons name that arise only where a function is asked."""


def function_table(model: Learned, formula: Callable[[int], str], shares: Array) -> pd.DataFrame:
    """The functions of a model, one row each.

    One row a function: ``kernel``, ``metric``, ``formula`` (what is known of it, as people read it), ``share`` (from
    `shares`: :func:`shown_shares`), ``error`` (relative, of configurations left
    out), ``r2`` (adjusted; NaN for a constant), ``scatter`` (relative, of a repetition; NaN where nothing was
    repeated), ``points`` (configurations behind it), ``source`` (where the numbers come from), ``status`` (``ok``;
    ``inexact`` where it misses configurations left out by more than :data:`LOOSE`; ``insufficient``), ``reason``.
    """
    import pandas as pd

    fitted = model.fitted
    loose = (fitted.status == OK) & (fitted.press > LOOSE)
    reasons = [
        INEXACT if inexact else REASONS[code].format(points=count, parameters=len(fitted.parameters), **NOT_ASKED)
        for inexact, code, count in zip(loose.tolist(), fitted.status.tolist(), fitted.count.tolist(), strict=True)
    ]
    return pd.DataFrame(
        {
            "kernel": fitted.kernels,
            "metric": fitted.metrics,
            "formula": [formula(i) for i in range(len(fitted))],
            "share": shares,
            "error": fitted.press,
            "r2": fitted.adjusted_r2,
            "scatter": fitted.within,
            "points": fitted.count,
            "source": [model.provenance.get(name, "measured") for name in fitted.metrics],
            "status": np.where(loose, "inexact", np.where(fitted.status == OK, "ok", "insufficient")),
            "reason": reasons,
        }
    )


def shown_shares(model: Learned, run: Array) -> Array:
    """Share (s,) of each series in its metric.

    Of a time that of the program's time at its largest `run` (m,), as predictions and diagnoses have it there; NaN of
    one that is no part of it by itself, as of messages that are timed by their kernel. Of other metrics that measured.
    """
    timed = {
        row: kernel
        for row, (kernel, name) in enumerate(zip(model.fitted.kernels, model.fitted.metrics, strict=True))
        if name == "time" and kernel != WHOLE
    }
    if not timed or model.equation.nested:
        return model.shares
    try:
        broken = model.breakdown(run[None])
    except RanksightError:  # a network has no place for as many
        return model.shares
    total = np.nansum(broken.by_kernel) + np.nansum(broken.others.value)
    of_kernels = dict(zip(broken.kernels, ratio(broken.by_kernel[:, 0], total, 0.0).tolist(), strict=True))
    shares = model.shares.copy()
    shares[list(timed)] = [of_kernels.get(kernel, np.nan) for kernel in timed.values()]
    return shares


def html(model: Learned, formula: Callable[[int], str], shares: Array, most: int = 20) -> str:
    """The functions for notebooks: those of the time first, the largest shares first."""
    every = function_table(model, formula, shares)
    order = np.lexsort((-every["share"].fillna(0.0).to_numpy(), every["metric"] != "time"))
    rows = [
        [
            row["kernel"],
            row["metric"],
            row["formula"],
            "" if row["kernel"] == WHOLE or row["share"] != row["share"] else f"{row['share']:.1%}",
            f"{row['error']:.1%}",
            f"{row['status']}: {row['reason']}" if row["status"] == "insufficient" else row["status"],
        ]
        for row in every.iloc[order[:most]].to_dict("records")
    ]
    caption = f"{model.application}: {counted(len(every), 'function')} of {', '.join(model.parameters)}"
    note = f"{len(model.training)} configurations; .table() has all functions"
    return table(caption, ["kernel", "metric", "function", "share", "error", "status"], rows, note=note)
