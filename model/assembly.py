"""From an experiment to its model: functions, what is known of their structure, and the application's equation."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np

from ranksight.core import special
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, read
from ranksight.core.leftout import warning
from ranksight.core.log import log
from ranksight.core.metrics import Reduction, metric
from ranksight.core.mpi import communicates
from ranksight.core.registry import Registry
from ranksight.core.run import INCLUSIVE, TOTAL
from ranksight.model.application import whole
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.comm_blocking import STATED, Taken
from ranksight.model.application.communication import Communication
from ranksight.model.application.fit_application import fit_application, in_words
from ranksight.model.application.fit_blocking import fit_blocking
from ranksight.model.application.forms import fit_forms
from ranksight.model.application.measured import apart, calls, configurations, contradiction, measured, taken
from ranksight.model.application.message_series import message_series
from ranksight.model.application.network import Network
from ranksight.model.application.others import Others, fit_others, overlap, sometimes
from ranksight.model.application.replayed import weigh_replay
from ranksight.model.application.runs import Runs
from ranksight.model.application.waiting import parted
from ranksight.model.application.whole import without_sums
from ranksight.model.energy.stored import Energy, fit_energy, unmetered
from ranksight.model.fitted_model import Model
from ranksight.model.fitting.iterations import check
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.laws.stacking import Weights
from ranksight.model.laws.weighing import MOST_INSIDE, inside_weights
from ranksight.model.questions import whole_ranks
from ranksight.model.resource.clock import clocked
from ranksight.model.resource.contradiction import contradictions
from ranksight.model.resource.cycle_times import Clock, Timed
from ranksight.model.resource.derived import with_stalls
from ranksight.model.resource.equation import Machine
from ranksight.model.resource.sampled_times import Sampled, settle
from ranksight.model.resource.unsampled import with_unsampled
from ranksight.model.search.offer import Offer
from ranksight.model.series.computation import cores
from ranksight.model.series.domains import Domains
from ranksight.model.series.folding import Selection, select
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.reduction import reduce
from ranksight.model.series.sampling import means_of_samples
from ranksight.model.series.turnover import turnover
from ranksight.model.structure.coordinates import Coordinates
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.indivisible import indivisible
from ranksight.model.structure.neighbourfit import dimensions_of
from ranksight.model.structure.stated import BYTES, Stated
from ranksight.model.structure.structured import structured
from ranksight.model.structure.uneven import without_uneven
from ranksight.model.structure.wholeunits import Staircase, WholeUnits
from ranksight.model.uncertainty.forecast import TAIL
from ranksight.platforms import Platform, load
from ranksight.platforms.writing import dumps

Observer = Callable[[Experiment, Series, Platform | None, Machine | None], dict[str, Any]]
"""Of an experiment, its means over ranks, and the machine as described and at the clock of the runs: plain data."""
OBSERVERS: Registry[Observer] = Registry("observer", packages=("ranksight.analysis",))
"""What a fit keeps of the measurements in the model's extras, by name, for questions that the model does not know."""


class Settings(TypedDict, total=False):
    """Further settings of :func:`fit`: those of :func:`~ranksight.model.fitting.fit_series.fit_series`, and
    ``over_ranks`` of :func:`ranksight.model.series.reducing.series_from_experiment`."""

    space: str | Offer
    over_repetitions: str
    over_ranks: Reduction | Mapping[str, Reduction] | None
    intervals: bool
    segments: bool
    iterations: str | None
    grid: Mapping[int, float] | None
    jobs: int
    dask: str | None


