"""Experiments that were measured apart, in one: what the jobs of a campaign left, or what came from two sittings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.core.tables import read_frame


def is_experiment(path: Path) -> bool:
    """Whether a folder holds an experiment."""
    return (path / "experiment.json").is_file()


def check_alike(target: Experiment, sources: Sequence[Experiment]) -> None:
    """InputError where one of `sources` is of other parameters or another application than `target`."""
    for source in sources:
        if source.parameters != target.parameters:
            raise InputError(
                f"{source.path} is over {', '.join(source.parameters)}, {target.path} over "
                f"{', '.join(target.parameters)}",
                "experiments are joined over the same parameters",
            )
        if source.application != target.application:
            raise InputError(
                f"{source.path} is of {source.application!r}, {target.path} of {target.application!r}",
                "give both the same --application to join them, or compare them with 'ranksight compare'",
            )


def merge(target: Experiment, sources: Sequence[Experiment]) -> int:
    """Copy the runs of `sources` into `target` and give their number; what `target` holds already stays as it is.

    A run that is there already with the same start is the same run. One with another start is a further repetition.
    Raises InputError when a source is of other parameters or another application, before anything is copied.
    """
    check_alike(target, sources)
    return sum(_copy(target, source, run) for source in sources for run in source.runs)


def check_tables(source: Experiment) -> None:
    """Raise InputError where a table of an experiment cannot be read, or holds ranks or values that cannot be."""
    for run in source.runs:
        for file in sorted((source.path / "runs" / run.id).glob("*.parquet")):
            read_frame(file, ranks=run.configuration.get("ranks", math.inf))


def _copy(target: Experiment, source: Experiment, run: Run) -> bool:
    held = {other.id: other for other in target.runs}
    copied = run
    for repetition in itertools.count(run.repetition):
        copied = replace(run, repetition=repetition, id="")
        if copied.id not in held:
            break
        if _same(held[copied.id], run):
            return False
    target.adopt(copied, source.path / "runs" / run.id)
    return True


def _same(one: Run, other: Run) -> bool:
    facts = ("started", "wall_time", "command", "source")
    return all(getattr(one, name) == getattr(other, name) for name in facts) and one.environment == other.environment
