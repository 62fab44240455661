"""The table of prevalence (:mod:`ranksight.model.process.prevalence`), learned from whole published curves.

How often means occur is learned by expectation maximisation over whole curves; how large departures, changes of slope
and scatter are, by the density that the near part of each curve gives to its far part, which is what a prediction
needs. Runs that are odd are weighed in the same way, and how often laws turn ahead (``turns.py``). Every source is
judged with the table that the others give. With ``--freeze`` the table is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from benchmarks.measured_series import tasks_of
from benchmarks.measures import interval_score, judge
from benchmarks.methods.answers import Answer
from benchmarks.methods.power import LastPower
from benchmarks.settings import ROOT, Settings, Skipped
from benchmarks.table import markdown
from benchmarks.tasks import Task, batches, stack
from benchmarks.turns import Ahead, made_up, turn_of
from ranksight.model import priors
from ranksight.model.process.compare import SMOOTHING
from ranksight.model.process.covariance import Turn
from ranksight.model.process.fit_process import data_of, fit_process
from ranksight.model.process.posterior import turned
from ranksight.model.process.prevalence import (
    FILE,
    POWER,
    Prevalence,
    along_one,
    at_runs,
    coordinates,
    divided,
    doubling,
    ending,
    of_free_power,
    texts_of,
    unlearned,
    written,
)
from ranksight.model.process.solve import KINDS, evidence, smoothed
from ranksight.model.search.terms import values
from ranksight.model.series.domains import Domains
from ranksight.model.series.noise import locate
from ranksight.model.uncertainty.mixture import Components, quantile, quantiles

TITLE = "Prevalence of means and covariances"
PARTS = ((0.0, 0.05), (0.0, 0.05, 0.15, 0.4), (0.0, 0.05), (0.0, 0.003, 0.01, 0.03, 0.1, 0.3))
"""Local departure, change of slope, exponent and scatter between jobs that are offered."""
SCALES = np.array(list(itertools.product(*PARTS)))
WILDEST = np.array(
    [(0.0, 0.0, 0.0, jobs) for jobs in (1.0, 3.0)]
    + [(local, 0.0, 0.0, jobs) for local in (1.0, 3.0) for jobs in (0.03, 0.1, 0.3)]
)
"""Scatter and steps by factors, which no published curve shows and users' do: together as likely as one more curve that
was not seen (Laplace's rule of succession). So are means of parameters that count doublings."""
LISTED = np.array(
    [np.flatnonzero((np.where(np.arange(4) == POWER, 0.0, row) == SCALES).all(axis=1))[0] for row in SCALES]
)
"""Place of each covariance without another exponent than listed: that of sums of several terms."""
CHOICES = (*PARTS, KINDS)
"""What is weighed: levels of the parts of a covariance, and kinds of runs."""
LEVELS = np.array(list(itertools.product(*(range(len(part)) for part in CHOICES))))
MEANS_WORTH, SCALES_WORTH = 150.0, 40.0
"""Curves that the table before any curve counts for: most sources are of strong scaling, and users' tables are not."""
ABSENT = 0.5
"""Probability before any curve that a part of the covariance is absent: a law is met, or it is not."""
USUALLY, KINDS_WORTH = np.array([0.9, 0.07, 0.03]), 300.0
"""Probabilities of the kinds of runs before any curve, and the curves that they count for: most sources ran on busy
machines, and what is taken for a slow run is lost as evidence of growth."""
MOST = 60
"""Curves of one source that count."""
ROUNDS, STEPS = 30, 60
RAREST, LIGHTEST = 1e-4, 3e-3
"""Means and covariances that are rarer are left out of the table: what is left decides every answer, in half the
time."""
ABSTAINED = 4.0
OFFERED = (0.0, 1.0, 2.0)
"""Logarithms of the odds against means of several terms that are tried."""
NODES, DOMAIN, NODES_WORTH = ("spechpc ranks 1..18 -> 20..72", "lulesh node 1, 8, 27 -> 64"), 18, 10.0
"""Sources within a node, the cores of its memory domains, and the curves that even odds count for."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Whole curves (s, n, r) of one source over the same values (n,) of a coordinate."""

    source: str
    x: Array
    times: Array


def usable(task: Task) -> bool:
    """Whether a task is of positive times along one parameter."""
    positive = bool((task.points > 0).all()) and not bool((task.values <= 0).any())
    return len(task.parameters) == 1 and task.metric == "time" and positive


def curves_of(tasks: Sequence[Task], generator: np.random.Generator) -> Iterator[Curve]:
    """Training and held-out values together, of times along one parameter; :data:`MOST` of a source in the mean."""
    chosen = [task for task in tasks if usable(task)]
    number = {source: sum(task.source == source for task in chosen) for source in {task.source for task in chosen}}
    kept = [task for task in chosen if generator.random() < MOST / number[task.source]]
    for _, batch in batches(kept):
        first = batch[0]
        x = np.concatenate([first.points, first.targets])[:, 0]
        near = stack(batch)
        times = np.full((len(batch), len(x), near.shape[2]), np.nan)
        times[:, : near.shape[1]] = near
        times[:, near.shape[1] :, 0] = [task.measured for task in batch]
        order = np.argsort(x)
        yield Curve(first.source, x[order], times[:, order])


def scores_of(x: Array, times: Array) -> NDArray[np.float32]:
    """Evidence (s, h, g) of every mean, covariance and kind of odd run, averaged over which run is odd."""
    terms, members, which = at_runs(*along_one(), x)
    data = data_of(x[:, None], locate(times, points=x[:, None]))
    at = values(terms, x[:, None])
    offered = unlearned(SCALES)
    kinds, places, _ = offered.odd(data.u)
    found = np.full((len(times), len(members), len(SCALES), len(KINDS)), -np.inf)
    for part in np.array_split(np.arange(len(times)), max(1, len(times) // 100)):
        mine = data.part(part)
        for kind, place in zip(kinds.tolist(), places.tolist(), strict=True):
            odd = mine.odd(np.full(len(part), kind), np.full(len(part), place))
            each = evidence(odd if kind == 0 else smoothed(odd, SMOOTHING), at, members, SCALES)
            if kind == 1:  # most repetitions of a value are too seldom slow to say how often one run is
                each[mine.most[:, place] > 1] = -np.inf
            found[part, ..., kind] = np.logaddexp(found[part, ..., kind], each - np.log((kinds == kind).sum()))
    listed = ~of_free_power(terms, members)
    found[..., ~offered.with_odd, 1:] = -np.inf
    found[:, listed] = found[:, listed][:, :, LISTED]
    found[:, doubling(terms, members)] = -np.inf
    return averaged(found.reshape(len(times), len(members), -1), which, len(along_one()[1])).astype(np.float32)


def averaged(scores: Array, which: NDArray[np.intp], count: int) -> Array:
    """Evidence (s, count, g) of means that each of `scores` (s, h, g) is one of, `which` (h,)."""
    found = np.full((len(scores), count, scores.shape[2]), -np.inf)
    for place, mean in enumerate(which.tolist()):
        found[:, mean] = np.logaddexp(found[:, mean], scores[:, place])
    often = np.bincount(which, minlength=count)
    return found - np.log(np.maximum(often, 1))[:, None]


def evidences(curves: Sequence[Curve]) -> dict[str, tuple[Array, Array, Array]]:
    """By source, evidence of whole curves, and that of the near parts of curves and of the whole ones beside them."""
    found: dict[str, list[tuple[Array, Array, Array]]] = {}
    for curve in curves:
        whole, count = scores_of(curve.x, curve.times), len(curve.x)
        for near in sorted({3, count // 2} - set(range(3))):
            if near < count:
                part = scores_of(curve.x[:near], curve.times[:, :near])
                found.setdefault(curve.source, []).append((whole[: 0 if near > 3 else None], part, whole))
    return {source: _joined(parts) for source, parts in found.items()}


def _joined(parts: list[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    whole, near, far = (np.concatenate(each) for each in zip(*parts, strict=True))
    return whole, near, far


def learn(
    found: dict[str, tuple[Array, Array, Array]], without: Collection[str] = (), several: float = priors.SEVERAL
) -> Prevalence:
    """The table that all sources but some give; `several` as of :func:`unlearned`."""
    rest = [parts for source, parts in found.items() if source not in without]
    whole, near, far = (np.concatenate(each) for each in zip(*rest, strict=True))
    first = unlearned(np.repeat(SCALES, len(KINDS), axis=0), several)
    doubles = doubling(first.terms, first.members)
    first = replace(first, means=np.where(doubles, -np.inf, first.means))
    means = first.updated(whole, MEANS_WORTH, ROUNDS).means
    parts = _by_far_part(near, far, first.means)
    weights = np.array([sum(map(float, each)) for each in itertools.product(*parts[:-1])])
    often, known = np.exp(weights) > LIGHTEST, np.exp(means) > RAREST
    seen, unseen = weights[often] - logsumexp(weights[often]), 1 / (len(whole) + 2)
    means = np.where(known, means - logsumexp(means[known]) + np.log1p(-unseen), -np.inf)
    means[doubles] = np.log(unseen / doubles.sum())
    wildest = np.full(len(WILDEST), np.log(unseen / len(WILDEST)))
    return replace(
        first,
        means=means,
        covariances=np.concatenate([seen + np.log1p(-unseen), wildest]),
        scales=np.concatenate([SCALES[often], WILDEST]),
        kinds=parts[-1],
    )


def filling(tasks: Sequence[Task], table: Prevalence, without: str = "") -> Prevalence:
    """The table with how often ranks of a known memory domain act on each other, from whole curves within a node."""
    means = np.where(ending(table.terms, table.members), -np.inf, table.means)
    found = replace(table, means=means, filling=unlearned(table.scales).filling)
    scores = []
    for _, batch in batches([task for task in tasks if task.split in NODES and task.split != without]):
        first = batch[0]
        x = np.concatenate([first.points, first.targets])[:, 0]
        times = np.stack([[*np.nanmean(stack([task])[0], axis=1), *task.measured] for task in batch])[..., None]
        data = data_of(x[:, None], locate(times, points=x[:, None]))
        known = found.in_domains
        at = values(known.terms, coordinates(x[:, None], Domains.inferred(DOMAIN)))
        scores.append(evidence(data, at, known.members[known.occurring], table.scales))
    every, falls = np.concatenate(scores), divided(table.terms, table.members[found.occurring])
    for _ in range(ROUNDS):
        joint = every + found.in_domains.joint
        share = np.exp(joint - logsumexp(joint, axis=(1, 2), keepdims=True)).sum(axis=(0, 2)).reshape(2, -1)
        seen = np.array([[part[falls == kind].sum() for kind in (False, True)] for part in share])
        found = replace(found, filling=np.log((NODES_WORTH / 2 + seen[1]) / (NODES_WORTH + seen.sum(axis=0))))
    return replace(table, filling=found.filling)


def _by_far_part(near: Array, far: Array, means: Array) -> list[Array]:
    """Log weights of the levels of :data:`CHOICES` under which the near parts of curves give the far ones the largest
    density.

    The parts of a covariance are taken to be independent of each other: few weights, which few sources can carry.
    """
    sums = [logsumexp(np.maximum(each, np.float32(-1e4)) + means[:, None], axis=1) for each in (far, near)]
    sizes = [len(part) for part in CHOICES]
    starts = np.cumsum([0, *sizes])

    def of(free: Array) -> list[Array]:
        parts = [free[low:high] for low, high in itertools.pairwise(starts)]
        return [part - logsumexp(part) for part in parts]

    def loss(free: Array) -> tuple[float, Array]:
        parts = of(free)
        weight = np.sum([part[level] for part, level in zip(parts, LEVELS.T, strict=True)], axis=0)
        total, slope = 0.0, np.zeros(len(LEVELS))
        for sign, each in zip((1, -1), sums, strict=True):
            joint = each + weight
            whole = logsumexp(joint, axis=1, keepdims=True)
            total += sign * float(whole.sum())
            slope += sign * np.exp(joint - whole).sum(axis=0)
        found = []
        for part, level in zip(parts, LEVELS.T, strict=True):
            prior, worth = _before(len(part)) if part is not parts[-1] else (USUALLY, KINDS_WORTH)
            own = np.bincount(level, slope, len(part)) + worth * prior
            total += worth * float(prior @ part)
            found.append(own - np.exp(part) * own.sum())
        return -total, -np.concatenate(found)

    return of(minimize(loss, np.zeros(starts[-1]), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x)


def _before(levels: int) -> tuple[Array, float]:
    """Weights of the levels of a part of the covariance before any curve, and the curves that they count for."""
    prior = np.full(levels, (1 - ABSENT) / (levels - 1))
    prior[0] = ABSENT
    return prior, SCALES_WORTH


def ahead(tasks: Sequence[Task], prevalence: Prevalence, domains: Domains | None = None) -> list[Ahead]:
    """What the process with a table says of tasks if laws go on."""
    found: dict[int, Ahead] = {}
    for where, batch in batches(tasks):
        points, times, targets = batch[0].points, stack(batch), batch[0].targets
        process = fit_process(points, locate(times, points=points), np.arange(len(batch)), domains, prevalence)
        parts, near = process.with_nearest(targets)
        distance, scatter = process.ahead(targets), process.scattered()
        for row, place in enumerate(where):
            task, of_one = batch[row], Components(*(part[:, row] for part in parts))
            found[place] = Ahead(
                task.source, task.split, of_one, near[:, row], float(scatter[row]), distance, np.log(task.measured)
            )
    return [found[place] for place in range(len(tasks))]


def answers(curves: Sequence[Ahead], turn: Turn) -> list[Answer]:
    """Answers of the process whose laws turn so often."""
    out = []
    for curve in curves:
        often = turn.probability(np.array([curve.scatter]))
        straight = Components(*(part[:, None] for part in curve.components))
        parts = turned(straight, curve.near[:, None], curve.distance, often, turn)
        low, high = np.exp(quantiles((0.05, 0.95), *parts))[:, 0]
        value = np.exp(quantile(0.5, *straight))[0]
        empty = ("",) * len(value)
        out.append(Answer(value, low, high, ~(high / low <= ABSTAINED), empty, np.full((1, 2), np.nan), ""))
    return out


def related(source: str, sources: Collection[str]) -> set[str]:
    """The sources that hold the same program."""
    words = [word for word in source.lower().split() if word != "archer"]
    return {each for each in sources if words[0] in each.lower().split()}


def _score(tasks: Sequence[Task], given: Sequence[Answer]) -> float:
    """Mean interval score of what was answered."""
    return float(np.mean([interval_score(task, answer) for task, answer in zip(tasks, given, strict=True)]))


def _row(split: str, tasks: Sequence[Task], given: Sequence[Answer]) -> list[object]:
    """A row of the table: errors at the farthest point, of the power law too, coverage, gross errors and score."""
    points, power = judge(tasks, given), judge(tasks, LastPower(2).answer(tasks))
    answered = ~points.flagged
    last = points.error[points.last]
    inside = 100 * float(points.inside[answered].mean()) if answered.any() else float("nan")
    errors = float(np.median(last)), float(np.quantile(last, 0.9)), float(np.median(power.error[power.last]))
    return [
        split,
        len(tasks),
        *errors,
        100 * float(answered.mean()),
        inside,
        int(points.gross.sum()),
        _score(tasks, given),
    ]


@dataclass(frozen=True)
class Judged:
    """Tables learned with some odds against means of several terms, and what each source is answered without its
    program."""

    table: Prevalence  # of all sources
    tasks: dict[str, list[Task]]  # by split
    given: dict[str, list[Answer]]

    @classmethod
    def of(cls, tasks: Sequence[Task], found: dict[str, tuple[Array, Array, Array]], several: float) -> Judged:
        """Those of `tasks`, with the evidence that was `found` of their curves."""
        chosen = [task for task in tasks if task.source in found and usable(task)]
        splits = {task.split: task.source for task in chosen}
        of_split = {split: [task for task in chosen if task.split == split] for split in splits}
        every = filling(tasks, learn(found, several=several))
        without = {source: related(source, found) for source in splits.values()}
        tables = {source: learn(found, program, several) for source, program in without.items()}
        curves = {split: ahead(of_split[split], tables[source]) for split, source in splits.items()}
        published = list(itertools.chain(*curves.values()))
        whole = [*published, *ahead(made_up(MOST), every)]
        turns = {
            source: turn_of([curve for curve in whole if curve.source not in program], MOST)
            for source, program in without.items()
        }
        given = {split: answers(curves[split], turns[source]) for split, source in splits.items()}
        every = replace(every, turn=turn_of(whole, MOST), whole_turn=turn_of(published, MOST))
        return cls(every, of_split, given)

    @property
    def score(self) -> float:
        """Mean interval score of the splits."""
        return float(np.mean([_score(self.tasks[split], given) for split, given in self.given.items()]))


def run(settings: Settings) -> str:
    """Figures of every source with the table of the others; raises Skipped where the data is absent."""
    if not settings.data.is_dir():
        raise Skipped("the folder of real measurements, ../shared/data, is not next to this repository")
    tasks, _ = tasks_of(settings.data)
    found = evidences(list(curves_of(tasks, np.random.default_rng(0))))
    judged = Judged.of(tasks, found, priors.SEVERAL)
    every = judged.table
    text = written(every, f"{sum(len(parts[0]) for parts in found.values())} curves of {len(found)} sources")
    place = Path(ROOT) / "model" / "process" / FILE
    if settings.freeze:
        place.write_text(text, encoding="utf-8")
    same = place.read_text(encoding="utf-8") == text
    rows = [_row(split, judged.tasks[split], given) for split, given in judged.given.items()]
    for split in NODES:
        mine = [task for task in tasks if task.split == split]
        table = filling(tasks, every, split)
        given = answers(ahead(mine, table, Domains.inferred(DOMAIN)), every.turn)
        rows.append(_row(f"{split}, domains known", mine, given))
    heads = ["split", "series", "error, %", "90 %", "power law, %", "answered, %", "inside, %", "gross", "score"]
    shipped = "the one that is shipped" if same else "another than the one that is shipped: run with --freeze"
    largest = np.argsort(-every.means)[:8]
    terms, members = along_one()
    texts = texts_of(terms, members)
    names = ", ".join(f"{texts[at]} {np.exp(every.means[at]):.2f}" for at in largest.tolist())
    return (
        f"Error at the farthest point with the table learned without the program (median and 90th percentile), and of "
        f"the power law through the last two values. The table of all sources is {shipped}. Most frequent means: "
        f"{names}.\n\n" + markdown(heads, rows) + "\n\n" + _odds(tasks, found, judged)
    )


def _odds(tasks: Sequence[Task], found: dict[str, tuple[Array, Array, Array]], used: Judged) -> str:
    """Scores with other odds against means of several terms, where laws are known too."""
    rows = []
    laws = made_up(MOST)
    for several in OFFERED:
        judged = used if several == priors.SEVERAL else Judged.of(tasks, found, several)
        known = _score(laws, answers(ahead(laws, judged.table), judged.table.turn))
        mark = "**" if several == priors.SEVERAL else ""
        rows.append([f"{mark}{several:g}{mark}", judged.score, known, (judged.score + known) / 2])
    return (
        "Mean interval score of the splits, of programs whose laws are known, and of both, by the logarithm of the "
        "odds against means of several terms before any curve; in bold the one that is used.\n\n"
        + markdown(["odds", "published", "known laws", "mean"], rows)
    )
