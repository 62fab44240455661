"""Learn from an experiment what its kernels need of a core and of the memory they share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError
from ranksight.experiment import WHOLE, Experiment
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.resource.resource import LEVELS
from ranksight.model.series.reduction import reduce
from ranksight.model.series.series import Series, series_from_experiment
from ranksight.model.sharing.beyond import Beyond
from ranksight.model.sharing.demand import BYTES, MEMORY, TWICE, Demand
from ranksight.model.sharing.domains import Domains, needs
from ranksight.model.sharing.learning import BLIND, TOLD, Known, learn, times
from ranksight.model.sharing.seen import Seen, by_share
from ranksight.model.sharing.shared import ALIKE, READ, WORK, WRITTEN, Sharing
from ranksight.model.sharing.traffic import factor, occupancy
from ranksight.model.structure.wholeunits import WholeUnits
from ranksight.model.uncertainty.departure import learn_departure

Array = NDArray[np.float64]

FEWEST = 3
"""Configurations that a kernel must have."""
ABOVE = 1.3
"""How far above the platform's bandwidth a measured one may lie before the platform is not the machine measured."""
BEGINS = -0.7
"""Slope of ln time over ln ranks at the fewest ranks below which times are those of strong scaling."""
EARLY = 0.2
"""Share of a domain's cores that may fill its memory interface."""
OUTLYING = 2.0
"""Scales of the scatter from which on a departure is cut before it is carried on."""


