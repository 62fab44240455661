"""A model asked on a grid of its parameters, from which a page answers any configuration without the model.

Between the grid's values the logarithm of a time is a cubic of the logarithm of each parameter (Hermite's, with slopes
of the parabola through three neighbours), as the page's script computes it. The grid is dense where that needs it: the
middle of every interval is asked of the model too, and becomes a value of the grid where the interpolation misses it.
What is still missed in the end is kept, and the page shows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ranksight.analysis.diagnosis.causes import CAUSES, causes_of, seconds_of
from ranksight.analysis.diagnosis.gathering import gather
from ranksight.core.arrays import Array, Index
from ranksight.core.records import dataclass
from ranksight.model.fitted_model import Model
from ranksight.model.largest import larger
from ranksight.model.process.solve import dividing
from ranksight.model.uncertainty.forecast import OK
from ranksight.reports.sweep import RANKS, Sweep, following, holding

MOST_AXES = 2
WORK = 60_000
"""Series times configurations that a grid asks for: a few seconds on one core."""
FEWEST, MOST = 60, 400  # configurations of a grid
REPLAYED = 30
"""Configurations of a grid whose messages are replayed: each takes as long as thousands of series."""
OTHERS = 4  # measured values of the other parameter to begin with
CLOSE = 0.004
"""Relative difference between interpolation and model above which the middle of an interval becomes a value of the
grid; less than half of the 1 % from which the page marks an answer."""
LINES = 3
"""Values of the other parameter at which intervals of one are checked."""
BEYOND = {True: 16.0, False: 2.0}
"""Times the largest measured value up to which ranks, and other parameters, are asked for."""


@dataclass(frozen=True)
class Answers:
    """What a model answers at k configurations.

    `reason`: why it does not, empty where it does. `parts`: seconds of each part of the time. `kernels`: seconds of
    each of K kernels, (K, k).
    """

    points: Array  # (k, m)
    time: Array  # (k,): seconds of the whole program
    spread: Array  # (k,): standard deviation of their logarithm
    low: Array  # (k,): ends of the interval; NaN where the data are insufficient
    high: Array
    reason: tuple[str, ...]
    parts: Mapping[str, Array]
    kernels: Array


@dataclass(frozen=True)
class Grid:
    """Answers at all combinations of some values of one or two parameters, the others held.

    `axes`: rising values of each parameter that varies. `answers`: row by row, the last parameter fastest.
    `missed`: for each parameter and interval between its values how far interpolation is from the model's time,
    relative; `loose`: from the ends of the time's interval, which may jump where the time does not.
    """

    axes: Mapping[str, Array]
    held: Mapping[str, float]
    answers: Answers
    names: tuple[str, ...]  # of the kernels
    missed: Mapping[str, Array]
    loose: Mapping[str, Array]

    @property
    def shape(self) -> tuple[int, ...]:
        """Values of each parameter."""
        return tuple(len(values) for values in self.axes.values())


def answers_at(model: Model, points: Array, level: float) -> Answers:
    """What a model answers at `points` (k, m)."""
    said, broken = model.ask(points, level)
    total = model.whole_time(said, broken)
    ok = (total.status[0] == OK) & np.isfinite(total.value[0])
    evidence = gather(model, points, level, (said, broken))
    seconds = seconds_of(evidence, causes_of(evidence)).sum(axis=1)
    parts = dict(zip(CAUSES, seconds, strict=True))
    return Answers(
        points,
        total.value[0],
        total.spread[0],
        np.where(ok, total.lower[0], np.nan),
        np.where(ok, total.upper[0], np.nan),
        tuple("" if fine else str(text) or "insufficient data" for fine, text in zip(ok, total.reason[0], strict=True)),
        {**parts, "others": evidence.others},
        broken.by_kernel,
    )


def grid(sweep: Sweep) -> Grid | None:
    """The grid of a sweep's model around it; None where no time was measured or no parameter varied."""
    model = sweep.model
    if not sweep.timed:
        return None
    names = _axes(sweep)
    if not names:
        return None
    room = int(np.clip(WORK / max(1, len(model.fitted)), FEWEST, MOST))
    if model.equation.replay is not None:
        room = REPLAYED
    axes = {name: _start(sweep, name) for name in names}
    asked = _Asked(sweep, names)
    missed: dict[str, Array] = {}
    loose: dict[str, Array] = {}
    for name, share in zip(names, (1.0,) if len(names) == 1 else (0.6, 1.0), strict=True):
        axes[name], missed[name], loose[name] = _refined(asked, axes, name, int(share * room))
    held = {name: float(value) for name, value in sweep.held.items() if name not in names}
    return Grid(axes, held, asked.at(axes), tuple(sweep.breakdown.kernels), missed, loose)


