"""Learn from an experiment what its kernels need of a core and of the memory they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Index, ratio
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.metrics import Reduction
from ranksight.model import priors
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.series.computation import PROGRAM
from ranksight.model.series.domains import NOT_DESCRIBED, Domains, needs
from ranksight.model.series.reducing import Series
from ranksight.model.sharing.beyond import Beyond
from ranksight.model.sharing.demand import BYTES_OF_MEMORY, Demand
from ranksight.model.sharing.needs import Known, Learned, learn, times
from ranksight.model.sharing.readings import FEWEST, Counted, Readings, read_counts
from ranksight.model.sharing.seen import Seen, by_share
from ranksight.model.sharing.shared import READ, READ_BY_RANKS, WORK, WRITTEN, Sharing
from ranksight.model.sharing.traffic import factor, occupancy
from ranksight.model.structure.wholeunits import NO_UNITS, WholeUnits
from ranksight.model.uncertainty.departure import Departure, learn_departure

ABOVE = 1.3
"""How far above the platform's bandwidth a measured one may lie before the platform is not the machine measured."""
OUTLYING = 2.0
"""Scales of the scatter from which on a departure is cut before it is carried on."""


def fit_sharing(
    experiment: Experiment | Readings,
    domains: Domains,
    units: WholeUnits = NO_UNITS,
    demand: Demand = BYTES_OF_MEMORY,
    over_ranks: Reduction | Mapping[str, Reduction] | None = None,
    **settings: Any,
) -> Sharing | None:
    """Learn the kernels that have a time and memory traffic at :data:`FEWEST` configurations or more.

    The work of a kernel is its instructions. Ranks that wait in MPI count instructions of their waiting, so that a
    whole program's work is that of the rank with the fewest; without instructions the traffic is the work. Where no
    traffic was counted it is taken to go with the work, and how much of it there is is read off the times that
    :data:`FEWEST` and more numbers of ranks in a domain took; without instructions the work of strong scaling is 1 /
    ranks, of kernels whose times begin like that. None where it is unknown how kernels share a domain, where traffic
    was simulated and is not memory's by a `demand` (a simulated cache serves one rank, fetches nothing ahead and has no
    rate), where loads were counted by level and no `demand` is given, or where the number of ranks is not a parameter.
    Raises InputError when more bytes a second were moved than the domains' bandwidth allows.

    Parameters
    ----------
    domains : Domains
        As the ranks were placed when they were measured.
    units : WholeUnits, optional
        What the work consists of, where it cannot be cut.
    demand : Demand, optional
        The traffic of a cache, whose instances `domains` are then, or that of memory by its loads; the bytes that
        memory moved where it is not given.
    over_ranks : str or mapping of metric to str, optional
        How ranks become one value, where not in each metric's own way.
    **settings
        Of :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    readings = experiment if isinstance(experiment, Readings) else Readings(experiment)
    counted = read_counts(readings, domains, demand, settings.get("over_repetitions", "auto"), over_ranks)
    return None if counted is None else _learned(counted, domains, units, demand, settings)


def _learned(
    counted: Counted, domains: Domains, units: WholeUnits, demand: Demand, settings: Mapping[str, Any]
) -> Sharing:
    """What kernels that were counted need; for the parameters see :func:`fit_sharing`."""
    if not counted.traffic:
        domains = replace(domains, core=NOT_DESCRIBED.core, domain=NOT_DESCRIBED.domain)
    reads, writes, work = counted.reads, counted.writes, counted.work
    work = np.where(counted.countless[:, None], reads + np.nan_to_num(writes), work)
    if not demand.line:
        _check(domains, counted.kernels, counted.time, reads, np.nan_to_num(writes), counted.active)
    effects = occupancy(reads, writes, work, counted.ranks, counted.active, domains.cores)
    without = reads / factor(effects.effect, counted.active, domains.cores)
    counts = _counts(counted, {WORK: work, READ: without, WRITTEN: writes, READ_BY_RANKS: reads}, settings)
    seen = _seen(counted) if counted.traffic else None
    series, same_active, time = counted.series, counted.same_active, counted.time
    if units:  # from here on work and bytes are those of the fullest rank, which time is of
        uneven = units.unevenness(series.points, series.parameters)
        work, reads, writes = work * uneven, reads * uneven, writes * uneven
    known, reached, room = _known(counted, domains, work, reads, np.nan_to_num(writes), demand)
    learned = learn(known)
    mode, floor = _mode(learned, time, work, same_active), np.nanmin(np.where(time > 0, time, np.nan), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        lonely = np.ones_like(counted.active) if same_active else counted.active
        law = times(mode, work, known.transfer, known.domain, floor[:, None], lonely)[0]
        left, off = np.log(known.time / law), np.log(time / law)
    varied = _varied(counted)
    departure, residual = _departures(counted, varied, left, learned.scatter)
    beyond = None if same_active else _beyond(counted, domains, law, off, departure, learned.scatter)
    # From here on a domain's seconds are bytes without a platform: its bandwidth goes into the second number.
    mode[:, 1] += np.log(reached)
    return Sharing(
        measured=domains,
        domains=domains,
        kernels=counted.kernels,
        counts=counts,
        mode=mode,
        covariance=learned.covariance,
        residual=residual,
        count=learned.count,
        floor=floor,
        alone=room,
        effect=effects.effect,
        belief=effects.belief,
        clock=_clock(counted),
        trained=np.stack([series.points.min(axis=0), series.points.max(axis=0)], axis=1),
        departure=departure,
        varied=varied,
        same_active=same_active,
        evidence=_evidence(counted, demand.name, domains, learned.count),
        beyond=beyond,
        resource=demand.name,
        seen=seen,
    )


def _seen(counted: Counted) -> Seen:
    """The traffic that was counted, per unit of the work of kernels that have some of their own."""
    work = np.where(counted.countless[:, None], np.nan, counted.work)
    every = counted.reads + np.nan_to_num(counted.writes)
    belief = by_share(every / work, counted.series.points, counted.series.parameters.index("ranks"))
    return Seen(counted.active, work, counted.reads / work, counted.writes / work, belief)


def _varied(counted: Counted) -> tuple[int, ...]:
    """Parameters that departures from the law go by, besides the ranks in a domain: positive, and not the same in all
    runs."""
    points, names = counted.series.points, counted.series.parameters
    moved = [(points[:, at] > 0).all() and len(np.unique(points[:, at])) > 1 for at in range(len(names))]
    return tuple(at for at, yes in enumerate(moved) if yes and (counted.same_active or names[at] != "ranks"))


def _known(
    counted: Counted, domains: Domains, work: Array, reads: Array, writes: Array, demand: Demand
) -> tuple[Known, Array, Array]:
    """What the four numbers are learned from, the largest rate (K,) that was reached where no platform gives one, and
    the part (K,) of the traffic's time that a rank alone takes."""
    every = reads + writes
    transfer, domain = needs(domains, np.nan_to_num(reads), writes)
    limited = domains.limited
    with np.errstate(invalid="ignore", divide="ignore"):
        # Without a platform, seconds by the largest rate that was reached: the domain gives that much at least.
        rate = ratio(counted.active * every, counted.time, np.nan)
        reached = np.ones(len(work)) if limited else np.nanmax(rate, axis=1)
        room = np.ones(len(work))
        if limited:
            room = np.nanmin(np.where(every > 0, 0.9 * counted.time / transfer, np.inf), axis=1)
        domain = domain / reached[:, None]
    # What the traffic adds to a rank's time shows only where it varies relative to the work.
    shown = ~(counted.countless | counted.same_active)
    part = np.where(shown, np.clip(np.nan_to_num(room, nan=1.0, posinf=1.0), 0.0, 1.0), 0.0)
    spread = priors.BANDWIDTH["loads" if demand.line else "platform" if limited else "none"]
    known = Known(_early(counted), work, part[:, None] * transfer, domain, counted.active, spread)
    return known, reached, part


