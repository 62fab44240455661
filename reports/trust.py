"""How far a prediction can be trusted: the facts that speak for and against it, each with its figure."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.core.units import counted
from ranksight.model.notes import one_domain
from ranksight.model.uncertainty import forecast
from ranksight.reports.measured import COMPUTED, SLOWEST, SUMMED, WHOLLY, Measured
from ranksight.reports.sweep import Sweep, place, sufficient

Grade = Literal["good", "fair", "poor"]
FEW = 100.0  # samples for which the standard error of a value is a tenth


@dataclass(frozen=True)
class Fact:
    """One thing that speaks for or against a prediction."""

    grade: Grade  # {"good", "fair", "poor"}
    title: str  # what it is about, and what was found
    text: str


def trust(sweep: Sweep, found: Measured | None = None) -> list[Fact]:
    """Everything that bears on the prediction at the target of `sweep`."""
    facts = [
        _interval(sweep),
        _distance(sweep),
        *_machine(sweep),
        *_checked(sweep, found),
        *_parts(sweep),
        *_fit(sweep),
        *_sources(sweep),
    ]
    facts.extend(_messages(sweep))
    if note := one_domain(sweep.model, sweep.points[-1:]):
        facts.append(Fact("poor", "Memory", f"{note[0].upper()}{note[1:]}."))
    return facts


def _interval(sweep: Sweep) -> Fact:
    total = sweep.total
    value, low, high = (float(getattr(total, end)[0, -1]) for end in ("value", "lower", "upper"))
    if not sweep.timed or not sufficient(total) or not value > 0:
        return Fact("poor", "Interval", f"Insufficient: {total.reason[0, -1] or 'the model has no time'}.")
    wide = max(high / value, value / low) - 1 if low > 0 else float("inf")
    text = f"{sweep.level:.0%} of such intervals hold the value: {low / value - 1:+.0%} to {high / value - 1:+.0%}."
    return Fact("good" if wide < 0.25 else "fair" if wide < 1 else "poor", "Interval", text)


def _distance(sweep: Sweep) -> Fact:
    """How far the target lies from what was measured, along every parameter."""
    words, farthest = [], 1.0
    seen, origin = sweep.model.equation.machine.seen, sweep.machine_of_runs
    measured = seen if len(seen) else sweep.model.training
    where = f" on {origin}" if origin and not len(seen) else ""
    for at, name in enumerate(sweep.model.parameters):
        column, asked = measured[:, at], sweep.target[name]
        low, high = float(column.min()), float(column.max())
        if low <= asked <= high:
            words.append(f"{place(name, asked)} is within what was measured{where} ({low:g} to {high:g})")
            continue
        factor = asked / high if asked > high else low / asked if asked > 0 else float("inf")
        farthest = max(farthest, factor)
        end = "the largest measured" if asked > high else "below the smallest measured"
        words.append(f"{place(name, asked)} is {factor:.3g} times {end}{where}")
    # No distance is short to a machine on which nothing was measured.
    grade: Grade = "good" if farthest <= 4 and not where else "fair" if farthest <= 32 else "poor"
    many = f"{counted(len(measured), 'configuration')} {'was' if len(measured) == 1 else 'were'} measured there"
    text = f"{many}." if len(seen) else f"{len(measured)} configurations were measured{where}."
    return Fact(grade, "Distance", f"{'; '.join(words)}; {text}")


def _machine(sweep: Sweep) -> list[Fact]:
    """What is assumed where the target is another machine than that of the runs."""
    machine = sweep.model.equation.machine
    if not machine:
        return []
    seen = len(machine.seen)
    runs = f"{counted(seen, 'configuration') if seen else 'No configuration'} was measured on {machine.name}"
    runs = runs.replace("configurations was", "configurations were")
    said = "; ".join(str(each).removeprefix("assumed: ") for each in machine.assumed)
    return [Fact("fair", "Another machine", f"{runs}. Assumed: {said}.")]


COMPARED = {
    WHOLLY: "time",
    COMPUTED: "computation",
    SUMMED: "the sum of the kernels' times",
    SLOWEST: "the time of the slowest rank",
}
"""What is held against what was measured, by what the measured time is."""


def _checked(sweep: Sweep, found: Measured | None) -> list[Fact]:
    """Predictions held against times that the model was not fitted to."""
    if found is None or not sweep.timed:
        return []
    measured, what = found.total(sweep.model)
    fresh = np.isfinite(measured) & ~found.trained & (measured > 0)
    if not fresh.any():
        return [Fact("fair", "Check", "No run was held back: nothing here was predicted before it was measured.")]
    points = found.points[fresh]
    rows = sweep.model.functions.rows
    if (WHOLE, "time") in rows:
        total = sweep.model.whole_time(*sweep.model.ask(points, sweep.level))
        value, low, high = total.value[0], total.lower[0], total.upper[0]
    else:
        broken = sweep.model.breakdown(points, sweep.level)
        # What a measured time holds is held against the same parts of the predicted one.
        alone = broken.total.value[0] - broken.parts["others"] if what == SLOWEST else broken.computing
        ratio = alone / broken.total.value[0]
        value, low, high = alone, broken.total.lower[0] * ratio, broken.total.upper[0] * ratio
    errors = np.abs(value / measured[fresh] - 1)
    inside = (low <= measured[fresh]) & (measured[fresh] <= high)
    middle = float(np.median(errors))
    held = float(inside.mean())
    grade: Grade = "good" if middle < 0.1 and held >= 0.8 else "fair" if middle < 0.3 and held >= 0.5 else "poor"
    return [
        Fact(
            grade,
            "Check",
            f"Compared with {len(errors)} configuration{'s' if len(errors) > 1 else ''} that the model was not fitted "
            f"to: {COMPARED[what]} off by {middle:.1%} in the median, {errors.max():.1%} at most, "
            f"{inside.sum()} of {len(errors)} inside the interval.",
        )
    ]


def _by_part(share: float) -> Grade:
    """How much it matters that so large a part of something is not known well."""
    return "good" if share < 0.01 else "fair" if share < 0.1 else "poor"


def _parts(sweep: Sweep) -> list[Fact]:
    """Kernels without a predicted time at the target, of those that make up the program's."""
    rows = {kernel: row for (kernel, name), row in sweep.model.functions.rows.items() if name == "time"}
    kernels = sweep.breakdown.program
    if not kernels:
        return []
    lost = [kernel for kernel in kernels if kernel in rows and sweep.said.status[rows[kernel], -1] != forecast.OK]
    if not lost:
        every = "the time" if len(kernels) == 1 else "all times"
        return [Fact("good", "Kernels", f"The data suffice for {every} of {counted(len(kernels), 'kernel')}.")]
    found = sweep.diagnosis
    table = None if found is None else found.verdicts()
    there = 0.0 if table is None else float(table.loc[table["kernel"].isin(lost), "share"].sum())
    measured = float(np.nansum(sweep.model.shown_shares[[rows[kernel] for kernel in lost]]))
    run = ", ".join(
        place(name, value)
        for name, value in zip(sweep.model.parameters, sweep.model.training[sweep.model.largest].tolist(), strict=True)
    )
    return [
        Fact(
            _by_part(max(measured, there)),
            "Kernels",
            f"{len(lost)} of {counted(len(kernels), 'kernel')} without sufficient data: "
            f"{measured:.1%} of the time at {run}, the largest run, and {there:.1%} at the target.",
        )
    ]


