"""The clock of runs: what the measurements say of it, and times of runs that counted cycles alone.

The clock that runs had, from the cycles and the times of the same kernels.

    f = sum over kernels and ranks of cycles / sum of times

Samplers often count cycles in one run and times in another: runs of the same configuration are then taken together.
A platform gives the clock under load of a machine; that of the runs is another in turbo or under a power limit, and
much less where ranks waited for a core. A clock far above the platform's is another machine's, or the counts are not
those of the times.

Times of runs that counted cycles and measured no time: cycles over the clock.

    T = c / f

of each kernel and rank, f the run's own frequency where a tool reports it (LIKWID's ``Clock``), the clock that the user
states, or that of the platform that was measured. Ding et al. 2018 measure nothing else: hardware events alone.
Unhalted cycles leave out the time in which a core slept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.columns import Columns
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment, Run
from ranksight.core.records import dataclass
from ranksight.core.sampled import sampling_of
from ranksight.core.units import format_si
from ranksight.core.view import Change, View
from ranksight.model.plaindata import Stored
from ranksight.model.priors import PLATFORM_CLOCK
from ranksight.model.resource.equation import Machine
from ranksight.model.series.reduction import of_core

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.platforms import Platform


ABOVE = 2.0
"""Times the platform's clock that no processor of it runs at: turbo of one core stays below."""
FAST = 1.5
"""Times the platform's clock that turbo of few cores hardly reaches."""
BELOW = 0.5
"""Part of the platform's clock below which cores were not the ranks' own, or idle."""
PRECISE = 0.05
"""Relative standard error of a clock from samples up to which it is taken."""
ESTIMATED = "generic"
"""The platform that is taken where none is named: its clock is nobody's."""


def measured_clock(experiment: Experiment) -> float:
    """Cycles a second of the runs: the median over those that counted both cycles and times; where none did, cycles
    over times of the same kernels, ranks and configurations in any runs, if their standard error is at most
    :data:`PRECISE`.

    NaN where neither is there.
    """
    clocks = []
    exact = (run for run in experiment.runs if not (run.sampled("time") or run.sampled("cycles")))
    complete = (run for run in exact if run.state == "complete")
    counting = (run for run in complete if {"time", "cycles"} <= set(experiment.columns(run, "counters")))
    for run, arrays in experiment.counted(counting):
        parts = np.array([kernel != WHOLE for kernel in arrays.kernels], dtype=bool)[arrays.code]
        time, cycles = arrays.values["time"], arrays.values["cycles"]
        with_both = (parts | ~parts.any()) & ~np.isnan(time) & ~np.isnan(cycles)
        if time[with_both].sum() > 0 and cycles[with_both].sum() > 0:
            of_cores = of_core(experiment, run, "cycles") / of_core(experiment, run, "time")
            clocks.append(float(cycles[with_both].sum() / time[with_both].sum()) * of_cores)
    return float(np.median(clocks)) if clocks else _paired(experiment)


def _own(experiment: Experiment, run: Run, metric: str) -> pd.DataFrame:
    """A metric of a run's kernels and ranks, of the whole program where it has no kernels; empty where it lacks it."""
    columns = ["kernel", "rank", metric]
    complete = run.state == "complete" and set(columns) <= set(experiment.columns(run, "counters"))
    for _, table in experiment.tables("counters", columns, runs=[run] if complete else ()):
        parts = table[table["kernel"] != WHOLE]
        return (parts if len(parts) else table).set_index(["kernel", "rank"])[[metric]]
    import pandas as pd

    return pd.DataFrame({metric: []})


def _paired(experiment: Experiment) -> float:
    """Cycles over times of the same configurations, of any runs that counted them."""
    cycles, time = (_totals(experiment, name) for name in ("cycles", "time"))
    if cycles.empty or time.empty:
        return float("nan")
    # What no sample fell on by chance counts where the other has it.
    cycles, time = _as_in(cycles, time), _as_in(time, cycles)
    totals = [each.sum() for each in (cycles, time)]
    if not all(each["value"] > 0 for each in totals):
        return float("nan")
    error = np.sqrt(sum(each["variance"] / each["value"] ** 2 for each in totals))
    return float(totals[0]["value"] / totals[1]["value"]) if error <= PRECISE else float("nan")


