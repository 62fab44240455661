"""Dataclasses in a model's file: each field by its type, and one clear line where it is of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import GenericAlias
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from ranksight.core.errors import InputError
from ranksight.model.plaindata import Stored, built


@dataclass(frozen=True)
class Part(Stored):
    numbers: NDArray[np.float64]

    def _fits(self) -> bool:
        return self.numbers.ndim == 1


@dataclass(frozen=True)
class Whole(Stored):
    names: tuple[str, ...]
    parts: tuple[Part, ...]
    which: NDArray[np.intp]
    truths: NDArray[np.bool_]
    lines: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    more: Part | None = None


WHOLE = Whole(
    ("a", "b"), (Part(np.array([1.0, np.nan])),), np.array([1, 0]), np.array([True, False]), {"a": (1.0, 2.0)}
)
PLAIN = {
    "names": ["a", "b"], "parts": [{"numbers": [1.0, None]}], "which": [1, 0], "truths": [True, False],
    "lines": {"a": [1.0, 2.0]},
}  # fmt: skip


def test_plain_data_and_back() -> None:
    assert WHOLE.to_dict() == PLAIN
    again = Whole.from_dict(PLAIN)
    assert again.to_dict() == PLAIN
    assert (again.names, again.lines, again.more) == (WHOLE.names, WHOLE.lines, None)
    assert again.truths.dtype == bool
    assert Whole.from_dict({**PLAIN, "more": {"numbers": np.ones(2)}}).to_dict()["more"] == {"numbers": [1.0, 1.0]}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"names": 3}, "'whole' is damaged: Expected `array`, got `int`"),
        ({"names": [1]}, "'whole' is damaged: Expected `str`, got `int`"),
        ({"which": [0.5]}, "'whole' is damaged: it holds float64 where int64 belongs"),
        ({"truths": [1, 0]}, "'whole' is damaged: it holds int64 where bool belongs"),
        ({"lines": {"a": [1.0]}}, "'whole' is damaged: Expected `array` of length 2"),
        ({"parts": [{}]}, "'part' is damaged: 'numbers'"),
        ({"parts": [{"numbers": [[1.0]]}]}, "'part' does not fit together"),
        ({"more": ["numbers"]}, "'part' is damaged: it has no entries by name"),
    ],
)
def test_damage_is_named(damage: dict[str, object], said: str) -> None:
    with pytest.raises(InputError) as raised:
        Whole.from_dict({**PLAIN, **damage})
    assert raised.value.what.startswith(said)


def test_arrays_are_known_behind_the_alias_that_numpy_made_of_them() -> None:
    """From numpy 2.5 on ``NDArray[np.float64]`` is an alias of a type statement, of which ``get_origin`` is no array."""
    aliases = pytest.importorskip("typing_extensions")
    scalar = TypeVar("scalar", bound=np.generic)
    array: Any = np.ndarray
    element: Any = np.dtype
    numbers = aliases.TypeAliasType("numbers", array[Any, element[scalar]], type_params=(scalar,))
    for kind in (numbers[np.float64], numbers[np.float64] | None):
        found = built([1.0, None], kind)
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, [1.0, np.nan])


def test_arrays_within_tuples_may_be_named_by_a_type_statement() -> None:
    """As the NDArray of numpy 2.5 is: an object whose ``__value__`` takes the arguments."""

    class Named:
        __value__ = np.ndarray[Any, np.dtype[TypeVar("T", bound=np.generic)]]  # type: ignore[misc]

    kind = tuple[tuple[str, GenericAlias(Named, (np.float64,))], ...]  # type: ignore[misc]
    ((name, values),) = built([["solve", [1.5, None]]], kind)
    assert name == "solve"
    np.testing.assert_array_equal(values, [1.5, np.nan])
