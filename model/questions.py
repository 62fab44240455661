"""What a model is asked: values of its parameters, kernels and metrics by name."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.dims import MOST_RANKS
from ranksight.core.errors import InputError, QuestionError, meant

MOST_ANSWERS = 10_000_000
NO_CLOCK = "fit with --clock HZ, or with --platform NAME of the machine that was measured: time = cycles / clock"
"""What helps where cycles were counted, no time was measured, and no clock is known."""


def combinations(parameters: Sequence[str], training: Array, values: Mapping[str, float | Sequence[float]]) -> Array:
    """All combinations of the parameters' values, (k, m); a value given twice is asked once.

    A parameter that took one value in `training` (n, m) may be left out. Raises InputError when a parameter is unknown,
    has no value (QuestionError) or one that is not finite, or there are too many combinations.
    """
    unknown = [name for name in values if name not in parameters]
    if unknown:
        raise InputError(
            f"the model has no parameter {', '.join(unknown)}",
            meant(unknown[0], parameters) or f"its parameters are {', '.join(parameters)}",
        )
    axes = []
    for at, name in enumerate(parameters):
        wanted = values.get(name)
        if wanted is None:
            seen = np.unique(training[:, at])
            if len(seen) != 1:
                raise QuestionError(
                    f"no value is given for the parameter {name}", f"give --{name} VALUE, or {name}=VALUE in Python"
                )
            wanted = float(seen[0])
        axes.append(_numbers(name, wanted))
    if np.prod([float(len(axis)) for axis in axes]) > MOST_ANSWERS:
        raise InputError("too many combinations are asked for", "ask for fewer values at once")
    return np.array(list(itertools.product(*axes)), dtype=np.float64).reshape(-1, len(parameters))


def above_zero(parameters: Sequence[str], training: Array, points: Array) -> None:
    """InputError where a parameter that was above zero in all runs, `training` (n, m), is asked at zero or below in
    `points` (k, m): no program runs there."""
    for name, measured, asked in zip(parameters, training.min(axis=0), points.min(axis=0), strict=True):
        if asked <= 0 < measured:
            raise InputError(f"{name} is asked at {asked:g}, and was above zero in all runs", "give a value above zero")


def whole_ranks(parameters: Sequence[str], points: Array, what: str, remedy: str) -> None:
    """InputError where `points` (n, m) have no whole number of ranks from 1 to :data:`MOST_RANKS`; `what` has a place
    for the first such number."""
    if "ranks" not in parameters:
        return
    ranks = points[:, parameters.index("ranks")]
    bad = ranks[~((ranks >= 1) & (ranks == np.round(ranks)))]
    if len(bad):
        raise InputError(what.format(f"{bad[0]:g}"), remedy)
    if len(more := ranks[ranks > MOST_RANKS]):
        raise InputError(what.format(f"{more[0]:g}"), f"give {MOST_RANKS:.0f} at most")


def _numbers(name: str, content: Any) -> list[float]:
    try:
        numbers = np.atleast_1d(np.asarray(content, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        numbers = np.full(1, np.nan)
    if not numbers.size or not np.isfinite(numbers).all() or numbers.ndim > 1:
        what = f"parameter {name} is asked at {content!r}"
        raise InputError(what, f"give {name} a finite number or a plain list of them, such as {name}=[8, 16]")
    return list(dict.fromkeys(float(x) for x in numbers))


def known(kind: str, wanted: Sequence[str], held: Sequence[str]) -> None:
    """InputError with the nearest names where one of `wanted` is not among `held`."""
    for name in wanted:
        if name not in held:
            near = difflib.get_close_matches(name, dict.fromkeys(held), n=3)
            listed = ", ".join(near or list(dict.fromkeys(held))[:8])
            remedy = f"{'nearest' if near else 'it has'}: {listed}"
            clockless = kind == "metric" and name == "time" and "cycles" in held
            raise InputError(f"the model has no {kind} {name!r}", NO_CLOCK if clockless else remedy)
