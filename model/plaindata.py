"""Arrays and records as the plain data that JSON can hold, and back from what a file gives.

JSON knows no NaN: a missing number is ``null`` in a file. What is read back may have been damaged or written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ranksight.core.errors import InputError

_DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What is raised where an entry is missing, of another kind, or larger than a number may be."""


def with_gaps(numbers: ArrayLike) -> Any:
    """Numbers of any shape as nested lists, None where one is not finite."""
    array = np.asarray(numbers, dtype=np.float64)
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return plain.tolist()


def rounded(numbers: ArrayLike, digits: int) -> NDArray[np.float64]:
    """Numbers of any shape to so many significant digits, which makes a file short."""
    array = np.asarray(numbers, dtype=np.float64)
    return np.asarray(np.char.mod(f"%.{digits}g", array).astype(np.float64)).reshape(array.shape)


def from_gaps(content: Any) -> NDArray[np.float64]:
    """Numbers from :func:`with_gaps`'s nested lists, NaN where one is missing.

    Raises
    ------
    TypeError, ValueError, OverflowError
        Where it holds another thing than numbers, rows of unequal length, or more than a number may be: to be called
        within :func:`reading`.
    """
    return np.array(content, dtype=np.float64)  # numpy reads None as NaN


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Read an entry of a file; where it cannot be, InputError says that `what` is damaged."""
    try:
        yield
    except _DAMAGE as error:
        raise InputError(f"{what} is damaged: {error}", "fit the model again") from error
