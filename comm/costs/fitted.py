"""The papers' fitted forms of communication time, where it was measured.

Point-to-point ``t = a s + b``; collectives ``t = a log2 P + b s + c`` (Ding et al. 2018; Calotoiu et al. 2013).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ranksight.comm.costs.collective import checked
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.records import dataclass


@dataclass(frozen=True, slots=True)
class FittedCost:
    """A fitted form."""

    names: tuple[str, ...]  # ``("s", "1")`` or ``("log2 P", "s", "1")``: what each coefficient multiplies
    coefficients: tuple[float, ...]  # none negative; seconds, or seconds per byte
    errors: tuple[float, ...]  # standard errors; NaN for a coefficient that the bound at 0 holds
    residual: float  # residual standard deviation in seconds
    points: int  # measurements that were fitted

    @property
    def formula(self) -> str:
        """The form with its coefficients, seconds of P ranks and n bytes: s, which the papers write, is the second."""
        terms = [
            f"{value:.4g}" + ("" if name == "1" else f" {'n' if name == 's' else name}")
            for name, value in zip(self.names, self.coefficients, strict=True)
            if value > 0
        ]
        return "t = " + (" + ".join(terms) or "0")

    def __call__(self, ranks: ArrayLike, size: ArrayLike) -> Array:
        """Seconds at the broadcast `ranks` and `size` (B)."""
        ranks, size = checked(ranks, size)
        return np.asarray(_design(self.names, ranks, size) @ np.asarray(self.coefficients))


def fit_point_to_point(size: ArrayLike, seconds: ArrayLike) -> FittedCost:
    """Fit ``t = a s + b`` by least squares with ``a, b >= 0``; see :func:`fit_collective`."""
    return _fit(("s", "1"), np.ones_like(np.asarray(size, dtype=float)), size, seconds)


def fit_collective(ranks: ArrayLike, size: ArrayLike, seconds: ArrayLike) -> FittedCost:
    """Fit ``t = a log2 P + b s + c`` by least squares with no coefficient negative.

    `ranks`, `size`, `seconds`: one value a measurement: ranks of the communicator, bytes, seconds of one call. Raises
    InputError when the lengths differ or a value is not finite; InsufficientError when the measurements do not
    determine the coefficients (too few, or ranks or sizes that do not vary).
    """
    return _fit(("log2 P", "s", "1"), ranks, size, seconds)


def fit_identifiable(ranks: ArrayLike, size: ArrayLike, seconds: ArrayLike) -> FittedCost:
    """Fit the largest part of ``t = a log2 P + b s + c`` that the measurements determine; see :func:`fit_collective`.

    Without two sizes there is no ``b``, without two numbers of ranks no ``a``; what is left is the constant. Raises
    InputError as :func:`fit_collective`; InsufficientError when there is a single measurement.
    """
    for names in (("log2 P", "s", "1"), ("log2 P", "1"), ("s", "1")):
        try:
            return _fit(names, ranks, size, seconds)
        except InsufficientError:
            continue
    return _fit(("1",), ranks, size, seconds)


def _design(names: tuple[str, ...], ranks: ArrayLike, size: ArrayLike) -> Array:
    ranks, size = np.broadcast_arrays(np.asarray(ranks, dtype=float), np.asarray(size, dtype=float))
    columns = {"log2 P": np.log2(ranks), "s": size, "1": np.ones(size.shape)}
    return np.stack([columns[name] for name in names], axis=-1)


def _fit(names: tuple[str, ...], ranks: ArrayLike, size: ArrayLike, seconds: ArrayLike) -> FittedCost:
    time = np.asarray(seconds, dtype=float).ravel()
    ranks, size = checked(np.ravel(ranks), np.ravel(size))
    if not len(time) == len(size) or not bool(np.isfinite(time).all()):
        raise InputError("measured times, ranks and sizes differ in number, or a time is not finite")
    matrix = _design(names, ranks, size)
    scale = np.maximum(np.abs(matrix).max(axis=0, initial=0.0), np.finfo(float).tiny)
    if len(time) <= len(names) or int(np.linalg.matrix_rank(matrix / scale)) < len(names):
        raise InsufficientError(
            f"{len(time)} measurements do not determine the coefficients of {', '.join(names)}",
            f"measure more than {len(names)} points of other sizes" + (" and ranks" if len(names) > 2 else ""),
        )
    unit = max(float(np.abs(time).max()), np.finfo(float).tiny)
    from scipy.optimize import nnls  # takes long to import, and few commands fit costs

    found, _ = nnls(matrix / scale, time / unit)
    free = found > 0
    rest = time / unit - matrix / scale @ found
    variance = float(rest @ rest) / (len(time) - int(free.sum()))
    errors = np.full(len(names), np.nan)
    if bool(free.any()):
        kept = (matrix / scale)[:, free]
        errors[free] = np.sqrt(np.diag(np.linalg.inv(kept.T @ kept)) * variance)
    return FittedCost(
        names,
        tuple(float(value) for value in found / scale * unit),
        tuple(float(value) for value in errors / scale * unit),
        float(np.sqrt(variance) * unit),
        len(time),
    )
