"""What collectors share that put a tool in front of the program on every rank."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from ranksight.campaign.launching import Launch, rank_expression
from ranksight.core.errors import InputError, ToolError
from ranksight.core.reading import Reading
from ranksight.core.units import some_of
from ranksight.counters import merging

PATIENT = 10
"""Niceness of ranks that wait for slower ones: a tenth of the share of a core."""


def before_program(launch: Launch, folder: Path, command: str, ranks: Sequence[int] | None = None) -> tuple[str, ...]:
    """The launch with a shell line in front of the program on every rank.

    `command`: a POSIX shell command that ends before the program; ``$0`` is `folder`, ``$place`` the same for tools
    that expand ``%`` in names, ``$rank`` the rank, ``$$`` the process, which becomes the program's. `ranks`: those
    that have it, all by default; on others the program runs by itself, and where ranks share cores with less of them:
    it waits for the slow ranks, and waiting takes as much of a core as the others leave.
    """
    place = "'" + str(folder.resolve()).replace("%", "%%").replace("'", "'\\''") + "'"
    measured = f'exec {command} "$@"'
    if ranks is not None:
        measured = f'case $rank in {"|".join(map(str, ranks))}) {measured};; esac; exec nice -n {PATIENT} "$@"'
    line = f"rank={rank_expression()}; place={place}; {measured}"
    return launch.wrap(("/bin/sh", "-c", line, str(folder.resolve())))


def refuse_script(launch: Launch) -> None:
    """Refuse a program that is a script: the tool would measure its interpreter.

    Raises InputError when the program begins with ``#!``.
    """
    try:
        with open(launch.program, "rb") as file:
            script = file.read(2) == b"#!"
    except OSError:
        return  # found by the PATH: a launcher's own matter
    if script:
        raise InputError(
            f"{launch.program} is a script; its interpreter would be measured in place of the program",
            "name the program itself in the command; where a script cannot be left out, let it end with 'exec \"$@\"' "
            "and write SCRIPT {wrap} PROGRAM",
        )


def rank_files(
    folder: Path, pattern: str, launch: Launch, tool: str, log: str = "", ranks: Sequence[int] | None = None
) -> dict[int, Path]:
    """Files that the ranks left in `folder`, by rank.

    `pattern`: regular expression of the whole name, with a group ``rank``. `log`: regular expression of the names of
    the tool's own logs, quoted where a rank is missing. `ranks`: those that were measured, all by default. Raises
    ToolError when one of them left none, or two ranks took themselves for the same.
    """
    found: dict[int, Path] = {}
    for file in sorted(folder.iterdir()):
        match = re.fullmatch(pattern, file.name)
        if match is None or not file.is_file():
            continue
        rank = int(match["rank"])
        if rank in found:
            raise ToolError(
                f"{found[rank].name} and {file.name} in {folder} both call themselves rank {rank}",
                "the launcher gives its processes no rank that is known; use mpirun, mpiexec or srun",
            )
        found[rank] = file
    missing = sorted(set(range(launch.ranks) if ranks is None else ranks) - set(found))
    if missing:
        words = f"{ranks_in_words(missing)} of {launch.ranks}"
        raise ToolError(f"{tool} left nothing for {words}", last_words(folder, log) or "see the program's output")
    strange = sorted(set(found) - set(range(launch.ranks)))
    if strange:
        raise ToolError(
            f"{tool} ran on {ranks_in_words(strange)}, but {launch.ranks} ranks are stated",
            "let the launcher's number of ranks and {ranks} agree",
        )
    return dict(sorted(found.items()))


def last_words(folder: Path, log: str) -> str:
    """The last line of the first log in `folder` that says something; empty where none does."""
    for file in sorted(folder.iterdir()) if log else ():
        if re.fullmatch(log, file.name) and file.is_file():
            with file.open("rb") as content:
                content.seek(max(0, file.stat().st_size - 4096))
                lines = content.read().decode("utf-8", "replace").split("\n")
            said = [line.strip() for line in lines if line.strip() and "warning" not in line]
            if said:
                return f"its log says: {said[-1][:300]}"
    return ""


def ranks_in_words(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 0, 4, 5 and 12 more``."""
    return f"rank{'s' if len(ranks) > 1 else ''} {some_of(ranks, 5)}"


def joined(passes: Iterable[Reading], launch: Launch) -> Reading | None:
    """One reading of several runs that counted different events; what several of them count is taken from the first.

    None without a pass. `passes`: with counters of every rank.
    """
    counters: pd.DataFrame | None = None
    provenance: dict[str, str] = {}
    notes: dict[str, None] = {}
    sources: list[str] = []
    sums: list[pd.DataFrame] = []
    for reading in passes:
        assert reading.counters is not None
        sums.append(reading.counters.drop(columns="rank").groupby("kernel", observed=True).sum())
        table = reading.counters.set_index(["kernel", "rank"])
        counters = table if counters is None else counters.combine_first(table)
        provenance = {**reading.provenance, **provenance}
        notes.update(dict.fromkeys(reading.notes))
        sources.extend(reading.source)
    if counters is None:
        return None
    between, more = merging.merged(sums)
    return Reading(
        configuration=dict(launch.configuration),
        counters=counters.reset_index(),
        provenance=provenance,
        tables={} if between is None else {merging.TABLE: between},
        notes=(*notes, *more),
        source=tuple(sources),
    )
