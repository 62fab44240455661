"""Messages of one kind, the first few printed, and files that cannot be used passed over."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ranksight.errors import InputError

SHOWN = 10
"""Messages of one kind that are printed; the others are counted."""


def tell(what: str, messages: Iterable[str], kind: str) -> None:
    """Print the first of `messages` on standard error, each after `what`, and how many of the `kind` there are more."""
    texts = list(messages)
    for text in texts[:SHOWN]:
        print(f"ranksight: {what}: {text}", file=sys.stderr)
    if len(texts) > SHOWN:
        print(f"ranksight: {len(texts) - SHOWN} more {kind}", file=sys.stderr)


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
            print(f"ranksight: skipped: {error}", file=sys.stderr)

    def end(self) -> int:
        """How many were passed over; those that were not named are counted in a line."""
        if self.count > SHOWN:
            print(f"ranksight: {self.count - SHOWN} more skipped", file=sys.stderr)
        return self.count
