"""Honesty on functions that change late: at the last point measured or just beyond it, with the truth known.

Five values of a parameter train, of three repetitions each unless said otherwise; asked for is up to 16 times the
largest. Every series is fitted by itself, and once among smooth ones, as the kernels of one program are. What changes
beyond everything measured no method can know of: such classes show how often the intervals allow for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.measures import Points, covered, judge
from benchmarks.methods.engine import Engine
from benchmarks.settings import Settings
from benchmarks.synthetic_functions import FACTORS
from benchmarks.table import markdown
from benchmarks.tasks import Task

TITLE = "Late changes"
SEED = 11
COUNT = 100
AXIS = np.array([4.0, 8.0, 16.0, 32.0, 64.0])
AMONG = 5
"""Parts of the series of a class that are fitted apart, each among all smooth ones."""
NOISE = 0.02
"""Standard deviation of a repetition."""
JUMP = 1.3, 3.0
"""Factors between which jumps lie."""
LITTLE = 1e-5, 1e-2
"""What one rank has of what several have."""
NEAR = 0.5, 4.0
"""Where growth sets in or ends, in units of the largest value measured."""
Array = NDArray[np.float64]
Truth = Callable[[Array], Array]
Generator = np.random.Generator


def _between(generator: Generator, ends: tuple[float, float]) -> float:
    """A number whose logarithm is even between the ends."""
    return float(np.exp(generator.uniform(*np.log(ends))))


def smooth(generator: Generator) -> Truth:
    """A constant and a power: growing by up to x^(3/2), or divided work."""
    power = generator.choice([-1.0, -2 / 3, 1 / 2, 2 / 3, 1.0, 3 / 2])
    share = generator.uniform(0.1, 1.0)
    at = AXIS[0] if power < 0 else AXIS[-1]
    return lambda x: np.asarray(1 - share + share * (x / at) ** power)


def flat(generator: Generator) -> Truth:
    """A constant."""
    return np.ones_like


def jump_up(generator: Generator) -> Truth:
    """A factor from the last value measured on."""
    law, factor = smooth(generator), _between(generator, JUMP)
    return lambda x: np.where(x >= AXIS[-1], factor, 1.0) * law(x)


def jump_down(generator: Generator) -> Truth:
    """The same downwards."""
    law, factor = smooth(generator), _between(generator, JUMP)
    return lambda x: np.where(x >= AXIS[-1], 1 / factor, 1.0) * law(x)


def odd_last(generator: Generator) -> Truth:
    """A last value that is slow by chance, in all of its repetitions."""
    law, factor = smooth(generator), _between(generator, JUMP)
    return lambda x: np.where(x == AXIS[-1], factor, 1.0) * law(x)


def saturating(generator: Generator) -> Truth:
    """min(x, b): growth that ends."""
    end = AXIS[-1] * _between(generator, NEAR)
    share = generator.uniform(0.1, 1.0)
    return lambda x: np.asarray(1 - share + share * np.minimum(x, end) / AXIS[-1])


def seen_end(generator: Generator) -> Truth:
    """The same with the end between the last value but two and the last."""
    end = _between(generator, (AXIS[-3], AXIS[-1]))
    share = generator.uniform(0.5, 1.0)
    return lambda x: np.asarray(1 - share + share * np.minimum(x, end) / AXIS[-1])


def seen_stop(generator: Generator) -> Truth:
    """Work that more than so many do not divide any further, as the last two values or three show."""
    end = _between(generator, (AXIS[-4], AXIS[-2]))
    share = generator.uniform(0.5, 1.0)
    return lambda x: np.asarray(1 - share + share * AXIS[0] / np.minimum(x, end))


def onset(generator: Generator) -> Truth:
    """max(a, b x): growth that sets in."""
    start = AXIS[-1] * _between(generator, NEAR)
    return lambda x: np.maximum(1.0, x / start)


def seen_onset(generator: Generator) -> Truth:
    """The same where the last values grow already."""
    start = _between(generator, (AXIS[-4], AXIS[-2]))
    return lambda x: np.maximum(1.0, x / start)


def onset_strong(generator: Generator) -> Truth:
    """Divided work that communication takes over from, near the last value measured."""
    start = AXIS[-1] * _between(generator, NEAR)
    power = generator.choice([0.5, 1.0])
    return lambda x: 1 / x + (x / start) ** power / start


def waits(generator: Generator) -> Truth:
    """What is left between two nearly equal times that both grow, by powers that differ little."""
    power, more = generator.uniform(0.5, 1.0), generator.uniform(0.05, 0.3)
    share = generator.uniform(0.9, 1.0)
    return lambda x: np.asarray(x ** (power + more) - share * x**power)


CLASSES: dict[str, Callable[[Generator], Truth]] = {
    "smooth": smooth,
    "flat": flat,
    "jump up at the last value, lasting": jump_up,
    "jump down at the last value, lasting": jump_down,
    "last value slow by chance": odd_last,
    "growth ends near the last value": saturating,
    "growth ended before it": seen_end,
    "division ended before it": seen_stop,
    "growth sets in near the last value": onset,
    "growth set in before it": seen_onset,
    "divided work, growth near the last value": onset_strong,
    "difference of two times": waits,
    "heavy tails, two repetitions": smooth,
    "two modes": smooth,
}
LAWS = {"heavy tails, two repetitions": ("heavy", 2), "two modes": ("modes", 3)}
"""Law of the noise and repetitions, where they are not normal and three."""


def noisy(generator: Generator, law: str, shape: tuple[int, int]) -> Array:
    """Factors on the truth: normal, Student's of two degrees of freedom, or slow by a third every fourth time."""
    if law == "heavy":
        return np.asarray(np.exp(0.05 * generator.standard_t(2, size=shape)))
    usual = np.exp(NOISE * generator.standard_normal(shape))
    return usual * np.where(generator.uniform(size=shape) < 0.25, 4 / 3, 1.0) if law == "modes" else usual


