"""Timers that hold each other: a row of a profile that is the whole program, which must not be added to its parts.

A table of nested timers has a row ``Total`` or ``main`` whose time holds that of the others; added up, they are several
times the program's. That the others are longer together than the longest shows nothing: 75 kernels of a flat profile
are, too. A row called *Total* that takes longest is the whole. One called *main* may be where the others together take
about as long; so may one that is the sum of all others in every run.

Which timer holds which is not known from their values: any may be part of any longer one. Where the whole is named and
the others together exceed it, their times are therefore marked as inclusive, and nothing adds them up. The same holds
where many timers come in pairs that hardly differ, in every run the same one longer: of a function and the only one
that it calls. Times of functions that exclude their callees are as near to each other only by chance, a hundredth as
often within a thousandth as within a tenth.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.run import INCLUSIVE

if TYPE_CHECKING:
    import pandas as pd

_TOTAL = re.compile(
    r"(grand[ _-]?)?(total|overall|whole|entire|elapsed|wall|wallclock|runtime)"
    r"([ _-]?(time|program|application|run|wall|wallclock|walltime|runtime|elapsed))?(\(\))?",
    re.IGNORECASE,
)
_BRACKETS = " \t()[]<>{}*_-="
"""What tables put around the name of their whole."""
_MAIN = re.compile(r"(main|run|program|application|driver|total|whole|overall|runtime)\b.*", re.IGNORECASE)
ALMOST = 0.9
"""Part of a kernel's time that the others take together where it may hold them."""
MOST = 0.9
"""Part of the runs in which a timer has to take longest to be the one that holds the others."""
EXCEEDS = 1.05
"""Part of the whole from which on a part exceeds it, with what rounding and the ranks' differences make of both."""
SUM = 0.01
"""Relative difference up to which a timer is the sum of all others."""
NEAR, WIDE = 1e-3, 0.1
"""Differences of logarithms of timers that come in pairs, and of those that show how many do so by chance."""
PAIRS, OFTEN = 3, 5.0
"""Pairs that nested timers have at least, and how many times as many as chance makes."""
LEAST, KEPT_TIMERS, KEPT_RUNS = 0.01, 256, 64
"""Part of the longest timer below which others are rounded too much to be compared; timers and runs that are."""
OVERLAP = 1.5
"""Times of the parts over that of the whole from which the parts hold each other: largest times of ranks that are not
even add up to less."""


@dataclass(frozen=True)
class Holder:
    """A timer that seems to hold the others.

    `certain`: whether its name says that it is the whole. `times`: time of all others over its own, the median of the
    runs.
    """

    kernel: str
    certain: bool
    times: float


