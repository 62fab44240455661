"""Formulas of the parameters that a user gives: which names they may hold, and that they are positive where asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.formula import Formula


def check_names(formula: Formula, known: Sequence[str], what: str, constant: bool = False) -> None:
    """Refuse a formula of other names than those `known`, or of none unless a `constant` makes sense.

    Raises InputError saying of `what`, and of which parameters it may be.
    """
    unknown = [name for name in formula.names if name not in known]
    if unknown or not (formula.names or constant):
        names = ", ".join(known) or ("numbers alone" if constant else "none")
        raise InputError(
            f"{what} = {formula.text} is of {', '.join(unknown) or 'no parameter'}", f"write a formula in {names}"
        )


def evaluate(formula: Formula, points: Array, parameters: Sequence[str], what: str, least: float = 0.0) -> Array:
    """Values of a formula at `points` (k, m) of the `parameters`: above zero, and `least` or more.

    Raises InputError saying of `what`, and where it is not so.
    """
    columns = {name: points[:, at] for at, name in enumerate(parameters)}
    value = np.broadcast_to(formula(columns), len(points)).astype(np.float64)
    bad = np.flatnonzero(~(np.isfinite(value) & (value > 0) & (value >= least)))
    if len(bad):
        where = ", ".join(f"{name} = {columns[name][bad[0]]:g}" for name in parameters)
        bound = f"{least:g} or more" if least else "above zero"
        raise InputError(
            f"{what} = {formula.text} is {value[bad[0]]:g} at {where}", f"correct the formula: it has to be {bound}"
        )
    return value
