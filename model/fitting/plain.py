"""Fitted functions as plain data and back: columns of numbers, checked on the way in, never code.

Layout of the dictionary: names of the series; ``terms`` (t x m x 3); for each series how many ``forms`` it has; for
each form
its weight, variance, freedom and ``size`` (number of terms); then, form after form, the numbers of its terms, its
coefficients and
the upper triangle of its root.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError
from ranksight.model.plaindata import rounded, with_gaps
from ranksight.model.search.gridterms import GRID_TERMS

if TYPE_CHECKING:
    from ranksight.model.fitting.fitted import Fitted

Array = NDArray[np.float64]

MOST = 10_000_000
"""Numbers a column may hold."""


def fitted_to_dict(fitted: Fitted) -> dict[str, Any]:
    """Turn fitted functions into plain data."""
    keep = fitted.weight > 0
    size = (fitted.members >= 0).sum(axis=2)[keep]
    width = fitted.members.shape[2]
    used = np.arange(width)[None, :] < size[:, None]
    triangle = (np.arange(width)[:, None] <= np.arange(width)[None, :])[None] & used[:, None, :] & used[:, :, None]
    weight = fitted.weight[keep]
    return {
        "parameters": list(fitted.parameters),
        "kernels": list(fitted.kernels),
        "metrics": list(fitted.metrics),
        "space": fitted.space,
        "terms": fitted.terms.tolist(),
        "forms": keep.sum(axis=1).tolist(),
        "weight": rounded(weight, 12).tolist(),
        "variance": rounded(fitted.variance[keep], 9).tolist(),
        "freedom": rounded(fitted.freedom[keep], 9).tolist(),
        "size": size.tolist(),
        "members": fitted.members[keep][used].tolist(),
        "coefficients": rounded(fitted.coefficient[keep][used], 13).tolist(),
        "root": rounded(fitted.root[keep][triangle], 9).tolist(),
        "press": with_gaps(rounded(fitted.press, 6)),
        "adjusted_r2": with_gaps(rounded(fitted.adjusted_r2, 9)),
        "count": fitted.count.tolist(),
        "status": fitted.status.tolist(),
        "positive": fitted.positive.tolist(),
        "trained": fitted.trained.tolist(),
        "drift": rounded(fitted.drift, 9).tolist(),
        "within": with_gaps(rounded(fitted.within, 4)),
        "repetitions": with_gaps(rounded(fitted.repetitions, 4)),
        "noisy": fitted.noisy.tolist(),
        **({"samples": with_gaps(rounded(fitted.samples, 6))} if np.isfinite(fitted.samples).any() else {}),
        **({} if fitted.hidden is None else {"hidden": fitted.hidden.tolist()}),
        **({} if fitted.ties is None else {"ties": fitted.ties.tolist()}),
        **({} if fitted.iterations is None else {"iterations": fitted.iterations}),
        **({} if fitted.lasting is None else {"lasting": fitted.lasting.to_dict()}),
        **_breaks_to_dict(fitted),
    }


def _breaks_to_dict(fitted: Fitted) -> dict[str, Any]:
    if fitted.below is None or fitted.breaks is None or fitted.below_rows is None:
        return {}
    rows = fitted.below_rows
    axis = np.isfinite(fitted.breaks[rows]).argmax(axis=1)
    at = fitted.breaks[rows, axis]
    below = fitted_to_dict(fitted.below)
    return {"breaks": {"rows": rows.tolist(), "axis": axis.tolist(), "at": at.tolist(), "below": below}}


def fitted_from_dict(content: Mapping[str, Any]) -> Fitted:
    """Rebuild fitted functions from :func:`fitted_to_dict`'s data.

    Raises
    ------
    InputError
        When an entry is missing, has another type or length than the rest of the data needs, or holds a number out of
        range.
    """
    from ranksight.model.fitting.fitted import Fitted
    from ranksight.model.uncertainty.forecast import REASONS
    from ranksight.model.uncertainty.lasting import Lasting

    parameters, kernels, metrics = (_names(content, name) for name in ("parameters", "kernels", "metrics"))
    s, m = len(kernels), len(parameters)
    if len(metrics) != s or not m:
        raise _damaged("kernels, metrics and parameters do not match")
    terms = _column(content, "terms", None, nested=True)
    if terms.size and (terms.ndim != 3 or terms.shape[1:] != (m, 3)):
        raise _damaged("'terms' do not match the parameters")
    terms = terms.reshape(-1, m, 3)
    numbers = -terms[:, :, 2]
    if ((numbers > 0) & ((numbers > len(GRID_TERMS)) | (numbers != np.floor(numbers)))).any():
        raise _damaged("'terms' name a process grid that is not known")
    forms = _integers(content, "forms", s, 0, 1000)
    total = int(forms.sum())
    size = _integers(content, "size", total, 1, 20)
    weight, variance, freedom = (_column(content, name, total) for name in ("weight", "variance", "freedom"))
    if (weight <= 0).any() or (variance < 0).any() or (freedom < 1).any():
        raise _damaged("a weight, variance or degree of freedom is out of range")
    flat = int(size.sum())
    members = _integers(content, "members", flat, 0, max(len(terms) - 1, 0))
    coefficients = _column(content, "coefficients", flat)
    root = _column(content, "root", int((size * (size + 1) // 2).sum()))
    most, width = int(forms.max(initial=1)), int(size.max(initial=1))
    if s * most * width * width > 10 * MOST:
        raise _damaged("too many forms")
    keep = np.arange(most)[None, :] < forms[:, None]
    used = np.arange(width)[None, :] < size[:, None]
    triangle = (np.arange(width)[:, None] <= np.arange(width)[None, :])[None] & used[:, None, :] & used[:, :, None]

    def spread(
        shape: tuple[int, ...], fill: float, mask: NDArray[np.bool_], numbers: NDArray[Any], dtype: type
    ) -> NDArray[Any]:
        inner: NDArray[Any] = np.full((total, *shape), fill, dtype=dtype)
        inner[mask] = numbers
        outer: NDArray[Any] = np.full((s, most, *shape), fill, dtype=dtype)
        outer[keep] = inner
        return outer

    every = np.ones(total, dtype=bool)
    weights = spread((), 0.0, every, weight, np.float64)
    sums = weights.sum(axis=1, keepdims=True)
    press, adjusted = (_column(content, name, s, missing=True) for name in ("press", "adjusted_r2"))
    positive, noisy = (_truths(content, name, s) for name in ("positive", "noisy"))
    within, repetitions = (_column(content, name, s, missing=True) for name in ("within", "repetitions"))
    samples = np.full(s, np.inf)
    if "samples" in content:
        samples = _column(content, "samples", s, missing=True)
        samples = np.where(np.isnan(samples), np.inf, samples)
        if (samples < 0).any():
            raise _damaged("'samples' are fewer than none")
    trained = _column(content, "trained", None, nested=True)
    drift = _column(content, "drift", None, nested=True)
    if s == 0:
        trained, drift = trained.reshape(0, m, 2), drift.reshape(0, m, 2)
    if trained.shape != (s, m, 2) or drift.shape != (s, m, 2) or (drift < 0).any():
        raise _damaged("'trained' or 'drift' do not match the series")
    hidden = None if "hidden" not in content else _column(content, "hidden", None, nested=True)
    if hidden is not None and (hidden.ndim != 2 or hidden.shape[1] != 2):
        raise _damaged("'hidden' holds no ranges")
    ties = None if "ties" not in content else _column(content, "ties", None, nested=True)
    if ties is not None and (ties.ndim != 2 or ties.shape[1] != 1 + m):
        raise _damaged("'ties' do not match the parameters")
    iterations = content.get("iterations")
    if iterations is not None and iterations not in parameters:
        raise _damaged("'iterations' is no parameter")
    space = content.get("space")
    breaks, below, rows = _breaks_from_dict(content.get("breaks"), parameters, s)
    return Fitted(
        parameters,
        kernels,
        metrics,
        space if isinstance(space, str) else "own",
        terms,
        spread((width,), -1, used, members, np.intp),
        weights / np.where(sums > 0, sums, 1.0),
        spread((width,), 0.0, used, coefficients, np.float64),
        spread((width, width), 0.0, triangle, root, np.float64),
        spread((), np.inf, every, variance, np.float64),
        spread((), 1.0, every, freedom, np.float64),
        press,
        adjusted,
        _integers(content, "count", s, 0, MOST),
        _integers(content, "status", s, 0, len(REASONS) - 1),
        positive,
        trained,
        drift,
        within,
        repetitions,
        noisy,
        samples,
        hidden,
        breaks,
        below,
        rows,
        ties,
        iterations,
        None if content.get("lasting") is None else Lasting.from_dict(content["lasting"], s, m),
    )


def _breaks_from_dict(
    given: Any, parameters: tuple[str, ...], count: int
) -> tuple[Array | None, Fitted | None, NDArray[np.intp] | None]:
    if given is None:
        return None, None, None
    if not isinstance(given, dict) or not isinstance(given.get("below"), dict) or "breaks" in given["below"]:
        raise _damaged("'breaks' is no description of breaks")
    below = fitted_from_dict(given["below"])
    rows = _integers(given, "rows", len(below), 0, max(count - 1, 0))
    at = _column(given, "at", len(below))
    axis = _integers(given, "axis", len(below), 0, len(parameters) - 1)
    if below.parameters != parameters or len(np.unique(rows)) != len(rows):
        raise _damaged("'breaks' does not match the series")
    breaks = np.full((count, len(parameters)), np.nan)
    breaks[rows, axis] = at
    return breaks, below, rows


def _damaged(what: str) -> InputError:
    return InputError(f"the fitted functions are damaged: {what}", "fit the model again")


def _truths(content: Mapping[str, Any], name: str, length: int) -> NDArray[np.bool_]:
    given = content.get(name)
    if not isinstance(given, list) or len(given) != length or set(map(type, given)) - {bool}:
        raise _damaged(f"'{name}' is no list of {length} truth values")
    return np.array(given, dtype=bool)


def _names(content: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = content.get(name)
    if not isinstance(given, list) or set(map(type, given)) - {str}:
        raise _damaged(f"'{name}' is no list of names")
    return tuple(given)


def _column(
    content: Mapping[str, Any], name: str, length: int | None, *, missing: bool = False, nested: bool = False
) -> Array:
    given = content.get(name)
    if not isinstance(given, list) or len(given) > MOST:
        raise _damaged(f"'{name}' is no list of numbers")
    if not nested and set(map(type, given)) - ({int, float, type(None)} if missing else {int, float}):
        raise _damaged(f"'{name}' is no list of numbers")
    try:
        column = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _damaged(f"'{name}' is no list of numbers") from None
    if length is not None and column.shape != (length,):
        raise _damaged(f"'{name}' holds {len(given)} numbers, not {length}")
    if not (np.isfinite(column) | (missing & np.isnan(column))).all():
        raise _damaged(f"'{name}' holds a number that is not finite")
    return column


def _integers(content: Mapping[str, Any], name: str, length: int, low: int, high: int) -> NDArray[np.intp]:
    column = _column(content, name, length)
    if (column != np.floor(column)).any() or (column < low).any() or (column > high).any():
        raise _damaged(f"'{name}' holds a number outside {low}..{high}")
    return column.astype(np.intp)