@dataclass
class Timers:
    """What the runs of an import say of timers that hold each other, run by run."""

    runs: int = 0
    longest: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    over: dict[str, list[float]] = field(default_factory=dict)
    exceeding: Counter[str] = field(default_factory=Counter)
    parts: list[float] = field(default_factory=list)
    wholes: int = 0
    tops: list[dict[str, float]] = field(default_factory=list)

    def add(self, counters: pd.DataFrame | None, exclusive: bool = False) -> None:
        """Look at the times of one run, its columns ``kernel`` and ``time``.

        `exclusive`: whether they are known to be without those of callees.
        """
        if counters is None or "time" not in counters.columns:
            return
        given = counters["time"].to_numpy(np.float64)
        if np.isnan(given).all():
            return
        import pandas as pd

        kernel: pd.Categorical[Any] = pd.Categorical(counters["kernel"])
        listed, codes = np.unique(kernel.codes, return_inverse=True)
        unique = kernel.categories[listed].tolist()
        times = np.bincount(codes, np.nan_to_num(given), len(unique))
        if WHOLE in unique:
            self.wholes += 1
            place = unique.index(WHOLE)
            whole, times[place] = float(times[place]), 0.0
            if whole > 0:
                self.parts.append(float(times.sum()) / whole)
            self.exceeding.update(str(unique[int(at)]) for at in np.flatnonzero(times > EXCEEDS * whole) if whole > 0)
            return
        if len(times) < 2 or exclusive:
            return
        self.runs += 1
        if len(self.tops) < KEPT_RUNS:
            order = np.argsort(-times, kind="stable")[:KEPT_TIMERS]
            large = order[(times[order] >= LEAST * times.max()) & (times[order] > 0)]
            self.tops.append({str(unique[at]): float(times[at]) for at in large.tolist()})
        name, longest = str(unique[int(times.argmax())]), float(times.max())
        rest = float(times.sum()) - longest
        self.longest[name] += 1
        self.sums[name] += len(times) > 2 and abs(rest - longest) <= SUM * longest
        if longest > 0:
            self.over.setdefault(name, []).append(rest / longest)

    @property
    def holder(self) -> Holder | None:
        """The timer that seems to hold the others; None where there is none."""
        if not self.runs:
            return None
        if (name := self.longest_of_all) is None:
            return None
        over = sorted(self.over.get(name, [0.0]))
        times = over[len(over) // 2]
        if _TOTAL.fullmatch(name.strip(_BRACKETS)) and times > 0:
            return Holder(name, True, times)
        named = _MAIN.fullmatch(name) and over[0] >= ALMOST
        summed = self.runs > 1 and self.sums[name] == self.runs
        return Holder(name, False, times) if named or summed else None

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Timers that hold each other, as their times hardly differ in any run, the longer first; none by chance."""
        shared = set.intersection(*map(set, self.tops)) if len(self.tops) > 1 else set()
        names = sorted(shared, key=lambda name: -self.tops[0][name])
        if len(names) < 2 * PAIRS:
            return []
        logs = np.log([[top[name] for name in names] for top in self.tops])
        low, high = (end(logs[:, :, None] - logs[:, None], axis=0) for end in (np.min, np.max))
        one = np.triu((low >= 0) | (high <= 0), 1) & (low < high)  # equal times are copies, or one clock tick
        difference = np.maximum(np.abs(low), np.abs(high))
        near, wide = one & (difference < NEAR), one & (difference < WIDE)
        if near.sum() < max(PAIRS, OFTEN * wide.sum() * NEAR / WIDE):
            return []
        return [(names[longer], names[shorter]) for longer, shorter in np.argwhere(near).tolist()]

    @property
    def longest_of_all(self) -> str | None:
        """The timer that takes longest in nearly all runs; None where there is none."""
        name, count = self.longest.most_common(1)[0] if self.runs else ("", 0)
        return name if count and count >= MOST * self.runs else None

    @property
    def overlap(self) -> float | None:
        """Times of the parts over that of the whole, the median of the runs; None where that is not above
        :data:`OVERLAP`, or no run names the whole."""
        if not self.parts:
            return None
        ratio = float(np.median(self.parts))
        return ratio if ratio > OVERLAP else None

    @property
    def larger(self) -> tuple[str, int] | None:
        """A kernel that takes longer than the whole program, and in how many runs; None where there is none."""
        return self.exceeding.most_common(1)[0] if self.exceeding else None


def inclusive(experiment: Experiment, total: str) -> None:
    """Note of all runs that the times of kernels contain those of others, and of `total` those of the program."""
    import pandas as pd

    for run in experiment.runs:
        if "time" not in run.provenance:
            continue
        said = {**run.provenance, "time": f"{INCLUSIVE}{run.provenance['time']}"}
        tables = {}
        if (table := experiment.table(run, "counters")) is not None:
            names = table["kernel"].astype(str)
            for name, other in ((total, WHOLE), (WHOLE, total)):
                if not (names == name).any() and (names == other).any():
                    copy = table[names == other].assign(kernel=name)
                    tables = {"counters": pd.concat([table.assign(kernel=names), copy], ignore_index=True)}
        experiment.replace(replace(run, provenance=said), tables)
