"""Frozen dataclasses with shared methods behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import KW_ONLY, FrozenInstanceError, field, replace
from functools import cached_property
from typing import Any

import pytest

from ranksight.core import records


@records.dataclass(frozen=True)
class Point:
    """Two coordinates and a note."""

    x: float
    y: float = 2.0
    _: KW_ONLY
    note: str = field(default="", compare=False)
    parts: tuple[Any, ...] = field(default_factory=tuple, repr=False)

    @cached_property
    def sum(self) -> float:
        return self.x + self.y


@records.dataclass(frozen=True, slots=True)
class Slotted:
    """One value, in a slot."""

    x: float
    y: float = 2.0


@records.dataclass(frozen=True)
class Further(Point):
    """A point with one more coordinate, which is made of the others."""

    z: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "z", self.x * self.y)


def of_the_library(slots: bool) -> Any:
    """The same classes, made by :mod:`dataclasses`."""
    fields = [("x", float), ("y", float, 2.0)]
    if not slots:
        fields += [("note", str, field(default="", compare=False, kw_only=True))]
        fields += [("parts", tuple, field(default_factory=tuple, repr=False, kw_only=True))]
    return dataclasses.make_dataclass("Slotted" if slots else "Point", fields, frozen=True, slots=slots)


@pytest.mark.parametrize("kind", [Point, Slotted])
def test_they_compare_hash_and_show_as_those_of_the_library(kind: Any) -> None:
    library = of_the_library(kind is Slotted)
    for first, second in (((1.0,), (1.0, 2.0)), ((1.0,), (1.0, 3.0)), ((float("nan"),), (float("nan"),))):
        ours, theirs = [kind(*first), kind(*second)], [library(*first), library(*second)]
        assert (ours[0] == ours[1]) is (theirs[0] == theirs[1])
        assert (hash(ours[0]) == hash(ours[1])) is (hash(theirs[0]) == hash(theirs[1]))
        assert [repr(each) for each in ours] == [repr(each) for each in theirs]
    assert kind(1.0) != library(1.0)
    assert kind(1.0).__eq__(1.0) is NotImplemented
    assert kind.__match_args__ == library.__match_args__
    assert [each.name for each in dataclasses.fields(kind)] == [each.name for each in dataclasses.fields(library)]


def test_what_is_not_compared_does_not_count() -> None:
    assert Point(1.0, note="a") == Point(1.0, note="b")
    assert hash(Point(1.0, note="a")) == hash(Point(1.0, note="b"))
    assert "parts" not in repr(Point(1.0))
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1.0, parts=([],)))


@pytest.mark.parametrize("record", [Point(1.0), Slotted(1.0), Further(2.0, 3.0)])
def test_fields_are_assigned_once(record: Any) -> None:
    for name in ("x", "y", "other"):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(record, name, 5.0)
    with pytest.raises(FrozenInstanceError):
        del record.x
    assert replace(record, x=4.0).x == 4.0
    for made in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert made == record
        with pytest.raises(FrozenInstanceError):
            made.x = 5.0


def test_what_follows_is_kept() -> None:
    assert Point(1.0).sum == 3.0
    assert Further(2.0, 3.0).z == 6.0
    assert Further(2.0, 3.0) != Point(2.0, 3.0)
    with pytest.raises(TypeError):
        Point(1.0, 2.0, "note")  # type: ignore[misc]


def test_a_record_that_holds_itself_is_shown() -> None:
    loop: list[Any] = []
    record = records.dataclass(frozen=True)(type("Loop", (), {"__annotations__": {"inner": "list"}}))(loop)
    loop.append(record)
    assert repr(record) == "Loop(inner=[...])"


def test_methods_of_the_class_stay() -> None:
    @records.dataclass(frozen=True)
    class Named:
        """A class that shows itself."""

        x: int

        def __repr__(self) -> str:
            return "named"

    assert repr(Named(1)) == "named"
    assert Named(1) == Named(1)
