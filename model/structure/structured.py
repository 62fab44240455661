"""The functions of series, with what is known of their structure in addition to the fit of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.experiment import Experiment
from ranksight.core.metrics import metric
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.plaindata import rounded
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import of_busiest, reduce
from ranksight.model.structure.called import CALLS, Called
from ranksight.model.structure.functions import Functions, find_minor
from ranksight.model.structure.gridlaw import CLOSE, EXACT, SENT
from ranksight.model.structure.levels import COUNTS, fit_levels
from ranksight.model.structure.local_blocks import DIMENSIONS, find_blocks
from ranksight.model.structure.loops import find_iterations
from ranksight.model.structure.met import find_missed
from ranksight.model.structure.neighbourfit import Tables, dimensions_of, fit_neighbours, grids_of
from ranksight.model.structure.ranklaws import fit_rank_laws
from ranksight.model.structure.slabs import find_slabs
from ranksight.model.structure.stated import NOTHING_STATED, Stated
from ranksight.model.structure.traced import one_sided, read_called
from ranksight.model.structure.unserved import find_unserved

WORK = COUNTS - SENT - CALLS
"""Metrics that go with what a call works on."""
BETTER = 0.5
"""Error of what one call does, to that of all of them, from which on it is the better predictor."""


def structured(
    experiment: Experiment,
    series: Series,
    fitted: Fitted,
    tables: Tables,
    stated: Stated = NOTHING_STATED,
    everywhere: bool = False,
    **settings: Any,
) -> Functions:
    """The functions of a series with what two levels say, what follows the process grid, or sums of other laws of the
    ranks, what is stated, and what loops do in one iteration.

    For `tables` and `everywhere` see :func:`ranksight.model.structure.neighbourfit.fit_neighbours`.
    """
    if not any(metric(name).kind == "requirement" for name in set(series.metrics)):
        # Grids, blocks, loops and caches decide counts; times alone may be of two levels.
        each = {name: value for name, value in settings.items() if name not in ("jobs", "dask")}
        return Functions(fitted, fit_levels(series, **each), stated=stated)
    called = read_called(experiment)
    whole = _structured(experiment, series, fitted, tables, stated, everywhere, called, **settings)
    known = _known(whole, series)
    missed = _missed(known, series)
    answered = known[0]
    for law in known[1:]:
        answered = np.where(np.isnan(law), answered, law)
    lawful = {*exact_keys(series, fitted), *whole.neighbours.exact, *whole.laws.keys}
    lawless = {key for key in series.keys if key[1] in SENT} - lawful
    drawn = {key for key in lawless if key[0] in called.drawn}
    whole = replace(whole, met=find_missed(series, answered, lawless, drawn, whole.unruled))
    exact = {key for key, error in zip(series.keys, missed.tolist(), strict=True) if error <= EXACT}
    # Where a sum of the ranks leaves some out, functions miss these alone.
    iterations = find_iterations(series, exact | lawful, missed)
    if iterations is None or not iterations.keys:
        return whole
    part = iterations.per_call(series)
    tables = iterations.tables(tables, series)
    fitted = fit_varied(part, **settings)
    per_call = _structured(experiment, part, fitted, tables, NOTHING_STATED, everywhere, called, **settings)
    rows = np.array([series.rows[key] for key in iterations.keys], dtype=np.intp)
    of_call = _missed(_known(per_call, part), part)
    better = of_call < BETTER * np.maximum(missed[rows], EXACT)
    # Calls that nothing else follows may each do another thing, as those of levels do.
    counting = np.array([kernel for kernel, _ in iterations.counted], dtype=object)
    by_themselves = counting[iterations.which] == np.array(iterations.kernels, dtype=object)
    # Nor is one a sum of parts where these cancel each other.
    summed = (np.nan_to_num(per_call.fitted.coefficient[:, 0]) >= 0).all(axis=1)
    better &= ~by_themselves | (summed & (of_call <= CLOSE))
    chosen = iterations.only(better)
    return whole if chosen is None else replace(whole, iterations=chosen, per_call=per_call)


def _known(functions: Functions, series: Series) -> list[Array]:
    """What the function and laws say of each series at its configurations, (s, n) each, the last of which answers; NaN
    where a law says nothing."""
    known = [functions.fitted.at_training(series.points)]
    for law in (functions.laws, functions.neighbours):
        if law:
            known.append(np.full(known[0].shape, np.nan))
            known[-1][series.indices(law.keys)] = law.predict(series.points).value
    return known


def _missed(known: list[Array], series: Series) -> Array:
    """Relative errors (s,) of the best of what is known of each series, root mean square over its configurations."""
    values = reduce(series.values, "median", axis=2)
    return np.asarray(np.min([_relative(each, values) for each in known], axis=0))


def _relative(predicted: Array, values: Array) -> Array:
    """Root mean square errors (s,) of values (s, n), relative to their means; infinite where nothing is predicted."""
    known = np.isfinite(values) & (values > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        square = np.where(known, (predicted / values - 1) ** 2, 0.0).sum(axis=1) / known.sum(axis=1)
    return np.where(np.isfinite(square), np.sqrt(square), np.inf)


def _structured(
    experiment: Experiment,
    series: Series,
    fitted: Fitted,
    tables: Tables,
    stated: Stated,
    everywhere: bool,
    called: Called,
    **settings: Any,
) -> Functions:
    """The functions of a series with all that is known of them but iterations; `called`: what traces show."""
    each = {name: value for name, value in settings.items() if name not in ("jobs", "dask")}
    keys = series.keys
    # What follows the work per rank, as stated, does not follow the process grid.
    unmoved = np.asarray(fitted.unaffected.any(axis=1)).tolist()
    names = {key for key, yes in zip(keys, unmoved, strict=True) if not yes}
    near = {key for key in names if key[1] not in SENT or key[0] not in called.collective}
    law = fit_neighbours(experiment, near, tables, everywhere, **each)
    functional = exact_keys(series, fitted)
    law = law.without(functional - law.exact)
    lawful, decided = set(law.keys), set() if law.open else law.exact
    by_ranks = {*SENT, "peers"}
    sent = {key for key in names - decided if key[1] in by_ranks or (key[1] in CALLS and key not in functional)}
    later = {keys[row] for part in fitted.below for row in part.rows[part.between[:, 0] > 1].tolist()}
    largest = of_busiest(experiment, {name for _, name in sent})
    busiest = {key for key in sent if key[1] in largest}
    laws = fit_rank_laws(series, sent, law.halos if law else None, called, later, busiest, **each)
    rivals = {key for key in functional if not called.placed(key[0])}
    laws = laws.with_rivals(fitted, rivals, series.points)
    minor = tuple(key for key in find_minor(series) if key not in lawful)
    met = law.exact | set(laws.keys)
    unruled = {key for key, known in called.rules.items() if not known} | set(called.along)
    loose = (unruled - called.irregular - called.drawn) | called.uneven
    scattered = tuple(key for key in keys if key[1] in SENT and key[0] in called.irregular)
    placed = tuple(key for key in scattered if not called.rules.get(key[0]))
    unmet = tuple(key for key in keys if key[1] in SENT and key[0] in loose and key not in met)
    levels, unserved = fit_levels(series, **each), find_unserved(series)
    scattered_work = tuple(key for key in keys if key[1] in WORK and key[0] in called.irregular)
    grids = grids_of(experiment)[0] if everywhere and "ranks" in experiment.parameters else ()
    faces = one_sided(experiment, grids) if grids else set()
    sided = tuple(key for key in keys if key[1] in WORK and key[0] in faces and key not in met)
    most = called.ranks if scattered or unmet or scattered_work or sided else 1
    blocks = find_blocks(series, near - functional, dimensions_of(experiment) or DIMENSIONS)
    unmet += scattered_work
    slabs = find_slabs(series, called.rules, called.transposing, scattered)
    return Functions(
        fitted, levels, law, minor, stated, unserved, laws, scattered, placed, unmet, most, blocks, slabs, sided=sided
    )


def exact_keys(series: Series, fitted: Fitted) -> set[tuple[str, str]]:
    """Counts whose best function meets them to rounding, and more different values than it has terms.

    Values that repeat say nothing more, nor does zero at one rank.
    """
    terms = (fitted.members[:, 0] >= 0).sum(axis=1)
    exact = (fitted.weight[:, 0] > 0) & (fitted.variance[:, 0] < EXACT**2) & ~series.sampled
    values = reduce(series.values, "median", axis=2)
    different = np.array([len(np.unique(rounded(row[np.isfinite(row) & (row > 0)], 9))) for row in values])
    rows = exact & (different > terms) & np.isin(series.metrics, list(COUNTS))
    return {key for key, yes in zip(series.keys, rows.tolist(), strict=True) if yes}
