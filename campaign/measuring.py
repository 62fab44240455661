"""A campaign of runs: the grid of configurations, what is still to be measured, and the measuring of it.

Every run is one execution of the application under one collector. A run that fails is kept aside with its output under
``failed/<id>`` and does not stop the others; what is complete is never measured again, so a campaign that was killed
goes on where it stopped.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import platform
import re
import shlex
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path

from ranksight.campaign import supervising
from ranksight.campaign.collecting import Collector, Step
from ranksight.campaign.launching import Launch, Template, in_shell
from ranksight.campaign.preflight import check
from ranksight.campaign.working import Workplace
from ranksight.core.errors import InputError, RanksightError, ToolError, writable
from ranksight.core.experiment import Experiment, Run
from ranksight.core.log import log
from ranksight.core.processor import read_processor
from ranksight.core.reading import validated
from ranksight.core.records import dataclass
from ranksight.core.run import JOBS

_KEPT_VARIABLES = ("OMP_", "OMPI_MCA_", "MPICH_", "UCX_", "SLURM_JOB_ID", "SLURM_JOB_NODELIST", *JOBS, "LD_PRELOAD")
RECORD = ".session"
"""File in the folder of an execution that names the processes while it runs."""
FAILURES_IN_A_ROW = 3
"""After so many failed runs one after another a campaign stops, and after so many of one collector that collector is
left out: what they share is not the configuration, unless others have come through."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured."""

    template: Template
    grid: Mapping[str, Sequence[float]]  # values of every parameter; all combinations are run
    repetitions: int  # for collectors whose numbers scatter; a deterministic one runs once
    collectors: Mapping[str, Collector]
    timeout: float | None = None  # seconds after which one execution is ended and counts as failed
    case: Path | None = None
    """Folder of which each execution gets a copy to run in; with None they run where this process does, or, where the
    template has something to prepare, in what that made of an empty folder."""
    only: int | None = None  # the single repetition to make, from 0; what a deterministic collector gives belongs to 0

    def runs(self) -> Iterator[tuple[Run, Launch, Collector]]:
        """All runs of the plan: the first configuration, then the largest, which shows early whether it can be run and
        how long all will take; then the others in order. Collectors within a configuration."""
        names, stated = list(self.grid), line_of(self.template)
        first, *others = itertools.product(*self.grid.values())
        others.sort(key=tuple(map(max, self.grid.values())).__ne__)
        for values in (first, *others):
            configuration = dict(zip(names, values, strict=True))
            launch = self.template.fill(configuration)
            for name, collector in self.collectors.items():
                for repetition in range(1 if collector.deterministic else self.repetitions):
                    if self.only not in (None, repetition):
                        continue
                    run = Run(configuration, repetition, name, launcher=launch.launcher, environment=stated)
                    yield run, launch, collector


@dataclass(frozen=True, slots=True)
class Failure:
    """One run that failed, with what a user needs to see why."""

    run: Run
    what: str
    last_lines: tuple[str, ...]
    folder: Path
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a campaign; the sum of two is what came of both."""

    measured: int  # runs made now, and those that were there before
    kept: int
    failures: tuple[Failure, ...]
    stopped: bool = False  # whether it ended early, as runs failed one after another
    left_out: tuple[str, ...] = ()  # collectors that were given up
    warnings: tuple[str, ...] = ()  # what of the program the runs made now do not hold

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.measured + other.measured,
            self.kept + other.kept,
            (*self.failures, *other.failures),
            self.stopped or other.stopped,
            tuple(dict.fromkeys((*self.left_out, *other.left_out))),
            tuple(dict.fromkeys((*self.warnings, *other.warnings))),
        )


KNOWN = {
    "not enough slots available": "where ranks may share cores, write 'mpirun --oversubscribe -n {ranks}': their "
    "counts and messages are true then, their times are not",
    "Running as root is *strongly* discouraged": "in a container of your own, "
    "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
}
"""What launchers print when they refuse, and what helps."""
Watcher = Callable[[Run, str], None]
"""Called for every run with ``"start"``, ``"kept"``, ``"done"``, ``"failed"`` or ``"left out"``."""


def measure(experiment: Experiment, plan: Plan, watch: Watcher = lambda run, what: None) -> Outcome:
    """Measure what `experiment` still lacks of `plan`.

    Raises InputError when the folder cannot be written, another campaign is measuring into it, or one that was killed
    left processes that cannot be ended from here; when the program or its launcher cannot be used
    (:mod:`ranksight.campaign.preflight`); ToolError when the program sees another number of ranks than it is launched
    on.
    """
    with alone(experiment.path), _workplace(experiment, plan) as work:
        missing = [launch for run, launch, _ in plan.runs() if run.id not in experiment]
        proved = any(run.configuration.get("ranks", 1) > 1 for run in experiment.runs)
        check(missing, experiment.path, not proved, RECORD)
        return _measure_missing(experiment, plan, watch, work)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other campaigns out of an experiment, end what one that was killed left running, and sweep up after it."""
    with writable(folder):
        handle = os.open(folder / ".campaign.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another campaign is measuring into {folder}", "wait for it, or name another folder"
            ) from None
        except OSError:
            pass  # a file system without locks: two campaigns at once are then the user's to avoid
        for left in folder.glob(".pass-*"):
            supervising.end_left(left / RECORD)
        for left in (*folder.glob(".pass-*"), *folder.glob("runs/.new-*")):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(handle)


