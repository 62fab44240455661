"""What a fit learns: how every metric of every kernel grows, and the equation of the program's time.

Functions come first, with what is known of their structure. Of the equation, the laws of the kernels' times are scaled
to the runs and weighed by them; the time of messages and of what is outside of kernels and messages follows from what
the other parts predict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ranksight.comm.waiting import shares_cores
from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.core.experiment import WHOLE
from ranksight.core.log import heard, log
from ranksight.core.mpi import communicates
from ranksight.core.records import dataclass
from ranksight.core.run import INCLUSIVE
from ranksight.model.application import whole
from ranksight.model.application.agreement import message_series
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.fit_application import fit_application, in_words
from ranksight.model.application.others import fit_others
from ranksight.model.application.runs import Runs
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.kernel_time.counted import timed_alone
from ranksight.model.laws.law import BANDWIDTH, FUNCTION
from ranksight.model.laws.weighing import MOST_INSIDE, by_misfit, inside_weights
from ranksight.model.predicting import Learned, Remarks
from ranksight.model.resource.clock import clocked
from ranksight.model.resource.equation import NO_MACHINE, Machine
from ranksight.model.series.computation import cores
from ranksight.model.series.domains import NOT_DESCRIBED
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.stages.measuring import Measured, Statement
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.locality import learn_locality
from ranksight.model.structure.stated import BYTES, Stated
from ranksight.model.structure.structured import exact_keys, structured
from ranksight.model.structure.wholeunits import ALL_EVEN, Share, Staircase
from ranksight.model.uncertainty.forecast import TAIL


@dataclass(frozen=True)
class Growth:
    """How metrics grow."""

    functions: Functions  # of all series
    shares: Array  # (s,): of each series in the sum of its metric over kernels
    correlation: Mapping[str, float]  # for each metric that of its kernels' noise
    stated: Stated  # volumes of messages as the user knows them
    staircase: Staircase  # whole units that the work comes in


def learn_growth(statement: Statement, measured: Measured) -> Growth:
    """Fit the functions of all series, those of whole units, and what is known of their structure."""
    experiment, series, search = measured.experiment, measured.series, statement.search
    stated = _stated(statement, measured)
    # Counts show how ranks of a domain act on each other; times alone leave it to their shape.
    domains = statement.domains if {"cycles", "instructions", "bytes_mem"}.isdisjoint(series.metrics) else NOT_DESCRIBED
    fitted = fit_varied(series, domains=domains, **search)
    insufficient = int((fitted.status != 0).sum())
    log("functions fitted in space %s: %d with insufficient data", fitted.space, insufficient)
    shares, correlation = shares_of(series, fitted, search.get("over_repetitions", "auto"))
    functions = structured(experiment, series, fitted, lambda: experiment.tables("counters"), stated, True, **search)
    if "loads" in series.metrics:
        functions = replace(functions, locality=learn_locality(experiment, series))
    return Growth(functions, shares, correlation, stated, _staircase(statement, measured))


def shares_of(series: Series, fitted: Fitted, over_repetitions: str) -> tuple[Array, dict[str, float]]:
    """Share (s,) of each series in the sum of its metric over kernels at the runs on most cores, and for each metric
    the correlation of its kernels' noise."""
    located = reduce(series.values, "median" if over_repetitions == "auto" else over_repetitions, axis=2)
    fitted_values = fitted.at_training(series.points)
    names, kernels = (np.array(each, dtype=object) for each in (series.metrics, series.kernels))
    shares, common = np.zeros(len(series)), dict[str, float]()
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
    return shares, common


def _stated(statement: Statement, measured: Measured) -> Stated:
    """Volumes as the user knows them, held against those measured."""
    series, experiment = measured.series, measured.experiment
    stated = Stated.read(statement.volumes, series.parameters, series.points)
    if not stated.texts:
        return stated
    sent = ("ranks" in experiment.parameters and message_series(experiment)) or series
    rows = np.array([name == BYTES for name in sent.metrics], dtype=bool)
    names = [kernel for kernel, yes in zip(sent.kernels, rows.tolist(), strict=True) if yes]
    stated.check(names, sent.points, reduce(sent.values[rows], "median", axis=2))
    return stated


