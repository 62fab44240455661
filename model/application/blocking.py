"""BF_comm: the measured time of communication over the modelled one, as rates over ranks and sizes.

    T_comm,measured = sum over kinds of operations k of  BF_k T_k,      BF_comm = T_comm,measured / sum T_k

(Ding et al. 2018, equation 1 and Table 2). Below 1 communication overlaps with computation or with itself, above 1
ranks wait for each other. Messages between two ranks are one kind, each collective operation another, as one may
overlap while the other waits. ln BF_k is a Gaussian process (:mod:`ranksight.model.kernel_time.rates`). At a measured
configuration BF_k is what was measured there. What the slowest rank computes longer than the mean is T_imbalance in the
program's time, and does not count as communication again.

Which algorithm a library takes for a collective depends on its version, its settings and the nodes. Where nobody states
it (``collectives`` or ``algorithms`` of a platform's ``[network]``), every library and algorithm is a hypothesis of how
the time grows. Its posterior weight is the marginal likelihood of its BF_k: the right one needs a rate that hardly
changes. Hypotheses are scaled to the library's own level at the measured configurations, and mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import FETCHES, NEIGHBOURS, RECEIVES, SENDS
from ranksight.comm.waiting import shares_cores
from ranksight.errors import InputError
from ranksight.experiment import WHOLE, Experiment, Run
from ranksight.model.kernel_time.rates import Rates
from ranksight.model.plaindata import from_gaps, reading, with_gaps
from ranksight.model.priors import REPEATED, UNSEEN
from ranksight.units import format_si, in_full

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

POINT_TO_POINT = "point-to-point"
"""Kind of all messages between two ranks, with the operations that end them."""
ALL = ""
"""Name of all kinds together, where they were not timed one by one."""
STATED = ""
"""Name of the hypothesis that takes the algorithms as the network states them."""
LEAST_WEIGHT = 0.01
"""Posterior weight below which a hypothesis is dropped."""
SENSIBLE = 20.0
"""BF_comm beyond which measurements contradict each other."""
SAME = 1e-9
"""Difference of logarithms up to which configurations are the same."""
EXCESS = 0.02
"""Share of a program's wall time by which its kernels may exceed it."""


def kind_of(operation: str) -> str:
    """The kind of an operation; empty where it is no communication of the model, such as making communicators."""
    name = operation_name(operation)
    if name in OPERATIONS:
        return name
    return POINT_TO_POINT if any(name in held for held in (SENDS, FETCHES, NEIGHBOURS, RECEIVES)) else ""


@dataclass(frozen=True)
class Measured:
    """What communication took in one run.

    Attributes
    ----------
    point : tuple of float
        Configuration.
    seconds : mapping of str to float
        Mean over ranks of each kind; of all together under :data:`ALL` where the kinds were not timed.
    least : float
        Seconds of the rank with least of all kinds, over the mean.
    wall : float
        Wall time of the program in the same run, s; NaN where it was not measured.
    """

    point: tuple[float, ...]
    seconds: Mapping[str, float]
    least: float
    wall: float


def measured(experiment: Experiment) -> Iterator[Measured]:
    """Communication times of the runs with several ranks, each of which had a core of its own."""
    for run in experiment.runs:
        counters = experiment.table(run, "counters")
        if run.configuration.get("ranks", 1) < 2 or shares_cores(run, counters):
            continue
        messages = experiment.table(run, "messages")
        seconds, each = _by_kind(run, messages)
        whole = pd.DataFrame() if counters is None else counters[counters["kernel"] == WHOLE]
        if not seconds and "mpi_time" in whole and whole["mpi_time"].notna().any():
            each = whole["mpi_time"].dropna().to_numpy(dtype=float)
            seconds = {ALL: float(each.mean())}
        if not seconds or not each.mean() > 0:
            continue
        wall = float(whole["wall_time"].max()) if "wall_time" in whole else np.nan
        point = tuple(float(run.configuration[name]) for name in experiment.parameters)
        yield Measured(point, seconds, float(each.min() / each.mean()), wall)


def _by_kind(run: Run, messages: pd.DataFrame | None) -> tuple[dict[str, float], Array]:
    """Seconds of each kind, mean over ranks, and of each rank; nothing where operations were not timed."""
    if messages is None or "seconds" not in messages or not messages["seconds"].notna().all():
        return {}, np.zeros(0)
    kinds = messages["operation"].astype(str).map(kind_of)
    table = messages.assign(kind=kinds)[kinds.to_numpy() != ""]
    if not (table["seconds"] > 0).any():
        return {}, np.zeros(0)
    ranks = np.arange(int(run.configuration["ranks"])) if (table["rank"] >= 0).all() else table["rank"].unique()
    sums = table.pivot_table("seconds", "rank", "kind", "sum", observed=True).reindex(ranks).fillna(0.0)
    return {str(kind): float(column.mean()) for kind, column in sums.items()}, sums.sum(axis=1).to_numpy(dtype=float)


