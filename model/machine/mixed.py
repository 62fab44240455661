"""Runs of several machines in one experiment: the machine is a parameter of theirs, and no repetition."""

from __future__ import annotations

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.run import Run
from ranksight.platforms import Platform
from ranksight.platforms.recognition import is_named


def processor(run: Run) -> str:
    """What the system, or the tool that measured, calls the processor of a run; empty where neither says."""
    return str(run.environment.get("processor") or run.environment.get("CPU name") or "")


def check_one_machine(experiment: Experiment) -> None:
    """Raise InputError where one configuration was measured on two machines."""
    seen: dict[tuple[float, ...], str] = {}
    for run in experiment.runs:
        name = processor(run)
        before = seen.setdefault(tuple(run.point(experiment.parameters)), name)
        if name and before and name != before:
            raise InputError(
                f"{experiment.path} has one configuration on {before} and on {name}: a machine is no repetition",
                "name both: ranksight fit EXPERIMENT --platform ONE --platform OTHER, then predict --on OTHER",
            )


def runs_on(experiment: Experiment, platform: Platform) -> Experiment:
    """The runs of an experiment on one of its machines; InputError where none is."""
    runs = [run for run in experiment.runs if is_named(processor(run), platform)]
    if not runs:
        names = sorted({processor(run) or "an unnamed processor" for run in experiment.runs})
        raise InputError(
            f"{experiment.path} has no run on {platform.name}: its runs were on {', '.join(names)[:200]}",
            "name the platform whose 'processors' they are, or give runs of each machine as their own experiment",
        )
    return Experiment(experiment.path, experiment.application, experiment.parameters, runs)