def fit_sharing(
    experiment: Experiment,
    domains: Domains,
    units: WholeUnits | None = None,
    demand: Demand | None = None,
    **settings: Any,
) -> Sharing | None:
    """Learn the kernels that have a time and memory traffic at :data:`FEWEST` configurations or more.

    The work of a kernel is its instructions. Ranks that wait in MPI count instructions of their waiting, so that a
    whole program's work is that of the rank with the fewest; without instructions the traffic is the work. Where no
    traffic was counted it is taken to go with the work, and how much of it there is is read off the times that
    :data:`FEWEST` and more numbers of ranks in a domain took; without instructions the work of strong scaling is
    1 / ranks, of kernels whose times begin like that.

    Parameters
    ----------
    experiment : Experiment
    domains : Domains
        As the ranks were placed when they were measured.
    units : WholeUnits, optional
        What the work consists of, where it cannot be cut.
    demand : Demand, optional
        The traffic of a cache, whose instances `domains` are then; that of memory where it is not given.
    **settings
        Of :func:`ranksight.model.fitting.fitting.fit_series`.

    Returns
    -------
    Sharing or None
        None where nothing tells how kernels share a domain, where traffic was simulated (a simulated cache serves one
        rank, fetches nothing ahead and has no rate), where loads were counted by level instead (they have the resource
        equation), or where the number of ranks is no parameter.

    Raises
    ------
    InputError
        When more bytes a second were moved than the domains' bandwidth allows.
    """
    present = experiment.metrics()
    traffic = BYTES if demand is None else demand.metrics
    counted = demand is not None or bool(set(BYTES) & set(present))
    if "ranks" not in experiment.parameters or "time" not in present or (counted and _simulated(experiment, traffic)):
        return None
    if not counted and set(LEVELS) & set(present):  # what memory served is then known better than by the work
        return None
    wanted = tuple(name for name in ("time", "cycles", "instructions", *traffic) if name in present)
    series = series_from_experiment(experiment, wanted)
    rows = {key: i for i, key in enumerate(zip(series.kernels, series.metrics, strict=True))}
    how = settings.get("over_repetitions", "auto")
    values = reduce(series.values, "median" if how == "auto" else how, axis=2)
    nothing = np.full(len(series.points), np.nan)
    ranks = series.points[:, series.parameters.index("ranks")]
    active = domains.active(ranks)
    least = _least(experiment, series, how) if (WHOLE, "instructions") in rows else nothing

    def of(kernel: str, name: str) -> Array:
        if kernel == WHOLE and name == "instructions":
            return least
        return values[rows[kernel, name]] if (kernel, name) in rows else nothing

    def moved(kernel: str) -> tuple[Array, Array]:
        return _traffic(of, kernel) if demand is None else (demand.traffic(of, kernel), nothing)

    def told_of(kernel: str) -> NDArray[np.bool_]:
        """At which configurations what loads the memory is known."""
        if counted:
            return np.asarray((of(kernel, "time") > 0) & np.isfinite(moved(kernel)[0]))
        return np.asarray((of(kernel, "time") > 0) & (_work(of, kernel, series.parameters, ranks, domains) > 0))

    name = MEMORY if demand is None else demand.name
    fewest = 1 if counted else FEWEST
    kernels = [
        kernel
        for kernel in dict.fromkeys(series.kernels)
        if (at := told_of(kernel)).sum() >= FEWEST and len(np.unique(active[at])) >= fewest
    ]
    if not kernels:
        return None
    time = np.array([of(kernel, "time") for kernel in kernels])
    if counted:
        reads, writes = (np.array(column) for column in zip(*map(moved, kernels), strict=True))
        work = np.array([of(kernel, "instructions") for kernel in kernels])
    else:
        domains = replace(domains, core=None, domain=None)
        work = np.array([_work(of, kernel, series.parameters, ranks, domains) for kernel in kernels])
        reads, writes = work, np.full(work.shape, np.nan)
    countless = ~(np.isfinite(work) & (work > 0)).any(axis=1)
    every = reads + np.nan_to_num(writes)
    work = np.where(countless[:, None], every, work)
    if demand is None:
        _check(domains, kernels, time, reads, np.nan_to_num(writes), active)
    held = occupancy(reads, writes, work, ranks, active, domains.cores)
    without = reads / factor(held.effect, active, domains.cores)
    counts = _counts(series, kernels, {WORK: work, READ: without, WRITTEN: writes, ALIKE: reads}, settings)
    seen = None
    if counted:
        own = np.where(countless[:, None], np.nan, work)
        belief = by_share(every / own, series.points, series.parameters.index("ranks"))
        seen = Seen(active, own, reads / own, writes / own, belief)
    if units is not None:  # from here on work and bytes are those of the fullest rank, which time is of
        uneven = units.unevenness(series.points, series.parameters)
        work, reads, writes, every = work * uneven, reads * uneven, writes * uneven, every * uneven
    transfer, domain = needs(domains, np.nan_to_num(reads), np.nan_to_num(writes))
    told = domains.domain is not None
    if not told:
        # Seconds by the largest rate that was reached: the domain gives that much at least.
        with np.errstate(invalid="ignore", divide="ignore"):
            domain = domain / np.nanmax(active * every / time, axis=1)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        room = np.nanmin(np.where(every > 0, 0.9 * time / transfer, np.inf), axis=1) if told else np.ones(len(kernels))
    alike = len(np.unique(active)) == 1
    # What the traffic adds to a rank's time shows only where it varies beside the work.
    alone = np.where(countless | alike, 0.0, np.clip(np.nan_to_num(room, nan=1.0, posinf=1.0), 0.0, 1.0))
    transfer = alone[:, None] * transfer
    spread = (TOLD if told else BLIND) if demand is None else TWICE
    # Between full domains other things grow than what fills one: of them all the law has those of the fewest ranks.
    full = active == active.max()
    further = full & (ranks > ranks[full].min()) & (not alike)
    early = np.where(further, np.nan, time)
    early = np.where((np.isfinite(early).sum(axis=1) >= FEWEST)[:, None], early, time)
    learned = learn(Known(early, work, every, transfer, domain, active, spread))
    mode, floor = learned.mode.copy(), np.nanmin(np.where(time > 0, time, np.nan), axis=1)
    if alike:
        # One number of ranks in a domain: times are taken as those of a rank alone, which keeps its pace.
        largest = np.where(time > 0, work, -np.inf).argmax(axis=1)[:, None]
        with np.errstate(invalid="ignore"):
            mode[:, 0] = np.log(np.take_along_axis(time / work, largest, axis=1)[:, 0])
        mode[:, 3] = -50.0
    with np.errstate(invalid="ignore", divide="ignore"):
        said = times(mode, work, transfer, domain, floor, np.ones_like(active) if alike else active)[0]
        left, off = np.log(early / said), np.log(time / said)
    varied = tuple(
        at
        for at, name in enumerate(series.parameters)
        if len(np.unique(series.points[:, at])) > 1 and (series.points[:, at] > 0).all() and (alike or name != "ranks")
    )
    inputs = [np.log(series.points[:, at]) for at in varied]
    left = np.where(np.isfinite(left), left, np.nan)
    # What lies far off the law has reasons of its own, and says nothing of its neighbours.
    most = np.inf if alike else OUTLYING * learned.scatter[:, None]
    kept = np.clip(left, -most, most)
    departure = learn_departure(np.stack(inputs if alike else [np.log(active), *inputs], axis=1), kept)
    residual = departure.left_out() + left - kept
    scatter = np.nanmedian(np.abs(residual), axis=1) / 0.6745
    guessed = np.array([not counted and _guessed(of, kernel, ranks, domains) for kernel in kernels])
    beyond = None
    if not alike:
        gone = departure.at(departure.inputs)[0]
        known = (said * np.exp(gone))[:, full], np.where(np.isfinite(off), off - gone, np.nan)[:, full]
        whole = np.array([kernel == WHOLE for kernel in kernels])
        beyond = Beyond(
            int(active.max()), ranks[full], domains.nodes(ranks)[full], *known, learned.scatter, guessed, whole
        )
    if not told:
        # From here on the domain's seconds are bytes: its bandwidth goes into the second number.
        mode[:, 1] += np.log(np.nanmax(active * every / time, axis=1))
    cycles = np.array([of(kernel, "cycles") for kernel in kernels])
    longest = np.where(np.isfinite(cycles) & (time > 0), time, -np.inf).argmax(axis=1)[:, None]
    with np.errstate(invalid="ignore"):
        clock = np.take_along_axis(cycles / time, longest, axis=1)[:, 0]
    return Sharing(
        domains,
        domains,
        tuple(kernels),
        counts,
        mode,
        learned.covariance,
        scatter,
        residual,
        learned.count,
        floor,
        alone,
        held.effect,
        held.belief,
        clock,
        np.stack([series.points.min(axis=0), series.points.max(axis=0)], axis=1),
        departure,
        varied,
        alike,
        tuple(
            _told(name, domains, _loads(name, counted, bool(no), "instructions" in present), int(n))
            for no, n in zip(countless, learned.count, strict=True)
        ),
        beyond,
        name,
        seen,
    )


