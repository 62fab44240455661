"""The laws that predict kernels' times, side by side, and their mixture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.application.exchange import Exchange
from ranksight.model.kernel_time.counted import Counted, Times
from ranksight.model.kernel_time.stacking import (
    BANDWIDTH,
    CACHE,
    CONSTANT_CPI,
    COST,
    COUNTED,
    FUNCTION,
    MESSAGES,
    Law,
    Weights,
    mix,
    places,
)
from ranksight.model.priors import SHOWN, STALLS_UNCOUNTED, VAGUE
from ranksight.model.resource.equation import LEVELS, Parts, Resources
from ranksight.model.resource.spread import Spread
from ranksight.model.sharing.demand import loads_of
from ranksight.model.sharing.shared import READ, Shared, Sharing
from ranksight.model.structure.functions import rows_of
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

NO_LAW = (forecast.NO_DATA, forecast.DOMAIN, forecast.UNVARIED)
"""Abstentions of a function of time that no law overrules: nothing was measured, or nothing of that kind varied."""
COUNTING = (COUNTED, BANDWIDTH, CACHE, CONSTANT_CPI)
"""Laws that count what a kernel does."""
UNDETERMINED = (
    "times alone inside one memory domain that do not fall as 1 / ranks do not show what further domains bring: "
    "measure fewer ranks as well, or count instructions"
)
BUSY = "busy"
"""Part of the time that the interface of a rank's memory domain is at work."""


