"""What a model keeps of energy: the laws of power, the rates that were measured, and the places that programs hold.

Packages of the nodes held that no rank is on take idle power, which is named, unless meters recorded whole nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Mask, ratio
from ranksight.core.meaning import METERED
from ranksight.core.records import dataclass
from ranksight.core.units import in_full
from ranksight.model import priors
from ranksight.model.energy.agreeing import fit_law
from ranksight.model.energy.metered import (
    COMPONENTS,
    COUNTS,
    NODES,
    OF_NODES,
    Metered,
    metered,
    metric_of,
    stated_number,
)
from ranksight.model.energy.power import PowerLaw
from ranksight.model.plaindata import Stored
from ranksight.model.series.computation import PROGRAM, cores

if TYPE_CHECKING:
    from ranksight.core.experiment import Experiment
    from ranksight.core.run import Run
    from ranksight.model.series.reducing import Series
    from ranksight.platforms import Platform

ENERGY, POWER = "energy", "power"
ALLOCATED = "AllocCPUS"
"""Processors of a run, as Slurm calls the fact."""
NEEDED = ("time", "frequency", *COUNTS)
"""Metrics of the program that energy follows from, as far as they are modelled."""


@dataclass(frozen=True)
class Profile(Stored):
    """What a second of a core held in the runs, by the cores at work (n,), which rise.

    `cycles`, `instructions`, `bytes_mem` (n,): counts a second of a core that is awake, NaN where not counted;
    `starting` (n,): seconds from the start of the first rank to that of the last; `resting` (n,): seconds in which
    cores were halted for other reasons, over those in which they were awake.
    """

    cores: Array
    cycles: Array
    instructions: Array
    bytes_mem: Array
    starting: Array
    resting: Array
    _sizes = "cores:n>0 cycles:n instructions:n bytes_mem:n starting:n resting:n"

    @classmethod
    def of(cls, windows: Metered) -> Profile:
        """The profile of the runs that `windows` has the windows of."""
        names = np.array(windows.runs, dtype=object)
        rows = []
        for name in dict.fromkeys(windows.runs):
            rows_of_run = names == name
            work = float((windows.cores * windows.awake)[rows_of_run].sum()) or np.nan
            rates = (
                float(windows.counts[each][rows_of_run].sum()) / work if each in windows.counts else np.nan
                for each in COUNTS
            )
            awake = work / float(windows.cores[rows_of_run].sum())
            longest, resting = float(windows.longest[rows_of_run][0]), float(windows.resting[rows_of_run][0])
            waits = max(longest - awake - resting, 0.0), resting / awake
            rows.append((float(windows.cores[rows_of_run].sum()), *rates, *waits))
        table = np.array(sorted(rows), dtype=np.float64)
        first = np.unique(table[:, 0], return_index=True)[1]
        means = np.add.reduceat(table, first) / np.diff([*first, len(table)])[:, None]
        return cls(*means.T)

    def counted(
        self, name: str, total: Array, doubt: Array, of_time: Array, work: Array, count: Array
    ) -> tuple[Array, Array, Array]:
        """Counts (k,) of runs of `work` core-seconds, standard deviations of their logarithms at this time, and the
        power of the time that they grow with.

        The mean of two answers by what a rate is uncertain by: the count predicted, `total` with `doubt`, which a
        longer time does not change, over a time with `of_time`; and the rate of the nearest runs, which drifts with the
        distance from them; cycles a second of a core are its clock.
        """
        if not np.isfinite(rates := getattr(self, name)).all() or not (rates > 0).all():
            return total, doubt, np.full(len(count), float(name == "cycles"))
        rate = np.exp(np.interp(np.log(count), np.log(self.cores), np.log(rates)))
        drift = (0.0 if name == "cycles" else priors.RATE_DRIFT**2) * self.distance(count) + priors.POWER_SCATTER**2
        known = np.isfinite(total) & (total > 0) & np.isfinite(doubt)
        doubt = np.where(known, doubt, 0.0)
        weight = np.where(known, ratio(drift, drift + doubt**2 + of_time**2, 0.0), 0.0)
        answer = np.exp(weight * np.log(np.where(known, total, 1.0)) + (1 - weight) * np.log(rate * work))
        return answer, np.sqrt((weight * doubt) ** 2 + (1 - weight) ** 2 * drift), 1 - weight

    def starting_at(self, count: Array, growth: Array) -> tuple[Array, Array]:
        """Seconds (k,) from the first rank's start to the last's, which grow with the nodes that are started, and the
        spread of their logarithm.

        `growth` (k,): nodes over the most that were measured.
        """
        beyond = np.log(np.maximum(growth, 1.0))
        power, doubt = priors.STARTING
        seconds = np.interp(np.log(count), np.log(self.cores), self.starting)
        return seconds * np.exp(power * beyond), np.hypot(priors.WAITING_SCATTER, doubt * beyond)

    def resting_at(self, count: Array) -> Array:
        """Halted seconds besides, over those awake (k,), of the nearest runs."""
        return np.asarray(np.interp(np.log(count), np.log(self.cores), self.resting))

    def distance(self, count: Array) -> Array:
        """How far (k,) so many cores are from the nearest that were measured, in logarithms."""
        return np.asarray(np.abs(np.log(count[:, None] / self.cores)).min(axis=1))


@dataclass(frozen=True)
class Energy(Stored):
    """The laws of power of an experiment, and the places that programs hold; none where nothing was metered.

    `cores`, `packages`: of a node, 0 where no platform says it; `compact`: whether ranks fill one package before the
    next; `ranks`: ranks that fill a node before the next one is used.
    """

    laws: tuple[PowerLaw, ...]
    cores: int
    packages: int
    ranks: int
    compact: bool
    profile: Profile  # of no cores where no meter can be used
    each: float  # cores of a place where no platform is known; 0 where nothing says it
    whole: int = 0  # packages of a node that were metered with a rank or not; 0 where those with a rank alone were
    notes: tuple[str, ...] = ()
    machine: str = ""  # the other machine that the meters were on; empty for that of the model's runs
    others: tuple[Energy, ...] = ()  # what was metered on other machines

    def on(self, machine: str) -> Energy:
        """What was metered on another machine; the same where nothing was."""
        return next((other for other in self.others if other.machine == machine), self)

    def also(self, other: Energy, machine: str) -> Energy:
        """The same with what was metered on another machine."""
        rest = tuple(each for each in self.others if each.machine != machine)
        return replace(self, others=(*rest, replace(other, machine=machine)))

    def law(self, component: str) -> PowerLaw | None:
        """The law of a component, where it was metered."""
        return next((law for law in self.laws if law.component == component), None)

    @property
    def covers(self) -> str:
        """What 'energy' and 'power' are of."""
        whole = {"node": "whole nodes", "job": "the job"}
        named = [text for name, text in whole.items() if self.law(name) is not None]
        parts = {"package": "packages", "dram": "memory"}
        return named[-1] if named else " and ".join(text for name, text in parts.items() if self.law(name) is not None)

    def reaches(self, component: str, count: Array) -> Mask:
        """Whether (k,) the power of so many cores is known, of a component or of all."""
        laws = [law for law in self.laws if component in ("", law.component)]
        return np.asarray(np.all([law.known(count) for law in laws], axis=0))

    def placed(self, placement: str | None, ranks_per_node: int | None) -> Energy:
        """The same laws with ranks placed in another way."""
        return replace(
            self,
            compact=placement == "compact" if placement else self.compact,
            ranks=ranks_per_node or self.ranks,
        )

    @property
    def metrics(self) -> tuple[str, ...]:
        """What can be asked: energy and power, and those of each component that was metered."""
        if not self.laws:
            return ()
        names = dict.fromkeys(("", *(law.component for law in self.laws)))
        return tuple(dict.fromkeys(metric_of(kind, name) for kind in (ENERGY, POWER) for name in names))

    def wanted(self, names: Sequence[str]) -> tuple[str, ...]:
        """The metrics asked for, ``energy`` and ``power`` with their components."""
        wanted: dict[str, None] = {}
        for name in names:
            wanted[name] = None
            if name in (ENERGY, POWER):
                wanted.update(dict.fromkeys(metric_of(name, law.component) for law in self.laws if len(self.laws) > 1))
        return tuple(wanted)

    def nodes(self, points: Array, parameters: Sequence[str]) -> Array:
        """Nodes (k,) held at `points` (k, m)."""
        if "nodes" in parameters:
            return np.asarray(np.maximum(points[:, list(parameters).index("nodes")], 1.0))
        each = self.ranks or self.cores or self.each
        return np.asarray(np.ceil(cores(points, parameters) / each)) if each else np.ones(len(points))

    def places(self, component: str, points: Array, parameters: Sequence[str]) -> Array:
        """Packages with a rank, or nodes, (k,) at `points` (k, m)."""
        nodes, active = self.nodes(points, parameters), cores(points, parameters)
        if component in OF_NODES:
            return nodes
        if self.whole:
            return nodes * self.whole
        if not self.cores:
            return np.asarray(np.maximum(np.ceil(active / self.each), nodes)) if self.each else nodes
        if not self.compact:
            return np.asarray(np.minimum(nodes * self.packages, active))
        size = self.cores // self.packages
        each = min(self.ranks or self.cores, self.cores)
        full = np.floor(active / each)
        last = np.ceil((active - full * each) / size)
        spread = np.minimum(full * np.ceil(each / size) + last, nodes * self.packages)
        in_all_nodes = np.ceil(active / nodes / size) * nodes
        return np.asarray(np.where("nodes" in parameters, np.minimum(in_all_nodes, nodes * self.packages), spread))

    def remark(self, points: Array, parameters: Sequence[str]) -> str:
        """The note on packages that a job holds and no rank is on, or on places that are not known."""
        if not self.laws:
            return ""
        if (self.most_places(points, parameters) > 1).any():
            return (
                "Without --platform all ranks are taken to share one package and node, as up to "
                f"{in_full(self.largest)} cores in the runs did; the intervals allow for nodes of no more cores"
            )
        if not (empty := self.empty(points, parameters)).any():
            return ""
        watts, doubt = self.idle
        return (
            f"Packages without a rank ({in_full(float(empty.max()))} at most) are held and were not recorded: each is "
            f"in 'energy' and 'power' with its idle power, {watts:.3g} +- {doubt:.2g} W by the law"
        )

    @property
    def largest(self) -> float:
        """The most cores that a run had."""
        return max((law.largest for law in self.laws), default=0.0)

    def most_places(self, points: Array, parameters: Sequence[str]) -> Array:
        """Times (k,) as many packages or nodes as :meth:`places` that runs at `points` (k, m) may need: where nothing
        says how many cores one has, it has at least those of the largest run."""
        if self.cores or self.each or "nodes" in parameters or not self.largest:
            return np.ones(len(points))
        return np.asarray(np.ceil(cores(points, parameters) / self.largest))

    def empty(self, points: Array, parameters: Sequence[str]) -> Array:
        """Packages (k,) that jobs at `points` (k, m) hold without a rank, and that no meter recorded."""
        if self.whole or not self.cores or self.law("package") is None or any(map(self.law, OF_NODES)):
            return np.zeros(len(points))
        packages = self.nodes(points, parameters) * self.packages
        return np.asarray(np.maximum(packages - self.places("package", points, parameters), 0.0))

    @property
    def idle(self) -> tuple[float, float]:
        """Watts of a package that no rank is on, with its memory, and their standard deviation."""
        each = [law.idle for law in map(self.law, ("package", "dram")) if law is not None]
        return sum(watts for watts, _ in each), float(np.hypot.reduce([doubt for _, doubt in each]))


NO_ENERGY = Energy((), 0, 0, 0, True, Profile(*np.zeros((6, 0))), 0.0)
"""Of runs that no meter was read in."""


def fit_energy(
    experiment: Experiment, platform: Platform | None, placement: str = "compact", ranks_per_node: int | None = None
) -> Energy:
    """The laws of the components that the runs metered."""
    laws: list[PowerLaw] = []
    notes: list[str] = []
    each, profile = 0.0, NO_ENERGY.profile
    for component in COMPONENTS:
        windows = metered(experiment, component, platform)
        if windows is None:
            continue
        if not len(windows):
            notes += windows.notes
            continue
        law, left_out = fit_law(windows, component)
        notes += [*windows.notes, *left_out]
        if law is None:
            if component == "package":
                return replace(NO_ENERGY, notes=tuple(notes))
            continue
        laws.append(law)
        profile = profile if len(profile.cores) else Profile.of(windows)
        if len(windows.joules) > len(set(windows.runs)) or (windows.places > 1).any():
            each = max(each, float((windows.cores / windows.places).max()))
    each = each or _cores_of_a_node(experiment)
    if not laws and not notes and not each:
        return NO_ENERGY
    node, packages = (platform.cores, platform.layout.sockets) if platform else (0, 0)
    return Energy(
        tuple(laws),
        node,
        packages,
        ranks_per_node or 0,
        placement == "compact",
        profile,
        each,
        _whole(experiment),
        tuple(dict.fromkeys(notes)),
    )


def _cores_of_a_node(experiment: Experiment) -> float:
    """Ranks times threads on a node by the nodes that a batch system states of the runs; 0 where these do not show it.

    On one node, the processors that all runs got are its own where some left a part of them idle.
    """
    stated = [
        (cores_of(run), float(stated_number(run, ALLOCATED)), float(nodes))
        for run in experiment.runs
        if (nodes := stated_number(run, NODES))
    ]
    if not stated:
        return 0.0
    busy, allocated, nodes = np.array(stated).T
    if (nodes > 1).any():
        return float((busy / nodes)[nodes > 1].max())
    same = len(set(allocated)) == 1 and allocated[0] > busy.min()
    return float(allocated[0]) if same else 0.0


def cores_of(run: Run) -> float:
    """Ranks times threads of a run."""
    return float(run.configuration.get("ranks", 1.0) * run.configuration.get("threads", 1.0))


def _whole(experiment: Experiment) -> int:
    """Packages of a node that meters counted whether a rank was on them or not."""
    each = {stated_number(run, METERED) // max(stated_number(run, NODES), 1) for run in experiment.runs} - {0}
    return max(each, default=0)


def unmetered(series: Series) -> Series:
    """The series without those of the whole program that the laws of power answer."""
    names = {metric_of(kind, component) for kind in (ENERGY, POWER) for component in COMPONENTS}
    keep = [not (kernel in PROGRAM and name in names) for kernel, name in series.keys]
    return series.select(np.array(keep, dtype=bool))
