"""What later questions need of the measurements and functions do not keep: stored in the model's file by a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.analysis.diagnosis.balance import observe_balance, observe_teams
from ranksight.analysis.diagnosis.ceilings import Ceilings
from ranksight.analysis.diagnosis.counted import Counted
from ranksight.analysis.diagnosis.evidence import served
from ranksight.core.arrays import Array
from ranksight.core.errors import InsufficientError
from ranksight.core.experiment import Experiment
from ranksight.model.fit import OBSERVERS
from ranksight.model.resource.equation import LEVELS, Machine
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.platforms import Platform, load


@OBSERVERS.register("diagnosis")
def observe(
    experiment: Experiment, series: Series, platform: Platform | None, machine: Machine | None
) -> dict[str, Any]:
    """Plain data for the model's extras, under ``diagnosis``.

    Entries: ``ceilings`` (:class:`ranksight.analysis.diagnosis.ceilings.Ceilings`), ``minimum_wait`` (kernel to cycles
    an instruction that its loads and stores may wait where they would least), ``counted``
    (:class:`ranksight.analysis.diagnosis.counted.Counted`), ``balance``
    (:func:`ranksight.analysis.diagnosis.balance.observe_balance`), ``teams``
    (:func:`ranksight.analysis.diagnosis.balance.observe_teams`), ``waits``
    (:func:`ranksight.analysis.diagnosis.waits.observe_waits`), ``exchanges``
    (:func:`ranksight.analysis.diagnosis.exchanges.observe_exchanges`); each where its evidence is there.

    `series`: means over ranks that the functions were fitted to. `platform`: the machine measured. `machine`: the same
    at the clock of the runs.
    """
    observed: dict[str, Any] = {}
    if platform is not None:
        ceilings = Ceilings.of(platform) if machine is None else Ceilings.of(platform).at(machine.frequency)
        observed["ceilings"] = ceilings.to_dict()
        if minimum_wait := _minimum_wait(series, ceilings):
            observed["minimum_wait"] = minimum_wait
        if (counted := Counted.of(series)).rows:
            observed["counted"] = counted.to_dict()
    if balance := observe_balance(experiment):
        observed["balance"] = balance
    if teams := observe_teams(experiment):
        observed["teams"] = teams
    if any(experiment.columns(run, "messages") for run in experiment.runs):
        from ranksight.analysis.diagnosis.exchanges import observe_exchanges
        from ranksight.analysis.diagnosis.waits import observe_waits

        if waits := observe_waits(experiment):
            observed["waits"] = waits
        if exchanges := observe_exchanges(experiment):
            observed["exchanges"] = exchanges
    return observed


@OBSERVERS.register("phases")
def phases_of(
    experiment: Experiment, series: Series | None, platform: Platform | None, machine: Machine | None
) -> dict[str, Any]:
    """The phases' times, or why there are none; empty without event traces."""
    if "ranks" not in experiment.parameters or not any(experiment.columns(run, "events") for run in experiment.runs):
        return {}
    from ranksight.analysis.phases.analysis import analyse  # what few experiments need

    try:
        return analyse(experiment, platform or load("generic"), clock="measured").pet.to_dict()
    except InsufficientError as error:
        return {"missing": str(error)}


def _minimum_wait(series: Series, ceilings: Ceilings) -> dict[str, float]:
    """Least cycles an instruction that what L2, L3 and memory serve may take, of each kernel counted."""
    rows = series.rows
    values = reduce(series.values, "median", axis=2)
    waits: dict[str, float] = {}
    for kernel in dict.fromkeys(series.kernels):
        counts = [(at, rows[kernel, name]) for at, name in enumerate(LEVELS) if at and (kernel, name) in rows]
        if not counts or (kernel, "instructions") not in rows:
            continue
        counted = values[rows[kernel, "instructions"]]
        stores = served(*(_values(values, rows.get((kernel, f"store_misses_l{level}"))) for level in (1, 2, 3)))
        longest = ceilings.latency[1:] * ceilings.longest
        waiting = np.sum([(_values(values, row) + stores[at - 1]) * longest[at - 1] for at, row in counts], axis=0)
        known = counted > 0
        if known.any():
            waits[kernel] = float((waiting[known] / counted[known]).min())
    return waits


def _values(values: Array, row: int | None) -> Array:
    """A metric at each configuration; 0 where it was not counted."""
    return np.zeros(values.shape[1]) if row is None else np.nan_to_num(values[row])
