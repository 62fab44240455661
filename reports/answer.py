"""The answer in one sentence: what the model says at the target, and what holds the program back there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.analysis.diagnosis.kind import UNKNOWN
from ranksight.analysis.planning.remedies import named_run
from ranksight.core.metrics import metric
from ranksight.model.uncertainty.forecast import OK
from ranksight.reports.ideal import SMALL, Ideal, Loss
from ranksight.reports.palette import NAMES
from ranksight.reports.sweep import RANKS, Sweep, place, sufficient
from ranksight.reports.unpredicted import next_run

MOST = 0.5  # share of what is lost from which one loss is most of it


def target_words(sweep: Sweep) -> str:
    """The target as people read it: ``1,024 ranks, size 24``."""
    return ", ".join(place(name, value) for name, value in sweep.target.items())


def answer(sweep: Sweep, against: Ideal | None, lost: Sequence[Loss] = (), then: str = "") -> str:
    """One sentence with the prediction; with insufficient data, the reason and the run that would help (`then`)."""
    program, where = sweep.model.application or "the program", target_words(sweep)
    if machine := sweep.model.equation.machine:
        where = f"{where} on {machine.name}"
    if not sweep.timed:
        return f"{program} was measured without times: its time at {where} is not predicted."
    total, seconds = sweep.total, metric("time")
    value, low, high = (float(getattr(total, end)[0, -1]) for end in ("value", "lower", "upper"))
    if not sufficient(total):
        why = total.reason[0, -1] or "no time was fitted"
        said = f"Insufficient data for a prediction of {program} at {where}: "
        if sweep.supported is None:
            return f"{said}{with_run(why, then or next_run(sweep))}."
        upto = f"The data support predictions up to {place(sweep.along, sweep.supported)}."
        return f"{said}{with_run(why, then) if then else why}. {upto}"
    bound = ""
    if sweep.beyond is not None:
        bound = f" This is the farthest that the data support: at {place(sweep.along, sweep.beyond.value)}, "
        bound += f"{sweep.beyond.reason}."
    said = (
        f"At {where}, {program} is predicted to take {seconds.format(value)} "
        f"({sweep.level:.0%} interval {seconds.format(low)} to {seconds.format(high)})"
    )
    if against is None:
        found = sweep.diagnosis if sweep.along == RANKS and sweep.trained[1] > sweep.trained[0] else None
        doubt = found is not None and found.kind == "unknown"
        return f"{said}.{f' {UNKNOWN[0].upper()}{UNKNOWN[1:]}.' if doubt else ''}{bound}"
    efficiency = float(against.efficiency(sweep)[-1])
    share = max(0.0, 1 - efficiency)
    if not np.isfinite(efficiency):
        return f"{said}.{bound}"
    if share < SMALL:
        where = place(sweep.along, float(sweep.values[-1]))
        return f"{said}. Efficiency {efficiency:.0%} at {where} ({against.kind} scaling).{bound}"
    most = ""
    if lost:
        what = "most of it" if lost[0].share > MOST else "the largest part"
        most = f", {what} {'to ' if lost[0].kernel else ''}{loss_words(lost[0])}"
        most += f" in {lost[0].kernel}" if lost[0].kernel else ""
        row = sweep.model.functions.rows.get((lost[0].kernel, "time")) if lost[0].kernel else None
        if row is not None and sweep.said.status[row, -1] != OK:
            most += ", whose own time has insufficient data"
    kept = f"{efficiency:.0%}" if efficiency >= 0.005 else "less than 1%"
    gone = f"{share:.0%}" if share < 0.995 else "nearly all"
    return f"{said}: {kept} efficient in {against.kind} scaling, so {gone} of the time is lost{most}.{bound}"


def with_run(reason: str, run: str) -> str:
    """A reason with the run that would help, where it does not name one itself."""
    return reason if named_run(reason) else f"{reason}; measure at {run} next"


def loss_words(loss: Loss) -> str:
    """What a lost time is, in a few words."""
    if loss.part == "unknown":
        return "time whose cause was not counted"
    return NAMES[loss.part]


def parts_of(sweep: Sweep) -> list[tuple[str, float, float]]:
    """Part, seconds and share of the time at the last point, the largest first; parts of nothing are left out."""
    last = {name: float(sweep.parts[name][-1]) for name in NAMES}
    total = sum(float(np.nan_to_num(seconds)) for seconds in last.values())
    rows = [(name, seconds, seconds / total if total > 0 else 0.0) for name, seconds in last.items()]
    return sorted((row for row in rows if row[1] > 1e-9 * total), key=lambda row: -row[1])
