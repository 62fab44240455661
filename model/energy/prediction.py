"""Energy and power at configurations that were not measured: the law of power with the counts and times predicted.

    E = P T,    Var ln E = Var ln P + (dE/dT T/E)^2 Var ln T + ...

Packages, memory and nodes are predicted apart; energy and power without a component are of packages and memory
together. Idle packages of the nodes held are named, not added, unless meters recorded whole nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, ratio
from ranksight.core.experiment import WHOLE
from ranksight.core.units import in_full
from ranksight.model.energy.law import AWAKE, CORES, HALTED, PowerLaw, amounts, fit_law
from ranksight.model.energy.metered import COMPONENTS, COUNTS, OF_NODES, Metered, metered, metric_of
from ranksight.model import priors
from ranksight.model.plaindata import Stored
from ranksight.model.series.computation import cores
from ranksight.model.uncertainty.forecast import NO_DATA, OK, Forecast, judged_by_width

if TYPE_CHECKING:
    from ranksight.core.experiment import Experiment
    from ranksight.model.fitted_model import Model
    from ranksight.model.series.reducing import Series
    from ranksight.platforms import Platform

ENERGY, POWER = "energy", "power"
RATES = ("instructions", "bytes_mem")
"""Counts whose rates vary from run to run; cycles pass with the time."""
LATEST = 2.0
"""Halted seconds of the rank that waits longest over their mean: ranks are started one after another."""
NEEDED = ("time", "frequency", *COUNTS)
"""Metrics of the program that energy follows from, as far as they are modelled."""


@dataclass(frozen=True)
class Profile(Stored):
    """What a second of a core held in the runs, by the cores at work (n,), which rise.

    `instructions`, `bytes_mem` (n,): counts a second of a core that is awake, NaN where they were not counted;
    `halted` (n,): mean seconds of a rank in which its core was halted.
    """

    cores: Array
    instructions: Array
    bytes_mem: Array
    halted: Array

    @classmethod
    def of(cls, found: Metered) -> Profile:
        """The profile of the runs that `found` has the windows of."""
        names = np.array(found.runs, dtype=object)
        rows = []
        for name in dict.fromkeys(found.runs):
            here = names == name
            work = float((found.cores * found.awake)[here].sum()) or np.nan
            rates = (float(found.counts[each][here].sum()) / work if each in found.counts else np.nan for each in RATES)
            waiting = float(np.average(found.seconds[here] - found.awake[here], weights=found.cores[here]))
            rows.append((float(found.cores[here].sum()), *rates, waiting))
        table = np.array(sorted(rows), dtype=np.float64)
        first = np.unique(table[:, 0], return_index=True)[1]
        means = np.add.reduceat(table, first) / np.diff([*first, len(table)])[:, None]
        return cls(*means.T)

    def counted(self, name: str, total: Array, doubt: Array, work: Array, count: Array) -> tuple[Array, Array]:
        """Counts (k,) of runs of `work` core-seconds, and standard deviations of their logarithms.

        The mean of two answers by what they are uncertain by: the count predicted, `total` with `doubt`, and the rate
        of the nearest runs, which drifts with the distance from them.
        """
        if name not in RATES or not np.isfinite(rates := getattr(self, name)).all() or not (rates > 0).all():
            return total, doubt
        rate = np.exp(np.interp(np.log(count), np.log(self.cores), np.log(rates)))
        drift = priors.RATE_DRIFT**2 * self.distance(count) + priors.POWER_SCATTER**2
        weight = ratio(drift, drift + doubt**2, 0.0)
        weight = np.where(np.isfinite(total) & (total > 0), weight, 0.0)
        answer = np.exp(weight * np.log(np.where(total > 0, total, 1.0)) + (1 - weight) * np.log(rate * work))
        return answer, np.sqrt(weight**2 * np.nan_to_num(doubt) ** 2 + (1 - weight) ** 2 * drift)

    def halted_at(self, count: Array) -> tuple[Array, Array]:
        """Mean halted seconds (k,), which grow with the cores that are started, and the spread of their logarithm."""
        beyond = np.log(np.maximum(count / self.cores[-1], 1.0))
        power, doubt = priors.STARTING
        seconds = np.interp(np.log(count), np.log(self.cores), self.halted)
        return seconds * np.exp(power * beyond), doubt * (1 + beyond)

    def distance(self, count: Array) -> Array:
        """How far (k,) so many cores are from the nearest that were measured, in logarithms."""
        return np.asarray(np.abs(np.log(count[:, None] / self.cores)).min(axis=1))

    def _fits(self) -> bool:
        shapes = {each.shape for each in (self.cores, self.instructions, self.bytes_mem, self.halted)}
        return len(shapes) == 1 and len(self.cores) > 0 and bool((self.cores > 0).all())


@dataclass(frozen=True)
class Energy(Stored):
    """The laws of power of an experiment, and the places that programs hold.

    `cores`, `packages`: of a node, 0 where no platform says it; `compact`: whether ranks fill one package before the
    next; `ranks`: ranks that fill a node before the next one is used.
    """

    laws: tuple[PowerLaw, ...]
    cores: int
    packages: int
    ranks: int
    compact: bool
    profile: Profile
    each: float  # cores of a place where no platform is known, the largest that was measured
    notes: tuple[str, ...] = ()

    def law(self, component: str) -> PowerLaw | None:
        """The law of a component, where it was metered."""
        return next((law for law in self.laws if law.component == component), None)

    @property
    def metrics(self) -> tuple[str, ...]:
        """What can be asked: energy and power, and those of each component that was metered."""
        names = dict.fromkeys(("", *(law.component for law in self.laws)))
        return tuple(dict.fromkeys(metric_of(kind, name) for kind in (ENERGY, POWER) for name in names))

    def wanted(self, names: Sequence[str]) -> tuple[str, ...]:
        """The metrics asked for, ``energy`` and ``power`` with their components."""
        found: dict[str, None] = {}
        for name in names:
            found[name] = None
            if name in (ENERGY, POWER):
                found.update(dict.fromkeys(metric_of(name, law.component) for law in self.laws if len(self.laws) > 1))
        return tuple(found)

    def nodes(self, points: Array, parameters: Sequence[str]) -> Array:
        """Nodes (k,) held at `points` (k, m)."""
        if "nodes" in parameters:
            return np.asarray(np.maximum(points[:, list(parameters).index("nodes")], 1.0))
        if not self.cores:
            return np.ones(len(points))
        each = self.ranks or self.cores
        return np.asarray(np.ceil(cores(points, parameters) / each))

    def places(self, component: str, points: Array, parameters: Sequence[str]) -> Array:
        """Packages with a rank, or nodes, (k,) at `points` (k, m)."""
        held, active = self.nodes(points, parameters), cores(points, parameters)
        if component in OF_NODES:
            return held
        if not self.cores:
            return np.asarray(np.maximum(np.ceil(active / self.each), held))
        if not self.compact:
            return np.asarray(np.minimum(held * self.packages, active))
        size = self.cores // self.packages
        each = min(self.ranks or self.cores, self.cores)
        full = np.floor(active / each)
        last = np.ceil((active - full * each) / size)
        spread = np.minimum(full * np.ceil(each / size) + last, held * self.packages)
        here = np.ceil(active / held / size) * held
        return np.asarray(np.where("nodes" in parameters, np.minimum(here, held * self.packages), spread))

    def remark(self, points: Array, parameters: Sequence[str]) -> str:
        """The note on packages that a job holds and no rank is on."""
        if not self.cores or self.law("package") is None or any(map(self.law, OF_NODES)):
            return ""
        idle = self.nodes(points, parameters) * self.packages - self.places("package", points, parameters)
        if not (idle > 0).any():
            return ""
        most = in_full(float(idle.max()))
        return (
            f"Packages without a rank ({most} at most) are held and were not recorded: their idle power is not in the "
            "energy"
        )


def fit_energy(
    experiment: Experiment, platform: Platform | None, placement: str = "compact", ranks_per_node: int | None = None
) -> Energy | None:
    """The laws of the components that the runs metered; None where none did."""
    laws, notes = [], []
    each, profile = 1.0, None
    for component in COMPONENTS:
        found = metered(experiment, component, platform)
        if found is None:
            continue
        law, said = fit_law(found, component)
        laws.append(law)
        profile = Profile.of(found) if profile is None else profile
        notes += [*found.notes, *said]
        each = max(each, float((found.cores / found.places).max()))
    if profile is None:
        return None
    node, packages = (0, 0) if platform is None else (platform.cores, platform.layout.sockets)
    return Energy(
        tuple(laws), node, packages, ranks_per_node or 0, placement == "compact", profile, each, tuple(dict.fromkeys(notes))
    )


def unmetered(series: Series) -> Series:
    """The series without those of the whole program that the laws of power answer."""
    names = {metric_of(kind, component) for kind in (ENERGY, POWER) for component in COMPONENTS}
    keep = [not (kernel == WHOLE and name in names) for kernel, name in series.keys]
    return series.select(np.array(keep, dtype=bool))


@dataclass(frozen=True)
class Parts:
    """Energy of a component at k configurations, in joules and relative standard deviations (k,)."""

    joules: Array
    watts: Array
    of_power: Array  # of the power, at the time it takes
    of_energy: Array


@dataclass(frozen=True)
class _Duration:
    """Seconds of a run (k,): of the whole, those in which cores were awake, and the mean in which they were halted."""

    time: Array
    awake: Array
    halted: Array
    of_time: Array  # standard deviation of the logarithm of the time
    of_awake: Array  # of the awake seconds, at this time
    of_wait: Array  # of the share of the time in which ranks wait for others to start


def parts(energy: Energy, model: Model, points: Array, times: Array | None = None) -> dict[str, Parts]:
    """Joules and watts of each component at `points` (k, m), of runs whose `times` (k,) are known or predicted."""
    known = [name for name in NEEDED if name in model.fitted.metrics]
    said = {name: (each.value[0], _spread(each)) for name, each in model.programs(points, known).items()}
    count = cores(points, model.parameters)
    lasting = _duration(energy, said, count, times)
    every = _ranks(model, points)
    work = count * lasting.awake  # core-seconds
    counts, doubts = {}, {}
    for name in COUNTS:
        if name in said:
            total, doubt = said[name][0] * every, np.hypot(said[name][1], lasting.of_time)
            counts[name], doubts[name] = energy.profile.counted(name, total, doubt, work, count)
    found = {}
    for law in energy.laws:
        lost = {name: np.full(len(points), np.nan) for name in law.terms if name in COUNTS and name not in counts}
        places = energy.places(law.component, points, model.parameters)
        window = lasting.awake + lasting.halted
        each = amounts(law.component, places, window, lasting.awake, {**counts, **lost}, count)
        joules = law.joules(each) * np.exp(law.apart(count))
        total = joules.sum(axis=0)
        share = {name: part for name, part in zip(law.terms, ratio(joules, total, 0.0), strict=True)}
        matrix = law.matrix(each)
        own = ratio(np.einsum("qk,qr,rk->k", matrix, law.covariance, matrix), total**2, 0.0) + law.beyond(count) ** 2
        for name in COUNTS:
            own = own + (share.get(name, 0.0) * doubts.get(name, 0.0)) ** 2
        # Of a second that cores are awake in place of halted; and of a second that all wait longer.
        waiting = law.coefficient(HALTED) * places / LATEST
        own = own + (ratio(joules_awake(law, joules), lasting.awake, 0.0) - waiting) ** 2 * ratio(lasting.of_awake, total) ** 2
        waits = lasting.of_wait * (1 - ratio(waiting * lasting.time, total, 0.0))
        found[law.component] = Parts(
            total, ratio(total, lasting.time), np.sqrt(own + waits**2), np.sqrt(own + lasting.of_time**2)
        )
    return found


def joules_awake(law: PowerLaw, joules: Array) -> Array:
    """Joules (k,) of the terms that grow with the seconds in which cores are awake."""
    return np.asarray(sum(part for name, part in zip(law.terms, joules, strict=True) if name != HALTED))


def _duration(
    energy: Energy, said: Mapping[str, tuple[Array, Array]], count: Array, times: Array | None
) -> _Duration:
    """The time with its parts, predicted, or of runs whose `times` (k,) are known.

    A known time that differs from the predicted one differs by cores awake and by cores halted as these are uncertain.
    """
    missing = np.full(len(count), np.nan)
    time, of_time = said.get("time", (missing, missing))
    halted, of_halted = energy.profile.halted_at(count)
    cycles, clock = said.get("cycles"), said.get("frequency")
    awake = time - LATEST * halted if cycles is None or clock is None else ratio(cycles[0], clock[0])
    awake = np.minimum(np.maximum(awake, 0.0), time)
    of_waiting = of_halted * LATEST * halted
    if times is None:
        share = ratio(of_waiting, time, 0.0)
        return _Duration(time, awake, np.minimum(halted, time - awake), of_time, np.zeros(len(count)), share)
    of_awake = of_time * awake
    weight = ratio(of_awake**2, of_awake**2 + of_waiting**2, 1.0)
    awake = np.clip(awake + weight * (times - awake - LATEST * halted), 0.0, times)
    left = np.sqrt(ratio(of_awake**2 * of_waiting**2, of_awake**2 + of_waiting**2, 0.0))
    return _Duration(times, awake, (times - awake) / LATEST, np.zeros(len(count)), left, np.zeros(len(count)))


def _ranks(model: Model, points: Array) -> Array:
    """Ranks (k,) that values of the program are means over."""
    if "ranks" not in model.parameters:
        return np.ones(len(points))
    return np.asarray(points[:, list(model.parameters).index("ranks")], dtype=np.float64)


def _spread(forecast: Forecast) -> Array:
    """Standard deviation (k,) of the logarithm of a forecast."""
    tail = float(special.ndtri((1 + forecast.level) / 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(forecast.upper[0] / np.maximum(forecast.lower[0], 1e-300)) / (2 * tail))


def forecasts(
    model: Model, points: Array, names: Sequence[str], level: float, times: Array | None = None
) -> dict[str, Forecast]:
    """Forecasts of one row at `points` (k, m) of the metrics `names`, ``energy_package`` and so on."""
    energy = model.energy
    assert energy is not None
    found, answers = parts(energy, model, points, times), {}
    tail = float(special.ndtri((1 + level) / 2))
    for name in names:
        kind, _, component = name.partition("_")
        chosen = found[component] if component else combined(found)
        value, relative = (
            (chosen.joules, chosen.of_energy) if kind == ENERGY else (chosen.watts, chosen.of_power)
        )
        known = np.isfinite(value) & np.isfinite(relative) & (value > 0)
        status = np.where(known, OK, NO_DATA).astype(np.intp)
        reason = np.full(value.shape, "", dtype=object)
        reason[~known] = "the time, or a count that power depends on, is not predicted at this configuration"
        factor = np.exp(tail * relative)
        status, reason = judged_by_width(factor**2, status, reason)
        answers[name] = Forecast(
            value[None], (value / factor)[None], (value * factor)[None], status[None], reason[None],
            np.zeros((1, len(value))), level,
        )  # fmt: skip
    return answers


def combined(found: Mapping[str, Parts]) -> Parts:
    """Energy of all parts: the job's or its nodes' where they were metered, otherwise packages and memory together."""
    chosen = next(([found[name]] for name in reversed(OF_NODES) if name in found), list(found.values()))
    joules, watts = (np.sum([getattr(each, name) for each in chosen], axis=0) for name in ("joules", "watts"))
    # The time is the same in all parts, and counts are shared: their errors add up.
    spreads = (
        ratio(np.sum([each.joules * getattr(each, name) for each in chosen], axis=0), joules)
        for name in ("of_power", "of_energy")
    )
    return Parts(joules, watts, *spreads)


def evidence(energy: Energy, name: str) -> str:
    """What the answer of a metric is made of."""
    component = name.partition("_")[2]
    laws = [energy.law(component)] if component else list(energy.laws)
    return "law of power of " + " and of ".join(
        f"{law.component} ({law.formula()}; {law.rows} windows)" for law in laws if law is not None
    )
