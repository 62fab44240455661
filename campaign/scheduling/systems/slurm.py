"""Slurm: ``sbatch``, job arrays, ``squeue`` (manual pages of Slurm 22.05)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ranksight.campaign.scheduling.schedulers import SCHEDULERS, Scheduler, ask
from ranksight.core.errors import ToolError


def after(ids: Sequence[str]) -> tuple[str, ...]:
    """``afterany`` waits for all tasks of an array, whatever became of them."""
    return (f"--dependency=afterany:{':'.join(ids)}",)


def states(ids: Sequence[str]) -> Mapping[tuple[str, int], str]:
    """State of each task that Slurm still knows; it forgets jobs some minutes after their end."""
    try:
        text = ask(("squeue", "--noheader", "--array", "--states=all", f"--jobs={','.join(ids)}", "--format=%F|%K|%T"))
    except ToolError as error:
        if "Invalid job id" in str(error):  # all of them are forgotten
            return {}
        raise
    found = {}
    for line in text.splitlines():
        job, index, state = line.strip().split("|")
        found[job, int(index) if index.isdecimal() else 0] = state
    return found


SCHEDULERS.register("slurm")(
    Scheduler("Slurm workload manager", "slurm.sh.j2", True, ("sbatch", "--parsable"), after, states)
)
