"""What later questions need of the measurements and functions do not keep: stored in the model's file by a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranksight.analysis.diagnosis.balance import observe_balance, observe_teams
from ranksight.core.errors import InsufficientError
from ranksight.core.experiment import Experiment
from ranksight.model.fit import OBSERVERS
from ranksight.model.series.reducing import Series
from ranksight.platforms import load

if TYPE_CHECKING:
    from ranksight.model.resource.equation import Machine
    from ranksight.platforms import Platform


@OBSERVERS.register("diagnosis")
def observe(experiment: Experiment, series: Series, platform: Platform | None, machine: Machine) -> dict[str, Any]:
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
        from ranksight.analysis.diagnosis.machine_observed import observe_machine

        observed |= observe_machine(series, platform, machine)
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
    experiment: Experiment, series: Series | None, platform: Platform | None, machine: Machine
) -> dict[str, Any]:
    """The phases' times, or why there are none; empty without event traces."""
    if "ranks" not in experiment.parameters or not any(experiment.columns(run, "events") for run in experiment.runs):
        return {}
    from ranksight.analysis.phases.analysis import analyse  # what few experiments need

    try:
        return analyse(experiment, platform or load("generic"), clock="measured").pet.to_dict()
    except InsufficientError as error:
        return {"missing": str(error)}
