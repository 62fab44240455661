"""Load imbalance: groups of ranks with the same work, each modelled separately; the wall time is the slowest group's.

Two ranks are in one group where their instructions, kernel by kernel, agree within a twentieth of what both have
(Panadero et al.: instruction groups of ranks that are 95 % similar). A group's role identifies it at every number of
ranks: that of most ranks, that of the first rank (a root, which reads and writes), that of the last, and the rest by
how much they work. With T_g the work of a rank of group g and n_g its ranks,

    imbalance = max_g T_g / (sum_g n_g T_g / sum_g n_g),

each T_g a function of its own, so that one rank's special work neither hides in a mean nor spreads over all. Where the
groups are not the same at every configuration, the imbalance itself is a function of the parameters, and never less
than 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment, Run
from ranksight.core.sampled import sampling_of
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Series
from ranksight.model.structure.wholeunits import WholeUnits
from ranksight.model.uncertainty import forecast

SIMILAR = 0.95
"""Share of their work in which two ranks of a group agree."""
MOST, FIRST, LAST = "most ranks", "first rank", "last rank"
RATIO, WORK, MEMBERS = "imbalance", "work", "members"
"""Metrics of the series: the ratio itself, the work of a rank of a group, and the ranks of it as a share of all."""
ALL = "(all ranks)"
TELLING = 1.05
"""Imbalance from which on a special rank is reported."""
HAVING = ("time", "instructions")
"""Metrics that show which ranks have a kernel."""
DOUBT = 0.01
"""Probability of samples differing so much between ranks by chance, below which they differ."""
FEWEST = 3
"""Configurations with two ranks or more needed to extrapolate an imbalance."""


@dataclass(frozen=True)
class Balance(Stored):
    """How unevenly ranks work."""

    fitted: Fitted
    """``imbalance`` of all ranks, and ``work`` and ``members`` of each role where groups are the same everywhere."""
    roles: tuple[str, ...]  # roles modelled; none where the imbalance alone is
    seen: tuple[float, float]  # smallest and largest imbalance measured
    metric: str  # what the work is counted in

    def imbalance(self, points: Array, level: float = 0.9) -> tuple[Array, Array, Array]:
        """Work of the busiest rank over the mean at `points` (k, m), with the ends of its interval; each (k,)."""
        said = self.fitted.predict(points, level)
        rows = self.fitted.rows
        row = rows[ALL, RATIO]
        # A ratio without a prediction stays as it was seen; extrapolated it leaves that by no more than it varied.
        spare = self.seen[1] / self.seen[0]
        known = said.status[row] == forecast.OK
        value = np.where(known, np.clip(said.value[row], self.seen[0] / spare, self.seen[1] * spare), self.seen[1])
        low, high = np.where(known, said.lower[row], self.seen[0]), np.where(known, said.upper[row], self.seen[1])
        if self.roles:
            work = np.array([said.value[rows[role, WORK]] for role in self.roles])
            share = np.array([np.clip(said.value[rows[role, MEMBERS]], 0.0, 1.0) for role in self.roles])
            good = np.all([said.status[rows[role, WORK]] == forecast.OK for role in self.roles], axis=0)
            ranks = points[:, self.fitted.parameters.index("ranks")]
            for at, role in enumerate(self.roles):
                if role in (FIRST, LAST):
                    share[at] = 1 / ranks
            share[self.roles.index(MOST)] = np.maximum(1 - (share.sum(axis=0) - share[self.roles.index(MOST)]), 0.0)
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = work.max(axis=0) * share.sum(axis=0) / (share * work).sum(axis=0)
                spread = [
                    np.array(
                        [np.log(getattr(said, end)[rows[role, WORK]] / work[at]) for at, role in enumerate(self.roles)]
                    )
                    for end in ("lower", "upper")
                ]
            good &= np.isfinite(ratio)
            value = np.where(good, ratio, value)
            busiest = np.argmax(np.nan_to_num(work), axis=0)
            down, up = (np.nan_to_num(ends[busiest, np.arange(len(points))]) for ends in spread)
            low, high = np.where(good, ratio * np.exp(down), low), np.where(good, ratio * np.exp(up), high)
        value = np.maximum(np.nan_to_num(value, nan=1.0), 1.0)
        return value, np.clip(np.nan_to_num(low, nan=1.0), 1.0, value), np.fmax(high, value)

    def notes(self, points: Array) -> list[str]:
        """Which special ranks the wall waits for at `points`, where it does by :data:`TELLING` or more."""
        if not self.roles:
            return []
        work, ratio = self.of_roles(points), self.imbalance(points)[0]
        found = []
        for k, point in enumerate(points):
            busiest = max(self.roles, key=lambda role: float(np.nan_to_num(work[role][k])))
            if busiest != MOST and ratio[k] >= TELLING:
                where = ", ".join(f"{n} = {x:g}" for n, x in zip(self.fitted.parameters, point, strict=True))
                found.append(f"at {where} all wait for the {busiest}, which has {ratio[k]:.3g} times the mean work")
        return found

    def of_roles(self, points: Array) -> dict[str, Array]:
        """Work of a rank of each role at `points`, (k,)."""
        said = self.fitted.predict(points)
        rows = self.fitted.rows
        return {role: np.asarray(said.value[rows[role, WORK]]) for role in self.roles}

    def _fits(self) -> bool:
        keys = set(self.fitted.keys)
        wanted = {(ALL, RATIO)} | {(role, name) for role in self.roles for name in (WORK, MEMBERS)}
        low, high = self.seen
        fine = 1 <= low <= high < np.inf and "ranks" in self.fitted.parameters
        return fine and wanted <= keys and (not self.roles or MOST in self.roles)


def groups(work: Array) -> list[Index]:
    """Groups of ranks with similar work, the largest group first.

    `work` (ranks, kernels): zero where a rank does not call a kernel.
    """
    left = np.argsort(work.sum(axis=1), kind="stable")
    found: list[Index] = []
    while len(left):
        # The median of what is left leads: it is of the largest group wherever that holds most of them.
        leader = work[left[len(left) // 2]]
        both = np.maximum(work[left], leader).sum(axis=1)
        apart = np.abs(work[left] - leader).sum(axis=1)
        mine = apart <= (1 - SIMILAR) * np.where(both > 0, both, 1.0)
        found.append(np.sort(left[mine]))
        left = left[~mine]
    return sorted(found, key=len, reverse=True)


def roles(found: list[Index], total: Array) -> dict[str, Index]:
    """The groups by their roles; a role of one rank is only given to a group of one."""
    named: dict[str, Index] = {MOST: found[0]}
    rest = []
    for group in found[1:]:
        if len(group) == 1 and group[0] == 0:
            named[FIRST] = group
        elif len(group) == 1 and group[0] == len(total) - 1:
            named[LAST] = group
        else:
            rest.append(group)
    rest.sort(key=lambda group: -float(total[group].mean()))
    return named | {f"group {at + 1}": group for at, group in enumerate(rest)}


def fit_balance(experiment: Experiment, units: WholeUnits | None = None, **settings: Any) -> Balance | None:
    """Learn how unevenly ranks work; None where ranks were not counted one by one at enough configurations.

    `units`: what these make uneven is taken out: it is another at every number of ranks. `**settings`: of
    :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    if "ranks" not in experiment.parameters:
        return None
    metric = _metric(experiment)
    places: dict[tuple[float, ...], dict[str, list[tuple[float, float]]]] = {}
    for run in experiment.runs if metric else ():
        table = _work(experiment, run, metric)
        if table is None:
            continue
        total = table.sum(axis=1)
        point = run.point(experiment.parameters)
        at = np.array([point])
        uneven = 1.0 if units is None else float(units.unevenness(at, experiment.parameters)[0])
        ratio = max(1.0, float(total.max() / total.mean()) / uneven)
        cell = places.setdefault(point, {})
        cell.setdefault(ALL, []).append((ratio, 1.0))
        for role, ranks in roles(groups(table), total).items():
            cell.setdefault(role, []).append((float(total[ranks].mean()), len(ranks) / len(total)))
    if len(places) < FEWEST:
        return None
    points = np.array(list(places))
    cells = list(places.values())
    held = _held(experiment)
    missing = [held.get(point, 1.0) for point in places]
    # Means over the ranks that have a kernel hold what a few ranks do alone already.
    for cell, part in zip(cells, missing, strict=True):
        cell[ALL] = [(max(1.0, ratio * part), share) for ratio, share in cell[ALL]]
    found = [role for role in dict.fromkeys(r for cell in cells for r in cell) if role != ALL]
    whole = min(missing) > 1 / TELLING
    same = units is None and whole and len(found) > 1 and all(set(cell) == {ALL, *found} for cell in cells)
    kept = tuple(found) if same else ()
    rows, keys = [[np.median([v for v, _ in cell[ALL]]) for cell in cells]], [(ALL, RATIO)]
    for role in kept:
        for which, name in enumerate((WORK, MEMBERS)):
            rows.append([float(np.median([pair[which] for pair in cell[role]])) for cell in cells])
            keys.append((role, name))
    values = np.array(rows)[:, :, None]
    series = Series(experiment.parameters, points, values, tuple(k for k, _ in keys), tuple(n for _, n in keys))
    return Balance(fit_varied(series, **settings), kept, (float(values[0].min()), float(values[0].max())), metric)


