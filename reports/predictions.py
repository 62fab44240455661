"""Predictions as people read them: tables of kernels, curves, terms of the equation and methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.metrics import metric
from ranksight.core.mpi import communicates
from ranksight.core.units import assigned, format_factor, format_program, in_full, in_words
from ranksight.model.application.exchanged import MEANINGS
from ranksight.reports import equation_terms
from ranksight.reports.palette import NAMES
from ranksight.reports.similar import merged
from ranksight.reports.terminal import Block, Cell, Column, Table, Text, sparkline

if TYPE_CHECKING:
    from ranksight.analysis.phases.cross_check import CrossCheck
    from ranksight.model.answers import Answer
    from ranksight.model.prediction import Prediction

LIGHT = 0.005  # part of the largest value below which a table leaves a kernel out
FEW = 6  # rows that a table shows whatever they weigh
WAITS = 1.001  # wall time over computing from which a table shows both
NONE = (0.0, "", "")  # of a kernel without a time on the wall
BOUND = 1e3  # times its value from which on an interval's end is no bound that anyone could use
CURVE = 3  # values of a parameter from which on a curve says more than its ends
METHODS = 4  # methods that are named: those of most values
SUM = "sum of "  # how the method of a program's time begins that is a sum over its kernels
CURVES = 8  # curves that are drawn: those of the largest at the end


def blocks(prediction: Prediction, everything: bool) -> list[Block]:
    """A table for each configuration and metric: the whole program, its communication, imbalance and T_others, then the
    kernels by size.

    Kernels without weight are left to the other formats, unless `everything` is asked for.
    """
    found: list[Block] = []
    for answers in _grouped(prediction, lambda answer: (*answer.configuration.items(), answer.metric)):
        first = answers[0]
        where = in_words(first.configuration)
        wall = {} if everything else _wall(prediction, first)
        columns = ["kernel:name", "value", f"{first.level:.0%} interval:word/1", ":word"]
        ordered = sorted(answers, key=lambda answer: _largest_first(answer, wall))
        sizes = [_size(answer, wall) for answer in ordered if answer.value == answer.value]
        least = 0.0 if everything else LIGHT * max(sizes, default=0.0)
        every = len(ordered)
        ordered = [answer for at, answer in enumerate(ordered) if at < FEW or not _size(answer, wall) < least]
        rows = list(map(_row, ordered))
        if wall:
            waits = any(wall.get(each.kernel, NONE)[0] > WAITS * each.value for each in ordered)
            columns[3:3] = ["wall time", "share"] if waits else ["share"]
            for row, answer in zip(rows, ordered, strict=True):
                _, seconds, share = wall.get(answer.kernel, NONE)
                row[3:3] = [seconds, share] if waits else [share]
        if first.metric == "time" and prediction.parts and not everything:
            parts = _parts(prediction, answers, max(least, 1e-12))
            rows[1:1] = [[*row[:3], *([""] * (len(columns) - 4)), *row[3:]] for row in parts] if wall else parts
        found += [Text(f"{where}: {first.metric}", style="bold"), Table(columns, rows, 2)]
        if light := every - len(ordered):
            kernels = "kernel" if light == 1 else "kernels"
            found.append(Text(f"and {light} {kernels} of less than {LIGHT:.1%}; --format csv lists all", 2))
        reasons: dict[str, list[str]] = {}
        for answer in ordered:
            if not answer.ok:
                reasons.setdefault(answer.reason, []).append(_named(answer))
        found += [
            Text(f"insufficient: {', '.join(who)}: {reason}", 2, style="yellow")
            for reason, who in merged(reasons).items()
        ]
        found.append("")
    return [*found[:-1], *_over(prediction)]


def _wall(prediction: Prediction, first: Answer) -> dict[str | None, tuple[float, str, str]]:
    """Of each kernel the seconds on the wall, the same as text, and its share, at the configuration of `first`; the
    whole program has no share. Empty of other metrics than the time."""
    if first.metric != "time" or not prediction.wall:
        return {}
    at, shares = _place(prediction, first), prediction.shares()
    return {
        kernel: (float(seconds[at]), metric("time").format(float(seconds[at])), f"{shares[kernel][at]:.0%}")
        for kernel, seconds in prediction.wall.items()
        if np.isfinite(seconds[at])
    }


def _place(prediction: Prediction, answer: Answer) -> int:
    """Position of the configuration of `answer`."""
    points = prediction.answers.points
    return int(np.flatnonzero((points == list(answer.configuration.values())).all(axis=1))[0])


def _size(answer: Answer, wall: Mapping[str | None, tuple[float, str, str]]) -> float:
    """By what rows are ordered: the time on the wall where it is known."""
    return wall.get(answer.kernel, NONE)[0] or abs(answer.value)


def _parts(prediction: Prediction, answers: Sequence[Answer], least: float) -> list[list[str | Cell]]:
    """Rows of communication, imbalance, T_others and BF_comm at the configuration of `answers`."""
    at = _place(prediction, answers[0])
    held = {name: float(part[at]) for name, part in prediction.parts.items()}
    known = [answer for answer in answers if answer.kernel is not None and answer.value == answer.value]
    own = sum(answer.value for answer in known if not communicates(str(answer.kernel)))
    # A kernel that one rank has alone holds what the others wait for it: it is not listed again.
    rest = sum(held.values()) - held["communication"] - held["others"] - own
    seconds = {"communication": held["communication"], "imbalance": min(held["imbalance"], rest)}
    unit = metric("time")
    rows: list[list[str | Cell]] = [
        [f"({name})", unit.format(value), "", ""] for name, value in seconds.items() if value >= least
    ]
    others = prediction.terms.others
    if len(others.value) and held["others"] >= least:
        low, high = (unit.format(max(float(end[0, at]), 0.0)) for end in (others.lower, others.upper))
        rows.append([f"({NAMES['others']})", unit.format(held["others"]), f"{low} .. {high}", ""])
    for row in _exchanged(prediction):
        if row["configuration"] == answers[0].configuration:
            ends = f"{format_factor(row['lower'])} .. {format_factor(row['upper'])}"
            rows.append(["(BF_comm)", format_factor(row["factor"]), ends, str(row["meaning"])])
    return rows


def by_time(prediction: Prediction) -> list[str]:
    """Kernels by their largest time, the largest first."""
    most: dict[str, float] = {}
    for answer in prediction.answers:
        if answer.kernel is not None and answer.metric == "time" and answer.value == answer.value:
            most[answer.kernel] = max(most.get(answer.kernel, 0.0), answer.value)
    return sorted(most, key=lambda kernel: -most[kernel])


def terms(prediction: Prediction) -> list[Block]:
    """CPI_exec and BF_mem of the largest kernels, clock and T_others, at the ends and between."""
    if not (rows := prediction.terms.rows()):
        return []
    found = equation_terms.largest(rows, by_time(prediction), prediction.answers.said.level)
    return ["", Text("terms of the equation; --terms lists all", style="bold"), *found]


def _exchanged(prediction: Prediction) -> list[Mapping[str, Any]]:
    """BF_comm over configurations, where communication was measured in some run."""
    return [row for row in prediction.communication if row["method"] != "assumed"]


def _grouped(prediction: Prediction, key: Callable[[Answer], tuple[object, ...]]) -> Iterable[list[Answer]]:
    found: dict[tuple[object, ...], list[Answer]] = {}
    for answer in prediction.answers:
        found.setdefault(key(answer), []).append(answer)
    return found.values()


def _named(answer: Answer) -> str:
    return "(whole program)" if answer.kernel is None else answer.kernel


def _row(answer: Answer) -> list[str | Cell]:
    unit = metric(answer.metric)
    known = answer.value == answer.value
    written = format_program if answer.kernel is None and answer.metric == "time" else unit.format
    interval = f"{written(answer.lower)} .. {written(answer.upper)}" if known else ""
    if answer.upper > BOUND * abs(answer.value):
        interval = f"{written(answer.lower)} .. no bound"
    style = "bold" if answer.kernel is None else ""
    value = written(answer.value) if known else "-"
    return [Cell(_named(answer), style), Cell(value, style), interval, Cell("" if answer.ok else "?", "yellow")]


def _over(prediction: Prediction) -> list[Block]:
    """How values run along the parameter that was given several values, where no other was: a line for each."""
    taken = {name: len(set(prediction.answers.points[:, at].tolist())) for at, name in enumerate(prediction.parameters)}
    varied = [name for name, values in taken.items() if values > 1]
    if len(varied) != 1 or taken[varied[0]] < CURVE:
        return []
    rows: list[list[str | Cell]] = []
    lines = [
        sorted(answers, key=lambda answer: answer.configuration[varied[0]])
        for answers in _grouped(prediction, lambda answer: (answer.metric, answer.kernel))
    ]
    for line in sorted(lines, key=lambda line: _largest_first(line[-1]))[:CURVES]:
        ends = [metric(each.metric).format(each.value) + ("" if each.ok else " ?") for each in (line[0], line[-1])]
        curve = sparkline((answer.value for answer in line), low=0.0)
        rows.append([_named(line[0]), line[0].metric, ends[0], Cell(curve, "cyan"), ends[1]])
    if len(factors := sorted(_exchanged(prediction), key=lambda row: row["configuration"][varied[0]])) >= CURVE:
        numbers = [float(row["factor"]) for row in factors]
        ends = [format_factor(numbers[0]), format_factor(numbers[-1])]
        curve = sparkline(numbers, low=0.0)
        rows.append(["(communication)", "BF_comm", ends[0], Cell(curve, "cyan"), ends[1]])
    points = prediction.answers.points[:, prediction.parameters.index(varied[0])]
    first, last = (f"{in_full(float(end))}" for end in (points.min(), points.max()))
    over = Column(f"over {varied[0]}", "word")
    return ["", Table(["kernel:name", "metric:word/1", first, over, last], rows, 2)]


def _largest_first(
    answer: Answer, wall: Mapping[str | None, tuple[float, str, str]] = MappingProxyType({})
) -> tuple[bool, bool, float]:
    size = _size(answer, wall) if wall else answer.value
    return answer.kernel is not None, answer.value != answer.value, -size


def evidence(prediction: Prediction) -> list[Block]:
    """The methods of the answers that have a value, each once with the number of its answers."""
    columns = prediction.answers.columns
    given = zip(columns["evidence"].tolist(), columns["value"].tolist(), strict=True)
    # What the parts of a sum rest on is said of the parts themselves.
    methods = Counter(text.split(":")[0] if text.startswith(SUM) else text for text, value in given if value == value)
    blocks: list[Block] = ["", *(Text(f"note: {note}") for note in prediction.notes)]
    if factors := _exchanged(prediction):
        last = factors[-1]
        text = f"BF_comm is {format_factor(last['factor'])}, {MEANINGS[last['meaning']]}"
        blocks.append(Text(f"{in_words(last['configuration'])}: {text}"))
    found = merged({text: [text] * count for text, count in methods.most_common()})
    for text, counted in sorted(found.items(), key=lambda item: -len(item[1]))[:METHODS]:
        blocks.append(Text(f"{len(counted)} {'value' if len(counted) == 1 else 'values'} by {text}", style="dim"))
    if len(found) > METHODS:
        blocks.append(f"and {len(found) - METHODS} more; --format csv has the evidence of each")
    return blocks


def phase_times(phases: Sequence[CrossCheck], missing: str) -> list[Block]:
    """The time by phases and the sum over kernels, and why they differ."""
    unit = metric("time")
    blocks: list[Block] = ["", Text(f"no time by phases: {missing}")] if missing else []
    for at, each in enumerate(phases):
        where = assigned(each.configuration)
        if each.value != each.value:
            blocks += [*([] if at else [""]), Text(f"{where}: no time by phases: {each.why}")]
            continue
        interval = ""
        if each.lower == each.lower:
            interval = f" ({unit.format(each.lower)} .. {unit.format(each.upper)})"
        said = "they agree" if each.agree else f"they disagree: {each.why}"
        text = f"{where}: by phases {unit.format(each.value)}{interval}"
        text += f", by kernels {unit.format(each.sum)}; {said}" if each.sum == each.sum else f"; {each.why}"
        blocks += [*([] if at else [""]), Text(text)]
    return blocks