def fit(
    experiment: Experiment | str | os.PathLike[str],
    metrics: Sequence[str] | None = None,
    *,
    platform: Platform | str | None = "auto",
    placement: str = "compact",
    ranks_per_node: int | None = None,
    cores_per_domain: int | None = None,
    units: str | None = None,
    derive: Mapping[str, str] | None = None,
    work: str | None = None,
    volumes: Mapping[str, str] | None = None,
    clock: float | None = None,
    all_kernels: bool = False,
    **settings: Unpack[Settings],
) -> Model:
    """Learn how every metric of every kernel of an experiment grows, and how the program's time follows from that.

    Raises InputError when `experiment` is not one, a name or formula is unknown, or the measurements are too few for
    any function.

    Parameters
    ----------
    metrics : sequence of str, optional
        All when not given.
    platform : Platform, str or None
        Machine that was measured, by itself, its name or its file; ``auto`` takes :func:`assumed_platform`.
    placement, ranks_per_node, cores_per_domain
        See :func:`domains_of`.
    units : str, optional
        Whole units that the work comes in, such as ``elements=6*size^2`` (:mod:`ranksight.model.structure.wholeunits`).
    derive : mapping of str to str, optional
        Parameters computed from those of the runs, such as ``{"x": "size^3/ranks"}``
        (:mod:`ranksight.model.structure.coordinates`).
    work : str, optional
        Work that a rank has, such as ``6*ne*ne/ranks``, which computation then depends on alone
        (:mod:`ranksight.model.series.computation`).
    volumes : mapping of str to str, optional
        How what a kernel sends grows, such as ``{"halo": "size^2"}`` (:mod:`ranksight.model.structure.stated`).
    clock : float, optional
        Cycles a second of runs that counted cycles and measured no time, in Hz
        (:mod:`ranksight.model.resource.cycle_times`); the platform's when not given.
    all_kernels : bool
        Keep every kernel; otherwise those that are too small to matter are summed into one
        (:mod:`ranksight.model.series.folding`).
    **settings
        See :class:`Settings`.

    Examples
    --------
    >>> model = rs.fit("heat.exp", metrics=["time", "instructions"])
    >>> model
    <Model heat: 4 functions of ranks, size; .table() shows them>
    """
    if isinstance(experiment, (str, os.PathLike)):
        experiment = read(experiment)
    if not isinstance(experiment, Experiment):
        raise InputError(
            f"{type(experiment).__name__} is not an experiment",
            "give one of rs.read(FOLDER), or its folder; import tables",
        )
    named = platform != "auto"
    if not named:
        platform = assumed_platform(experiment)
    elif isinstance(platform, str):
        platform = load(platform)
    domains = domains_of(platform if named else None, placement, ranks_per_node, cores_per_domain)
    coordinates, whole = stated_of(experiment, derive or {}, work, units)
    return assemble(
        experiment,
        metrics,
        platform=platform,
        domains=domains,
        units=whole,
        coordinates=coordinates,
        volumes=[f"{kernel}={text}" for kernel, text in (volumes or {}).items()],
        clock=clock,
        all_kernels=all_kernels,
        **settings,
    )[0]


def stated_of(
    experiment: Experiment, derive: Mapping[str, str] | Sequence[str], work: str | None, units: str | None
) -> tuple[Coordinates | None, WholeUnits | None]:
    """What the user states of the work: parameters computed from those of the runs, and its whole units.

    Raises InputError when a formula cannot be used, or both `work` and `units` are given.
    """
    if work is not None and units is not None:
        raise InputError("--work and --units both state the work", "give the one that the program is written by")
    coordinates = Coordinates.of(experiment, derive, work)
    over = experiment.parameters if coordinates is None else coordinates.parameters
    return coordinates, None if units is None else WholeUnits.read(units, over)


def domains_of(
    platform: Platform | None, placement: str, ranks_per_node: int | None, cores_per_domain: int | None
) -> Domains | None:
    """The ccNUMA domains of the machine measured; None where neither a platform nor their cores are named.

    Parameters
    ----------
    platform : Platform or None
        Only one that was named: an assumed one does not say how many cores share a domain.
    placement : str
        How ranks were placed, one of :data:`ranksight.model.series.domains.PLACEMENTS`.
    ranks_per_node : int or None
        A rank on every core when not given.
    cores_per_domain : int or None
        Cores of a domain where the platform's is another or none is named; the measured curve gives the bandwidth.
    """
    if cores_per_domain is not None and (platform is None or platform.layout.cores_per_domain != cores_per_domain):
        most = ranks_per_node if platform is None or ranks_per_node is not None else platform.cores
        return Domains.inferred(cores_per_domain, placement, most)
    return None if platform is None else Domains.of(platform, placement, ranks_per_node)


