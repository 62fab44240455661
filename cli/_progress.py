"""How far a campaign is: a bar with the time left on a terminal, a line a run elsewhere, nothing with --quiet."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranksight.experiment import Run


class Progress:
    """Told of every run of a campaign (:data:`ranksight.campaign.Watcher`); a context, so that a terminal is restored.

    Parameters
    ----------
    total : int
        Runs of the campaign.
    """

    def __init__(self, total: int, quiet: bool) -> None:
        self.total, self.quiet = total, quiet
        self.done = self.kept = 0
        self.begin = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if not self.quiet and sys.stdout.isatty():
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(compact=True)
            )
            self._bar.start()
            self._task = self._bar.add_task("measuring", total=self.total)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, run: Run, what: str) -> None:
        self.done += what != "start"
        self.kept += what == "kept"
        if self.quiet:
            return
        values = " ".join(f"{name}={value:g}" for name, value in run.configuration.items())
        text = f"{values} {run.collector} repetition {run.repetition}"
        if self._bar is not None:
            self._bar.update(self._task, description=text[:48], completed=self.done)
            if what == "failed":
                self._bar.console.print(f"{text}: failed", markup=False, highlight=False)
        elif what not in ("start", "kept"):
            print(f"[{self.done}/{self.total}] {text}: {what}{self._left()}", flush=True)

    def _left(self) -> str:
        """The time left, as the runs measured so far tell; nothing where that is a few seconds."""
        measured = self.done - self.kept
        left = (time.monotonic() - self.begin) / max(measured, 1) * (self.total - self.done)
        if left < 60:
            return ""
        return f", about {left / 60:.0f} min left" if left < 5400 else f", about {left / 3600:.1f} h left"