@dataclass(frozen=True)
class Blocking:
    """BF_comm of each kind under each hypothesis of its algorithm; K rows in all.

    Attributes
    ----------
    parameters : tuple of str
    columns : tuple of int
        Parameters whose logarithms are coordinates.
    kinds, ways : tuple of str
        Of each row; the way is :data:`STATED`, ``library NAME`` or an algorithm.
    weights : (K,)
        Posterior weights, 1 in sum over the ways of a kind.
    levels : (K,)
        Logarithms of the scale of each way.
    rates : Rates
        ln BF of each row relative to the scaled way.
    """

    parameters: tuple[str, ...]
    columns: tuple[int, ...]
    kinds: tuple[str, ...]
    ways: tuple[str, ...]
    weights: Array
    levels: Array
    rates: Rates

    def at(self, points: Array) -> tuple[Array, Array, Mask]:
        """Means and standard deviations of ln BF at `points` (k, m), and where it was measured; each (K, k)."""
        inputs = coordinates(points, self.columns)
        mean, spread = self.rates.at(inputs)
        same = np.asarray((np.abs(inputs[:, None] - self.rates.inputs[None]) < SAME).all(axis=2))
        there = np.asarray(same[None] & np.isfinite(self.rates.values)[:, None])
        at = there.argmax(axis=2)
        exact = np.asarray(there.any(axis=2))
        mean = np.where(exact, np.take_along_axis(self.rates.values, at, axis=1), mean)
        low, high = self.rates.inputs.min(axis=0), self.rates.inputs.max(axis=0)
        beyond = np.maximum(np.maximum(inputs - high, low - inputs), 0.0).sum(axis=1)
        return mean, np.asarray(np.sqrt(spread**2 + REPEATED**2 + (UNSEEN * beyond) ** 2)), exact

    @cached_property
    def rows(self) -> dict[str, list[int]]:
        """Rows of each kind."""
        found: dict[str, list[int]] = {}
        for row, kind in enumerate(self.kinds):
            found.setdefault(kind, []).append(row)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "parameters": list(self.parameters),
            "columns": list(self.columns),
            "kinds": list(self.kinds),
            "ways": list(self.ways),
            "weights": self.weights.tolist(),
            "levels": with_gaps(self.levels),
            "rates": self.rates.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Blocking:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'blocking'"):
            parameters, kinds, ways = (tuple(map(str, content[name])) for name in ("parameters", "kinds", "ways"))
            columns = tuple(int(at) for at in content["columns"])
            weights, levels = from_gaps(content["weights"]), from_gaps(content["levels"])
            rates = Rates.from_dict(content["rates"])
        rows = (len(kinds),)
        fits = len(ways) == len(kinds) == len(rates.values) and weights.shape == levels.shape == rows
        fine = kinds and fits and bool(np.isfinite(levels).all() and (weights >= 0).all())
        if not fine or rates.inputs.shape[1] != len(columns) or not all(0 <= at < len(parameters) for at in columns):
            raise InputError("'blocking' does not fit together", "fit the model again")
        return cls(parameters, columns, kinds, ways, weights, levels, rates)


def coordinates(points: Array, columns: tuple[int, ...]) -> Array:
    """Logarithms (k, d) of the parameters that are coordinates at `points` (k, m)."""
    return np.asarray(np.log(np.maximum(points[:, list(columns)], 1e-300)))


