"""How each kernel's time goes with the number of ranks: it scales, it saturates, or it grows.

In strong scaling a rank's work falls with the ranks and so should its time; in weak scaling it stays. Trees and
hypercubes add a logarithm of the ranks. On a line of rank counts p up to the last, with l the growth that is allowed:

- a kernel *grows* from where T / l is least, if T / l at the last is noticeably more;
- in strong scaling it *saturates* from where T sqrt(p) is least, if that is before the last: from there on, twice the
  ranks no longer bring down its time to 1 / sqrt(2);
- otherwise it *scales*.

Least values, in place of the slope at the last, make a verdict one for a kernel: a step or a dent of the predicted
times between two rank counts does not turn it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.analysis.diagnosis.kind import Kind
from ranksight.core.arrays import Array, Index, Mask, log_ratio, ratio
from ranksight.core.experiment import WHOLE
from ranksight.model.fitting.abstaining import TOLERANCE, along_ties

NO_TIES = np.empty((0, 1))
HALF = -0.5
"""Slope d log T / d log p above which a kernel of a strongly scaling program saturates."""
COUNTED = "instructions"
MARGIN = 0.02
"""Slope above the allowed one within which nothing is said to grow."""
HEAVY = 0.01
"""Share of the time at the most ranks from which a growing kernel is named."""
NOTHING = 1e-9
"""Part of the most that a kernel takes which is no time at all: messages of a single rank, rounds inside a node."""
NOTICED = 1.1
"""Growth beyond the allowed one up to which nothing is said to grow."""


def steps(ranks: Array) -> Array:
    """One more than log2 of the ranks, so that two ranks count as one step."""
    return np.asarray(np.log2(2 * np.maximum(ranks, 1.0)))


def table(line: Evidence, kind: Kind, node: int = 1, since: Array | None = None) -> pd.DataFrame:
    """How each kernel scales along `line`, whose points differ in ranks alone and rise.

    Columns: ``kernel``; ``verdict`` (``scales``, ``saturates``, ``grows`` or ``undecided``); ``at`` (ranks from
    where, NaN where it scales); ``first``, ``last`` (s at the fewest ranks that have it and at the most);
    ``growth`` (time at the most ranks over that at ``at`` where it grows, over its least elsewhere); ``allowed``
    (the growth from ``at`` on that is no trouble, 1 where it does not grow); ``bound`` (whether the data do not
    suffice for the time or where it begins to grow, and ``growth`` is the least that it may be); ``to`` (the ranks of
    ``growth``: the most, or with ``bound`` the most at which the time has ends that say something); ``efficiency`` (of
    the ideal at the most ranks: work kept in weak, divided in strong scaling); ``share`` (of the program's time at
    the most ranks); ``named`` (whether it grows, matters, and its instructions, where counted, grow with it, so
    that scatter of times alone names nothing); ``by`` (``time``, or ``instructions`` where the data suffice for
    these and not for the time: the kernel is then taken to keep its time per instruction); the largest first.

    `kind`: of scaling; where it is unknown, no kernel saturates and efficiencies are NaN. `node`: ranks of a node:
    messages first grow by the step from links inside a node to those between nodes. `since` (K,): the fewest ranks that
    each kernel was seen at: with fewer there is none, and nothing to have grown from; infinite where it was seen at one
    number of ranks, which does not determine others.
    """
    strong = kind == "strong"
    times, ranks, by = _curves(line)
    count, k = times.shape
    if since is not None:
        times = np.where(ranks < np.minimum(since, ranks[-1])[:, None], np.nan, times)
    times = np.where(times > NOTHING * np.nanmax(np.nan_to_num(times), axis=1, keepdims=True), times, np.nan)
    begin = np.isfinite(times).argmax(axis=1)
    logs, doublings = np.log(times), np.log(ranks)
    share = line.whole[:, -1] / line.total[-1] if line.total[-1] > 0 else np.zeros(count)
    sending = (line.communication[:, -1] > line.computing[:, -1] + line.imbalance[:, -1])[:, None]
    allowed = np.log(np.where(sending, _rounds(ranks, node), steps(ranks))) + MARGIN * doublings
    rising = _last_least(logs - allowed)
    flat = _last_least(logs - (HALF + MARGIN) * doublings)
    # A pure logarithm, which is nothing on one rank, rises faster than one step more.
    pure = np.broadcast_to(np.log(np.log2(np.maximum(ranks, 2.0))), times.shape)
    expected = np.maximum(*(curve[:, -1] - _at(curve, rising) for curve in (allowed, pure)))
    grows = logs[:, -1] - _at(logs, rising) > expected + np.log(NOTICED)
    stuck = strong & (flat < k - 1) & ~grows
    named = grows & (share >= HEAVY) & _proven(line, rising)
    verdict = np.where(grows, "grows", np.where(stuck, "saturates", "scales"))
    predicted = line.ok[:, -1] | (line.computing[:, -1] <= 0) | (by == COUNTED)
    sure, factor, least_at, known_to = _beyond_doubt(line, verdict, strong)
    supported = predicted & (~grows | _supported(line, times, rising, by))
    decided = supported | sure
    decided &= np.isfinite(logs[:, -1]) & (np.isfinite(times).sum(axis=1) >= min(2, k))
    with np.errstate(invalid="ignore", divide="ignore"):
        first = _at(times, begin)
        ideal = first * {"strong": ranks[begin] / ranks[-1], "weak": 1.0}.get(kind, np.nan)
        efficiency = ideal / times[:, -1]
        least = np.where(np.isfinite(times), times, np.inf).argmin(axis=1)
        start = _at(times, np.where(grows, rising, least))
        growth = np.where(start > 0, times[:, -1] / start, np.nan)
    bound = ~supported & sure & grows
    from_where = np.where(bound, least_at, rising)
    table_of_kernels = pd.DataFrame(
        {
            "kernel": line.kernels,
            "verdict": np.where(decided, verdict, "undecided"),
            "at": np.where(decided & grows, ranks[from_where], np.where(decided & stuck, ranks[flat], np.nan)),
            "first": first,
            "last": times[:, -1],
            "growth": np.where(bound, factor, growth),
            "allowed": np.where(grows, np.exp(expected), 1.0),
            "bound": bound,
            "to": ranks[np.where(bound, known_to, k - 1)],
            "efficiency": efficiency,
            "share": share,
            "named": named & decided,
            "by": by,
        }
    )
    table_of_kernels = table_of_kernels[table_of_kernels["kernel"] != WHOLE] if count > 1 else table_of_kernels
    return table_of_kernels.sort_values("last", ascending=False, kind="stable", ignore_index=True)


def grows_outside(line: Evidence) -> bool:
    """Whether the time outside of kernels grows along `line` faster than the logarithm of the ranks, at every value
    within its intervals at the most, and matters there."""
    outside = line.broken.others
    if not len(outside.value) or not line.total[-1] > 0 or line.others[-1] < HEAVY * line.total[-1]:
        return False
    rounds = steps(line.ranks)
    rising = np.nan_to_num(outside.value).sum(axis=0) / rounds
    least = float(np.nan_to_num(outside.lower).sum(axis=0)[-1]) / rounds[-1]
    return bool(least > NOTICED * rising.min())


def with_classes(near: pd.DataFrame, far: pd.DataFrame, ranks: float) -> pd.DataFrame:
    """The table `near` of a line that ends at `ranks` with the verdicts of `far`, a line that goes on, where these are
    decided: how a kernel grows is one thing, however far one asks. Growth that begins at `ranks` or beyond is no matter
    of the shorter line."""
    of = far.set_index("kernel").reindex(near["kernel"]).reset_index()
    new = ~of["verdict"].isin(["undecided", np.nan]) & (of["verdict"] != near["verdict"]) & ~of["bound"].eq(True)
    new &= ~(of["at"] >= ranks)
    then = of["last"] / of["growth"]
    changes = {"verdict": of["verdict"], "at": of["at"], "named": False, "bound": False, "allowed": 1.0}
    changes["growth"] = near["last"] / then
    return near.assign(**{name: near[name].mask(new, value) for name, value in changes.items()})


def _beyond_doubt(line: Evidence, verdict: NDArray[np.str_], strong: bool) -> tuple[Mask, Array, Index, Index]:
    """Whether a verdict holds at every time within the intervals, (K,), where the time itself is not predicted; how
    many times as long as at its least a kernel takes at least, (K,), where that least is, (K,), and where the kernel
    takes so long, (K,): at the most ranks at which its ends can be compared.

    A kernel grows if the least that it may take there exceeds the most that it took at its least, by more than the
    logarithm of the ranks; it scales if the most that it may take at the most ranks is what scaling leaves of it.
    """
    low, high = line.whole_ends
    # Where a kernel takes no time nothing grows from.
    at = np.argmin(np.where(line.bounded & (high > 0), high, np.inf), axis=1)
    least = _at(high, at)
    rounds = steps(line.ranks)
    # What is open farther on is no doubt of what was seen.
    to = len(line.ranks) - 1 - np.argmax(line.bounded[:, ::-1], axis=1)
    grows = _at(low, to) > NOTICED * rounds[to] / rounds[at] * least
    allowed = (line.ranks[-1] / line.ranks[0]) ** HALF if strong else rounds[-1] / rounds[0]
    scales = line.bounded[:, -1] & (high[:, -1] < allowed * low[:, 0])
    sure = np.where(verdict == "grows", line.bounded.any(axis=1) & grows, (verdict == "scales") & scales)
    return sure.astype(bool), ratio(_at(low, to), least), at, to


def _supported(line: Evidence, times: Array, start: Index, by: NDArray[np.object_]) -> Mask:
    """Whether even the least that a kernel may take at the most ranks is more than what it takes at `start`, (K,)."""
    count = line.instructions[:, -1]
    least_count = count if line.least_instructions is None else line.least_instructions[:, -1]
    least = np.where(by == COUNTED, times[:, -1] * ratio(least_count, count, 1.0), line.whole_ends[0][:, -1])
    return np.asarray(~(least <= _at(times, start)))


def _rounds(ranks: Array, node: int) -> Array:
    """Rounds of a tree between the nodes, or inside a node where there is one; those inside are negligible then."""
    return np.asarray(
        np.where(ranks > node, np.log2(np.maximum(ranks / node, 1.0)), NOTHING * np.log2(np.maximum(ranks, 1.0001)))
    )


def _proven(line: Evidence, start: Index) -> Mask:
    """Whether what was counted grows faster than the logarithm from `start` on; or messages take the time."""
    work = _busiest(line)
    grown = log_ratio(work[:, -1], _at(work, start))
    logarithm = np.log(steps(line.ranks[-1:]) / steps(line.ranks[start]))
    return np.asarray(~np.isfinite(grown) | (grown > logarithm) | ~_computed(line))


def _computed(line: Evidence) -> Mask:
    """Which kernels compute for at least as long as they communicate at the most ranks, (K,)."""
    return np.asarray(line.computing[:, -1] + line.imbalance[:, -1] >= line.communication[:, -1])


def _curves(line: Evidence) -> tuple[Array, Array, NDArray[np.object_]]:
    """Times over the ranks, the ranks, and what each was inferred from.

    Where a kernel's time is not predicted to the end and its instructions are, these show how it grows: the data
    suffice for them, and where there is no time at all they stand for it, in proportion from the rank count on at which
    it is known. They do not where most of the time is messages.
    """
    times = line.whole.copy()
    use = ~line.ok[:, -1] & line.counted_ok.all(axis=1) & (line.computing[:, -1] > 0) & _computed(line)
    work = np.nan_to_num(_busiest(line))
    use &= (work > 0).any(axis=1)
    # The first rank count at which both are known; the first at all where the time nowhere is.
    known = (times > 0) & (work > 0)
    sufficient = known & line.ok
    start = np.where(sufficient.any(axis=1), sufficient.argmax(axis=1), known.argmax(axis=1))
    at = start[:, None]
    base, counts = (np.take_along_axis(values, at, 1) for values in (times, work))
    each = ratio(base, counts, 0.0)
    by = np.where(use, COUNTED, "time").astype(object)
    absent = use[:, None] & ~(times > 0)
    return np.where(absent, np.maximum(each * work, 0.0), times), line.ranks, by


def _busiest(line: Evidence) -> Array:
    """Instructions of the busiest rank of each kernel, (K, k): a program waits for it, whatever the mean does."""
    return line.instructions * np.maximum(ratio(line.computing + line.imbalance, line.computing, 1.0), 1.0)


def _last_least(values: Array) -> Index:
    """Index of the least of each row (K, k), the last where several are the least; the last of all where none is
    known."""
    known = np.where(np.isnan(values), np.inf, values)[:, ::-1]
    return np.asarray(values.shape[1] - 1 - known.argmin(axis=1), dtype=np.intp)


def _at(values: Array, index: Index) -> Array:
    """The value of each row (K, k) at its index (K,)."""
    return np.asarray(np.take_along_axis(values, index[:, None], 1)[:, 0])


def line_of(training: Array, parameters: tuple[str, ...], target: Array, last: float, ties: Array = NO_TIES) -> Array:
    """Points from the fewest ranks measured to the `last`: powers of two, what was measured, and the last; other
    parameters as those of `target`, and those of `ties` (q, 1 + m) as they followed the ranks in all runs, where they
    do at the target: nothing is known of others, not even at the ranks measured."""
    at = parameters.index("ranks")
    measured = np.unique(training[:, at])
    low, high = float(measured[0]), last
    powers = 2.0 ** np.arange(0, 41)
    ranks = np.unique(np.concatenate([measured, powers, [high]]))
    ranks = ranks[(ranks >= min(low, high)) & (ranks <= high)]
    points = np.repeat(np.asarray(target, dtype=np.float64)[None, :], len(ranks), axis=0)
    points[:, at] = ranks
    if not len(ties) or not np.isclose(along_ties(target[None], parameters, ties)[0], target, rtol=TOLERANCE).all():
        return points
    return np.where((ranks == target[at])[:, None], target, along_ties(points, parameters, ties))
