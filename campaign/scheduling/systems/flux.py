"""Flux: ``flux batch``, one script a task as it has no arrays of scripts (Flux manual pages, RFC 36)."""

from __future__ import annotations

from collections.abc import Sequence

from ranksight.campaign.scheduling.schedulers import SCHEDULERS, Scheduler


def after(ids: Sequence[str]) -> tuple[str, ...]:
    """``afterany`` waits for a job whatever became of it; one option a job."""
    return tuple(f"--dependency=afterany:{name}" for name in ids)


SCHEDULERS.register("flux")(Scheduler("Flux", "flux.sh.j2", False, ("flux", "batch"), after))
