"""Some kernels of a model's file, so that a model of very many kernels answers for few without reading the others.

That is possible where what is predicted of a kernel follows from its own rows: a model of one metric whose functions
have no common structure, and whose equations are the function of time and the cost per work. Of all other models every
kernel is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ranksight.core.arrays import Index
from ranksight.core.experiment import WHOLE
from ranksight.model.fitting.columns import columns_of

TOGETHER = ("structures", "staircase", "energy", "platform", "anchors", "observed")
"""Entries of a model that say something of kernels together, where they are not empty."""
EQUATIONS = frozenset({"laws", "weights", "inside", "imbalance", "nested", "clock_spread", "runs"})
"""Parts of an application that hold rows of kernels, or one number for all."""


def selected(content: Mapping[str, Any], kernels: Collection[str]) -> Mapping[str, Any]:
    """The content of a model's file with the rows of some kernels, and of the few that answers are relative to; all of
    it where a kernel is unknown, or depends on others.

    `content` (mapping): from :func:`ranksight.model.modelfile.read`.
    """
    fitted, equation = content["fitted"], content["equation"]
    laws = equation["laws"]
    counted = laws.get("counted")
    if (
        fitted["unaffected"].any()
        or len(set(fitted["metrics"])) != 1
        or not set(kernels) <= set(fitted["kernels"]) - {WHOLE}
        or any(content.get(name) for name in TOGETHER)
        or content["remarks"]["turnover"]
        or not (equation.keys() <= EQUATIONS and laws.keys() <= {"counted"})
        or (counted is not None and not _apart(counted))
    ):
        return content
    rows = _rows(content, frozenset(kernels))
    some = {**content, "fitted": columns_of(fitted, rows), "shares": content["shares"][rows]}
    kernels_left, parts = frozenset(some["fitted"]["kernels"]), dict(equation)
    if counted is not None:
        parts["laws"] = {"counted": _of_counted(counted, _held(counted, kernels_left))}
    if "runs" in parts:
        runs, runs_left = parts["runs"], _held(parts["runs"], kernels_left)
        parts["runs"] = {
            **runs,
            **{name: _taken(runs[name], runs_left) for name in ("kernels", "logs", "errors", "scatter")},
        }
    return {**some, "equation": parts}


def _held(part: Mapping[str, Any], kernels: frozenset[str]) -> Index:
    """Rows of a part of an application that are of `kernels`."""
    return np.array([at for at, kernel in enumerate(part["kernels"]) if kernel in kernels], dtype=np.intp)


def _rows(content: Mapping[str, Any], kernels: frozenset[str]) -> Index:
    """Rows of `kernels`, of the one with the largest share, and of those whose runs reached farthest."""
    fitted = content["fitted"]
    asked = [at for at, kernel in enumerate(fitted["kernels"]) if kernel in kernels]
    ends = [fitted["trained"][..., 0].argmin(axis=0), fitted["trained"][..., 1].argmax(axis=0)]
    return np.unique(np.concatenate([asked, [np.argmax(content["shares"])], *ends]).astype(np.intp))


def _apart(counted: Mapping[str, Any]) -> bool:
    """Whether rates of kernels depend on each other by a prevalence alone that the file holds."""
    single = counted.keys().isdisjoint(("execution", "stall")) and not counted["compositions"]
    return single and all("common" in rate for rate in counted["total"]["rates"])


def _of_counted(counted: Mapping[str, Any], rows: Index) -> dict[str, Any]:
    total = counted["total"]
    rates = [{**rate, **{name: _taken(rate[name], rows) for name in ("values", "error")}} for rate in total["rates"]]
    return {
        **counted,
        **{name: _taken(counted[name], rows) for name in ("kernels", "split", "offset")},
        "total": {**total, "prior": [_taken(prior, rows) for prior in total["prior"]], "rates": rates},
    }


def _taken(column: Any, rows: Index) -> Any:
    """Some rows of an array, or of a list."""
    return column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows.tolist()]
