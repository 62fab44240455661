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
from ranksight.model.energy.metered import COMPONENTS, COUNTS, OF_NODES, metered, metric_of
from ranksight.model.plaindata import Stored
from ranksight.model.series.computation import cores
from ranksight.model.uncertainty.forecast import NO_DATA, OK, Forecast, judged_by_width

if TYPE_CHECKING:
    from ranksight.core.experiment import Experiment
    from ranksight.model.fitted_model import Model
    from ranksight.model.series.reducing import Series
    from ranksight.platforms import Platform

ENERGY, POWER = "energy", "power"
NEEDED = ("time", "time_halted", "frequency", *COUNTS)
"""Metrics of the program that energy follows from, as far as they are modelled."""


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
    each = 1.0
    for component in COMPONENTS:
        found = metered(experiment, component, platform)
        if found is None:
            continue
        law, said = fit_law(found, component)
        laws.append(law)
        notes += [*found.notes, *said]
        each = max(each, float((found.cores / found.places).max()))
    if not laws:
        return None
    node, packages = (0, 0) if platform is None else (platform.cores, platform.layout.sockets)
    return Energy(
        tuple(laws), node, packages, ranks_per_node or 0, placement == "compact", each, tuple(dict.fromkeys(notes))
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


def parts(energy: Energy, model: Model, points: Array) -> dict[str, Parts]:
    """Joules and watts of each component at `points` (k, m)."""
    known = [name for name in NEEDED if name in model.fitted.metrics]
    said = {name: (each.value[0], _spread(each)) for name, each in model.programs(points, known).items()}
    count = cores(points, model.parameters)
    ranks = _ranks(model, points)
    time, of_time = said.get("time", (np.full(len(points), np.nan), np.full(len(points), np.nan)))
    cycles, clock = said.get("cycles"), said.get("frequency")
    halted = said["time_halted"][0] if "time_halted" in said else np.zeros(len(points))
    awake = np.maximum(time - halted, 0.0) if cycles is None or clock is None else ratio(cycles[0], clock[0])
    awake = np.minimum(awake, time)
    window = np.minimum(awake + halted, time) if "time_halted" in said else time
    totals = {name: said[name][0] * ranks for name in COUNTS if name in said}
    found = {}
    for law in energy.laws:
        lost = [name for name in law.terms if name in COUNTS and name not in totals]
        known_counts = {**totals, **{name: np.full(len(points), np.nan) for name in lost}}
        places = energy.places(law.component, points, model.parameters)
        each = amounts(law.component, places, window, awake, known_counts, count)
        joules = law.joules(each)
        total = joules.sum(axis=0)
        share = ratio(joules, total, 0.0)
        at = {name: place for place, name in enumerate(law.terms)}
        # What passes with the time errs with it; instructions and bytes on their own.
        timed = sum((share[at[name]] for name in (HALTED, AWAKE, CORES, "cycles") if name in at), np.zeros(len(points)))
        apart = np.zeros(len(points))
        free = np.zeros(len(points))
        for name in ("instructions", "bytes_mem"):
            if name in at:
                free += share[at[name]]
                apart += (share[at[name]] * said[name][1]) ** 2 if name in said else 0.0
        matrix = law.matrix(each)
        own = ratio(np.einsum("qk,qr,rk->k", matrix, law.covariance, matrix), total**2, 0.0)
        own = own + law.beyond(count) ** 2
        found[law.component] = Parts(
            total,
            ratio(total, time),
            np.sqrt(own + apart + (free * of_time) ** 2),
            np.sqrt(own + apart + (timed * of_time) ** 2),
        )
    return found


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


def forecasts(model: Model, points: Array, names: Sequence[str], level: float) -> dict[str, Forecast]:
    """Forecasts of one row at `points` (k, m) of the metrics `names`, ``energy_package`` and so on."""
    energy = model.energy
    assert energy is not None
    found, answers = parts(energy, model, points), {}
    tail = float(special.ndtri((1 + level) / 2))
    for name in names:
        kind, _, component = name.partition("_")
        chosen = [found[component]] if component else _together(found)
        values = np.array([each.joules if kind == ENERGY else each.watts for each in chosen])
        spread = np.array([each.of_energy if kind == ENERGY else each.of_power for each in chosen])
        value = values.sum(axis=0)
        # The time is the same in all parts: their errors add up.
        relative = ratio((values * spread).sum(axis=0), value, np.nan)
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


def _together(found: Mapping[str, Parts]) -> list[Parts]:
    """The parts that make the energy: the job or its nodes where they were metered, otherwise packages and memory."""
    return next(([found[name]] for name in reversed(OF_NODES) if name in found), list(found.values()))


def evidence(energy: Energy, name: str) -> str:
    """What the answer of a metric is made of."""
    component = name.partition("_")[2]
    laws = [energy.law(component)] if component else list(energy.laws)
    return "law of power of " + " and of ".join(
        f"{law.component} ({law.formula()}; {law.rows} windows)" for law in laws if law is not None
    )
