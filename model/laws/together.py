"""The laws that predict kernels' times, side by side, and their mixture."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Mask
from ranksight.core.log import heard, log
from ranksight.core.units import some_of
from ranksight.model.laws.law import FUNCTION, LAWS, LawTimes
from ranksight.model.laws.stacking import Weights, mix, places
from ranksight.model.laws.view import Asked
from ranksight.model.priors import SHOWN, VAGUE
from ranksight.model.quantity import Quantity
from ranksight.model.resource.equation import LEVELS
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import ARRAYS, rows_of

NO_LAW = (forecast.NO_DATA, forecast.DOMAIN, forecast.UNVARIED)
"""Abstentions of a function of time that no law overrules: nothing was measured, or nothing of that kind varied."""
BUSY = "busy"
"""Part of the time that the interface of a rank's memory domain is at work."""
OCCUPIED = "occupied"
"""Part of the time that a rank's counted bytes take at what is its share of the bandwidth of memory or a cache."""
LOGGED = 20
"""Kernels at most whose weights are logged."""


@dataclass
class Laws:
    """Laws of kernels' times at k configurations."""

    laws: dict[str, LawTimes] = field(default_factory=dict)

    @classmethod
    def of(cls, asked: Asked, pace: float = 0.0) -> Laws:
        """What every law predicts of what is `asked`; `pace`: see :meth:`no_narrower`."""
        result = cls(asked.predicted())
        result.no_narrower(pace)
        result.leave_imputed()
        return result

    def having(self, trait: str) -> tuple[str, ...]:
        """The laws of which a trait (:class:`ranksight.model.laws.law.Law`), such as ``counts``, is true."""
        return tuple(name for name in self.laws if getattr(LAWS[name], trait))

    def leave_imputed(self) -> None:
        """Leave kernels whose times are imputed to the law that does so: nothing else was measured of them."""
        for name, imputing in list(self.laws.items()):
            if imputing.imputed:
                for law, times in self.laws.items():
                    measured = np.array([kernel not in imputing.imputed for kernel in times.kernels], dtype=bool)
                    if law != name:
                        self.laws[law] = replace(times, answers=times.answers & measured[:, None])

    def leave(self, names: tuple[str, ...], where: Mask, but: Collection[str] = ()) -> None:
        """Leave the configurations `where` (k,) to the laws `names`, for the kernels that these predict there, without
        those in `but`."""
        for name in names:
            kernels, answers = self.laws[name].kernels, self.laws[name].answers & where
            for law, times in self.laws.items():
                if law not in names:
                    rows = places(kernels, times.kernels)
                    theirs = (rows >= 0) & np.array([kernel not in but for kernel in times.kernels], dtype=bool)
                    left = answers[rows] & theirs[:, None]
                    self.laws[law] = replace(times, answers=times.answers & ~left)

    def leave_vague(self, weights: Weights) -> None:
        """Leave to laws that count what a kernel does where those that do not only say that they do not know, unless
        these predicted the runs that were times out better: a law that failed there is sure of nothing."""
        counting = self.having("counts")
        for name in [law for law in self.laws if law not in counting]:
            times = self.laws[name]
            vague = times.time.down + times.time.up > VAGUE
            known = np.zeros(vague.shape)
            for law in counting:
                rows = places(self.laws[law].kernels, times.kernels)
                sure = self.laws[law].answers & (self.laws[law].time.down + self.laws[law].time.up <= VAGUE)
                known += weights.of(times.kernels, (law,)) * (sure[rows] & (rows >= 0)[:, None])
            better = known >= np.maximum(weights.of(times.kernels, (name,)), np.finfo(float).tiny)
            self.laws[name] = replace(times, answers=times.answers & ~(vague & better))

    def no_narrower(self, deviation: float) -> None:
        """Widen all laws to the standard deviation (of logarithms) that the pace of the machine was seen to have."""
        for law, times in self.laws.items():
            down, up = (np.maximum(side, deviation) for side in (times.time.down, times.time.up))
            self.laws[law] = replace(times, time=Quantity(times.time.centre, down, up))

    def details(self, kernels: tuple[str, ...]) -> NDArray[np.object_]:
        """What each law rests on, for every kernel, (l, K)."""
        result = np.full((len(self.laws), len(kernels)), "", dtype=object)
        for times, law in zip(result, self.laws.values(), strict=True):
            row = dict(zip(law.kernels, law.method, strict=True))
            times[:] = [row.get(kernel, "") for kernel in kernels]
        return result

    def mixed(
        self, predicted: Forecast, timed: Mapping[str, int], weights: Weights, inside: Weights, near: Mask
    ) -> tuple[Forecast, tuple[str, ...], Array]:
        """The mixture of all laws, a row each of the kernels in `timed`, with the weights `inside` at the
        configurations `near` (K, k) and `weights` elsewhere; the names of the laws, and their weights (l, K, k)."""
        kernels = tuple(timed)
        each = weights.of(kernels, tuple(self.laws))[..., None]
        each = np.where(near[:, None], inside.of(kernels, tuple(self.laws))[..., None], each)
        result, share = mix(kernels, self.laws, np.broadcast_to(each, (*each.shape[:2], near.shape[1])))
        functions = rows_of(predicted, np.array([timed[kernel] for kernel in kernels], dtype=np.intp))
        single = self.weight(FUNCTION, share) > 1 - 1e-9
        keep = single | np.isin(functions.status, NO_LAW) | ~np.isfinite(result.value)
        picked = {name: np.where(keep, getattr(functions, name), getattr(result, name)) for name in ARRAYS}
        self._refuse(kernels, picked["status"], picked["reason"])
        self._log(kernels, share)
        return Forecast(**picked), tuple(self.laws), share

    def _refuse(self, kernels: tuple[str, ...], status: NDArray[np.intp], reason: NDArray[np.object_]) -> None:
        """Write the status and reason (K, k) of times that some law says are imputed, or not determined at all."""
        for law in self.laws.values():
            rows = places(law.kernels, kernels)
            if law.undetermined is not None:
                where = law.undetermined[rows] & (rows >= 0)[:, None]
                status[where], reason[where] = forecast.FEW_POINTS, law.reason
            imputed = np.array([kernel in law.imputed for kernel in kernels], dtype=bool)
            status[imputed], reason[imputed] = forecast.IMPUTED, forecast.REASONS[forecast.IMPUTED]

    def weight(self, name: str, share: Array) -> Array:
        """The weight (K, k) of a law among those of all, `share` (l, K, k); zero where it is not among them."""
        names = list(self.laws)
        return np.asarray(share[names.index(name)]) if name in names else np.zeros(share.shape[1:])

    def _log(self, kernels: tuple[str, ...], share: Array) -> None:
        """Log the weights that are used, of the kernels with the same ones together."""
        if not heard():
            return
        names, same = tuple(self.laws), dict[str, list[str]]()
        for at, kernel in enumerate(kernels[:LOGGED]):
            texts = dict.fromkeys(weighed(names, column) for column in np.unique(share[:, at].T.round(2), axis=0))
            same.setdefault("; elsewhere ".join(filter(None, texts)), []).append(kernel)
        for text, kernels_of in same.items():
            log("weights of laws, time of %s: %s", some_of(kernels_of), text or "no law")
        if len(kernels) > LOGGED:
            log("weights of laws, time of %d more kernels: see 'evidence' of --format csv", len(kernels) - LOGGED)

    def split(self, kernels: tuple[str, ...], value: Array, names: tuple[str, ...], share: Array) -> dict[str, Array]:
        """Seconds (K, k) of each part of `value` (K, k): those of the laws that say what their times are made of, by
        their weights; without one, all of it is direct."""
        result: dict[str, Array] = {"direct": np.zeros(value.shape)}
        rest = np.ones(value.shape)
        dividing = self.having("divides")
        for law in sorted((name for name in names if self.laws[name].parts), key=lambda name: name in dividing):
            rows = places(self.laws[law].kernels, kernels)
            part_of_law = rest if law in dividing else share[names.index(law)]
            weight = np.where((rows >= 0)[:, None], part_of_law, 0.0)
            rest = rest - weight
            for name, seconds in self._by_equation(self.laws[law]).items():
                part = np.where(weight > 0, weight * np.nan_to_num(seconds[rows]), 0.0)
                result[name] = result.get(name, 0.0) + part
        total = np.sum(list(result.values()), axis=0)
        known = total > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            result = {name: np.where(known, part * value / total, 0.0) for name, part in result.items()}
        result["direct"] = np.where(known, result["direct"], value)
        return result

    def taken(self, kernels: tuple[str, ...], names: tuple[str, ...], share: Array) -> dict[str, Array]:
        """What the law of largest weight takes each kernel to do, (K, k) each; NaN where it does not say."""
        first, result = share.argmax(axis=0), dict[str, Array]()
        for law, times in self.laws.items():
            rows = places(times.kernels, kernels)
            leads = (first == names.index(law)) & (rows >= 0)[:, None]
            for name, values in times.quantities.items():
                result[name] = np.where(leads, values[rows], result.get(name, np.nan))
        return result

    def _by_equation(self, times: LawTimes) -> Mapping[str, Array]:
        """Parts (K, k) of a law of shared bandwidth with what a core alone takes divided as the equation divides it."""
        parts, moved = times.parts, [name for name in LEVELS if name in times.parts]
        if "direct" not in parts or "execution" not in parts or len(moved) != 1:
            return parts
        result = {name: np.zeros_like(parts["execution"]) for name in LEVELS}
        result |= {name: part.copy() for name, part in parts.items()}
        core = parts["execution"] + parts[moved[0]]
        for law in self.laws.values():
            if not {"execution", *LEVELS} <= law.parts.keys():
                continue
            for at, kernel in enumerate(times.kernels):
                if kernel in law.kernels:
                    row = law.kernels.index(kernel)
                    divided = {name: law.parts[name][row] for name in ("execution", *LEVELS)}
                    total = np.sum(list(divided.values()), axis=0)
                    known = np.isfinite(total) & (total > 0)
                    for name, part in divided.items():
                        scaled = core[at] * part / np.where(known, total, 1.0)
                        result[name][at] = np.where(known, scaled, result[name][at])
        return result


def weighed(names: tuple[str, ...], share: Array) -> str:
    """Laws with their weights (l,), the heaviest first: ``counted equation 0.8, shared bandwidth 0.2``."""
    order = np.argsort(-share, kind="stable")
    return ", ".join(f"{names[at]} {share[at]:.2g}" for at in order if share[at] >= SHOWN)


def methods(names: tuple[str, ...], share: Array, details: NDArray[np.object_]) -> NDArray[np.object_]:
    """The laws, their weights and what the first rests on (K, k): ``counted equation 0.8, shared bandwidth 0.2: stalls
    counted``; `details` are those of every law, (l, K)."""
    result = np.full(share.shape[1:], "", dtype=object)
    patterns, inverse = np.unique(np.round(share.reshape(len(names), -1), 2), axis=1, return_inverse=True)
    texts = [weighed(names, column) for column in patterns.T]
    result.reshape(-1)[:] = np.array(texts, dtype=object)[np.asarray(inverse).reshape(-1)]
    first = np.take_along_axis(details[:, :, None], share.argmax(axis=0)[None], axis=0)[0]
    return np.asarray(np.where(first != "", result + ": " + first, result), dtype=object)
