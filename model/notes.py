"""What is to be known of configurations asked for, in sentences: ranks that do not divide the work, caches outgrown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, ratio
from ranksight.core.experiment import WHOLE
from ranksight.core.mpi import communicates
from ranksight.core.units import in_full, some_of
from ranksight.model.application.balance import waited_for
from ranksight.model.application.node import NODES
from ranksight.model.fitting.iterations import iterated
from ranksight.model.resource.counters import notes_of
from ranksight.model.series.computation import RANKS, THREADS, WORK_PER_RANK, cores
from ranksight.model.uncertainty.forecast import OK

if TYPE_CHECKING:
    from ranksight.model.predicting import Learned


HELD = 1e-4
"""E, loads that memory serves over all loads, up to which caches hold what kernels work on and their times follow their
counts (Ding et al. 2018, section 2). Above, how much a kernel waits depends on what else is in the caches, and the
paper predicts the sum alone; over which kernels and ranks it takes E is not said there. Here it is the largest of all
kernels and configurations measured."""
WHOLE_NODES = 128
"""Smallest number of ranks from which on runs are taken for runs of whole nodes, where no platform says it."""
TRAFFIC = frozenset({"bytes_mem", "bytes_mem_read", "bytes_mem_written"})
"""Metrics that the law of shared bandwidth is fitted to, where the domains are known."""
DIVIDES = -0.5
"""Fall of ln y per e-fold of ranks from which on work is divided, 1."""
ROUNDED = 1e-6
"""Relative difference of problem sizes that is none."""
COUNTS = re.compile(r"(n|num_?|number_?of_?)?_?(time_?)?(steps?|iterations?|iters?|cycles|epochs)")
"""Names of parameters that count iterations, in small letters."""
SMALL = 0.01
"""Share of all loads below which a kernel does not count."""


def notes(model: Learned, points: Array, with_energy: bool = True) -> tuple[str, ...]:
    """All that is to be said of a model's answers at `points` (k, m), each once; `with_energy`: of energy and power as
    well."""
    iterations = model.fitted.iterations
    texts = [
        model.remarks.left_out,
        model.coordinates.remark(),
        iterated(model.fitted, iterations, points) if iterations and len(model.fitted) else "",
        _uncounted(model, points),
        *model.functions.stated.remark(points),
        *model.remarks.notes,
        *notes_of(model.remarks.contradictions),
        ended(model, points),
        _outgrown(model, points),
        _crowded(model, points),
        _changing(model, points),
        _teams(model, points),
        one_domain(model, points),
        one_node(model, points),
        idle_domains(model, points),
        partners(model, points),
        model.functions.slabs.remark(points) if model.functions.slabs.kernels else "",
        *model.refined(points).remarks,
        _assumed(model, points),
        *model.equation.remarks(points),
        *_waited(model, points),
        _thresholds(model, points),
        _unpriced(model, points),
        *(_of_energy(model, points) if with_energy else ()),
    ]
    if model.staircase.units:
        texts += [model.staircase.units.remark(point, model.parameters) for point in points]
    return tuple(dict.fromkeys(filter(None, texts)))


def _of_energy(model: Learned, points: Array) -> tuple[str, ...]:
    """What is to be said of energy and power at `points` (k, m)."""
    return *model.energy.notes, model.energy.remark(points, model.parameters)


def _counting(parameters: Sequence[str], values: Array) -> str:
    """The first of the `parameters` whose name says that it counts iterations, and that varied over the configurations
    `values` (n, m); empty where there is none."""
    varied = (np.ptp(values, axis=0) > 0) & (values.min(axis=0) >= 0)
    names = [name for name, yes in zip(parameters, varied.tolist(), strict=True) if yes]
    return next((name for name in names if COUNTS.fullmatch(name.lower())), "")


def _uncounted(model: Learned, points: Array) -> str:
    """That a parameter counts iterations by its name, where answers at `points` (k, m) beyond its values are refused
    and the fit counts none; else empty."""
    name = "" if model.fitted.iterations else _counting(model.parameters, model.training)
    if not name:
        return ""
    axis = model.parameters.index(name)
    beyond = points[:, axis] > model.training[:, axis].max()
    if not beyond.any() or not (model.refined(points).said.status[:, beyond] != OK).any():
        return ""
    return f"if {name} counts iterations of one loop, fit --iterations {name} predicts many of them from runs of few"


def partners(model: Learned, points: Array) -> str:
    """The process grids that fit the traces and differ at `points` (k, m), and the run that decides; else empty."""
    sent = model.equation.communication
    laws = [model.functions.neighbours, sent.functions.neighbours]
    return next(filter(None, (law.remark(points) for law in laws if law)), "")


def _waited(model: Learned, points: Array) -> list[str]:
    """Which rank the program waits for at `points` (k, m), where the imbalance of its kernels is known, and where it is
    not."""
    uneven = model.equation.imbalances
    rows = model.functions.rows.items()
    timed = {kernel: row for (kernel, name), row in rows if name == "time" and not communicates(kernel)}
    if uneven is None or not timed:
        return []
    times = np.nan_to_num(model.refined(points).said.value[list(timed.values())])
    unanswered = uneven.unanswered(tuple(timed), np.nan_to_num(times), points)
    return [*unanswered, *waited_for(model.parameters, points, *uneven.waited(tuple(timed), times, points))]


def _thresholds(model: Learned, points: Array) -> str:
    """Switches of the MPI library between the runs and `points` (k, m); else empty."""
    sent, network = model.equation.communication, model.equation.network
    if not sent or not network:
        return ""
    each = sent.exchanged(points, network).crossings
    named = list(dict.fromkeys(text for texts in each for text in texts))
    if not named:
        return ""
    text = "the MPI library takes other algorithms or protocols beyond the runs, which the interval allows for"
    return f"{text}: {some_of(named)}"


def _unpriced(model: Learned, points: Array) -> str:
    """That messages were counted which have no time, neither of a network nor of their own; else empty."""
    equation = model.equation
    sent = equation.communication
    timed = {kernel for kernel, name in model.functions.rows if name == "time"} - {WHOLE}
    # A program that was timed as a whole sent its messages in that time.
    if not sent or not timed or equation.nested or sent.priced(equation.network) or any(map(communicates, timed)):
        return ""
    if "ranks" in model.parameters and (points[:, model.parameters.index("ranks")] <= 1).all():
        return ""
    return (
        "the times are without communication: no network says what messages take; fit with a --platform that has one, "
        "such as generic"
    )


def ended(model: Learned, points: Array) -> str:
    """Which kernels took no time in the largest runs, where `points` (k, m) are beyond these: that it stays so is
    assumed."""
    fitted, places = model.fitted, []
    for part in fitted.below:
        for row, axis, (_, first) in zip(part.rows.tolist(), part.axis.tolist(), part.between.tolist(), strict=True):
            beyond = (points[:, axis] > fitted.trained[row, axis, 1]).any()
            if fitted.metrics[row] == "time" and not fitted.coefficient[row].any() and beyond:
                places.append(f"{fitted.kernels[row]} (from {fitted.parameters[axis]} {in_full(first)} on)")
    if not places:
        return ""
    return (
        f"no time was measured in the largest runs of {some_of(places)}: none is assumed beyond them; only more runs "
        "show whether it comes back"
    )


def _outgrown(model: Learned, points: Array) -> str:
    """What E says of points outside of the measured problem sizes; nothing where it is small or not known."""
    seen, asked = _sizes(model, model.training), _sizes(model, points)
    if not ((asked < seen.min(axis=0) * (1 - ROUNDED)) | (asked > seen.max(axis=0) * (1 + ROUNDED))).any():
        return ""
    rows = model.functions.rows
    kernels = [k for k, name in rows if name == "loads_mem" and (k, "loads") in rows]
    if not kernels:
        return ""
    fitted_values = model.fitted.at_training(model.training)
    missed, every = (np.array([fitted_values[rows[k, name]] for k in kernels]) for name in ("loads_mem", "loads"))
    known = np.isfinite(missed) & np.isfinite(every) & (every > SMALL * np.nansum(every, axis=0))
    share = ratio(np.maximum(missed, 0.0), every, where=known)
    if not known.any() or not np.nanmax(share) > HELD:
        return ""
    worst = kernels[int(np.unravel_index(int(np.nanargmax(share)), share.shape)[0])]
    span = f"{np.nanmin(share):.1g} to {np.nanmax(share):.1g}"
    return (
        f"E, loads served by memory over all loads, is {span} (most in {worst}), "
        f"above {HELD:g}: at another problem size trust the sum of the kernels more than each of them"
        f"{_in_caches(model, share)}"
    )


def _sizes(model: Learned, points: Array) -> Array:
    """What makes the problem at `points` (k, m): all parameters but ranks and iterations, the work of all ranks where
    that of one is stated."""
    sizes = points.copy()
    if WORK_PER_RANK in model.parameters:
        sizes[:, model.parameters.index(WORK_PER_RANK)] *= cores(points, model.parameters)
    others = [at for at, name in enumerate(model.parameters) if name not in (RANKS, model.fitted.iterations)]
    return sizes[:, others]


def _in_caches(model: Learned, share: Array) -> str:
    """The ranks at which caches held what all kernels work on, by their shares (K, n); empty where none did."""
    if "ranks" not in model.parameters:
        return ""
    small = np.isfinite(share).any(axis=0) & (np.nan_to_num(share).max(axis=0) <= HELD)
    ranks = np.unique(model.training[small, model.parameters.index("ranks")])
    return f"; it is below with {some_of([f'{each:g}' for each in ranks])} ranks: ask there" if len(ranks) else ""


def _crowded(model: Learned, points: Array) -> str:
    """More ranks to a shared cache than did share it in the runs, and more to hold than it was seen to."""
    cache = model.equation.cache
    if not cache.kernels:
        return ""
    at_work = cores(points, model.parameters)
    _, worth = cache.spilled(model.functions.predict(points), model.functions.rows, at_work)
    return cache.remark(at_work, worth)


def _changing(model: Learned, points: Array) -> str:
    """Kernels that come and go with the ranks, at points of more ranks than measured."""
    if "ranks" not in model.parameters:
        return ""
    at = model.parameters.index("ranks")
    further = bool((points[:, at] > model.training[:, at].max()).any())
    return model.remarks.turnover if further else ""


def _teams(model: Learned, points: Array) -> str:
    """Threads of a rank that do not divide the cores of a memory domain, and so share it with other ranks' threads."""
    counted, names = model.equation.counted, model.parameters
    domains = counted.where.domains
    if not domains or THREADS not in names:
        return ""
    teams = np.unique(points[:, names.index(THREADS)])
    odd = [f"{team:g}" for team in teams if team < 1 or (domains.cores % team and team % domains.cores)]
    if not odd:
        return ""
    threads = ", ".join(odd)
    return f"{threads} threads do not divide the {domains.cores} cores of a memory domain: teams lie on two of them"


