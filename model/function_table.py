"""The functions of a model as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.html import table
from ranksight.model.uncertainty.forecast import OK, REASONS

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.model.fitted_model import Model

LOOSE = 0.25
"""Relative error of configurations left out from which a function is inexact, as a report judges it."""
NOT_ASKED = {"factor": float("nan"), "bound": float("nan"), "parameter": "a parameter", "repetitions": ""}
"""What reasons name that arise only where a function is asked."""


def function_table(model: Model) -> pd.DataFrame:
    """The functions of a model, one row each.

    One row a function: ``kernel``, ``metric``, ``formula`` (what is known of it, as people read it), ``share`` (of the
    kernel in the measured total of the metric), ``error`` (relative, of configurations left out), ``r2`` (adjusted; NaN
    for a constant), ``scatter`` (relative, of a repetition; NaN where nothing was repeated), ``points`` (configurations
    behind it), ``source`` (where the numbers come from), ``status`` (``ok`` or ``insufficient``), ``reason``.
    """
    import pandas as pd

    fitted = model.fitted
    return pd.DataFrame(
        {
            "kernel": fitted.kernels,
            "metric": fitted.metrics,
            "formula": [model.functions.formula(i) for i in range(len(fitted))],
            "share": model.shares,
            "error": fitted.press,
            "r2": fitted.adjusted_r2,
            "scatter": fitted.within,
            "points": fitted.count,
            "source": [model.provenance.get(name, "measured") for name in fitted.metrics],
            "status": np.where(fitted.status == OK, "ok", "insufficient"),
            "reason": [
                REASONS[code].format(points=count, parameters=len(fitted.parameters), **NOT_ASKED)
                for code, count in zip(fitted.status.tolist(), fitted.count.tolist(), strict=True)
            ],
        }
    )


def html(model: Model, most: int = 20) -> str:
    """The functions for notebooks: those of the time first, the largest shares first."""
    every = function_table(model)
    order = np.lexsort((-every["share"].to_numpy(), every["metric"] != "time"))
    rows = [
        [row["kernel"], row["metric"], row["formula"], f"{row['share']:.1%}", f"{row['error']:.1%}", _quality(row)]
        for row in every.iloc[order[:most]].to_dict("records")
    ]
    caption = f"{model.application}: {len(every)} functions of {', '.join(model.parameters)}"
    note = f"{len(model.training)} configurations; .table() has all {len(every)} functions"
    return table(caption, ["kernel", "metric", "function", "share", "error", "status"], rows, note=note)


def _quality(row: Mapping[Any, Any]) -> str:
    """The status of a function, and where it misses a configuration left out by too much, that."""
    if row["status"] != "ok":
        return f"{row['status']}: {row['reason']}"
    return "ok" if not row["error"] > LOOSE else "inexact"
