"""Arrays and records as the plain data that JSON can hold, and back from what a file gives.

JSON knows no NaN: a missing number is ``null`` in a file. What is read back may have been damaged or written by hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, ClassVar, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ranksight.core.arrays import Array, Index
from ranksight.core.errors import InputError
from ranksight.core.units import finite

_DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, msgspec.ValidationError)
"""What is raised where an entry is missing, of another kind, or larger than a number may be."""


def known(**values: Any) -> dict[str, Any]:
    """Those of some values that are not None, to replace others by."""
    return {name: value for name, value in values.items() if value is not None}


def with_gaps(numbers: ArrayLike) -> Any:
    """Numbers of any shape as nested lists, None where one is not finite."""
    array = np.asarray(numbers, dtype=np.float64)
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return plain.tolist()


def listed(content: Any) -> Any:
    """Plain data of which the arrays have become lists, None where a number is not finite."""
    if isinstance(content, dict):
        return {name: listed(value) for name, value in content.items()}
    if isinstance(content, np.ndarray):
        whole = content.dtype.kind != "f" or bool(np.isfinite(content).all())
        return content.tolist() if whole else with_gaps(content)
    return content


def rounded(numbers: ArrayLike, digits: int) -> Array:
    """Numbers of any shape to so many significant digits, which makes a file short."""
    array = np.asarray(numbers, dtype=np.float64)
    return np.asarray(np.char.mod(f"%.{digits}g", array).astype(np.float64)).reshape(array.shape)


def from_gaps(content: Any) -> Array:
    """Numbers from :func:`with_gaps`'s nested lists, NaN where one is missing; an array of such as it is.

    Raises TypeError, ValueError or OverflowError where it holds another thing than numbers, rows of unequal length, or
    more than a number may be: to be called within :func:`reading`.
    """
    return np.asarray(content, dtype=np.float64)  # numpy reads None as NaN


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Read an entry of a file; where it cannot be, InputError says that `what` is damaged."""
    try:
        yield
    except _DAMAGE as error:
        raise InputError(f"{what} is damaged: {error}", "fit the model again") from error


class Stored:
    """A frozen dataclass that a model's file holds: every field under its name, as its type says."""

    _sizes: ClassVar[str] = ""
    """Sizes of tuples, arrays and numbers, as ``kernels:s values:sn>=0 ends:s2! line:>0``: a letter is the same size
    everywhere, a digit itself; then what numbers are at least, or ``!`` where all of them are finite."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold: lists of numbers, None where one is not finite; no field that is absent."""
        return {name: plain(value) for name, value in self.present().items()}

    def present(self) -> dict[str, Any]:
        """The fields that are there, by name."""
        absent = {each.name: each.default for each in fields(self)}  # type: ignore[arg-type]
        absent = {name: value for name, value in absent.items() if value is None or isinstance(value, Stored)}
        values = {name: getattr(self, name) for name in _fields(type(self))}
        return {name: value for name, value in values.items() if name not in absent or value is not absent[name]}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading(f"'{cls.__name__.lower()}'"):
            if not isinstance(content, Mapping):
                raise TypeError("it has no entries by name")
            kinds = {name: kind for name, (kind, optional) in _fields(cls).items() if name in content or not optional}
            record = cls(**{name: built(content[name], kind) for name, kind in kinds.items()})
            fits = _sized(record) and record._fits()
        if not fits:
            raise InputError(f"'{cls.__name__.lower()}' does not fit together", "fit the model again")
        return record

    def _fits(self) -> bool:
        """Whether the fields have the shapes and ranges that computing with them needs."""
        return True


class Part(Stored):
    """A part of an application's time that its evidence carries.

    What a derived class says of places and configurations; nothing where neither matters to it.
    """

    def placed(self, placement: str | None, ranks_per_node: int | None) -> Self:
        """The same with ranks placed in another way than in the runs, on the memory domains that it has."""
        domains = getattr(self, "domains", None)
        return self if domains is None else replace(self, domains=domains.placed(placement, ranks_per_node))  # type: ignore[type-var]

    def remarks(self, points: Array) -> Sequence[str]:
        """What is to be known of answers at `points` (k, m), in sentences."""
        return ()


def _entries(record: Stored) -> Iterator[tuple[str, str, str]]:
    """Name, letters and least number (``!``, ``0``, ``=1`` or empty) of what a record states the sizes of."""
    for entry in record._sizes.split():
        name, size = entry.split(":")
        letters, _, least = size.partition(">")
        yield name, letters.rstrip("!"), "!" if size.endswith("!") else least