def one_domain(model: Learned, points: Array) -> str:
    """That no platform says which cores share memory, at points of more cores than measured whose traffic matters, or
    where times alone level off as those of a full domain do."""
    counted = model.equation.counted
    most, asked = (cores(each, model.parameters).max(initial=1) for each in (model.training, points))
    if asked <= most:
        return ""
    machine = model.equation.machine
    remedy = "fit with --platform NAME, or --cores-per-domain N and --ranks-per-node N (lscpu shows both)"
    if machine and machine.target:
        remedy = f"runs on a domain of {machine.name}, {machine.target.cores} cores, show it: fit --also"
    if not counted and _levelling(model, most):
        return (
            "times alone do not separate work that is not divided from a memory domain that is full: if the "
            f"{most:g} ranks of the runs filled one, more ranks take less time than predicted; {remedy}"
        )
    if not counted or counted.where.domains or not TRAFFIC.intersection(model.fitted.metrics):
        return ""
    return (
        f"how many cores share memory is not known: {asked:g} are assumed to share it as the {most:g} of the runs did; "
        f"{remedy}"
    )


def one_node(model: Learned, points: Array) -> str:
    """That nobody says how many ranks fill a node, where messages of more ranks than measured are predicted and all
    runs may have been on one."""
    equation = model.equation
    known = equation.counted.where.domains or "inter" in equation.network.table or NODES in model.parameters
    if known or "ranks" not in model.parameters:
        return ""
    most, asked = (cores(each, model.parameters).max(initial=1) for each in (model.training, points))
    timed = [kernel for kernel, name in model.functions.rows if name == "time"]
    messages = equation.communication
    sent = (messages and messages.priced(equation.network)) or any(map(equation.sends, timed))
    if asked <= most or most > WHOLE_NODES or not sent:
        return ""
    return (
        f"how many ranks fill a node is not known: if the {most:g} of the runs fit on one, what messages between nodes "
        "cost was not seen, and no interval allows for it; fit with --platform NAME or --ranks-per-node N"
    )


