"""Callgrind's dumps of one process, one after another in a file: what was counted between two of them.

With ``--combine-dumps=yes`` a file holds a part a dump. Each states what triggered it, its events and their sum:

    desc: Trigger: --dump-before=MPI_Send
    events: Ir Dr Dw ...
    summary: 15637 3914 1042 ...

Source: Valgrind manual, "Callgrind Format Specification".
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ranksight.core import limits
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError, readable
from ranksight.counters.mpi_calls import CALLS, END

_BOUNDS = {f"MPI_{name}": name for name in (*CALLS, END)} | {f"mpi_{name.lower()}_": name for name in (*CALLS, END)}
_START = re.compile(r"mpi_init(_thread)?", re.IGNORECASE)
_STUB = {"Ir": 1.0, "Dr": 1.0}
"""What the function that triggers the dump adds itself: one jump through a pointer."""


def read_parts(path: Path) -> pd.DataFrame:
    """What was counted before each MPI call of one process.

    Columns: ``operation`` (without ``MPI_``; the last is ``Finalize``) and a column of floats an event, one row a call,
    in order. What another function than a call of :data:`ranksight.counters.mpi_calls.CALLS` triggered is added to the
    next call, and what precedes the return from MPI_Init left out. Raises InputError when the file cannot be read, a
    line is damaged, or there is no call.
    """
    operations: list[str] = []
    rows: list[Array] = []
    events: tuple[str, ...] = ()
    trigger, pending = "", None
    with readable(path), path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if line.startswith(b"desc: Trigger:"):
                trigger = line.rpartition(b"=")[2].strip().decode("utf-8", "replace")
            elif line.startswith(b"events:"):
                events = _events(events, line, f"{path}:{number}")
            elif line.startswith(b"summary:"):
                cost = _cost(line, len(events), f"{path}:{number}")
                if _START.match(trigger):
                    operations, rows, pending = [], [], None
                    continue
                cost = cost if pending is None else cost + pending
                pending = cost if trigger not in _BOUNDS else None
                if pending is None:
                    operations.append(_BOUNDS[trigger])
                    rows.append(cost)
                    if operations[-1] == END:
                        break  # the sum of what is dumped when the process ends is none
                if len(rows) > limits.CALLGRIND_NUMBERS:
                    raise InputError(
                        f"{path} holds more than {limits.CALLGRIND_NUMBERS} parts", "measure a shorter run"
                    )
    if not rows:
        raise InputError(f"{path} holds no MPI call", "is the program linked to a shared MPI library?")
    table: dict[str, Any] = {"operation": operations}
    values = np.array(rows)
    for at, name in enumerate(events):
        own = np.where(np.array(operations, dtype=object) == END, 0.0, _STUB.get(name, 0.0))
        table[name] = np.maximum(values[:, at] - own, 0.0)
    return pd.DataFrame(table)


def _events(known: tuple[str, ...], line: bytes, where: str) -> tuple[str, ...]:
    found = tuple(line.decode("ascii", "replace").split()[1:])
    if not found or (known and found != known):
        raise InputError(f"{where}: events are {' '.join(found) or 'none'}, not {' '.join(known)}", "measure again")
    return found


def _cost(line: bytes, width: int, where: str) -> Array:
    try:
        numbers = [float(int(word)) for word in line.split()[1:]]
    except ValueError:
        numbers = []
    if not numbers or len(numbers) > max(width, 1) or max(numbers) >= 2.0**63:
        raise InputError(f"{where}: {line[:60]!r} is no sum of {width} events", "the file is damaged; measure again")
    return np.array(numbers + [0.0] * (width - len(numbers)))
