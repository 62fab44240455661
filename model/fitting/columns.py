"""Fitted functions as columns of numbers and back, checked on the way in, never code.

Layout of the dictionary: names of the series; ``terms`` (t x m x 3); for each series how many ``forms`` it has; for
each form its weight, variance, freedom and ``size`` (number of terms); then, form after form, the numbers of its terms,
its coefficients and the upper triangle of its root.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import limits
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.errors import InputError
from ranksight.model.search.gridterms import GRID_TERMS

if TYPE_CHECKING:
    from ranksight.model.fitting.fitted import Fitted


def fitted_to_columns(fitted: Fitted) -> dict[str, Any]:
    """Turn fitted functions into names and arrays."""
    keep = fitted.weight > 0
    size = (fitted.members >= 0).sum(axis=2)[keep]
    used = _filled(size, fitted.members.shape[2])
    triangle = _triangle(used)
    return {
        "parameters": list(fitted.parameters),
        "kernels": list(fitted.kernels),
        "metrics": list(fitted.metrics),
        "space": fitted.space,
        "terms": fitted.terms,
        "forms": keep.sum(axis=1),
        "weight": fitted.weight[keep],
        "variance": fitted.variance[keep],
        "freedom": fitted.freedom[keep],
        "size": size,
        "members": fitted.members[keep][used],
        "coefficients": fitted.coefficient[keep][used],
        "root": fitted.root[keep][triangle],
        "press": _missing(fitted.press),
        "adjusted_r2": _missing(fitted.adjusted_r2),
        "count": fitted.count,
        "status": fitted.status,
        "positive": fitted.positive,
        "trained": fitted.trained,
        "drift": fitted.drift,
        "pace": fitted.pace,
        "seen": fitted.seen,
        "turned": fitted.turned,
        "within": _missing(fitted.within),
        "repetitions": _missing(fitted.repetitions),
        "noisy": fitted.noisy,
        **({"samples": _missing(fitted.samples)} if np.isfinite(fitted.samples).any() else {}),
        **({} if fitted.hidden is None else {"hidden": fitted.hidden}),
        **({} if fitted.ties is None else {"ties": fitted.ties}),
        **({} if fitted.unaffected is None else {"unaffected": fitted.unaffected}),
        **({"filling": fitted.filling} if fitted.filling else {}),
        **({} if fitted.iterations is None else {"iterations": fitted.iterations}),
        **({} if fitted.lasting is None else {"lasting": fitted.lasting.to_columns()}),
        **_breaks_to_columns(fitted),
    }


def columns_of(content: Mapping[str, Any], rows: Index) -> dict[str, Any]:
    """What :func:`fitted_to_columns` gives of some series (r,), in ascending order, from that of all."""
    forms, size = content["forms"], content["size"]
    form = _stretches(forms, rows)
    term, corner = _stretches(size, form), _stretches(size.astype(np.intp) * (size + 1) // 2, form)
    which = {"weight": form, "variance": form, "freedom": form, "size": form}
    which |= {"members": term, "coefficients": term, "root": corner}
    whole = ("parameters", "space", "terms", "ties", "hidden", "filling", "iterations", "lasting",
             "breaks")  # fmt: skip
    found: dict[str, Any] = {name: content[name] for name in whole if name in content}
    for name in content.keys() - found.keys():
        column, mine = content[name], which.get(name, rows)
        found[name] = column[mine] if isinstance(column, np.ndarray) else [column[row] for row in mine.tolist()]
    if "lasting" in found:
        held = content["lasting"]
        found["lasting"] = {**held, **{name: held[name][rows] for name in ("logs", "part", "axis")}}
    if "breaks" in found:
        del found["breaks"]
        held = content["breaks"]
        mine = np.flatnonzero(np.isin(held["rows"], rows))
        if len(mine):
            place = np.searchsorted(rows, held["rows"][mine])
            below = columns_of(held["below"], mine)
            found["breaks"] = {"rows": place, "axis": held["axis"][mine], "at": held["at"][mine], "below": below}
    return found


def _stretches(lengths: NDArray[Any], rows: Index) -> Index:
    """Where what belongs to some rows is, of stretches of so many numbers that follow each other."""
    ends = np.cumsum(lengths, dtype=np.intp)[rows]
    many = lengths[rows].astype(np.intp)
    before = np.cumsum(many) - many
    return np.asarray(np.arange(many.sum()) + np.repeat(ends - many - before, many))


def _missing(numbers: Array) -> Array:
    """Numbers of which what is not finite is missing, as in a list that JSON can hold."""
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _breaks_to_columns(fitted: Fitted) -> dict[str, Any]:
    if fitted.below is None or fitted.breaks is None or fitted.below_rows is None:
        return {}
    rows = fitted.below_rows
    axis = np.isfinite(fitted.breaks[rows]).argmax(axis=1)
    at = fitted.breaks[rows, axis]
    return {"breaks": {"rows": rows, "axis": axis, "at": at, "below": fitted_to_columns(fitted.below)}}


def fitted_from_dict(content: Mapping[str, Any]) -> Fitted:
    """Rebuild fitted functions from :func:`fitted_to_columns`'s data, or from the lists that they are in other files.

    Raises InputError when an entry is missing, has another type or length than the rest of the data needs, or holds a
    number out of range.
    """
    from ranksight.model.fitting.fitted import Fitted
    from ranksight.model.uncertainty.forecast import NO_DATA
    from ranksight.model.uncertainty.lasting import Lasting

    parameters, kernels, metrics = (_names(content, name) for name in ("parameters", "kernels", "metrics"))
    s, m = len(kernels), len(parameters)
    if len(metrics) != s or not m:
        raise _damaged("kernels, metrics and parameters do not match")
    iterations = content.get("iterations")
    if iterations is not None and iterations not in parameters:
        raise _damaged("'iterations' is not a parameter")
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
        count=_integers(content, "count", s, 0, limits.MODEL_NUMBERS),
        status=_integers(content, "status", s, 0, NO_DATA),
        positive=positive,
        trained=trained,
        drift=drift,
        pace=_column(content, "pace", s) if "pace" in content else np.ones(s),
        seen=_seen(content, s),
        turned=_column(content, "turned", s) if "turned" in content else np.zeros(s),
        within=within,
        repetitions=repetitions,
        noisy=noisy,
        samples=_samples(content, s),
        hidden=_table(content, "hidden", 2, "holds no ranges"),
        breaks=breaks,
        below=below,
        below_rows=rows,
        ties=_table(content, "ties", 1 + m, "do not match the parameters"),
        filling=int(content.get("filling", 0)),
        iterations=iterations,
        lasting=None if content.get("lasting") is None else Lasting.from_dict(content["lasting"], s, m),
        unaffected=_unaffected(content, s, m),
    )


def _unaffected(content: Mapping[str, Any], count: int, parameters: int) -> Mask | None:
    """Which parameters change nothing in each series; None where nothing was stated."""
    if "unaffected" not in content:
        return None
    given = content["unaffected"]
    if isinstance(given, np.ndarray) and given.dtype == bool and given.shape == (count, parameters):
        return given
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
    if count * most * width * width > limits.MODEL_NUMBERS:
        raise _damaged("too many forms")
    keep, used, every = _filled(forms, most), _filled(size, width), np.ones(total, dtype=bool)

    def spread(numbers: NDArray[Any], mask: Mask, fill: float) -> NDArray[Any]:
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


def _filled(count: Index, width: int) -> Mask:
    """The first `count` (n,) of `width` places, (n, width)."""
    return np.arange(width)[None, :] < count[:, None]


def _triangle(used: Mask) -> Mask:
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


def _seen(content: Mapping[str, Any], count: int) -> Array:
    """Smallest and largest value (s, 2) of each series; zero where an older version did not keep them."""
    table = _table(content, "seen", 2, "does not match the series")
    if table is None:
        return np.zeros((count, 2))
    if table.shape != (count, 2):
        raise _damaged("'seen' does not match the series")
    return table


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
) -> tuple[Array | None, Fitted | None, Index | None]:
    if given is None:
        return None, None, None
    if not isinstance(given, dict) or not isinstance(given.get("below"), dict) or "breaks" in given["below"]:
        raise _damaged("'breaks' is not a description of breaks")
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


def _truths(content: Mapping[str, Any], name: str, length: int) -> Mask:
    given = content.get(name)
    if isinstance(given, np.ndarray):
        if given.dtype == bool and given.shape == (length,):
            return given
    elif isinstance(given, list) and len(given) == length and not set(map(type, given)) - {bool}:
        return np.array(given, dtype=bool)
    raise _damaged(f"'{name}' is not a list of {length} truth values")


def _names(content: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = content.get(name)
    if not isinstance(given, list) or set(map(type, given)) - {str}:
        raise _damaged(f"'{name}' is not a list of names")
    return tuple(given)


def _column(
    content: Mapping[str, Any], name: str, length: int | None, *, missing: bool = False, nested: bool = False
) -> Array:
    given = content.get(name)
    if isinstance(given, np.ndarray) and given.dtype.kind in "fiu":
        column = given
    else:
        column = _from_list(given, name, missing, nested)
    if length is not None and column.shape != (length,):
        raise _damaged(f"'{name}' holds {len(column)} numbers, not {length}")
    if not ((np.abs(column) <= limits.FITTED) | (missing & np.isnan(column))).all():
        raise _damaged(f"'{name}' holds a number that is not finite, or beyond {limits.FITTED:g}")
    return column.astype(np.float64, copy=False)


def _from_list(given: Any, name: str, missing: bool, nested: bool) -> Array:
    if not isinstance(given, list) or len(given) > limits.MODEL_NUMBERS:
        raise _damaged(f"'{name}' is not a list of numbers")
    if not nested and set(map(type, given)) - ({int, float, type(None)} if missing else {int, float}):
        raise _damaged(f"'{name}' is not a list of numbers")
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _damaged(f"'{name}' is not a list of numbers") from None


def _integers(content: Mapping[str, Any], name: str, length: int, low: int, high: int) -> Index:
    column = _column(content, name, length)
    if (column != np.floor(column)).any() or (column < low).any() or (column > high).any():
        raise _damaged(f"'{name}' holds a number outside {low}..{high}")
    return column.astype(np.intp)
