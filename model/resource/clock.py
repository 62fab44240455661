"""The clock that runs had, from the cycles and the times of the same kernels.

    f = sum over kernels and ranks of cycles / sum of times

A platform tells the clock under load of a machine; what the runs had is another in turbo or under a power limit, and
much less where ranks waited for a core. A clock far above the platform's is another machine's, or the counts are not
those of the times.
"""

from __future__ import annotations

import numpy as np

from ranksight.errors import InputError
from ranksight.experiment import WHOLE, Experiment
from ranksight.model.resource.resource import Machine

ABOVE = 2.0
"""Times the platform's clock that no processor of it runs at: turbo of one core stays below."""
BELOW = 0.5
"""Part of the platform's clock below which cores were not the ranks' own, or idle."""
ESTIMATED = "generic"
"""The platform that is taken where none is named: its clock is nobody's."""


def measured_clock(experiment: Experiment) -> float:
    """Cycles a second of the runs that counted both, the median over them; NaN where none did or times were sampled."""
    found = []
    for run in experiment.runs:
        if run.sampled("time") or run.sampled("cycles"):
            continue
        table = experiment.table(run, "counters")
        if table is None or not {"time", "cycles"} <= set(table.columns):
            continue
        both = table.dropna(subset=["time", "cycles"])
        parts = both[both["kernel"] != WHOLE]
        both = parts if len(parts) else both
        time, cycles = float(both["time"].sum()), float(both["cycles"].sum())
        if time > 0 and cycles > 0:
            found.append(cycles / time)
    return float(np.median(found)) if found else float("nan")


def clocked(machine: Machine, experiment: Experiment) -> tuple[Machine, str]:
    """The machine at the clock that the runs had, and what people are to know of it.

    Raises
    ------
    InputError
        When the runs had more cycles a second than the named platform can have.
    """
    clock = measured_clock(experiment)
    if not clock > 0:
        return machine, ""
    named = machine.name != ESTIMATED
    if named and clock > ABOVE * machine.frequency:
        raise InputError(
            f"cycles over times of the runs are {clock / 1e9:.3g} GHz, {machine.name} runs at "
            f"{machine.frequency / 1e9:.3g} GHz",
            "name the platform that was measured with --platform, or import cycles and times reduced alike over ranks",
        )
    text = ""
    if named and clock < BELOW * machine.frequency:
        text = (
            f"the cycles of the runs are {clock / machine.frequency:.0%} of those that {machine.name} has in their "
            "time: ranks shared cores or slept, or it is another machine"
        )
    return machine.at(clock), text
