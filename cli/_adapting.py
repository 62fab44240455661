"""Collectors made to fit what a campaign asks of them: the caches and events of a platform, kernels split into parts.

Loops are found by the collector that sees the machine code run (callgrind); collectors that see source lines (perf)
then use these loops, so that counts and times of a loop stand under one name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ranksight.campaign.collecting import Collector
from ranksight.campaign.measuring import Outcome, Plan, Watcher, measure
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.platforms import Platform
from ranksight.platforms.events import EventTable, recognise, this_processor
from ranksight.platforms.events import load as load_table

if TYPE_CHECKING:
    import pandas as pd

REFINED = "refined"  # table of a run that says which kernel is a part of which


@runtime_checkable
class Simulating(Protocol):
    """A collector that simulates the caches of a platform."""

    simulated: str

    def on(self, platform: Platform) -> Collector:
        """The same with the caches of `platform`."""


@runtime_checkable
class Counting(Protocol):
    """A collector that counts the events of an event table."""

    table: EventTable | None

    def using(self, table: EventTable) -> Collector:
        """The same with the events of `table`."""


@runtime_checkable
class Splitting(Protocol):
    """A collector that can split kernels into parts."""

    refine: tuple[str, ...]

    def refined(self, kernels: Sequence[str], **how: Any) -> Collector:
        """The same with `kernels` split."""


@runtime_checkable
class Sampling(Protocol):
    """A collector that can simulate a part of a run that stands for the whole."""

    sample: int | None
    by_class: bool

    def sampled(self, counted: int | None, by_class: bool = False) -> Collector:
        """The same with `counted` occurrences of what repeats: 0 for as few as stand for all, None for all.

        `by_class`: ranks that do the same work stand for each other.
        """


def adapt(
    collectors: Mapping[str, Collector], platform: Platform | None, kernels: Sequence[str], named: bool, say: Any = None
) -> dict[str, Collector]:
    """The collectors, on a platform and with some kernels split.

    `kernels`: to be split. `named`: whether the user named the collectors: what they cannot do is then an error,
    otherwise a message to `say`. Raises InputError when none of the collectors can do what is asked, or one that was
    named cannot.
    """
    found = dict(collectors)
    report = say if callable(say) else _silent
    if platform is not None:
        found = {name: _on(name, each, platform, named, report) for name, each in found.items()}
        if not any(isinstance(each, Simulating | Counting) for each in found.values()):
            raise InputError(
                f"none of the collectors {', '.join(found)} depends on a platform",
                "leave --platform out, or use callgrind, perf or perf-stat",
            )
    if kernels:
        able = [name for name, each in found.items() if isinstance(each, Splitting)]
        if not able:
            raise InputError(
                f"none of the collectors {', '.join(found)} can split kernels",
                "--refine needs callgrind, perf or perf-clock",
            )
        found |= {name: found[name].refined(kernels) for name in able}  # type: ignore[attr-defined]
        whole = [name for name in found if name not in able]
        if whole:
            report(f"{', '.join(whole)}: splits no kernels, {', '.join(kernels)} stay whole there")
    return found


def sampled(
    collectors: Mapping[str, Collector], how: str | None, kernels: Sequence[str], by_class: bool = False
) -> dict[str, Collector]:
    """The collectors that can, simulating a part of each run.

    `how`: ``auto``, ``off`` or occurrences to count; None where the user did not say. `kernels`: to be split, for which
    all is simulated. `by_class`: ranks that do the same work stand for each other. Raises InputError when a part is
    asked for and no collector can.
    """
    if by_class and how == "off":
        raise InputError(
            "--sample-ranks auto needs the calls that --sample records, and --sample is off", "leave one out"
        )
    option = f"--sample {how}"
    if by_class and how is None:
        how, option = "auto", "--sample-ranks auto"
    able = {name: each for name, each in collectors.items() if isinstance(each, Sampling)}
    if how not in (None, "off") and (kernels or not able):
        what = f"{option}: none of the collectors {', '.join(collectors)} simulates a part of a run"
        if able:
            raise InputError(f"{option}: kernels are split in runs that are simulated in full", "leave one out")
        raise InputError(what, "use --collector callgrind, or leave it out")
    counted = None if how == "off" else 0 if how in (None, "auto") else int(how)
    return {**collectors, **{name: each.sampled(counted, by_class) for name, each in able.items()}}


def _on(name: str, collector: Collector, platform: Platform, named: bool, report: Any) -> Collector:
    if isinstance(collector, Simulating):
        return collector.on(platform)
    if not isinstance(collector, Counting):
        return collector
    if not platform.events:
        what = f"platform {platform.name} names no table of events"
        remedy = "write events = 'NAME' in its file"
    else:
        table, own = load_table(platform.events), recognise(this_processor())
        if own is None or own.name == table.name:
            return collector.using(table)
        # codes of another processor would count something else here, without a word
        what = f"platform {platform.name} has the events of {table.title}, this processor is {own.title}"
        remedy = "leave --platform out, or use callgrind"
    if named:
        raise InputError(f"collector {name}: {what}", remedy)
    report(f"{name}: {what}; it counts this processor's own")
    return collector


def _silent(_: str) -> None:
    pass


def check_alike(experiment: Experiment, collectors: Mapping[str, Collector], kernels: Sequence[str]) -> None:
    """Refuse to go on with a campaign that simulated other caches, a part where all is asked for, or split other
    kernels.

    Raises InputError.
    """
    for name, collector in collectors.items():
        run = next((run for run in experiment.runs if run.collector == name), None)
        if run is None:
            continue
        caches = set(run.provenance.values())
        if isinstance(collector, Simulating) and caches and collector.simulated not in caches:
            raise InputError(
                f"{experiment.path} holds runs of {name} with other caches: {' '.join(sorted(caches))}",
                "give the same --platform, or name another folder",
            )
        if isinstance(collector, Sampling):
            _check_parts(experiment, name, collector)
        if isinstance(collector, Splitting):
            table = experiment.table(run, REFINED)
            split = set() if table is None else set(table["parent"])
            if split != set(kernels) if _finds_loops(collector) else (table is None) == bool(kernels):
                raise InputError(
                    f"{experiment.path} holds runs of {name} that split {', '.join(sorted(split)) or 'no kernel'}",
                    "give the same --refine, or name another folder",
                )


def _check_parts(experiment: Experiment, name: str, collector: Sampling) -> None:
    """Refuse runs of which a part was simulated, or some of the ranks, where all is asked for."""
    for option, table, asked in (
        ("--sample", "signature", collector.sample is None),
        ("--sample-ranks", "rank_classes", not collector.by_class),
    ):
        runs = [run for run in experiment.runs if run.collector == name and experiment.columns(run, table)]
        if asked and table == "rank_classes":
            runs = [run for run in runs if _for_others(experiment.table(run, table))]
        if asked and runs:
            raise InputError(
                f"{option} off: {experiment.path} holds runs of {name} of which a part was simulated, such as "
                f"{runs[0].id}",
                f"give {option} auto to keep them, or name another folder",
            )


def _for_others(table: pd.DataFrame | None) -> bool:
    """Whether ranks were simulated for others."""
    return table is not None and bool((table["rank"] != table["counted_by"]).any())


def _finds_loops(collector: Collector) -> bool:
    return isinstance(collector, Splitting) and not hasattr(collector, "spans")


def measure_parts(experiment: Experiment, plan: Plan, watch: Watcher) -> Outcome:
    """Measure a plan some of whose collectors split kernels: first those that find loops, then those that use them.

    Raises InputError as :func:`ranksight.campaign.measure`.
    """
    splitters = {
        name for name, each in plan.collectors.items() if hasattr(each, "spans") and isinstance(each, Splitting)
    }
    finders = {name for name, each in plan.collectors.items() if _finds_loops(each)}
    if not splitters or not finders:
        return measure(experiment, plan, watch)
    rest = {name: each for name, each in plan.collectors.items() if name not in splitters}
    first = measure(experiment, replace(plan, collectors=rest), watch)
    spans: dict[str, None] = {}
    for run in experiment.runs:
        table = experiment.table(run, REFINED) if run.collector in finders else None
        spans.update(dict.fromkeys([] if table is None else table["kernel"].tolist()))
    if first.stopped or not spans:
        return first
    split = {
        name: each.refined(each.refine, spans=sorted(spans))
        for name, each in plan.collectors.items()
        if name in splitters and isinstance(each, Splitting)
    }
    return first + measure(experiment, replace(plan, collectors=split), watch)
