"""Answers of a model: values with their intervals and methods, kept as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Mask
from ranksight.core.units import whole
from ranksight.model.evidence import codes_of
from ranksight.model.uncertainty.forecast import OK, Forecast

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Answer:
    """One value asked for.

    Attributes
    ----------
    kernel : str or None
        None for the whole program.
    value, lower, upper : float
        In the metric's unit; NaN where there is none.
    level : float
        Probability of the interval.
    status : int
        Number of a reason (:mod:`ranksight.model.uncertainty.forecast`); 0 is ok.
    form : float
        Share of the variance that comes from not knowing the form; NaN for sums.
    evidence : str
        The method: the measurements, and the equation where it is not a function of the parameters alone.
    """

    configuration: Mapping[str, float]
    kernel: str | None
    metric: str
    value: float
    lower: float
    upper: float
    level: float
    status: int
    reason: str
    form: float
    evidence: str = ""

    @property
    def ok(self) -> bool:
        """Whether the data suffice for the answer."""
        return self.status == OK


@dataclass(frozen=True, eq=False)
class Answers(Sequence[Answer]):
    """The answers to r questions at each of k configurations, one after the other; each made when it is looked at."""

    parameters: tuple[str, ...]
    points: Array  # (k, m)
    kernels: NDArray[np.object_]  # (r,): none for the whole program
    metrics: NDArray[np.object_]  # (r,)
    said: Forecast  # of r rows at k points
    evidence: NDArray[np.object_]  # (r, k)

    def __len__(self) -> int:
        return len(self.kernels) * len(self.points)

    @overload
    def __getitem__(self, index: int) -> Answer: ...

    @overload
    def __getitem__(self, index: slice) -> list[Answer]: ...

    def __getitem__(self, index: int | slice) -> Answer | list[Answer]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        k, row = divmod(at, len(self.kernels))
        forecast = self.said
        return Answer(
            dict(zip(self.parameters, self.points[k].tolist(), strict=True)),
            self.kernels[row],
            self.metrics[row],
            float(forecast.value[row, k]),
            float(forecast.lower[row, k]),
            float(forecast.upper[row, k]),
            forecast.level,
            int(forecast.status[row, k]),
            str(forecast.reason[row, k]),
            float(forecast.form[row, k]),
            self.evidence[row, k],
        )

    @property
    def ok(self) -> Mask:
        """Whether the data suffice for each answer."""
        return np.asarray(_flat(self.said.status) == OK)

    @cached_property
    def columns(self) -> dict[str, NDArray[Any]]:
        """A column (n,) for each parameter, then ``kernel``, ``metric``, ``value``, ``lower``, ``upper``, ``level``,
        ``status``, ``reason``, ``method``, ``evidence``."""
        count, rows = len(self.points), len(self.kernels)
        forecast = self.said
        return {
            **{name: np.repeat(self.points[:, at], rows) for at, name in enumerate(self.parameters)},
            "kernel": np.tile(self.kernels, count),
            "metric": np.tile(self.metrics, count),
            "value": _flat(forecast.value),
            "lower": _flat(forecast.lower),
            "upper": _flat(forecast.upper),
            "level": np.full(count * rows, forecast.level),
            "status": np.where(self.ok, "ok", "insufficient").astype(object),
            "reason": _flat(forecast.reason.astype(object)),
            "method": _flat(codes_of(self.evidence)),
            "evidence": _flat(self.evidence),
        }

    def table(self) -> pd.DataFrame:
        """:attr:`columns` as a table."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def to_dicts(self) -> Iterator[dict[str, Any]]:
        """Each as plain data, as ``ranksight predict --format json`` prints it."""
        form = _flat(self.said.form)
        numbers = [
            known(column) for column in (*(self.columns[n] for n in ("value", "lower", "upper")), form, 1 - form)
        ]
        texts = [self.columns[name].tolist() for name in ("kernel", "metric", "status", "reason", "method", "evidence")]
        places = [dict(zip(self.parameters, map(whole, point), strict=True)) for point in self.points.tolist()]
        rows, level = len(self.kernels), self.said.level
        columns = zip(*texts, *numbers, strict=True)
        for at, (kernel, metric, status, reason, method, evidence, value, low, high, share, rest) in enumerate(columns):
            yield {
                "configuration": places[at // rows],
                "kernel": kernel,
                "metric": metric,
                "value": value,
                "interval": [low, high],
                "level": level,
                "status": status,
                "reason": reason,
                "uncertainty": {"form": share, "noise": rest},
                "method": method,
                "evidence": evidence,
            }


def _flat(array: NDArray[Any]) -> NDArray[Any]:
    """What is (r, k) as (k * r,), all answers at one configuration together."""
    return array.T.reshape(-1)


def known(column: Array) -> list[float | None]:
    """Numbers, and None for those that are none."""
    plain: list[float | None] = column.tolist()
    for at in np.flatnonzero(~np.isfinite(column)).tolist():
        plain[at] = None
    return plain
