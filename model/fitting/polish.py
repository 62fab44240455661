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
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError, InsufficientError
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.search.terms import values as term_values
from ranksight.model.search.terms import write_term
from ranksight.model.series.noise import locate
from ranksight.model.series.series import Series

if TYPE_CHECKING:
    import lmfit

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


@dataclass(frozen=True)
class _Form:
    """A hypothesis with free exponents: its terms (m, 3) and their coefficients, and the name of each free exponent."""

    terms: list[tuple[float, Array]]
    free: list[list[str | None]]

    @classmethod
    def of(cls, terms: list[tuple[float, Array]]) -> _Form:
        """Free the exponents that are not zero, except those of process grids."""
        free = [
            [f"b{k}_{j}" if factor[0] and factor[2] >= 0 else None for j, factor in enumerate(term)]
            for k, (_, term) in enumerate(terms)
        ]
        return cls(terms, free)

    def start(self) -> lmfit.Parameters:
        """The free numbers as the hypothesis has them."""
        import lmfit

        parameters = lmfit.Parameters()
        for k, (coefficient, term) in enumerate(self.terms):
            parameters.add(f"a{k}", value=coefficient)
            for label, exponent in zip(self.free[k], term[:, 0].tolist(), strict=True):
                if label is not None:
                    parameters.add(label, value=exponent, min=-6, max=6)
        return parameters

    def values(self, given: lmfit.Parameters, x: Array) -> Array:
        """The function (n,) at `x` (n, m)."""
        total = np.zeros(len(x))
        for k, (_, term) in enumerate(self.terms):
            product = np.full(len(x), given[f"a{k}"].value)
            for j, label in enumerate(self.free[k]):
                exponent = 0.0 if label is None else given[label].value
                free_of = np.where(term[j, 2] < 0, term[j], [0.0, term[j, 1], term[j, 2]])
                product *= x[:, j] ** exponent * term_values(free_of[None, None], x[:, j : j + 1])[0]
            total += product
        return total

    def written(self, given: lmfit.Parameters, parameters: tuple[str, ...]) -> tuple[str, ...]:
        """The terms as people read them."""
        written = []
        for (_, term), labels in zip(self.terms, self.free, strict=True):
            polished = term.copy()
            polished[:, 0] = [
                old if label is None else given[label].value for old, label in zip(term[:, 0], labels, strict=True)
            ]
            written.append(write_term(polished, parameters) or "1")
        return tuple(written)


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
    location = locate(series.values[i : i + 1], over_repetitions)
    use = location.repeats[0] > 0
    x, y = series.points[use], location.values[0, use]
    if (x <= 0).any():
        raise InputError("a parameter is zero or negative", "exponents can be freed for positive parameters only")
    scale = location.scale[0, use]
    form = _Form.of(fitted.leading(i))
    start = form.start()
    count = len(start)
    if not count or use.sum() <= count:
        raise InsufficientError(
            f"{int(use.sum())} configurations do not determine {count} numbers of {fitted.kernels[i]!r}",
            "measure more configurations",
        )

    result = lmfit.minimize(lambda given: (form.values(given, x) - y) / scale, start, method="leastsq")
    found = result.params
    known = result.covar is not None
    errors = np.array(
        [found[n].stderr if known and found[n].stderr is not None else np.nan for n in found], dtype=float
    )
    correlation = np.full((count, count), np.nan)
    if known:
        spread = np.sqrt(np.diag(result.covar))
        correlation = result.covar / np.outer(spread, spread)
    readable = {f"b{k}_{j}": f"b{k}_{name}" for k in range(len(form.terms)) for j, name in enumerate(series.parameters)}
    return Polished(
        tuple(readable.get(n, n) for n in found),
        np.array([found[n].value for n in found]),
        errors,
        correlation,
        form.written(found, series.parameters),
        float(np.sqrt(np.mean(((form.values(found, x) - y) / scale) ** 2))),
    )
