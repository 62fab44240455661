"""The parts of an application's time, each learned where its evidence is there: the resource equation of kernels,
messages and the network, bandwidth that cores share, and what ranks have beyond the mean."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.columns import Columns
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment
from ranksight.core.idle import working
from ranksight.model.application.agreement import message_series, message_tables
from ranksight.model.application.balance import fit_balance
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.communication import NO_COMMUNICATION, Communication
from ranksight.model.application.fit_imbalances import fit_imbalances
from ranksight.model.application.network import NO_NETWORK, Network
from ranksight.model.application.node import Node
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.laws.view import View
from ranksight.model.laws.weighing import weights_of
from ranksight.model.resource.counters import Sampled
from ranksight.model.resource.equation import Machine
from ranksight.model.series.domains import Domains
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.sharing.caches import find_shared_cache
from ranksight.model.sharing.readings import Readings
from ranksight.model.structure.stated import Stated
from ranksight.model.structure.structured import structured
from ranksight.model.structure.wholeunits import Staircase
from ranksight.platforms import Platform

SLOWEST, MEAN, MEAN_OF_ALL = "slowest rank", "mean of the ranks that have a kernel", "mean of all ranks"
MEANINGS = (SLOWEST, MEAN, MEAN_OF_ALL)
WORK = "instructions"
FEWEST = 2
"""Configurations of a kernel that compare two meanings."""
CLEAR = 0.5
"""Part of the scatter of time per instruction by another meaning that the best may leave, to be taken."""


def fit_application(
    experiment: Experiment,
    sampled: Sampled,
    platform: Platform | None,
    machine: Machine,
    domains: Domains,
    steps: Staircase,
    stated: Stated,
    over_ranks: str,
    cycles_over_ranks: str,
    exact: Collection[tuple[str, str]] = (),
    **settings: Any,
) -> Application:
    """Learn the parts of an application's time.

    Raises InputError when the counts contradict the machine. `sampled`: its series, and the samples behind them.
    `platform`: the machine measured, as `machine` at the clock that the runs had; `domains`: how ranks were placed on
    it. `steps`: whole units that the work comes in. `stated`: volumes of messages as the user knows them. `over_ranks`,
    `cycles_over_ranks`: how times and cycles were reduced over ranks. `exact`: counts (kernel, metric) that a law
    meets to rounding. `**settings`: of :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    whose = values_of_totals(experiment, sampled.series) if over_ranks == "max" else ""
    means = over_ranks == "mean" or whose in (MEAN, MEAN_OF_ALL)
    each = {name: value for name, value in settings.items() if name not in ("jobs", "dask")}
    units, series = steps.units, sampled.series
    # What whole units make uneven is another at every number of ranks, and known already.
    by_rank = over_ranks in ("mean", "max") and not units
    averaged = cycles_over_ranks == "mean"
    imbalances = (
        fit_imbalances(experiment, not means, averaged, series, whose == MEAN_OF_ALL, **each) if by_rank else None
    )
    slowest: dict[str, Array] = {}
    if imbalances is not None and imbalances.held and averaged:
        ratios = imbalances.slowest(imbalances.kernels, series.points)
        slowest = dict(zip(imbalances.kernels, ratios, strict=True))
    kernels = frozenset(series.kernels)
    view = View(Readings(experiment), sampled, platform, machine, domains, units, slowest, each, kernels)
    communication = _communication(experiment, stated, **settings)
    network = _network(platform, domains) if communication else NO_NETWORK
    # The largest of all ranks' times holds the imbalance already.
    balance, imbalance = fit_balance(experiment, units, **each) if means else (None, 1.0)
    weights = weights_of(view, exact)
    equation = Application(view.fits(), weights=weights, inside=weights)
    if platform is not None and domains.limited:
        equation = replace(equation, cache=find_shared_cache(series, platform, domains))
    if platform is not None and domains:
        equation = replace(equation, node=Node.of(platform, domains.ranks_per_node, series.points, series.parameters))
    return replace(
        equation,
        communication=communication,
        network=network,
        imbalance=imbalance,
        balance=balance,
        imbalances=imbalances,
    )


def _communication(experiment: Experiment, stated: Stated, **settings: Any) -> Communication:
    """The messages of a program, where any was traced."""
    messages = message_series(experiment) if "ranks" in experiment.parameters else None
    if messages is None:
        return NO_COMMUNICATION
    from ranksight.model.messages.fit_messages import fit_messages

    each = {name: value for name, value in settings.items() if name not in ("jobs", "dask")}
    fitted = fit_varied(messages, **each)
    functions = structured(experiment, messages, fitted, lambda: message_tables(experiment), stated, **settings)
    return Communication(functions, fit_messages(experiment, stated, **each), points=messages.points)


