"""ReFrame's performance logs (perflogs), fields separated by bars: one run a line, or one variable of a run a line.

The default of ReFrame 4 begins with a line of names, and has one run a line: a variable NAME has the columns
``NAME_value`` and ``NAME_unit``. With ``perflog_multiline`` each variable has a line of its own, in columns
``perf_var``, ``perf_value`` and ``perf_unit``. ReFrame 3 writes such lines without names:
``...|reframe 3.12|heat %size=64 @node+gnu|jobid=12|num_tasks=4|elapsed=1.5|ref=0 (l=null, u=null)|s``.

Variables in units of time are kernels with that time, the program's where the name says so (``elapsed``,
``total_time`` and the like); others are metrics of the whole program, under their names and in their units. The number
of ranks is ``num_tasks``, further parameters are those of the test's name (``app %size=64``) that are numbers. Runs
that did not pass are left out, and named.

Source: ReFrame manual, "Configuration Reference", logging handlers of performance logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, WHOLE
from ranksight.core.reading import READERS, Reading
from ranksight.core.units import counted, some_of
from ranksight.counters.names import UNITS
from ranksight.counters.readers._assemble import build, columns_of
from ranksight.counters.readers._files import Format, damaged, number, read_text

_TOTAL = re.compile(
    r"^(?:time|(?:total|run|wall|elapsed|solution|execution)_?time|elapsed|runtime|time_to_solution)$", re.I
)
_PARAMETER = re.compile(r"%(?P<name>[A-Za-z_][\w.]*)=(?P<value>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?=\s|$)")
_OLD = re.compile(r"\|reframe \d[\w.+-]{0,40}\|")
_VARIABLE = re.compile(r"(?P<name>[^=|]{1,200})=(?P<value>[^|=]{1,100})")
_NO_VALUE = frozenset({"", "null", "none", "nan"})
_TIMES = {
    unit: UNITS[unit]
    for unit in ("ns", "nsecond", "us", "usecond", "μs", "ms", "msecond", "s", "sec", "secs", "second", "seconds")
}
_TIMES |= {"min": 60.0, "h": 3600.0}
_MULTILINE = ("perf_var", "perf_value")
_NOT_OF_RUNS = ("perf_var", "perf_value", "perf_unit", "perf_ref", "perf_lower_thres", "perf_upper_thres", "result")
"""Columns of one variable, which differ from line to line of a run."""


@dataclass(slots=True)
class _Run:
    """One run: where it begins, what its columns say of it, and its variables with their units."""

    line: int
    facts: Mapping[str, str]
    variables: dict[str, tuple[str, str]] = field(default_factory=dict)
    passed: bool = True

    @property
    def name(self) -> str:
        """The test's name, with its parameters."""
        return self.facts.get("display_name") or self.facts.get("info") or self.facts.get("name", "")


def _is_one(path: Path, head: str) -> bool:
    first = head.partition("\n")[0].strip()
    if _OLD.search(first):
        return _old(path, 1, first) is not None
    names = first.split("|")
    known = bool(_variables(names)) or set(_MULTILINE) <= set(names)
    return len(names) > 2 and known and bool({"result", "job_completion_time", "jobid"} & set(names))


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    """One reading a run that passed; the first says which did not."""
    lines, _ = read_text(path)
    runs = list(_runs(path, list(map(str.strip, lines))))
    failed = [run for run in runs if not run.passed]
    if len(failed) == len(runs):
        left = f"; {counted(len(failed), 'run')} did not pass" if failed else ""
        raise InputError(f"{path} holds no run{left}", "give a log of runs that passed")
    places = some_of([run.line for run in failed])
    notes = [f"{path.name}: {counted(len(failed), 'run')} did not pass (line {places})"] if failed else []
    for run in runs:
        if run.passed:
            yield _reading(path, run, notes)
            notes = []


READERS.register("reframe")(
    Format("ReFrame: performance logs (perflogs), one run or one variable a line", _is_one, _read, None)
)


def _variables(names: list[str]) -> list[str]:
    held = set(names)
    return [each for name in names if name.endswith("_value") and f"{(each := name[:-6])}_unit" in held]


