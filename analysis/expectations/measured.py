"""What was measured, laid out for expectations: chosen metrics, parameters held, names looked up."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence

import numpy as np

from ranksight.analysis.expectations.document import Expectation, Rule, Study, nearest
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, Experiment
from ranksight.core.metrics import REDUCTIONS, Reduction, metric
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.reduction import NAMES


def measured(experiment: Experiment, study: Study, metrics: Sequence[str] | None = None) -> Series:
    """The series that a study speaks of, over the parameters that vary.

    `metrics`: those of the study when not given. Raises InputError when a metric or a parameter is unknown (the nearest
    are named), a value to hold was not measured, or a parameter varies that no expectation names and nothing holds.
    """
    wanted = tuple(dict.fromkeys(metrics or _metrics(study)))
    present = experiment.metrics()
    for name in wanted:
        if name not in present:
            raise InputError(
                f"{experiment.path} holds no metric {name!r}", nearest(name, present, "measure or import runs with it")
            )
    for stated, known, what in (
        (study.over_ranks, REDUCTIONS, "ranks"),
        (study.over_repetitions, ("auto", *NAMES), "repetitions"),
    ):
        if stated is not None and stated not in known:
            raise InputError(
                f"{study.source}: no reduction of {what} is named {stated!r}", f"known: {', '.join(known)}"
            )
    how: Reduction | None = next((name for name in REDUCTIONS if name == study.over_ranks), None)
    series = _restricted(series_from_experiment(experiment, wanted, how), study, experiment)
    spoken = {name for each in study.expectations for name in each.growth.parameters}
    for each in study.expectations:
        for name in each.growth.parameters:
            if name not in experiment.parameters:
                raise InputError(
                    f"{each.place}: {experiment.path} has no parameter {name!r}",
                    nearest(name, experiment.parameters) + "; name it under [parameters]",
                )
    idle = [name for name in series.parameters if name not in spoken]
    if idle and spoken:
        values = sorted(set(series.points[:, series.parameters.index(idle[0])].tolist()))
        raise InputError(
            f"{idle[0]} was measured at {', '.join(f'{value:g}' for value in values[:8])}, and no expectation names it",
            f"hold it: [hold] {idle[0]} = {values[-1]:g}",
        )
    return series


def uneven_metrics(experiment: Experiment, metrics: Sequence[str]) -> tuple[str, ...]:
    """Those of some metrics of whose values, other than the largest over ranks, ranks have different ones."""
    wanted = [name for name in metrics if metric(name).over_ranks != "max" and metric(name).kind == "requirement"]
    uneven: set[str] = set()
    for run in experiment.runs:
        table = experiment.arrays(run) if set(wanted) - uneven else None
        if table is None:
            continue
        one = table.rank != ALL_RANKS
        order = np.argsort(table.code[one], kind="stable")
        starts = np.flatnonzero(np.diff(table.code[one][order], prepend=-1))
        for name in wanted:
            if name in uneven or name not in table.values or not len(starts) or run.sampled(name):
                continue
            values = table.values[name][one][order]
            most, least = np.fmax.reduceat(values, starts), np.fmin.reduceat(values, starts)
            if (most > least).any():
                uneven.add(name)
    return tuple(name for name in wanted if name in uneven)


def _metrics(study: Study) -> Iterable[str]:
    return (*(each.metric for each in study.expectations), *(rule.metric for rule in study.rules))


def _restricted(series: Series, study: Study, experiment: Experiment) -> Series:
    """The series at the values held, without parameters that neither vary nor are spoken of."""
    keep = np.ones(len(series.points), dtype=bool)
    for short, value in study.hold.items():
        name = study.symbols.get(short, short)
        if name not in series.parameters:
            raise InputError(
                f"{study.source}: {experiment.path} has no parameter {name!r} to hold", nearest(name, series.parameters)
            )
        column = series.points[:, series.parameters.index(name)]
        if not (column == value).any():
            values = ", ".join(f"{each:g}" for each in sorted(set(column.tolist())))
            raise InputError(f"{study.source}: {name} = {value:g} was not measured", f"it was measured at {values}")
        keep &= column == value
    if not keep.any():
        raise InputError(f"{study.source}: no configuration has all values of [hold]", "hold fewer of them")
    at = series.at(keep)
    spoken = {name for each in study.expectations for name in each.growth.parameters}
    varied = [
        axis for axis, name in enumerate(at.parameters) if name in spoken or len(np.unique(at.points[:, axis])) > 1
    ] or [0]
    return Series(
        tuple(at.parameters[axis] for axis in varied),
        at.points[:, varied],
        at.values,
        at.kernels,
        at.metrics,
        at.provenance,
    )


def resolve(study: Study, series: Series) -> dict[tuple[str, str], Expectation]:
    """The expectation of every function and metric that has one; names before patterns.

    Raises InputError when a function is unknown, a pattern matches nothing, or two patterns expect different things of
    a function.
    """
    kernels: dict[str, list[str]] = {}
    for kernel, name in series.keys:
        kernels.setdefault(name, []).append(kernel)
    resolved: dict[tuple[str, str], Expectation] = {}
    by_pattern: dict[tuple[str, str], Expectation] = {}
    for each in study.expectations:
        candidates = kernels.get(each.metric, [])
        if each.function in candidates:
            resolved[each.function, each.metric] = each
            continue
        if not set(each.function) & set("*?"):
            raise InputError(
                f"{each.place}: no function {each.function!r} was measured in {each.metric}",
                nearest(each.function, candidates),
            )
        hits = fnmatch.filter(candidates, each.function.replace("[", "[[]"))
        if not hits:
            raise InputError(f"{each.place}: no function matches {each.function!r}", nearest(each.function, candidates))
        for kernel in hits:
            other = by_pattern.setdefault((kernel, each.metric), each)
            if (other.growth, other.limit) != (each.growth, each.limit):
                raise InputError(
                    f"{each.place}: {kernel} is expected to be {each.growth}, and {other.growth} at {other.place}",
                    "narrow one pattern, or name the function",
                )
    return by_pattern | resolved


def check_functions(rules: Iterable[Rule], series: Series) -> None:
    """Check that the functions of rules were measured. Raises InputError, naming the nearest functions."""
    for rule in rules:
        functions = [kernel for kernel, name in series.keys if name == rule.metric]
        for name in rule.inequality.functions:
            if name not in functions:
                raise InputError(
                    f"{rule.place}: no function {name!r} was measured in {rule.metric}", nearest(name, functions)
                )