def _staircase(statement: Statement, measured: Measured) -> Staircase:
    """Functions of what the busiest rank carries, over the ranks that would all be as full."""
    if not statement.units:
        return ALL_EVEN
    series = measured.series
    busiest = tuple(name for name, reduction in measured.over_ranks.items() if reduction == "max")
    rows = np.array([name in busiest for name in series.metrics], dtype=bool)
    if not rows.any():
        return Staircase(statement.units, busiest, None)
    fitted = fit_varied(statement.units.series(series.select(rows)), **statement.search)
    return Staircase(statement.units, busiest, fitted)


@dataclass(frozen=True)
class Clocked:
    """The machine that was measured, at the clock of the runs."""

    machine: Machine
    note: str


def clock_machine(statement: Statement, measured: Measured) -> Clocked:
    """Take the clock of the runs for the machine's; InputError where it cannot have had it."""
    if not statement.platform:
        return Clocked(NO_MACHINE, "")
    return Clocked(*clocked(Machine.of(statement.platform), measured.experiment))


def learn_equation(statement: Statement, measured: Measured, growth: Growth, clocked: Clocked) -> Application:
    """Learn the laws of the kernels' times, and what is measured of the other parts."""
    application = fit_application(
        measured.experiment,
        measured.sampled,
        statement.platform,
        clocked.machine,
        statement.domains,
        growth.staircase,
        growth.stated,
        measured.over_ranks.get("time", ""),
        measured.over_ranks.get("cycles", ""),
        exact_keys(measured.series, growth.functions.fitted) | growth.functions.lawful,
        **statement.search,
    )
    nested = measured.inclusive and (WHOLE, "time") in growth.functions.rows
    application = replace(application, clock_spread=measured.clock.spread, nested=nested)
    if heard():
        log("the program's time: %s", in_words(application))
    return application


def draft(measured: Measured, growth: Growth, application: Application) -> Learned:
    """What predicts with an equation of which some parts are not learned yet."""
    return Learned(
        measured.experiment.application,
        growth.functions,
        measured.series.points,
        growth.shares,
        growth.correlation,
        equation=effective(application),
        remarks=Remarks(contradictions=measured.contradictions),
        staircase=growth.staircase,
    )


def effective(application: Application) -> Application:
    """The equation, where anything but functions is known of the program's time."""
    return application if application.known else Application()


def scale_samples(measured: Measured, growth: Growth, application: Application) -> Application:
    """Scale sampled times to the exact processor time."""
    resources = application.resources
    if not resources:
        return application
    scale, run_to_run = _scale(measured, growth, application)
    return application.with_laws(resources=replace(resources, scale=scale, run_to_run=run_to_run))


def _scale(measured: Measured, growth: Growth, application: Application) -> tuple[float, float]:
    """Exact processor time over the sum of the kernels' predicted times, at the configurations measured together.

    Also how the logarithm of that ratio scatters over the configurations, as a normal standard deviation whose 90 % are
    those of the few configurations that show it.
    """
    series = measured.series
    total = [i for i, key in enumerate(series.keys) if key == (WHOLE, "compute_cpu_time")]
    if not measured.sampled.samples or not total:
        return 1.0, 0.0
    exact = np.nanmedian(series.values[total[0]], axis=1)
    predicted = draft(measured, growth, application).breakdown(series.points).computing
    known = np.isfinite(exact) & np.isfinite(predicted) & (exact > 0) & (predicted > 0)
    count = int(known.sum())
    if not count:
        return 1.0, 0.0
    ratio = float(np.clip(exact[known].sum() / predicted[known].sum(), 0.5, 2.0))
    if count < 2:
        return ratio, 0.0
    deviations = np.log(exact[known] / (ratio * predicted[known]))
    return ratio, float(np.sqrt((deviations**2).sum() / (count - 1)) * special.stdtrit(count - 1, 0.95) / TAIL)


