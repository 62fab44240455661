"""From an experiment to its model, stage by stage."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, Unpack, get_type_hints

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, read
from ranksight.core.leftout import warning
from ranksight.core.registry import Registry
from ranksight.core.run import TOTAL
from ranksight.model.application.agreement import find_agreement, message_series
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.fitted_model import Model
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.predicting import Remarks
from ranksight.model.resource.equation import Machine
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.series.reducing import Series
from ranksight.model.stages.learning import (
    Clocked,
    Growth,
    clock_machine,
    effective,
    learn_equation,
    learn_growth,
    learn_others,
    price_messages,
    scale_samples,
    shares_of,
    weigh_domain,
    weigh_inside,
)
from ranksight.model.stages.measuring import (
    Measured,
    Settings,
    Statement,
    assumed_platform,
    domains_of,
    measure,
    stated_of,
)
from ranksight.model.structure.coordinates import AS_MEASURED, Coordinates
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.neighbourfit import dimensions_of
from ranksight.model.structure.wholeunits import NO_UNITS, WholeUnits
from ranksight.platforms import Platform, load
from ranksight.platforms.writing import dumps

Observer = Callable[[Experiment, Series, Platform | None, Machine], dict[str, Any]]
"""Of an experiment, its means over ranks, and the machine as described and at the clock of the runs: plain data."""
OBSERVERS: Registry[Observer] = Registry("observer", packages=("ranksight.analysis",))
"""What analyses keep of the measurements, by name, for questions that the model does not know."""


def conclude(
    statement: Statement, measured: Measured, growth: Growth, clocked: Clocked, application: Application
) -> Model:
    """Put together what was learned, with what analyses keep of the measurements."""
    experiment, series = measured.experiment, measured.series
    messages = message_series(experiment) if application.communication else None
    total = next((run.environment[TOTAL] for run in experiment.runs if TOTAL in run.environment), "")
    notes = tuple(filter(None, (measured.clock.remark(), clocked.note, *measured.notes)))
    observed = {name: OBSERVERS[name](experiment, series, statement.platform, clocked.machine) for name in OBSERVERS}
    return Model(
        experiment.application,
        growth.functions,
        series.points,
        growth.shares,
        growth.correlation,
        dict(series.provenance),
        effective(application),
        Remarks(warning(experiment), measured.turnover, total, notes, measured.contradictions),
        statement.coordinates,
        growth.staircase,
        measured.selection,
        measured.clock,
        measured.energy,
        find_agreement(series, application.communication, messages),
        dumps(statement.platform) if statement.platform else "",
        observed={name: content for name, content in observed.items() if content},
    )


STAGES: tuple[Callable[..., Any], ...] = (
    measure,
    learn_growth,
    clock_machine,
    learn_equation,
    scale_samples,
    weigh_inside,
    weigh_domain,
    price_messages,
    learn_others,
    conclude,
)
"""What a fit does, in order. Each stage is given the records that its parameters are annotated with, as the stages
before it left them, and returns one, which takes the place of another of its type."""


Record = TypeVar("Record")


class Records:
    """Records of a fit by their types."""

    def __init__(self, *records: object) -> None:
        self._records: dict[type, object] = {type(record): record for record in records}

    def apply(self, stage: Callable[..., Any]) -> None:
        """Add what a stage returns."""
        *needed, returned = get_type_hints(stage).values()
        self._records[returned] = stage(*(self._records[kind] for kind in needed))

    def __getitem__(self, kind: type[Record]) -> Record:
        record = self._records[kind]
        assert isinstance(record, kind)
        return record


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
    scaling: Literal["strong", "weak"] | None = None,
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
        (:mod:`ranksight.model.resource.clock`); the platform's when not given.
    all_kernels : bool
        Keep every kernel; otherwise those that are too small to matter are summed into one
        (:mod:`ranksight.model.series.folding`).
    scaling : str, optional
        Whether more ranks divide the problem (``strong``) or have as much each (``weak``), where the measurements do
        not show it.
    **settings
        See :class:`ranksight.model.stages.measuring.Settings`.

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
        scaling=scaling,
        **settings,
    )[0]


def assemble(
    experiment: Experiment,
    metrics: Sequence[str] | None = None,
    *,
    platform: Platform | None = None,
    domains: Domains = NOT_DESCRIBED,
    units: WholeUnits = NO_UNITS,
    coordinates: Coordinates = AS_MEASURED,
    volumes: Sequence[str] = (),
    clock: float | None = None,
    all_kernels: bool = False,
    scaling: str | None = None,
    keep: Collection[str] = (),
    **settings: Unpack[Settings],
) -> tuple[Model, Series]:
    """Fit everything that an experiment carries.

    Arguments as in :func:`fit`, but `platform` is one that was loaded, `domains` from :func:`domains_of`, `units` and
    `coordinates` from :func:`stated_of`, and `volumes` are texts ``KERNEL=FORMULA``. `keep`: kernels to keep whatever
    their size; those that `volumes` names are among them. Without a platform kernels' times are functions alone and
    messages have no time; without domains times grow on as they did. The series are those that functions were fitted
    to.
    """
    experiment = coordinates.view(experiment)
    settings.setdefault("grid", dimensions_of(experiment))
    over_ranks = settings.pop("over_ranks", None)
    statement = Statement(
        experiment,
        None if metrics is None else tuple(metrics),
        platform,
        domains,
        units,
        coordinates,
        tuple(volumes),
        clock,
        over_ranks,
        not all_kernels,
        frozenset(keep),
        settings,
    )
    records = Records(statement)
    for stage in STAGES:
        records.apply(stage)
    model = records[Model]
    if scaling is not None:
        model = replace(model, observed={**model.observed, "scaling": scaling})
    return model, records[Measured].series


def model_of(series: Series, application: str, over_repetitions: str = "auto", **settings: Any) -> Model:
    """Make a model of series; for the settings see :func:`ranksight.model.fitting.fit_series.fit_series`."""
    fitted = fit_varied(series, over_repetitions=over_repetitions, **settings)
    shares, correlation = shares_of(series, fitted, over_repetitions)
    return Model(application, Functions(fitted), series.points, shares, correlation, dict(series.provenance))
