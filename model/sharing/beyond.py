"""What else grows with the ranks where domains get no fuller: messages, imbalance, work that every rank repeats.

The law of shared bandwidth knows of nothing that grows from one full domain to many. Over the configurations whose
fullest domain is as full as it ever was, the logarithm of measured over predicted time is fitted by a straight line
over ln P, of slope b and standard error e. On x times as many ranks as were measured, d = ln x,

    |b| <= 2 e  or  |b| d <= 0.1:  the law holds; its interval takes b d and e d in, upward b (x - 1) and e (x - 1), as
                                   what does not shrink with the rest has a growing share of the time,
    else:                          the time is a function of the parameters over those configurations alone, which no
                                   kink at the end of a domain disturbs.

Times alone from one domain that may have been full from the first tell neither that work is divided nor that it is not:
a full interface, a serial part and weak scaling look alike. What several domains make of them is not told.

Slopes that are not clear are drawn to zero by the drift expected before any data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ranksight.errors import InputError
from ranksight.model.drift import expected_drift
from ranksight.model.fitted import Fitted
from ranksight.model.forecast import FEW_POINTS, OK, Forecast
from ranksight.model.functions import choose
from ranksight.model.series import Series
from ranksight.model.varied import fit_varied

Array = NDArray[np.float64]

UNTOLD = (
    "times alone inside one memory domain that do not fall as 1 / ranks do not tell what further domains bring: "
    "measure fewer ranks as well, or count instructions"
)
CLEAR = 2.0
"""Standard errors from which on a slope is one."""
SMALL = 0.1
"""Change up to which the law holds with a wider interval."""


@dataclass(frozen=True)
class Beyond:
    """What K kernels do beyond the ranks measured.

    Attributes
    ----------
    active : int
        Ranks in the fullest domain.
    most : float
        Most ranks measured.
    slope, error : (K,)
        b and e; zeros where they were not told.
    functions : Fitted or None
        Times of the kernels with a clear slope.
    guessed : (K,) bool
        Kernels of which nothing tells how their work is divided.
    """

    active: int
    most: float
    slope: Array
    error: Array
    functions: Fitted | None
    guessed: NDArray[np.bool_]

    def silent(self, ranks: Array, active: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Where (K, k) the law has nothing to say: inside one domain of kernels whose work is guessed."""
        return np.asarray(self.guessed[:, None] & (ranks <= active)[None, :])

    def take(
        self, given: Forecast, kernels: tuple[str, ...], points: Array, ranks: Array, active: NDArray[np.intp]
    ) -> Forecast:
        """The forecast (K, k) of the law at `points`, with what else grows."""
        more = np.where(active == self.active, np.maximum(ranks / self.most, 1.0), 1.0)[None, :]
        ahead, reach = np.log(more), float(ndtri((1 + given.level) / 2)) * self.error[:, None]
        reach = np.hypot(self.slope[:, None], reach)
        with np.errstate(invalid="ignore", divide="ignore"):
            down, up = np.log(given.value / given.lower), np.log(given.upper / given.value)
        lost = self.guessed[:, None] & (ranks > active)[None, :] & (given.status == OK)
        wider = replace(
            given,
            status=np.where(lost, FEW_POINTS, given.status).astype(np.intp),
            reason=np.where(lost, UNTOLD, given.reason),
            lower=given.value * np.exp(-np.hypot(down, reach * ahead)),
            upper=given.value * np.exp(np.minimum(np.hypot(up, reach * (more - 1)), 50.0)),
        )
        if self.functions is None:
            return wider
        index = np.array([kernels.index(kernel) for kernel in self.functions.kernels], dtype=np.intp)
        where = np.abs(self.slope[index, None]) * ahead > SMALL
        return choose(wider, self.functions.predict(points, given.level), index, where)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "active": self.active,
            "most": self.most,
            "slope": self.slope.tolist(),
            "error": self.error.tolist(),
            "guessed": self.guessed.tolist(),
            "functions": None if self.functions is None else self.functions.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], kernels: tuple[str, ...]) -> Beyond:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        try:
            slope, error = (np.array(content[name], dtype=np.float64) for name in ("slope", "error"))
            active, most, given = int(content["active"]), float(content["most"]), content["functions"]
            functions = None if given is None else Fitted.from_dict(given)
            guessed = np.array(content["guessed"], dtype=np.bool_)
        except (KeyError, TypeError, ValueError, OverflowError) as cause:
            raise InputError(f"'beyond' is damaged: {cause}", "fit the model again") from cause
        shapes = slope.shape == error.shape == guessed.shape == (len(kernels),)
        sound = shapes and np.isfinite(slope).all() and np.isfinite(error).all() and active >= 1 and most >= 1
        if not sound or (functions is not None and not set(functions.kernels) <= set(kernels)):
            raise InputError("'beyond' does not fit together", "fit the model again")
        return cls(active, most, slope, error, functions, guessed)


def learn_beyond(
    series: Series,
    kernels: tuple[str, ...],
    time: Array,
    left: Array,
    scatter: Array,
    active: NDArray[np.intp],
    guessed: NDArray[np.bool_],
    **settings: Any,
) -> Beyond:
    """Learn what grows with the ranks over the configurations with the fullest domains.

    Parameters
    ----------
    series : Series
        Its n configurations.
    time, left : (K, n)
        Measured times, and the logarithm of them over the law's; NaN where missing.
    scatter : (K,)
        Of the logarithm, at least.
    active : (n,)
        Ranks in the fullest domain.
    guessed : (K,)
        Kernels whose work is guessed.
    """
    ranks = series.points[:, series.parameters.index("ranks")]
    full = active == active.max()
    x = np.where(np.isfinite(left[:, full]), np.log(ranks[full])[None, :], np.nan)
    y = left[:, full]
    known = np.isfinite(x).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        x0, y0 = (np.nansum(part, axis=1) / np.maximum(known, 1) for part in (x, y))
        square = np.nansum((x - x0[:, None]) ** 2, axis=1)
        usable = (known >= 2) & (square > 0)
        slope = np.where(usable, np.nansum((x - x0[:, None]) * (y - y0[:, None]), axis=1) / square, 0.0)
        rest = np.nansum((y - y0[:, None] - slope[:, None] * (x - x0[:, None])) ** 2, axis=1)
        own = np.sqrt(rest / np.maximum(known - 2, 1))
        error = np.where(usable, np.maximum(own, scatter) / np.sqrt(np.where(usable, square, 1.0)), 0.0)
    clear = np.flatnonzero(np.abs(slope) > CLEAR * error)
    # What few ranks close to each other leave open is what programs drift before any data.
    expected = expected_drift("time")
    weight = np.where(np.isin(np.arange(len(slope)), clear), 1.0, expected**2 / (expected**2 + error**2))
    slope, error = weight * slope, np.sqrt(weight) * error
    functions = None
    if len(clear):
        names = tuple(kernels[at] for at in clear)
        part = Series(
            series.parameters, series.points[full], time[clear][:, full][:, :, None], names, ("time",) * len(names)
        )
        functions = fit_varied(part, **{key: value for key, value in settings.items() if key != "jobs"})
    return Beyond(int(active.max()), float(ranks.max()), slope, error, functions, guessed)
