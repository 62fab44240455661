"""The terms of the resource equation as rows of a table.

    T = sum_k i_k (CPI_exec,k + BF_mem,k sum_l n_kl l_l / i_k) / f + BF_comm T_comm + T_others

(Ding et al. 2018, equation 1). BF_comm has a table of its own
(:meth:`ranksight.model.application.communication.Exchanged.table`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.model.application.laws import Terms
from ranksight.model.uncertainty.forecast import Forecast

TERMS = ("configuration", "kernel", "term", "value", "lower", "upper", "method")
"""Columns: ``kernel`` is None for T_others; ``lower`` and ``upper`` are None where the term was not given a spread."""
CPI, BLOCKING, CLOCK, OTHERS = "cpi_exec", "bf_mem", "clock", "t_others"
"""Cycles per instruction without memory stalls; share of the loads' latencies that the core waits for; cycles a
second; seconds outside of kernels and messages."""

ROUNDING = 1e-15
"""Values below this are zero: a CPI, blocking factor, clock in Hz and seconds are all far above it."""


@dataclass(frozen=True)
class EquationTerms:
    """Terms of the equation at k configurations."""

    parameters: tuple[str, ...]
    points: Array  # (k, m)
    terms: Terms | None  # CPI_exec, BF_mem and clock of the kernels that an equation describes
    others: Forecast | None  # T_others, one row
    only: tuple[str, ...] | None = None  # kernels that were asked for; all when not given

    def rows(self) -> list[dict[str, Any]]:
        """A row of :data:`TERMS` for each known value, T_others last."""
        where = [
            {name: int(x) if x.is_integer() else x for name, x in zip(self.parameters, point, strict=True)}
            for point in self.points.tolist()
        ]
        found: list[dict[str, Any]] = []
        for at, kernel in enumerate(() if self.terms is None else self.terms.kernels):
            if self.terms is not None and (self.only is None or kernel in self.only):
                each = ((CPI, self.terms.cpi), (BLOCKING, self.terms.shown_blocking), (CLOCK, self.terms.clock))
                for name, said in each:
                    found += _rows(where, kernel, name, said, at, self.terms.method[at])
        if self.others is not None:
            found += _rows(where, None, OTHERS, self.others, 0, "wall time minus kernels and messages")
        return found


def _rows(
    where: Sequence[dict[str, Any]], kernel: str | None, term: str, said: Forecast, at: int, method: str
) -> list[dict[str, Any]]:
    """Rows of one term of one kernel; values that are not known are left out, and no term is below zero."""
    values, lower, upper = (_shown(getattr(said, end)[at]) for end in ("value", "lower", "upper"))
    spread = np.isfinite(lower) & np.isfinite(upper) & (upper > lower)
    return [
        dict(zip(TERMS, (place, kernel, term, value, *(ends if known else (None, None)), method), strict=True))
        for place, value, ends, known in zip(
            where, values.tolist(), zip(lower.tolist(), upper.tolist(), strict=True), spread.tolist(), strict=True
        )
        if np.isfinite(value)
    ]


def _shown(values: Array) -> Array:
    """`values` (k,) without what rounding leaves of a zero: least squares returns 1e-17 where a bound is active."""
    return np.where(values < ROUNDING, 0.0, values)
