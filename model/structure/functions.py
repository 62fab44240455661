"""Functions of the parameters with all that is known of their structure: what a model asks for a metric's value.

The search chooses hypotheses. Two further sources are parameters with two levels
(:mod:`ranksight.model.structure.levels`) and metrics that follow the process grid
(:mod:`ranksight.model.structure.neighbours`). Each is used where it is the better predictor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, ratio
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import Stored, plain
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.improving import Structure
from ranksight.model.structure.levels import NO_LEVELS, Levels
from ranksight.model.structure.local_blocks import NO_BLOCKS, Blocks
from ranksight.model.structure.locality import NO_LOCALITY, Locality
from ranksight.model.structure.loops import Iterations
from ranksight.model.structure.met import NOTHING_MISSED, Met
from ranksight.model.structure.neighbours import NO_NEIGHBOURS, Neighbours
from ranksight.model.structure.ranklaws import NO_RANK_LAWS, RankLaws
from ranksight.model.structure.slabs import NO_SLABS, Slabs
from ranksight.model.structure.stated import BYTES, MESSAGES, NOTHING_STATED, Stated, extended
from ranksight.model.structure.unserved import ALL_SERVED, Unserved
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, rows_of

WHOLES = dict.fromkeys(("loads_l1", "loads_l2", "loads_l3", "loads_mem"), "loads")
WHOLES |= dict.fromkeys(("store_misses_l1", "store_misses_l2", "store_misses_l3"), "stores")
WHOLES |= {"branch_misses": "branches"}
"""Metrics that count a part of another."""
MINOR = 0.005
"""Share of its whole below which a part is minor."""
UNSEEN = 3.0
"""Samples of which none fell, once in twenty times."""


@dataclass(frozen=True)
class Functions(Stored):
    """Functions of s series."""

    fitted: Fitted  # found by the search, for all series
    levels: Levels = NO_LEVELS  # of all series, where one parameter took two values
    neighbours: Neighbours = NO_NEIGHBOURS  # of the series that follow the process grid
    minor: tuple[tuple[str, str], ...] = ()
    """tuple of (kernel, metric): parts that were less than :data:`MINOR` of their whole at every configuration: a few
    events that scatter."""
    stated: Stated = NOTHING_STATED  # how volumes of messages go on beyond what was measured, as the user knows it
    unserved: Unserved = ALL_SERVED  # levels that served nothing, which larger working sets may outgrow others into
    laws: RankLaws = NO_RANK_LAWS  # of the volumes of messages that are sums of terms of the ranks
    irregular: tuple[tuple[str, str], ...] = ()
    """tuple of (kernel, metric): messages and bytes of kernels whose partners the data decide, as those of a matrix."""
    placed: tuple[tuple[str, str], ...] = ()
    """tuple of (kernel, metric): those of these whose partners no rule of the ranks explains, as of parts of a mesh."""
    unruled: tuple[tuple[str, str], ...] = ()
    """tuple of (kernel, metric): messages and bytes that no law of the ranks meets, of kernels whose partners no rule
    explains, or lie along sides of the grid that few runs cut."""
    traced: int = 1  # the most ranks of a run whose partners are known
    blocks: Blocks = NO_BLOCKS  # of the counts that follow the local block
    slabs: Slabs = NO_SLABS  # of the volumes that ranks in one row exchange
    iterations: Iterations | None = None  # how often what some series count is called, as iterations decide
    per_call: Functions | None = None  # of these series what they count in one call
    sided: tuple[tuple[str, str], ...] = ()
    """tuple of (kernel, metric): counts that go by the face of a block towards one side of the grid."""
    met: Met = NOTHING_MISSED  # counts at configurations that were measured, which no function meets
    locality: Locality = NO_LOCALITY  # of the loads whose misses were counted at many cache sizes

    @property
    def rows(self) -> Mapping[tuple[str, str], int]:
        """Index of each series by kernel and metric."""
        return self.fitted.rows

    def predict(self, points: Array) -> Forecast:
        """Forecast every series at `points` (k, m); see :meth:`ranksight.model.fitting.fitted.Fitted.predict`."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        volumes = np.array([name == BYTES for name in self.fitted.metrics])
        # Whatever is no message has no stated kernel.
        names = [kernel if name in (BYTES, MESSAGES) else "" for kernel, name in self.rows]
        return extended(self.stated, self._learned, points, names, volumes)

    def _learned(self, points: Array) -> Forecast:
        """What the measurements say."""
        answer = self._within(self._structural(points), points)
        answer = self._limited(self._varied(answer, points), points)
        answer = self._met(answer, points) if self.met else answer
        fitted, local = self.fitted, self.locality
        if self.unserved.kernels:
            before = fitted.parameters, fitted.trained, fitted.iterations
            answer = self.unserved.opened(answer, self.rows, points, *before)
        if not local.kernels:
            return answer
        loads = rows_of(answer, self.fitted.indices([(kernel, "loads") for kernel in local.kernels]))
        served = local.predict(points, loads)
        return choose(answer, served, self.fitted.indices(local.keys), np.isfinite(served.value))

    def _met(self, answer: Forecast, points: Array) -> Forecast:
        """The answers with counts that no function meets as they were counted, and open beyond the most ranks."""
        # Where none is off, the functions need not be asked at the most ranks too.
        if "ranks" in self.fitted.parameters and self.met.open.any():
            axis, index = self.fitted.parameters.index("ranks"), self.fitted.indices(self.met.keys)
            nearest = points.copy()
            nearest[:, axis] = np.fmin(points[:, axis], self.met.points[:, axis].max())
            more = points[:, axis] / nearest[:, axis]
            if (more > 1).any():
                most = rows_of(self._structural(nearest), index)
                opened = self.met.opened(rows_of(answer, index), most, more)
                answer = choose(answer, opened, index, np.broadcast_to(more > 1, opened.value.shape))
        return self.met.improved(answer, self.fitted, points, ())

    def _within(self, answer: Forecast, points: Array) -> Forecast:
        """The answers of one side's faces between those at as many ranks as were traced, where more ranks cut other
        sides, and these divided by how many times more ranks there are, where they cut this one alone."""
        if not self.sided:
            return answer
        more = np.fmax(points[:, self.fitted.parameters.index("ranks")] / self.traced, 1.0)[None]
        index = self.fitted.indices(self.sided)
        now, most = rows_of(answer, index), rows_of(self._at_most(points), index)
        lower, upper = most.lower / more, most.upper
        value = np.clip(now.value, most.value / more, most.value)
        opened = replace(now, value=value, lower=lower, upper=upper, status=most.status, reason=most.reason).judged()
        return choose(answer, opened, index, np.broadcast_to(more > 1, value.shape))

    def _structural(self, points: Array) -> Forecast:
        """What functions and laws say."""
        answer = self.fitted.predict(points)
        for structure in self._structures.values():
            answer = structure.improved(answer, self.fitted, points, self.lawful)
        answer = self._scattered(answer, points)
        if self.iterations is not None and self.per_call is not None:
            answer = self._iterated(answer, self.iterations, self.per_call, points)
        return answer

    def _iterated(self, answer: Forecast, iterations: Iterations, per_call: Functions, points: Array) -> Forecast:
        """The answers with iterations as they may go on, and these times what a call does where they count."""
        rows = self.fitted.indices(iterations.counted)
        count = iterations.count(answer, rows, points)
        answer = choose(answer, count, rows, np.ones(count.value.shape, dtype=bool))
        product = iterations.times(rows_of(per_call.predict(points), per_call.fitted.indices(iterations.keys)), count)
        return choose(answer, product, self.fitted.indices(iterations.keys), np.isfinite(product.value))

    @property
    def lawful(self) -> set[tuple[str, str]]:
        """Kernels and metrics that follow the process grid to rounding."""
        return self.neighbours.exact if self.neighbours else set()

    @property
    def _structures(self) -> dict[str, Structure]:
        """What is known of some series, in the order in which it is asked."""
        names = ("levels", "neighbours", "laws", "blocks", "slabs")
        parts: dict[str, Structure] = {name: getattr(self, name) for name in names}
        return {name: part for name, part in parts.items() if part}

    def _scattered(self, answer: Forecast, points: Array) -> Forecast:
        """The answers open for what partners of irregular data may become with more ranks.

        Where blocks become smaller than what they reach, as many times more ranks are within it as there are more, and
        a rank's bytes are a share of the same data. Partners on a grid of several sides are within reach along each of
        these, and bytes go by its faces however many ranks they reach. Where no rule has the partners, there are no
        fewer than with the most ranks traced, and no more bytes unless the function has more; what no law meets is then
        in the middle of what is possible. Where nothing is known of the partners, both may be more or less. Bytes whose
        messages follow the grid lie between its faces and messages as long as with the most ranks: blocks do not grow,
        and a face with a margin shrinks no faster than one without.
        """
        keys = (*self.irregular, *self.unruled)
        if not keys:
            return answer
        index = self.fitted.indices(keys)
        unknown = np.array([key in self.unruled for key in keys])[:, None]
        calls = np.array([name == MESSAGES for _, name in keys])[:, None]
        ranks = points[:, self.fitted.parameters.index("ranks")]
        more = np.broadcast_to(np.fmax(ranks / self.traced, 1.0), (len(keys), len(points))).copy()
        shared = np.array([key in self.placed for key in keys])[:, None] & (more > 1)
        kernels = [kernel for kernel, _ in self.irregular]
        by_laws = self.laws.longer_sides(kernels, ranks, int(self.traced))
        for row, longer in (by_laws | self.neighbours.longer_sides(kernels, ranks)).items():
            # Fewer ranks may have a longer side: three stand in one row, eight make a cube.
            more[row], shared[row] = np.where(calls[row] & (ranks > self.traced), longer, 1.0), False
        opened = rows_of(answer, index)
        if self.iterations is not None:
            opened = self.iterations.opened(opened, points)
        value, lower, upper = (
            opened.value,
            np.where(calls & ~unknown, opened.lower, opened.lower / more),
            np.where(calls | unknown, opened.upper * more, opened.upper),
        )
        most = self._at_most(points) if (more > 1).any() else answer
        if shared.any():
            last = rows_of(most, index)
            opened = choose(opened, last, np.arange(len(keys)), shared)
            free = shared & np.array([key in self.met.lawless for key in keys])[:, None]
            free &= calls | (value < last.value)
            value = np.where(free, last.value * more ** np.where(calls, 0.5, -0.5), value)
            lower = np.where(shared, np.where(calls, np.fmin(lower, last.lower), last.lower / more), lower)
            upper = np.where(shared, np.where(calls, last.upper * more, np.fmax(upper, last.upper)), upper)
        sent = [row for row in np.flatnonzero(unknown & ~calls) if (keys[row][0], MESSAGES) in self.lawful]
        if sent and (more > 1).any():
            messages, volumes = (
                self.fitted.indices([(keys[row][0], name) for row in sent]) for name in (MESSAGES, BYTES)
            )
            as_long = most.upper[volumes] * ratio(answer.value[messages], most.value[messages], np.inf)
            lower[sent], upper[sent] = opened.lower[sent], np.fmax(opened.upper[sent], as_long)
        opened = replace(opened, value=value, lower=lower, upper=upper).judged()
        return choose(answer, opened, index, np.ones(opened.value.shape, dtype=bool))

    def _at_most(self, points: Array) -> Forecast:
        """What functions and laws say of no more ranks than were traced, in place of those of `points` (k, m)."""
        axis, nearest = self.fitted.parameters.index("ranks"), points.copy()
        nearest[:, axis] = np.fmin(points[:, axis], self.traced)
        return self._structural(nearest)

    def _varied(self, answer: Forecast, points: Array) -> Forecast:
        """Nothing is known at another value of a parameter that took one, whatever structure the others have."""
        low, high = (self.fitted.trained[:, :, end] for end in (0, 1))
        status, reason = answer.status.copy(), answer.reason.astype(object)
        for axis, name in enumerate(self.fitted.parameters):
            unvaried = (low[:, axis, None] == high[:, axis, None]) & (points[None, :, axis] != low[:, axis, None])
            unvaried &= (status == forecast.OK) & ~self.fitted.unaffected[:, axis, None]
            status[unvaried] = forecast.UNVARIED
            reason[unvaried] = forecast.REASONS[forecast.UNVARIED].format(parameter=name)
        return replace(answer, status=status, reason=reason)

    def _limited(self, answer: Forecast, points: Array) -> Forecast:
        """No part exceeds its whole: loads that a level serves stay within the kernel's loads, misses within stores.

        A part that was minor at every configuration stays so with more ranks: what a few events say of their growth is
        chance. With larger problems it may not, as a working set outgrows a cache.
        """
        rows = self.rows
        pairs = [
            (row, rows[kernel, WHOLES[name]])
            for (kernel, name), row in rows.items()
            if (kernel, WHOLES.get(name)) in rows
        ]
        if not pairs:
            return answer
        part, of = (np.array(column) for column in zip(*pairs, strict=True))
        sound = answer.status[of] == forecast.OK
        arrays: dict[str, Any] = {}
        for name in ("value", "lower", "upper"):
            array = np.array(getattr(answer, name))
            most = getattr(answer, "value" if name == "value" else "upper")[of]
            array[part] = np.where(sound & (array[part] > most), most, array[part])
            arrays[name] = array
        arrays["lower"] = np.fmin(arrays["lower"], arrays["value"])
        answer = replace(answer, **arrays)
        if not self.minor:
            return answer
        index = np.array([rows[key] for key in self.minor])
        of = np.array([rows[kernel, WHOLES[name]] for kernel, name in self.minor])
        inside = np.ones(len(points), dtype=bool)
        for at, name in enumerate(self.fitted.parameters):
            if name != "ranks":
                inside &= points[:, at] <= self.fitted.trained[:, at, 1].max(initial=-np.inf)
        whole, most = answer.value[of], answer.upper[of]
        known = (answer.status[of] == forecast.OK) & inside[None, :]
        value = np.where(np.isfinite(answer.value[index]), np.minimum(answer.value[index], MINOR * whole), 0.0)
        # How they go on is what nobody looked at.
        steady = Forecast.settled(value, 0.0 * value, 2 * MINOR * most, form=1.0)
        return choose(answer, steady, index, known)

    def formula(self, i: int) -> str:
        """What is known of series `i`, as people read it."""
        key = self.fitted.keys[i]
        if self.iterations is not None and self.per_call is not None and key in self.iterations.rows:
            return self.iterations.formula(self.iterations.rows[key], self.per_call.formula(self.per_call.rows[key]))
        if self.locality.knows(*key):
            return self.locality.formula(key[1])
        for law in (self.laws, self.neighbours):
            if key in law.rows:
                return law.formula(law.rows[key])
        return self.levels.formula(i) if self.levels else self.fitted.formula(i)

    def structures(self) -> dict[str, Any]:
        """The structures as plain data, for :meth:`with_structures`."""
        empty = {each.name: each.default for each in fields(self) if not isinstance(each.default, Stored)}
        parts = {name: part for name, part in self.present().items() if name not in empty or part != empty[name]}
        return {name: plain(part) for name, part in parts.items() if name != "fitted"}

    @classmethod
    def with_structures(cls, fitted: Fitted, content: Mapping[str, Any]) -> Functions:
        """Rebuild from :meth:`structures`; damaged content raises InputError."""
        return cls.from_dict({**content, "fitted": fitted})

    def _fits(self) -> bool:
        """Whether the structures are of the series fitted; InputError names the one that is not."""
        parameters, rows = self.fitted.parameters, set(self.rows)
        scattered = {*self.irregular, *self.unruled, *self.sided}
        fits = {
            "stated": not self.stated.texts or self.stated.parameters == parameters,
            "minor": all(key in rows and (key[0], WHOLES.get(key[1], "")) in rows for key in self.minor),
            "unserved": set(self.unserved.keys) <= rows,
            "locality": not self.locality.kernels
            or (
                self.locality.parameters == parameters
                and {*self.locality.keys, *((kernel, "loads") for kernel in self.locality.kernels)} <= rows
            ),
            "placed": set(self.placed) <= set(self.irregular),
            "irregular": scattered <= rows and self.traced >= 1 and ("ranks" in parameters or not scattered),
        }
        fits |= {name: structure.describes(self.fitted) for name, structure in self._structures.items()}
        if self.iterations is not None and self.per_call is not None:
            fits["iterations"] = self.iterations.fits(self.fitted, self.per_call.rows)
        for name, well in fits.items():
            if not well:
                raise InputError(f"{name!r} does not fit the functions", "fit the model again")
        return True


def find_minor(series: Series) -> tuple[tuple[str, str], ...]:
    """The parts (:data:`WHOLES`) that were minor at every configuration where their whole was measured.

    A part made of samples is so only where :data:`UNSEEN` samples more would not make it larger.
    """
    rows = series.rows
    pairs = [key for key in rows if (key[0], WHOLES.get(key[1], "")) in rows]
    if not pairs:
        return ()
    values = reduce(series.values, "median", axis=2)
    index = np.array([rows[key] for key in pairs])
    part = values[index] + UNSEEN * np.nan_to_num(series.worth[index]).max(axis=2)
    whole = values[[rows[key[0], WHOLES[key[1]]] for key in pairs]]
    small = np.all(
        np.where(np.isfinite(part), part, 0.0) <= MINOR * np.where(np.isfinite(whole), whole, np.inf), axis=1
    )
    return tuple(key for key, yes in zip(pairs, small.tolist(), strict=True) if yes)
