"""Time, energy, energy-delay product and money over rank counts, and the best count by each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Mask, ratio
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model.energy.predicted import combined, parts, usable
from ranksight.model.energy.prices import JOULES, Prices
from ranksight.model.fitted_model import Model
from ranksight.model.series.computation import cores
from ranksight.model.uncertainty.forecast import WIDEST

TIME, ENERGY, DELAY, COST = "time", "energy", "energy_delay", "cost"


@dataclass(frozen=True)
class Spent:
    """One quantity over k configurations; NaN where it is not predicted."""

    value: Array
    lower: Array
    upper: Array
    spread: Array  # standard deviation of the logarithm

    @classmethod
    def of(cls, value: Array, spread: Array, level: float) -> Spent:
        """A quantity with the standard deviation of its logarithm; what spans too much is not predicted."""
        factor = np.exp(float(special.ndtri((1 + level) / 2)) * spread)
        value = np.where(factor**2 <= WIDEST, value, np.nan)
        return cls(value, value / factor, value * factor, spread)

    def same(self, level: float) -> Mask:
        """Where (k,) the value is the least as far as is known: not above it by more than the difference of the two is
        uncertain by, as of two that err apart. Nowhere where nothing is predicted."""
        if not np.isfinite(self.value).any():
            return np.zeros(len(self.value), dtype=np.bool_)
        at = int(np.nanargmin(self.value))
        half_width = float(special.ndtri((1 + level) / 2)) * np.hypot(self.spread, self.spread[at])
        same = np.log(self.value / self.value[at]) <= half_width
        same[at] = True
        return np.asarray(same)


@dataclass(frozen=True)
class Spending:
    """Time, energy and money of a run of each of k rank counts."""

    along: str  # the parameter: ranks, or nodes
    counts: Array  # (k,)
    held: Mapping[str, float]  # the other parameters
    quantities: Mapping[str, Spent]
    currency: str
    level: float
    notes: tuple[str, ...] = ()

    def best(self) -> dict[str, int]:
        """Position of the least value of each quantity that is predicted anywhere."""
        return {
            name: int(np.nanargmin(each.value))
            for name, each in self.quantities.items()
            if np.isfinite(each.value).any()
        }

    def same(self) -> dict[str, Mask]:
        """Of each quantity the counts (k,) at which it is the least as far as is known."""
        return {name: self.quantities[name].same(self.level) for name in self.best()}

    def losses(self) -> dict[str, dict[str, float]]:
        """For the best count by each quantity, how much more it takes of every other than that one's best, in parts."""
        best = self.best()
        return {
            by: {of: float(self.quantities[of].value[at] / self.quantities[of].value[best[of]] - 1) for of in best}
            for by, at in best.items()
        }


def spending(model: Model, targets: Array, prices: Prices | None, level: float) -> Spending | None:
    """Time, energy and money of a run at the rank counts of `targets` (k, m) and at those measured, or None.

    Without meters in the runs energy is not known: then money for machine time alone, and nothing without a price.
    Raises InputError where prices need what the model does not know.
    """
    along = next((name for name in ("ranks", "nodes") if name in model.parameters), None)
    energy = usable(model)
    if along is None or "time" not in model.fitted.metrics or (energy is None and prices is None):
        return None
    if prices is not None and prices.kwh and energy is None:
        raise InputError(
            "a price of a kWh needs energy, which the runs did not meter",
            "leave it out, or measure energy: ranksight doctor says what can be read",
        )
    at = list(model.parameters).index(along)
    fixed = np.delete(np.arange(len(model.parameters)), at)
    same = (model.training[:, fixed] == targets[0, fixed]).all(axis=1)
    counts = np.unique(np.concatenate([targets[:, at], model.training[same, at]]))
    points = np.repeat(targets[:1], len(counts), axis=0)
    points[:, at] = counts
    times = model.programs(points, ["time"], level)["time"]
    of_time = times.spread[0]
    time = np.where(times.status[0] == 0, times.value[0], np.nan)
    spent = {TIME: Spent(time, times.lower[0], times.upper[0], of_time)}
    joules, of_energy = np.zeros(len(counts)), np.zeros(len(counts))
    notes: tuple[str, ...] = ()
    if energy is not None:
        each = combined(parts(energy, model, points, predicted=(times.value[0], of_time)))
        joules, of_energy = np.where(np.isfinite(time), each.joules, np.nan), each.of_energy
        spent[ENERGY] = Spent.of(joules, of_energy, level)
        # Var ln(E T) + Var ln(E / T) = 2 Var ln E + 2 Var ln T, whatever of the energy grows with the time.
        of_delay = np.sqrt(np.maximum(2 * of_energy**2 + 2 * of_time**2 - each.of_power**2, of_energy**2))
        spent[DELAY] = Spent.of(joules * time, of_delay, level)
        notes = tuple(filter(None, (*energy.notes, energy.remark(points, model.parameters))))
    if prices is not None:
        machine, electricity = _bill(model, points, time, joules, prices)
        total = machine + electricity
        spread = ratio(machine * of_time + electricity * of_energy, total, np.nan)
        spent[COST] = Spent.of(total, spread, level)
        notes = (*notes, prices.remark) if prices.remark else notes
    others = {name: float(targets[0, k]) for k, name in enumerate(model.parameters) if k != at}
    return Spending(along, counts, others, spent, "" if prices is None else prices.currency, level, notes)


def charged(model: Model, points: Array, seconds: Array, spread: Array, prices: Prices | None) -> dict[str, Array]:
    """Energy and money (k,) of runs of so many `seconds` (k,) at `points` (k, m), by their units, where known.

    `spread` (k,): standard deviation of the logarithm of the seconds.
    """
    charges: dict[str, Array] = {}
    joules = np.zeros(len(points))
    if (energy := usable(model)) is not None:
        joules = combined(parts(energy, model, points, predicted=(seconds, spread))).joules
        charges["kWh"] = joules / JOULES
    if prices is not None:
        machine, electricity = _bill(model, points, seconds, joules, prices)
        charges[prices.currency] = machine + electricity
    return charges


def _bill(model: Model, points: Array, seconds: Array, joules: Array, prices: Prices) -> tuple[Array, Array]:
    """Money (k,) for the machine and for electricity of runs at `points` (k, m)."""
    machine = prices.machine(seconds, cores(points, model.parameters), _nodes(model, points))
    return machine, joules / JOULES * prices.kwh


def _nodes(model: Model, points: Array) -> Array:
    """Nodes (k,) of runs; NaN where nothing says how many ranks a node has."""
    if "nodes" in model.parameters:
        return np.asarray(points[:, list(model.parameters).index("nodes")])
    if not model.equation.machine and (model.energy.cores or model.energy.each):
        return model.energy.nodes(points, model.parameters)
    node = model.equation.node
    if not node:
        return np.full(len(points), np.nan)
    return np.asarray(np.ceil(cores(points, model.parameters) / min(node.ranks, node.cores)))
