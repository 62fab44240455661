"""The functions of series, with what is known of their structure in addition to the fit of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.core.arrays import Array
from ranksight.core.dims import dims_create
from ranksight.core.experiment import Experiment, Run
from ranksight.core.metrics import metric
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.plaindata import rounded
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import of_busiest, reduce
from ranksight.model.structure.along import explained, one_sided, sides_along
from ranksight.model.structure.called import CALLS, Called
from ranksight.model.structure.functions import Functions, find_minor
from ranksight.model.structure.gridlaw import CLOSE, EXACT, SENT
from ranksight.model.structure.levels import COUNTS, fit_levels
from ranksight.model.structure.local_blocks import DIMENSIONS, find_blocks
from ranksight.model.structure.loops import find_iterations
from ranksight.model.structure.met import find_missed
from ranksight.model.structure.neighbourfit import Tables, dimensions_of, fit_neighbours, grids_of
from ranksight.model.structure.ranklaws import fit_rank_laws
from ranksight.model.structure.rankterm import side_name
from ranksight.model.structure.rankterms import GROUPS
from ranksight.model.structure.slabs import find_slabs
from ranksight.model.structure.stated import BETWEEN, NOTHING_STATED, Stated
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
    sent_to, same = partners(experiment), even(experiment) if "ranks" in experiment.parameters else frozenset()
    whole = _structured(experiment, series, fitted, tables, stated, everywhere, sent_to, same, **settings)
    known = _known(whole, series)
    missed = _missed(known, series)
    answered = known[0]
    for law in known[1:]:
        answered = np.where(np.isnan(law), answered, law)
    lawful = {*exact_keys(series, fitted), *whole.neighbours.exact, *whole.laws.keys}
    lawless = {key for key in series.keys if key[1] in SENT} - lawful
    even_draws = drawn_partners(sent_to[2], same)
    drawn = {key for key in lawless if key[0] in even_draws}
    whole = replace(whole, met=find_missed(series, answered, lawless, drawn, whole.unruled))
    exact = {key for key, error in zip(series.keys, missed.tolist(), strict=True) if error <= EXACT}
    # Where a sum of the ranks leaves some out, functions miss these alone.
    iterations = find_iterations(series, exact | lawful, missed)
    if iterations is None or not iterations.keys:
        return whole
    part = iterations.per_call(series)
    tables = iterations.tables(tables, series)
    per_call = _structured(
        experiment, part, fit_varied(part, **settings), tables, NOTHING_STATED, everywhere, sent_to, same, **settings
    )
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
    sent_to: tuple[int, dict[str, float], set[str], set[str]],
    same: frozenset[tuple[str, str]],
    **settings: Any,
) -> Functions:
    """The functions of a series with all that is known of them but iterations; `sent_to` and `same` as of
    :func:`partners` and :func:`even`."""
    each = {name: value for name, value in settings.items() if name not in ("jobs", "dask")}
    keys = series.keys
    # What follows the work per rank, as stated, does not follow the process grid.
    unmoved = np.asarray(fitted.unaffected.any(axis=1)).tolist()
    names = {key for key, yes in zip(keys, unmoved, strict=True) if not yes}
    called = collective(experiment)
    near = {key for key in names if key[1] not in SENT or key[0] not in called}
    law = fit_neighbours(experiment, near, tables, everywhere, **each)
    functional = exact_keys(series, fitted)
    law = law.without(functional - law.exact)
    lawful, decided = set(law.keys), set() if law.open else law.exact
    by_ranks = {*SENT, "peers"}
    sent = {key for key in names - decided if key[1] in by_ranks or (key[1] in CALLS and key not in functional)}
    together = frozenset(kernel for kernel, whole in called.items() if whole)
    traced, number, irregular, uneven = sent_to
    grids = grids_of(experiment)[0] if "ranks" in experiment.parameters else ()
    sizes = communicators(experiment) if "ranks" in experiment.parameters else {}
    along = sides_along(experiment, grids)
    rules = explained(experiment) if "ranks" in experiment.parameters else {}
    shown = Called(together, traced, number, along, groups_of(sizes), lines_of(sizes), same, rules)
    later = {keys[row] for part in fitted.below for row in part.rows[part.between[:, 0] > 1].tolist()}
    largest = of_busiest(experiment, {name for _, name in sent})
    busiest = {key for key in sent if key[1] in largest}
    laws = fit_rank_laws(series, sent, law.halos if law else None, shown, later, busiest, **each)
    rivals = {key for key in functional if not shown.placed(key[0])}
    laws = laws.with_rivals(fitted, rivals, series.points)
    minor = tuple(key for key in find_minor(series) if key not in lawful)
    met = law.exact | set(laws.keys)
    # Where all ranks send as much as each other partners are drawn, and no data decide how much is sent.
    drawn = drawn_partners(irregular, same)
    irregular, uneven = irregular - drawn, uneven - drawn
    loose = (({key for key, known in rules.items() if not known} | set(shown.along)) - irregular - drawn) | uneven
    scattered = tuple(key for key in keys if key[1] in SENT and key[0] in irregular)
    placed = tuple(key for key in scattered if not rules.get(key[0]))
    unmet = tuple(key for key in keys if key[1] in SENT and key[0] in loose and key not in met)
    levels, unserved = fit_levels(series, **each), find_unserved(series)
    scattered_work = tuple(key for key in keys if key[1] in WORK and key[0] in irregular)
    faces = one_sided(experiment, grids) if everywhere and grids else set()
    sided = tuple(key for key in keys if key[1] in WORK and key[0] in faces and key not in met)
    most = traced if scattered or unmet or scattered_work or sided else 1
    blocks = find_blocks(series, near - functional, dimensions_of(experiment) or DIMENSIONS)
    unmet += scattered_work
    slabs = find_slabs(series, rules, _transposing(experiment, together), scattered)
    return Functions(
        fitted, levels, law, minor, stated, unserved, laws, scattered, placed, unmet, most, blocks, slabs, sided=sided
    )


def collective(experiment: Experiment) -> dict[str, bool]:
    """Kernels, and operations of kernels (``kernel: operation``), all of whose messages are collective operations, and
    whether all ranks take part in each of these: then nothing goes by the sides of a process grid."""
    whole: dict[str, bool] = {}
    sending: set[str] = set()
    for run, table in experiment.tables("messages", runs=_with_ranks(experiment)):
        sizes = table.groupby(["kernel", "operation"], observed=True)["comm_size"].min()
        for (kernel, operation), size in zip(sizes.index.tolist(), sizes.tolist(), strict=True):
            keys, name = (str(kernel), f"{kernel}{BETWEEN}{operation}"), operation_name(str(operation))
            if name in SENDS:
                sending.update(keys)
            elif name in OPERATIONS:
                whole |= {key: whole.get(key, True) and size == run.configuration["ranks"] for key in keys}
    return {key: yes for key, yes in whole.items() if key not in sending}


TRANSPOSES = frozenset({"alltoall", "alltoallv", "alltoallw"})
"""Operations that cut slabs of a domain along another side."""


def _transposing(experiment: Experiment, together: frozenset[str]) -> set[str]:
    """Of kernels and operations of kernels in which all ranks are `together`, those that transpose."""
    listed: set[tuple[str, str]] = set()
    for _, table in experiment.tables("messages", runs=_with_ranks(experiment)):
        pairs = table[["kernel", "operation"]].drop_duplicates().astype(str)
        listed.update(pair for pair in pairs.itertuples(index=False) if operation_name(pair[1]) in TRANSPOSES)
    return {key for kernel, name in listed for key in (kernel, f"{kernel}{BETWEEN}{name}")} & together


def even(experiment: Experiment) -> frozenset[tuple[str, str]]:
    """Kernels, and operations of kernels, with the metrics of which all ranks have the same in every run of several
    ranks that has them: nobody does there what others do not, as those at the top of a tree."""
    varied: dict[tuple[str, str], bool] = {}
    for run, table in experiment.tables("messages", runs=_with_ranks(experiment)):
        ranks = int(run.configuration["ranks"])
        sends = {name: operation_name(str(name)) in {*SENDS, *OPERATIONS} for name in table["operation"].unique()}
        sent = table[table["operation"].map(sends).astype(bool)] if ranks > 1 else table[:0]
        kernels = sent["kernel"].astype(str)
        for keys in (kernels, kernels + BETWEEN + sent["operation"].astype(str)):
            sums = sent.groupby([keys.rename("key"), "rank"], observed=True)[["count", "bytes"]].sum()
            of_ranks = sums.groupby("key").agg(["size", "min", "max"])
            for column, metric_name in (("count", "messages"), ("bytes", "bytes_sent")):
                part = of_ranks[column]
                differs = (part["size"] < ranks) | (part["max"] > (1 + EXACT) * part["min"])
                for key, yes in zip(part.index.tolist(), differs.tolist(), strict=True):
                    varied[key, metric_name] = varied.get((key, metric_name), False) or yes
    return frozenset(key for key, yes in varied.items() if not yes)


def drawn_partners(irregular: set[str], same: Collection[tuple[str, str]]) -> set[str]:
    """Of kernels and their operations with `irregular` partners those in which all ranks send the `same`."""
    return {kernel for kernel in irregular if all((kernel, name) in same for name in SENT)}


MANY_RUNS = 2
"""Numbers of ranks above which communicators show the side of a grid that they lie along."""
MANY = 6
"""Pairs of ranks that show whether their messages have few lengths."""
UNLIKE = 0.75
"""Share of pairs with a length of message of their own from which on data decide them: faces, edges and corners of
blocks have few lengths, also where sides do not divide evenly."""


def communicators(experiment: Experiment) -> dict[str, dict[int, set[int]]]:
    """Ranks of the communicators of kernels, and of operations of kernels, by the number of ranks of a run."""
    sizes: dict[str, dict[int, set[int]]] = {}
    for run, table in experiment.tables("messages", runs=_with_ranks(experiment)):
        for (kernel, operation), part in table.groupby(["kernel", "operation"], observed=True)["comm_size"]:
            for key in (str(kernel), f"{kernel}{BETWEEN}{operation}"):
                sizes.setdefault(key, {}).setdefault(int(run.configuration["ranks"]), set()).update(part.astype(int))
    return {key: of_runs for key, of_runs in sizes.items() if any(max(each) < p for p, each in of_runs.items())}


def groups_of(sizes: Mapping[str, Mapping[int, set[int]]]) -> dict[str, int]:
    """Ranks of the groups in which, or between the first of which, kernels and operations of kernels communicate: their
    communicators (:func:`communicators`) had min(ranks, group) or ceil(ranks / group) ranks in all runs."""
    groups: dict[str, int] = {}
    for key, of_runs in sizes.items():
        for group in GROUPS:
            within = all(each <= {min(p, group), p % group or group} for p, each in of_runs.items())
            between = all(each == {-(-p // group)} for p, each in of_runs.items())
            if within or between:
                groups[key] = group
    return groups


def lines_of(sizes: Mapping[str, Mapping[int, set[int]]]) -> dict[str, frozenset[str]]:
    """Sides of a process grid that the communicators (:func:`communicators`) of kernels and operations of kernels have
    as many ranks as, in all runs: those of rows, or of columns."""
    lines: dict[str, frozenset[str]] = {}
    for key, of_runs in sizes.items():
        sides = [
            side_name("xyz"[at], d, False)
            for d in DIMENSIONS
            for at in range(d)
            if all(each == {dims_create(p, d)[at]} for p, each in of_runs.items())
        ]
        if sides and len(of_runs) > MANY_RUNS:
            lines[key] = frozenset(sides)
    return lines


def partners(experiment: Experiment) -> tuple[int, dict[str, float], set[str], set[str]]:
    """The most ranks of a run whose partners are known, how many a rank sends to there on average, by kernels and their
    operations, which of these have partners that data decide, and which of those also how often to send to each."""
    most, partner_counts, irregular, uneven = 1, dict[str, float](), set[str](), set[str]()
    runs = sorted(_with_ranks(experiment), key=lambda run: -run.configuration["ranks"])
    for run, table in experiment.tables("peers", runs=(run for run in runs if run.configuration["ranks"] >= most)):
        ranks = int(run.configuration["ranks"])
        if not {"kernel", "bytes"} <= set(table.columns):
            continue
        most = ranks
        names, kernels = table["operation"].astype(str), table["kernel"].astype(str)
        sends = np.array([operation_name(name) in SENDS for name in names], dtype=bool)
        sends &= (table["rank"] != table["peer"]).to_numpy()
        for keys in (kernels, kernels + BETWEEN + names):
            counted = table if "count" in table else table.assign(count=1)
            links = counted.assign(key=keys)[sends].groupby(["key", "rank", "peer"])[["bytes", "count"]].sum()
            links = links.reset_index()
            for key, pairs in links.groupby("key"):
                partner_counts[str(key)] = len(pairs) / ranks
                lengths = pairs.loc[pairs["rank"] < pairs["peer"], "bytes"]
                if len(lengths) >= MANY and lengths.nunique() > UNLIKE * len(lengths):
                    irregular.add(str(key))
                    uneven |= {str(key)} if pairs["count"].nunique() > 1 else set()
    return most, partner_counts, irregular, uneven


def _with_ranks(experiment: Experiment) -> list[Run]:
    """The runs of an experiment whose ranks are known."""
    return [run for run in experiment.runs if "ranks" in run.configuration]


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
