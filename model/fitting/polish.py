"""Nonlinear exponents, polished: ``y = c + sum_k a_k prod_j x_j^(b_kj) log2(x_j)^(l_kj)`` with b free, from the
leading hypothesis on.

A search tries exponents on a grid; where the exponent itself is wanted, with its standard error and its correlation
with the
coefficients, lmfit minimises the relative residuals from the leading hypothesis on (Levenberg and Marquardt, as in
MINPACK).
Never needed for a forecast: neighbours on the grid share its weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError, InsufficientError
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.search.terms import values as term_values
from ranksight.model.search.terms import write_term
from ranksight.model.series.noise import locate
from ranksight.model.series.series import Series

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Polished:
    """A function with free exponents.

    Attributes
    ----------
    names : tuple of str
        Of the p free numbers: ``a0``, ``a1``, ... the coefficients of the terms, the slowest growing first, and
        ``b1_ranks`` the
        exponent of `ranks` in term 1.
    values, errors : (p,)
        Best values and standard errors; errors are NaN where the points do not determine them.
    correlation : (p, p)
    terms : tuple of str
        The terms with their polished exponents.
    residual : float
        Relative root-mean-square residual.
    """

    names: tuple[str, ...]
    values: Array
    errors: Array
    correlation: Array
    terms: tuple[str, ...]
    residual: float


def polish(fitted: Fitted, series: Series, i: int, over_repetitions: str = "auto") -> Polished:
    """Free the exponents of the leading hypothesis of series `i` and fit them with its coefficients.

    Raises
    ------
    InsufficientError
        When there are fewer points than free numbers, or nothing was fitted.
    InputError
        When the series is not the one that was fitted, or a parameter is not positive.
    """
    import lmfit

    if (fitted.kernels[i], fitted.metrics[i]) != (series.kernels[i], series.metrics[i]):
        raise InputError(
            f"series {i} is not the one that was fitted", "give the series that the functions were fitted to"
        )
    leading = fitted.leading(i)
    location = locate(series.values[i : i + 1], over_repetitions)
    use = location.repeats[0] > 0
    x, y = series.points[use], location.values[0, use]
    if (x <= 0).any():
        raise InputError("a parameter is zero or negative", "exponents can be freed for positive parameters only")
    scale = location.scale[0, use]
    parameters = lmfit.Parameters()
    free: list[list[str | None]] = []
    for k, (coefficient, term) in enumerate(leading):
        parameters.add(f"a{k}", value=coefficient)
        free.append([])
        for j in range(len(series.parameters)):
            exponent = float(term[j, 0])
            label = f"b{k}_{j}" if exponent and term[j, 2] >= 0 else None
            if label is not None:
                parameters.add(label, value=exponent, min=-6, max=6)
            free[-1].append(label)
    count = len(parameters)
    if not leading or use.sum() <= count:
        raise InsufficientError(
            f"{int(use.sum())} configurations do not determine {count} numbers of {fitted.kernels[i]!r}",
            "measure more configurations",
        )

    def values(given: lmfit.Parameters) -> Array:
        total = np.zeros(len(x))
        for k, (_, term) in enumerate(leading):
            product = np.full(len(x), given[f"a{k}"].value)
            for j, label in enumerate(free[k]):
                exponent = 0.0 if label is None else given[label].value
                free_of = np.where(term[j, 2] < 0, term[j], [0.0, term[j, 1], term[j, 2]])
                product *= x[:, j] ** exponent * term_values(free_of[None, None], x[:, j : j + 1])[0]
            total += product
        return total

    result = lmfit.minimize(lambda given: (values(given) - y) / scale, parameters, method="leastsq")
    found = result.params
    known = result.covar is not None
    errors = np.array(
        [found[n].stderr if known and found[n].stderr is not None else np.nan for n in found], dtype=float
    )
    correlation = np.full((count, count), np.nan)
    if known:
        spread = np.sqrt(np.diag(result.covar))
        correlation = result.covar / np.outer(spread, spread)
    terms = []
    for k, (_, term) in enumerate(leading):
        polished = term.copy()
        polished[:, 0] = [
            old if label is None else found[label].value for old, label in zip(term[:, 0], free[k], strict=True)
        ]
        terms.append(write_term(polished, series.parameters) or "1")
    readable = {f"b{k}_{j}": f"b{k}_{name}" for k in range(len(leading)) for j, name in enumerate(series.parameters)}
    return Polished(
        tuple(readable.get(n, n) for n in found),
        np.array([found[n].value for n in found]),
        errors,
        correlation,
        tuple(terms),
        float(np.sqrt(np.mean(((values(found) - y) / scale) ** 2))),
    )
