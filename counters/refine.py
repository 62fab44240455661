"""Splitting a kernel that is too coarse to act on: into its loops, or its source lines.

Loops are read off the machine code that ran: a jump to an address not above its own closes a loop over the instructions
between, and loops that begin at one address are one. Each instruction belongs to the innermost loop around it; what is
in no loop is the kernel's rest. A loop is named by the source lines of its instructions, ``relax@heat.c:120-131``; the
rest keeps the kernel's name with the file, ``relax@heat.c``. The parts of a kernel add up to the kernel.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from ranksight.core.arrays import Ints, Mask
from ranksight.core.errors import InputError
from ranksight.counters.callgrind_profile import Profile, Sites
from ranksight.counters.objects import kernel_name, owner_of


def wanted(kernels: Collection[str], function: str, path: str) -> bool:
    """Whether a function belongs to one of `kernels` and is the application's own code."""
    return owner_of(function, path) in ("application", "library") and kernel_name(function, path) in kernels


def split(profile: Profile, kernels: Collection[str]) -> pd.DataFrame:
    """Costs of the parts of `kernels`: their loops, or their source lines where the profile has no addresses.

    Columns: ``kernel`` (the part's name), ``parent``, ``visits`` and one column an event. The visits of a loop are its
    iterations; of a rest, the calls of the kernel. NaN where the profile has no addresses. Raises InputError when a
    kernel is not in the profile or has no source lines.

    `profile`: read with ``lines_of`` true for the functions of the kernels; with addresses (``--dump-instr=yes
    --collect-jumps=yes``) for loops.
    """
    sites = profile.sites
    pairs = zip(profile.functions, profile.objects, strict=True)
    names = np.array([kernel_name(*pair) for pair in pairs], dtype=object)
    tables = []
    for kernel in kernels:
        functions = np.flatnonzero(names == kernel)
        inside = np.isin(sites.function, functions)
        if not inside.any():
            raise InputError(
                f"{kernel!r} cannot be refined: no code of the application of that name ran",
                "name kernels as tables show them; functions of run-time libraries have no lines here",
            )
        if not (sites.line[inside] > 0).any():
            raise InputError(f"{kernel!r} cannot be refined: it has no source lines", "build the program with -g")
        tables.append(_parts(profile, kernel, functions, inside))
    return pd.concat(tables, ignore_index=True)


def _parts(profile: Profile, kernel: str, functions: Ints, inside: Mask) -> pd.DataFrame:
    sites = profile.sites
    address, line = sites.address[inside], sites.line[inside]
    file = np.array([name.rsplit("/", 1)[-1] for name in profile.site_files], dtype=object)[sites.file[inside]]
    cost = sites.cost[inside]
    home = pd.Series(file).groupby(file).size().idxmax()
    if not address.any():
        label = np.array([f"{kernel}@{name}:{number}" for name, number in zip(file, line, strict=True)], dtype=object)
    else:
        loop = innermost(address, sites.function[inside], sites, functions)
        label = np.full(len(line), f"{kernel}@{home}", dtype=object)
        for number in np.unique(loop[loop >= 0]).tolist():
            at = loop == number
            own = line[at & (file == home) & (line > 0)]
            span = f"{own.min()}-{own.max()}" if len(own) else "?"
            label[at] = f"{kernel}@{home}:{span}"
    table = pd.DataFrame(cost, columns=list(profile.events))
    table.insert(0, "kernel", label)
    sums = table.groupby("kernel", sort=True).sum()
    # the instruction count of one address is how often it ran
    runs = pd.DataFrame({"kernel": label, "address": address, "Ir": cost[:, 0]})
    once = runs.groupby(["kernel", "address"], sort=True)["Ir"].sum().groupby("kernel", sort=True).first()
    sums.insert(0, "visits", once if address.any() else np.nan)
    rest = f"{kernel}@{home}"
    if rest in sums.index:
        sums.loc[rest, "visits"] = float(profile.visits[functions].sum())
    return sums.reset_index().assign(parent=kernel)


def innermost(address: Ints, function: Ints, sites: Sites, functions: Ints) -> Ints:
    """Number of the innermost loop around each address; -1 where there is none.

    `sites`: whose jumps close the loops. `functions`: those whose jumps count.
    """
    heads = _loops(sites, functions)
    loop = np.full(len(address), -1, np.int64)
    size = np.full(len(address), np.iinfo(np.int64).max)
    for number, ((owner, head), end) in enumerate(heads.items()):
        around = (function == owner) & (address >= head) & (address <= end) & (end - head < size)
        loop[around] = number
        size[around] = end - head
    return loop


def _loops(sites: Sites, functions: Ints) -> dict[tuple[int, int], int]:
    """Last address of the loops by function and first address."""
    backward = (sites.jump_to <= sites.jump_from) & np.isin(sites.jump_function, functions)
    ends: dict[tuple[int, int], int] = {}
    for owner, start, end in zip(
        sites.jump_function[backward].tolist(),
        sites.jump_to[backward].tolist(),
        sites.jump_from[backward].tolist(),
        strict=True,
    ):
        ends[owner, start] = max(end, ends.get((owner, start), end))
    return ends
