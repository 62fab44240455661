"""What meters of energy counted in the runs: a row for each package, or node, that reported.

One core of a package reports for all of it and the other ranks show 0, so that a rank that shows energy opens a group:
the ranks that follow it on its node. A meter counts while its rank runs (its window), which on many nodes is shorter
than the run: ranks are started one after another. Energies of a node or job come without ranks and are one row a run.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.arrays import Array, Index, Mask, ratio
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, WHOLE
from ranksight.core.meaning import METERED
from ranksight.core.records import dataclass
from ranksight.core.run import HOSTS
from ranksight.core.units import assigned, counted, some_of

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.core.experiment import Experiment
    from ranksight.core.run import Run
    from ranksight.platforms import Platform

COMPONENTS = ("package", "dram", "node", "job")
"""What meters measure: processor packages, their memory modules, whole nodes, and jobs whose parts are not stated."""
OF_NODES = ("node", "job")
"""Components whose places are nodes, where others are of packages."""
NODES = "NNodes"
"""Nodes of a run, as Slurm calls the fact."""
ARRAYS = ("joules", "places", "seconds", "awake", "longest", "resting")
"""Fields of :class:`Metered` besides counts and cores, with a value for each row."""
COUNTS = ("cycles", "instructions", "bytes_mem")
"""Counts that power depends on, of which a law takes those that every run has."""
MOST_SOCKETS = 8
"""Packages of a node at most, where no platform gives them."""
FEWEST, RISEN = 3, 1.1
"""Numbers of cores that show that the power of a core rises with them, and by what factor at least."""
LEAST, MOST = 0.5, 3000.0
"""Watts that a package, its memory or a node can have on average: outside of these the unit is another one."""
SAME = 0.02
"""How far values of one meter that several ranks read may differ."""


def metric_of(kind: str, component: str) -> str:
    """The metric of ``energy`` or ``power`` of a component; what is of a job has no name of its own."""
    return kind if component in ("", "job") else f"{kind}_{component}"


@dataclass(frozen=True)
class Metered:
    """Energies of one component, a row for each group of n, with what its cores did meanwhile."""

    runs: tuple[str, ...]  # of each row: the run, repetitions apart
    configurations: tuple[str, ...]  # of each row, in words
    joules: Array  # (n,)
    places: Array  # (n,): packages or nodes that report together
    seconds: Array  # (n,): the window in which the meter counted
    awake: Array  # (n,): seconds of it in which the cores were not halted, mean over the group's ranks
    longest: Array  # (n,): the longest window of a rank of the run: its first was started first
    resting: Array  # (n,): least halted seconds of a rank of the run: its last to be started waits for no other
    counts: Mapping[str, Array]  # (n,): of all ranks of the group, those of COUNTS that all rows have
    cores: Array  # (n,): ranks times threads
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.joules)

    def rows(self, chosen: Index | Array) -> Metered:
        """These rows alone."""
        names, where = (np.array(each, dtype=object)[chosen] for each in (self.runs, self.configurations))
        counts = {name: values[chosen] for name, values in self.counts.items()}
        arrays: dict[str, Array] = {name: getattr(self, name)[chosen] for name in ARRAYS}
        return Metered(tuple(names), tuple(where), counts=counts, cores=self.cores[chosen], notes=self.notes, **arrays)


@dataclass
class _Rows:
    """Rows as they are collected."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    without: dict[str, list[str]] = field(default_factory=dict)  # runs that are left out, by the reason
    same: bool = False  # whether many ranks read one meter

    def notes(self, component: str) -> tuple[str, ...]:
        """What was left out, or taken once."""
        name, place = metric_of("energy", component), "node" if component in OF_NODES else "package"
        lines = [
            f"{name} {why} in {counted(len(runs), 'run')} ({some_of(runs)}), which {'are' if len(runs) > 1 else 'is'} "
            f"left out of the law of power"
            for why, runs in self.without.items()
        ]
        return (*lines, *([f"{name} is the same on all ranks of a {place}: taken once of each"] if self.same else []))


