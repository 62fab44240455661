"""PBS Professional and OpenPBS: ``qsub`` and job arrays (PBS Professional User's Guide)."""

from __future__ import annotations

from collections.abc import Sequence

from ranksight.campaign.scheduling.schedulers import SCHEDULERS, Scheduler


def after(ids: Sequence[str]) -> tuple[str, ...]:
    """``afterany`` waits for the jobs whatever became of them."""
    return ("-W", f"depend=afterany:{':'.join(ids)}")


SCHEDULERS.register("pbs")(Scheduler("PBS Professional, OpenPBS", "pbs.sh.j2", True, ("qsub",), after))