def interpolated(nodes: Array, values: Array, at: Array) -> Array:
    """`values` (..., n) at rising `nodes` (n,) interpolated at `at` (q,), (..., q).

    Cubic Hermite with slopes of the parabola through three neighbours; where the outer neighbour is missing (NaN), the
    slope is that of the interval.
    """
    if len(nodes) == 1:
        return np.repeat(values, len(at), axis=-1)
    width = np.diff(nodes)
    secant = np.diff(values, axis=-1) / width
    slope = np.concatenate([secant[..., :1], secant], axis=-1)  # of the interval before a node
    after = np.concatenate([secant, secant[..., -1:]], axis=-1)
    before_width, after_width = np.append(width[0], width), np.append(width, width[-1])
    middle = (after_width * slope + before_width * after) / (before_width + after_width)
    if len(nodes) > 2:
        middle[..., 0] = secant[..., 0] + (secant[..., 0] - secant[..., 1]) * width[0] / (width[0] + width[1])
        middle[..., -1] = secant[..., -1] + (secant[..., -1] - secant[..., -2]) * width[-1] / (width[-1] + width[-2])
    cell = np.clip(np.searchsorted(nodes, at, side="right") - 1, 0, len(nodes) - 2)
    h, t = width[cell], (at - nodes[cell]) / width[cell]
    own = secant[..., cell]
    left, right = (np.where(np.isfinite(m), m, own) for m in (middle[..., cell], middle[..., cell + 1]))
    return (
        values[..., cell] * (1 + 2 * t) * (1 - t) ** 2
        + values[..., cell + 1] * t**2 * (3 - 2 * t)
        + h * (left * t * (1 - t) ** 2 - right * t**2 * (1 - t))
    )


class _Asked:
    """A model's answers, each configuration asked for once."""

    def __init__(self, sweep: Sweep, names: Sequence[str]) -> None:
        self.sweep, self.names = sweep, names
        self.known: dict[tuple[float, ...], int] = {}
        self.blocks: list[Answers] = []

    def at(self, axes: Mapping[str, Array]) -> Answers:
        """Answers at all combinations of the axes' values."""
        mesh = np.meshgrid(*(axes[name] for name in self.names), indexing="ij")
        rows = [tuple(row) for row in np.stack([part.ravel() for part in mesh], axis=1).tolist()]
        fresh = list(dict.fromkeys(row for row in rows if row not in self.known))
        if fresh:
            self.known |= {row: len(self.known) + k for k, row in enumerate(fresh)}
            self.blocks = [_joined([*self.blocks, self._ask(np.array(fresh))])]
        return _taken(self.blocks[0], np.array([self.known[row] for row in rows]))

    def _ask(self, rows: Array) -> Answers:
        sweep, model = self.sweep, self.sweep.model
        points = np.repeat(sweep.points[-1:], len(rows), axis=0)
        for at, name in enumerate(self.names):
            points[:, model.parameters.index(name)] = rows[:, at]
        return answers_at(model, model.along_ties(points) if following(model, sweep.along) else points, sweep.level)


def _joined(blocks: Sequence[Answers]) -> Answers:
    def both(name: str) -> Array:
        return np.concatenate([getattr(block, name) for block in blocks])

    return Answers(
        both("points"),
        both("time"),
        both("spread"),
        both("low"),
        both("high"),
        tuple(reason for block in blocks for reason in block.reason),
        {name: np.concatenate([block.parts[name] for block in blocks]) for name in blocks[0].parts},
        np.concatenate([block.kernels for block in blocks], axis=1),
    )


def _taken(a: Answers, rows: Index) -> Answers:
    return Answers(
        a.points[rows],
        a.time[rows],
        a.spread[rows],
        a.low[rows],
        a.high[rows],
        tuple(a.reason[row] for row in rows.tolist()),
        {name: values[rows] for name, values in a.parts.items()},
        a.kernels[:, rows],
    )


def _axes(sweep: Sweep) -> list[str]:
    """Parameters of the grid: the sweep's, and the one of the others with most values; those that follow are none."""
    model, tied = sweep.model, following(sweep.model, sweep.along)
    columns = {
        name: column for name, column in zip(model.parameters, model.training.T, strict=True) if name not in tied
    }
    count = {name: len(np.unique(column)) for name, column in columns.items()}
    positive = {name for name, column in columns.items() if (column > 0).all()}
    rest = sorted((name for name in count if name != sweep.along), key=lambda name: -count[name])
    wanted = [name for name in (sweep.along, *rest) if count.get(name, 0) > 1 and name in positive]
    return wanted[:MOST_AXES] if sweep.along in wanted else []