def assumed_platform(experiment: Experiment) -> Platform | None:
    """The generic platform where loads by cache level were counted, else none: times are then functions alone."""
    return load("generic") if "loads_l1" in experiment.metrics() else None


def assemble(
    experiment: Experiment,
    metrics: Sequence[str] | None = None,
    *,
    platform: Any = None,
    domains: Domains | None = None,
    units: WholeUnits | None = None,
    coordinates: Coordinates | None = None,
    volumes: Sequence[str] = (),
    clock: float | None = None,
    over_ranks: Reduction | Mapping[str, Reduction] | None = None,
    all_kernels: bool = False,
    keep: Collection[str] = (),
    **settings: Any,
) -> tuple[Model, Series]:
    """Fit everything that an experiment carries.

    Arguments as in :func:`fit`, but `platform` is one that was loaded, `domains` from :func:`domains_of`, `units` and
    `coordinates` from :func:`stated_of`, and `volumes` are texts ``KERNEL=FORMULA``. `keep`: kernels to keep whatever
    their size; those that `volumes` names are among them. Without a platform kernels' times are functions alone and
    messages have no time; without domains times grow on as they did. The series are those that functions were fitted
    to.
    """
    chosen = None if metrics is None else tuple(metrics)
    experiment = experiment if coordinates is None else coordinates.view(experiment)
    counting = Clock.of(clock, platform, experiment)
    settings.setdefault("grid", dimensions_of(experiment))
    metered = experiment
    experiment = parted(experiment) if counting is None else Timed(experiment, counting)
    named_kernels = {*keep, *(text.partition("=")[0].strip() for text in volumes)}
    changing = turnover(experiment)
    holding = any(run.inclusive("time") for run in experiment.runs)  # sums of timers that hold each other mean nothing
    selection = Selection() if all_kernels or holding else select(experiment, chosen, named_kernels)
    experiment = selection.view(experiment)
    how = means_of_samples(experiment, over_ranks)
    sampled, uneven = _series(experiment, chosen, how, platform, settings.get("iterations"))
    energy = _energy(metered, sampled.series, platform, domains)
    if energy is not None:
        sampled = replace(sampled, series=unmetered(sampled.series))
    series = sampled.series
    stated = _stated(experiment, series, volumes)
    # Counts show how ranks of a domain act on each other; times alone leave it to their shape.
    shared = domains if {"cycles", "instructions", "bytes_mem"}.isdisjoint(series.metrics) else None
    model = model_of(series, experiment.application, domains=shared, **settings)
    insufficient = int((model.fitted.status != 0).sum())
    log("functions fitted in space %s: %d with insufficient data", model.fitted.space, insufficient)
    functions = structured(
        experiment, series, model.fitted, lambda run: experiment.table(run, "counters"), stated, True, **settings
    )
    steps = None if units is None else _staircase(units, series, how, **settings)
    machine, remark = (None, "") if platform is None else clocked(Machine.of(platform), experiment)
    reductions = [_reductions(series, how).get(name, "") for name in ("time", "cycles")]
    application = fit_application(
        experiment, sampled, platform, machine, domains, steps, stated, *reductions, **settings
    )
    nested = holding and (WHOLE, "time") in functions.rows
    spread = 0.0 if counting is None else counting.spread
    application = replace(application, clock_spread=spread, nested=nested)
    log("the program's time: %s", in_words(application))
    times = "" if counting is None else counting.remark()
    whole_units = indivisible(experiment) if units is None else ""
    extras = {
        "coordinates": None if coordinates is None else coordinates.to_dict(),
        "structures": functions.structures(),
        "units": None if steps is None else steps.to_dict(),
        "left_out": warning(experiment),
        "turnover": changing,
        "total": next((run.environment[TOTAL] for run in experiment.runs if TOTAL in run.environment), ""),
        "folded": selection.to_dict() if selection.kernels else None,
        "clock": None if counting is None else counting.to_dict(),
        "notes": [text for text in (times, remark, whole_units, uneven, overlap(series), sometimes(series)) if text],
        "application": application.to_dict() if application.known else None,
        "contradictions": contradictions(series),
        "energy": None if energy is None else energy.to_dict(),
        "platform": None if platform is None else dumps(platform),
        **{name: OBSERVERS[name](experiment, series, platform, machine) for name in OBSERVERS},
    }
    model = replace(model, extras={**model.extras, **{name: value for name, value in extras.items() if value}})
    return _completed(model, functions, application, experiment, sampled, domains), series


