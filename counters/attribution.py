"""From a callgrind profile to kernels: whose cost is whose.

Functions of the program are kernels with their own, exclusive cost. Libraries serve the application and the MPI
library; the call arcs show for which of them they worked. With c_e(a) the cost in event e of arc a (the callee and all
below it),

- the share of a library's function f that serves the application, 1 for the program's own functions and 0 for MPI's and
  the loader's, is s_e(f) = sum_{a: g -> f} s_e(g) c_e(a) / sum_{a: g -> f} c_e(a);
- a run time's function that the application enters (exp, malloc, memcpy) is a kernel with all that the run time does
  below it: sum_{a: g -> f} s_e(g) r_e(f) c_e(a) over callers g outside the run time, where r_e(f) is the part of the
  cost below f that is the run time's own (less than 1 where it calls back, as qsort does).

Exact for the program's own functions and for run-time functions that call nothing outside their library; for the others
it is gprof's assumption, that a function costs the same whoever called it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from ranksight.core.arrays import Array, Ints, Mask
from ranksight.core.leftout import by_object
from ranksight.core.records import dataclass
from ranksight.core.symbols import label
from ranksight.counters.callgrind_profile import Profile
from ranksight.counters.objects import UNKNOWN, is_address, kernel_name, owner_of

_ROUNDS = 4096
"""Calls below each other that shares are followed through; few programs need a hundred."""
_NOISE = 1e-9
"""Share that is rounding."""


@dataclass(frozen=True)
class Attributed:
    """Cost of one process by kernel."""

    kernels: pd.DataFrame  # index ``kernel``; ``visits`` and one float64 column an event
    left_out: pd.DataFrame
    """Cost that is not a kernel's: index ``group`` (``mpi``: the MPI library's own and what served it; ``system``: the
    loader's own, which binds symbols while the program runs; ``other``: start-up and what no one is known to have
    called) and ``object`` (its short name); columns as `kernels`. Costs of `kernels` and `left_out` add up to the
    profile's."""
    places: tuple[tuple[str, str, int], ...] = ()
    """Kernels with the source files and lines that their functions begin in (:mod:`ranksight.core.places`)."""

    def rows(self, event: str, metric: str, rank: int) -> pd.DataFrame:
        """Rows of a run's table of what was left out (:mod:`ranksight.core.leftout`): `event` of this process."""
        left = self.left_out[event].rename("value").reset_index()
        kept = pd.DataFrame({"group": ["application"], "object": [""], "value": [float(self.kernels[event].sum())]})
        return by_object(pd.concat([kept, left], ignore_index=True).assign(rank=rank), metric)


def _fixed_point(
    start: Array, source: Ints, target: Ints, weight: Array, step: Callable[[Array, Ints], Array]
) -> Array:
    """Rows x that `step` makes of their numbers and of the sums of weight x[source] over the arcs to them.

    Rounds after the first repeat the rows alone whose sums have changed: shares that go in circles settle slowly.
    """
    found, row_of = start.copy(), np.empty(len(start), np.int64)
    rows, arcs = np.arange(len(start)), np.arange(len(target))
    for _ in range(_ROUNDS):
        row_of[rows] = np.arange(len(rows))
        after = step(_sum_at(row_of[target[arcs]], weight[arcs] * found[source[arcs]], len(rows)), rows)
        change = np.abs(after - found[rows])
        if change.max(initial=0.0) < 1e-12:
            break
        found[rows] = after
        changed, again = np.zeros(len(start), bool), np.zeros(len(start), bool)
        changed[rows[(change > 0).any(axis=1)]] = True
        again[target[changed[source]]] = True
        rows, arcs = np.flatnonzero(again), np.flatnonzero(again[target])
    return found


def _ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _sum_at(indices: Ints, values: Array, count: int) -> Array:
    columns = values.shape[1]
    place = indices[:, None] * columns + np.arange(columns)
    sums = np.bincount(place.ravel(), values.ravel(), count * columns)
    return sums.astype(np.float64, copy=False).reshape(count, columns)


def _shares(profile: Profile, given: Array, open_: Mask) -> Array:
    """The share s of each function (rows) by event (columns, calls first) where `open_`; elsewhere as `given`."""
    inner = open_[profile.callee] & (profile.caller != profile.callee)
    caller, callee = profile.caller[inner], profile.callee[inner]
    weight = np.column_stack((profile.calls, profile.arc_cost))[inner]
    whole = _sum_at(callee, weight, len(given))
    start = np.repeat(given[:, None], weight.shape[1], axis=1)

    def step(served: Array, rows: Ints) -> Array:
        return np.where(open_[rows, None], _ratio(served, whole[rows]), start[rows])

    return _fixed_point(start, caller, callee, weight, step)


