"""The answers to a question: what was asked for of a model's predictions, with its methods and parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.model.answers import Answers, evidence_of_series, evidence_of_sum
from ranksight.model.application.breakdown import Breakdown, Refined
from ranksight.model.application.equation_terms import EquationTerms
from ranksight.model.energy import predicted as energy
from ranksight.model.notes import notes
from ranksight.model.predicting import Learned
from ranksight.model.prediction import Prediction
from ranksight.model.questions import known
from ranksight.model.uncertainty.forecast import NO_ROWS, Forecast
from ranksight.model.uncertainty.rows import join, rows_of


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
    prediction = Prediction(model.application, model.parameters, answers, terms, texts)
    return _with_parts(prediction, model, broken[0].at(level)) if broken else prediction


def _with_parts(prediction: Prediction, model: Learned, broken: Breakdown) -> Prediction:
    """The prediction with the parts of the program's time."""
    network, exchanged, points = model.equation.network, broken.exchanged, prediction.answers.points
    sent = [] if exchanged is None or network is None else exchanged.table(model.parameters, points)
    wall = dict(zip(broken.kernels, broken.by_kernel, strict=True))
    return replace(prediction, parts=broken.parts, communication=sent, wall=wall)


def _metrics(model: Learned, metrics: Sequence[str] | None) -> tuple[str, ...]:
    """The metrics asked for; InputError where one is unknown or energy cannot be predicted."""
    metered = model.metered
    wanted = (*dict.fromkeys(model.fitted.metrics), *metered) if metrics is None else tuple(metrics)
    law = model.energy
    if law is not None and not metered and "energy" in {name.partition("_")[0] for name in wanted}:
        raise InputError(f"energy is not predicted: {'; '.join(law.notes)}", "measure these runs again")
    known("metric", wanted, (*model.fitted.metrics, *metered))
    return wanted if law is None else law.wanted(wanted)


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
        if model.energy is not None and name in model.metered:
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
