"""Callgrind's and cachegrind's profile files: exclusive cost of every function, simulated.

Cost becomes that of kernels as the collector's does (:mod:`ranksight.counters.attribution`): what functions did for the
MPI library, its start-up in MPI_Init included, is in one kernel, and what the loader and start-up did in another. The
sum over kernels is the file's total. Cachegrind's files have no calls: there functions are divided by their object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.core import places
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.files import regular_file
from ranksight.core.leftout import MPI, OTHER, TABLE
from ranksight.core.reading import READERS, Reading
from ranksight.counters import callgrind_profile
from ranksight.counters.attribution import attribute
from ranksight.counters.objects import kernel_name, owner_of
from ranksight.counters.readers._assemble import build
from ranksight.counters.readers._files import Format, damaged

_CACHEGRIND = re.compile(
    r"(?:(?:desc|cmd):[^\n]*\n|#[^\n]*\n|\n)*(?:cmd:[^\n]*\n)events: ?[A-Z]\w*(?: \w+)* ?\n(?:f[lni]=)"
)


def _is_callgrind(path: Path, head: str) -> bool:
    return any(mark in head for mark in ("# callgrind format", "creator: callgrind")) and "events:" in head


def _callgrind(path: Path, rank: int | None) -> Iterator[Reading]:
    regular_file(path)
    profile = callgrind_profile.read(path)
    if profile.header.get("part", "1") == "1":
        _check_totals(path, profile, "totals")
    yield _reading(path, profile, "callgrind", rank or 0)


def _cachegrind(path: Path, rank: int | None) -> Iterator[Reading]:
    regular_file(path)
    profile = callgrind_profile.read(path)
    _check_totals(path, profile, "summary")
    yield _reading(path, profile, "cachegrind", rank or 0)


READERS.register("callgrind")(
    Format("callgrind: callgrind.out files; functions, simulated counts", _is_callgrind, _callgrind)
)
READERS.register("cachegrind")(
    Format(
        "cachegrind: cachegrind.out files; functions, simulated counts",
        lambda path, head: _CACHEGRIND.match(head) is not None,
        _cachegrind,
    )
)


def _check_totals(path: Path, profile: callgrind_profile.Profile, line: str) -> None:
    """Compare the sum over functions with what the file itself says it is.

    Raises InputError when the line is missing or says another sum.
    """
    try:
        given = [float(text) for text in profile.header.get(line, "").split()]
    except ValueError:
        given = []
    if not given or len(given) > len(profile.events):
        raise InputError(f"{path} ends without its {line}", "it was cut off: measure again")
    said = np.array(given + [0.0] * (len(profile.events) - len(given)))  # zeros at the end are not written
    total = profile.self_cost.sum(axis=0)
    if not np.allclose(total, said, rtol=1e-12, atol=0.5):
        at = int(np.argmax(np.abs(total - said)))
        raise damaged(
            f"{path}: {profile.events[at]} of all functions is {total[at]:.17g}, its {line} says {said[at]:.17g}"
        )


def _reading(path: Path, profile: callgrind_profile.Profile, tool: str, rank: int) -> Reading:
    """One reading from a profile that `tool` wrote."""
    tables: dict[str, pd.DataFrame] = {}
    if len(profile.calls):
        found = attribute(profile)
        whose = {"mpi": MPI, "system": OTHER, "other": OTHER}
        rest = found.left_out.groupby(lambda at: whose[at[0]]).sum()
        table = pd.concat([found.kernels, rest])
        first = profile.events[0]
        tables |= places.tables_of(found.places)
        tables[TABLE] = found.rows(first, "instructions" if first == "Ir" else first, rank)
    else:
        names = [_kernel(*pair) for pair in zip(profile.functions, profile.objects, strict=True)]
        tables |= places.tables_of(zip(names, profile.files, profile.lines, strict=True))
        table = pd.DataFrame(profile.self_cost, columns=list(profile.events))
        table = table.groupby(np.array(names, dtype=object), sort=True).sum()
    table = table[(table > 0).any(axis=1)]
    if table.empty:
        raise InputError(f"{path} holds no cost", f"was anything executed while {tool} was collecting?")
    events = {str(name): table[name].to_numpy(dtype=np.float64) for name in table.columns}
    columns, derived = _simulated(events)
    how = f"simulated ({tool}{_caches(profile.header)})"
    return build(
        path,
        table.index.tolist(),
        [rank] * len(table),
        columns,
        origin={name: f"{how}, derived from {derived[name]}" if name in derived else how for name in columns},
        configuration={},
        command=tuple(profile.header.get("cmd", "").split()),
        tables=tables,
    )


def _kernel(function: str, path: str) -> str:
    owner = owner_of(function, path)
    if owner == "mpi":
        return MPI
    name = kernel_name(function, path)
    return name if name and owner != "system" else OTHER


def _caches(header: Mapping[str, str]) -> str:
    parts = [part.strip() for part in header.get("desc", "").split(";")]
    caches = [" ".join(part.split()) for part in parts if part.startswith(("I1 cache", "D1 cache", "LL cache"))]
    return ": " + ", ".join(caches) if caches else ""


def _simulated(events: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, str]]:
    """Metrics from the events of valgrind's cache simulation, and which of them are derived from what.

    With Dr data reads, D1mr those that miss the first level and DLmr those that miss the last:
    loads_l1 = Dr - D1mr, loads_l3 = D1mr - DLmr (served by the last level), loads_mem = DLmr.

    Source: Valgrind manual, "Cachegrind: a cache and branch-prediction profiler".
    """
    names = {
        "Ir": "instructions", "Dr": "loads", "Dw": "stores", "D1mw": "store_misses_l1", "DLmr": "loads_mem",
    }  # fmt: skip
    columns = {names.get(name, name): values for name, values in events.items()}
    derived: dict[str, str] = {}
    if {"Dr", "D1mr", "DLmr"} <= set(events):
        columns["loads_l1"] = np.maximum(events["Dr"] - events["D1mr"], 0.0)
        columns["loads_l3"] = np.maximum(events["D1mr"] - events["DLmr"], 0.0)
        derived |= {"loads_l1": "Dr, D1mr", "loads_l3": "D1mr, DLmr"}
    for metric, parts in (("branches", ("Bc", "Bi")), ("branch_misses", ("Bcm", "Bim"))):
        if set(parts) <= set(events):
            columns[metric] = events[parts[0]] + events[parts[1]]
            derived[metric] = ", ".join(parts)
    return columns, derived
