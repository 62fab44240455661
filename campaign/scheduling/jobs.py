"""A campaign as jobs: one job a number of ranks, one task a configuration, and a last job that joins the parts.

Every task measures its configuration, or a repetition of it, into an experiment of its own, ``parts/<configuration>``,
so that no two jobs write into one folder; the last job starts when all others have ended, well or not, and joins what
is there. What is complete is marked and not submitted again.
"""

from __future__ import annotations

import itertools
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ranksight.campaign.scheduling.schedulers import Scheduler
from ranksight.core.errors import InputError, writable
from ranksight.core.records import dataclass

SHARING = ("--exclusive", "--oversubscribe", "-s", "-x")
"""Options that say themselves whether nodes are shared."""
COMPLETE = ".complete"
"""File in a part's folder once its task has measured all of it."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the batch system for every job."""

    minutes: int  # time limit
    ranks_per_node: int | None = None  # sets the number of nodes; left to the batch system when None
    options: tuple[str, ...] = ()  # further directives as the batch system writes them, such as ``--account=abc``
    setup: tuple[str, ...] = ()
    """Shell lines before the measurement, such as ``module load openmpi``; one that fails ends the job."""
    campaign: str = ""  # put before the name of every job
    exclusive: bool = True  # whether nodes are asked for alone: other jobs on a node disturb times
    at_once: int | None = None  # tasks of an array that run at the same time, at most

    def __post_init__(self) -> None:
        if self.minutes < 1:
            raise InputError(f"a job of {self.minutes} minutes", "give at least one minute")
        if self.ranks_per_node is not None and self.ranks_per_node < 1:
            raise InputError(f"{self.ranks_per_node} ranks per node", "give at least one")
        if self.at_once is not None and self.at_once < 1:
            raise InputError(f"{self.at_once} tasks at once", "give at least one")
        for option in self.options:
            if "\n" in option or not option.startswith("-"):
                raise InputError(f"{option!r} is not an option of a job", "write one, such as --account=abc")

    @property
    def alone(self) -> bool:
        """Whether nodes are asked for alone, by the request and not by one of its options."""
        return self.exclusive and not any(option.startswith(SHARING) for option in self.options)

    def name_of(self, job: Job) -> str:
        """The name of a job in the queue."""
        plain = re.sub(r"[^A-Za-z0-9._+-]", "_", self.campaign).lstrip("._+-")
        return f"{plain}-{job.name}" if plain else job.name

    def on_a_node(self, job: Job) -> int:
        """Ranks of a job on each of its nodes."""
        return min(self.ranks_per_node or job.ranks, job.ranks)

    @property
    def clock(self) -> str:
        """The time limit as hours, minutes and seconds."""
        return f"{self.minutes // 60:02d}:{self.minutes % 60:02d}:00"


