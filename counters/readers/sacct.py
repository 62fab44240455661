"""Tables of Slurm's ``sacct``: elapsed time and ranks of job steps, and what else is known of every job.

``sacct --parsable2 --format JobID,JobName,NTasks,NNodes,AllocCPUS,Elapsed,State,MaxRSS``, any delimiter, or the table
in columns; with ``ConsumedEnergy`` or ``ConsumedEnergyRaw`` the energy of its nodes. A step that ``srun`` started is a
run with its ``NTasks`` as ranks; a job without such steps is one, and its processors are taken for ranks, which the
user may state otherwise. All columns can be named as parameters: ``--parameter nodes=NNodes``; a value in the job's
name is found by a regular expression. Jobs that did not complete are left out, and named.

Source: sacct(1): "Elapsed time fields are presented as [days-]hours:minutes:seconds".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, WHOLE
from ranksight.core.reading import READERS, Reading
from ranksight.core.records import dataclass
from ranksight.core.units import some_of
from ranksight.counters.readers._assemble import build, columns_of
from ranksight.counters.readers._durations import seconds
from ranksight.counters.readers._files import Format, damaged, number, read_text

_RULE = re.compile(r"-{2,}(?: +-{2,})*")
_STEP = re.compile(r"(?P<job>\d{1,12}(?:_\d{1,9}|_\[[^\]]{1,99}\]|\+\d{1,9})?)(?:\.(?P<step>[\w+]{1,30}))?")
_SIZE = re.compile(r"(?P<size>\d{1,20}(?:\.\d{1,9})?)(?P<unit>[KMGTPE]?)[nc]?")
_NEGATIVE = re.compile(r"-\d{1,20}(?:\.\d{1,9})?[KMGTPE]?")
_FACTORS = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50, "E": 2.0**60}
_TIMES = ("ElapsedRaw", "Elapsed")
_ENERGY = ("ConsumedEnergyRaw", "ConsumedEnergy")
_POWERS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_NO_ENERGY = ("", "0", "4294967294", "18446744073709551614")
_MOST_ENERGY = 1e15  # J; Slurm prints NO_VAL as 16.00E
_CPUS = ("AllocCPUS", "NCPUS")
_ASK = "print it with 'sacct --parsable2 --format JobID,JobName,NTasks,NNodes,AllocCPUS,Elapsed,State'"


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the table: a job, or a step of it."""

    line: int
    job: str
    step: str  # its number, ``batch``, ``extern``; empty of the job itself
    facts: Mapping[str, str]

    @property
    def completed(self) -> bool:
        """Whether it ended by itself, with exit code 0."""
        return self.facts.get("State", "COMPLETED").partition(" ")[0] == "COMPLETED"


def _head(line: str) -> tuple[str, list[str]] | None:
    """The delimiter, empty where there are columns of blanks, and the names of a table; None where it is no head."""
    if "JobID" not in line:
        return None
    signs = re.findall(r"JobID(?:Raw)?([^\w\s])", line)
    delimiter = signs[0] if signs else ""
    names = [name.strip() for name in (line.split(delimiter) if delimiter else line.split())]
    return (delimiter, names) if len(names) > 1 and {"JobID", "JobIDRaw"} & set(names) else None


def _is_one(path: Path, head: str) -> bool:
    lines = [line for line in head.splitlines()[:5] if line.strip()]
    found = _head(lines[0]) if lines else None
    if found is None:
        return False
    known = {"State", "JobName", "NTasks", "NNodes", *_TIMES, *_CPUS} & set(found[1])
    return bool(known) and (bool(found[0]) or (len(lines) > 1 and _RULE.fullmatch(lines[1].strip()) is not None))


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    """One reading a run that completed; the first says which did not."""
    lines, _ = read_text(path)
    rows = list(_rows(path, lines))
    numbered = {row.job for row in rows if row.step.isdecimal()}
    runs = [row for row in rows if row.step.isdecimal() or (not row.step and row.job not in numbered)]
    done = [row for row in runs if row.completed]
    failed = [row for row in runs if not row.completed]
    which = some_of([f"{_name(row)} {row.facts['State']}" for row in failed], 5)
    if len(failed) == len(runs):
        raise InputError(f"{path} holds no run that completed{which and f': {which}'}", "give jobs that completed")
    notes = [f"{path.name}: runs that did not complete are left out: {which}"] if failed else []
    notes.append("Slurm counts elapsed time in whole seconds, from the start of the job or step to its end")
    if any(not row.step for row in done):
        notes.append(
            "jobs without steps of srun: their processors are taken for ranks unless --set or --parameter says it"
        )
    for row in done:
        yield _reading(path, row, notes)
        notes = []