def _sized(record: Stored) -> bool:
    """Whether a record has the sizes that its class states."""
    sizes: dict[str, int] = {}
    for name, letters, least in _entries(record):
        value = getattr(record, name)
        shape = (len(value),) if isinstance(value, tuple) else np.shape(value)
        if len(shape) != len(letters):
            return False
        for letter, size in zip(letters, shape, strict=True):
            if size != (int(letter) if letter.isdigit() else sizes.setdefault(letter, size)):
                return False
        numbers = np.asarray(value) if least else np.zeros(0)
        bound = float(least.removeprefix("=").replace("!", "-inf") or 0)
        low = numbers < bound if least.startswith("=") else numbers <= bound
        if (~np.isfinite(numbers) | low).any():
            return False
    return True


Record = TypeVar("Record", bound=Stored)


def part_of(record: Record, letter: str, rows: Sequence[int] | Index) -> Record:
    """A record with some of what a letter of its sizes counts, such as series."""
    parts: dict[str, Any] = {}
    for name, letters, _ in _entries(record):
        value = getattr(record, name)
        if letter in letters and isinstance(value, tuple):
            parts[name] = tuple(value[row] for row in rows)
        elif letter in letters:
            parts[name] = np.take(value, np.asarray(rows, dtype=np.intp), axis=letters.index(letter))
    return replace(record, **parts)  # type: ignore[type-var]


class Some(Stored):
    """A :class:`Stored` that may hold nothing: false where its first field is empty."""

    def __bool__(self) -> bool:
        return len(getattr(self, next(iter(_fields(type(self)))))) > 0


class Row(Stored):
    """A :class:`Stored` whose values a file has in order, without their names."""

    def to_dict(self) -> list[Any]:  # type: ignore[override]
        """The fields in order."""
        return [plain(getattr(self, name)) for name in _fields(type(self))]

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading(f"'{cls.__name__.lower()}'"):
            return super().from_dict(dict(zip(_fields(cls), content, strict=True)))


_FIELDS: dict[Any, dict[str, tuple[Any, bool]]] = {}


def _fields(stored: Any) -> dict[str, tuple[Any, bool]]:
    """The type of each field of a class, and whether a file may lack it."""
    if stored not in _FIELDS:
        kinds = get_type_hints(stored)
        defaults = {each.name: (each.default, each.default_factory) for each in fields(stored)}
        _FIELDS[stored] = {name: (kinds[name], defaults[name] != (MISSING, MISSING)) for name in defaults}
    return _FIELDS[stored]


def plain(value: Any) -> Any:
    """A field of a :class:`Stored` as plain data that JSON can hold."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, frozenset):
        return sorted(value)
    return [plain(each) for each in value] if isinstance(value, tuple) else listed(value)


def built(content: Any, kind: Any) -> Any:
    """What :func:`plain` made of a value of type `kind`.

    Raises ValueError, TypeError, LookupError, msgspec.ValidationError or InputError where it is another thing: to be
    called within :func:`reading`.
    """
    kind = _resolved(kind)
    parts = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        return None if content is None and NoneType in parts else built(content, parts[0])
    if get_origin(kind) is np.ndarray:
        return _array(content, np.dtype(get_args(parts[1])[0]))
    if get_origin(kind) is tuple and _composed(kind):
        each = [parts[0]] * len(content) if parts[-1] is Ellipsis else parts
        return tuple(built(one, of) for one, of in zip(content, each, strict=True))
    if hasattr(kind, "from_dict"):
        return content if isinstance(content, kind) else kind.from_dict(content)
    if is_dataclass(kind) and isinstance(content, kind):  # type: ignore[arg-type]
        return content
    if kind is int and isinstance(content, float) and content.is_integer():
        return int(content)
    if kind is float:
        return msgspec.convert(_number(content), kind)
    if get_origin(kind) is tuple and set(parts) <= {float, ...}:
        return msgspec.convert([_number(each) for each in content], kind)
    return msgspec.convert(listed(content), kind)


def _resolved(kind: Any) -> Any:
    """What a type statement stands for, as the NDArray of numpy 2.5 is one; other types as they are."""
    alias = getattr(get_origin(kind), "__value__", None)
    return kind if alias is None else alias[get_args(kind)]


def _composed(kind: Any) -> bool:
    """Whether values of a type hold arrays or what is built by its own type."""
    kind = _resolved(kind)
    composed = hasattr(kind, "from_dict") or is_dataclass(kind) or get_origin(kind) is np.ndarray
    return composed or any(_composed(part) for part in get_args(kind))


def _number(content: Any) -> Any:
    """A number, NaN where it is missing."""
    return math.nan if content is None else content


def _array(content: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Numbers as an array; truth values and whole numbers have to be such."""
    if dtype.kind == "f":
        return from_gaps(content)
    array = np.asarray(content)
    same = not array.size or (array.dtype.kind == "b") == (dtype.kind == "b")
    with np.errstate(invalid="ignore"):
        typed = array.astype(dtype)
    if not same or (array != typed).any():
        raise ValueError(f"it holds {array.dtype} where {dtype} belongs")
    return typed