@dataclass(frozen=True, slots=True)
class Task:
    """One configuration, or a repetition of it: the command that measures it, and the part of the experiment filled."""

    part: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One script: `tasks` on `ranks` processes; `nodes` is None where the batch system chooses."""

    name: str
    ranks: int
    nodes: int | None
    tasks: tuple[Task, ...]


def jobs_of(
    grid: Mapping[str, Sequence[float]],
    command: Sequence[str],
    template: Sequence[str],
    folder: Path,
    request: Request,
    scheduler: Scheduler,
    repetitions: int | None = None,
) -> list[Job]:
    """The jobs that measure what `folder` still lacks of a grid, small numbers of ranks first.

    Parameters
    ----------
    grid : mapping of str to values
        With ``ranks``.
    command : words
        ``ranksight measure`` with the options that all tasks share, without folder and parameters.
    template : words
        The program's command, after ``--``.
    repetitions : int or None
        Number of repetitions, each of which is a task of its own; None where a task makes all of a configuration.
    """
    others = [name for name in grid if name != "ranks"]
    jobs = []
    for ranks in sorted(grid["ranks"]):
        tasks = []
        for *values, repetition in itertools.product(*(grid[name] for name in others), range(repetitions or 1)):
            configuration = {"ranks": ranks, **dict(zip(others, values, strict=True))}
            part = "-".join(f"{name}{_plain(value)}" for name, value in configuration.items())
            given = [word for name, value in configuration.items() for word in (f"--{name}", _plain(value))]
            if repetitions:
                part, given = f"{part}-repetition{repetition}", [*given, "--repetition", str(repetition)]
            if (folder / "parts" / part / COMPLETE).is_file():
                continue
            place = str(folder / "parts" / part)
            tasks.append(Task(part, (*command, "-o", place, *given, "--", *template)))
        nodes = math.ceil(ranks / request.ranks_per_node) if request.ranks_per_node else None
        groups = [tasks] if scheduler.arrays else [[task] for task in tasks]
        for at, group in enumerate(group for group in groups if group):
            name = f"ranks-{int(ranks)}" if scheduler.arrays else f"ranks-{int(ranks)}-{at}"
            jobs.append(Job(name, int(ranks), nodes, tuple(group)))
    return jobs


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def write_scripts(
    jobs: Sequence[Job], gather: Sequence[str], folder: Path, cwd: Path, request: Request, scheduler: Scheduler
) -> list[Path]:
    """Write one script a job, ``gather.sh`` and ``submit.sh`` into `folder`; give the scripts of the jobs.

    `gather`: the command that joins the parts; their folders are put behind it. `cwd`: where the user gave the command,
    as programs and files may be named from there. Raises InputError when the folder cannot be written, or its name
    cannot stand in a script's directive.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    def directive(path: Path) -> str:
        if re.search(r"[\s\"'%\\]", str(path)):
            raise InputError(
                f"{path} cannot be named in a job script", "use a folder without blanks, quotes and percent signs"
            )
        return str(path)

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "systems"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # shell scripts: words are quoted below
    )
    environment.filters["directive"] = directive
    template = environment.get_template(scheduler.template)
    texts = {
        folder / f"{job.name}.sh": template.render(
            job=job, request=request, logs=folder / "logs", body=lambda at, job=job: _body(job, at, cwd, request)
        )
        for job in jobs
    }
    scripts = list(texts)
    last = Job("gather", 1, 1 if request.ranks_per_node else None, (Task("", tuple(gather)),))
    parts = shlex.quote(str(folder / "parts")) + "/*/"
    joining = replace(
        request,
        minutes=min(request.minutes, 60),
        ranks_per_node=1 if request.ranks_per_node else None,
        exclusive=False,
        at_once=None,
    )
    texts[folder / "gather.sh"] = template.render(
        job=last,
        request=joining,
        logs=folder / "logs",
        body=lambda at: _lines(cwd, request) + f"exec {shlex.join(gather)} {parts}\n",
    )
    texts[folder / "submit.sh"] = _submission(scripts, folder, scheduler)
    # Only now: what is refused leaves no folder behind.
    with writable(folder, "name another folder with -o"):
        for name in ("parts", "logs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        (folder / "submit.sh").chmod(0o755)
    return scripts


def _lines(cwd: Path, request: Request) -> str:
    # 'set -u' after the set-up: the functions behind 'module' read variables that need not be set.
    return "".join(
        f"{line}\n" for line in ("set -eo pipefail", f"cd {shlex.quote(str(cwd))}", *request.setup, "set -u")
    )


def _body(job: Job, index: str, cwd: Path, request: Request) -> str:
    """Choose the task by its index, run it, and mark its part when it is complete."""
    lines = [f'case "{index}" in']
    for at, task in enumerate(job.tasks):
        mark = shlex.quote(str(Path(task.command[task.command.index("-o") + 1]) / COMPLETE))
        lines += [f"{at})", f"    {shlex.join(task.command)} && : > {mark}", "    ;;"]
    lines += ["*)", '    echo "no such task" >&2', "    exit 2", "    ;;", "esac"]
    return _lines(cwd, request) + "\n".join(lines) + "\n"


def _submission(scripts: Sequence[Path], folder: Path, scheduler: Scheduler) -> str:
    """A script that submits all jobs and the last one behind them, for those who do it by hand."""
    names = [f"job{at}" for at in range(len(scripts))]
    lines = ["#!/bin/sh", "# Submits the campaign; the last job joins the parts when all others have ended.", "set -e"]
    lines += [
        f"{name}=$({shlex.join(scheduler.submit)} {shlex.quote(str(script))})"
        for name, script in zip(names, scripts, strict=True)
    ]
    options = " ".join(f'"{option}"' for option in scheduler.after([f"${{{name}}}" for name in names]))
    last = shlex.quote(str(folder / "gather.sh"))
    lines.append(f"{shlex.join(scheduler.submit)} {options} {last}" if names else f"bash {last}")
    return "\n".join(lines) + "\n"