def _as_in(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Rows of kernels, and of ranks of a configuration, that the other has too."""
    import pandas as pd

    rows_of_one, rows_of_other = (each.reset_index() for each in (one, other))
    common = rows_of_one["kernel"].isin(rows_of_other["kernel"]).to_numpy()
    places = [pd.MultiIndex.from_frame(each[["run", "rank"]]) for each in (rows_of_one, rows_of_other)]
    return one[common & places[0].isin(places[1]) & (rows_of_one["rank"] != ALL_RANKS).to_numpy()]


def _totals(experiment: Experiment, metric: str) -> pd.DataFrame:
    """Mean over repetitions of a metric of each configuration, kernel and rank, with the variance that samples give."""
    import pandas as pd

    parts = []
    for run in experiment.runs:
        values = _own(experiment, run, metric)
        if values.empty:
            continue
        share = of_core(experiment, run, metric)
        totals = pd.DataFrame({"value": values[metric].fillna(0.0) * share, "variance": 0.0})
        samples = sampling_of(experiment, run)
        if samples is not None:
            sampled = samples[samples["metric"] == metric].set_index(["kernel", "rank"])
            variance = share**2 * sampled["samples"] * sampled["worth"] ** 2
            totals["variance"] = variance.reindex(totals.index).fillna(0.0)
        elif run.sampled(metric):
            continue  # of how many samples nobody knows
        parts.append(totals.assign(run=str(run.key[0])).set_index("run", append=True))
    if not parts:
        return pd.DataFrame({"value": [], "variance": []})
    each = pd.concat(parts).groupby(level=["run", "kernel", "rank"])
    count = each.size()
    return pd.DataFrame({"value": each["value"].mean(), "variance": each["variance"].sum() / count**2})


def clocked(machine: Machine, experiment: Experiment) -> tuple[Machine, str]:
    """The machine at the clock that the runs had, and what people are to know of it.

    Raises InputError when the runs had more cycles a second than the named platform can have.
    """
    clock = measured_clock(experiment)
    if not clock > 0:
        return machine, ""
    named = machine.name != ESTIMATED
    if named and clock > ABOVE * machine.frequency:
        raise InputError(
            f"cycles over times of the runs are {clock / 1e9:.3g} GHz, {machine.name} runs at "
            f"{machine.frequency / 1e9:.3g} GHz",
            "name the platform measured with --platform, or import cycles and times with the same reduction over ranks",
        )
    text = ""
    if named and clock < BELOW * machine.frequency:
        text = (
            f"the cycles of the runs are {clock / machine.frequency:.0%} of those that {machine.name} has in their "
            "time: ranks shared cores or slept, or it is another machine"
        )
    elif named and clock > FAST * machine.frequency:
        text = (
            f"cycles over times of the runs are {clock / 1e9:.3g} GHz, {machine.name} runs at "
            f"{machine.frequency / 1e9:.3g} GHz: turbo hardly reaches that, cycles may be sums where times are not"
        )
    return machine.at(clock), text


@dataclass(frozen=True)
class Clock(Stored):
    """Cycles a second, and where that is from; false where times were measured (:data:`NO_CLOCK`).

    `frequency`: in Hz; NaN where only the runs' own frequencies are known. `spread`: standard deviation of the
    logarithm of the clock that the runs had.
    """

    frequency: float
    source: str
    spread: float = 0.0

    @classmethod
    def of(cls, stated: float | None, platform: Platform | None, experiment: Experiment) -> Clock:
        """The clock that makes times of an experiment's cycles; none where it has times, no cycles, or no clock.

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
            return NO_CLOCK
        if platform is not None and platform.name != ESTIMATED:
            spread = PLATFORM_CLOCK if platform.clock.measured is None else 0.0
            return cls(float(platform.frequency), f"of platform {platform.name}", spread)
        return cls(float("nan"), "of the runs") if "frequency" in experiment.metrics() else NO_CLOCK

    def __bool__(self) -> bool:
        return bool(self.source)

    def remark(self) -> str:
        """What people are to know of times that come from cycles; empty where they do not."""
        if not self:
            return ""
        value = f" of {format_si(self.frequency, 'Hz')}" if self.frequency > 0 else ""
        return (
            f"no time was measured: times are unhalted cycles over the clock{value} ({self.source}); time outside of "
            "the kernels, and in which cores sleep, is not in the whole program's"
        )


NO_CLOCK = Clock(float("nan"), "")


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