def _held(experiment: Experiment) -> dict[tuple[float, ...], float]:
    """The sum of the kernels' means over all ranks, over that of their means over the ranks that have each.

    Samples do not show which ranks have a kernel: a rank without one may have it.
    """
    found: dict[tuple[float, ...], list[float]] = {}
    for run in experiment.runs:
        table = experiment.table(run, "counters")
        counted = [] if table is None else [name for name in HAVING if name in table.columns and not run.sampled(name)]
        if table is None or not counted:
            continue
        metric = counted[0]
        table = table[(table["rank"] != ALL_RANKS) & (table["kernel"] != WHOLE)].dropna(subset=[metric])
        if table["rank"].nunique() < 2:
            continue
        by_kernel = table.groupby("kernel", observed=True)[metric]
        each = float(by_kernel.mean().sum())
        if each > 0:
            point = run.point(experiment.parameters)
            found.setdefault(point, []).append(float(table[metric].sum()) / float(run.configuration["ranks"]) / each)
    return {point: float(np.median(parts)) for point, parts in found.items()}


def _metric(experiment: Experiment) -> str:
    """The best measure of a rank's work: processor time between MPI calls, instructions, time."""
    present = experiment.metrics()
    return next((name for name in ("compute_cpu_time", "instructions", "time") if name in present), "")