def _simulated(experiment: Experiment, traffic: tuple[str, ...]) -> bool:
    """Whether traffic was simulated."""
    told = [text for run in experiment.runs for name, text in run.provenance.items() if name in traffic]
    return any("simulated" in text for text in told)


def _work(of: Any, kernel: str, parameters: tuple[str, ...], ranks: Array, domains: Domains) -> Array:
    """Work of a rank where no traffic was counted: instructions, or that of strong scaling where times begin like it.

    Where it is guessed (:func:`_guessed`), it is that as well. Other times, and those that another parameter moves,
    tell no work: NaN.
    """
    work, time = of(kernel, "instructions"), of(kernel, "time")
    if np.isfinite(work).any():
        return np.asarray(work)
    if parameters == ("ranks",) and (_begins(time, ranks) or _guessed(of, kernel, ranks, domains)):
        return np.asarray(np.nanmax(np.where(time > 0, time, np.nan)) / ranks)
    return np.full(len(ranks), np.nan)


def _begins(time: Array, ranks: Array) -> bool:
    """Whether times (n,) fall nearly as 1 / ranks at the fewest of them."""
    known = np.flatnonzero(time > 0)
    if len(known) < FEWEST:
        return False
    first, second = known[np.argsort(ranks[known])][:2]
    return bool(np.log(time[second] / time[first]) / np.log(ranks[second] / ranks[first]) < BEGINS)


