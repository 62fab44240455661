"""T_others: the program's time outside of its kernels and messages.

    T_others = T_wall - sum_k T_k - T_imbalance - BF_comm T_comm

(Ding et al. 2018, equation 1): launch, start and end of MPI, input and output, halted cycles. It is a series of its own,
measured where both the program's time and its kernels' were, and has its own function. Where it is no more than the
error of the difference it is zero, with that error. Where kernels take longer than the program (inclusive timers, kernels
that overlap) their sum is not the program's time, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ranksight.errors import InputError
from ranksight.experiment import WHOLE
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.plaindata import reading
from ranksight.model.search.offer import Listed
from ranksight.model.search.terms import ONE, Factor, Hypotheses, hypotheses
from ranksight.model.series.series import Series
from ranksight.model.uncertainty.forecast import Forecast

Array = NDArray[np.float64]

OTHERS = "(outside kernels)"
"""Name of the series."""
NEGLIGIBLE = 0.005
"""Share of the program's time up to which the rest is the error of timers and of adding means over ranks."""
EXCESS = 0.02
"""Share of the program's time by which kernels may exceed it: reductions over ranks and repetitions do not commute."""
LAUNCH: tuple[Factor, ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
"""How start and end of a program grow with the ranks: one after the other, or as a tree."""
FILES: tuple[Factor, ...] = ((1.0, 0.0, 0.0), (2.0, 0.0, 0.0), (3.0, 0.0, 0.0))
"""How input and output grow with another parameter: lines, faces, volumes."""
COMPLETE = 0.98
"""Share of a configuration's kernels' time that has to be measured."""


@dataclass(frozen=True)
class Others:
    """T_others over the parameters.

    Attributes
    ----------
    fitted : Fitted or None
        Its function; None where it is negligible.
    scatter : float
        Root mean square of what is left, as a share of the program's time.
    """

    fitted: Fitted | None
    scatter: float

    def at(self, points: Array, total: Array, level: float) -> Forecast:
        """T_others at `points` (k, m), one row, where everything else takes `total` (k,)."""
        if self.fitted is not None:
            return self.fitted.predict(points, level)
        zero, fine = np.zeros((1, len(points))), np.zeros((1, len(points)), dtype=np.intp)
        half = float(ndtri((1 + level) / 2)) * self.scatter * np.nan_to_num(total)[None]
        return Forecast(zero, -half, half, fine, np.full(fine.shape, "", dtype=object), zero, zero + 1, level)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {"fitted": None if self.fitted is None else self.fitted.to_dict(), "scatter": self.scatter}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Others:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'others'"):
            given, scatter = content["fitted"], float(content["scatter"])
            fitted = None if given is None else Fitted.from_dict(given)
        if not 0 <= scatter < 1 or (fitted is not None and len(fitted) != 1):
            raise InputError("'others' does not fit together", "fit the model again")
        return cls(fitted, scatter)


def fit_others(series: Series, factor: Array, messages: Array, **settings: Any) -> Others | None:
    """Learn T_others.

    Parameters
    ----------
    series : Series
    factor : (n,)
        Slowest rank over the mean at each configuration, where times are means over ranks; 1 where they are not.
    messages : (n,)
        Seconds of messages that no kernel's time holds.
    **settings
        Of :func:`ranksight.model.fitting.fitting.fit_series`.

    Returns
    -------
    Others or None
        None where the program's time or its kernels' was not measured, or kernels take longer than the program.
    """
    rows = [at for at, name in enumerate(series.metrics) if name == "time"]
    walls = [at for at in rows if series.kernels[at] == WHOLE]
    parts = [at for at in rows if series.kernels[at] != WHOLE]
    if not walls or not parts:
        return None
    wall = series.values[walls[0]]
    kernels = series.values[parts]
    usual = np.nanmax(np.nanmedian(kernels, axis=2), axis=1)
    complete = np.where(np.isfinite(kernels), usual[:, None, None], 0.0).sum(axis=0) >= COMPLETE * usual.sum()
    rest = wall - np.nansum(kernels, axis=0) * factor[:, None] - messages[:, None]
    rest = np.where(complete, rest, np.nan)
    known = np.isfinite(rest).any(axis=1)
    if not known.any():
        return None
    middle, whole = np.full(len(rest), np.nan), np.full(len(rest), np.nan)
    middle[known], whole[known] = np.nanmedian(rest[known], axis=1), np.nanmedian(wall[known], axis=1)
    share = middle[known] / whole[known]
    if (share < -EXCESS).any():
        return None
    scatter = float(np.sqrt(np.mean(share**2)))
    if (np.abs(share) <= NEGLIGIBLE).all() or np.median(share) <= 0:
        return Others(None, min(scatter, 0.5))
    values = np.where(np.isfinite(rest), np.maximum(rest, 1e-6 * wall), np.nan)[None]
    own = Series(series.parameters, series.points, values, (OTHERS,), ("time",))
    offered = {"space": Listed(_hypotheses(own))} if "ranks" in own.parameters else {}
    return Others(fit_varied(own, **{**settings, "guide": False, **offered}), scatter)


def _hypotheses(series: Series) -> Hypotheses:
    """A constant, with a term of the ranks, of another parameter that varied, or of both."""
    names = list(series.parameters)

    def term(name: str, factor: Factor) -> tuple[Factor, ...]:
        return tuple(factor if other == name else ONE for other in names)

    constant = term("", ONE)
    launch = [term("ranks", factor) for factor in LAUNCH]
    varied = [
        name
        for name, column in zip(names, series.points.T, strict=True)
        if name != "ranks" and len(np.unique(column)) > 2
    ]
    files = [term(name, factor) for name in varied for factor in FILES]
    sums = [(constant,), *((constant, one) for one in (*launch, *files))]
    sums += [(constant, one, other) for one in launch for other in files]
    return hypotheses(sums, [0.0] * len(sums))
