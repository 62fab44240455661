"""Submitting a campaign's jobs and following them to their end.

The ids are written down as each job is accepted, so that a user who stopped following, or whose connection broke, goes
on with the same command and submits nothing twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ranksight.campaign.scheduling.jobs import COMPLETE, Job
from ranksight.campaign.scheduling.schedulers import Scheduler, ask
from ranksight.core.errors import InputError, ToolError
from ranksight.core.files import read_json, write_json
from ranksight.core.records import dataclass

RECORD = "jobs.json"
ENDED = frozenset(
    {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL", "DEADLINE"}
)


@dataclass(frozen=True, slots=True)
class Submitted:
    """One job that the batch system took: its id, and the parts of its tasks in order."""

    name: str
    id: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a task that did not complete: its state as far as it is known, and the last lines of its log."""

    part: str
    state: str
    last_lines: tuple[str, ...]
    log: Path


def submit(folder: Path, jobs: Sequence[Job], name: str, scheduler: Scheduler) -> list[Submitted]:
    """Submit the scripts of `jobs` and the one that joins their parts behind them.

    Raises ToolError when the batch system refuses one; those before it are recorded and go on.
    """
    taken: list[Submitted] = []
    scripts = [(job.name, tuple(task.part for task in job.tasks)) for job in jobs]
    for script, parts in (*scripts, ("gather", ())):
        # Written before, so that a job is not submitted twice when this is ended before its id is known.
        _record(folder, name, [*taken, Submitted(script, "", parts)])
        behind = scheduler.after([job.id for job in taken]) if script == "gather" else ()
        try:
            number = _number(ask((*scheduler.submit, *behind, str(folder / f"{script}.sh"))))
        except ToolError:
            _record(folder, name, taken)
            raise
        taken.append(Submitted(script, number, parts))
    _record(folder, name, taken)
    return taken


def _number(text: str) -> str:
    # sbatch --parsable prints "id;cluster" where there are several clusters.
    return text.strip().split(";")[0]


def _record(folder: Path, name: str, taken: Sequence[Submitted]) -> None:
    jobs = [{"name": job.name, "id": job.id, "parts": list(job.parts)} for job in taken]
    write_json(folder / RECORD, {"schema_version": 1, "scheduler": name, "jobs": jobs})


def recorded(folder: Path, name: str) -> list[Submitted]:
    """The jobs that an earlier call submitted, none where there was none.

    Raises InputError when the record is damaged or another batch system's, or a job may run whose id is not known.
    """
    file = folder / RECORD
    if not file.is_file():
        return []
    content = read_json(file)
    try:
        if content["scheduler"] != name:
            raise InputError(f"{file} is of {content['scheduler']}", f"give --submit {content['scheduler']}")
        taken = [Submitted(str(job["name"]), str(job["id"]), tuple(map(str, job["parts"]))) for job in content["jobs"]]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise InputError(f"{file} is damaged: {error}", "remove it, and the jobs are submitted again") from error
    if unknown := next((job.name for job in taken if not job.id), ""):
        others = "".join(f" and {job.id}" for job in taken if job.id)
        raise InputError(
            f"{file}: the command was ended while it submitted {unknown}.sh; whether that job runs is not known",
            f"cancel it{others} where they run, then remove the file: what is missing is submitted again",
        )
    return taken


def alive(taken: Sequence[Submitted], scheduler: Scheduler) -> bool:
    """Whether the batch system still has one of the jobs to run."""
    if not taken or scheduler.states is None:
        return False
    return any(state not in ENDED for state in scheduler.states([job.id for job in taken]).values())


def follow(
    taken: Sequence[Submitted], scheduler: Scheduler, watch: Callable[[dict[str, int]], None], pause: float = 10.0
) -> dict[tuple[str, int], str]:
    """Wait until all jobs have ended, and return their last states; `watch` gets the number of tasks in each state.

    Raises ToolError when the batch system does not answer five times in a row.
    """
    if scheduler.states is None:
        raise ToolError("jobs of this batch system cannot be followed", "submit.sh in the folder submits them")
    last: dict[tuple[str, int], str] = {}
    silent = 0
    while True:
        try:
            now = scheduler.states([job.id for job in taken])
        except ToolError:
            silent += 1
            if silent >= 5:
                raise
            time.sleep(pause)
            continue
        silent = 0
        last.update(now)
        counts: dict[str, int] = {}
        for state in last.values():
            counts[state] = counts.get(state, 0) + 1
        watch(counts)
        if all(state in ENDED for state in now.values()):
            return last
        time.sleep(pause)


def log_of(folder: Path, job: Submitted, at: int = 0) -> Path:
    """The file that task `at` of a job prints into; every submission has its own."""
    return folder / "logs" / f"{job.name}-{at}.{job.id}.out"


def missing(folder: Path, taken: Sequence[Submitted], states: dict[tuple[str, int], str]) -> list[Fate]:
    """The tasks whose part is not complete, with what is known of the cause."""
    found = []
    for job in taken:
        for at, part in enumerate(job.parts):
            if (folder / "parts" / part / COMPLETE).is_file():
                continue
            log = log_of(folder, job, at)
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
            kept = tuple(line for line in lines if line.strip())[-4:]
            found.append(Fate(part, states.get((job.id, at), "unknown"), kept, log))
    return found
