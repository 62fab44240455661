"""Passes of an import: files that counted other events in further runs of one configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from ranksight.core.experiment import Experiment, Run
from ranksight.core.reading import Reading


def passes(experiment: Experiment, readers: Mapping[str, str]) -> list[list[Run]]:
    """Runs of one configuration and repetition whose counters are of the same ranks and have a kernel in common.

    `readers`: the reader of each collector's name; those of a run are of one reader. Runs with messages are left out.
    """

    def place(run: Run) -> tuple[tuple[float, ...], int, str]:
        return run.point(experiment.parameters), run.repetition, readers.get(run.collector, run.collector)

    found = []
    # a reader that numbered no further set of metrics has no passes: none of its tables is opened
    numbered = {reader for collector, reader in readers.items() if collector != reader}
    runs = [run for run in experiment.runs if readers.get(run.collector) in numbered]
    for _, same in groupby(sorted(runs, key=place), place):
        each = list(same)
        if len(each) > 1:
            found += _alike(experiment, each)
    return found


def _alike(experiment: Experiment, runs: Iterable[Run]) -> list[list[Run]]:
    """Groups of two and more `runs` of the same ranks and with a kernel in common."""
    groups: list[tuple[list[Run], frozenset[int], set[str]]] = []
    for run in runs:
        table = experiment.table(run, "counters", ["kernel", "rank"])
        if table is None or experiment.columns(run, "messages"):
            continue
        ranks, kernels = frozenset(table["rank"].unique().tolist()), set(table["kernel"].astype(str).unique())
        for members, same, known in groups:
            if same == ranks and known & kernels:
                members.append(run)
                known |= kernels
                break
        else:
            groups.append(([run], ranks, kernels))
    return [members for members, _, _ in groups if len(members) > 1]


def stored(experiment: Experiment, run: Run, names: Mapping[str, str], without: Collection[str]) -> Reading:
    """The reading that a run was stored from, but for some notes. `names`: of its metrics in its source."""
    tables = {
        file.stem: table
        for file in sorted((experiment.path / "runs" / run.id).glob("*.parquet"))
        if file.stem != "counters" and (table := experiment.table(run, file.stem)) is not None
    }
    return Reading(
        run.configuration,
        experiment.table(run, "counters"),
        tables=tables,
        repetition=run.repetition,
        provenance=run.provenance,
        meanings=run.meanings,
        names=names,
        wall_time=run.wall_time,
        command=run.command,
        environment=run.environment,
        notes=tuple(note for note in run.notes if note not in without),
        source=run.source,
    )


def store_together(experiment: Experiment, runs: Sequence[Run], reading: Reading) -> None:
    """Put one reading in the place of several runs: it is the first of them."""
    first, *others = runs
    run = replace(
        first,
        provenance=reading.provenance,
        meanings=reading.meanings,
        notes=(*reading.notes, *reading.warnings),
        source=reading.source,
    )
    assert reading.counters is not None
    experiment.replace(run, {"counters": reading.counters, **reading.tables})
    for each in others:
        experiment.drop(each)
