"""The registry of batch systems: the job script of each, how to submit it, and how to query its state.

A scheduler is a small description with a template of its own; third parties add theirs by the entry point group
``ranksight.schedulers``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence

from ranksight.core.errors import ToolError
from ranksight.core.records import dataclass
from ranksight.core.registry import Registry

PATIENCE = 120.0
"""Seconds that a command of the batch system may take."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One batch system."""

    text: str  # what it is
    template: str  # file in ``campaign/scheduling/systems``
    arrays: bool  # whether one script can stand for many tasks
    submit: tuple[str, ...]  # the command before the script's name; it prints the job's id
    after: Callable[[Sequence[str]], tuple[str, ...]]
    """Options that let a job start when the jobs of the ids given have ended, well or not."""
    states: Callable[[Sequence[str]], Mapping[tuple[str, int], str]] | None = None
    """State of every task by job id and index; None where jobs can be emitted but not followed."""


SCHEDULERS: Registry[Scheduler] = Registry(
    "scheduler", packages=("ranksight.campaign.scheduling.systems",), group="ranksight.schedulers"
)


def ask(words: Sequence[str]) -> str:
    """Output of a command of the batch system. Raises ToolError when it is missing, fails, or does not answer."""
    try:
        done = subprocess.run(list(words), capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise ToolError(f"{words[0]} is not found", "run this where the batch system's commands are") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{words[0]} does not answer: {error}", "see whether the batch system is up") from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[:300]
        raise ToolError(f"{words[0]} failed: {said}", f"the whole command was: {' '.join(words)}")
    return done.stdout
