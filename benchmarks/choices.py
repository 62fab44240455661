"""How the constants of the engine's priors were chosen: on second splits, and what each source's absence would change.

For every constant the present value is compared with others. The score is the interval score of Gneiting and Raftery
(2007, *Journal of the American Statistical Association* 102, 359, eq. 43) of the logarithms: width plus 20 times the
distance of what lies outside a 90 % interval; it rewards narrow intervals that hold. Every source counts the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.ablation import replaced, value_of
from benchmarks.measures import interval_score
from benchmarks.methods.engine import Engine
from benchmarks.second_splits import load
from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from benchmarks.tasks import Task

TITLE = "Choice of constants"
CHOICES: tuple[tuple[str, str, tuple[float, ...]], ...] = (
    ("priors.DRIFT", "drift before the data", (0.03, 0.06, 0.12)),
    ("priors.BETWEEN_JOBS", "scatter between jobs", (0.02, 0.03, 0.04, 0.05)),
    ("priors.CANCELLING", "cost of terms that cancel", (0.0, 1.0, 2.0, 4.0)),
    ("priors.NEGATIVE", "cost of a negative coefficient", (1.0, 2.0, 3.0)),
    ("priors.FORMS[constant]", "weight of no change at all", (0.0, 1.0, 2.0)),
    ("priors.FORMS[beyond ideal]", "weight of decay beyond ideal", (0.0, -1.0, -2.0)),
    ("priors.GROWTH_UNSEEN", "cost of growth unseen", (0.5, 1.0, 2.0)),
    ("priors.ANOTHER_REGIME", "odds of another first regime", (-2.0, -3.0, -5.0)),
    ("priors.FORMS_WORTH", "series that forms before the data count for", (10.0, 20.0, 50.0)),
)


def run(settings: Settings) -> str:
    """Tables of scores; raises Skipped where the data is absent."""
    if not settings.data.is_dir():
        raise Skipped("the folder of real measurements, ../shared/data, is not next to this repository")
    tasks = load(settings.data)
    sources = list(dict.fromkeys(task.source for task in tasks))
    rows = []
    for place, text, values in CHOICES[:2] if settings.quick else CHOICES:
        score = np.array([_scores(tasks, sources, place, value) for value in values])
        used = value_of(place)
        without = [values[int(np.delete(score, k, axis=1).mean(axis=1).argmin())] for k in range(len(sources))]
        for at, value in enumerate(values):
            agreed = sum(chosen == value for chosen in without)
            mark = "**" if value == used else ""
            rows.append([f"{text}: {mark}{value:g}{mark}", *score[at], float(score[at].mean()), f"{agreed}"])
    return (
        f"{len(tasks)} series of other points, parts and metrics of the sources than those of the frozen splits; "
        "series over the same points are fitted together. Mean interval score by source, smaller is better; in bold "
        "the value that is used. Where another scores better, the present one is the wider or gives fewer errors above "
        "50 % outside of intervals, which the score weighs little, its values are closer, or the difference rests on "
        "one source; *chosen* is "
        f"by how many of the {len(sources)} sets that leave one source out.\n\n"
        + markdown(["constant", *sources, "all", "chosen"], rows)
    )


def _scores(tasks: Sequence[Task], sources: Sequence[str], place: str, value: float) -> NDArray[np.float64]:
    """Mean score (sources,) with one constant changed."""
    with replaced({place: value}):
        answers = Engine().answer(tasks)
    found = np.array([interval_score(task, answer) for task, answer in zip(tasks, answers, strict=True)])
    of = np.array([task.source for task in tasks])
    return np.array([found[of == source].mean() for source in sources])