def _workplace(experiment: Experiment, plan: Plan) -> AbstractContextManager[Workplace | None]:
    if plan.case is None and not plan.template.prepare:
        return nullcontext()
    return Workplace(plan.case, experiment.path, RECORD, plan.timeout)


@dataclass
class _Failing:
    """Runs that failed one after another."""

    runs: list[Run] = field(default_factory=list)
    proved: bool = False  # whether one came through before

    def passed(self) -> None:
        """A run came through."""
        self.runs.clear()
        self.proved = True

    @property
    def hopeless(self) -> bool:
        """Whether further runs would fail as well."""
        configurations = {tuple(run.configuration.items()) for run in self.runs}
        return len(self.runs) >= FAILURES_IN_A_ROW and (len(configurations) > 1 or not self.proved)


def _measure_missing(experiment: Experiment, plan: Plan, watch: Watcher, work: Workplace | None) -> Outcome:
    measured = kept = 0
    failures: list[Failure] = []
    warnings: dict[str, None] = {}
    in_a_row, lately = _Failing(), {name: _Failing() for name in plan.collectors}
    for run, launch, collector in plan.runs():
        if run.id in experiment:
            kept += 1
            in_a_row.passed()
            lately[run.collector].passed()
            watch(run, "kept")
            continue
        if lately[run.collector].hopeless:
            watch(run, "left out")
            continue
        watch(run, "start")
        came = _measure_one(experiment, run, launch, collector, plan.timeout, work)
        if not isinstance(came, Failure):
            warnings.update(dict.fromkeys(came))
            measured += 1
            in_a_row.passed()
            lately[run.collector].passed()
            watch(run, "done")
            continue
        failures.append(came)
        in_a_row.runs.append(run)
        lately[run.collector].runs.append(run)
        watch(run, "failed")
        if in_a_row.hopeless:
            return Outcome(measured, kept, tuple(failures), stopped=True, warnings=tuple(warnings))
    left_out = tuple(name for name, failing in lately.items() if failing.hopeless)
    return Outcome(measured, kept, tuple(failures), left_out=left_out, warnings=tuple(warnings))


