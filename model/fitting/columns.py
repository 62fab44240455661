"""Fitted functions as columns of numbers and back, checked on the way in, never code.

Hypotheses of all series stand one after the other, without padding: for each series how many `forms` it has; for each
form its weight, variance, freedom and `size` (number of terms); then, form after form, the numbers of its terms, its
coefficients and the upper triangle of its root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ranksight.core import limits
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored
from ranksight.model.process.posterior import Process
from ranksight.model.search.terms import NUMBERED
from ranksight.model.uncertainty.forecast import NO_DATA

if TYPE_CHECKING:
    from ranksight.model.fitting.fitted import Fitted

FORMS, TERMS = 1000, 20
"""Most hypotheses of a series, and terms of one."""
GAPS = frozenset({"press", "adjusted_r2", "within", "repetitions", "samples"})
"""Columns in which a number that is not finite is missing."""


@dataclass(frozen=True)
class PlainColumns(Stored):
    """Functions of s series over m parameters: f hypotheses in all, and t terms that occur in them.

    Fields have the names, meanings and, unless another is given, the shapes that they have in
    :class:`ranksight.model.fitting.fitted.Fitted`.
    """

    parameters: tuple[str, ...]
    kernels: tuple[str, ...]
    metrics: tuple[str, ...]
    space: str
    terms: Array
    forms: Index  # (s,)
    weight: Array  # (f,)
    variance: Array  # (f,)
    freedom: Array  # (f,)
    size: Index  # (f,)
    members: Index  # of the f hypotheses, one after the other, as are coefficients
    coefficients: Array
    root: Array  # upper triangles
    press: Array
    adjusted_r2: Array
    count: Index
    status: Index
    positive: Mask
    trained: Array
    drift: Array
    pace: Array
    within: Array
    repetitions: Array
    noisy: Mask
    samples: Array
    hidden: Array
    ties: Array
    unaffected: Mask
    iterations: str | None = None
    processes: tuple[Process, ...] = ()

    @classmethod
    def of(cls, fitted: Fitted) -> Self:
        """The columns of fitted functions."""
        keep = fitted.weight > 0
        size = (fitted.members >= 0).sum(axis=2)[keep]
        used = _filled(size, fitted.members.shape[2])
        columns = {each.name: getattr(fitted, each.name) for each in fields(PlainColumns) if hasattr(fitted, each.name)}
        columns |= {name: np.where(np.isfinite(columns[name]), columns[name], np.nan) for name in GAPS}
        return cls(
            **{
                **columns,
                "forms": keep.sum(axis=1),
                "weight": fitted.weight[keep],
                "variance": fitted.variance[keep],
                "freedom": fitted.freedom[keep],
                "size": size,
                "members": fitted.members[keep][used],
                "coefficients": fitted.coefficient[keep][used],
                "root": fitted.root[keep][_triangle(used)],
            }
        )

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each column."""
        s, m = len(self.kernels), len(self.parameters)
        forms, size = int(self.forms.sum()), self.size
        single = ("forms", "count", "status", "positive", "pace", "noisy", *GAPS)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(single, (s,))
        shapes |= dict.fromkeys(("weight", "variance", "freedom", "size"), (forms,))
        shapes |= dict.fromkeys(("members", "coefficients"), (int(size.sum()),))
        shapes |= {"root": (int((size * (size + 1) // 2).sum()),), "terms": (len(self.terms), m, 3)}
        shapes |= {"trained": (s, m, 2), "drift": (s, m, 2), "unaffected": (s, m)}
        shapes |= {"hidden": (len(self.hidden), 2), "ties": (len(self.ties), 1 + m)}
        return shapes

    def _fits(self) -> bool:
        s, m = len(self.kernels), len(self.parameters)
        if not m or len(self.metrics) != s or not (_within(self.forms, 0, FORMS) and _within(self.size, 1, TERMS)):
            return False
        for name, shape in self._shapes().items():
            column = getattr(self, name)
            if column.shape != shape and (column.size or 0 not in shape):  # an empty list has no depth
                raise ValueError(f"'{name}' has the shape {column.shape}, not {shape}")
            if not ((np.abs(column) <= limits.FITTED) | ((name in GAPS) & np.isnan(column))).all():
                raise ValueError(f"'{name}' holds a number that is not finite, or beyond {limits.FITTED:g}")
        grids = -self.terms.reshape(-1, 3)[:, 2]
        width = int(self.size.max(initial=1))
        return (
            not ((grids > 0) & ((grids > NUMBERED) | (grids != np.floor(grids)))).any()
            and bool((self.weight > 0).all())
            and all(_within(column, 0) for column in (self.variance, self.drift, self.count))
            and _within(self.freedom, 1)
            and _within(self.members, 0, max(len(self.terms) - 1, 0))
            and _within(self.status, 0, NO_DATA)
            and not (self.samples < 0).any()
            and s * int(self.forms.max(initial=1)) * width**2 <= limits.MODEL_NUMBERS
            and (not self.iterations or self.iterations in self.parameters)
            and all(_within(each.rows, 0, s - 1) and _within(each.axes, 0, m - 1) for each in self.processes)
        )

    def unpacked(self) -> dict[str, Any]:
        """The arguments of :class:`~ranksight.model.fitting.fitted.Fitted`: hypotheses of a series padded to equally
        many of equally many terms."""
        shapes = self._shapes()
        arguments = {each.name: getattr(self, each.name) for each in fields(PlainColumns)}
        arguments |= {name: arguments[name].reshape(shape) for name, shape in shapes.items()}
        most, width = int(self.forms.max(initial=1)), int(self.size.max(initial=1))
        keep, used = _filled(self.forms, most), _filled(self.size, width)
        every = np.ones(len(self.size), dtype=bool)

        def spread(numbers: NDArray[Any], mask: Mask, fill: float) -> NDArray[Any]:
            """The `numbers`, which stand form after form, at the places of `mask` (f, ...) in each series' forms."""
            inner: NDArray[Any] = np.full(mask.shape, fill, dtype=numbers.dtype)
            inner[mask] = numbers
            outer: NDArray[Any] = np.full((len(self.kernels), most, *mask.shape[1:]), fill, dtype=numbers.dtype)
            outer[keep] = inner
            return outer

        weights = spread(self.weight, every, 0.0)
        sums = weights.sum(axis=1, keepdims=True)
        arguments |= {
            "samples": np.where(np.isnan(self.samples), np.inf, self.samples),
            "members": spread(self.members, used, -1),
            "weight": weights / np.where(sums > 0, sums, 1.0),
            "coefficient": spread(self.coefficients, used, 0.0),
            "root": spread(self.root, _triangle(used), 0.0),
            "variance": spread(self.variance, every, np.inf),
            "freedom": spread(self.freedom, every, 1.0),
        }
        return {name: value for name, value in arguments.items() if name not in ("forms", "size", "coefficients")}


@dataclass(frozen=True)
class Breaks(Stored):
    """Where the behaviour of b series changes along one parameter, and their functions up to there."""

    rows: Index  # (b,): the series
    axis: Index  # (b,): the parameter
    at: Array  # (b,): its value
    between: Array  # (b, 2): the last value measured below it and the first beyond
    below: PlainColumns
    _sizes = "rows:b axis:b at:b! between:b2!"

    def _fits(self) -> bool:
        fits = len(self.below.kernels) == len(self.rows) == len(np.unique(self.rows))
        return fits and _within(self.axis, 0, len(self.below.parameters) - 1)


@dataclass(frozen=True)
class Columns(PlainColumns):
    """The same of functions some of which change their behaviour."""

    breaks: tuple[Breaks, ...] = ()

    @classmethod
    def of(cls, fitted: Fitted) -> Self:
        """The columns of fitted functions and of those below their breaks."""
        breaks = (
            Breaks(part.rows, part.axis, part.at, part.between, PlainColumns.of(part.fitted)) for part in fitted.below
        )
        return replace(super().of(fitted), breaks=tuple(breaks))

    def _fits(self) -> bool:
        last = len(self.kernels) - 1
        return super()._fits() and all(
            each.below.parameters == self.parameters and _within(each.rows, 0, last) for each in self.breaks
        )


def columns_of(content: Mapping[str, Any], rows: Index) -> dict[str, Any]:
    """Columns of some series (r,), in ascending order, from the plain data of all."""
    forms, size = content["forms"], content["size"]
    form = _stretches(forms, rows)
    term, corner = _stretches(size, form), _stretches(size.astype(np.intp) * (size + 1) // 2, form)
    which = {"weight": form, "variance": form, "freedom": form, "size": form}
    which |= {"members": term, "coefficients": term, "root": corner}
    whole = ("parameters", "space", "terms", "ties", "hidden", "iterations", "breaks", "processes")
    columns: dict[str, Any] = {name: content[name] for name in whole if name in content}
    for name in content.keys() - columns.keys():
        column, places = content[name], which.get(name, rows)
        columns[name] = column[places] if isinstance(column, np.ndarray) else [column[row] for row in places.tolist()]
    if "processes" in content:
        parts = [(stored, np.flatnonzero(np.isin(stored["rows"], rows))) for stored in content["processes"]]
        columns["processes"] = [_some(stored, places, rows) for stored, places in parts if len(places)]
    if "breaks" in content:  # below a break there is none
        parts = [(stored, np.flatnonzero(np.isin(stored["rows"], rows))) for stored in content["breaks"]]
        columns["breaks"] = [_some_broken(stored, places, rows) for stored, places in parts if len(places)]
    return columns


def _some(stored: Mapping[str, Any], places: Index, rows: Index) -> dict[str, Any]:
    """The plain data of a process, of its series `places` alone, which are some of the series `rows`."""
    whole = ("axes", "points", "terms", "domains")
    part = {name: column if name in whole else column[places] for name, column in stored.items()}
    return {**part, "rows": np.searchsorted(rows, stored["rows"][places])}


def _some_broken(stored: Mapping[str, Any], places: Index, rows: Index) -> dict[str, Any]:
    """The plain data of breaks, of its series `places` alone, which are some of the series `rows`."""
    part = {name: stored[name][places] for name in ("axis", "at", "between")}
    below = columns_of(stored["below"], places)
    return {"rows": np.searchsorted(rows, stored["rows"][places]), **part, "below": below}


def _stretches(lengths: NDArray[Any], rows: Index) -> Index:
    """Where what belongs to some rows is, of stretches of so many numbers that follow each other."""
    ends = np.cumsum(lengths, dtype=np.intp)[rows]
    many = lengths[rows].astype(np.intp)
    before = np.cumsum(many) - many
    return np.asarray(np.arange(many.sum()) + np.repeat(ends - many - before, many))


def _filled(count: Index, width: int) -> Mask:
    """The first `count` (n,) of `width` places, (n, width)."""
    return np.arange(width)[None, :] < count[:, None]


def _triangle(used: Mask) -> Mask:
    """What is written of roots (f, q, q): their upper triangles over the terms in use (f, q)."""
    place = np.arange(used.shape[1])
    return (place[:, None] <= place[None, :])[None] & used[:, None, :] & used[:, :, None]


def _within(column: NDArray[Any], low: float, high: float = np.inf) -> bool:
    return bool(((column >= low) & (column <= high)).all())
