"""The measurements of an experiment as series: its runs as they are seen, and the energy that was metered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ranksight.core.experiment import Experiment
from ranksight.core.log import log
from ranksight.core.metrics import Reduction, metric
from ranksight.model.application.others import overlap, sometimes
from ranksight.model.application.waiting import parted
from ranksight.model.application.whole import without_sums
from ranksight.model.energy.stored import Energy, fit_energy, unmetered
from ranksight.model.fitting.iterations import check
from ranksight.model.questions import whole_ranks
from ranksight.model.resource.contradiction import contradictions
from ranksight.model.resource.cycle_times import Clock, Timed
from ranksight.model.resource.derived import with_stalls
from ranksight.model.resource.sampled_times import Sampled, settle
from ranksight.model.resource.unsampled import with_unsampled
from ranksight.model.series.folding import Selection, select
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.sampling import means_of_samples
from ranksight.model.series.turnover import turnover
from ranksight.model.stages.statement import Statement
from ranksight.model.structure.indivisible import indivisible
from ranksight.model.structure.stated import BETWEEN
from ranksight.model.structure.uneven import without_uneven


@dataclass(frozen=True)
class Measured:
    """The measurements of an experiment."""

    experiment: Experiment  # with times where cycles were counted alone, and kernels too small to matter as one
    sampled: Sampled  # its series, and the samples behind them
    over_ranks: Mapping[str, Reduction]  # how each metric was reduced over ranks
    selection: Selection  # kernels that are one
    clock: Clock | None  # what made times of cycles
    energy: Energy | None  # laws of power, where energy was metered and times were measured
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
    seen = parted(experiment) if clock is None else Timed.of(experiment, clock)
    stated_names = [text.rpartition("=")[0].strip() for text in statement.volumes]
    named_kernels = {*statement.keep, *stated_names, *(name.rpartition(BETWEEN)[0] for name in stated_names)}
    changing = turnover(seen)
    inclusive = any(run.inclusive("time") for run in seen.runs)  # sums of timers that hold each other mean nothing
    folding = statement.folding and not inclusive
    selection = select(seen, statement.metrics, named_kernels) if folding else Selection()
    seen = selection.view(seen)
    how = means_of_samples(seen, statement.over_ranks)
    sampled, uneven = _series(seen, statement, how)
    energy = _energy(experiment, sampled.series, statement)
    if energy is not None:
        sampled = replace(sampled, series=unmetered(sampled.series))
    series = sampled.series
    units = indivisible(seen) if statement.units is None else ""
    notes = tuple(filter(None, (units, uneven, overlap(series), sometimes(series))))
    reduced = _reductions(series, how)
    clashes = contradictions(series)
    return Measured(seen, sampled, reduced, selection, clock, energy, inclusive, changing, notes, clashes)


def _series(
    experiment: Experiment, statement: Statement, how: Reduction | Mapping[str, Reduction] | None
) -> tuple[Sampled, str]:
    """The series that functions are fitted to, and the note on values left out."""
    platform = statement.platform
    series = without_sums(series_from_experiment(experiment, statement.metrics, how))
    remedy = "ranks are whole numbers from 1: import it again, or name that parameter otherwise"
    whole_ranks(series.parameters, series.points, "a run had {} ranks", remedy)
    check(statement.search.get("iterations"), series.parameters, series.points)
    settled = with_unsampled(settle(experiment, series))
    settled = replace(settled, series=with_stalls(settled.series, None if platform is None else float(platform.line)))
    series, uneven = without_uneven(settled.series)
    settled = replace(settled, series=series)
    how_timed, machine = "sampled" if settled.samples else "measured", "an unknown platform"
    where = machine if platform is None else f"platform {platform.name}"
    log("%d series of %d configurations; times are %s, on %s", len(series), len(series.points), how_timed, where)
    return settled, uneven


def _energy(experiment: Experiment, series: Series, statement: Statement) -> Energy | None:
    """The laws of power, where energy was metered and the program's time is modelled."""
    if "time" not in series.metrics:
        return None
    domains = statement.domains
    placement, ranks = ("compact", None) if domains is None else (domains.placement, domains.ranks_per_node)
    return fit_energy(experiment, statement.platform, placement, ranks)


def _reductions(series: Series, over_ranks: Reduction | Mapping[str, Reduction] | None) -> dict[str, Reduction]:
    """How each metric was reduced over ranks."""
    if over_ranks is None or isinstance(over_ranks, Mapping):
        by_metric = over_ranks or {}
        return {name: by_metric.get(name, metric(name).over_ranks) for name in dict.fromkeys(series.metrics)}
    return dict.fromkeys(series.metrics, over_ranks)
