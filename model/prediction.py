"""Predictions: the answers of a model, as people and machines read them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.arrays import Array, ratio
from ranksight.core.html import drawn, table
from ranksight.core.metrics import metric
from ranksight.core.units import counted, finite, in_full, whole
from ranksight.model.answers import Answer, Answers

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.model.application.equation_terms import EquationTerms

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Prediction:
    """All answers to one question, what is to be known of the configurations asked for, and, where the program's time
    was asked for, the seconds of each of :data:`ranksight.model.application.breakdown.PARTS` at each configuration,
    BF_comm, a row of :data:`ranksight.model.application.communication.EXCHANGED` for each, and the terms of the
    equation."""

    application: str
    parameters: tuple[str, ...]
    answers: Answers
    terms: EquationTerms
    notes: tuple[str, ...] = ()
    parts: Mapping[str, Array] = field(default_factory=dict)
    communication: Sequence[Mapping[str, Any]] = ()
    wall: Mapping[str, Array] = field(default_factory=dict)
    """Seconds (k,) that each kernel takes on the wall: its computing, which is the metric time, its imbalance and its
    communication; empty where the program was not asked for."""

    def shares(self) -> dict[str, Array]:
        """Part (k,) of the time of all kernels, messages and what is outside of them that each kernel takes.

        >>> shares = rs.load("heat.model.json").predict(ranks=[16, 64], size=48).shares()
        >>> shares["solve"].round(2).tolist()
        [0.98, 0.94]
        """
        if not self.wall:
            return {}
        total = np.nansum(list(self.wall.values()), axis=0) + np.nan_to_num(self.parts["others"])
        return {kernel: ratio(seconds, total, 0.0) for kernel, seconds in self.wall.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain data: ``{"schema_version": 1, "notes": [...], "communication": [...], "terms": [...],
        "kernels": [...], "predictions": [...]}``, with ``communication`` where messages have a time and ``terms``, rows
        of :data:`~ranksight.model.application.equation_terms.TERMS`, where an equation describes kernels or T_others is
        known, and ``kernels``, the time of each on the wall and its share, where the program's time was asked for.

        >>> sorted(rs.load("heat.model.json").predict(ranks=64, size=48).to_dict())
        ['kernels', 'notes', 'predictions', 'schema_version']
        """
        answers = list(self.answers.to_dicts())
        content: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "notes": list(self.notes)}
        if self.communication:
            content["communication"] = [dict(row) for row in self.communication]
        if rows := self.terms.rows():
            content["terms"] = rows
        if self.wall:
            content["kernels"] = self._wall_rows()
        return {**content, "predictions": answers}

    def _wall_rows(self) -> list[dict[str, Any]]:
        """The time on the wall and the share of each kernel at each configuration."""
        places = [dict(zip(self.parameters, map(whole, point), strict=True)) for point in self.answers.points.tolist()]
        shares = self.shares()
        return [
            {
                "configuration": place,
                "kernel": kernel,
                "wall_time": finite(float(seconds[at])),
                "share": finite(float(shares[kernel][at])),
            }
            for at, place in enumerate(places)
            for kernel, seconds in self.wall.items()
        ]

    def __repr__(self) -> str:
        over = ", ".join(self.parameters)
        many = counted(len(self.answers), "prediction")
        return f"<Prediction {self.application}: {many} at {over}; .table() shows them>"

    def _repr_html_(self) -> str:
        """An answer a row, for notebooks: at each configuration the program, then the largest times first."""
        shares, count = self.shares(), len(self.answers.kernels)
        rows = []
        for k in range(len(self.answers.points)):
            answers = self.answers[k * count : (k + 1) * count]

            def order(answer: Answer, k: int = k) -> tuple[bool, bool, float]:
                timed = answer.metric == "time" and answer.value == answer.value
                seconds = float(self.wall[answer.kernel or ""][k]) if answer.kernel in self.wall else answer.value
                return not timed, answer.kernel is not None, -seconds if timed else 0.0

            for answer in sorted(answers, key=order):
                unit, known = metric(answer.metric), math.isfinite(answer.value)
                seconds = float(self.wall[answer.kernel or ""][k]) if answer.kernel in self.wall else math.nan
                timed = answer.metric == "time" and math.isfinite(seconds)
                rows.append(
                    [
                        *map(in_full, answer.configuration.values()),
                        answer.kernel or "whole program",
                        answer.metric,
                        unit.format(answer.value) if known else "",
                        f"{unit.format(answer.lower)} to {unit.format(answer.upper)}" if known else "",
                        unit.format(seconds) if timed else "",
                        f"{shares[answer.kernel or ''][k]:.1%}" if timed else "",
                        "" if answer.ok else f"insufficient: {answer.reason}",
                    ]
                )
        level = f"{self.answers.said.level:.0%} interval"
        heads = [*self.parameters, "kernel", "metric", "value", level, "wall time", "share", "note"]
        return table(f"{self.application}: {len(rows)} predictions", heads, rows)

    def plot(self, ax: Any = None) -> Any:
        """Draw the values with their intervals over the parameter that varies most; the matplotlib axes are returned.

        See :func:`ranksight.reports.plots.plot_answers.plot_answers`.

        >>> rs.load("heat.model.json").predict(ranks=[16, 32, 64], size=48, metrics="time").plot().get_xlabel()
        'ranks'
        """
        return drawn("plot_answers", self, ax=ax)

    def table(self) -> pd.DataFrame:
        """One row an answer: the parameters, ``kernel``, ``metric``, ``value``, ``lower``, ``upper``, ``level``,
        ``status``, ``reason``, ``method``, ``evidence``.

        >>> table = rs.load("heat.model.json").predict(ranks=[16, 64], size=48, metrics="time").table()
        >>> table[table["kernel"].isna()][["ranks", "size", "value", "status"]].round(4)
           ranks  size   value status
        0   16.0  48.0  0.0141     ok
        3   64.0  48.0  0.0037     ok
        """
        return self.answers.table()
