"""Times of runs that counted cycles and measured no time: cycles over the clock.

    T = c / f

of each kernel and rank, f the run's own frequency where a tool reports it (LIKWID's ``Clock``), the clock that the user
states, or that of the platform that was measured. Ding et al. 2018 measure nothing else: hardware events alone.
Unhalted cycles leave out the time in which a core slept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.columns import Columns
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.core.units import format_si
from ranksight.core.view import Change, View
from ranksight.model.plaindata import Stored
from ranksight.model.priors import PLATFORM_CLOCK
from ranksight.model.resource.clock import ESTIMATED

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.platforms import Platform


@dataclass(frozen=True)
class Clock(Stored):
    """Cycles a second, and where that is from.

    `frequency`: in Hz; NaN where only the runs' own frequencies are known. `spread`: standard deviation of the
    logarithm of the clock that the runs had.
    """

    frequency: float
    source: str
    spread: float = 0.0

    @classmethod
    def of(cls, stated: float | None, platform: Platform | None, experiment: Experiment) -> Clock | None:
        """The clock that makes times of an experiment's cycles; None where it has times, no cycles, or no clock.

        `stated`: in Hz, by the user. `platform`: the clock of the generic platform is nobody's and is not taken. Raises
        InputError when a clock is stated that is not a positive number, or for runs that measured times or counted no
        cycles.
        """
        needed = untimed(experiment)
        if stated is not None:
            if not 0 < stated < float("inf"):
                raise InputError(f"a clock of {stated:g} Hz", "give cycles a second, such as --clock 2.5GHz")
            if not needed:
                have = "measured times" if "cycles" in experiment.metrics() else "counted no cycles"
                raise InputError(f"--clock is for cycles without times, and these runs {have}", "leave --clock out")
            return cls(stated, "stated")
        if not needed:
            return None
        if platform is not None and platform.name != ESTIMATED:
            spread = PLATFORM_CLOCK if platform.clock.measured is None else 0.0
            return cls(float(platform.frequency), f"of platform {platform.name}", spread)
        return cls(float("nan"), "of the runs") if "frequency" in experiment.metrics() else None

    def remark(self) -> str:
        """What people are to know of times that come from cycles."""
        value = f" of {format_si(self.frequency, 'Hz')}" if self.frequency > 0 else ""
        return (
            f"no time was measured: times are unhalted cycles over the clock{value} ({self.source}); time outside of "
            "the kernels, and in which cores sleep, is not in the whole program's"
        )


def untimed(experiment: Experiment) -> bool:
    """Whether cycles were counted whose times are not known: of kernels, or of the program where neither has a time."""
    measured = _held(experiment)
    if ("time", False) in measured:
        return False
    return ("cycles", False) in measured or (("cycles", True) in measured and ("time", True) not in measured)


def _held(experiment: Experiment) -> set[tuple[str, bool]]:
    """Which of time and cycles any run has a value of: of the whole program (True), of a kernel (False)."""
    result: set[tuple[str, bool]] = set()
    if "cycles" not in experiment.metrics():
        return result
    for _, table in experiment.counted():
        whole = np.array([kernel == WHOLE for kernel in table.kernels], dtype=bool)[table.code]
        for name in {"time", "cycles"}.intersection(table.values):
            result |= {(name, side) for side in (True, False) if (~np.isnan(table.values[name][whole == side])).any()}
    return result


@dataclass(frozen=True)
class Timed(Change):
    """Cycles as times where none was measured; of kernels alone where the program's time was (`whole_timed`)."""

    clock: Clock
    whole_timed: bool

    @classmethod
    def of(cls, experiment: Experiment, clock: Clock) -> Experiment:
        """The experiment with those times."""
        return View(experiment, cls(clock, ("time", True) in _held(experiment)))

    def run(self, run: Run, columns: Sequence[str]) -> Run:
        """See :meth:`~ranksight.core.experiment.Change.run`."""
        provenance = run.provenance
        if "cycles" not in columns or "time" in provenance:
            return run
        how = f"derived from cycles: cycles / clock ({provenance.get('cycles', 'measured')}; clock {self.clock.source})"
        return replace(run, provenance={**provenance, "time": how})

    def columns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """See :meth:`~ranksight.core.experiment.Change.columns`."""
        return (*names, "time") if "cycles" in names and "time" not in names else names

    def counters(self, table: Columns) -> Columns:
        """See :meth:`~ranksight.core.experiment.Change.counters`."""
        if "cycles" not in table.values:
            return table
        frequency = table.values.get("frequency", np.full(len(table), np.nan))
        derived = table.values["cycles"] / np.where(frequency > 0, frequency, self.clock.frequency)
        if self.whole_timed:
            whole = np.array([kernel == WHOLE for kernel in table.kernels], dtype=bool)
            derived = np.where(whole[table.code], np.nan, derived)
        time = table.values.get("time", np.full(len(table), np.nan))
        return replace(table, values={**table.values, "time": np.where(np.isnan(time), derived, time)})

    def samples(self, table: pd.DataFrame) -> pd.DataFrame:
        """What a sample is worth, in times too."""
        if not {"metric", "worth"} <= set(table.columns) or not self.clock.frequency > 0:
            return table
        import pandas as pd

        cycles = table[table["metric"] == "cycles"]
        times = cycles.assign(metric="time", worth=cycles["worth"] / self.clock.frequency)
        return pd.concat([table, times], ignore_index=True) if len(times) else table