def _early(counted: Counted) -> Array:
    """Times (K, n) that the law is learned from: between full domains other things grow than what fills one, so that of
    them all it has those of the fewest ranks."""
    full = counted.active == counted.active.max()
    further = full & (counted.ranks > counted.ranks[full].min()) & (not counted.same_active)
    early = np.where(further, np.nan, counted.time)
    return np.where((np.isfinite(early).sum(axis=1) >= FEWEST)[:, None], early, counted.time)


def _mode(learned: Learned, time: Array, work: Array, same_active: bool) -> Array:
    """The four numbers (K, 4); those of one number of ranks in a domain are of a rank alone, which keeps its pace."""
    mode = learned.mode.copy()
    if same_active:
        largest = np.where(time > 0, work, -np.inf).argmax(axis=1)[:, None]
        with np.errstate(invalid="ignore"):
            mode[:, 0] = np.log(np.take_along_axis(time / work, largest, axis=1)[:, 0])
        mode[:, 3] = -50.0
    return mode


def _departures(counted: Counted, varied: tuple[int, ...], left: Array, scatter: Array) -> tuple[Departure, Array]:
    """The extrapolation of the law's residuals (K, n), and their leave-one-out residuals."""
    inputs = [np.log(counted.series.points[:, at]) for at in varied]
    left = np.where(np.isfinite(left), left, np.nan)
    # What lies far off the law has reasons of its own, and says nothing of its neighbours.
    most = np.inf if counted.same_active else OUTLYING * scatter[:, None]
    clipped = np.clip(left, -most, most)
    inputs = inputs if counted.same_active else [np.log(counted.active), *inputs]
    departure = learn_departure(np.stack(inputs, axis=1), clipped)
    return departure, departure.left_out() + left - clipped


