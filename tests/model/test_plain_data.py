"""Arrays as plain data with gaps, and the error for entries that no version wrote."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ranksight.analysis.diagnosis.ceilings import Ceilings
from ranksight.analysis.diagnosis.counted import Counted
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Some, from_gaps, reading, rounded, with_gaps
from ranksight.model.uncertainty.departure import Departure
from ranksight.platforms import load


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3), (2, 2, 2)])
def test_gaps_come_back_as_they_were(shape: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(4).normal(size=shape)
    numbers[numbers > 0.5] = np.nan
    text = json.dumps(with_gaps(numbers), allow_nan=False)
    np.testing.assert_array_equal(from_gaps(json.loads(text)), numbers)


def test_rounding_keeps_digits_and_gaps() -> None:
    found = rounded(np.array([[1 / 3, np.nan], [-2e-17 / 3, 12345.678]]), 4)
    np.testing.assert_array_equal(found, [[0.3333, np.nan], [-6.667e-18, 12350.0]])
    assert rounded(np.zeros((0, 2)), 4).shape == (0, 2)


@pytest.mark.parametrize("damage", [7, {}, "x", [{}], [[1], [1, 2]], 10**400, [10**400]])
@pytest.mark.parametrize("entry", ["departure", "ceilings", "counted"])
def test_what_no_version_wrote_is_reported(entry: str, damage: Any) -> None:
    """Numbers larger than a number may be among it: JSON has no largest."""
    if entry == "departure":
        of: Any = Departure
        given: dict[str, Any] = {"inputs": [[1.0]], "values": damage, "lengths": [1.0] * 2, "scatter": [1.0] * 2}
    elif entry == "ceilings":
        of, given = Ceilings, Ceilings.of(load("generic")).to_dict() | {"shared": damage}
    else:
        of, given = Counted, {"points": [[1.0]], "rows": [["a", "loads_l1", damage]]}
    with pytest.raises(InputError, match=f"'{entry}' (is damaged|does not fit)"):
        of.from_dict(given)


def test_an_error_within_an_entry_is_reported_as_it_is() -> None:
    with pytest.raises(InputError, match="'outer' is damaged: 'b'"), reading("'outer'"):
        {"a": 1}["b"]
    with pytest.raises(InputError, match="^inner"), reading("'outer'"):
        raise InputError("inner")


@dataclass(frozen=True)
class Ends(Some):
    names: tuple[str, ...]
    values: Array
    ends: Array
    most: float

    _sizes = "names:s values:sn>=0 ends:s2! most:>0"


def test_sizes_that_a_class_states_are_those_of_what_is_read() -> None:
    sound = {"names": ["a"], "values": [[0.0, 3.0, 1.0]], "ends": [[-1.0, 2.0]], "most": 1.0}
    assert Ends.from_dict(sound)
    assert not Ends((), np.zeros((0, 3)), np.zeros((0, 2)), 1.0)
    wrong: list[dict[str, Any]] = [{"names": ["a", "b"]}, {"values": [1.0]}, {"values": [[-1.0]]}, {"values": [[None]]}]
    wrong += [{"ends": [[1.0, 2.0, 3.0]]}, {"ends": [[None, 2.0]]}, {"most": 0.0}]
    for each in wrong:
        with pytest.raises(InputError, match="does not fit"):
            Ends.from_dict(sound | each)
