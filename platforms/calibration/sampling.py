"""Samples of a measurement and the checks that say whether they can be trusted.

The discipline is pyperf's (its documentation, "How to get reproducible benchmark results" and "pyperf check"): a
warm-up that does not count, samples long enough for the clock, several of them from several processes, the median, and
a warning where they scatter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.errors import ToolError

if TYPE_CHECKING:
    import pyperf

SHORTEST = 1e-3
"""Seconds below which a sample is too short for the clock and for what the system does in between."""
SCATTER = 0.10
"""Standard deviation over mean above which samples are not stable."""
WHOLE = 0.98
"""Share of its processor from which on a thread counts as undisturbed."""
OUTLIER = 0.50
"""Distance of the extremes from the median, relative to it, above which one is called an outlier."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of one measurement.

    Attributes
    ----------
    label : str
        What was measured.
    pairs : tuple of (float, float)
        Work done (loads, bytes, additions) and seconds taken, of every sample.
    warmup : tuple of (float, float)
        That of the warm-up, which does not count.
    disturbed : float
        Share of the samples in which a thread had to give its processor away, if those had to be used.
    """

    label: str
    pairs: tuple[tuple[float, float], ...]
    warmup: tuple[float, float] = (0.0, 0.0)
    disturbed: float = 0.0

    def __post_init__(self) -> None:
        if not self.pairs or min(min(pair) for pair in self.pairs) <= 0:
            raise ToolError(f"measuring {self.label} gave a sample without work or time", "check the system's clock")

    @property
    def seconds(self) -> float:
        """Median seconds per unit of work."""
        return float(np.median(self.per_unit()))

    @property
    def rate(self) -> float:
        """Units of work per second, the inverse of the median time."""
        return 1.0 / self.seconds

    @property
    def scatter(self) -> float:
        """Standard deviation of the samples over their mean."""
        values = self.per_unit()
        return float(values.std(ddof=1) / values.mean()) if len(values) > 1 else 0.0

    def per_unit(self) -> np.ndarray:
        """Seconds per unit of work of every sample."""
        work, seconds = np.asarray(self.pairs).T
        return np.asarray(seconds / work)

    def warnings(self) -> tuple[str, ...]:
        """What speaks against these samples, with its figures."""
        found = []
        values = self.per_unit()
        shortest = min(seconds for _, seconds in self.pairs)
        if shortest < SHORTEST:
            found.append(f"the shortest sample took {shortest * 1e6:.0f} us, too short to time")
        if self.disturbed > 0:
            found.append(f"{100 * self.disturbed:.0f} % of the samples shared their processors with other programs")
        if self.scatter >= SCATTER:
            found.append(f"samples scatter by {100 * self.scatter:.0f} %")
        low, high = values.min() / self.seconds - 1, values.max() / self.seconds - 1
        if max(-low, high) >= OUTLIER:
            found.append(f"the extremes are {100 * low:+.0f} % and {100 * high:+.0f} % off the median")
        return tuple(found)

    def describe(self) -> str:
        """How sure it is: ``median of 15, scatter 0.4 %``."""
        return f"median of {len(self.pairs)}, scatter {100 * self.scatter:.1f} %"

    def benchmark(self) -> pyperf.Benchmark:
        """The samples as a pyperf benchmark, to be kept in a file that ``pyperf stats`` and ``pyperf hist`` read."""
        import pyperf  # takes long to import, and is needed only where samples are kept

        runs = [
            pyperf.Run(
                [seconds / work],
                warmups=[(max(int(self.warmup[0]), 1), self.warmup[1] / max(self.warmup[0], 1.0))],
                metadata={"name": self.label, "loops": max(int(work), 1)},
                collect_metadata=False,
            )
            for work, seconds in self.pairs
        ]
        return pyperf.Benchmark(runs)


def merge(parts: Sequence[Samples]) -> Samples:
    """The samples of several processes that measured the same."""
    pairs = tuple(pair for part in parts for pair in part.pairs)
    disturbed = sum(part.disturbed * len(part.pairs) for part in parts) / len(pairs)
    return replace(parts[0], pairs=pairs, disturbed=disturbed)


def select(label: str, rows: Sequence[tuple[float, float, float]]) -> Samples:
    """Samples from rows of work, seconds and share of the processor, the warm-up first.

    Samples in which every thread had its processor for itself are kept alone, where there is at least one.
    """
    warmup, *rest = rows
    whole = [(work, seconds) for work, seconds, share in rest if share > WHOLE]
    pairs = whole or [(work, seconds) for work, seconds, _ in rest]
    return Samples(label, tuple(pairs), warmup[:2], disturbed=0.0 if whole else 1.0)


def unstable(samples: Iterable[Samples]) -> tuple[str, ...]:
    """What is not to be trusted: one line for every kind of measurement, with the worst of it."""
    kinds: dict[str, list[Samples]] = {}
    for each in samples:
        kinds.setdefault(each.label.split(",")[0].split(" of ")[0], []).append(each)
    found = []
    for kind, members in kinds.items():
        bad = sorted((each for each in members if each.warnings()), key=lambda each: -each.scatter)
        if bad:
            worst = f"{bad[0].label}: {', '.join(bad[0].warnings())}"
            found.append(worst if len(members) == 1 else f"{kind}: {len(bad)} of {len(members)} unstable; {worst}")
    return tuple(found)


def rounded(value: float) -> float:
    """Four digits: more are not repeated by another calibration."""
    return float(f"{value:.4g}")