READERS.register("sacct")(
    Format("Slurm: tables of sacct, elapsed time and ranks of jobs and steps", _is_one, _read, None)
)


def _name(row: _Row) -> str:
    return f"{row.job}.{row.step}" if row.step else row.job


def _rows(path: Path, lines: Sequence[str]) -> Iterator[_Row]:
    """The rows of all tables of a file; a head may come again."""
    head: tuple[str, list[str]] | None = None
    places: list[tuple[int, int]] = []
    for at, raw in enumerate(lines, 1):
        line = raw.rstrip()
        if not line.strip():
            continue
        if (found := _head(line)) is not None:
            head, places = found, []
            if not set(_TIMES) & set(head[1]):
                raise InputError(f"{path}:{at}: the table has no column Elapsed", _ASK)
            continue
        if head is None:
            raise damaged(f"{path}:{at} is not the head of a table of sacct")
        delimiter, names = head
        if not delimiter and _RULE.fullmatch(line.strip()):
            places = [match.span() for match in re.finditer(r"-+", line)]
            continue
        fields = line.split(delimiter) if delimiter else [line[first:last] for first, last in places]
        if any(line[last : last + 1].strip() for _, last in places):
            raise damaged(f"{path}:{at} does not fit under the rule of dashes")
        if len(fields) != len(names):
            raise damaged(f"{path}:{at} has {len(fields)} fields, the head {len(names)}")
        facts = dict(zip(names, map(str.strip, fields), strict=True))
        numbered_step = _STEP.fullmatch(facts.get("JobID") or facts.get("JobIDRaw", ""))
        if numbered_step is None:
            raise damaged(f"{path}:{at}: {facts.get('JobID', '')[:40]!r} is not the number of a job or step")
        yield _Row(at, numbered_step["job"], numbered_step["step"] or "", facts)
    if head is None:
        raise InputError(f"{path} holds no table of sacct", _ASK)


def _reading(path: Path, row: _Row, notes: Sequence[str]) -> Reading:
    where = f"{path}:{row.line}"
    column = next(name for name in _TIMES if row.facts.get(name) or name == _TIMES[-1])
    try:
        values = {"time": seconds(row.facts.get(column, ""))}
    except InputError:
        raise damaged(f"{where}: {row.facts.get(column, '')!r} of {column} is not a time") from None
    joules = _joules(where, row)
    if joules is not None:
        values["energy_node"] = joules
        notes = [*notes, "ConsumedEnergy is that of whole nodes: on nodes that other jobs shared it holds theirs"]
    elif without := next((row.facts[name] for name in _ENERGY if row.facts.get(name)), ""):
        what = f"is {without} where Slurm read no meter" if without in _NO_ENERGY else f"of {without[:24]} is none"
        notes = [*notes, f"ConsumedEnergy {what}: the energy of these jobs is not known"]
    if (size := _SIZE.fullmatch(row.facts.get("MaxRSS", ""))) is not None:
        values["memory_peak"] = float(size["size"]) * _FACTORS[size["unit"]]
    stated = next((name for name in ("NTasks", *_CPUS) if row.facts.get(name)), None)
    ranks = {} if stated is None else {"ranks": number(where, row.facts[stated], stated)}
    return build(
        path,
        [WHOLE],
        [ALL_RANKS],
        columns_of([values]),
        origin={
            "time": f"measured ({column})",
            "energy_node": "measured (ConsumedEnergy)",
            "memory_peak": "measured (MaxRSS, the largest of all tasks)",
        },
        configuration=ranks,
        assumed=frozenset(ranks if stated != "NTasks" else ()),
        environment={name: text for name, text in row.facts.items() if name and text},
        notes=notes,
        wall_time=values["time"],
    )


def _joules(where: str, row: _Row) -> float | None:
    """Joules of all nodes of a job or step; None where Slurm has no meter, which it writes as nothing, 0 or NO_VAL,
    or where its meter ran backwards."""
    for name in _ENERGY:
        text = row.facts.get(name, "")
        if text in _NO_ENERGY or _NEGATIVE.fullmatch(text):
            continue
        match = _SIZE.fullmatch(text)
        if match is None:
            raise damaged(f"{where}: {text[:40]!r} of {name} is not an energy")
        joules = float(match["size"]) * _POWERS[match["unit"]]
        if joules < _MOST_ENERGY:
            return joules
    return None
