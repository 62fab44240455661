"""The equation of the program's time: laws of its kernels' times, scaled to the runs and weighed by them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranksight.core import special
from ranksight.core.experiment import WHOLE
from ranksight.core.log import log
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.fit_application import fit_application, in_words
from ranksight.model.application.runs import Runs
from ranksight.model.laws.weighing import MOST_INSIDE, inside_weights
from ranksight.model.predicting import Learned, Remarks
from ranksight.model.resource.clock import clocked
from ranksight.model.resource.equation import Machine
from ranksight.model.stages.growing import Growth
from ranksight.model.stages.measuring import Measured
from ranksight.model.stages.statement import Statement
from ranksight.model.structure.structured import exact_keys
from ranksight.model.uncertainty.forecast import TAIL


@dataclass(frozen=True)
class Clocked:
    """The machine that was measured, at the clock of the runs."""

    machine: Machine | None  # None where no platform is known
    note: str


def clock_machine(statement: Statement, measured: Measured) -> Clocked:
    """Take the clock of the runs for the machine's; InputError where it cannot have had it."""
    if statement.platform is None:
        return Clocked(None, "")
    return Clocked(*clocked(Machine.of(statement.platform), measured.experiment))


def learn_equation(statement: Statement, measured: Measured, growth: Growth, clocked: Clocked) -> Application:
    """Learn the laws of the kernels' times, and what is measured of the other parts."""
    neighbours = growth.functions.neighbours
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
        exact_keys(measured.series, growth.functions.fitted) | (set() if neighbours is None else neighbours.exact),
        **statement.search,
    )
    nested = measured.inclusive and (WHOLE, "time") in growth.functions.rows
    spread = 0.0 if measured.clock is None else measured.clock.spread
    application = replace(application, clock_spread=spread, nested=nested)
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
    if resources is None:
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
    """Weigh the laws between the runs, where there are several and not very many kernels; keep the runs."""
    functions, series = growth.functions, measured.series
    known = replace(application, runs=Runs.of(series))
    if application.counted is None or sum(name == "time" for _, name in functions.rows) > MOST_INSIDE:
        return known
    asked = application.asked(functions.predict(series.points), functions, series.points)
    inside = inside_weights(asked, application.pace, series)
    if inside is None:
        return known
    for law, share in zip(application.weights.laws, application.weights.common, strict=True):
        inside = inside if share else inside.without(law)
    return replace(known, inside=inside)
