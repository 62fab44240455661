"""Weights of the laws of kernels' times, from what they predict of configurations that were held out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.log import log
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.laws.law import BANDWIDTH, FUNCTION, LAWS, MESSAGES, registered
from ranksight.model.laws.stacking import PRIOR, Weights, learn_weights, log_score
from ranksight.model.laws.together import Laws
from ranksight.model.laws.view import Asked, Fits, View, medians
from ranksight.model.priors import HELD_OUT_DEEPEST, HELD_OUT_REST
from ranksight.model.series.computation import waiting
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.sharing.needs import LEAST
from ranksight.model.structure.functions import Functions
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose

Key = tuple[str, str]
"""Kernel and metric."""

MOST = 64
"""Kernels that are held out, those of most time: the weights that so many share are known from them."""
MOST_INSIDE = 2_000
"""Kernels beyond which weights between the runs are not looked for."""


def weights_of(view: View, exact: Collection[Key] = ()) -> Weights:
    """Weights of the laws, from the largest values of one parameter held out in turn.

    `exact`: counts (kernel, metric) whose law met all runs to rounding: laws are not judged by what a function of fewer
    runs makes of these. Where the user stated how times depend on the parameters, laws that give way do not compete.
    """
    stated = view.settings.get("iterations") is not None or view.settings.get("space", "default") != "default"
    series = view.series
    kernels = tuple(
        kernel for kernel, name in series.keys if name == "time" and (kernel != WHOLE or set(series.kernels) == {WHOLE})
    )
    if len(kernels) > MOST:
        spent = np.nansum(medians(series, "time", kernels), axis=1)
        heaviest = set(np.argsort(-spent, kind="stable")[:MOST].tolist())
        kernels = tuple(kernel for at, kernel in enumerate(kernels) if at in heaviest)
    result = _learned(view, kernels, exact) if view.fits() or len(_without_a_fit()) > 1 else PRIOR
    for name, law in registered().items() if stated else ():
        result = result.without(name) if law.gives_way else result
    return result


def _without_a_fit() -> list[str]:
    """Laws that need nothing learned: with no other, there is nothing to compare."""
    return [name for name, law in registered().items() if law.kind is None]


def _learned(view: View, kernels: tuple[str, ...], exact: Collection[Key]) -> Weights:
    """Weights from scores, those of the farther held-out sets counting more."""
    total: dict[str, list[Array]] = {}
    for depth, keep in enumerate(_splits(view.series) if kernels else [], start=1):
        for law, score in _scores(view, kernels, keep, exact).items():
            total.setdefault(law, []).append(depth * score)
    if not total:
        return PRIOR
    count = max(len(scores) for scores in total.values())
    scores = {
        law: _summed(np.array(scores)) if len(scores) == count else np.full(len(kernels), np.nan)
        for law, scores in total.items()
    }
    result = learn_weights(kernels, scores)
    shown = ", ".join(f"{law} {share:.2f}" for law, share in zip(result.laws, result.common, strict=True))
    log("weights of the laws after %d held-out sets: %s", count, shown)
    return result


def _summed(scores: Array) -> Array:
    """Sums (K,) of the scores (d, K) that there are; NaN where there is none."""
    known = np.isfinite(scores)
    return np.where(known.any(axis=0), np.where(known, scores, 0.0).sum(axis=0), np.nan)


def _splits(series: Series) -> list[Mask]:
    """Configurations to keep (n,), each time without more of the largest values of a parameter."""
    names = list(series.parameters)
    varied = [at for at in range(len(names)) if len(np.unique(series.points[:, at])) > HELD_OUT_REST]
    if not varied:
        return []
    first = names.index("ranks") if "ranks" in names and names.index("ranks") in varied else varied[0]
    levels = np.unique(series.points[:, first])
    deepest = min(HELD_OUT_DEEPEST, len(levels) - HELD_OUT_REST)
    return [series.points[:, first] < levels[-depth] for depth in range(1, deepest + 1)]


def _scores(view: View, kernels: tuple[str, ...], keep: Mask, exact: Collection[Key]) -> dict[str, Array]:
    """Logarithmic score (K,) of each law that was fitted to the configurations `keep`."""
    part = view.among(keep, kernels)
    fits = part.fits()
    asks = {"time", *(metric for law in registered().values() for metric in law.asks)}
    wanted = np.isin(np.array(part.series.metrics, dtype=object), sorted(asks))
    # Any law may turn beyond its runs: those of which it is said must not lose by it what the others keep.
    functions = Functions(fit_varied(part.series.select(wanted), **view.settings).going_on())
    held_out = view.series.points[~keep]
    predicted = functions.predict(held_out)
    counts = _as_measured(predicted, functions.rows, view.series.at(~keep), exact)
    slowest = partial(_ratios, view, keep) if view.slowest else None
    asked = Asked(view.series.parameters, held_out, functions.rows, predicted, counts, held_out, fits, slowest)
    truth = medians(view.series, "time", kernels)
    return _each(Laws.of(asked), kernels, np.where(_first_beyond(view, keep, fits, kernels), np.nan, truth)[:, ~keep])


def _ratios(view: View, keep: Mask, kernels: tuple[str, ...]) -> tuple[Array, Array]:
    """Slowest over mean rank of `kernels` in the runs held out, as it was: it has a law of its own. With no deviation,
    (K, k) each."""
    even = np.ones(len(keep))
    ratio = np.array([view.slowest.get(kernel, even)[~keep] for kernel in kernels]).reshape(len(kernels), -1)
    return ratio, np.zeros_like(ratio)


def _as_measured(predicted: Forecast, rows: Mapping[Key, int], series: Series, exact: Collection[Key]) -> Forecast:
    """The forecast (s, k) of `rows` with counts that are `exact` as they are in `series`."""
    known = [key for key in exact if key in rows and key in series.rows]
    if not known:
        return predicted
    index, places = (np.array([of[key] for key in known]) for of in (rows, series.rows))
    values = reduce(series.values[places], "median", axis=2)
    return choose(predicted, Forecast.settled(values, values, values), index, np.isfinite(values))


def _first_beyond(view: View, keep: Mask, fits: Fits, kernels: tuple[str, ...]) -> Mask:
    """Which times (K, n) are of messages beyond a node where those kept (n,) are all within one: that regime is another
    one, and what laws make of it says nothing of how they go on."""
    sent = fits.kernels(MESSAGES)
    beyond = np.zeros(len(keep), dtype=bool)
    if sent:
        nodes = view.domains.nodes(view.series.points[:, view.series.parameters.index("ranks")])
        beyond = (nodes > 1) & (nodes[keep] <= 1).all()
    return np.isin(np.array(kernels, dtype=object), sent)[:, None] & beyond


def inside_weights(asked: Asked, pace: float, series: Series, weights: Weights) -> tuple[Weights, Weights] | None:
    """Weights of the laws between the runs: by how well each meets the measured times, at which it is `asked`. Also the
    `weights` beyond the runs: those of messages are judged by that, too, and stand on both sides. None without a time.

    Few runs hold out no law of messages that needs three numbers of ranks, and one whose costs miss the runs themselves
    by factors is not what happens beyond them either.
    """
    kernels = asked.timed
    if not kernels:
        return None
    scores = _each(Laws.of(asked, pace), kernels, medians(series, "time", kernels))
    inside, waits = learn_weights(kernels, scores), waiting(series)
    at = [row for row, kernel in enumerate(kernels) if kernel in waits]
    if not at:
        return inside, weights
    some = tuple(kernels[row] for row in at)
    judged = weights.judged(some, {law: score[at] for law, score in scores.items()})
    return inside.having(some, dict(zip(scores, judged.of(some, tuple(scores)).T, strict=True))), judged


def by_misfit(function: Array, shared: Array, freedom: Array) -> Array:
    """Probability (K,) of the law of shared bandwidth where it leaves `shared` (K,) of the logarithms of times and the
    function of time leaves `function` (K,): standard deviations with `freedom` (K,).

    With a deviation that nobody knows the likelihood of n values goes as its estimate to the power -n (Zellner 1971,
    *An Introduction to Bayesian Inference in Econometrics*, 3.1); scatter below
    :data:`ranksight.model.sharing.needs.LEAST` is not believed.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = freedom * np.log(np.maximum(function, LEAST) / np.maximum(shared, LEAST))
        odds += np.log(LAWS[BANDWIDTH].prior / LAWS[FUNCTION].prior)
    return np.asarray(1 / (1 + np.exp(-np.clip(np.where(np.isfinite(odds), odds, -np.inf), -700, 700))))


def _each(laws: Laws, kernels: tuple[str, ...], truth: Array) -> dict[str, Array]:
    """The score (K,) of every law, given the measured times `truth` (K, k)."""
    return {name: log_score(law, kernels, truth) for name, law in laws.laws.items()}