def metered(experiment: Experiment, component: str, platform: Platform | None) -> Metered | None:
    """What the meters of `component` counted in the runs of an experiment; None where no run has it, no rows and a note
    where none can be used.

    Raises InputError where a power is none that a package, memory or node can have.
    """
    collected = _Rows()
    names = metric_of("energy", component), metric_of("power", component)
    for run in experiment.runs:
        if set(names) & set(experiment.columns(run, "counters")):
            _read(experiment, run, component, platform, collected)
    rows = collected.rows
    if not rows and not collected.without:
        return None
    if not rows:
        empty = np.zeros(0)
        nothing = dict.fromkeys(ARRAYS, empty)
        return Metered((), (), counts={}, cores=empty, notes=collected.notes(component), **nothing)
    arrays = {
        name: np.array([row[name] for row in rows], dtype=np.float64)
        for name in rows[0]
        if name not in ("run", "where")
    }
    counts = {name: arrays[name] for name in COUNTS if np.isfinite(arrays[name]).all() and (arrays[name] > 0).any()}
    possible = _possible(rows, arrays, names)
    reason = f"over time is not between {LEAST:g} W and {MOST:g} W"
    impossible = [row["where"] for row, fine in zip(rows, possible.tolist(), strict=True) if not fine]
    collected.without.update({reason: impossible} if impossible else {})
    runs, where = (tuple(row[name] for row in rows) for name in ("run", "where"))
    chosen = {name: arrays[name] for name in ARRAYS}
    notes = collected.notes(component)
    windows = Metered(runs, where, counts=counts, cores=arrays["cores"], notes=notes, **chosen)
    return windows.rows(np.flatnonzero(possible))


def _possible(rows: Sequence[Mapping[str, Any]], arrays: Mapping[str, Array], names: tuple[str, str]) -> Mask:
    """The rows (n,) whose power a package, memory or node can have.

    Raises InputError where most rows have another one, or values are in another unit.
    """
    watts = arrays["joules"] / (arrays["seconds"] * arrays["places"])
    each = arrays["joules"] / arrays["places"]
    possible, as_watts, as_kilojoules = _within(watts), _within(each).all(), _within(1000 * watts).all()
    wrong = ~possible
    if as_watts and possible.all() and _rises(watts, arrays["cores"]) and not _rises(each, arrays["cores"]):
        wrong = arrays["cores"] == arrays["cores"].min()
    elif 2 * np.count_nonzero(possible) >= len(rows):
        return possible
    remedy = "the counter wrapped, or was read in another unit: measure this run again, or leave it out"
    # Power differs less from run to run than energy does.
    if as_kilojoules and not (as_watts and np.ptp(np.log(each)) <= np.ptp(np.log(watts))):
        remedy = f"the values look like kilojoules: name their column {names[0]}_kJ, or import 1000 times as much"
    elif as_watts and (watts[wrong] < MOST).all():
        remedy = f"the values look like watts: import them as {names[1]}"
    at = int(np.flatnonzero(wrong)[0])
    joules, seconds = arrays["joules"][at], arrays["seconds"][at]
    raise InputError(
        f"{names[0]} of the run with {rows[at]['where']} is {joules:.4g} J in {seconds:.4g} s, {watts[at]:.3g} W",
        remedy,
    )


def _within(watts: Array) -> Mask:
    return np.asarray((watts >= LEAST) & (watts <= MOST))


def _rises(watts: Array, cores: Array) -> bool:
    """Whether the power of each core rises from every number of cores to the next: something is awake with the first
    core, so that it falls."""
    numbers, which = np.unique(cores, return_inverse=True)
    if len(numbers) < FEWEST:
        return False
    per_core = np.bincount(np.ravel(which), watts) / np.bincount(np.ravel(which)) / numbers
    return bool((np.diff(per_core) > 0).all() and per_core[-1] > RISEN * per_core[0])


def _read(experiment: Experiment, run: Run, component: str, platform: Platform | None, collected: _Rows) -> None:
    table = experiment.table(run, "counters")
    if table is None or table.empty:
        return
    program = table[table["kernel"].astype(str) == WHOLE]
    if program.empty:
        if any(run.inclusive(each) for each in ("time", metric_of("energy", component))):
            return
        program = table.groupby("rank", as_index=False).sum(numeric_only=True, min_count=1)
    program = program.sort_values("rank").reset_index(drop=True)
    values = {str(name): program[name].to_numpy(np.float64) for name in program.columns if name not in ("kernel",)}
    name = metric_of("energy", component)
    joules = values.get(name, np.full(len(program), np.nan))
    seconds = values.get("time", np.full(len(program), np.nan))
    if np.isnan(seconds).all() and run.wall_time:
        seconds = np.full(len(program), run.wall_time)
    if np.isnan(joules).all():
        joules = values.get(metric_of("power", component), np.full(len(program), np.nan)) * seconds
    where = assigned(run.configuration)
    ranks = values["rank"].astype(np.intp)
    every = float(run.configuration.get("ranks", len(ranks))) * float(run.configuration.get("threads", 1.0))
    if ranks[0] == ALL_RANKS and run.meaning(name).over == "mean":
        joules = joules * float(run.configuration.get("ranks", 1.0))
    if np.isnan(seconds).all() or np.isnan(joules).all():
        return
    if np.isnan(joules).any() or (joules < 0).any():
        collected.without.setdefault("ran backwards, or lacks a meter,", []).append(where)
        return
    if not (joules > 0).any():
        collected.without.setdefault("is 0 on all ranks", []).append(where)
        return
    hosts = _hosts(experiment.table(run, HOSTS), ranks)
    groups, same = _groups(joules, ranks, hosts, component, platform)
    collected.same |= same
    halted = values.get("time_halted", np.zeros(len(ranks)))
    longest, resting = float(np.nanmax(seconds)), float(np.nanmin(np.nan_to_num(halted)))
    for members, total in groups:
        window = float(np.nanmax(seconds[members[:1]]))
        single = ranks[0] == ALL_RANKS
        cores = every if single else float(len(members)) * float(run.configuration.get("threads", 1.0))
        awake = float(np.nanmean(np.maximum(seconds[members] - np.nan_to_num(halted[members]), 0.0)))
        row = {
            "run": run.id,
            "where": where,
            "joules": total,
            "places": _places(run, component, cores, single, platform),
            "seconds": window,
            "awake": min(awake, window),
            "longest": longest,
            "resting": resting,
            "cores": cores,
        }
        scale = every if single else 1.0  # a row of all ranks holds means over them
        for name in COUNTS:
            row[name] = float(np.nansum(values[name][members])) * scale if name in values else np.nan
        collected.rows.append(row)