def _fit(sweep: Sweep) -> list[Fact]:
    """Leave-one-out error of the functions of time, weighted by their share."""
    fitted, shares = sweep.model.fitted, np.nan_to_num(sweep.model.shown_shares)
    index = np.array([row for (_, name), row in sweep.model.functions.rows.items() if name == "time"], dtype=np.intp)
    known = index[np.isfinite(fitted.press[index])]
    if not len(known):
        return []
    weight = np.array([1.0 if fitted.kernels[i] == WHOLE else shares[i] for i in known])
    if not weight.sum() > 0:
        return []
    error = float(np.sqrt((weight * fitted.press[known] ** 2).sum() / weight.sum()))
    grade: Grade = "good" if error < 0.05 else "fair" if error < 0.25 else "poor"
    text = f"Functions of time miss a configuration left out by {error:.1%}, weighted by their share."
    return [Fact(grade, "Functions", text)]


def _sources(sweep: Sweep) -> list[Fact]:
    """What the numbers are: measured, sampled, simulated."""
    by_text: dict[str, list[str]] = {}
    for name, text in sweep.model.provenance.items():
        by_text.setdefault(text.split("(")[0].split(",")[0].strip(), []).append(name)
    if not by_text:
        return []
    words = [
        f"{text}: {', '.join(names[:4])}{' and others' if len(names) > 4 else ''}" for text, names in by_text.items()
    ]
    time = sweep.model.provenance.get("time", "measured")
    facts = [Fact("fair" if time.startswith(("sampled", "simulated")) else "good", "Numbers", "; ".join(words) + ".")]
    return facts + _samples(sweep)


def _samples(sweep: Sweep) -> list[Fact]:
    """On how many samples what was sampled rests, weighted by its share of its metric."""
    samples, shares = sweep.model.fitted.samples, sweep.model.shares
    sampled = np.isfinite(samples)
    if not sampled.any():
        return []
    few = sampled & (samples < FEW)
    names = np.array(sweep.model.fitted.metrics, dtype=object)
    few_share = max((float(shares[few & (names == name)].sum()) for name in set(names[few])), default=0.0)
    return [
        Fact(
            _by_part(few_share),
            "Samples",
            f"{int(few.sum())} of {int(sampled.sum())} functions of sampled values rest on fewer than {FEW:.0f} "
            f"samples a configuration, {few_share:.1%} of their metric at most.",
        )
    ]


def _messages(sweep: Sweep) -> list[Fact]:
    equation = sweep.model.equation
    if not equation.communication:
        return []
    if not equation.communication.priced(equation.network):
        return [
            Fact(
                "poor",
                "Network",
                "Messages were traced, but no network is described, so their time is left out; fit with --platform.",
            )
        ]
    if not equation.network:
        text = "No network is described: calls take the form fitted to measured ones, at larger scale as well."
        return [Fact("fair", "Network", text)]
    if equation.communication.blocking is None:
        text = "The messages' time is computed for the described network; no run measured it (BF_comm is assumed)."
        return [Fact("poor", "Network", text)]
    text = "The messages' time is computed for the described network, times BF_comm as measured at smaller scale."
    return [Fact("fair", "Network", text)]
