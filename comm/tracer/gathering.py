"""All traces of one run: which are there, which are missing, whether they belong together."""

from __future__ import annotations

from pathlib import Path

from ranksight.comm.tracer.rawfile import RankTrace, read
from ranksight.errors import InputError


def trace_files(folder: Path) -> list[Path]:
    """The files that ranks left in `folder`, in order."""
    return sorted(folder.glob("rank-*.trace"))


def read_folder(folder: Path, size: int | None = None) -> tuple[list[RankTrace], list[str]]:
    """Read the traces of one run.

    Parameters
    ----------
    folder : Path
    size : int, optional
        Number of ranks that were started; by default the number that the ranks themselves saw.

    Returns
    -------
    traces : list of RankTrace
        By rank.
    lost : list of str
        What is missing, one phrase a rank.

    Raises
    ------
    InputError
        When no rank left a trace, ranks of several programs are mixed, or a file is damaged.
    """
    files = trace_files(folder)
    empty = [file for file in files if file.stat().st_size == 0]
    traces = sorted((read(file) for file in files if file not in empty), key=lambda trace: trace.head["rank"])
    lost = [f"{file.name} is empty: the rank was killed, or the disk was full" for file in empty]
    if not traces:
        raise InputError(
            lost[0] if lost else f"{folder} holds no trace",
            "run it again"
            if lost
            else "check that the program calls MPI_Init, and is linked with the shared library of the mpicc on PATH",
        )
    ranks = [trace.head["rank"] for trace in traces]
    total = traces[0].head["size"]
    if len(traces) > 1 and all(trace.head["size"] == 1 for trace in traces):
        raise InputError(
            f"each of {len(traces)} processes in {folder} takes itself for the only one",
            "start the program with the mpirun of its own MPI",
        )
    if len(set(ranks)) != len(ranks) or any(trace.head["size"] != total for trace in traces):
        raise InputError(
            f"{folder} holds the traces of more than one MPI program",
            "trace one program a run, and none that it spawns",
        )
    known = {*ranks, *(int(file.stem[5:]) for file in empty if file.stem[5:].isdigit())}
    lost += [f"rank {rank} left no trace" for rank in range(size or total) if rank not in known]
    return traces, lost
