"""Answers of a model: values with their intervals and methods, kept as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.core.units import counted, whole
from ranksight.model.application.breakdown import Refined
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.laws.law import FUNCTION, LAWS, code_of
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


MOST = 4
"""Texts at most in the method of a sum."""
MANY = 1000.0
"""Samples that are not worth a word."""


def starts() -> dict[str, str]:
    """Codes of methods, and how their evidence begins; of several laws the one of largest weight counts."""
    laws = {code_of(law): f"{law} " for law in LAWS if law != FUNCTION}
    return {"sum": "sum of ", **laws, "function": "function of ", "power": "law of power"}


def codes_of(evidence: NDArray[np.object_]) -> NDArray[np.object_]:
    """The code (:func:`starts`) of the method behind each text, in the shape of `evidence`; empty where none is."""
    texts, known = evidence.reshape(-1).tolist(), starts()
    codes = {
        text: next((code for code, start in known.items() if text.startswith(start)), "")
        for text in dict.fromkeys(texts)
    }
    return np.array([codes[text] for text in texts], dtype=object).reshape(evidence.shape)


def evidence_of_series(fitted: Fitted, provenance: Mapping[str, str], refined: Refined) -> NDArray[np.object_]:
    """The method behind each series at each configuration, (s, k)."""
    texts_of_series = [
        f"function of {counted(count, 'configuration')}{_of_samples(few)}, {name} {provenance.get(name, 'measured')}"
        for name, count, few in zip(fitted.metrics, fitted.count.tolist(), fitted.samples.tolist(), strict=True)
    ]
    evidence = np.empty(refined.said.value.shape, dtype=object)
    evidence[:] = np.array(texts_of_series, dtype=object).reshape(-1, 1)
    for index, where, texts, by_function in refined.methods:
        texts = np.where(by_function, np.where(texts == "", "", texts + ": ") + evidence[index], texts)
        evidence[index] = np.where(where, texts, evidence[index])
    return evidence


def _of_samples(number: float) -> str:
    """How many samples each configuration has, where values are made of samples."""
    return f" of about {number:.2g} samples" if number < MANY else ""


def evidence_of_sum(texts: NDArray[np.object_], kernels: Sequence[str], outside: bool) -> NDArray[np.object_]:
    """What the program's value of one metric (k,) comes from, given what each series (s, k) comes from; `outside` says
    that it is the sum of kernels and the time outside them although its own was measured."""
    parts = np.array([kernel != WHOLE for kernel in kernels], dtype=bool)
    if not parts.all() and not (outside and parts.any()):
        return np.asarray(texts[list(kernels).index(WHOLE)], dtype=object)
    texts = texts[parts]
    more = " and the time outside them" if outside else ""
    evidence = np.empty(texts.shape[1], dtype=object)
    # Consecutive configurations mostly have the same method.
    new = np.ones(texts.shape[1], dtype=bool)
    new[1:] = (texts[:, 1:] != texts[:, :-1]).any(axis=0)
    for k in np.flatnonzero(new):
        different = list(dict.fromkeys(texts[:, k].tolist()))[:MOST]
        evidence[k] = f"sum of {counted(len(texts), 'kernel')}{more}: {'; '.join(different)}"
    return np.asarray(evidence[np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))])
