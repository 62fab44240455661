"""Predictions: what people see of a model's answers, and how a question becomes them.

People and machines read them as tables, lines and columns; methods and parts come with the values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, ratio
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.html import drawn, table
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.core.units import counted, finite, in_full, in_words, whole
from ranksight.model.answers import Answer, Answers, evidence_of_series, evidence_of_sum
from ranksight.model.application.breakdown import Breakdown, EquationTerms, Refined
from ranksight.model.energy import predicted as energy
from ranksight.model.notes import notes
from ranksight.model.predicting import Learned
from ranksight.model.structure.coordinates import known
from ranksight.model.uncertainty.forecast import NO_ROWS, OK, Forecast
from ranksight.model.uncertainty.rows import join, rows_of

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.model.application.breakdown import EquationTerms


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
        of :data:`~ranksight.model.application.breakdown.TERMS`, where an equation describes kernels or T_others is
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


class Block(NamedTuple):
    """Answers for one metric."""

    metric: str
    kernels: NDArray[np.object_]  # (r,): none for the whole program
    predicted: Forecast  # of r rows
    methods: NDArray[np.object_]  # (r, k)


def answer(
    model: Learned,
    points: Array,
    level: float,
    kernels: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    times: Array | None = None,
) -> Prediction:
    """Predict at `points` (k, m); for the parameters see :meth:`ranksight.model.fitted_model.Model.predict_at`."""
    wanted = _metrics(model, metrics)
    chosen = (WHOLE, *dict.fromkeys(model.fitted.kernels)) if kernels is None else _kernels(model, kernels)
    whole = WHOLE in chosen
    model.check(points)
    refined = model.refined(points)
    broken = [model.broken(refined, points)] if whole and "time" in wanted else []
    blocks = _blocks(model, points, wanted, chosen, refined, broken, times)
    metrics_of = [np.full(len(block.kernels), block.metric, dtype=object) for block in blocks]
    answers = Answers(
        model.parameters,
        points,
        np.concatenate([block.kernels for block in blocks]),
        np.concatenate(metrics_of),
        join([block.predicted for block in blocks]).at(level),
        np.concatenate([block.methods for block in blocks]),
    )
    others = broken[0].at(level).others if broken else NO_ROWS
    shown = chosen if "time" in wanted else ()
    terms = EquationTerms(model.parameters, points, refined.terms.at(level), others, shown)
    texts = notes(model, points, with_energy=not set(wanted).isdisjoint(model.metered))
    texts = texts if times is None else (*texts, *_far(model, points, level, times))
    prediction = Prediction(model.application, model.parameters, answers, terms, texts)
    return _with_parts(prediction, model, broken[0].at(level)) if broken else prediction


def _far(model: Learned, points: Array, level: float, times: Array) -> list[str]:
    """That `times` (k,) which are stated are outside of the intervals of those predicted at `points` (k, m)."""
    predicted = model.programs(points, ["time"], level).get("time")
    if predicted is None:
        return []
    low, high = predicted.lower[0], predicted.upper[0]
    rows = np.flatnonzero((predicted.status[0] == OK) & ((times < low) | (times > high)))
    where = [in_words(dict(zip(model.parameters, point, strict=True))) for point in points[rows].tolist()]
    return [
        f"{place}: the stated time of {times[at]:.3g} s is outside of the {low[at]:.3g} s to {high[at]:.3g} s that are "
        "predicted, and the power is that of the stated time"
        for place, at in zip(where, rows.tolist(), strict=True)
    ]


def _with_parts(prediction: Prediction, model: Learned, broken: Breakdown) -> Prediction:
    """The prediction with the parts of the program's time."""
    network, exchanged, points = model.equation.network, broken.exchanged, prediction.answers.points
    sent = exchanged.table(model.parameters, points) if exchanged and network else []
    wall = dict(zip(broken.kernels, broken.by_kernel, strict=True))
    return replace(prediction, parts=broken.parts, communication=sent, wall=wall)


def _metrics(model: Learned, metrics: Sequence[str] | None) -> tuple[str, ...]:
    """The metrics asked for; InputError where one is unknown or energy cannot be predicted."""
    metered = model.metered
    wanted = (*dict.fromkeys(model.fitted.metrics), *metered) if metrics is None else tuple(metrics)
    law = model.energy
    if law.notes and not metered and "energy" in {name.partition("_")[0] for name in wanted}:
        raise InputError(f"energy is not predicted: {'; '.join(law.notes)}", "measure these runs again")
    known("metric", wanted, (*model.fitted.metrics, *metered))
    return law.wanted(wanted)


def _kernels(model: Learned, kernels: Sequence[str]) -> tuple[str, ...]:
    """The kernels asked for; InputError where one is unknown or folded."""
    total = model.remarks.total  # the whole program by the name that its timer had
    names = tuple(WHOLE if name == total and name not in model.fitted.kernels else name for name in kernels)
    model.selection.check(names)
    known("kernel", [name for name in names if name != WHOLE], model.fitted.kernels)
    return names


def _blocks(
    model: Learned,
    points: Array,
    wanted: Sequence[str],
    chosen: Sequence[str],
    refined: Refined,
    broken: Sequence[Breakdown],
    times: Array | None,
) -> list[Block]:
    """Answers for all metrics, of the whole program before its kernels."""
    names, every = (np.array(each, dtype=object) for each in (model.fitted.metrics, model.fitted.kernels))
    kernels, program = frozenset(chosen) - {WHOLE}, np.array([None], dtype=object)
    asked = np.array([name in kernels for name in every], dtype=bool)
    texts = evidence_of_series(model.fitted, model.provenance, refined)
    blocks = []
    for name in wanted:
        rows = np.flatnonzero(names == name)
        if name in model.metered:
            if WHOLE in chosen:
                law = np.full((1, len(points)), energy.evidence(model.energy, name), dtype=object)
                value = energy.forecasts(model, points, [name], times)[name]
                blocks.append(Block(name, program, value, law))
            continue
        for total in model.total(name, rows, refined, broken) if WHOLE in chosen else []:
            outside = name == "time" and any(len(parts.others.value) for parts in broken)
            text = evidence_of_sum(texts[rows], every[rows].tolist(), outside)
            blocks.append(Block(name, program, total, text[None]))
        rows = rows[asked[rows]]
        blocks.append(Block(name, every[rows], rows_of(refined.said, rows), texts[rows]))
    return blocks