def _beyond(counted: Counted, domains: Domains, law: Array, off: Array, departure: Departure, scatter: Array) -> Beyond:
    """What else grows with the ranks, from times by the law and the logarithm of the measured over them, (K, n)."""
    full = counted.active == counted.active.max()
    departures = departure.at(departure.inputs)[0]
    return Beyond(
        int(counted.active.max()),
        counted.ranks[full],
        domains.nodes(counted.ranks)[full],
        (law * np.exp(departures))[:, full],
        np.where(np.isfinite(off), off - departures, np.nan)[:, full],
        scatter,
        counted.guessed,
        np.array([kernel in PROGRAM for kernel in counted.kernels]),
    )


def _clock(counted: Counted) -> Array:
    """Cycles a second (K,) where a kernel took longest, NaN where they were not counted."""
    longest = np.where(np.isfinite(counted.cycles) & (counted.time > 0), counted.time, -np.inf).argmax(axis=1)[:, None]
    with np.errstate(invalid="ignore"):
        return np.asarray(np.take_along_axis(counted.cycles / counted.time, longest, axis=1)[:, 0])


def _counts(counted: Counted, columns: Mapping[str, Array], settings: Mapping[str, Any]) -> Fitted:
    """Functions of the counts (K, n) of every kernel that has any."""
    rows = [
        (kernel, name, row)
        for name, block in columns.items()
        for kernel, row in zip(counted.kernels, block, strict=True)
        if np.isfinite(row).any()
    ]
    kernels, names, values = zip(*rows, strict=True)
    known = Series(counted.series.parameters, counted.series.points, np.array(values)[:, :, None], kernels, names)
    return fit_varied(known, **{key: value for key, value in settings.items() if key != "jobs"})


def _check(domains: Domains, kernels: tuple[str, ...], time: Array, reads: Array, writes: Array, active: Index) -> None:
    if not domains.limited:
        return
    total = reads + writes
    share = ratio(reads, total, 1.0)
    core, domain = domains.bandwidths(share)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = active * total / time
        above = rate / np.maximum(domain, core)
    if not np.nanmax(np.where(np.isfinite(above), above, 0.0)) > ABOVE:
        return
    at, k = np.unravel_index(int(np.nanargmax(np.where(np.isfinite(above), above, 0.0))), above.shape)
    raise InputError(
        f"{kernels[at]} moved {rate[at, k] / 1e9:.3g} GB/s on a domain of {active[k]} active cores; the platform's "
        f"domains give {domain[at, k] / 1e9:.3g} GB/s",
        "name the platform that was measured with --platform, its cores a domain with --cores-per-domain, or how ranks "
        "were placed with --placement",
    )


def _evidence(counted: Counted, name: str, domains: Domains, count: Index) -> tuple[str, ...]:
    """What carries each kernel, in words."""
    source = "platform's bandwidths" if domains.limited else "measured curve of a domain"
    texts = []
    for countless, number in zip(counted.countless, count.tolist(), strict=True):
        work = f"{name} traffic" if countless else "instructions"
        loads = f"{work} as the work, {name} traffic"
        if not counted.traffic:
            loads = f"{'instructions' if counted.instructions else '1 / ranks'} as the work and as the traffic"
        texts.append(f"shared {name} bandwidth: {loads}, {source}, {number} configurations")
    return tuple(texts)
