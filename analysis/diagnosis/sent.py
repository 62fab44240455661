"""The diagnosis of a model of messages alone: which operations send most at a configuration, and which grow.

Traces without times show no bound, yet what a rank sends limits scaling as what it computes does. Messages and bytes of
a rank that grow at most like a tree's steps, whole ones or 1 + log2(ranks), from the most ranks measured on, scale;
those that grow faster are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ranksight.analysis.diagnosis.scaling import steps
from ranksight.core.arrays import Array, ratio
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.model.structure.stated import BETWEEN, BYTES, MESSAGES
from ranksight.model.uncertainty.forecast import OK

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.model.fitted_model import Model

COLUMNS = (
    "kernel",
    "operation",
    "metric",
    "value",
    "lower",
    "upper",
    "share",
    "growth",
    "verdict",
    "formula",
    "reason",
)
"""Besides the parameters: what a rank sends and its interval, its share of what all operations send, how many times as
much it is as with the most ranks measured, a verdict of :data:`VERDICTS`, its function, and why data are
insufficient."""
VERDICTS = ("scales", "grows", "undecided")
SLACK = 1.05
"""Growth beyond that of a tree that is none."""


def sent_only(model: Model) -> bool:
    """Whether a model has no kernel's time and knows messages: of operations, or as counts of kernels over ranks."""
    if "time" in model.fitted.metrics:
        return False
    counted = "ranks" in model.parameters and not {BYTES, MESSAGES}.isdisjoint(model.fitted.metrics)
    return counted or bool(model.equation.communication)


def _tree(ranks: Array, before: Array) -> Array:
    """Growth (k,) of what goes by the steps of a tree from `before` to `ranks` (k,), whole ones or one more than the
    logarithm: a tree of all ranks has none on one rank, and other messages there are."""
    whole, whole_before = (np.ceil(np.log2(np.maximum(each, 1.0))) for each in (ranks, before))
    return np.fmax(ratio(whole, whole_before, 1.0), steps(ranks) / steps(before))


def sent_table(model: Model, points: Array, level: float = 0.9) -> pd.DataFrame:
    """Messages and bytes of every operation at `points` (k, m), the largest share first: the parameters and
    :data:`COLUMNS`. Of counts of kernels, whose operations are not known, those are empty.

    Raises InputError when the model knows no messages.
    """
    import pandas as pd

    if not sent_only(model):
        raise InputError("the model knows no messages", "trace the program: ranksight measure --collector pmpi")
    sent = model.equation.communication
    functions = sent.functions if sent else model.functions
    at = model.parameters.index("ranks")
    most = float(model.training[:, at].max())
    base = points.copy()
    base[:, at] = np.minimum(base[:, at], most)
    asked, before = functions.predict(points).at(level), functions.predict(base).at(level)
    allowed = SLACK * _tree(points[:, at], base[:, at])
    growth, least, largest = (
        ratio(end, start, 1.0)
        for end, start in ((asked.value, before.value), (asked.lower, before.upper), (asked.upper, before.lower))
    )
    rows = []
    for metric in (BYTES, MESSAGES):
        names = list(sent.names) if sent else [kernel for kernel, name in functions.rows if name == metric]
        if len(names) > 1:
            names = [name for name in names if name != WHOLE]  # its messages are those of the kernels
        index = [functions.rows[name, metric] for name in names]
        total = np.nansum(asked.value[index], axis=0)
        for name, row in zip(names, index, strict=True):
            kernel, _, operation = name.rpartition(BETWEEN) if sent else (name, "", "")
            for k, point in enumerate(points.tolist()):
                decided = asked.status[row, k] == OK
                verdict = "undecided"
                if decided and largest[row, k] <= allowed[k]:
                    verdict = "scales"
                elif least[row, k] > allowed[k]:
                    verdict = "grows"
                share = float(ratio(asked.value[row, k], total[k], 0.0))
                values = (float(end[row, k]) for end in (asked.value, asked.lower, asked.upper))
                described = functions.formula(row), str(asked.reason[row, k])
                rows.append(
                    (*point, kernel, operation, metric, *values, share, float(growth[row, k]), verdict, *described)
                )
    table = pd.DataFrame(rows, columns=[*model.parameters, *COLUMNS])
    order = table.sort_values("share", ascending=False, kind="stable")
    return order.sort_values(["metric", *model.parameters], kind="stable", ignore_index=True)