def _kept(profile: Profile, runtime: Mask) -> Array:
    """The part r of the cost below each run-time function (rows) by event (columns) that is the run time's own."""
    inner = runtime[profile.caller] & (profile.caller != profile.callee)
    caller, callee, cost = profile.caller[inner], profile.callee[inner], profile.arc_cost[inner]
    whole = profile.self_cost + _sum_at(caller, cost, len(runtime))
    own = np.where(runtime[callee, None], cost, 0.0)

    def step(below: Array, rows: Ints) -> Array:
        return _ratio(profile.self_cost[rows] + below, whole[rows])

    return _fixed_point(np.ones_like(profile.self_cost), callee, caller, own, step)


def attribute(profile: Profile) -> Attributed:
    """Divide the cost of a process among its kernels, the MPI library and the rest."""
    pairs = list(zip(profile.functions, profile.objects, strict=True))
    names = np.array([kernel_name(*pair) for pair in pairs], dtype=object)
    owners = np.array([owner_of(*pair) for pair in pairs], dtype=object)
    caller, callee = profile.caller, profile.callee
    count = len(names)
    named, mpi = names != "", owners == "mpi"
    called = np.bincount(callee, minlength=count) > 0
    # linkage stubs without a symbol are start-up, which the loader alone calls; a main without a symbol is not
    symbol = np.array([not is_address(function) for function in profile.functions], dtype=bool)
    loader = called & (np.bincount(callee[owners[caller] != "system"], minlength=count) == 0)
    program = (owners == "application") & named & (symbol | ~loader)
    runtime = (owners == "runtime") & named
    # what a process was in when counting began, and what a thread begins with, has no caller on record
    located = np.array([path != UNKNOWN for path in profile.objects], dtype=bool)
    roots = named & (runtime | ((owners == "library") & located)) & ~called
    open_ = named & (runtime | ((owners == "library") | (owners == "application")) & ~program) & ~roots
    shares = _shares(profile, (program | roots).astype(np.float64), open_)
    program |= roots & ~runtime

    outer = runtime[callee] & ~runtime[caller]
    entries = profile.arc_cost * shares[caller, 1:] * _kept(profile, runtime)[callee]
    own = np.where(runtime[:, None], _sum_at(callee[outer], entries[outer], count), profile.self_cost * shares[:, 1:])
    # a run time's kernel is visited from outside; any other by every call, recursive ones too
    weight = np.where(open_[callee], profile.calls * shares[caller, 0], profile.calls)
    weight[runtime[callee] & ~outer] = 0.0
    visits = np.bincount(callee, weights=weight, minlength=count)
    visits[program & ~called & (profile.self_cost > 0).any(axis=1)] = 1.0

    columns = ["visits", *profile.events]
    ours = named & ((visits > 0) | (own > 0).any(axis=1)) & ~mpi & (owners != "system")
    table = pd.DataFrame(np.column_stack((visits, own)), columns=columns)
    table.insert(0, "kernel", names)
    kernels = table[ours].groupby("kernel", sort=True).sum()

    every = np.column_stack((profile.visits, profile.self_cost))
    shares[roots & runtime] = 0.0
    # the loader works for an MPI library that opens its components
    serving = _shares(profile, mpi.astype(np.float64), open_ | (owners == "system"))
    neither = 1.0 - shares - serving
    waiting, other = every * serving, every * np.where(neither > _NOISE, neither, 0.0)
    # shares of run times are theirs on average over callers: what is left is what kernels have not
    rest = profile.self_cost.sum(axis=0) - own[ours].sum(axis=0) - profile.self_cost[mpi].sum(axis=0)
    ratio = _ratio(np.maximum(rest, 0.0), (waiting[~mpi] + other[~mpi]).sum(axis=0)[1:])
    waiting[~mpi, 1:] *= ratio
    other[:, 1:] *= ratio
    parts = [
        pd.DataFrame(cost, columns=columns).assign(group=group, object=[label(path) for path in profile.objects])
        for group, cost in (("mpi", waiting), ("other", other))
    ]
    parts[1].loc[owners == "system", "group"] = "system"
    left_out = pd.concat(parts).groupby(["group", "object"], sort=True).sum()
    # Of a function that counting began in the profile may name the file of code that was inlined into it.
    begun = ours & called
    rows = zip(names, profile.files, profile.lines, begun, strict=True)
    places = [(kernel, file, line) for kernel, file, line, own in rows if own]
    # Of copies that the compiler made of a function, parts that it moved away begin farther down.
    places.sort(key=lambda place: (place[2] == 0, place[2]))
    return Attributed(kernels, left_out[(left_out > 0).any(axis=1)], tuple(places))
