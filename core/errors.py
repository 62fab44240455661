"""Errors that a user can act on.

Every error derives from :class:`RanksightError` and carries the exit code of the command line; it is raised where the
fault is found, with what was found, where, and what to do, and caught once, in :mod:`ranksight.cli`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

MANY = 15
"""Names that are listed where none is near."""


def meant(name: str, known: Iterable[str]) -> str:
    """``did you mean size?`` where `name` is near to some of those `known`; empty otherwise."""
    import difflib  # an error alone needs it

    # Capitals and signs are what people forget.
    plain = {each.casefold().replace("_", "-"): each for each in known}
    near = difflib.get_close_matches(name.casefold().replace("_", "-"), plain, n=3, cutoff=0.66)
    return f"did you mean {' or '.join(plain[each] for each in near)}?" if near else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """What to say of a name that is not among those `known`: the names it may be meant for, or the first of all."""
    names = list(dict.fromkeys(known))
    more = f", and {len(names) - MANY} more" if len(names) > MANY else ""
    return meant(name, names) or (f"known: {', '.join(names[:MANY])}{more}" if names else "")


@contextmanager
def readable(path: object, remedy: str = "") -> Iterator[None]:
    """Read `path`; InputError where the system does not let it be read."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{error.filename or path} cannot be read: {error.strerror or error}", remedy) from error


@contextmanager
def writable(path: object, remedy: str = "name a folder that can be written") -> Iterator[None]:
    """Write `path`; InputError where the system does not let it be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}", remedy) from error


class RanksightError(Exception):
    """Root of all errors of this package.

    `what`: what was found, and where (file and line where there is one). `remedy`: what to do about it.
    """

    exit_code = 1

    def __init__(self, what: str, remedy: str = "") -> None:
        self.what = " ".join(what.split())
        self.remedy = " ".join(remedy.split())
        super().__init__(f"{self.what}; {self.remedy}" if self.remedy else self.what)


class InputError(RanksightError):
    """Bad input: a file, a value or a folder that cannot be used (exit code 1)."""


class QuestionError(InputError):
    """A question lacks a value that the model needs: on the command line, an option is missing (exit code 2)."""

    exit_code = 2


class ContractError(InputError):
    """What a reader or collector gave is not what its protocol says: the fault is its own, not the user's file's."""


class ToolError(RanksightError):
    """A program that is needed is missing, does not work, or failed (exit code 1)."""


class UsageError(RanksightError):
    """The command line is off (exit code 2)."""

    exit_code = 2


class InsufficientError(RanksightError):
    """The data are insufficient for an answer (exit code 4)."""

    exit_code = 4
