"""The clock that runs had, from the cycles and the times of the same kernels.

    f = sum over kernels and ranks of cycles / sum of times

Samplers often count cycles in one run and times in another: runs of the same configuration are then taken together.
A platform gives the clock under load of a machine; that of the runs is another in turbo or under a power limit, and
much less where ranks waited for a core. A clock far above the platform's is another machine's, or the counts are not
those of the times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment, Run
from ranksight.core.sampled import sampling_of
from ranksight.model.resource.equation import Machine

if TYPE_CHECKING:
    import pandas as pd

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
    for _, arrays in experiment.counted(counting):
        parts = np.array([kernel != WHOLE for kernel in arrays.kernels], dtype=bool)[arrays.code]
        time, cycles = arrays.values["time"], arrays.values["cycles"]
        with_both = (parts | ~parts.any()) & ~np.isnan(time) & ~np.isnan(cycles)
        if time[with_both].sum() > 0 and cycles[with_both].sum() > 0:
            clocks.append(float(cycles[with_both].sum() / time[with_both].sum()))
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
        totals = pd.DataFrame({"value": values[metric].fillna(0.0), "variance": 0.0})
        samples = sampling_of(experiment, run)
        if samples is not None:
            sampled = samples[samples["metric"] == metric].set_index(["kernel", "rank"])
            totals["variance"] = (sampled["samples"] * sampled["worth"] ** 2).reindex(totals.index).fillna(0.0)
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