def tasks_of(seed: int, count: int) -> list[Task]:
    """`count` series of every class, one split a class."""
    generator = np.random.default_rng(seed)
    targets = AXIS[-1] * np.array(FACTORS)
    tasks = []
    for split, draw in CLASSES.items():
        law, repetitions = LAWS.get(split, ("normal", 3))
        for number in range(count):
            truth = draw(generator)
            values = truth(AXIS)[:, None] * noisy(generator, law, (len(AXIS), repetitions))
            name = f"{split} {number}"
            tasks.append(
                Task(split, name, "synthetic", ("ranks",), AXIS[:, None], values, targets[:, None], truth(targets))
            )
    return tasks


def early(seed: int, count: int) -> list[Task]:
    """`count` smooth series of ten values that jump within the range, as where a library changes its algorithm."""
    generator = np.random.default_rng(seed)
    axis = AXIS[0] * 2.0 ** np.arange(10)
    target = np.array([4 * axis[-1]])
    tasks = []
    for number in range(count):
        law, factor = smooth(generator), _between(generator, JUMP)
        place = axis[generator.integers(3, 8)]

        def truth(x: Array, law: Truth = law, place: float = place, factor: float = factor) -> Array:
            return law(x) * np.where(x >= place, factor, 1.0)

        values = truth(axis)[:, None] * noisy(generator, "normal", (len(axis), 3))
        name = f"jump within the range {number}"
        tasks.append(Task("jump", name, "synthetic", ("ranks",), axis[:, None], values, target[:, None], truth(target)))
    return tasks


def from_one_rank(seed: int, count: int, sizes: tuple[float, ...] = (1.0,)) -> list[Task]:
    """`count` smooth series of several ranks of which one has next to nothing, as of what is exchanged; in proportion
    to `sizes` where there are several."""
    generator = np.random.default_rng(seed)
    axis, width = AXIS / AXIS[0], 1 + (len(sizes) > 1)
    points = np.array([(ranks, size) for ranks in axis for size in sizes])[:, :width]
    target = np.array([(4 * axis[-1], sizes[-1])])[:, :width]
    tasks = []
    for number in range(count):
        law, little = smooth(generator), _between(generator, LITTLE)

        def truth(at: Array, law: Truth = law, little: float = little) -> Array:
            return np.where(at[:, 0] > 1, law(at[:, 0]) * at[:, 1:].prod(axis=1), little)

        values = truth(points)[:, None] * noisy(generator, "normal", (len(points), 3))
        name, names = f"one rank {number}", ("ranks", "size")[:width]
        tasks.append(Task("one", name, "synthetic", names, points, values, target, truth(target)))
    return tasks


def decades(seed: int, count: int) -> list[Task]:
    """`count` tables over two parameters with values decades apart in no order, asked where they were measured."""
    generator = np.random.default_rng(seed)
    points = np.array([(x, y) for x in AXIS for y in AXIS])
    tasks = []
    for number in range(count):
        walks = generator.normal(size=(2, len(AXIS))).cumsum(axis=1)
        truth = np.exp(np.add.outer(*walks)).ravel()
        values = truth[:, None] * noisy(generator, "normal", (len(truth), 1))
        tasks.append(Task("decades", f"decades {number}", "synthetic", ("x", "y"), points, values, points, truth))
    return tasks


def run(settings: Settings) -> str:
    """One table: unwarned errors, abstentions and coverage of every class."""
    tasks = tasks_of(SEED, COUNT // 10 if settings.quick else COUNT)
    others = [replace(task, split="") for task in tasks if task.split == "smooth"]
    splits = np.array([task.split for task in tasks])
    alone = judge(tasks, Engine(alone=True).answer(tasks))
    rows: list[list[object]] = []
    for split in CLASSES:
        mine = [replace(task, split="") for task in tasks if task.split == split]
        few = [mine[at::AMONG] for at in range(AMONG)]
        program = [judge(some, Engine().answer(some + others)[: len(some)]) for some in few]
        rows.append([split, *_figures([alone.of(splits == split)]), *_figures(program)])
    figures = ["gross, unwarned %", "abstained %", "covered %", "median error %"]
    text = (
        f"{len(tasks) // len(CLASSES)} functions of each class, truth known; five values of a parameter train, "
        "up to 16 times the largest is asked for. *Near the last value* is evenly in the logarithm between half and "
        "four times it: what changes beyond all that was measured no method can see. *In a program* a fifth of the "
        "class at a time is fitted together with all smooth functions. *Gross, unwarned* are errors above 50 % that "
        "are neither abstained from nor inside the 90 % interval.\n\n"
    )
    return text + markdown(
        ["class", *(f"{name}, {how}" for how in ("alone", "in a program") for name in figures)], rows
    )


def _figures(parts: list[Points]) -> list[object]:
    gross, flagged, error = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("gross", "flagged", "error")
    )
    within = float(np.nanmean([covered(part) for part in parts]))
    return [100 * float(gross.mean()), 100 * float(flagged.mean()), 100 * within, float(np.median(error))]
