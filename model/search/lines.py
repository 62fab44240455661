"""The search along iterations (:mod:`ranksight.model.fitting.iterations`): lines, and slopes too small to be seen."""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.metrics import metric
from ranksight.model import priors
from ranksight.model.search.crosswise import LINE
from ranksight.model.search.guide import EXACT
from ranksight.model.search.offer import Listed
from ranksight.model.search.screening import Found
from ranksight.model.search.terms import ONE, hypotheses
from ranksight.model.series.reducing import Series


def lines() -> Listed:
    """The space of a series whose only parameter are iterations: a constant, or a line with or without set-up."""
    return Listed(hypotheses([((ONE,),), ((LINE,),), ((ONE,), (LINE,))], [0.0, priors.FORMS["alone"], 0.0]))


def hidden_slope(series: Series, found: Found, line: int) -> Array:
    """Relative error (s,) of times that do not grow, for as many further iterations as were measured at most.

    That of a slope n b fitted with a constant, ``sigma n_max / sqrt(sum (n - mean n)^2)``; 0 for what grows, for
    counts, and for kernels that are outside of the loop according to one of their counts.
    """
    n = series.points[:, line]
    leading = found.members[:, 0]
    grows = (found.basis.factors_of(leading)[..., line] > 0) & (leading >= 0)
    outside = ~grows.any(axis=1)
    kinds = np.array([metric(name).kind for name in series.metrics])
    exact = outside & (kinds == "requirement") & (found.press[:, 0] <= EXACT**2)
    counted = {kernel for kernel, yes in zip(series.kernels, exact.tolist(), strict=True) if yes}
    doubted = outside & (kinds == "time") & np.array([kernel not in counted for kernel in series.kernels])
    present = np.isfinite(series.values).any(axis=2)
    count = np.maximum(present.sum(axis=1), 1)
    mean = (present @ n) / count
    spread = np.sqrt(np.where(present, (n[None, :] - mean[:, None]) ** 2, 0.0).sum(axis=1))
    error = np.sqrt(np.where(np.isfinite(found.variance[:, 0]), found.variance[:, 0], 0.0))
    return np.asarray(np.where(doubted & (spread > 0), error * n.max() / np.where(spread > 0, spread, 1.0), 0.0))