def _start(sweep: Sweep, name: str) -> Array:
    """Values of a parameter to begin with: the measured ones, and up to the farthest of interest."""
    column = sweep.model.training[:, sweep.model.parameters.index(name)]
    first = name == sweep.along
    target = float(sweep.values[-1]) if first else sweep.held[name]
    finer = bool(dividing(column[:, None])[0])
    farthest = float(larger(column[:, None], np.array([BEYOND[name == RANKS]]))[0])
    end = min(farthest, target) if finer else max(farthest, target)
    if first:
        doublings = np.log2(end / target)
        steps = np.arange(1, np.ceil(abs(doublings) - 1e-9) + 1)
        between = np.append(sweep.values, target * 2.0 ** (np.sign(doublings) * steps))
    else:
        seen = np.unique(column)
        seen = seen[np.unique(np.linspace(0, len(seen) - 1, OTHERS).astype(int))]
        between = np.concatenate([seen, [target, end]])
    values = np.unique(np.round(between) if _whole(sweep, name) else between)
    points = np.repeat(sweep.points[-1:], len(values), axis=0)
    points[:, sweep.model.parameters.index(name)] = values
    return np.asarray(values[holding(sweep.model, points)])


def _whole(sweep: Sweep, name: str) -> bool:
    """Whether a parameter takes whole numbers: ranks do, and one that was whole in every run."""
    column = sweep.model.training[:, sweep.model.parameters.index(name)]
    return name == RANKS or bool((column % 1 == 0).all())


def _refined(asked: _Asked, axes: Mapping[str, Array], name: str, room: int) -> tuple[Array, Array, Array]:
    """A parameter's values with the middles of the intervals where interpolation misses the model, and the misses of
    the time and of the ends of its interval."""
    now = dict(axes)
    while True:
        missed, loose, middles = _misses(asked, now, name)
        bad = np.flatnonzero((missed > CLOSE) & np.isfinite(middles))
        size = int(np.prod([len(values) for values in now.values()]))
        free = (room - len(asked.known) - size) // (2 * LINES + size // len(now[name]))
        if not len(bad) or free < 1:
            return now[name], missed, loose
        worst = bad[np.argsort(-missed[bad], kind="stable")[:free]]
        now[name] = np.unique(np.concatenate([now[name], middles[worst]]))


def _misses(asked: _Asked, axes: Mapping[str, Array], name: str) -> tuple[Array, Array, Array]:
    """How far interpolation is from the model's time between the values of a parameter, how far from its interval, and
    the middles; NaN where none is.

    The other parameter takes its smallest, a middle and its largest value.
    """
    nodes, at = axes[name], list(axes).index(name)
    lines = {other: values if other == name else _ends(values) for other, values in axes.items()}
    middles = np.sqrt(nodes[:-1] * nodes[1:])
    # Two neighbouring counts in an interval: what divides one of them evenly does not divide the other.
    checks = [np.round(middles), np.round(middles) + 1] if _whole(asked.sweep, name) else [middles]
    inside = [(check > nodes[:-1]) & (check < nodes[1:]) for check in checks]
    missed, loose = np.zeros(len(middles)), np.zeros(len(middles))
    for check, fine in zip(checks, inside, strict=True):
        if not fine.any():
            continue
        here, there = asked.at(lines), asked.at({**lines, name: check[fine]})
        for each, most in (("time", missed), ("low", loose), ("high", loose)):
            known, truth = (_last(getattr(part, each), lines, at) for part in (here, there))
            with np.errstate(all="ignore"):
                guess = np.exp(interpolated(np.log(nodes), np.log(known), np.log(check[fine])))
                off = np.abs(guess / truth - 1)
            off = np.where(np.isfinite(off), off, np.where(np.isfinite(guess), np.inf, 0.0))
            most[fine] = np.maximum(most[fine], off.max(axis=0))
    return missed, loose, np.where(inside[0], checks[0], np.nan)


def _ends(values: Array) -> Array:
    return np.asarray(values[np.unique([0, len(values) // 2, len(values) - 1])])


def _last(values: Array, axes: Mapping[str, Array], at: int) -> Array:
    """Values of a grid as rows along the parameter at position `at`."""
    others = int(np.prod([len(each) for k, each in enumerate(axes.values()) if k != at]))
    shape = [others, -1] if at == len(axes) - 1 else [-1, others]
    return values.reshape(shape) if at == len(axes) - 1 else values.reshape(shape).T
