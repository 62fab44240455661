"""What a benchmark asks: series with training points, and the measured values that a method has to predict."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FROZEN = Path(__file__).parent / "frozen.json"


@dataclass(frozen=True, slots=True)
class Task:
    """One series, split.

    Attributes
    ----------
    split : str
        Name of the frozen split it belongs to, such as ``gromacs nodes 1-5``.
    name : str
        The series within the split.
    source : str
        Whose measurements: series of one source are left out together.
    parameters : tuple of str
        The m parameters.
    points : (n, m) float64
        Training configurations, distinct.
    values : (n, r) float64
        Measured there; NaN pads repetitions.
    targets : (k, m) float64
        Held-out configurations, the farthest last.
    measured : (k,) float64
        Measured there (the mean where there are repetitions).
    metric : str
        ``time`` or a requirement.
    hidden, hidden_targets : (n, h) and (k, h) float64; empty and None where nothing else differed
        Raw configurations behind a composite parameter, for methods that can make use of them; not part of the digest,
        which holds what every method is given.
    """

    split: str
    name: str
    source: str
    parameters: tuple[str, ...]
    points: Array
    values: Array
    targets: Array
    measured: Array
    metric: str = "time"
    hidden: Array = field(default_factory=lambda: np.empty(0))
    hidden_targets: Array | None = None

    def digest(self) -> str:
        """A hash of everything that a method is given and judged by."""
        held = hashlib.sha256(f"{self.split}|{self.name}|{self.parameters}|{self.metric}".encode())
        for part in (self.points, self.values, self.targets, self.measured):
            held.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
        return held.hexdigest()


def make(
    split: str,
    name: str,
    source: str,
    parameters: Sequence[str],
    train: Sequence[tuple[Sequence[float], Sequence[float]]],
    held: Sequence[tuple[Sequence[float], Sequence[float]]],
    metric: str = "time",
) -> Task:
    """A task from (point, values) pairs; held-out points are given in the order of their distance."""
    width = max(len(values) for _, values in train)
    values = np.full((len(train), width), np.nan)
    for row, (_, found) in enumerate(train):
        values[row, : len(found)] = found
    return Task(
        split,
        name,
        source,
        tuple(parameters),
        np.array([point for point, _ in train], dtype=np.float64).reshape(len(train), -1),
        values,
        np.array([point for point, _ in held], dtype=np.float64).reshape(len(held), -1),
        np.array([np.mean(found) for _, found in held]),
        metric,
    )


def batches(tasks: Iterable[Task]) -> Iterator[tuple[list[int], list[Task]]]:
    """Tasks over the same training points, targets and parameters together, with their places."""
    groups: dict[tuple[object, ...], list[tuple[int, Task]]] = {}
    for place, task in enumerate(tasks):
        aside = tuple(None if part is None else part.tobytes() for part in (task.hidden, task.hidden_targets))
        key = (task.split, task.parameters, task.points.tobytes(), task.targets.tobytes(), *aside)
        groups.setdefault(key, []).append((place, task))
    for group in groups.values():
        yield [place for place, _ in group], [task for _, task in group]


def stack(tasks: Sequence[Task]) -> Array:
    """Values (s, n, r) of tasks over the same points, padded with NaN."""
    width = max(task.values.shape[1] for task in tasks)
    values = np.full((len(tasks), len(tasks[0].points), width), np.nan)
    for row, task in enumerate(tasks):
        values[row, :, : task.values.shape[1]] = task.values
    return values


def check_frozen(tasks: Sequence[Task], record: bool = False) -> list[str]:
    """Compare every split with the digest it was frozen with; with `record` add splits that are not there yet.

    Returns
    -------
    list of str
        What differs, empty when nothing does.
    """
    frozen = json.loads(FROZEN.read_text(encoding="utf-8")) if FROZEN.exists() else {}
    wrong = []
    for split in dict.fromkeys(task.split for task in tasks):
        chosen = [task for task in tasks if task.split == split]
        total = hashlib.sha256("".join(sorted(task.digest() for task in chosen)).encode()).hexdigest()
        entry = {"series": len(chosen), "held_out": sum(len(task.measured) for task in chosen), "sha256": total}
        if split not in frozen:
            if record:
                frozen[split] = entry
            else:
                wrong.append(f"{split} is not frozen")
        elif frozen[split] != entry:
            wrong.append(f"{split} is not the split that was frozen")
    if record:
        FROZEN.write_text(json.dumps(frozen, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return wrong