def _guessed(of: Any, kernel: str, ranks: Array, domains: Domains) -> bool:
    """Whether times alone, of one domain that may have been full from the first, leave open how work is divided."""
    if np.isfinite(of(kernel, "instructions")).any() or _begins(of(kernel, "time"), ranks):
        return False
    return bool((ranks <= domains.active(ranks)).all() and ranks.min() > EARLY * domains.cores)


def _traffic(of: Any, kernel: str) -> tuple[Array, Array]:
    """Bytes read and written, or all bytes and nothing where they were not told apart."""
    reads, writes = of(kernel, "bytes_mem_read"), of(kernel, "bytes_mem_written")
    if np.isfinite(reads).any() and np.isfinite(writes).any():
        return reads, writes
    return of(kernel, "bytes_mem"), np.full(len(reads), np.nan)


def _least(experiment: Experiment, series: Series, how: str) -> Array:
    """Instructions of the rank with the fewest, at the configurations of `series`."""
    given = series_from_experiment(experiment, ("instructions",), "min")
    row = given.kernels.index(WHOLE)
    values = reduce(given.values[row], "median" if how == "auto" else how, axis=1)
    places = {tuple(point): float(value) for point, value in zip(given.points.tolist(), values, strict=True)}
    return np.array([places.get(tuple(point), np.nan) for point in series.points.tolist()])


def _counts(series: Series, kernels: list[str], given: dict[str, Array], settings: dict[str, Any]) -> Fitted:
    names, blocks = [], []
    for name, block in given.items():
        for kernel, row in zip(kernels, block, strict=True):
            if np.isfinite(row).any():
                names.append((kernel, name))
                blocks.append(row)
    known = Series(
        series.parameters,
        series.points,
        np.array(blocks)[:, :, None],
        tuple(kernel for kernel, _ in names),
        tuple(name for _, name in names),
    )
    return fit_varied(known, **{key: value for key, value in settings.items() if key != "jobs"})


def _check(
    domains: Domains, kernels: list[str], time: Array, reads: Array, writes: Array, active: NDArray[np.intp]
) -> None:
    if domains.domain is None:
        return
    total = reads + writes
    share = np.divide(reads, total, out=np.ones_like(total), where=total > 0)
    given = domains.bandwidths(share)
    assert given is not None
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = active * total / time
        above = rate / np.maximum(given[1], given[0])
    if not np.nanmax(np.where(np.isfinite(above), above, 0.0)) > ABOVE:
        return
    at, k = np.unravel_index(int(np.nanargmax(np.where(np.isfinite(above), above, 0.0))), above.shape)
    raise InputError(
        f"{kernels[at]} moved {rate[at, k] / 1e9:.3g} GB/s on a domain of {active[k]} active cores; the platform's "
        f"domains give {given[1][at, k] / 1e9:.3g} GB/s",
        "name the platform that was measured with --platform, its cores a domain with --cores-per-domain, or how ranks "
        "were placed with --placement",
    )


def _loads(name: str, counted: bool, countless: bool, instructions: bool) -> str:
    if not counted:
        work = "instructions" if instructions else "1 / ranks"
        return f"{work} as the work and as the traffic"
    return f"{f'{name} traffic' if countless else 'instructions'} as the work, {name} traffic"


def _told(name: str, domains: Domains, loads: str, count: int) -> str:
    source = "measured curve of a domain" if domains.domain is None else "platform's bandwidths"
    return f"shared {name} bandwidth: {loads}, {source}, {count} configurations"