def fit_blocking(
    parameters: tuple[str, ...],
    found: list[Measured],
    waiting: Mapping[tuple[float, ...], float],
    modelled: Callable[[Array], Mapping[tuple[str, str], Array]],
    prior: Callable[[str], Mapping[str, float]],
) -> Blocking | None:
    """Learn BF_comm.

    Parameters
    ----------
    parameters : tuple of str
    found : list of Measured
    waiting : mapping of configuration to float
        T_imbalance there: seconds that the mean rank waits for the slowest.
    modelled : callable
        Seconds of each (kind, way) at configurations (n, m); called once.
    prior : callable
        Prior weights of the ways of a kind.

    Returns
    -------
    Blocking or None
        None where no communication time was measured, or none is modelled.
    """
    places = {point: at for at, point in enumerate(dict.fromkeys(one.point for one in found))}
    if not places:
        return None
    points = np.array(list(places), dtype=np.float64)
    cost = modelled(points)
    ranks = parameters.index("ranks")
    varied = [at for at, column in enumerate(points.T) if len(np.unique(column)) > 1 and (column > 0).all()]
    columns = (ranks, *(at for at in varied if at != ranks))
    inputs, d = coordinates(points, columns), len(columns)
    variants = tuple(sorted({tuple(at in (0, other) for at in range(d)) for other in range(d)}))
    rows: list[tuple[str, str, float, float]] = []
    values, errors = [], []
    for kind, took, error in _taken(found, places, waiting, cost):
        ways = {way: share for way, share in prior(kind).items() if (kind, way) in cost}
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.array([took - np.log(cost[kind, way]) for way in ways])
        known = np.isfinite(ratio).all(axis=0)
        if not known.any():
            continue
        levels = ratio[:, known].mean(axis=1) - ratio[list(ways).index(STATED), known].mean()
        ratio = np.where(known, ratio - levels[:, None], np.nan)
        each = Rates(inputs, ratio, np.broadcast_to(error, ratio.shape), variants)
        evidence = logsumexp(each.likelihood + np.log(each.grid.prior), axis=1) + np.log(list(ways.values()))
        weights = np.exp(evidence - logsumexp(evidence))
        kept = np.flatnonzero(weights >= LEAST_WEIGHT)
        weights = weights / weights[kept].sum()
        rows += [(kind, list(ways)[at], float(weights[at]), float(levels[at])) for at in kept]
        values += [ratio[at] for at in kept]
        errors += [error] * len(kept)
    if not rows:
        return None
    kinds, names, shares, scales = zip(*rows, strict=True)
    rates = Rates(inputs, np.array(values), np.array(errors), variants)
    return Blocking(parameters, columns, kinds, names, np.array(shares), np.array(scales), rates)


def _taken(
    found: list[Measured],
    places: Mapping[tuple[float, ...], int],
    waiting: Mapping[tuple[float, ...], float],
    cost: Mapping[tuple[str, str], Array],
) -> Iterator[tuple[str, Array, Array]]:
    """Logarithms of the seconds of each kind at each configuration, without T_imbalance, and their standard errors."""
    kinds = [kind for kind, way in cost if way == STATED]
    logs: dict[str, list[list[float]]] = {kind: [[] for _ in places] for kind in kinds}
    for one in found:
        at, mean = places[one.point], sum(one.seconds.values())
        own = max(one.least, 1 - waiting.get(one.point, 0.0) / mean)
        alone = {kind: float(cost[kind, STATED][at]) for kind in kinds}
        whole = max(sum(alone.values()), 1e-300)
        for kind in kinds:
            # Where kinds were not timed, each has the factor of all.
            took = one.seconds[ALL] * alone[kind] / whole if ALL in one.seconds else one.seconds.get(kind, 0.0)
            if own * took > 0:
                logs[kind][at].append(float(np.log(own * took)))
    for kind, each in logs.items():
        mean_log = np.array([np.mean(one) if one else np.nan for one in each])
        error = np.array([np.std(one, ddof=1) / np.sqrt(len(one)) if len(one) > 1 else 0.0 for one in each])
        yield kind, mean_log, error


def contradiction(
    parameters: tuple[str, ...], found: list[Measured], computed: Mapping[tuple[float, ...], float], modelled: Array
) -> str:
    """What contradicts what where BF_comm is below 0 or above :data:`SENSIBLE`; empty where it is not.

    Parameters
    ----------
    computed : mapping of configuration to float
        Seconds that the slowest rank computes.
    modelled : (n,)
        Seconds that the messages of each of `found` take on the network.
    """
    for one, network in zip(found, modelled.tolist(), strict=True):
        where = ", ".join(f"{in_full(x)} {name}" if name == "ranks" else f"{name} {in_full(x)}"
                          for name, x in zip(parameters, one.point, strict=True))  # fmt: skip
        kernels, took = computed.get(one.point, 0.0), sum(one.seconds.values())
        if kernels > (1 + EXCESS) * one.wall:
            return (
                f"BF_comm is below 0 at {where}: the kernels' times add up to {format_si(kernels, 's')}, the program's "
                f"wall time is {format_si(one.wall, 's')}; times of nested kernels, or of other runs, do not add up"
            )
        if network > 0 and took > SENSIBLE * network:
            return (
                f"BF_comm is {took / network:.0f} at {where}: MPI took {format_si(took, 's')} as measured, its "
                f"messages take {format_si(network, 's')} on the described network; check the units of [network], "
                "otherwise ranks wait for each other"
            )
    return ""
