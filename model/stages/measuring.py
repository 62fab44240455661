"""What a fit is asked for, and the measurements as series: runs as they are seen, and the energy that was metered.

The statement holds the experiment, the machine, what the user knows of the work, and settings of the search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.log import log
from ranksight.core.metrics import Reduction, metric
from ranksight.core.records import dataclass
from ranksight.model.application.waiting import parted, unworked
from ranksight.model.application.whole import overlap, sometimes, without_sums
from ranksight.model.energy.stored import NO_ENERGY, Energy, fit_energy, unmetered
from ranksight.model.fitting.iterations import check
from ranksight.model.questions import whole_ranks
from ranksight.model.resource.clock import Clock, Timed
from ranksight.model.resource.counters import LINE, Sampled, contradictions, settle, with_stalls, with_unsampled
from ranksight.model.search.offer import Offer
from ranksight.model.series.absences import with_absences
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.series.folding import Selection, select
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.reduction import of_busiest
from ranksight.model.series.sampling import means_of_samples
from ranksight.model.structure.coordinates import Coordinates
from ranksight.model.structure.rank_notes import indivisible, turnover
from ranksight.model.structure.stated import BETWEEN
from ranksight.model.structure.wholeunits import NO_UNITS, WholeUnits
from ranksight.platforms import Platform, load


class Search(TypedDict, total=False):
    """Settings of :func:`~ranksight.model.fitting.fit_series.fit_series`."""

    space: str | Offer
    over_repetitions: str
    intervals: bool
    iterations: str | None
    grid: Mapping[int, float] | None
    jobs: int
    dask: str | None


class Settings(Search, total=False):
    """Further settings of :func:`ranksight.fit`: those of :func:`~ranksight.model.fitting.fit_series.fit_series`, and
    ``over_ranks`` of :func:`ranksight.model.series.reducing.series_from_experiment`."""

    over_ranks: Reduction | Mapping[str, Reduction] | None


@dataclass(frozen=True)
class Statement:
    """What a fit is asked for, over the parameters of the model."""

    experiment: Experiment
    metrics: tuple[str, ...] | None  # all where None
    platform: Platform | None  # the machine measured; None where it is not known
    domains: Domains  # how ranks were placed
    units: WholeUnits  # that the work comes in
    coordinates: Coordinates  # how the parameters are computed from those of the runs
    volumes: tuple[str, ...]  # texts ``KERNEL=FORMULA``
    clock: float | None  # Hz, of runs without times
    over_ranks: Reduction | Mapping[str, Reduction] | None
    folding: bool  # whether kernels too small to matter become one
    keep: frozenset[str]  # kernels that stay whatever their size
    search: Search


def stated_of(
    experiment: Experiment, derive: Mapping[str, str] | Sequence[str], work: str | None, units: str | None
) -> tuple[Coordinates, WholeUnits]:
    """What the user states of the work: parameters computed from those of the runs, and its whole units.

    Raises InputError when a formula cannot be used, or both `work` and `units` are given.
    """
    if work is not None and units is not None:
        raise InputError("--work and --units both state the work", "give the one that the program is written by")
    coordinates = Coordinates.of(experiment, derive, work)
    over = coordinates.parameters or experiment.parameters
    return coordinates, NO_UNITS if units is None else WholeUnits.read(units, over)


def domains_of(
    platform: Platform | None, placement: str, ranks_per_node: int | None, cores_per_domain: int | None
) -> Domains:
    """The ccNUMA domains of the machine measured; not described where neither a platform nor their cores are named.

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
    if cores_per_domain is not None and (not platform or platform.layout.cores_per_domain != cores_per_domain):
        most = ranks_per_node or (platform.cores if platform else None)
        return Domains.inferred(cores_per_domain, placement, most)
    return Domains.of(platform, placement, ranks_per_node) if platform else NOT_DESCRIBED


def assumed_platform(experiment: Experiment) -> Platform | None:
    """The generic platform where loads by cache level were counted, else none: times are then functions alone."""
    return load("generic") if "loads_l1" in experiment.metrics() else None


