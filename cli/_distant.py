"""Measuring a distant point: a smaller workload at growing rank counts, until its CPI stops falling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ranksight.campaign.measuring import Outcome, Plan, Watcher, measure
from ranksight.cli._lines import options, shell_line
from ranksight.cli._outcome import report
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.experiment import Experiment, Run
from ranksight.core.units import assigned, in_full
from ranksight.reports.terminal import Block, Text, next_step, show

if TYPE_CHECKING:
    from ranksight.analysis.phases.analysis import Analysis
    from ranksight.platforms import Platform

_RELEVANT = 0.01  # share of the run from which on a phase is waited for


def measure_distant(experiment: Experiment, plan: Plan, platform: Platform, quiet: bool) -> int:
    """Carry ``measure --distant`` out; 1 when a run failed.

    Raises InputError when the workload is not given as one value of each parameter, or is the original one;
    InsufficientError when the original workload has no phases, no smaller workload exists, or no phase's instructions
    are constant: the regression through the rank counts measured is kept then.
    """
    from ranksight.analysis.phases.analysis import analyse
    from ranksight.analysis.phases.distant import settled

    small = _workload(plan)
    before = analyse(experiment, platform, small=small) if len(experiment) else None
    _check(experiment, before, small)
    assert before is not None
    total = Outcome(0, 0, ())
    said: Analysis | None = None
    ended = False
    for ranks in sorted(set(plan.grid["ranks"])):
        outcome = measure(experiment, replace(plan, grid={**plan.grid, "ranks": [ranks]}), _progress(quiet))
        total += outcome
        if outcome.failures:
            break
        said = analyse(experiment, platform, workload=before.workload, small=small, clock=before.clock)
        cpi = said.cpi()
        heavy = [phase.number for phase in said.phases if phase.share >= _RELEVANT and phase.number in cpi.columns]
        if not quiet:
            shown = ", ".join(f"phase {number} {cpi[number].iloc[-1]:.4f}" for number in heavy)
            print(f"{in_full(ranks)} ranks: CPI of {shown}", flush=True)
        ended = bool(heavy) and all(settled(cpi[number].dropna()) for number in heavy)
        if ended:
            break
    if not quiet and said is not None:
        _tell(experiment, said, ended)

    return report(experiment, total, quiet=True) if quiet or total.failures or total.warnings else 0


def _workload(plan: Plan) -> dict[str, float]:
    several = [name for name, values in plan.grid.items() if name != "ranks" and len(values) > 1]
    if several:
        raise InputError(f"--distant is given {len(plan.grid[several[0]])} values of {several[0]}", "give one")
    return {name: float(values[0]) for name, values in plan.grid.items() if name != "ranks"}


def _check(experiment: Experiment, before: Analysis | None, small: Mapping[str, float]) -> None:
    if before is None:
        raise InsufficientError(
            f"{experiment.path} holds no original workload that a smaller one could stand for",
            "measure it first, without --distant: --collector pmpi-events --collector callgrind-intervals",
        )
    if not small:
        raise InsufficientError(
            "no smaller workload exists: the command has no parameter other than {ranks}; "
            "the regression through the rank counts measured is kept",
            "write the problem's size as {size} where the program takes it",
        )
    if dict(before.workload) == dict(small):
        words = assigned(small)
        raise InputError(f"{words} is the original workload", "give a smaller one")
    groups = [group for phase in before.phases for group in phase.groups]
    if not any(group.constant for group in groups):
        reason = groups[0].reason
        raise InsufficientError(
            f"no phase can have a distant point: {reason}; the regression through the rank counts measured is kept",
            "measure instructions with --collector callgrind-intervals, and one workload over all ranks",
        )


def _progress(quiet: bool) -> Watcher:
    def watch(run: Run, what: str) -> None:
        if not quiet and what in ("done", "failed"):
            values = assigned(run.configuration)
            print(f"{values} {run.collector}: {what}", flush=True)

    return watch


def _tell(experiment: Experiment, said: Analysis, ended: bool) -> None:
    blocks: list[Block] = []
    if not ended:
        still = (
            "cycles per instruction still fall (or never fell): the run with least is taken; more ranks may give less"
        )
        blocks.append(Text(still, 0, 2))
    for phase in said.phases:
        for group in phase.groups:
            point = group.distant
            text = f"no distant point, {group.reason}"
            if point is not None:
                text = (
                    f"{point.instructions:.7g} instructions on {point.measured_ranks} ranks "
                    f"stand for {in_full(point.ranks)} ranks ({point.difference:.2%} off)"
                )
            blocks.append(Text(f"phase {phase.number}: {text}", 0, 2))
    show(
        *blocks, next_step(shell_line("ranksight", "phases", experiment.path, *options({"ranks": 8 * said.ranks[-1]})))
    )