def _network(platform: Platform | None, domains: Domains) -> Network:
    """What messages go over."""
    if not platform or not platform.network:
        return NO_NETWORK
    # Where only messages inside a node are described, all ranks are taken to share one.
    most = domains.ranks_per_node if domains else platform.cores
    return Network(dict(platform.network), most if "inter" in platform.network else 1 << 30)


def in_words(application: Application) -> str:
    """What a program's time is put together from, in words."""
    counted = application.counted
    parts = {
        "kernels by the resource equation": application.resources,
        "messages": application.communication,
        "a network": application.network,
        "kernels by the counted equation": counted.split.any(),
        "kernels by the fitted equation": counted.composed,
        "bandwidth that cores share": application.shared,
        "balance of the ranks": application.balance,
    }
    return ", ".join(name for name, part in parts.items() if part) or "the sum of the kernels' functions"


def values_of_totals(experiment: Experiment, times: Series) -> str:
    """One of :data:`MEANINGS` for the times (s, n, r) of kernels without ranks; empty where counts do not decide it.

    Tables of times without ranks do not say it. Where instructions were counted by rank, they do: a kernel's time per
    instruction changes little from run to run, so that the times are in proportion to the counts that they are of. What
    one rank does alone is the same in every run by its largest count, and falls with the ranks by the mean.
    """
    parameters = experiment.parameters
    if "ranks" not in parameters or any(_by_rank(table) for _, table in experiment.counted()):
        return ""
    points = {tuple(point): at for at, point in enumerate(times.points.tolist())}
    rows_of = {kernel: at for at, (kernel, name) in enumerate(times.keys) if name == "time" and kernel != WHOLE}
    kernels = {kernel: at for at, kernel in enumerate(rows_of)}
    counts = np.full((len(MEANINGS), len(rows_of), len(points)), np.nan)
    for run, table in experiment.counted(run for run in experiment.runs if run.point(parameters) in points):
        place = points[run.point(parameters)]
        if WORK not in table.values or run.sampled(WORK):
            continue
        table = table.select(working(run, table))
        ranks = float(run.configuration["ranks"])
        for code, kernel in enumerate(table.kernels):
            of_kernel = (table.code == code) & (table.rank != ALL_RANKS)
            work = table.values[WORK][of_kernel]
            work = work[np.isfinite(work)]
            if kernel in kernels and len(work) and ranks > 1:
                counts[:, kernels[kernel], place] = work.max(), work.mean(), work.sum() / ranks
    medians = reduce(times.values[list(rows_of.values())], "median", axis=2)
    return _steadiest(medians, counts)


def _by_rank(table: Columns) -> bool:
    """Whether counters of a run have times by rank."""
    return "time" in table.values and bool((np.isfinite(table.values["time"]) & (table.rank != ALL_RANKS)).any())


def _steadiest(times: Array, counts: Array) -> str:
    """The meaning by which time (K, n) per count (m, K, n) changes least; empty where none is clear."""
    with np.errstate(divide="ignore", invalid="ignore"):
        pace = np.log(times / counts)
    known = np.isfinite(pace).all(axis=0)
    known &= known.sum(axis=1, keepdims=True) >= FEWEST
    # Where all meanings are the same count, nothing is to be decided.
    known &= (np.ptp(np.where(known, pace, 0.0), axis=0) > 0).any(axis=1, keepdims=True)
    if not known.any():
        return ""
    count = np.maximum(known.sum(axis=1), 1)
    pace = np.where(known, pace, 0.0)
    centre = pace.sum(axis=2) / count
    square = (np.where(known, pace - centre[:, :, None], 0.0) ** 2).sum(axis=2) / count
    weight = np.where(known, times, 0.0).sum(axis=1)
    scatter = np.sqrt((square * weight).sum(axis=1) / weight.sum())
    best = int(scatter.argmin())
    others = scatter[np.arange(len(scatter)) != best]
    # Means over those that have a kernel and over all are one where all have each kernel.
    distinct = others[~np.isclose(others, scatter[best], rtol=1e-6, atol=1e-12)]
    return MEANINGS[best] if len(distinct) and scatter[best] <= CLEAR * distinct.min() else ""