def _hosts(table: pd.DataFrame | None, ranks: Index) -> list[str]:
    """The node of each rank; one where it is not known."""
    if table is None or not {"rank", "host"} <= set(table.columns):
        return [""] * len(ranks)
    known = dict(zip(table["rank"].astype(int), table["host"].astype(str), strict=True))
    return [known.get(int(rank), "") for rank in ranks]


def _groups(
    joules: Array, ranks: Index, hosts: Sequence[str], component: str, platform: Platform | None
) -> tuple[list[tuple[Index, float]], bool]:
    """The ranks of each meter, the one that reports first, with its joules; and whether many read one meter."""
    if ranks[0] == ALL_RANKS:
        return [(np.arange(1), float(joules[0]))], False
    groups: list[tuple[Index, float]] = []
    same, names = False, np.array(hosts, dtype=object)
    for host in dict.fromkeys(hosts):
        members = np.flatnonzero(names == host)
        opening = np.flatnonzero(joules[members] > 0)
        meters = 1 if component in OF_NODES else platform.layout.sockets if platform else MOST_SOCKETS
        if len(opening) > meters or (len(opening) == len(members) > 1 and _equal(joules[members])):
            parts = _sockets(members, platform) if platform and component not in OF_NODES else [members]
            groups += [(part, float(joules[part].max())) for part in parts]
            same = True
            continue
        if not len(opening):
            continue
        bounds = [0, *opening[1:], len(members)]
        sizes = np.diff(bounds)
        # Dealt out in turn the meters are on the first ranks, and which rank is on which package is not known.
        if (
            platform is not None
            and component not in OF_NODES
            and sizes.max() > max(platform.layout.cores_per_socket, 1)
        ):
            parts = [members[at :: len(opening)] for at in range(len(opening))]
        else:
            parts = [members[first:last] for first, last in itertools.pairwise(bounds)]
        for at, part in zip(opening.tolist(), parts, strict=True):
            leading = members[at]
            group = np.concatenate([[leading], part[part != leading]]).astype(np.intp)
            groups.append((group, float(joules[leading])))
    return groups, same


def _equal(joules: Array) -> bool:
    return bool(joules.max() - joules.min() <= SAME * joules.max())


def _sockets(ranks: Index, platform: Platform) -> list[Index]:
    size = platform.layout.cores_per_socket
    return [ranks[first : first + size] for first in range(0, len(ranks), size)]


def _places(run: Run, component: str, cores: float, single: bool, platform: Platform | None) -> float:
    """Packages or nodes that a row is of: those that its cores fill, where nothing else says how many they are."""
    nodes = 1.0
    if single:
        nodes = float(run.configuration.get("nodes", stated_number(run, NODES)))
    if not platform:
        return max(nodes, 1.0) if component in OF_NODES else float(max(stated_number(run, METERED), nodes, 1.0))
    if not nodes:
        nodes = float(np.ceil(cores / platform.cores))
    if component in OF_NODES:
        return nodes
    if (every := stated_number(run, METERED)) > 0:
        return float(every)
    each = min(np.ceil(cores / nodes / platform.layout.cores_per_socket), platform.layout.sockets)
    return float(nodes * max(each, 1.0))


def stated_number(run: Run, name: str) -> int:
    """A number among the facts of a run's environment; 0 where there is none."""
    text = run.environment.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 9 else 0


def power(metered: Metered) -> Array:
    """Watts (n,) of each place on average."""
    return np.asarray(ratio(metered.joules, metered.seconds * metered.places, 0.0))