def _work(experiment: Experiment, run: Run, metric: str) -> Array | None:
    """Work of a run, (ranks, kernels), of two ranks or more; None where it was not counted rank by rank.

    Ranks whose samples differ by no more than samples do have as much as each other.
    """
    table = experiment.table(run, "counters")
    if table is None or metric not in table.columns:
        return None
    table = table[table["rank"] != ALL_RANKS].dropna(subset=[metric])
    whole = table["kernel"] == WHOLE
    # Instructions of a whole program hold those of waiting in MPI, which is the reverse of work.
    table = table[whole] if metric == "compute_cpu_time" else table[~whole]
    if table["rank"].nunique() < 2:
        return None
    wide = table.pivot_table(index="rank", columns="kernel", values=metric, aggfunc="sum", observed=True).fillna(0.0)
    wide = wide.reindex(range(int(run.configuration["ranks"])), fill_value=0.0)
    found = np.asarray(wide.to_numpy(), dtype=np.float64)
    if run.sampled(metric) and _by_chance(experiment, run, metric, found.sum(axis=1)):
        found = np.broadcast_to(found.mean(axis=0), found.shape).copy()
    return found if found.sum() > 0 else None


def _by_chance(experiment: Experiment, run: Run, metric: str, work: Array) -> bool:
    """Whether the sums of ranks (r,) differ by no more than their samples explain (chi-squared test)."""
    table = sampling_of(experiment, run)
    table = None if table is None else table[table["metric"] == metric]
    if table is None or table.empty:
        return False
    variance = float((table["samples"] * table["worth"] ** 2).sum()) / len(work)
    return bool(special.chdtrc(len(work) - 1, float(((work - work.mean()) ** 2).sum()) / variance) > DOUBT)