def _energy(
    experiment: Experiment, series: Series, platform: Platform | None, domains: Domains | None
) -> Energy | None:
    """The laws of power, where energy was metered and the program's time is modelled."""
    if "time" not in series.metrics:
        return None
    compact = "compact" if domains is None else domains.placement
    return fit_energy(experiment, platform, compact, None if domains is None else domains.ranks_per_node)


def _series(
    experiment: Experiment,
    metrics: tuple[str, ...] | None,
    how: Reduction | Mapping[str, Reduction] | None,
    platform: Platform | None,
    iterations: str | None,
) -> tuple[Sampled, str]:
    """The series that functions are fitted to, and the note on values left out; InputError where ranks or iterations
    are not what they have to be."""
    series = without_sums(series_from_experiment(experiment, metrics, how))
    remedy = "ranks are whole numbers from 1: import it again, or name that parameter otherwise"
    whole_ranks(series.parameters, series.points, "a run had {} ranks", remedy)
    check(iterations, series.parameters, series.points)
    settled = with_unsampled(settle(experiment, series))
    settled = replace(settled, series=with_stalls(settled.series, None if platform is None else float(platform.line)))
    series, uneven = without_uneven(settled.series)
    settled = replace(settled, series=series)
    how_timed, machine = "sampled" if settled.samples else "measured", "an unknown platform"
    where = machine if platform is None else f"platform {platform.name}"
    log("%d series of %d configurations; times are %s, on %s", len(series), len(series.points), how_timed, where)
    return settled, uneven


def _completed(
    model: Model,
    functions: Functions,
    application: Application,
    experiment: Experiment,
    sampled: Sampled,
    domains: Domains | None,
) -> Model:
    """The model with those parts of its equation that are learned from what the others predict."""
    scale, run_to_run = _scale(model, sampled)
    if application.resources is not None:
        resources = replace(application.resources, scale=scale, run_to_run=run_to_run)
        application = application.with_laws(resources=resources)
    inside = _inside(application, functions, sampled.series)
    if inside is not None:
        weights = application.weights
        for law, share in zip(weights.laws, weights.common, strict=True):
            inside = inside if share else inside.without(law)
        application = replace(application, inside=inside)
    application = replace(application, runs=Runs.of(sampled.series))
    model = _with(model, application) if application.known else model
    communication, remark = _communication(model, experiment, domains)
    if communication is not None:
        application = replace(application, communication=communication)
        model = _with(model, application, remark)
    others = _others(model, sampled.series, domains)
    return model if others is None else _with(model, replace(application, others=others))


def _inside(application: Application, functions: Functions, series: Series) -> Weights | None:
    """Weights of the laws between the runs; None without several laws, or with very many kernels."""
    if application.counted is None or sum(name == "time" for _, name in functions.rows) > MOST_INSIDE:
        return None
    asked = application.asked(functions.predict(series.points), functions, series.points)
    return inside_weights(asked, application.pace, series)


def _with(model: Model, application: Application, remark: str = "") -> Model:
    """The model with another equation, and with a note more where there is one."""
    notes = {"notes": [*model.extras.get("notes", []), remark]} if remark else {}
    return replace(model, extras={**model.extras, "application": application.to_dict(), **notes})


