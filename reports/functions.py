"""Fitted functions as people and machines read them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.errors import RanksightError
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric as described
from ranksight.core.units import in_full, in_words
from ranksight.model.fitting.contradictions import contradictions
from ranksight.model.search.basis import AHEAD
from ranksight.model.series.noise import without_outliers
from ranksight.model.series.poisson import HALF
from ranksight.model.uncertainty.forecast import OK, REASONS, spanned
from ranksight.reports.formula import LATEX, identifier, latex, python, readable
from ranksight.reports.pasted import latex_text
from ranksight.reports.similar import merged
from ranksight.reports.terminal import Block, Cell, Table, Text

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model
    from ranksight.model.series.reducing import Series

SHOWN = 40  # functions that a table shows
FIRST = ("time", "cycles", "instructions", "messages", "bytes_sent", "loads", "bytes_mem")
"""Metrics that a table begins with."""
LIGHT = 0.005  # share of a metric below which a table leaves a kernel out
CLOSE = 0.02  # largest difference of a printed function from `predict` that is not remarked on
TIMES = 1.0  # difference from which on a factor says more
MANY = 100.0  # samples from which a function is not remarked on for having few
FEW = 6  # kernels of a metric that a table shows however light they are
_ITERATIONS = re.compile("step|iter", re.IGNORECASE)  # in names of parameters that may count iterations
NAMED = 3  # repetitions left out that are named; others are counted
FALSE, DOUBTED = 0.01, 0.25
"""Probability that a series without disturbed runs is remarked on, and relative differences that are not."""
COLUMNS = ("kernel", "metric", "formula", "difference_from_predict", "adjusted_r2", "out_of_sample_error", "share",
           "scatter", "repetitions_needed", "points", "samples", "remark", "note", "status", "reason")  # fmt: skip
"""What a table for machines has of :func:`functions`."""


def functions(model: Model, chosen: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """A row a function, as documents for machines hold it; a number that is not known is NaN.

    `chosen`: the functions wanted; all of them when not given.
    """
    fitted = model.fitted
    which = range(len(fitted)) if chosen is None else chosen
    notes = fitted.notes(frozenset(fitted.kernels[i] for i in which))
    for i, text in contradictions(fitted, model.along_ties(AHEAD * model.training.max(axis=0)[None])[0]).items():
        notes[i] = "; ".join(filter(None, (notes.get(i), text)))
    rows = []
    difference, printed = fitted.difference, model.printed
    for i in which:
        _, by_laws, terms = printed.get(i, ("", 0.0, ()))
        if (largest := by_laws if terms else max(difference[i], by_laws)) > CLOSE:
            why = ", which weighs other laws" if terms or by_laws > max(difference[i], CLOSE) else ""
            notes[i] = "; ".join(filter(None, (notes.get(i), f"up to {far(largest)} from what predict answers{why}")))
        if fitted.samples[i] < MANY:
            number = max(float(fitted.samples[i]), HALF)
            samples_text = f"about {number:.2g} samples a configuration, known to {number**-0.5:.0%}"
            notes[i] = "; ".join(filter(None, (notes.get(i), samples_text)))
        coefficients = [(*each, float("nan")) for each in terms] or fitted.coefficients(i)
        reason = REASONS[fitted.status[i]].format(points=fitted.count[i], parameters=len(fitted.parameters))
        rows.append(
            {
                "kernel": fitted.kernels[i],
                "metric": fitted.metrics[i],
                "formula": model.formula(i),
                "difference_from_predict": float(largest),
                "weight": float(fitted.weight[i, 0]),
                "coefficients": [{"term": t, "value": c, "standard_error": e} for t, c, e in coefficients],
                "adjusted_r2": fitted.adjusted_r2[i].item(),
                "out_of_sample_error": fitted.press[i].item(),
                "scatter": float(fitted.within[i]),
                "repetitions_needed": float(fitted.repetitions[i]),
                "points": int(fitted.count[i]),
                "samples": float(fitted.samples[i]) if np.isfinite(fitted.samples[i]) else float("nan"),
                "remark": notes.get(i, ""),
                "note": _two_values(model, i),
                "share": float(model.shown_shares[i]),
                "status": "insufficient" if fitted.status[i] else "ok",
                "reason": reason,
            }
        )
    return rows


def far(difference: float) -> str:
    """A relative difference, as a share or, from :data:`TIMES` on, as a factor."""
    return f"{difference:.0%}" if difference < TIMES else f"a factor of {spanned(1 + difference)}"


def _two_values(model: Model, i: int) -> str:
    """What is missing where function `i` is one at each of two values of a parameter; empty elsewhere."""
    levels = model.functions.levels
    if not levels or not levels.differs(i) or model.functions.formula(i) != levels.formula(i):
        return ""
    low, high = map(in_full, levels.levels)
    note = f"two values of {levels.parameter} ({low}, {high}): no growth law in {levels.parameter}; measure a third"
    counts = _ITERATIONS.search(levels.parameter) is not None
    return f"{note}, or fit with --iterations {levels.parameter} if it counts iterations" if counts else note


def shown(model: Model) -> list[int]:
    """The functions that a table shows, in its order: metrics that are asked for most first, then the largest kernels.

    Kernels without weight in a metric are left to the other formats.
    """
    fitted, shares, apart = model.fitted, np.nan_to_num(model.shown_shares), np.isnan(model.shown_shares)
    known = sorted(set(fitted.metrics), key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    metrics = np.array(fitted.metrics, dtype=object)
    heavy = (shares >= LIGHT) | apart | (np.array(fitted.kernels, dtype=object) == WHOLE)
    # What no kernel has any of (an event that never came) says nothing.
    some = heavy | (shares > 0) | (fitted.status != 0)
    found: list[int] = []
    for name in known:
        mine = np.flatnonzero(metrics == name)
        mine = mine[np.argsort(-shares[mine], kind="stable")]
        few = mine[:FEW]
        take = mine[heavy[mine]] if heavy[mine].any() and len(mine) > FEW else few[some[few]]
        found += take[: SHOWN - len(found)].tolist()
        if len(found) == SHOWN:
            break
    return found


def blocks(model: Model, checked: Mapping[str, Any] | None) -> list[Block]:
    """A table for each metric, the largest kernels first; what is not predicted follows, by its reason.

    `checked` (mapping): what functions without the largest configuration said there.
    """
    rows = functions(model, shown(model))
    found: list[Block] = []
    for metric in dict.fromkeys(row["metric"] for row in rows):
        here = [row for row in rows if row["metric"] == metric]
        unit = described(metric).unit
        reasons: dict[str, list[str]] = {}
        lines: list[list[str | Cell]] = []
        for row in here:
            error = f"{row['out_of_sample_error']:.1%}" if row["out_of_sample_error"] < 10 else "-"
            text = readable(row["formula"], unit) + (f"  ({row['remark']})" if row["remark"] else "")
            function = Cell(text) if row["status"] == "ok" else Cell("insufficient", "yellow")
            if row["status"] != "ok":
                reasons.setdefault(row["reason"], []).append(str(row["kernel"]))
            share = "" if row["kernel"] == WHOLE or row["share"] != row["share"] else f"{row['share']:.1%}"
            lines.append([str(row["kernel"]), share, error, function])
        columns = ["kernel:name", "share/2", "error/1", "function:text"]
        head = f"{metric} ({unit})" if unit else metric
        if metric == "time" and any(line[1] for line in lines):
            run = dict(zip(model.parameters, model.training[model.largest], strict=True))
            head += f", shares of the program at {in_words(run)}"
        found += [Text(head, style="bold"), Table(columns, lines, 2)]
        found += [
            Text(f"insufficient: {', '.join(who)}: {reason}", 2, style="yellow")
            for reason, who in merged(reasons).items()
        ]
        found.append("")
    # All functions that have a text have the same one, so the first is enough.
    if note := next(filter(None, (_two_values(model, i) for i in range(len(model.fitted)))), ""):
        found += [Text(note, style="yellow"), ""]
    if len(model.fitted) > len(rows):
        found += [f"... and {len(model.fitted) - len(rows)} more; --format csv prints all", ""]
    if checked is not None:
        others = f"without {checked['parameter']} = {in_full(checked['value'])}: "
        others += (
            f"predicted there with a median error of {checked['median_error']:.1f} %, largest "
            f"{checked['largest_error']:.1f} %; {checked['covered']:.0%} of the values lie in their 90 % intervals"
            if np.isfinite(checked["median_error"])
            else "no error is known there, as what was measured is nothing, or is not predicted"
        )
        found += [others, ""]
    return found[:-1]


def _order(row: Mapping[str, Any]) -> tuple[int, str, float]:
    """Metrics that are asked for most first, then the largest kernels."""
    name = str(row["metric"])
    return FIRST.index(name) if name in FIRST else len(FIRST), name, -float(np.nan_to_num(row["share"]))


def listing(rows: list[dict[str, Any]], form: str, parameters: tuple[str, ...]) -> str:
    """The best hypothesis of every function, to paste elsewhere.

    Parameters
    ----------
    rows : list of dict
        Of :func:`functions`; those without an answer, and without weight in their metric, are left out.
    form : {"latex", "python"}
        Lines of an ``align`` environment (package amsmath), or a module of functions of `parameters` in SI units. What
        is not of the parameters alone, as of the grid of the ranks, has no such expression: Python names it in a
        comment.
    """
    kept = [row for row in sorted(rows, key=_order) if row["status"] == "ok" and row["formula"] != "none"]
    kept = [row for row in kept if row["share"] != 0 or row["kernel"] == WHOLE] or kept
    if form == "latex":
        signs = ", ".join(LATEX.name(name) for name in parameters)
        names = (f"{LATEX.name(row['metric'])}_{{\\text{{{latex_text(str(row['kernel']))}}}}}({signs})" for row in kept)
        return " \\\\\n".join(f"{name} &= {latex(row['formula'])}" for name, row in zip(names, kept, strict=True))
    arguments = ", ".join(map(identifier, parameters))
    lines = [
        '"""The function of each series that is nearest to what predict answers, with its largest difference."""',
        "",
        "from math import ceil, floor, log2",
    ]
    seen: Counter[str] = Counter()
    for row in kept:
        text = python(row["formula"], parameters)
        unit = described(row["metric"]).unit
        apart = row["difference_from_predict"]
        apart = f", within {f'{apart:.1%}' if apart < TIMES else far(apart)} of predict" if apart else ""
        what = f"{row['metric']} of {row['kernel']}{f', {unit}' if unit else ''}{apart}"
        name = f"{identifier(row['metric'])}__{identifier(str(row['kernel']))}"
        seen[name] += 1
        name += f"_{seen[name]}" if seen[name] > 1 else ""
        function = f"def {name}({arguments}):\n    {what!r}\n    return {text}"
        lines.append("\n\n" + (function if text else f"# {what} is no function of {arguments} alone: {row['formula']}"))
    return "\n".join(lines)


def left_out(series: Series) -> str:
    """Which repetitions were left out as outliers (:mod:`ranksight.model.series.noise`); empty without any."""
    kept = without_outliers(series.values)
    places = np.argwhere(np.isnan(kept) & ~np.isnan(series.values))
    if not len(places):
        return ""
    named = []
    for row, at, number in places[:NAMED].tolist():
        unit = described(series.metrics[row])
        where = ", ".join(f"{n} = {in_full(x)}" for n, x in zip(series.parameters, series.points[at], strict=True))
        value, middle = unit.format(series.values[row, at, number]), unit.format(float(np.nanmedian(kept[row, at])))
        named.append(f"{series.metrics[row]} of {series.kernels[row]} at {where} ({value}, the others {middle})")
    more = f", and {len(places) - NAMED} more" if len(places) > NAMED else ""
    one = len(places) == 1
    return f"left out, as {'it is' if one else 'they are'} unlike the other repetitions: {'; '.join(named)}{more}"


def unlike(model: Model, series: Series) -> str:
    """Which times of configurations that ran once are far from what is predicted there; empty without any.

    Far is outside of the interval that holds all values of a series with probability 1 - :data:`FALSE`, and more than
    :data:`DOUBTED` off: a run that was disturbed or a change that no function has; only another run shows which.
    """
    rows = model.functions.rows
    single = (~np.isnan(series.values)).sum(axis=2) == 1
    keys = list(zip(series.kernels, series.metrics, strict=True))
    timed = [i for i, key in enumerate(keys) if key[1] == "time" and key in rows and single[i].any()]
    if not timed:
        return ""
    try:
        said = model.forecast(series.points, 1 - FALSE / len(series.points))
    except RanksightError:  # a network has no place for as many
        return ""
    asked = [rows[keys[i]] for i in timed]
    measured = np.nanmax(np.where(single[timed, :, None], series.values[timed], -np.inf), axis=2)
    predicted = said.value[asked]
    with np.errstate(invalid="ignore", divide="ignore"):
        off = (measured < said.lower[asked]) | (measured > said.upper[asked])
        off &= np.isfinite(measured) & (said.status[asked] == OK) & (np.abs(measured / predicted - 1) > DOUBTED)
    places, unit = np.argwhere(off), described("time")
    named = []
    for row, at in places[:NAMED].tolist():
        where = ", ".join(f"{n} = {in_full(x)}" for n, x in zip(series.parameters, series.points[at], strict=True))
        value, expected = unit.format(measured[row, at]), unit.format(float(predicted[row, at]))
        named.append(f"{keys[timed[row]][0]} at {where} ({value}, predicted {expected})")
    more = f", and {len(places) - NAMED} more" if len(places) > NAMED else ""
    text = (
        f"far from the other configurations: time of {'; '.join(named)}{more}: measure there again, as a run that was"
    )
    return f"{text} disturbed and a change of the program look the same" if named else ""
