"""The part of 'measure' that hands a campaign to a batch system."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.cli._lines import shell_line
from ranksight.cli._saying import say, warn
from ranksight.core.errors import InputError, ToolError, UsageError
from ranksight.reports.terminal import next_step, show

if TYPE_CHECKING:
    from ranksight.campaign.scheduling.following import Submitted
    from ranksight.campaign.scheduling.jobs import Job


def run(chosen: argparse.Namespace) -> int:
    """Write the scripts; submit and follow them where that is asked for. 1 when a task did not complete."""
    from ranksight.campaign.scheduling.jobs import Request, jobs_of, write_scripts
    from ranksight.campaign.scheduling.schedulers import SCHEDULERS

    if chosen.emit and chosen.submit:
        raise UsageError("ranksight measure: --emit and --submit", "--submit writes the scripts, too: give one of them")
    name = chosen.emit or chosen.submit
    scheduler = SCHEDULERS[name]
    if chosen.submit and scheduler.states is None:
        raise InputError(
            f"jobs of {name} cannot be followed from here", f"give --emit {name} and run the submit.sh it writes"
        )
    output = Path(chosen.output).resolve()
    folder = output.with_name(output.name + ".jobs")
    request = Request(
        chosen.job_time,
        chosen.job_ranks_per_node,
        tuple(chosen.job_option),
        tuple(chosen.job_setup),
        output.name.removesuffix(".exp"),
        not chosen.job_shared,
        chosen.job_at_once,
    )
    if chosen.job_shared:
        warn("other jobs on the nodes disturb times; counts and messages stay right")
    command = [sys.executable, "-m", "ranksight", "measure", "--reps", str(chosen.reps), *_shared(chosen)]
    each = chosen.reps if chosen.job_each_repetition else None
    jobs = jobs_of(chosen.grid, command, chosen.template.words, folder, request, scheduler, each)
    gather = (sys.executable, "-m", "ranksight", "import", "experiment", "--quiet", "-o", str(output))
    taken = _earlier(folder, name) if chosen.submit else []
    if not taken:
        scripts = write_scripts(jobs, gather, folder, Path.cwd(), request, scheduler)
        tasks = sum(len(job.tasks) for job in jobs)
        if not jobs:
            show("all parts are measured", next_step(shell_line("sh", folder / "gather.sh")))
            return 0
        _say(chosen, f"{tasks} {'repetitions' if each else 'configurations'} in {len(scripts)} jobs: {folder}")
        if chosen.emit:
            if not chosen.quiet:
                then = shell_line("ranksight", "fit", output)
                show(next_step(f"{shell_line('sh', folder / 'submit.sh')}  # and when its jobs have ended: {then}"))
            return 0
    return _follow(chosen, folder, jobs, taken, name)


def _shared(chosen: argparse.Namespace) -> list[str]:
    """The options that every task shares."""
    words = ["--application", _application(chosen), "--quiet"]
    for collector in chosen.collector or ():
        words += ["--collector", collector]
    if chosen.sample is not None:
        words += ["--sample", chosen.sample]
    if chosen.sample_ranks != "off":
        words += ["--sample-ranks", chosen.sample_ranks]
    for kernel in chosen.refine:
        words += ["--refine", kernel]
    if chosen.platform is not None:
        words += ["--platform", chosen.platform]
    if chosen.workdir is not None:
        words += ["--workdir", str(chosen.workdir)]
    if chosen.prepare:
        words += ["--prepare", shell_line(*chosen.prepare)]
    for ranks, text in chosen.at:
        words += ["--at", ranks, text]
    if chosen.timeout is not None:
        words += ["--timeout", f"{chosen.timeout:g}"]
    return words


def _application(chosen: argparse.Namespace) -> str:
    if chosen.application:
        return str(chosen.application)
    try:
        launch = chosen.template.fill({name: values[0] for name, values in chosen.grid.items()})
    except InputError:
        if chosen.job_setup:  # what the job loads may bring the launcher along
            return Path(chosen.output).stem
        raise
    return Path(launch.program).name


def _earlier(folder: Path, name: str) -> list[Submitted]:
    from ranksight.campaign.scheduling.following import alive, recorded
    from ranksight.campaign.scheduling.schedulers import SCHEDULERS

    taken = recorded(folder, name)
    return taken if alive(taken, SCHEDULERS[name]) else []


def _follow(chosen: argparse.Namespace, folder: Path, jobs: list[Job], taken: list[Submitted], name: str) -> int:
    from ranksight.campaign.scheduling.following import follow, log_of, missing, submit
    from ranksight.campaign.scheduling.schedulers import SCHEDULERS

    scheduler = SCHEDULERS[name]
    if taken:
        _say(chosen, f"following the jobs that were submitted before: {', '.join(job.id for job in taken)}")
    else:
        taken = submit(folder, jobs, name, scheduler)
        _say(chosen, f"submitted: {', '.join(job.id for job in taken)}")
    reported: dict[str, int] = {}

    def watch(counts: dict[str, int]) -> None:
        nonlocal reported
        if counts != reported:
            _say(chosen, ", ".join(f"{count} {_stated(state)}" for state, count in sorted(counts.items())) or "no news")
            reported = dict(counts)

    try:
        states = follow(taken, scheduler, watch)
    except KeyboardInterrupt:
        ids = " ".join(job.id for job in taken)
        raise ToolError(
            f"no longer following; the jobs {ids} go on", "give the same line again to follow them, or cancel them"
        ) from None
    lost = missing(folder, taken, states)
    for fate in lost:
        more = ": give more time with --job-time" if fate.state == "TIMEOUT" else ""
        say(f"{fate.part} is not complete, its job's state is {fate.state.lower()}{more}")
        for line in fate.last_lines:
            say(line, "  | ")
        say(f"its output is in {fate.log}", "  ")
    if lost:
        say("give the same line again to measure what is missing")
    if Path(chosen.output).exists():
        if not chosen.quiet:
            show(next_step(shell_line("ranksight", "fit", chosen.output)))
    elif not lost:
        raise ToolError(
            "the parts were not joined",
            f"see {log_of(folder, taken[-1])}, then: {shell_line('sh', folder / 'gather.sh')}",
        )
    return 1 if lost else 0


def _stated(state: str) -> str:
    """A state in small letters; the reason behind it is the batch system's own word."""
    name, space, reason = state.partition(" ")
    return f"{name.lower()}{space}{reason}"


def _say(chosen: argparse.Namespace, line: str) -> None:
    if not chosen.quiet:
        print(line, flush=True)
