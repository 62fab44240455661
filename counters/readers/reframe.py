"""ReFrame's performance logs (perflogs): one run a line, performance variables as columns, fields separated by bars.

The default of ReFrame 4 begins with a line of names. A variable NAME has the columns ``NAME_value`` and ``NAME_unit``.
Variables in units of time are kernels with that time, the program's where the name says so (``elapsed``,
``total_time`` and the like); others are metrics of the whole program, under their names and in their units. The number
of ranks is ``num_tasks``, further parameters are those of ``display_name`` (``app %size=64``) that are numbers. Runs
that did not pass are left out.

Source: ReFrame manual, "Configuration Reference", logging handlers of performance logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, WHOLE
from ranksight.core.reading import READERS, Reading
from ranksight.core.units import counted
from ranksight.counters.names import UNITS
from ranksight.counters.readers._assemble import build, columns_of
from ranksight.counters.readers._files import Format, damaged, number, read_text

_TOTAL = re.compile(
    r"^(?:time|(?:total|run|wall|elapsed|solution|execution)_?time|elapsed|runtime|time_to_solution)$", re.I
)
_PARAMETER = re.compile(r"%(?P<name>[A-Za-z_][\w.]*)=(?P<value>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?=\s|$)")
_TIMES = {
    unit: UNITS[unit]
    for unit in ("ns", "nsecond", "us", "usecond", "μs", "ms", "msecond", "s", "sec", "secs", "second", "seconds")
}
_TIMES |= {"min": 60.0, "h": 3600.0}


def _is_one(path: Path, head: str) -> bool:
    names = head.partition("\n")[0].strip().split("|")
    return len(names) > 2 and bool(_variables(names)) and bool({"result", "job_completion_time"} & set(names))


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    """One reading a run that passed."""
    lines, _ = read_text(path)
    head = lines[0].strip()
    names = head.split("|")
    variables = _variables(names)
    if not variables:
        raise InputError(
            f"{path}:1: no column of a performance variable, such as elapsed_value", "keep the default log format"
        )
    passed = failed = 0
    for at, line in enumerate(map(str.strip, lines[1:]), 2):
        if not line or line == head:  # a log that goes on repeats its head
            continue
        fields = line.split("|")
        if len(fields) != len(names):
            raise damaged(f"{path}:{at} has {len(fields)} fields, the first line {len(names)}")
        row = dict(zip(names, map(str.strip, fields), strict=True))
        if row.get("result", "pass").lower() in ("pass", "passed"):
            passed += 1
            yield _run(path, at, row, variables)
        else:
            failed += 1
    if not passed:
        left = f"; {counted(failed, 'run')} did not pass" if failed else ""
        raise InputError(f"{path} holds no run{left}", "give a log of runs that passed")


READERS.register("reframe")(Format("ReFrame: performance logs (perflogs), one run a line", _is_one, _read, None))


def _variables(names: list[str]) -> list[str]:
    held = set(names)
    return [each for name in names if name.endswith("_value") and f"{(each := name[:-6])}_unit" in held]


def _run(path: Path, at: int, row: dict[str, str], variables: list[str]) -> Reading:
    """The values of one line."""
    where = f"{path}:{at}"
    configuration: dict[str, float] = {}
    if "num_tasks" in row:
        configuration["ranks"] = number(where, row["num_tasks"], "num_tasks")
    for found in _PARAMETER.finditer(row.get("display_name", "")):
        configuration[found["name"]] = float(found["value"])
    cells: dict[str, dict[str, float]] = {}
    for name in variables:
        text, unit = row[f"{name}_value"], row[f"{name}_unit"]
        if text in ("", "null", "None", "nan"):
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
    columns = columns_of(cells.values())
    return build(path, list(cells), [ALL_RANKS] * len(cells), columns, configuration=configuration, exclusive=False)