def weigh_inside(measured: Measured, growth: Growth, application: Application) -> Application:
    """Weigh the laws between the runs, and those of messages by these too, where there are several and not very many
    kernels; keep the runs."""
    functions, series = growth.functions, measured.series
    known = replace(application, runs=Runs.of(series))
    if not application.laws.learned or sum(name == "time" for _, name in functions.rows) > MOST_INSIDE:
        return known
    predicted = functions.predict(series.points)
    asked = application.asked(predicted, functions, series.points, Share.even(series.points, predicted))
    weighed = inside_weights(asked, application.pace, series, application.weights)
    if weighed is None:
        return known
    inside, weights = weighed
    for law, share in zip(application.weights.laws, application.weights.common, strict=True):
        inside = inside if share else inside.without(law)
    return replace(known, inside=inside, weights=weights)


def weigh_domain(growth: Growth, application: Application) -> Application:
    """Weigh what times alone of one memory domain leave open by how closely its law and the function meet all runs.

    Held-out runs of the domain say little of it: both go on there, and part on further domains.
    """
    sharing, counted = application.sharing, application.counted
    if sharing is None or not counted.where.alone:
        return application
    timed = timed_alone(growth.functions)
    at = np.flatnonzero([kernel in timed for kernel in sharing.kernels])
    if not len(at):
        return application
    kernels = tuple(sharing.kernels[row] for row in at)
    by_function = growth.functions.fitted.press[[growth.functions.rows[kernel, "time"] for kernel in kernels]]
    filling = by_misfit(by_function, sharing.misfit[at], sharing.freedom[at])
    weights = application.weights.having(kernels, {BANDWIDTH: filling, FUNCTION: 1 - filling})
    return replace(application, weights=weights)


def price_messages(statement: Statement, measured: Measured, growth: Growth, application: Application) -> Application:
    """Learn BF_comm, where messages were traced."""
    if not application.communication:
        return application
    from ranksight.model.stages.pricing import priced

    return priced(measured, growth.functions, application, statement.domains, draft(measured, growth, application))


def learn_others(statement: Statement, measured: Measured, growth: Growth, application: Application) -> Application:
    """Learn what the program takes outside of its kernels and messages, where its own time was measured."""
    series = measured.series
    keys = set(series.keys)
    wall = _program_time(measured)
    if wall is None or not any(name == "time" and kernel != WHOLE for kernel, name in keys):
        return application
    drafted = draft(measured, growth, application).breakdown(series.points)
    # A kernel that is MPI's has the time of messages itself.
    separate = not any(communicates(kernel) for kernel, name in keys if name == "time")
    messages = np.nan_to_num(drafted.parts["communication"]) if separate else np.zeros(len(series.points))
    others = fit_others(series, wall, np.nan_to_num(drafted.busiest, nan=1.0), messages, statement.domains)
    return application if others is None else replace(application, others=others)


def _program_time(measured: Measured) -> Array | None:
    """Seconds (n, r) of the whole program; None where they were not measured.

    What the clock says of a program whose ranks had to wait for cores is the scheduler's, and is left out.
    """
    series = measured.series
    rows = {name: at for at, (kernel, name) in enumerate(series.keys) if kernel == WHOLE}
    if "time" in rows:
        return np.asarray(series.values[rows["time"]])
    if "wall_time" not in rows:
        return None
    experiment, names = measured.experiment, measured.experiment.parameters
    crowded = {run.point(names) for run in experiment.runs if shares_cores(run, experiment.table(run, "counters"))}
    shared = np.array([tuple(point) in crowded for point in series.points.tolist()])
    return np.where(shared[:, None], np.nan, series.values[rows["wall_time"]])
