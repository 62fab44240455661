"""How the runs of two experiments differ: commands, collectors, environments."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ranksight.core.experiment import Run

PLACED = ("host", "SLURM_", "PBS_", "LSB_")
"""Prefixes of environment entries that name the place or the job of a run, not the machine."""


def differences(before: Sequence[Run], after: Sequence[Run]) -> tuple[str, ...]:
    """What differs between the runs of two experiments, in sentences; empty where all that is known is the same.

    Commands are compared at configurations that both have. Of the environment (processor, system, compiler, variables
    such as ``OMP_NUM_THREADS``) what both know is compared.
    """
    lines = []
    if different := _commands(before, after):
        lines.append("the commands differ: " + " and ".join(map(repr, different)))
    collectors = [sorted({run.collector for run in runs if run.collector}) for runs in (before, after)]
    if collectors[0] != collectors[1] and all(collectors):
        lines.append(f"the collectors differ: {' and '.join(', '.join(names) for names in collectors)}")
    names = {name for run in before for name in run.environment} & {name for run in after for name in run.environment}
    for name in sorted(names):
        if name.startswith(PLACED):
            continue
        values = [
            sorted({run.environment[name] for run in runs if name in run.environment}) for runs in (before, after)
        ]
        if values[0] != values[1]:
            lines.append(f"{name} differs: {' and '.join(', '.join(each) for each in values)}")
    return tuple(lines)


def _commands(before: Sequence[Run], after: Sequence[Run]) -> tuple[str, str] | None:
    """The commands of the first configuration at which the two have none in common; None where there is none."""
    each = []
    for runs in (before, after):
        ranks_of: dict[tuple[tuple[str, float], ...], list[str]] = {}
        for run in runs:
            if run.command:
                ranks_of.setdefault(tuple(sorted(run.configuration.items())), []).append(shlex.join(run.command))
        each.append(ranks_of)
    for place in sorted(each[0].keys() & each[1].keys()):
        if not set(each[0][place]) & set(each[1][place]):
            return each[0][place][0], each[1][place][0]
    return None