@dataclass
class Laws:
    """Laws of kernels' times at k configurations."""

    level: float
    laws: dict[str, Law] = field(default_factory=dict)
    parts: dict[str, tuple[tuple[str, ...], Mapping[str, Array]]] = field(default_factory=dict)
    """mapping of str to (kernels, mapping of part to (K, k)): seconds that a law's times are made of, of the laws that
    say so."""
    quantities: dict[str, tuple[tuple[str, ...], Mapping[str, Array]]] = field(default_factory=dict)
    """mapping of str to (kernels, mapping of quantity to (K, k)): what a law takes a kernel to do, of the laws that say
    so: metrics, and :data:`BUSY`."""
    given_parts: Parts | None = None  # of the equation of kernels whose stalls were not counted
    given_times: Times | None = None  # of the counted equation
    refused: dict[str, tuple[Mask, Index, NDArray[Any]]] = field(default_factory=dict)
    """mapping of kernel to (k,) each: where an answer is refused whatever the other laws say, with its status and
    reason."""

    def add_function(self, said: Forecast, timed: Mapping[str, int]) -> None:
        """Each kernel's own function of time."""
        kernels = tuple(timed)
        own = rows_of(said, np.array([timed[kernel] for kernel in kernels], dtype=np.intp))
        spread = Spread.of(own)
        answers = np.isfinite(spread.centre) & ~np.isin(own.status, forecast.INSUFFICIENT)
        self.laws[FUNCTION] = Law(kernels, spread, answers, ("",) * len(kernels))

    def add_counted(self, counted: Counted, times: Times) -> None:
        """The counted equation, and the cost of a unit of work."""
        self.given_times = times
        names = ("",) * len(counted.kernels)
        self.laws[COST] = Law(counted.kernels, times.total, np.isfinite(times.total.centre), names)
        split = counted.split[:, None] & np.isfinite(times.time.centre)
        if split.any():
            self.laws[COUNTED] = Law(counted.kernels, times.time, split, ("stalls counted",) * len(names))
            held = {"execution": times.execution, "contention": times.contention}
            levels = {name: times.levels[..., at] for at, name in enumerate(LEVELS)}
            self.parts[COUNTED] = counted.kernels, {**held, **levels}
            loads = {name: times.loads[..., at] for at, name in enumerate(LEVELS)}
            self.quantities[COUNTED] = counted.kernels, {**loads, BUSY: times.busy}

    def add_resources(self, resources: Resources, parts: Parts, regime: Array | None = None) -> None:
        """The equation of kernels whose stalls were not counted.

        Which part of a time is stalls rests on one blocking factor for all runs; `regime` (k,) is the standard
        deviation of the logarithm by which that may change at each configuration.
        """
        spread = parts.time
        answers = parts.answers & np.isfinite(spread.centre)
        if regime is not None:
            waits = np.nan_to_num(parts.memory.sum(axis=2) / np.exp(spread.centre))
            spread = spread.wider(np.clip(waits, STALLS_UNCOUNTED, 1.0) * regime)
        self.laws[CONSTANT_CPI] = Law(resources.kernels, spread, answers, resources.evidence)
        levels = {name: parts.memory[..., at] for at, name in enumerate(LEVELS)}
        self.parts[CONSTANT_CPI] = resources.kernels, {"execution": parts.execution, **levels}

    def add_exchange(self, exchange: Exchange, points: Array) -> None:
        """Times of messages that no network describes."""
        times = exchange.at(points)
        answers = np.isfinite(times.centre) & exchange.applies(points)
        self.laws[MESSAGES] = Law(exchange.kernels, times, answers, ("",) * len(exchange.kernels))

    def add_shared(self, name: str, law: Sharing, shared: Shared, answers: Mask) -> None:
        """Bandwidth of memory, or of a cache, that ranks share."""
        self.laws[name] = Law(law.kernels, shared.time, answers, law.evidence)
        shape = shared.answers.shape[1:]
        for at in np.flatnonzero(shared.undetermined.any(axis=1)).tolist():
            status, reason = np.full(shape, forecast.FEW_POINTS), np.full(shape, UNDETERMINED, dtype=object)
            self.refused[law.kernels[at]] = shared.undetermined[at], status, reason
        held = {
            "execution": shared.execution,
            loads_of(law.resource): shared.transfer,
            "contention": shared.contention,
            "direct": shared.other,
        }
        self.parts[name] = law.kernels, held
        if name == BANDWIDTH:
            self.quantities[name] = law.kernels, {READ: shared.reads, BUSY: shared.busy}

    def only(self, name: str, kernels: set[str], status: int) -> None:
        """Leave some kernels to one law, with a `status` of their answers: nothing else was measured of them."""
        for law, held in self.laws.items():
            mine = np.array([kernel in kernels for kernel in held.kernels], dtype=bool)
            if law != name and mine.any():
                self.laws[law] = replace(held, answers=held.answers & ~mine[:, None])
        shape = self.laws[name].answers.shape[1:]
        refused = np.ones(shape, bool), np.full(shape, status), np.full(shape, forecast.REASONS[status], dtype=object)
        self.refused |= dict.fromkeys(kernels, refused)

    def leave(self, names: tuple[str, ...], where: Mask) -> None:
        """Leave the configurations `where` (k,) to the laws `names`, for the kernels that these predict there."""
        for name in names:
            kernels, answers = self.laws[name].kernels, self.laws[name].answers & where
            for law, held in self.laws.items():
                if law not in names:
                    mine = places(kernels, held.kernels)
                    gone = answers[mine] & (mine >= 0)[:, None]
                    self.laws[law] = replace(held, answers=held.answers & ~gone)

    def leave_vague(self, weights: Weights) -> None:
        """Leave to laws that count what a kernel does where those that do not only say that they do not know, unless
        these predicted the runs that were held out better: a law that failed there is sure of nothing."""
        counting = [name for name in COUNTING if name in self.laws]
        for name in (FUNCTION, COST):
            held = self.laws.get(name)
            if held is None:
                continue
            vague = held.spread.down + held.spread.up > VAGUE
            known = np.zeros(vague.shape)
            for law in counting:
                mine = places(self.laws[law].kernels, held.kernels)
                sure = self.laws[law].answers & (self.laws[law].spread.down + self.laws[law].spread.up <= VAGUE)
                known += weights.of(held.kernels, (law,)) * (sure[mine] & (mine >= 0)[:, None])
            better = known >= np.maximum(weights.of(held.kernels, (name,)), np.finfo(float).tiny)
            self.laws[name] = replace(held, answers=held.answers & ~(vague & better))

    def no_narrower(self, deviation: float) -> None:
        """Widen the laws that know nothing of an unsteady machine to the standard deviation (of logarithms) that its
        pace was seen to have."""
        for law, held in self.laws.items():
            if law != CONSTANT_CPI:
                down, up = (np.maximum(side, deviation) for side in (held.spread.down, held.spread.up))
                self.laws[law] = replace(held, spread=Spread(held.spread.centre, down, up))

    def details(self, kernels: tuple[str, ...]) -> NDArray[np.object_]:
        """What each law rests on, for every kernel, (l, K)."""
        found = np.full((len(self.laws), len(kernels)), "", dtype=object)
        for held, law in zip(found, self.laws.values(), strict=True):
            row = dict(zip(law.kernels, law.method, strict=True))
            held[:] = [row.get(kernel, "") for kernel in kernels]
        return found

    def mixed(
        self, said: Forecast, timed: Mapping[str, int], weights: Weights, inside: Weights | None, near: Mask
    ) -> tuple[Forecast, tuple[str, ...], Array]:
        """The mixture of all laws, a row each of the kernels in `timed`, with the weights `inside` at the
        configurations `near` (K, k) and `weights` elsewhere; the names of the laws, and their weights (l, K, k)."""
        kernels = tuple(timed)
        each = weights.of(kernels, tuple(self.laws))[..., None]
        if inside is not None:
            each = np.where(near[:, None], inside.of(kernels, tuple(self.laws))[..., None], each)
        found, share = mix(kernels, self.laws, np.broadcast_to(each, (*each.shape[:2], near.shape[1])), self.level)
        own = rows_of(said, np.array([timed[kernel] for kernel in kernels], dtype=np.intp))
        alone = share[list(self.laws).index(FUNCTION)] > 1 - 1e-9
        keep = alone | np.isin(own.status, NO_LAW) | ~np.isfinite(found.value)
        picked = {
            name: np.where(keep, getattr(own, name), getattr(found, name))
            for name in ("value", "lower", "upper", "status", "reason", "form")
        }
        for at, kernel in enumerate(kernels):
            if kernel in self.refused:
                where, status, reason = self.refused[kernel]
                picked["status"][at, where], picked["reason"][at, where] = status[where], reason[where]
        return Forecast(**picked, level=said.level), tuple(self.laws), share

    def split(self, kernels: tuple[str, ...], value: Array, names: tuple[str, ...], share: Array) -> dict[str, Array]:
        """Seconds (K, k) of each part of `value` (K, k): those of the laws that say what their times are made of, by
        their weights; without one, all of it is direct."""
        found: dict[str, Array] = {"direct": np.zeros(value.shape)}
        rest = np.ones(value.shape)
        for law, (theirs, parts) in sorted(self.parts.items(), key=lambda part: part[0] == CONSTANT_CPI):
            mine = places(theirs, kernels)
            # The equation of constant CPI divides the times of laws that do not say what theirs are made of, too.
            own = rest if law == CONSTANT_CPI else share[names.index(law)]
            weight = np.where((mine >= 0)[:, None], own, 0.0)
            rest = rest - weight
            for name, seconds in self._by_equation(theirs, parts).items():
                part = np.where(weight > 0, weight * np.nan_to_num(seconds[mine]), 0.0)
                found[name] = found.get(name, 0.0) + part
        total = np.sum(list(found.values()), axis=0)
        known = total > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            found = {name: np.where(known, part * value / total, 0.0) for name, part in found.items()}
        found["direct"] = np.where(known, found["direct"], value)
        return found

    def taken(self, kernels: tuple[str, ...], names: tuple[str, ...], share: Array) -> dict[str, Array]:
        """What the law of largest weight takes each kernel to do, (K, k) each; NaN where it does not say."""
        first, found = share.argmax(axis=0), dict[str, Array]()
        for law, (theirs, quantities) in self.quantities.items():
            mine = places(theirs, kernels)
            leads = (first == names.index(law)) & (mine >= 0)[:, None]
            for name, values in quantities.items():
                found[name] = np.where(leads, values[mine], found.get(name, np.nan))
        return found

    def _by_equation(self, kernels: tuple[str, ...], parts: Mapping[str, Array]) -> Mapping[str, Array]:
        """Parts (K, k) of a law of shared bandwidth with what a core alone takes divided as the equation divides it."""
        if "direct" not in parts:
            return parts
        (moved,) = (name for name in parts if name in LEVELS)
        found = {**parts, **{name: np.zeros_like(parts["execution"]) for name in LEVELS if name != moved}}
        core = parts["execution"] + parts[moved]
        for law in (CONSTANT_CPI, COUNTED):
            theirs, own = self.parts.get(law, ((), {}))
            for at, kernel in enumerate(kernels):
                if kernel in theirs:
                    row = theirs.index(kernel)
                    held = {name: own[name][row] for name in ("execution", *LEVELS)}
                    total = np.sum(list(held.values()), axis=0)
                    known = np.isfinite(total) & (total > 0)
                    for name, part in held.items():
                        scaled = core[at] * part / np.where(known, total, 1.0)
                        found[name][at] = np.where(known, scaled, found[name][at])
        return found


def methods(names: tuple[str, ...], share: Array, details: NDArray[np.object_]) -> NDArray[np.object_]:
    """The laws, their weights and what the first rests on (K, k): ``counted equation 0.8, shared bandwidth 0.2: stalls
    counted``; `details` are those of every law, (l, K)."""
    found = np.full(share.shape[1:], "", dtype=object)
    patterns, inverse = np.unique(np.round(share.reshape(len(names), -1), 2), axis=1, return_inverse=True)
    texts = []
    for column in patterns.T:
        order = np.argsort(-column, kind="stable")
        texts.append(", ".join(f"{names[at]} {column[at]:.2g}" for at in order if column[at] >= SHOWN))
    found.reshape(-1)[:] = np.array(texts, dtype=object)[np.asarray(inverse).reshape(-1)]
    first = np.take_along_axis(details[:, :, None], share.argmax(axis=0)[None], axis=0)[0]
    return np.asarray(np.where(first != "", found + ": " + first, found), dtype=object)