@dataclass(frozen=True)
class Measured:
    """The measurements of an experiment."""

    experiment: Experiment  # with times where cycles were counted alone, and kernels too small to matter as one
    sampled: Sampled  # its series, and the samples behind them
    over_ranks: Mapping[str, Reduction]  # how each metric was reduced over ranks
    selection: Selection  # kernels that are one
    clock: Clock  # what made times of cycles
    energy: Energy  # laws of power, where energy was metered and times were measured
    inclusive: bool  # whether times of kernels hold those of others
    turnover: str
    notes: tuple[str, ...]
    contradictions: Mapping[str, str]  # how counters of a kernel contradict each other

    @property
    def series(self) -> Series:
        """What functions are fitted to."""
        return self.sampled.series


def measure(statement: Statement) -> Measured:
    """Read an experiment once, as series.

    Raises InputError where ranks, iterations or clocks are not what they have to be.
    """
    experiment = statement.experiment
    clock = Clock.of(statement.clock, statement.platform, experiment)
    seen = Timed.of(experiment, clock) if clock else parted(experiment)
    stated_names = [text.rpartition("=")[0].strip() for text in statement.volumes]
    named_kernels = {*statement.keep, *stated_names, *(name.rpartition(BETWEEN)[0] for name in stated_names)}
    changing = turnover(seen)
    inclusive = any(run.inclusive("time") for run in seen.runs)  # sums of timers that hold each other mean nothing
    folding = statement.folding and not inclusive
    selection = select(seen, statement.metrics, named_kernels) if folding else Selection()
    seen = selection.view(seen)
    how = means_of_samples(seen, statement.over_ranks)
    sampled = _series(seen, statement, how)
    energy = _energy(experiment, sampled.series, statement)
    if energy is not NO_ENERGY:
        sampled = replace(sampled, series=unmetered(sampled.series))
    series = sampled.series
    units = "" if statement.units else indivisible(seen)
    notes = tuple(filter(None, (units, overlap(series), sometimes(series), unworked(experiment))))
    reduced = _reductions(seen, series, how)
    clashes = contradictions(series)
    return Measured(seen, sampled, reduced, selection, clock, energy, inclusive, changing, notes, clashes)


def _series(experiment: Experiment, statement: Statement, how: Reduction | Mapping[str, Reduction] | None) -> Sampled:
    """The series that functions are fitted to."""
    platform = statement.platform
    series = without_sums(series_from_experiment(experiment, statement.metrics, how))
    series = with_absences(series, experiment.counted())
    remedy = "ranks are whole numbers from 1: import it again, or name that parameter otherwise"
    whole_ranks(series.parameters, series.points, "a run had {} ranks", remedy)
    if iterations := statement.search.get("iterations"):
        check(iterations, series.parameters, series.points)
    settled = with_unsampled(settle(experiment, series))
    settled = replace(settled, series=with_stalls(settled.series, float(platform.line) if platform else LINE))
    how_timed, machine = "sampled" if settled.samples else "measured", "an unknown platform"
    where = f"platform {platform.name}" if platform else machine
    log("%d series of %d configurations; times are %s, on %s", len(series), len(series.points), how_timed, where)
    return settled


def _energy(experiment: Experiment, series: Series, statement: Statement) -> Energy:
    """The laws of power, where energy was metered and the program's time is modelled."""
    if "time" not in series.metrics:
        return NO_ENERGY
    domains = statement.domains
    placement, ranks = domains.placement, domains.ranks_per_node if domains else None
    return fit_energy(experiment, statement.platform, placement, ranks)


def _reductions(
    experiment: Experiment, series: Series, over_ranks: Reduction | Mapping[str, Reduction] | None
) -> dict[str, Reduction]:
    """How each metric was reduced over ranks, here or where its values come from."""
    names = dict.fromkeys(series.metrics)
    if over_ranks is not None and not isinstance(over_ranks, Mapping):
        return dict.fromkeys(names, over_ranks)
    largest: dict[str, Reduction] = dict.fromkeys(of_busiest(experiment, names), "max")
    usual = {name: metric(name).over_ranks for name in names}
    return {**usual, **{name: how for name, how in (over_ranks or {}).items() if name in names}, **largest}
