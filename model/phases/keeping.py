"""What a fitted model keeps of phases."""

from __future__ import annotations

from typing import Any

from ranksight.errors import InsufficientError
from ranksight.experiment import Experiment
from ranksight.model.phases.calls import traced
from ranksight.platforms import Platform, load


def phases_of(experiment: Experiment, platform: Platform | None) -> dict[str, Any]:
    """What a model keeps of phases: their times, or why there are none; empty without event traces."""
    if "ranks" not in experiment.parameters or not traced(experiment):
        return {}
    from ranksight.model.phases.analysis import analyse  # what few experiments need

    try:
        return analyse(experiment, platform or load("generic"), clock="measured").pet.to_dict()
    except InsufficientError as error:
        return {"missing": str(error)}
