"""What of an import only the user can know: repetitions, units and timers that contain each other."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ranksight.core.errors import InputError
from ranksight.core.mpi import RANK_COUNTS
from ranksight.core.units import counted, some_of

if TYPE_CHECKING:
    from ranksight.campaign.importing import Import
    from ranksight.campaign.nested import Holder
    from ranksight.core.experiment import Experiment


def doubts(work: Import, experiment: Experiment, chosen: argparse.Namespace) -> Iterator[str]:
    """What of the import only the user can know."""
    yield from bound_notes(experiment)
    if work.unlike is not None:
        one, other = work.unlike
        yield (
            f"{one.name} and {other.name} became repetitions of one configuration: if they are of different programs "
            "or cases, import them separately or distinguish them with --parameter or --set"
        )
    count, patterns = work.numbered()
    if patterns:
        named = " ".join(f"--parameter {name}={shlex.quote(where)}" for name, where in patterns.items())
        yield (
            f"{count} files whose paths differ by {some_of(list(patterns))} became repetitions of one configuration: "
            f"if these are parameters, add {named}"
        )
    if work.thousandfold is not None:
        files = ", ".join(dict.fromkeys(file.name for file in work.thousandfold))
        yield (
            f"times of one configuration differ by a factor of a thousand ({files}): are some in "
            "milliseconds? name their unit in the column (time_ms), or import them separately"
        )
    elif (odd := work.odd_time) is not None:
        place = ", ".join(f"{name} {value:g}" for name, value in odd)
        yield (
            f"the time at {place} and those next to it differ by a factor of a thousand: are some in milliseconds? "
            "name their unit in the column (time_ms), or import them separately"
        )
    counts = [name for name in experiment.parameters if name.casefold() in RANK_COUNTS]
    if counts and "ranks" not in experiment.parameters:
        named = f"--parameter ranks={counts[0]}"
        yield f"if {counts[0]} counts the ranks, say so with {named}: models and diagnosis know more of ranks"
    if (held := work.timers.holder) is not None and chosen.total is None:
        yield f"{_holding(held)}: if it holds them, {_naming(held)}, or their times are added up"
    if chosen.total is None and (pairs := work.timers.pairs) and (longest := work.timers.longest_of_all):
        yield (
            f"{counted(len(pairs), 'pair')} of timers hardly differ in any run, such as {pairs[0][0]} and "
            f"{pairs[0][1]}: timers contain each other, so each is kept as it is and none is added up. The longest, "
            f"{longest}, is taken for the whole program: say --total NAME if another holds all, or --total '' if none "
            "holds others"
        )
    if chosen.total and (times := work.timers.overlap) is not None:
        yield (
            f"the timers add up to {times:.2g} times {chosen.total}: they contain each other, so each is kept as "
            "it is and none is added up"
        )
    if (larger := work.timers.larger) is not None:
        yield (
            f"{larger[0]} takes longer than the whole program in {larger[1]} of {counted(work.timers.wholes, 'run')}: "
            "are rows of several runs mixed? name the column that separates them with --repetition"
        )


def bound_notes(experiment: Experiment) -> list[str]:
    from ranksight.campaign.bound import bound

    return bound([run.configuration for run in experiment.runs])


def _holding(held: Holder) -> str:
    """Why a timer seems to hold the others, in words."""
    together = "" if f"{held.times:.2g}" == "1" else f"{held.times:.2g} times "
    return f"{held.kernel} takes longest everywhere, and the other timers together {together}as long"


def _naming(held: Holder) -> str:
    return f"say --total {shlex.quote(held.kernel)}"


def refuse_wholes(work: Import, chosen: argparse.Namespace, any_times: bool) -> None:
    """Refuse timers of which one seems to be the whole program and is not named, and a whole that one of its parts
    exceeds.

    Raises InputError.
    """
    held, larger = work.timers.holder, work.timers.larger
    if held is not None and (held.certain or any_times) and chosen.total is None:
        raise InputError(
            f"{_holding(held)}: added up they would be too much if it is the whole program",
            f"{_naming(held)}, or --total '' where no timer holds the others",
        )
    if larger is not None and larger[1] == work.timers.wholes:
        raise InputError(
            f"{larger[0]} takes longer than the whole program in every run, and a part cannot exceed the whole",
            f"say --total {shlex.quote(larger[0])} if it holds the others",
        )


def holder_of(work: Import, chosen: argparse.Namespace) -> str | None:
    """The timer that is the whole program where timers hold each other; None where they do not.

    Raises InputError where they do and none is it.
    """
    timers = work.timers
    if chosen.total is not None:
        return chosen.total if chosen.total and timers.overlap is not None else None
    if not (pairs := timers.pairs):
        return None
    if (longest := timers.longest_of_all) is None:
        raise InputError(
            f"timers contain each other, such as {pairs[0][0]} and {pairs[0][1]}, and none is the longest in all runs",
            "name the one that is the whole program with --total, or --total '' where no timer holds others",
        )
    return longest
