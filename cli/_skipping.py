"""Files that cannot be used are passed over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ranksight.cli._saying import SHOWN, say
from ranksight.core.errors import InputError


class Skips:
    """Passes over what cannot be read and says so at once; with `strict` the first error ends the import.

    Parameters
    ----------
    strict : bool
    refused : sequence of InputError
        What was passed over before.
    """

    def __init__(self, strict: bool, refused: Iterable[InputError] = ()) -> None:
        self.strict = strict
        self.count = 0
        for error in refused:
            self._skip(error)

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Around the reading of one file."""
        try:
            yield
        except InputError as error:
            if self.strict:
                raise
            self._skip(error)

    def _skip(self, error: InputError) -> None:
        self.count += 1
        if self.count <= SHOWN:
            say(f"skipped: {error}")

    def end(self) -> int:
        """How many were passed over; those that were not named are counted in a line."""
        if self.count > SHOWN:
            say(f"{self.count - SHOWN} more skipped")
        return self.count
