"""Accuracy on synthetic functions: truth known, five points an axis, five repetitions, noise from 0 to 50 %."""

from __future__ import annotations

import numpy as np

from benchmarks.bayes import BayesOptimal
from benchmarks.measures import covered, judge
from benchmarks.methods.answers import Answer, Method
from benchmarks.settings import Settings
from benchmarks.synthetic_functions import FACTORS, Function, tasks_of
from benchmarks.table import markdown

TITLE = "Synthetic functions"
SEED = 7
NOISE = (0.0, 0.02, 0.1, 0.2, 0.5)
COUNTS = {1: 1000, 2: 300, 3: 50}
CLOSE = 0.25


def run(settings: Settings) -> str:
    """Tables for one, two and three parameters."""
    parts = [
        "Random functions of the performance model normal form (`synthetic_functions.py`); 10 % noise is +-5 %. "
        "*Lead* is the share of functions whose exponent, in every parameter, is within 1/4 of the truth (in a sum the "
        "smaller term may be too small to be seen by any method); errors "
        "are medians in percent at 2, 4, 8 and 16 times the largest training value of every parameter. *Best possible* "
        "knows the generator: its forms, the priors of its coefficients, and the noise."
    ]
    for parameters, count in COUNTS.items():
        count = max(20, count // 10) if settings.quick else count
        rows = [row for noise in NOISE for row in _rows(settings, parameters, count, noise)]
        lead = ["lead %"] if parameters == 1 else ["lead %", "products", "sums"]
        head = ["noise, method", *lead, *(f"error % at {factor:g}x" for factor in FACTORS), "covered %", "abstained %"]
        title = "One parameter" if parameters == 1 else f"{parameters} parameters"
        parts.append(f"### {title}, {count} functions\n\n" + markdown(head, rows))
    return "\n\n".join(parts)


def _rows(settings: Settings, parameters: int, count: int, noise: float) -> list[list[object]]:
    tasks, functions = tasks_of(SEED, count, parameters, noise)
    methods: list[Method] = settings.methods()
    if parameters <= 2 and noise > 0:
        methods.append(BayesOptimal(noise, CLOSE))
    rows = []
    for method in methods:
        answers = method.answer(tasks)
        points = judge(tasks, answers)
        error = points.error.reshape(count, -1)
        rows.append(
            [
                f"{noise:.0%}, {method.name}",
                *_lead(answers, functions, parameters),
                *np.median(error, axis=0),
                100 * covered(points) if method.intervals else float("nan"),
                100 * float(points.flagged.mean()) if method.intervals else float("nan"),
            ]
        )
    return rows


def _lead(answers: list[Answer], functions: list[Function], parameters: int) -> list[float]:
    """Percent of leading exponents found: in all and, for several parameters, in products and in sums."""
    shares = [100 * lead_share(answers, functions)]
    for product in (True, False) if parameters > 1 else ():
        pairs = [pair for pair in zip(answers, functions, strict=True) if pair[1].product == product]
        shares.append(100 * lead_share([a for a, _ in pairs], [f for _, f in pairs]) if pairs else float("nan"))
    return shares


def lead_share(answers: list[Answer], functions: list[Function]) -> float:
    """Share of the answers whose polynomial exponents are all within 1/4 of the true ones."""
    close = [
        np.all(np.abs(answer.exponents[:, 0] - function.exponents[:, 0]) <= CLOSE + 1e-9)
        for answer, function in zip(answers, functions, strict=True)
    ]
    return float(np.mean(close))
