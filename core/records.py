"""Frozen dataclasses whose methods are shared: declaring one takes a tenth of the time.

:func:`dataclasses.dataclass` compiles six functions for every frozen class. With 200 classes that was half of what
loading the model took. Here the constructor is compiled when it is first called, which most commands do with a tenth of
the classes, and the other methods are one for all.
"""

from __future__ import annotations

import dataclasses
from dataclasses import FrozenInstanceError, field
from functools import cache, partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]


def _frozen(cls: type | None = None, /, *, frozen: bool = False, **options: bool) -> Any:
    """The class as a dataclass: :func:`dataclasses.dataclass`, with shared methods where it is frozen.

    Equality, hash and representation are those of the standard library. A field may be assigned once, by the
    constructor; FrozenInstanceError afterwards.
    """
    if cls is None:
        return partial(_frozen, frozen=frozen, **options)
    if not frozen or not options.keys() <= {"slots", "kw_only"}:
        return dataclasses.dataclass(cls, frozen=frozen, **options)
    made: type = dataclasses.dataclass(cls, init=False, eq=False, repr=False, **options)
    if "__init__" not in vars(made):
        made.__init__ = _Constructor(made)  # type: ignore[misc]
    slots = {"__setattr__": _assign_slot} if options.get("slots") else {}
    for name, method in {**_SHARED, **slots}.items():
        if name not in vars(made):
            setattr(made, name, method)
    return made


class _Constructor:
    """The constructor of a class, in whose place it is until somebody looks it up."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __get__(self, record: object | None, kind: type) -> Any:
        """The compiled constructor, bound to the record."""
        fields = dataclasses.fields(self.kind)
        given = [
            (
                each.name,
                Any,
                field(default=each.default, default_factory=each.default_factory, init=each.init, kw_only=each.kw_only),
            )
            for each in fields
        ]
        content = {"__doc__": self.kind.__doc__} | (
            {"__post_init__": None} if hasattr(self.kind, "__post_init__") else {}
        )
        like = dataclasses.make_dataclass(self.kind.__name__, given, namespace=content, eq=False, repr=False)
        made = vars(like)["__init__"]
        made.__qualname__, made.__module__ = f"{self.kind.__qualname__}.__init__", self.kind.__module__
        made.__annotations__ = {each.name: each.type for each in fields if each.init} | {"return": None}
        type.__setattr__(self.kind, "__init__", made)
        return made if record is None else made.__get__(record, kind)


@cache
def _names(kind: type, flag: str) -> tuple[str, ...]:
    """The fields of a class that are compared, or shown."""
    return tuple(field.name for field in dataclasses.fields(kind) if getattr(field, flag))


def _compared(record: Any) -> tuple[Any, ...]:
    return tuple([getattr(record, name) for name in _names(record.__class__, "compare")])


def _equal(self: Any, other: object) -> bool:
    return _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_compared(self))


@recursive_repr()
def _shown(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _names(self.__class__, "repr"))
    return f"{self.__class__.__qualname__}({shown})"


def _assign(self: Any, name: str, value: object) -> None:
    if name in self.__dict__ or name not in self.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _assign_slot(self: Any, name: str, value: object) -> None:
    if hasattr(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED = {"__eq__": _equal, "__hash__": _hash, "__repr__": _shown, "__setattr__": _assign, "__delattr__": _delete}

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _frozen
