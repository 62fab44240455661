"""Times of messages where no network is described: fitted forms of one call.

    t = a log2 P + b s + c

of each kind of operations (:func:`ranksight.model.application.comm_blocking.kind_of`), with P ranks and s bytes a call
(Ding et al. 2018; Calotoiu et al. 2013). It is fitted to the mean over ranks of what the calls took, with completions
counted to the messages that they end, so that BF_comm is what the form leaves over. The form is linear
in calls and bytes: what holds for sums over kernels holds for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksight.comm.costs.fitted import FittedCost, fit_identifiable
from ranksight.core.arrays import Array, ratio
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.records import dataclass
from ranksight.model.application.comm_blocking import kind_of
from ranksight.model.messages.table import MessageTable
from ranksight.model.plaindata import Some, reading


@dataclass(frozen=True)
class Forms(Some):
    """The fitted form of each kind."""

    costs: Mapping[str, FittedCost]

    def times_of_volumes(self, asked: Sequence[tuple[MessageTable, str]]) -> list[dict[tuple[str, str], float]]:
        """Seconds of every kernel's operation, the mean over ranks, as
        :func:`ranksight.model.messages.times.times_of_volumes` has them of the slowest; 0 where it has no form."""
        return [self._times(table, volume) for table, volume in asked]

    def _times(self, table: MessageTable, volume: str) -> dict[tuple[str, str], float]:
        seconds: dict[tuple[str, str], float] = {}
        for row in table.rows:
            form = self.costs.get(kind_of(row.operation))
            if form is not None:
                each = row.count * form(table.ranks, ratio(getattr(row, volume), row.count, 0.0))
                seconds[row.key] = seconds.get(row.key, 0.0) + float(each.mean())
        return seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {kind: {"names": list(one.names), "coefficients": list(one.coefficients), "residual": one.residual,
                       "points": one.points} for kind, one in self.costs.items()}  # fmt: skip

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Forms:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        costs = {}
        with reading("'forms'"):
            for kind, one in content.items():
                names, numbers = tuple(map(str, one["names"])), tuple(map(float, one["coefficients"]))
                unknown = tuple(np.nan for _ in names)
                costs[str(kind)] = FittedCost(names, numbers, unknown, float(one["residual"]), int(one["points"]))
        for each in costs.values():
            terms = set(each.names) <= {"log2 P", "s", "1"} and len(each.names) == len(each.coefficients) > 0
            if not terms or not all(0 <= number < np.inf for number in each.coefficients):
                raise InputError("'forms' does not fit together", "fit the model again")
        return cls(costs)


NO_FORMS = Forms({})


def fit_forms(calls: Mapping[str, tuple[Array, Array, Array]]) -> Forms:
    """Fit the form of each kind that can be.

    `calls` (mapping of kind to ((n,), (n,), (n,))): ranks, bytes a call and seconds a call of each run, means over
    ranks.
    """
    costs = {}
    for kind, (ranks, size, seconds) in calls.items():
        try:
            costs[kind] = fit_identifiable(ranks, size, seconds)
        except InsufficientError:
            continue
    return Forms(costs)
