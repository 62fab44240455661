"""No count of messages where rules disagree that explain who was sent to as well as each other."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.model.messages.message_model import Messages
from ranksight.model.structure.functions import Functions
from ranksight.model.uncertainty.forecast import FEW_POINTS, OK, Forecast

SENT = ("messages", "bytes_sent")
STEADY = 1e-3
"""Relative difference up to which a series is the same at all numbers of ranks."""


def with_doubts(
    predicted: Forecast, points: Array, functions: Functions, messages: Messages, training: Array
) -> Forecast:
    """The forecast of all series without what depends on partners in doubt (:meth:`Messages.open_partners`).

    `predicted` (s, k): of `functions` at `points` (k, m), with the number of ranks among the parameters. `messages`:
    what is known of who sends to whom. `training` (n, m): configurations measured.
    """
    at = functions.fitted.parameters.index("ranks")
    # Their intervals hold what each rule would send.
    lawful = {key for law in (functions.neighbours, functions.laws) if law is not None for key in law.keys}
    rows = {key: row for key, row in functions.rows.items() if key[1] in SENT and key not in lawful}
    status, reason = predicted.status.copy(), predicted.reason.astype(object)

    @cache
    def steady() -> Mask:
        return _steady(functions, training[training[:, at] > 1])

    asked = points[:, at]
    for ranks in set(asked[np.isfinite(asked)].tolist()) - set(messages.measured):
        doubts = messages.open_partners(int(ranks)) if ranks > 1 else {}
        for (kernel, _), row in rows.items():
            doubtful = (asked == ranks) & (status[row] == OK)
            if kernel in doubts and doubtful.any() and not steady()[row]:
                status[row, doubtful], reason[row, doubtful] = FEW_POINTS, doubts[kernel]
    return replace(predicted, status=status, reason=reason)


def _steady(functions: Functions, several: Array) -> Mask:
    """Which series (s,) were the same at every number of ranks from two on, whoever they sent to."""
    values = functions.predict(several).value
    known = np.isfinite(values)
    low = np.where(known, values, np.inf).min(axis=1, initial=np.inf)
    high = np.where(known, values, -np.inf).max(axis=1, initial=-np.inf)
    size = np.where(known, np.abs(values), 0.0).max(axis=1, initial=0.0)
    return np.asarray(known.any(axis=1) & (high - low <= STEADY * size))
