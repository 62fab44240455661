"""On which machine runs were: by the processor that they recorded, and by its nominal clock.

Counters of reference cycles tick at the nominal clock, whatever the clock of a core is:

    nominal clock = clock x reference cycles / cycles

Runs of several machines in one experiment are of several machines, and no repetitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.run import Run
from ranksight.core.units import format_si
from ranksight.platforms import Platform
from ranksight.platforms.recognition import is_named, same_name

TICKS = ("frequency", "reference_cycles", "cycles")
NOMINAL = 0.03
"""Relative difference up to which nominal clocks are the same: processors of one line are a tenth of a GHz apart."""


@dataclass(frozen=True)
class Recorded:
    """What a run says of its machine."""

    processor: str  # as the system, or the tool that measured, calls it; empty where neither does
    nominal: float  # Hz; NaN where it was not counted

    @classmethod
    def of(cls, experiment: Experiment, run: Run) -> Recorded:
        """What was recorded of one run."""
        name = str(run.environment.get("processor") or run.environment.get("CPU name") or "")
        nominal = float("nan")
        if set(TICKS) <= set(experiment.columns(run, "counters")) and (table := experiment.arrays(run)) is not None:
            clock, reference, cycles = (table.values[each] for each in TICKS)
            with np.errstate(invalid="ignore", divide="ignore"):
                each = clock * reference / cycles
            known = each[np.isfinite(each) & (each > 0)]
            nominal = float(np.median(known)) if len(known) else nominal
        return cls(name, nominal)

    def __str__(self) -> str:
        clock = f"nominal clock {format_si(self.nominal, 'Hz')}" if self.nominal > 0 else ""
        return self.processor or clock or "an unnamed processor"

    def differs(self, other: Recorded) -> bool:
        """Whether both are known to be of two machines."""
        if self.processor and other.processor:
            return not same_name(self.processor, other.processor)
        return bool(abs(np.log(self.nominal / other.nominal)) > NOMINAL)

    def is_of(self, platform: Platform) -> bool | None:
        """Whether the run was on a machine; None where nothing was recorded that says so."""
        if self.processor and platform.processors:
            return is_named(self.processor, platform)
        if not self.nominal > 0:
            return None
        return bool(abs(np.log(self.nominal / platform.clock.base)) <= NOMINAL)


def check_one_machine(experiment: Experiment) -> None:
    """Raise InputError where runs of an experiment were on two machines."""
    recorded = _recorded(experiment)
    for each in recorded[1:]:
        if (first := recorded[0]).differs(each):
            raise InputError(
                f"{experiment.path} has runs on two machines, {first} and {each}: a machine is no repetition",
                "name both: ranksight fit EXPERIMENT --platform ONE --platform OTHER, then predict --on OTHER",
            )


def runs_on(experiment: Experiment, platform: Platform) -> Experiment:
    """The runs of an experiment on one of its machines; InputError where none is."""
    recorded = [Recorded.of(experiment, run) for run in experiment.runs]
    runs = [run for run, each in zip(experiment.runs, recorded, strict=True) if each.is_of(platform)]
    if not runs:
        raise InputError(
            f"{experiment.path} has no run on {platform.name}: its runs were on {_names(recorded)}",
            "name the platform whose 'processors' they are, or give runs of each machine as their own experiment",
        )
    return Experiment(experiment.path, experiment.application, experiment.parameters, runs)


def misnamed(experiment: Experiment, platform: Platform) -> str:
    """A sentence where runs say that they were on another machine than `platform`; empty where none does."""
    others = [each for each in _recorded(experiment) if each.is_of(platform) is False]
    if not others:
        return ""
    theirs = ", ".join(platform.processors) or f"nominal clock {format_si(platform.clock.base, 'Hz')}"
    if not others[0].processor or not platform.processors:
        theirs = f"nominal clock {format_si(platform.clock.base, 'Hz')}"
    return (
        f"runs of {experiment.path} were on another machine than {platform.name} ({theirs}): {_names(others)}; name "
        "the platform of each experiment, in their order"
    )


def _recorded(experiment: Experiment) -> list[Recorded]:
    """What complete runs recorded."""
    return [Recorded.of(experiment, run) for run in experiment.runs if run.state == "complete"]


def _names(recorded: Sequence[Recorded]) -> str:
    return ", ".join(sorted({str(each) for each in recorded}))[:200]
