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

from ranksight.core.errors import InputError
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
    used = _filled(size, fitted.members.shape[2])
    triangle = _triangle(used)
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
        **({} if fitted.unaffected is None else {"unaffected": fitted.unaffected.tolist()}),
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
    iterations = content.get("iterations")
    if iterations is not None and iterations not in parameters:
        raise _damaged("'iterations' is no parameter")
    terms, space = _terms(content, m), content.get("space")
    press, adjusted, within, repetitions = (
        _column(content, name, s, missing=True) for name in ("press", "adjusted_r2", "within", "repetitions")
    )
    positive, noisy = (_truths(content, name, s) for name in ("positive", "noisy"))
    trained, drift = _ranges(content, s, m)
    breaks, below, rows = _breaks_from_dict(content.get("breaks"), parameters, s)
    return Fitted(
        parameters,
        kernels,
        metrics,
        space if isinstance(space, str) else "own",
        terms,
        **_mixtures(content, s, len(terms)),
        press=press,
        adjusted_r2=adjusted,
        count=_integers(content, "count", s, 0, MOST),
        status=_integers(content, "status", s, 0, len(REASONS) - 1),
        positive=positive,
        trained=trained,
        drift=drift,
        within=within,
        repetitions=repetitions,
        noisy=noisy,
        samples=_samples(content, s),
        hidden=_table(content, "hidden", 2, "holds no ranges"),
        breaks=breaks,
        below=below,
        below_rows=rows,
        ties=_table(content, "ties", 1 + m, "do not match the parameters"),
        iterations=iterations,
        lasting=None if content.get("lasting") is None else Lasting.from_dict(content["lasting"], s, m),
        unaffected=_unaffected(content, s, m),
    )


def _unaffected(content: Mapping[str, Any], count: int, parameters: int) -> NDArray[np.bool_] | None:
    """Which parameters change nothing in each series; None where nothing was stated."""
    if "unaffected" not in content:
        return None
    given = content["unaffected"]
    rows = given if isinstance(given, list) else []
    if len(rows) != count or any(not isinstance(row, list) or len(row) != parameters for row in rows):
        raise _damaged("'unaffected' does not match the series")
    return np.array([[each is True for each in row] for row in rows], dtype=bool).reshape(count, parameters)


def _terms(content: Mapping[str, Any], parameters: int) -> Array:
    """The terms (t, m, 3) that occur."""
    terms = _column(content, "terms", None, nested=True)
    if terms.size and (terms.ndim != 3 or terms.shape[1:] != (parameters, 3)):
        raise _damaged("'terms' do not match the parameters")
    terms = terms.reshape(-1, parameters, 3)
    numbers = -terms[:, :, 2]
    if ((numbers > 0) & ((numbers > len(GRID_TERMS)) | (numbers != np.floor(numbers)))).any():
        raise _damaged("'terms' name a process grid that is not known")
    return terms


def _mixtures(content: Mapping[str, Any], count: int, terms: int) -> dict[str, Any]:
    """The forms of `count` series over so many `terms`, padded to equally many forms of equally many terms."""
    forms = _integers(content, "forms", count, 0, 1000)
    total = int(forms.sum())
    size = _integers(content, "size", total, 1, 20)
    weight, variance, freedom = (_column(content, name, total) for name in ("weight", "variance", "freedom"))
    if (weight <= 0).any() or (variance < 0).any() or (freedom < 1).any():
        raise _damaged("a weight, variance or degree of freedom is out of range")
    flat = int(size.sum())
    members = _integers(content, "members", flat, 0, max(terms - 1, 0))
    coefficients = _column(content, "coefficients", flat)
    root = _column(content, "root", int((size * (size + 1) // 2).sum()))
    most, width = int(forms.max(initial=1)), int(size.max(initial=1))
    if count * most * width * width > 10 * MOST:
        raise _damaged("too many forms")
    keep, used, every = _filled(forms, most), _filled(size, width), np.ones(total, dtype=bool)

    def spread(numbers: NDArray[Any], mask: NDArray[np.bool_], fill: float) -> NDArray[Any]:
        """The `numbers`, which stand form after form, at the places of `mask` (f, ...) in each series' forms."""
        inner: NDArray[Any] = np.full(mask.shape, fill, dtype=numbers.dtype)
        inner[mask] = numbers
        outer: NDArray[Any] = np.full((count, most, *mask.shape[1:]), fill, dtype=numbers.dtype)
        outer[keep] = inner
        return outer

    weights = spread(weight, every, 0.0)
    sums = weights.sum(axis=1, keepdims=True)
    return {
        "members": spread(members, used, -1),
        "weight": weights / np.where(sums > 0, sums, 1.0),
        "coefficient": spread(coefficients, used, 0.0),
        "root": spread(root, _triangle(used), 0.0),
        "variance": spread(variance, every, np.inf),
        "freedom": spread(freedom, every, 1.0),
    }


def _filled(count: NDArray[np.intp], width: int) -> NDArray[np.bool_]:
    """The first `count` (n,) of `width` places, (n, width)."""
    return np.arange(width)[None, :] < count[:, None]


def _triangle(used: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What is written of roots (f, q, q): their upper triangles over the terms in use (f, q)."""
    place = np.arange(used.shape[1])
    return (place[:, None] <= place[None, :])[None] & used[:, None, :] & used[:, :, None]


def _samples(content: Mapping[str, Any], count: int) -> Array:
    """Samples behind the values of each series; infinite where they are not made of samples."""
    if "samples" not in content:
        return np.full(count, np.inf)
    samples = _column(content, "samples", count, missing=True)
    if (samples < 0).any():
        raise _damaged("'samples' are fewer than none")
    return np.where(np.isnan(samples), np.inf, samples)


def _ranges(content: Mapping[str, Any], count: int, parameters: int) -> tuple[Array, Array]:
    """What was measured and how far series drift: two numbers a parameter and series, (s, m, 2) each."""
    shape = (count, parameters, 2)
    trained, drift = (_column(content, name, None, nested=True) for name in ("trained", "drift"))
    if not count and not trained.size and not drift.size:
        trained, drift = trained.reshape(shape), drift.reshape(shape)
    if trained.shape != shape or drift.shape != shape or (drift < 0).any():
        raise _damaged("'trained' or 'drift' do not match the series")
    return trained, drift


def _table(content: Mapping[str, Any], name: str, width: int, wrong: str) -> Array | None:
    """A table (n, width) that need not be there; what is `wrong` with another shape."""
    if name not in content:
        return None
    table = _column(content, name, None, nested=True)
    if table.ndim != 2 or table.shape[1] != width:
        raise _damaged(f"'{name}' {wrong}")
    return table


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