def _communication(model: Model, experiment: Experiment, domains: Domains | None) -> tuple[Communication | None, str]:
    """The messages with BF_comm, and what contradicts what in it; None where they have no time.

    Without a network calls are timed by fitted forms, where the program's wall time shows that its kernels do not hold
    the communication already.
    """
    sent, network = model.equation.communication, model.equation.network
    timed_runs = [] if sent is None else list(measured(experiment))
    if sent is None or not timed_runs:
        return None, ""
    points = configurations(timed_runs)
    keys = [tuple(point) for point in points.tolist()]
    parts = model.breakdown(points).parts
    waiting = dict(zip(keys, np.nan_to_num(parts["imbalance"]).tolist(), strict=True))
    kernels = [np.nan_to_num(parts[name]) for name in parts if name not in ("communication", "others")]
    computed = dict(zip(keys, np.sum(kernels, axis=0).tolist(), strict=True))
    if network is None:
        sent = replace(sent, forms=fit_forms(calls(experiment)))
        timed = [kernel for kernel, name in model.functions.rows if name == "time"]
        if sent.forms is None or not apart(timed_runs, computed, timed):
            return None, ""
    cost = sent.by_kind(points, network)
    each = [seconds for (_, way), seconds in cost.items() if way == STATED]
    stated = dict(zip(keys, np.sum(each, axis=0).tolist(), strict=True))
    remark = "" if network is None else contradiction(model.parameters, timed_runs, computed, stated)
    ways = (lambda _: {STATED: 1.0}) if network is None else network.ways
    node = _boundary(network, domains)
    took = taken(timed_runs, waiting, cost)
    blocking = fit_blocking(model.parameters, took, cost, ways, node)
    learned = replace(sent, blocking=blocking)
    if network is not None and blocking is not None:

        def priced(part: Taken) -> Communication:
            """The law of prices by some of the runs."""
            prices = sent.by_kind(part.points, network)
            return replace(sent, blocking=fit_blocking(model.parameters, part, prices, ways, node))

        uneven = np.array([waiting[tuple(point)] for point in took.points.tolist()])
        mean = np.array([computed[tuple(point)] for point in took.points.tolist()]) - uneven
        learned = replace(learned, replayed=weigh_replay(sent, network, took, priced, mean, uneven))
    return learned, remark


def _boundary(network: Network | None, domains: Domains | None) -> float:
    """Ranks that fill a node, where messages within one are described or the user says how many they are; else 0."""
    if network is None or ("intra" not in network.table and (domains is None or domains.filled)):
        return 0.0
    return network.node


def _others(model: Model, series: Series, domains: Domains | None) -> Others | None:
    """What the program takes outside of its kernels and messages, where its own time was measured."""
    keys = set(series.keys)
    if (WHOLE, "time") not in keys or sum(name == "time" for _, name in keys) < 2:
        return None
    broken = model.breakdown(series.points)
    parts = broken.parts
    # A kernel that is MPI's has the time of messages itself.
    apart_from_kernels = not any(communicates(kernel) for kernel, name in keys if name == "time")
    messages = parts["communication"] if apart_from_kernels else np.zeros(len(series.points))
    kernels = sum((seconds for name, seconds in parts.items() if name not in ("communication", "imbalance", "others")))
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.nan_to_num(1 + parts["imbalance"] / kernels, nan=1.0)
    return fit_others(series, factor, np.nan_to_num(messages), domains)