def idle_domains(model: Learned, points: Array) -> str:
    """That ranks at `points` (k, m) leave memory domains of another machine idle, as they were placed in the runs."""
    machine = model.equation.machine
    domains = machine.target
    if not machine or not domains or domains.placement != "compact" or NODES in model.parameters:
        return ""
    ranks = np.unique(cores(points, model.parameters))
    used = np.ceil(ranks / domains.cores).astype(int)
    idle = (used < domains.count) & (ranks > 1)
    if not idle.any():
        return ""
    each = some_of([f"{n:g} ranks fill {few}" for n, few in zip(ranks[idle], used[idle], strict=True)])
    return (
        f"placed compactly, {each} of {domains.count} memory domains of {machine.name}: --placement scattered uses all"
    )


def _levelling(model: Learned, most: float) -> bool:
    """Whether times fall with the ranks of a node at first and hardly at `most`, and no machine gives its domains."""
    if RANKS not in model.parameters or most > WHOLE_NODES or any(each.domains for each in model.fitted.processes):
        return False
    axis = model.parameters.index(RANKS)
    least = model.training[:, axis].min()
    places = np.repeat(model.training[-1:], 4, axis=0)
    places[:, axis] = least, 2 * least, most / 2, most
    times = np.array(model.fitted.metrics) == "time"
    total = model.fitted.at_training(places)[times].sum(axis=0)
    if most < 4 * least or not (total > 0).all():
        return False
    first, last = np.log2(total[1] / total[0]), np.log2(total[3] / total[2])
    return bool(first < DIVIDES and last > first / 2)


def _assumed(model: Learned, points: Array) -> str:
    """That BF_comm is not known, where several ranks send messages over a network."""
    sent, network = model.equation.communication, model.equation.network
    if not sent or not network or sent.blocking is not None:
        return ""
    if not (points[:, model.parameters.index("ranks")] > 1).any():
        return ""
    return (
        "no run measured the time of communication with a core for every rank: BF_comm is assumed to be 1, within a "
        "factor of 3"
    )