def _runs(path: Path, lines: list[str]) -> Iterator[_Run]:
    """The runs of a log, in order; InputError where a line has other fields than the first."""
    if _OLD.search(lines[0]):
        yield from _joined(path, (_old(path, at, line) for at, line in enumerate(lines, 1) if line))
        return
    names = lines[0].split("|")
    variables = _variables(names)
    several = set(_MULTILINE) <= set(names)
    if not variables and not several:
        raise InputError(
            f"{path}:1: no column of a performance variable, such as elapsed_value", "keep the default log format"
        )
    rows = (_row(path, at, line, names) for at, line in enumerate(lines[1:], 2) if line not in ("", lines[0]))
    if several:
        yield from _joined(path, rows)
        return
    for run in rows:
        run.variables = {name: (run.facts[f"{name}_value"], run.facts[f"{name}_unit"]) for name in variables}
        yield run


def _row(path: Path, at: int, line: str, names: list[str]) -> _Run:
    """A line below names."""
    fields = line.split("|")
    if len(fields) != len(names):
        raise damaged(f"{path}:{at} has {len(fields)} fields, the first line {len(names)}")
    facts = dict(zip(names, map(str.strip, fields), strict=True))
    run = _Run(at, facts, passed=facts.get("result", "pass").lower() in ("pass", "passed"))
    if "perf_var" in facts:
        run.variables = {facts["perf_var"]: (facts["perf_value"], facts.get("perf_unit", ""))}
    return run


def _old(path: Path, at: int, line: str) -> _Run | None:
    """A line of ReFrame 3; None where it holds no variable, InputError where it is one that breaks off."""
    fields = line.split("|")
    place = next((n for n, text in enumerate(fields) if text.startswith("ref=")), 0)
    found = _VARIABLE.fullmatch(fields[place - 1]) if place > 2 else None
    if found is None or not _OLD.search(line):
        if at == 1:
            return None
        raise damaged(f"{path}:{at} holds no variable with its reference")
    given = dict(text.partition("=")[::2] for text in fields[3 : place - 1] if "=" in text)
    unit = fields[place + 1] if len(fields) > place + 1 else ""
    facts = {"time": fields[0], "info": fields[2], **given}
    return _Run(at, facts, {found["name"].strip(): (found["value"].strip(), unit.strip())})


def _joined(path: Path, rows: Iterator[_Run | None]) -> Iterator[_Run]:
    """Runs of the lines of their variables: a variable that comes again, or other facts, begin another run."""
    current: _Run | None = None
    for row in rows:
        if row is None:
            raise damaged(f"{path}:1 holds no variable with its reference")
        facts = {name: text for name, text in row.facts.items() if name not in _NOT_OF_RUNS}
        # Lines of one run may be written in different seconds: the job's number identifies it where there is one.
        if "jobid" in facts:
            facts.pop("time", None)
            facts.pop("job_completion_time", None)
        if current is None or facts != current.facts or row.variables.keys() & current.variables.keys():
            if current is not None:
                yield current
            current = replace(row, facts=facts)
        else:
            current.variables |= row.variables
            current.passed &= row.passed
    if current is not None:
        yield current


def _reading(path: Path, run: _Run, notes: list[str]) -> Reading:
    """The values of one run."""
    where = f"{path}:{run.line}"
    configuration: dict[str, float] = {}
    if "num_tasks" in run.facts:
        configuration["ranks"] = number(where, run.facts["num_tasks"], "num_tasks")
    for found in _PARAMETER.finditer(run.name):
        configuration[found["name"]] = float(found["value"])
    cells: dict[str, dict[str, float]] = {}
    missing = []
    for name, (text, unit) in run.variables.items():
        if text.casefold() in _NO_VALUE:
            missing.append(f"{name} (time)" if unit in _TIMES else name)
            continue
        value = number(where, text, name)
        timed = unit in _TIMES
        kernel = name if timed and not _TOTAL.match(name) else WHOLE
        metric, scale = ("time", _TIMES[unit]) if timed else (name, 1.0)
        if metric in cells.setdefault(kernel, {}):
            raise InputError(f"{where}: two variables are the time of the whole program", "log one of them")
        cells[kernel][metric] = scale * value
    if not any(cells.values()):
        raise damaged(f"{where}: a run without values")
    if missing:
        notes = [*notes, f"{path.name}:{run.line}: no value of {', '.join(missing)}"]
    columns = columns_of(cells.values())
    rows = list(cells), [ALL_RANKS] * len(cells)
    return build(path, *rows, columns, configuration=configuration, notes=notes, exclusive=False)
