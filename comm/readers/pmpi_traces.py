"""Traces of this package's own tracer, as ranks left them: a folder of ``rank-000000.trace`` and so on, each of one
rank or of a group of ranks.

Names of kernels come from the program's files, which must lie where they lay during the run; otherwise a kernel is
``file+0xoffset``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ranksight.comm.tracer.events import has_events, tabulate_events
from ranksight.comm.tracer.gathering import read_folder, trace_files
from ranksight.comm.tracer.rawfile import RankTrace, is_trace
from ranksight.comm.tracer.tables import METRICS, tabulate
from ranksight.core.reading import READERS, Reading


class PmpiTraces:
    """Reads the folder of one run, or the folder that a trace file lies in; ranks that are missing are in a note."""

    text = "traces of ranksight's own PMPI tracer (a folder of rank-*.trace)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it is a folder of traces, or one of them."""
        return is_trace(head) if path.is_file() else bool(trace_files(path))

    def read(self, path: Path) -> Iterator[Reading]:
        """Read one run; see :func:`ranksight.comm.tracer.gathering.read_folder` for what is refused."""
        folder = path if path.is_dir() else path.parent
        traces, lost = read_folder(folder)
        found = reading_of(traces, {"ranks": float(traces[0].head["size"])})
        source = tuple(str(file) for file in trace_files(folder)[:1])
        yield replace(found, notes=(*lost, *found.notes), source=source)


READERS.register("pmpi")(PmpiTraces())


def reading_of(traces: Sequence[RankTrace], configuration: Mapping[str, float]) -> Reading:
    """The reading of one run from the traces of its ranks."""
    tables = tabulate(traces)
    more = {"peers": tables.peers, "phases": tables.phases, "ranks": tables.ranks, **tables.spawned}
    if has_events(traces):
        origin = min(trace.head["init_mono"] for trace in traces)
        worlds = {trace.world: [each for each in traces if each.world == trace.world] for trace in traces}
        events = {world: tabulate_events(of, origin) for world, of in worlds.items()}
        more["events"] = events.pop("")
        if events:
            more["spawned_events"] = pd.concat(
                [of.assign(world=world) for world, of in events.items()], ignore_index=True
            )
    return Reading(
        configuration=dict(configuration),
        counters=tables.counters,
        messages=tables.messages,
        tables=more,
        provenance=dict.fromkeys(METRICS, "measured"),
        wall_time=float(tables.ranks["wall_time"].max()),
        notes=tables.notes,
        warnings=tables.warnings,
    )
