"""Command lines that are shown to be typed: every word is quoted, as names of files and parameters are anybody's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def shell_line(*words: object) -> str:
    """The words as a shell takes them."""
    import shlex

    return shlex.join(map(str, words))


def options(values: Mapping[str, float | Iterable[float]]) -> list[str]:
    """Words that give each parameter its values: ``--ranks``, ``1,2,4``."""
    words = []
    for name, given in values.items():
        several = given if isinstance(given, Iterable) else (given,)
        words += [f"--{name}", ",".join(map(_exact, several))]
    return words


def _exact(value: float) -> str:
    """The number so that reading it gives the same."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))
