"""All traces of one run: which are there, which are missing, whether they belong together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ranksight.comm.tracer.rawfile import RankTrace, read
from ranksight.core.errors import InputError


def trace_files(folder: Path) -> list[Path]:
    """The files that ranks left in `folder`, in order; a file holds the trace of one rank or of a group."""
    return sorted(folder.glob("rank-*.trace"))


def read_folder(folder: Path, size: int | None = None) -> tuple[list[RankTrace], list[str]]:
    """Read the traces of one run.

    `size`: number of ranks that were started; by default the number that the ranks themselves saw. Raises InputError
    when no rank left a trace, ranks of several programs are mixed, or a file is damaged.

    Returns
    -------
    traces : list of RankTrace
        By rank: of the world that was launched, then of those that its ranks started.
    lost : list of str
        What is missing, one phrase a world.
    """
    files = trace_files(folder)
    empty = [file for file in files if file.stat().st_size == 0]
    traces = _once(trace for file in files if file not in empty for trace in read(file))
    worlds: dict[str, list[RankTrace]] = {"": []}
    for trace in traces:
        worlds.setdefault(trace.world, []).append(trace)
    if not worlds[""]:
        raise InputError(
            f"{empty[0].name} is empty: the rank was killed, or the disk was full"
            if empty
            else f"{folder} holds no trace",
            "run it again"
            if empty
            else "check that the program calls MPI_Init and is linked with the shared library of the mpicc on PATH; "
            "of an MPI that it loads by dlopen only calls found by dlsym are traced",
        )
    if len(worlds[""]) > 1 and all(trace.head["size"] == 1 for trace in worlds[""]):
        raise InputError(
            f"each of {len(worlds[''])} processes in {folder} takes itself for the only one",
            "start the program with the mpirun of its own MPI",
        )
    lost = [_missing(folder, world, of, None if world else size) for world, of in worlds.items()]
    return traces, [each for each in lost if each]


def _missing(folder: Path, world: str, traces: Sequence[RankTrace], size: int | None) -> str:
    """Which ranks of a world left no trace, one phrase; InputError where the traces are not of one world."""
    ranks = {trace.head["rank"] for trace in traces}
    total = traces[0].head["size"]
    if len(ranks) != len(traces) or any(trace.head["size"] != total for trace in traces):
        raise InputError(f"{folder} holds the traces of more than one MPI program", "trace one program a run")
    missing = [rank for rank in range(size or total) if rank not in ranks]
    of = f" of the {total} processes that rank {world.rpartition('_')[2].partition('.')[0]} started" if world else ""
    why = "killed, started without the tracer, or the disk was full"
    return f"{named(missing)}{of} left no trace: {why}" if missing else ""


def named(ranks: Sequence[int]) -> str:
    """The first few of some ranks: ``rank 3``, ``ranks 0, 4``, ``1,000 ranks (0, 1, 2, 3, 4, 5, 6, 7, ...)``."""
    if len(ranks) <= 8:
        return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
    return f"{len(ranks):,} ranks ({', '.join(map(str, ranks[:8]))}, ...)"


def _once(traces: Iterable[RankTrace]) -> list[RankTrace]:
    """Each process once, by rank: what a rank wrote by itself may be in its group's file too, then to the end."""
    found: dict[tuple[str, int, int, int], RankTrace] = {}
    for trace in traces:
        process = (trace.world, trace.head["rank"], trace.head["init_begin"], trace.head["init_mono"])
        if process not in found or trace.ended == "finalize":
            found[process] = trace
    return sorted(found.values(), key=lambda trace: (trace.world, trace.head["rank"]))
