"""Samples of a measurement, run and judged by pyperf's discipline.

A warm-up that does not count, samples long enough for the clock, several of them from several processes, the median.
Samples are pyperf benchmarks (:meth:`Samples.benchmark`): their scatter says whether a measurement needs more processes
(:func:`repeated`), ``pyperf check`` which measurements are not stable (:func:`judged`), and ``pyperf system show`` what
of the system disturbs them (:func:`system_advice`). pyperf's Runner starts Python processes and sets its task up for
each value; the measuring programs set working sets of up to a GiB up once, and so are started here.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.errors import ToolError
from ranksight.core.records import dataclass
from ranksight.platforms.calibration.effort import Effort

if TYPE_CHECKING:
    import pyperf

SCATTER = 0.10
"""Standard deviation over mean from which on ``pyperf check`` calls samples unstable."""
TIMES = 3
"""Times the processes of an effort that an unstable measurement gets at most."""
PATIENCE = 60.0
"""Seconds that a check of pyperf may take."""
FEW = "Not enough samples"
"""Start of pyperf's message about stable samples whose mean is not known to 1 %; they are used all the same."""
UNWANTED = ("Perf event", "Linux scheduler", "Turbo Boost", "CPU scaling governor")
"""Topics of ``pyperf system show`` that are not passed on: a low sample rate would stop perf from sampling, kernel
parameters and turbo are to be those of the runs, and the governor is looked at where the topology is read."""
WHOLE = 0.98
"""Share of its processor from which on a thread counts as undisturbed."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of one measurement."""

    label: str  # what was measured
    pairs: tuple[tuple[float, float], ...]  # work done (loads, bytes, additions) and seconds taken, of every sample
    warmup: tuple[float, float] = (0.0, 0.0)  # that of the warm-up, which does not count
    disturbed: float = 0.0
    """Share of the samples in which a thread had to give its processor away, if those had to be used."""

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

    def describe(self) -> str:
        """How sure it is: ``median of 15, scatter 0.4 %``."""
        return f"median of {len(self.pairs)}, scatter {100 * self.scatter:.1f} %"

    def benchmark(self) -> pyperf.Benchmark:
        """The samples as a pyperf benchmark: a value is the seconds of a unit of work, its loops are the work."""
        import pyperf  # takes long to import, and is needed only where samples are judged

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


def repeated(run: Callable[[int], Samples], effort: Effort) -> Samples:
    """Samples of as many processes as an effort asks for, and of more while they scatter.

    `run`: measures in one process; given its number, from 1.
    """
    found = merge([run(number) for number in range(1, effort.processes + 1)])
    for number in range(effort.processes + 1, TIMES * effort.processes + 1):
        if found.scatter < SCATTER:
            break
        more = run(number)
        # Undisturbed samples are not mixed with those that shared their processor.
        better = more.disturbed < found.disturbed
        found = more if better and more.disturbed == 0 else merge([found, more])
    return found


def judged(samples: Iterable[Samples]) -> dict[str, tuple[str, ...]]:
    """What ``pyperf check`` says against measurements, by their labels; those that are stable are not in it."""
    import pyperf

    every = list(samples)
    with tempfile.TemporaryDirectory(prefix="ranksight-check-") as folder:
        file = Path(folder) / "samples.json"
        pyperf.BenchmarkSuite([each.benchmark() for each in every]).dump(str(file))
        lines = _pyperf("check", str(file))
    names = {each.label for each in every}
    found: dict[str, list[str]] = {}
    label = every[0].label  # pyperf prints no name where there is one benchmark
    for line in lines:
        if line in names:
            label = line
        elif line.startswith("* ") and not line.startswith(f"* {FEW}"):
            found.setdefault(label, []).append(line.removeprefix("* "))
    return {name: tuple(texts) for name, texts in found.items()}


def system_advice() -> str:
    """What ``pyperf system show`` advises against disturbance; empty where there is nothing."""
    lines = _pyperf("system", "show")
    if "Advices" not in lines:
        return ""
    rest = lines[lines.index("Advices") + 2 :]
    end = next((at for at, line in enumerate(rest) if line == "Warnings" or line.startswith("Run ")), len(rest))
    advice = [line for line in rest[:end] if line and not line.startswith(UNWANTED)]
    return f"pyperf advises: {'; '.join(advice)} ('python -m pyperf system tune' does so)" if advice else ""


def _pyperf(*words: str) -> list[str]:
    """Lines that a command of pyperf prints; none where it cannot run here."""
    command = [sys.executable, "-m", "pyperf", *words]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.rstrip() for line in done.stdout.splitlines()]


def unstable(samples: Iterable[Samples]) -> tuple[str, ...]:
    """What is not to be trusted: one line for every kind of measurement, with the worst of it."""
    every = list(dict.fromkeys(samples))
    said = judged(every)
    kinds: dict[str, list[Samples]] = {}
    for each in every:
        kinds.setdefault(each.label.split(",")[0].split(" of ")[0], []).append(each)
    found = []
    for kind, members in kinds.items():
        bad = [each for each in members if each.label in said or each.disturbed > 0]
        if bad:
            worst = max(bad, key=lambda each: each.scatter)
            texts = list(said.get(worst.label, ()))
            if worst.disturbed > 0:
                texts.append(
                    f"{100 * worst.disturbed:.0f} % of the samples shared their processors with other programs"
                )
            line = f"{worst.label}: {', '.join(texts)}"
            found.append(line if len(members) == 1 else f"{kind}: {len(bad)} of {len(members)} unstable; {line}")
    return tuple(found)


def rounded(value: float) -> float:
    """Four digits: more are not repeated by another calibration."""
    return float(f"{value:.4g}")