def _measure_one(
    experiment: Experiment,
    run: Run,
    launch: Launch,
    collector: Collector,
    timeout: float | None,
    work: Workplace | None,
) -> Failure | tuple[str, ...]:
    """One run: execute, read, store; its warnings, or how it failed. The folder of the executions goes away."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with writable(experiment.path, "free space, or -o FOLDER"):
        folder = Path(tempfile.mkdtemp(prefix=".pass-", dir=experiment.path))
    wall = None
    try:
        for index, step in enumerate(collector.steps(launch, folder)):
            if work is not None:
                step = replace(step, folder=work.place(launch, folder, f"work-{index}"))
            log("run %s: %s", run.id, " ".join(step.command))
            try:
                seconds = execute(step, folder / f"output-{index}.txt", timeout)
            except ToolError as error:
                raise ToolError(f"'{' '.join(launch.command)}' {error.what}", error.remedy) from error
            wall = seconds if wall is None else wall
        where = f"collector {run.collector}"
        reading = validated(collector.collect(launch, folder), where).per_rank(where)
        full = replace(
            run,
            command=launch.command,
            environment={
                **environment(),
                **reading.environment,
                **run.environment,
                **surroundings(launch, None if work is None else work.case),
            },
            wall_time=reading.wall_time if reading.wall_time is not None else wall,
            started=started,
            exit_status=0,
            provenance=reading.provenance,
            meanings=reading.meanings,
            notes=(*reading.notes, *reading.warnings),
        )
        outputs = sorted(folder.glob("output-*.txt"))
        experiment.add(full, reading.counters, reading.messages, raw=(*outputs, *reading.raw), tables=reading.tables)
    except RanksightError as error:
        return _set_aside(experiment, run, folder, str(error))
    except OSError as error:
        what = f"{error.filename or experiment.path}: {error.strerror or error}; free space, or -o FOLDER"
        return _set_aside(experiment, run, folder, what)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(experiment.path / "failed" / run.id, ignore_errors=True)
    return reading.warnings


def execute(step: Step, output: Path, timeout: float | None) -> float:
    """Run one command to its end, its output into a file; return the wall time in seconds.

    Whatever it started ends on a timeout, when the user cancels, and when this process is killed
    (:mod:`ranksight.campaign.supervising`). Raises ToolError when it cannot be started, exits with another status than
    0, is killed, takes longer than `timeout`, or gives up by MPI_Abort whatever the status.
    """
    environment = {**os.environ, **step.environment}
    _, source = supervising.redirected(step.command)
    if source and not ((step.folder or Path()) / source).is_file():
        raise ToolError(f"reads {source}, which is not a file", "name the file after '<' as seen from the program")
    try:
        status, seconds = supervising.run(
            step.command, output, environment, output.parent / RECORD, timeout, step.folder, step.enough
        )
    except TimeoutError:
        raise ToolError(f"ran longer than {timeout:g} s and was ended", "give --timeout more") from None
    except OSError as error:
        raise ToolError(f"cannot be started: {error.strerror or error}") from error
    if status != 0:
        how = f"was killed by signal {-status} ({_signal(-status)})" if status < 0 else f"exited with status {status}"
        raise ToolError(how)
    if any(_ABORTED.match(line) for line in _tail(output)):
        raise ToolError("called MPI_Abort, though its launcher exits with status 0")
    return seconds


_ABORTED = re.compile(
    r"(?:\[[^\]\s]{1,40}\])?(?:<std\w{3}>:?)?\s*"
    r"(?:MPI_ABORT was invoked on rank \d|application called MPI_Abort\(|Abort\(\d+\) on node \d+ \(rank \d+ )"
)
"""What Open MPI, and what MPICH and its descendants say of a rank that gave up; the status is the program's choice."""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _set_aside(experiment: Experiment, run: Run, folder: Path, what: str) -> Failure:
    """Keep the output of a failed run, in place of that of an earlier try, if there is room for it."""
    place = experiment.path / "failed" / run.id
    shutil.rmtree(place, ignore_errors=True)
    lines: list[str] = []
    for output in sorted(folder.glob("output-*.txt")):
        lines = [line for line in _tail(output) if line.strip()] or lines
    try:
        place.mkdir(parents=True, exist_ok=True)
        for output in sorted(folder.glob("output-*.txt")):
            shutil.copy(output, place / output.name)
        (place / "what.txt").write_text(what + "\n", encoding="utf-8")
    except OSError:
        shutil.rmtree(place, ignore_errors=True)
    text = " ".join(" ".join(lines).split())
    remedy = next((remedy for sign, remedy in KNOWN.items() if sign in text), "")
    return Failure(run, what, tuple(_of_program(lines)[-8:]), place, remedy)


def _of_program(lines: list[str]) -> list[str]:
    """Lines without the boxes in which a launcher repeats that the program has failed, if there are others."""
    parts = re.split(r"^-{40,}$", "\n".join(lines), flags=re.MULTILINE)  # every second one is a box
    own = [part for at, part in enumerate(parts) if not at % 2 or not any(sign in part for sign in _REPEATED)]
    return [line for part in own for line in part.splitlines() if line.strip()] or lines


_REPEATED = ("exited with non-zero status", "a non-zero exit code")
"""What a launcher says in a box of its own when a program has failed by itself."""


def _tail(file: Path) -> list[str]:
    with file.open("rb") as source:
        source.seek(max(0, file.stat().st_size - 8192))
        return source.read().decode("utf-8", "replace").splitlines()


def surroundings(launch: Launch, case: Path | None) -> dict[str, str]:
    """The folder that was copied for a run and the command that prepared it, as a run's environment states them."""
    facts = {"prepare": shlex.join(launch.prepare)} if launch.prepare else {}
    return facts if case is None else {"workdir": str(case.resolve()), **facts}


def line_of(template: Template) -> dict[str, str]:
    """The command and the options of ``measure`` that gave it, for the environment of runs.

    Empty where the command of each run shows its template: it is the same at all numbers of ranks, without preparation
    and without what is computed of parameters.
    """
    if not (template.at or template.prepare or template.computed):
        return {}
    options = ["--prepare", in_shell(template.prepare)] if template.prepare else []
    for ranks, words in template.at.items():
        options += ["--at", str(ranks), in_shell(words)]
    return {"template": in_shell(template.words), "options": shlex.join(options)}


def environment() -> dict[str, str]:
    """What of machine and environment belongs to a measurement: host, processor, kernel, and variables that matter."""
    facts = {"host": socket.gethostname(), "machine": platform.machine(), "system": platform.release()}
    facts["processor"] = read_processor().model or platform.processor() or "unknown"
    facts["cores"] = str(os.cpu_count() or 0)
    facts.update({name: value for name, value in sorted(os.environ.items()) if name.startswith(_KEPT_VARIABLES)})
    return facts
