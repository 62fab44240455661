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
from ranksight.counters.readers import _assemble
from ranksight.counters.readers._gpu import SECONDS

_TOTAL = re.compile(
    r"^(?:time|(?:total|run|wall|elapsed|solution|execution)_?time|elapsed|runtime|time_to_solution)$", re.I
)
_PARAMETER = re.compile(r"%(?P<name>[A-Za-z_][\w.]*)=(?P<value>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?=\s|$)")
_TIMES = {**SECONDS, "seconds": 1.0, "secs": 1.0, "min": 60.0, "h": 3600.0}
_WRONG = "is no value of a run"


class Reframe:
    """Reads ReFrame's performance logs; see the module's text."""

    text = "ReFrame: performance logs (perflogs), one run a line"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path` is such a log."""
        if path.is_dir():
            return False
        names = _assemble.head_text(head).partition("\n")[0].strip().split("|")
        return len(names) > 2 and bool(_variables(names)) and bool({"result", "job_completion_time"} & set(names))

    def read(self, path: Path) -> Iterator[Reading]:
        """Read a log, one reading a run that passed.

        Raises InputError, naming file and line: no line of names, a line of another width, a value that is not a
        number, no run.
        """
        lines, _ = _assemble.read_text(path)
        names = lines[0].strip().split("|")
        variables = _variables(names)
        if not variables:
            raise InputError(
                f"{path}:1: no column of a performance variable, such as elapsed_value", "keep the default log format"
            )
        place = {name: at for at, name in enumerate(names)}
        failed = 0
        found = False
        for at, line in enumerate(lines[1:], 2):
            if not line.strip() or line.strip() == lines[0].strip():  # a log that goes on repeats its head
                continue
            row = line.strip().split("|")
            if len(row) != len(names):
                raise InputError(f"{path}:{at} has {len(row)} fields, the first line {len(names)}", "was it cut off?")
            if "result" in place and row[place["result"]].strip().lower() not in ("pass", "passed"):
                failed += 1
                continue
            found = True
            yield _reading(path, at, row, place, variables)
        if not found:
            left = f"; {counted(failed, 'run')} did not pass" if failed else ""
            raise InputError(f"{path} holds no run{left}", "give a log of runs that passed")


READERS.register("reframe")(Reframe())


def _variables(names: list[str]) -> list[str]:
    held = set(names)
    return [each for name in names if name.endswith("_value") and f"{(each := name[:-6])}_unit" in held]


def _reading(path: Path, at: int, row: list[str], place: dict[str, int], variables: list[str]) -> Reading:
    """The values of one line."""
    configuration: dict[str, float] = {}
    if "num_tasks" in place:
        configuration["ranks"] = _assemble.number(path, at, row[place["num_tasks"]], _WRONG)
    for found in _PARAMETER.finditer(row[place["display_name"]] if "display_name" in place else ""):
        configuration[found["name"]] = float(found["value"])
    cells: dict[str, dict[str, float]] = {}
    for name in variables:
        text, unit = row[place[f"{name}_value"]].strip(), row[place[f"{name}_unit"]].strip()
        if text in ("", "null", "None", "nan"):
            continue
        value = _assemble.number(path, at, text, _WRONG)
        timed = unit in _TIMES
        kernel = name if timed and not _TOTAL.match(name) else WHOLE
        metric, scale = ("time", _TIMES[unit]) if timed else (name, 1.0)
        if metric in cells.setdefault(kernel, {}):
            raise InputError(f"{path}:{at}: two variables are the time of the whole program", "log one of them")
        cells[kernel][metric] = scale * value
    if not any(cells.values()):
        raise InputError(f"{path}:{at}: a run without values", "the file is damaged")
    columns = _assemble.columns_of(cells.values())
    return _assemble.build(path, list(cells), [ALL_RANKS] * len(cells), columns, configuration=configuration)
