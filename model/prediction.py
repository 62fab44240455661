"""Predictions: the answers of a model, as people and machines read them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ranksight.model.answers import Answers

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Prediction:
    """All answers to one question, and what is to be known of the configurations asked for."""

    application: str
    parameters: tuple[str, ...]
    answers: Answers
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data: ``{"schema_version": 1, "notes": [...], "predictions": [...]}``."""
        answers = list(self.answers.to_dicts())
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
        level = f"{self.answers.said.level:.0%} interval"
        heads = [*self.parameters, "kernel", "metric", "value", level, "remark"]
        return table(f"{self.application}: {len(rows)} predictions", heads, rows)

    def table(self) -> pd.DataFrame:
        """One row an answer: the parameters, ``kernel``, ``metric``, ``value``, ``lower``, ``upper``, ``level``,
        ``status``, ``reason``, ``evidence``."""
        return self.answers.table()
