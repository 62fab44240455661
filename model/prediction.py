"""Predictions: the answers of a model, as people and machines read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ranksight.model.forecast import OK, Forecast

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1
_COLUMNS = ("kernel", "metric", "value", "lower", "upper", "level", "status", "reason", "evidence")


@dataclass(frozen=True, slots=True)
class Answer:
    """One value asked for.

    Attributes
    ----------
    configuration : mapping of str to float
    kernel : str or None
        None for the whole program.
    metric : str
    value, lower, upper : float
        In the metric's unit; NaN where there is none.
    level : float
        Probability of the interval.
    status : int
        Number of a reason (:mod:`ranksight.model.forecast`); 0 is ok.
    reason : str
    form : float
        Share of the variance that comes from not knowing the form; NaN for sums.
    evidence : str
        What carried it: the measurements, and the equation where it is not a function of the parameters alone.
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

    @classmethod
    def of(
        cls,
        configuration: Mapping[str, float],
        kernel: str | None,
        metric: str,
        forecast: Forecast,
        row: int,
        k: int,
        evidence: str = "",
    ) -> Answer:
        """The answer of series `row` at the `k`-th configuration of a forecast."""
        return cls(
            configuration,
            kernel,
            metric,
            float(forecast.value[row, k]),
            float(forecast.lower[row, k]),
            float(forecast.upper[row, k]),
            forecast.level,
            int(forecast.status[row, k]),
            str(forecast.reason[row, k]),
            float(forecast.form[row, k]),
            evidence,
        )

    @property
    def ok(self) -> bool:
        """Whether the evidence carries the answer."""
        return self.status == OK

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as ``ranksight predict --format json`` prints it."""
        return {
            "configuration": {name: _number(value) for name, value in self.configuration.items()},
            "kernel": self.kernel,
            "metric": self.metric,
            "value": _finite(self.value),
            "interval": [_finite(self.lower), _finite(self.upper)],
            "level": self.level,
            "status": "ok" if self.ok else "insufficient",
            "reason": self.reason,
            "uncertainty": {"form": _finite(self.form), "noise": _finite(1 - self.form)},
            "evidence": self.evidence,
        }


@dataclass(frozen=True)
class Prediction:
    """All answers to one question, and what is to be known of the configurations asked for."""

    application: str
    parameters: tuple[str, ...]
    answers: tuple[Answer, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data: ``{"schema_version": 1, "notes": [...], "predictions": [...]}``."""
        answers = [answer.to_dict() for answer in self.answers]
        return {"schema_version": SCHEMA_VERSION, "notes": list(self.notes), "predictions": answers}

    def _repr_html_(self) -> str:
        """An answer a row, for notebooks."""
        from ranksight._html import table
        from ranksight.metrics import metric

        rows = []
        for answer in self.answers:
            unit = metric(answer.metric)
            known = math.isfinite(answer.value)
            rows.append(
                [
                    *(f"{value:g}" for value in answer.configuration.values()),
                    answer.kernel or "whole program",
                    answer.metric,
                    unit.format(answer.value) if known else "",
                    f"{unit.format(answer.lower)} to {unit.format(answer.upper)}" if known else "",
                    "" if answer.ok else f"insufficient: {answer.reason}",
                ]
            )
        level = f"{self.answers[0].level:.0%} interval" if self.answers else "interval"
        heads = [*self.parameters, "kernel", "metric", "value", level, "remark"]
        return table(f"{self.application}: {len(rows)} predictions", heads, rows)

    def table(self) -> pd.DataFrame:
        """One row an answer: the parameters, ``kernel``, ``metric``, ``value``, ``lower``, ``upper``, ``level``,
        ``status``, ``reason``, ``evidence``."""
        import pandas as pd

        return pd.DataFrame(
            [
                {
                    **answer.configuration,
                    "kernel": answer.kernel,
                    "metric": answer.metric,
                    "value": answer.value,
                    "lower": answer.lower,
                    "upper": answer.upper,
                    "level": answer.level,
                    "status": "ok" if answer.ok else "insufficient",
                    "reason": answer.reason,
                    "evidence": answer.evidence,
                }
                for answer in self.answers
            ],
            columns=[*self.parameters, *_COLUMNS],
        )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(value: float) -> float | int:
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else value
