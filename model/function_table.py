"""The functions of a model as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.html import table
from ranksight.model.uncertainty.forecast import OK, REASONS

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.model.fitted_model import Model

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
    """The functions with the largest shares, for notebooks."""
    shown = function_table(model).sort_values("share", ascending=False, kind="stable")
    rows = [
        [row["kernel"], row["metric"], row["formula"], f"{row['share']:.1%}", f"{row['error']:.1%}", row["status"]]
        for row in shown.head(most).to_dict("records")
    ]
    caption = f"{model.application}: {len(shown)} functions of {', '.join(model.parameters)}"
    note = f"{len(model.training)} configurations; .table() has all {len(shown)} functions"
    return table(caption, ["kernel", "metric", "function", "share", "error", "status"], rows, note=note)
