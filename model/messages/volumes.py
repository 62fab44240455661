"""Counts and sizes of messages as functions of the parameters: by an exact law of the ranks, or as the search finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.patterns.steps import Step
from ranksight.core.errors import InputError
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.messages.volume_laws import LAWS, find_laws, weight
from ranksight.model.plaindata import reading
from ranksight.model.series.reducing import Series
from ranksight.model.structure.functions import ARRAYS, choose
from ranksight.model.structure.levels import Levels, fit_levels
from ranksight.model.structure.ranklaws import RankLaws, fit_rank_laws
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

Array = NDArray[np.float64]
Functions = Fitted | Levels


@dataclass(frozen=True)
class Volumes:
    """Functions of s volumes.

    Attributes
    ----------
    parameters, others : tuple of str
        Of the model, and those other than ``ranks``.
    laws : tuple of str
        Of the s volumes, of :data:`ranksight.model.messages.volume_laws.LAWS`; empty where a function of all parameters
        stands.
    factors : Fitted, Levels or array
        Factor of each lawful volume as a function of the others, in order; plain values where no other varied.
    functions : Fitted, Levels or None
        Of the volumes without a law, in order.
    rivals : tuple of tuple of str
        Of each volume, laws that the runs followed as well: what they say elsewhere is within its interval.
    most : int
        Largest number of ranks measured, where a law and its rivals say the same.
    sums : RankLaws or None
        Of the volumes without a law that are sums of laws, each named by its number.
    """

    parameters: tuple[str, ...]
    others: tuple[str, ...]
    laws: tuple[str, ...]
    factors: Functions | Array
    functions: Functions | None
    rivals: tuple[tuple[str, ...], ...] = ()
    most: int = 1
    sums: RankLaws | None = None

    def __post_init__(self) -> None:
        lawful, free = sum(bool(law) for law in self.laws), sum(not law for law in self.laws)
        held = len(self.factors) if isinstance(self.factors, np.ndarray) else len(self.factors.kernels)
        if held != lawful or (0 if self.functions is None else len(self.functions.kernels)) != free:
            raise InputError("'volumes' does not fit together", "fit the model again")
        if {*self.laws, *(law for each in self.rivals for law in each)} - {*LAWS, ""}:
            raise InputError("'volumes' names an unknown law", "fit the model again")
        if self.sums is not None and not set(self.sums.kernels) <= {
            str(i) for i, law in enumerate(self.laws) if not law
        }:
            raise InputError("'volumes' does not fit together", "fit the model again")

    def predict(self, points: Array, level: float = 0.9) -> Forecast:
        """Forecast the s volumes at `points` (k, m)."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        s, k = len(self.laws), len(points)
        empty = np.zeros((s, k))
        answer = Forecast(
            empty, empty, empty, np.full((s, k), forecast.OK), np.full((s, k), "", dtype=object), empty, empty, level
        )
        lawful = np.array([i for i, law in enumerate(self.laws) if law], dtype=np.intp)
        free = np.array([i for i, law in enumerate(self.laws) if not law], dtype=np.intp)
        everywhere = np.ones((1, k), dtype=bool)
        if self.functions is not None:
            answer = choose(answer, self.functions.predict(points, level), free, everywhere)
        if self.sums is not None:
            said = self.sums.predict(points, level)
            rows = np.array([int(number) for number in self.sums.kernels], dtype=np.intp)
            answer = choose(answer, said, rows, said.status != forecast.DOMAIN)
        if len(lawful):
            ranks = points[:, self.parameters.index("ranks")]
            scale = np.array([[weight(self.laws[i], int(p)) for p in ranks] for i in lawful])
            answer = choose(
                answer, self._doubted(self._lawful(points, scale, level), lawful, ranks), lawful, everywhere
            )
        return answer

    def _lawful(self, points: Array, scale: Array, level: float) -> Forecast:
        if isinstance(self.factors, np.ndarray):
            value = self.factors[:, None] * scale
            fine, none = np.full(value.shape, forecast.OK), np.full(value.shape, "", dtype=object)
            sure = np.zeros(value.shape)
            return Forecast(value, value, value, fine, none, sure, sure + 1, level)
        said = self.factors.predict(points[:, [self.parameters.index(name) for name in self.others]], level)
        arrays = {name: getattr(said, name) for name in ARRAYS}
        # No volume at any configuration is none at any other, whatever the search says of a series of zeros.
        zero = (said.value == 0) & (said.upper == 0)
        arrays["status"] = np.where(zero, forecast.OK, said.status)
        arrays |= {name: arrays[name] * scale for name in ("value", "lower", "upper")}
        return Forecast(level=level, **arrays)

    def _doubted(self, said: Forecast, lawful: NDArray[np.intp], ranks: Array) -> Forecast:
        """The forecast with intervals as wide as the difference of laws that the runs cannot distinguish."""
        rivals = [self.rivals[i] if self.rivals else () for i in lawful]
        if not any(rivals):
            return said
        less, more = np.ones((2, *said.value.shape))
        for row, (i, others) in enumerate(zip(lawful.tolist(), rivals, strict=True)):
            own = self.laws[i]
            for other in others:
                at_most = weight(own, self.most) / weight(other, self.most)
                ratio = np.array([weight(other, int(p)) / weight(own, int(p)) * at_most for p in ranks])
                less[row], more[row] = np.minimum(less[row], ratio), np.maximum(more[row], ratio)
        factor = more / less
        wide = (factor > forecast.WIDEST) & (said.status == forecast.OK)
        reason = said.reason.astype(object)
        reason[wide] = [f"laws that fit the runs equally well differ by a factor of {x:.3g}" for x in factor[wide]]
        status = np.where(wide, forecast.WIDE, said.status)
        return replace(said, lower=said.lower * less, upper=said.upper * more, status=status, reason=reason)

    def text(self, i: int) -> str:
        """The function of volume `i`, as people read it."""
        if self.sums is not None and str(i) in self.sums.kernels:
            return self.sums.formula(self.sums.kernels.index(str(i)))
        if not self.laws[i]:
            at = sum(not law for law in self.laws[:i])
            return "" if self.functions is None else self.functions.formula(at)
        at = sum(bool(law) for law in self.laws[:i])
        held = self.factors
        factor = f"{held[at]:.6g}" if isinstance(held, np.ndarray) else held.formula(at)
        return factor if self.laws[i] == "constant" else f"({factor}) * {self.laws[i]}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "parameters": list(self.parameters),
            "others": list(self.others),
            "laws": list(self.laws),
            "factors": _plain(self.factors),
            "functions": None if self.functions is None else _plain(self.functions),
            "rivals": [list(each) for each in self.rivals],
            "most": self.most,
            **({} if self.sums is None else {"sums": self.sums.to_dict()}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Volumes:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'volumes'"):
            names = {name: tuple(map(str, content[name])) for name in ("parameters", "others", "laws")}
            factors = _back(content["factors"])
            functions = None if content["functions"] is None else _back(content["functions"])
            rivals = tuple(tuple(map(str, each)) for each in content.get("rivals", ()))
            most = int(content.get("most", 1))
            sums = RankLaws.from_dict(content["sums"]) if "sums" in content else None
        if isinstance(functions, np.ndarray):
            raise InputError("'volumes' is damaged: plain values are no functions", "fit the model again")
        if rivals and len(rivals) != len(names["laws"]):
            raise InputError("'volumes' does not fit together", "fit the model again")
        return cls(factors=factors, functions=functions, rivals=rivals, most=most, sums=sums, **names)


def _plain(held: Functions | Array) -> dict[str, Any]:
    if isinstance(held, np.ndarray):
        return {"kind": "values", "content": held.tolist()}
    return {"kind": "levels" if isinstance(held, Levels) else "fitted", "content": held.to_dict()}


def _back(content: Mapping[str, Any]) -> Functions | Array:
    if content["kind"] == "values":
        values = np.array(content["content"], dtype=np.float64)
        if values.ndim != 1 or not np.isfinite(values).all():
            raise ValueError("a factor is not a finite number")
        return values
    return (Levels if content["kind"] == "levels" else Fitted).from_dict(content["content"])


def fit_volumes(
    parameters: tuple[str, ...],
    points: Array,
    values: Array,
    names: Sequence[tuple[str, str]],
    steps: Sequence[Step | None],
    **settings: Any,
) -> Volumes:
    """Find the law or the function of every volume.

    Parameters
    ----------
    parameters : tuple of str
        One of them ``ranks``.
    points : (n, m)
        Distinct configurations.
    values : (s, n)
        NaN where a volume is missing.
    names : sequence of (str, str)
        What each volume is of, for messages, and its metric: ``messages`` or ``bytes_sent``.
    steps : sequence of Step or None
        The way that the messages of each volume go on a process grid, where there is one.
    **settings
        Of :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    at = parameters.index("ranks")
    others = tuple(name for name in parameters if name != "ranks")
    elsewhere = np.delete(points, at, axis=1)
    places, groups = np.unique(elsewhere, axis=0, return_inverse=True)
    groups = groups.reshape(-1)
    ranks = points[:, at].astype(np.int64)
    exact = [find_laws(ranks, groups, row, step) for row, step in zip(values, steps, strict=True)]
    laws = [next(iter(each), "") for each in exact]
    lawful = [i for i, law in enumerate(laws) if law]
    scaled = np.full((len(lawful), len(places)), np.nan)
    for row, i in enumerate(lawful):
        each = values[i] / np.array([weight(laws[i], int(p)) for p in ranks])
        for g in range(len(places)):
            here = each[(groups == g) & np.isfinite(each)]
            if len(here):
                scaled[row, g] = here.mean()
    factors: Functions | Array
    if len(places) == 1 or not lawful:
        factors = scaled[:, 0] if lawful else np.zeros(0)
    else:
        kernels, metrics = zip(*(names[i] for i in lawful), strict=True)
        series = Series(others, places, scaled[:, :, None], kernels, metrics)
        factors = fit_levels(series, **settings) or fit_series(series, **settings)
    free = [i for i, law in enumerate(laws) if not law]
    functions: Functions | None = None
    sums: RankLaws | None = None
    if free:
        kernels, metrics = zip(*(names[i] for i in free), strict=True)
        series = Series(parameters, points, values[free][:, :, None], kernels, metrics)
        functions = fit_levels(series, **settings) or fit_varied(series, **settings)
        numbered = replace(series, kernels=tuple(map(str, free)))
        sums = fit_rank_laws(numbered, set(zip(numbered.kernels, numbered.metrics, strict=True)), **settings)
    rivals = tuple(each[1:] for each in exact)
    return Volumes(parameters, others, tuple(laws), factors, functions, rivals, int(ranks.max()), sums)
