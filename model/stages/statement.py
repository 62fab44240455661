"""What a fit is asked for: the experiment, the machine, what the user knows of the work, and settings of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.metrics import Reduction
from ranksight.model.search.offer import Offer
from ranksight.model.series.domains import Domains
from ranksight.model.structure.coordinates import Coordinates
from ranksight.model.structure.wholeunits import WholeUnits
from ranksight.platforms import Platform, load


class Search(TypedDict, total=False):
    """Settings of :func:`~ranksight.model.fitting.fit_series.fit_series`."""

    space: str | Offer
    over_repetitions: str
    intervals: bool
    segments: bool
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
    domains: Domains | None  # how ranks were placed; None where it is not known which cores share memory
    units: WholeUnits | None  # that the work comes in
    coordinates: Coordinates | None  # how the parameters are computed from those of the runs; None where they are those
    volumes: tuple[str, ...]  # texts ``KERNEL=FORMULA``
    clock: float | None  # Hz, of runs without times
    over_ranks: Reduction | Mapping[str, Reduction] | None
    folding: bool  # whether kernels too small to matter become one
    keep: frozenset[str]  # kernels that stay whatever their size
    search: Search


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
