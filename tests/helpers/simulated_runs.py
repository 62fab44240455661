"""Runs of a program under the simulator, without a campaign."""

from ranksight.campaign.measuring import execute
from ranksight.counters.collectors.callgrind import Callgrind

ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def measured(launch, folder, counted):
    """The reading of a launch in a new folder; `counted` as :meth:`Callgrind.sampled` takes it."""
    folder.mkdir()
    collector = Callgrind().sampled(counted)
    for number, step in enumerate(collector.steps(launch, folder)):
        execute(type(step)(step.command, {**step.environment, **ROOT}, None, step.enough), folder / f"o{number}", 300)
    return collector.collect(launch, folder)