def _scale(model: Model, sampled: Sampled) -> tuple[float, float]:
    """Exact processor time over the sum of the kernels' predicted times, at the configurations measured together.

    Also how the logarithm of that ratio scatters over the configurations, as a normal standard deviation whose 90 % are
    those of the few configurations that show it.
    """
    series = sampled.series
    total = [i for i, key in enumerate(series.keys) if key == (WHOLE, "compute_cpu_time")]
    if not sampled.samples or not total or model.equation.resources is None:
        return 1.0, 0.0
    exact = np.nanmedian(series.values[total[0]], axis=1)
    broken = model.breakdown(series.points)
    predicted = broken.computing
    known = np.isfinite(exact) & np.isfinite(predicted) & (exact > 0) & (predicted > 0)
    count = int(known.sum())
    if not count:
        return 1.0, 0.0
    ratio = float(np.clip(exact[known].sum() / predicted[known].sum(), 0.5, 2.0))
    if count < 2:
        return ratio, 0.0
    deviations = np.log(exact[known] / (ratio * predicted[known]))
    return ratio, float(np.sqrt((deviations**2).sum() / (count - 1)) * special.stdtrit(count - 1, 0.95) / TAIL)


def _stated(experiment: Experiment, series: Series, volumes: Sequence[str]) -> Stated | None:
    """Volumes as the user knows them, held against those measured."""
    stated = Stated.read(volumes, series.parameters, series.points)
    if stated is None:
        return None
    messages = message_series(experiment) if "ranks" in experiment.parameters else None
    sent = series if messages is None else messages
    rows = np.array([name == BYTES for name in sent.metrics], dtype=bool)
    names = [kernel for kernel, yes in zip(sent.kernels, rows.tolist(), strict=True) if yes]
    stated.check(names, sent.points, reduce(sent.values[rows], "median", axis=2))
    return stated


def _staircase(
    units: WholeUnits, series: Series, over_ranks: Reduction | Mapping[str, Reduction] | None, **settings: Any
) -> Staircase:
    """Functions of what the busiest rank carries, over the ranks that would all be as full."""
    how = _reductions(series, over_ranks)
    busiest = tuple(name for name, reduction in how.items() if reduction == "max")
    rows = np.array([name in busiest for name in series.metrics], dtype=bool)
    if not rows.any():
        return Staircase(units, busiest, None)
    return Staircase(units, busiest, fit_varied(units.series(series.select(rows)), **settings))


def _reductions(series: Series, over_ranks: Reduction | Mapping[str, Reduction] | None) -> dict[str, Reduction]:
    """How each metric was reduced over ranks."""
    if over_ranks is None or isinstance(over_ranks, Mapping):
        by_metric = over_ranks or {}
        return {name: by_metric.get(name, metric(name).over_ranks) for name in dict.fromkeys(series.metrics)}
    return dict.fromkeys(series.metrics, over_ranks)


def model_of(series: Series, application: str, over_repetitions: str = "auto", **settings: Any) -> Model:
    """Make a model of series; for the settings see :func:`ranksight.model.fitting.fit_series.fit_series`."""
    fitted = fit_varied(series, over_repetitions=over_repetitions, **settings)
    located = reduce(series.values, "median" if over_repetitions == "auto" else over_repetitions, axis=2)
    fitted_values = fitted.at_training(series.points)
    names, kernels = (np.array(each, dtype=object) for each in (series.metrics, series.kernels))
    shares = np.zeros(len(series))
    common: dict[str, float] = {}
    for name in dict.fromkeys(series.metrics):
        rows = np.flatnonzero((names == name) & (kernels != WHOLE))
        if not len(rows):
            continue
        size = np.where(np.isfinite(located[rows]), np.abs(located[rows]), 0.0)
        # Timers that contain each other are parts of the program, and of no sum.
        program = np.flatnonzero((names == name) & (kernels == WHOLE))
        nested = series.provenance.get(name, "").startswith(INCLUSIVE) and len(program) > 0
        total = np.nan_to_num(located[program[0]]) if nested else size.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            each = np.where(total > 0, size / np.where(total > 0, total, 1.0), 0.0)
        known = np.where(total > 0, cores(series.points, series.parameters), 0.0)
        shares[rows] = each[:, known == known.max()].mean(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            common[name] = whole.correlation(located[rows] / fitted_values[rows] - 1, fitted_values[rows])
    return Model(application, series.parameters, fitted, series.points, shares, common, dict(series.provenance))
