"""How far work is: a bar with the time left on a terminal, plain lines in a log, nothing with --quiet.

All of it goes to standard error: standard output holds what was asked for.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ranksight.cli._saying import say
from ranksight.core.log import listening
from ranksight.core.names import clipped, printable
from ranksight.core.units import assigned

if TYPE_CHECKING:
    from ranksight.core.experiment import Run

T = TypeVar("T")
LABEL = 48  # columns of what is said before a bar
WORTH = 2.0  # seconds from which on a fit shows a bar
_SCATTER = 0.2  # of ln of the time of one run
SELDOM = 10.0  # seconds between lines of a log about steps that are many


class Progress:
    """How far something is; a context, so that a terminal is restored whatever happens.

    Parameters
    ----------
    total : int
        Steps.
    every : float
        Seconds between plain lines where there is no terminal.
    after : float
        Seconds from which on a bar is worth showing.
    """

    def __init__(self, total: int, quiet: bool, every: float = 0.0, after: float = 0.0) -> None:
        self.total, self.quiet, self.every, self.after = total, quiet, every, after
        self.begin = self.reported = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if not self.quiet and not self.after and sys.stderr.isatty():
            self._start()
        return self

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("", total=self.total, left="")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def at(self, done: float, text: str, *, line: str = "", left: float | None = None) -> None:
        """Say that `done` steps are behind; a log says `line` in place of `text`.

        `left` is the time that the others will take where it is known better than by their number.
        """
        if self.quiet:
            return
        if self._bar is None and sys.stderr.isatty():
            if time.monotonic() - self.begin < self.after:
                return
            self._start()
        now = time.monotonic()
        rest = (now - self.begin) / max(done, 1e-9) * (self.total - done) if left is None else left
        if self._bar is not None:
            self._bar.update(
                self._task, description=clipped(text, LABEL), completed=done, total=self.total, left=_left(rest)
            )
            return
        if now - self.reported >= self.every:
            self.reported = now
            ahead = f", {_left(rest)}" if _left(rest) else ""
            say(f"{line or text}{ahead}", f"[{done:.0f}/{self.total}] ")

    def say(self, text: str) -> None:
        """A line that stays, above the bar where there is one."""
        if self._bar is not None:
            self._bar.console.print(printable(text), markup=False, highlight=False)
        else:
            say(text, "")


def _left(seconds: float) -> str:
    """The time left, rounded; nothing where that is less than a minute."""
    if seconds < 60:
        return ""
    return f"about {seconds / 60:.0f} min left" if seconds < 5400 else f"about {seconds / 3600:.1f} h left"


class Runs(Progress):
    """Shows every run of a campaign (:data:`ranksight.campaign.measuring.Watcher`).

    `runs`: all of the campaign.
    """

    def __init__(self, runs: Sequence[Run], quiet: bool) -> None:
        super().__init__(len(runs), quiet)
        self.ahead = list(runs)
        self.took: list[tuple[Run, float]] = []
        self.done = 0
        self.started = self.begin
        self._within = ExitStack()

    def __enter__(self) -> Self:
        super().__enter__()
        if not self.quiet:
            self._within.enter_context(listening(_Steps(self._inside)))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._within.close()
        super().__exit__(kind, error, at)

    def _inside(self, what: str, done: int, of: int) -> None:
        """Say how far something within a run is, such as the building of what collects: a log, that it begins."""
        if sys.stderr.isatty():
            self.at(self.done, f"{what}: {done} of {of}", left=self._ahead())
        elif not done:
            say(what, f"[{self.done}/{self.total}] ")

    def __call__(self, run: Run, what: str) -> None:
        """`what`: ``start``, ``kept``, ``done`` or ``failed``."""
        if what == "start":
            self.started = time.monotonic()
        else:
            self.done += 1
            self.ahead = _without(self.ahead, run)
        if what in ("done", "failed"):
            self.took.append((run, time.monotonic() - self.started))
        values = assigned(run.configuration)
        text = f"{values} {run.collector} repetition {run.repetition}"
        if self.quiet:
            return
        if sys.stderr.isatty():
            self.at(self.done, text, left=self._ahead())
            if what == "failed":
                self.say(f"{text}: failed")
        elif what not in ("start", "kept"):
            self.at(self.done, text, line=f"{text}: {what}", left=self._ahead())

    def _ahead(self) -> float:
        """Seconds that the runs ahead will take; see :func:`seconds_of`."""
        return sum(seconds_of(self.took, self.ahead, cores())) if self.took and self.ahead else 0.0


def seconds_of(took: Sequence[tuple[Run, float]], ahead: Sequence[Run], available: int) -> list[float]:
    """Seconds that each of the runs `ahead` will take, from those that runs `took`.

    A run takes as long as its ranks share `available` cores, times a factor of its collector and a power of each
    parameter, and more where ranks wait for each other:

        ln t = ln max(1, ranks / cores) + a_collector + w (ranks > 1) + sum_k b_k ln x_k

    by least squares with b and w of standard deviation 1 and a collector that has not run yet about as long as the
    others.
    """
    import numpy as np

    runs = [*(run for run, _ in took), *ahead]
    collectors = sorted({run.collector for run in runs})
    names = sorted({name for run in runs for name, value in run.configuration.items() if value > 0})
    values = [[run.configuration.get(name, 1.0) for name in names] for run in runs]
    powers = np.log(np.where(np.array(values) > 0, values, 1.0)).reshape(len(runs), len(names))
    powers -= powers[0]
    which = np.array([[run.collector == name for name in collectors] for run in runs], dtype=float)
    ranks = np.array([run.configuration.get("ranks", 1.0) for run in runs])
    design = np.hstack((np.ones((len(runs), 1)), which, ranks[:, None] > 1, powers))
    share = np.log(np.maximum(1.0, ranks / max(available, 1)))
    seconds = np.log([max(spent, 1e-3) for _, spent in took])
    doubt = np.diag([1e-6, *np.full(len(collectors), 1e-3), 1.0, *np.ones(len(names))]) * _SCATTER**2
    known = design[: len(took)]
    found = np.linalg.solve(known.T @ known + doubt, known.T @ (seconds - share[: len(took)]))
    return list(map(float, np.exp(design[len(took) :] @ found + share[len(took) :])))


def _without(runs: Sequence[Run], done: Run) -> list[Run]:
    """The runs without the first that is `done`."""
    at = next((at for at, run in enumerate(runs) if run.id == done.id), len(runs))
    return [*runs[:at], *runs[at + 1 :]]


def cores() -> int:
    """Cores that processes started here may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Files(Progress):
    """How many of the files of an import are stored, and how far the one is that is read now."""

    def __init__(self, total: int, quiet: bool) -> None:
        super().__init__(total, quiet, SELDOM)
        self.file = 0
        self._first: tuple[float, int] | None = None
        """When the first runs of this file were stored, and how many."""

    def over(self, items: Iterable[T]) -> Iterator[T]:
        """The items, one a file, one after another."""
        for self.file, item in enumerate(items, 1):
            self._first = None
            yield item
            self(0, 0)

    def __call__(self, runs: int, of: int) -> None:
        """Called after each run of a file is stored, and with zeros after the file."""
        inside = runs / of if of else 1.0
        text = f"file {self.file} of {self.total}" + (f": {runs} of {of} runs stored" if of else "")
        now = time.monotonic()
        if self._first is None:
            self._first = (now, runs)
        since, stored = self._first
        # A file is read before its first run is stored, so that time does not estimate how long storing takes.
        rest = (now - since) / (runs - stored) * (of - runs) if runs > stored else 0.0
        # This file and those before it took so long; a further one takes as long as they did in the mean.
        each = (now - self.begin + rest) / max(self.file, 1)
        self.at(self.file - 1 + inside, text, left=rest + each * (self.total - self.file))


@contextmanager
def fitting(quiet: bool) -> Iterator[None]:
    """Show how far a fit is (:func:`ranksight.core.log.progress`), from the time on that it takes a while."""
    if quiet:
        yield
        return
    with Progress(1, quiet, SELDOM, WORTH) as shown:

        def step(what: str, done: int, of: int) -> None:
            shown.total = of
            shown.at(done, what)

        with listening(_Steps(step)):
            yield


class _Steps(logging.Handler):
    """Passes on the log records of progress."""

    def __init__(self, step: Callable[[str, int, int], None]) -> None:
        super().__init__(logging.DEBUG)
        self.step = step

    def emit(self, record: logging.LogRecord) -> None:
        what, done, of = (getattr(record, name, None) for name in ("what", "done", "of"))
        if isinstance(what, str) and isinstance(done, int) and isinstance(of, int):
            self.step(what, done, of)
