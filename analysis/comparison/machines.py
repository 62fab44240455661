"""The same job on several machines: time, nodes and node-hours, energy and cost where stated, and changed verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from ranksight.analysis.diagnosis.ceilings import Ceilings
from ranksight.analysis.diagnosis.diagnosing import diagnose
from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError, RanksightError
from ranksight.core.records import dataclass
from ranksight.core.units import HOUR, finite, format_si
from ranksight.model.energy.predicted import combined, parts, usable
from ranksight.model.energy.prices import JOULES, Prices
from ranksight.model.fitted_model import Model
from ranksight.model.machine import anchor as other
from ranksight.model.machine.transfer import measured_platform
from ranksight.model.notes import idle_domains
from ranksight.model.uncertainty import forecast
from ranksight.platforms import Platform, load


def on(model: Model, platform: Platform | str, *, instructions: float | None = None) -> Model:
    """The model on another machine, with that machine's ceilings for a diagnosis.

    See :func:`ranksight.model.machine.anchor.on`.
    """
    target = load(platform) if isinstance(platform, str) else platform
    moved = other.on(model, target, instructions=instructions)
    diagnosis = moved.observed.get("diagnosis")
    if moved is model or not isinstance(diagnosis, dict) or "ceilings" not in diagnosis:
        return moved
    ceilings = Ceilings.of(target)
    if moved.equation.resources:
        ceilings = ceilings.at(moved.equation.resources.machine.frequency)
    return replace(moved, observed={**moved.observed, "diagnosis": {**diagnosis, "ceilings": ceilings.to_dict()}})


@dataclass(frozen=True)
class Offer:
    """What a job takes on one machine."""

    machine: str
    title: str
    configuration: Mapping[str, float]
    seconds: float
    lower: float
    upper: float
    level: float  # probability of the interval
    status: str
    reason: str
    nodes: int
    node_hours: float
    energy: float | None  # J, of all nodes at the stated power, or by the law of power of runs on the machine
    energy_interval: tuple[float, float] | None
    energy_of: str  # whether energy is of whole nodes at a stated power, or of what meters recorded
    cost: float | None  # of the machine's hours and of the energy at the stated prices
    currency: str
    changed: tuple[str, ...]  # kernels with another verdict than on the machine of the runs
    assumed: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        ends = [finite(value) for value in (self.seconds, self.lower, self.upper)]
        return {
            "machine": self.machine,
            "title": self.title,
            "configuration": dict(self.configuration),
            "value": ends[0],
            "interval": ends[1:],
            "level": self.level,
            "status": self.status,
            "reason": self.reason,
            "nodes": self.nodes,
            "node_hours": finite(self.node_hours),
            "energy": self.energy,
            "energy_interval": None if self.energy_interval is None else list(self.energy_interval),
            "energy_of": self.energy_of,
            "cost": self.cost,
            "currency": self.currency,
            "changed": list(self.changed),
            "assumed": list(self.assumed),
        }


def offers(
    model: Model,
    machines: Sequence[str],
    points: Array,
    *,
    level: float = 0.9,
    instructions: float | None = None,
    placement: str | None = None,
    ranks_per_node: int | None = None,
    power: Mapping[str, float] | None = None,
    price: Mapping[str, Prices] | None = None,
) -> list[Offer]:
    """What the job at each of `points` (k, m) takes on each machine, the fastest first at each point.

    Raises InputError where a machine is named twice, `power` (W a node) or `price` are of another one, or prices are in
    several currencies, or of a kWh where the energy is not known.

    Parameters
    ----------
    machines : sequence of str
        Names or files of platforms; that of the runs may be among them.
    placement, ranks_per_node : optional
        How ranks are placed on all of them; see :meth:`ranksight.model.fitted_model.Model.placed`.
    """
    platforms = [load(name) for name in machines]
    names = [each.name for each in platforms]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"the machine {min(twice)} is named twice", "name each machine once")
    for what, values in (("power", power or {}), ("price", price or {})):
        if unknown := sorted(set(values) - set(names)):
            raise InputError(
                f"the {what} of {unknown[0]} is given, which is not compared", f"compared: {', '.join(names)}"
            )
    if len(currencies := {each.currency for each in (price or {}).values()}) > 1:
        raise InputError(f"prices in {' and '.join(sorted(currencies))}", "state them in one currency")
    home = measured_platform(model)
    before = _verdicts(model, points, level)
    rows = []
    for platform in platforms:
        moved = on(model, platform, instructions=None if platform == home else instructions)
        moved = moved.placed(placement, ranks_per_node)
        watts, prices = (power or {}).get(platform.name), (price or {}).get(platform.name)
        rows += _offers_of(moved, platform, points, level, before, watts, prices)
    order = {tuple(point): at for at, point in enumerate(points.tolist())}

    def fastest_first(offer: Offer) -> tuple[int, bool, float]:
        return order[tuple(offer.configuration.values())], offer.seconds != offer.seconds, offer.seconds

    return sorted(rows, key=fastest_first)


def _offers_of(
    model: Model,
    platform: Platform,
    points: Array,
    level: float,
    before: Sequence[Mapping[str, str]],
    power: float | None,
    price: Prices | None,
) -> list[Offer]:
    """What the job takes on one machine."""
    total = model.programs(points, ["time"], level).get("time")
    if total is None:
        raise InputError("the model has no metric 'time'", "fit runs that measured times")
    after = _verdicts(model, points, level)
    machine = model.equation.machine
    on_node = node.ranks if (node := model.equation.node) else platform.cores
    nodes_of = np.array([_nodes(dict(zip(model.parameters, x, strict=True)), on_node) for x in points.tolist()])
    energies = _energies(model, points, total, level, nodes_of, power)
    rows = []
    for at, point in enumerate(points.tolist()):
        configuration = dict(zip(model.parameters, point, strict=True))
        nodes = int(nodes_of[at])
        seconds, status = float(total.value[0, at]), int(total.status[0, at])
        hours = nodes * seconds / HOUR
        joules, low, high = (finite(float(value)) for value in energies.values[:, at])
        changed = tuple(
            f"{kernel or 'program'}: {before[at][kernel]} -> {verdict}"
            for kernel, verdict in after[at].items()
            if before[at].get(kernel, verdict) != verdict
        )
        rows.append(
            Offer(
                platform.name,
                platform.title,
                configuration,
                seconds,
                float(total.lower[0, at]),
                float(total.upper[0, at]),
                level,
                "ok" if status == forecast.OK else "insufficient",
                str(total.reason[0, at]),
                nodes,
                hours,
                joules,
                None if low is None or high is None else (low, high),
                energies.of if joules is not None else "",
                None if price is None else _cost(price, platform, configuration, seconds, nodes, joules),
                "" if price is None else price.currency,
                changed,
                (idle_domains(model, points[[at]]), *machine.remarks(points)) if machine else (),
            )
        )
    return rows


@dataclass(frozen=True)
class _Energies:
    """Joules of runs with the ends of their intervals (3, k), NaN where not known, and what they are of."""

    values: Array
    of: str


def _energies(
    model: Model, points: Array, total: forecast.Forecast, level: float, nodes: Array, power: float | None
) -> _Energies:
    """Energy at `points` (k, m): of `nodes` (k,) at the `power` of each where it is stated, or by the law of power."""
    times, metered = np.array([total.value[0], total.lower[0], total.upper[0]]), np.full((3, len(points)), np.nan)
    of = ""
    if (energy := usable(model)) is not None:
        each = combined(parts(energy, model, points, predicted=(total.value[0], total.spread[0])))
        factor = np.exp(float(special.ndtri((1 + level) / 2)) * each.of_energy)
        metered, of = np.array([each.joules, each.joules / factor, each.joules * factor]), energy.covers
    if power is None:
        return _Energies(metered, f"{of}, by the law of power" if of else "")
    instead = f"; meters there say {format_si(metered[0, 0], 'J')} of {of}" if of else ""
    return _Energies(power * nodes * times, f"whole nodes at {power:g} W, as stated{instead}")


def _cost(
    price: Prices,
    platform: Platform,
    configuration: Mapping[str, float],
    seconds: float,
    nodes: int,
    joules: float | None,
) -> float:
    """Money for a job, a node-hour of which is all of its cores' where they are counted by nodes."""
    if price.kwh and joules is None:
        raise InputError(
            f"a price of a kWh on {platform.name} needs its power", f"state it: --power {platform.name}=WATTS"
        )
    cores: float = nodes * platform.cores
    if "nodes" not in configuration:
        cores = configuration.get("ranks", 1.0) * configuration.get("threads", 1.0)
    machine = price.machine(np.array(seconds), np.array(cores), np.array(nodes, dtype=np.float64))
    return float(machine) + (joules or 0.0) / JOULES * price.kwh


def _nodes(configuration: Mapping[str, float], ranks: int) -> int:
    """Nodes that a job takes with so many ranks, of a thread each, on one."""
    if "nodes" in configuration:
        return max(1, ceil(configuration["nodes"]))
    return max(1, ceil(configuration.get("ranks", 1.0) * configuration.get("threads", 1.0) / ranks))


def _verdicts(model: Model, points: Array, level: float) -> list[dict[str, str]]:
    """What bounds each kernel at each of the points; nothing where it cannot be said."""
    try:
        rows = diagnose(model, points, level=level).verdicts()
    except RanksightError:
        return [{} for _ in points]
    keys = np.stack([rows[name].to_numpy(dtype=float) for name in model.parameters], axis=1)
    return [
        dict(zip(at_point["kernel"], at_point["verdict"], strict=True))
        for at_point in (rows[(keys == point).all(axis=1)] for point in points)
    ]
