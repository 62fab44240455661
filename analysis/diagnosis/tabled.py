"""Tables of a diagnosis: made when they are first asked for, from what a model's file keeps of the measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from ranksight.core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Make = Callable[[Any], "pd.DataFrame"]


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Read what the model's file keeps of the measurements, which others may have written."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"'diagnosis' of the model is damaged or of another version, at {name}", "fit the model again"
        ) from error


def tabled(make: Make) -> Make:
    """A table that is made when it is first asked for."""

    @wraps(make)
    def table(self: Any) -> pd.DataFrame:
        made: dict[Make, pd.DataFrame] = self._made
        if make not in made:
            made[make] = make(self)
        return made[make].copy()

    return table
