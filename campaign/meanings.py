"""What values over ranks mean where nobody said it, and whether the runs agree with what was said.

Three laws decide. A core has one clock: cycles, instructions or processor time of a rank over its time do not depend on
the number of ranks, so that a rate which grows with the ranks is one of all of them. The work of a problem is not less
on more ranks: totals that fall are no totals. A time that falls with the ranks is elapsed, and no sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.errors import InputError
from ranksight.core.experiment import COUNTER_KEYS, WHOLE
from ranksight.core.meaning import MAXIMUM, OF_NODE, SUM, UNSTATED, Meaning
from ranksight.core.metrics import metric
from ranksight.core.reading import Reading
from ranksight.core.records import dataclass
from ranksight.core.units import format_si

if TYPE_CHECKING:
    from ranksight.core.experiment import Run

RATES = ("cpu_time", "cycles", "instructions", "flops_dp", "flops")
"""Metrics whose values over a rank's time are those of a core, the one that varies least first."""
WORK = ("instructions", "flops_dp", "flops", "loads", "cycles")
"""Metrics of the work that ranks share, the one that waiting changes least first."""
CLOCK = 9.1e9
"""Cycles a second that no processor has reached, overclocked in liquid helium."""
FULL, NONE = 0.75, 0.25
"""Exponents of the ranks from which on a value grows with them, and up to which it does not."""
LESS, STEEP = 0.75, -0.5
"""Part of the work on fewer ranks, and exponent of the ranks, below which that on more ranks is less: caches and
scatter change it by less."""
TINY = 1e-9
"""Sum of squared differences of logarithms that is rounding."""
OF_RANKS = ("ranks", "nodes")
"""Parameters that change neither the problem nor what a rank is."""
BUSY = 1.5
"""Processors that are busy at once in a rank of one thread, at most: helpers of MPI have some."""


def is_time(name: str) -> bool:
    """Whether a metric is a time that passes for all ranks at once, and no processor's time that adds up."""
    return metric(name).unit == "s" and name not in ("cpu_time", "compute_cpu_time")


@dataclass(frozen=True)
class Entry:
    """One run's totals over kernels as they were read."""

    reader: str
    problem: tuple[tuple[str, float], ...]  # values of parameters other than :data:`OF_RANKS`
    ranks: float
    threads: float
    totals: Mapping[str, float]  # those of nodes times their number
    meanings: Mapping[str, Meaning]
    together: bool  # whether values may be of all ranks: one row a kernel
    run: str = ""  # its id, once it is stored

    @classmethod
    def of(cls, reading: Reading, reader: str) -> Entry:
        """What there is to know of a reading whose parameters have the user's names."""
        table, totals = reading.counters, dict[str, float]()
        ranks, nodes, threads = (float(reading.configuration.get(n, 1.0)) for n in ("ranks", "nodes", "threads"))
        single = table is not None and len(table) > 0 and table["rank"].nunique() == 1
        if table is not None and single:
            whole = (table["kernel"] == WHOLE).to_numpy()
            for name in {*RATES, *WORK, "time"} & set(table.columns):
                values = table[name].to_numpy(np.float64)
                parts = values[whole] if np.isfinite(values[whole]).any() else values[~whole]
                totals[name] = float(np.nansum(parts)) * (nodes if reading.meaning_of(name) == OF_NODE else 1.0)
        problem = tuple(sorted((n, float(v)) for n, v in reading.configuration.items() if n not in OF_RANKS))
        names = [] if table is None else [str(name) for name in table.columns if name not in COUNTER_KEYS]
        return cls(
            reader,
            problem,
            ranks,
            threads,
            {name: value for name, value in totals.items() if value > 0},
            {name: reading.meaning_of(name) for name in names},
            single,
        )

    @property
    def kind(self) -> str:
        """What is known of counts: ``sum``, nothing (empty), or another meaning (``other``)."""
        known = {self.meanings.get(name, UNSTATED) for name in self.totals if name != "time"}
        return "sum" if any(each.over == "sum" for each in known) else "other" if known - {UNSTATED} else ""


@dataclass(frozen=True)
class Restated:
    """Runs of whose values the meaning became known that their source left open."""

    runs: frozenset[str]
    meanings: Mapping[str, Meaning]


@dataclass(frozen=True)
class _Trend:
    """How a value goes with the ranks where the problem stays the same: one value a problem and number of ranks."""

    ranks: Array  # (n,)
    values: Array
    problem: Index
    threads: Array

    @property
    def exponent(self) -> float:
        """Slope of the logarithm over that of the ranks; NaN where they do not vary within a problem."""
        count = np.bincount(self.problem)
        x, y = (
            logs - (np.bincount(self.problem, logs) / count)[self.problem]
            for logs in (np.log(self.ranks), np.log(self.values))
        )
        spread = float((x**2).sum())
        return float((x * y).sum()) / spread if spread > TINY else float("nan")

    def fall(self) -> tuple[int, int] | None:
        """The first neighbours of a problem of which the one on more ranks has less; None without such."""
        order = np.lexsort((self.ranks, self.problem))
        same = (np.diff(self.problem[order]) == 0) & (np.diff(self.ranks[order]) > 0)
        logs, steps = np.diff(np.log(self.values[order])), np.diff(np.log(self.ranks[order]))
        falls = np.flatnonzero(same & (logs < np.log(LESS)) & (logs < STEEP * steps))
        return (int(order[falls[0]]), int(order[falls[0] + 1])) if len(falls) else None

    def ends(self) -> tuple[int, int]:
        """Fewest and most ranks of the problem that was run on most ranks."""
        last = int(np.argmax(self.ranks))
        rows = np.flatnonzero(self.problem == self.problem[last])
        return int(rows[np.argmin(self.ranks[rows])]), last


def _trend(entries: Sequence[Entry], name: str, over: str = "") -> _Trend | None:
    """Of a metric, or of its rate `over` another; None where no run has it."""
    repeated: dict[tuple[tuple[tuple[str, float], ...], float, float], list[float]] = {}
    for each in entries:
        if name in each.totals and (not over or over in each.totals):
            value = each.totals[name] / (each.totals[over] if over else 1.0)
            repeated.setdefault((each.problem, each.ranks, each.threads), []).append(value)
    if not repeated:
        return None
    problems = {problem: at for at, problem in enumerate(dict.fromkeys(problem for problem, _, _ in repeated))}
    return _Trend(
        np.array([ranks for _, ranks, _ in repeated]),
        np.array([np.exp(np.mean(np.log(values))) for values in repeated.values()]),
        np.array([problems[problem] for problem, _, _ in repeated]),
        np.array([threads for _, _, threads in repeated]),
    )


def _of_several(rate: _Trend, name: str) -> bool:
    """Whether a rate is more than one rank can have."""
    limit = {"cycles": CLOCK, "cpu_time": BUSY}.get(name, np.inf)
    return bool((rate.values / rate.threads).max() > limit)


def _shows_several(entries: Sequence[Entry]) -> bool:
    """Whether any rate of these runs is more than one rank can have."""
    return any(_of_several(rate, name) for name in RATES if (rate := _trend(entries, name, "time")) is not None)


def _shown(trend: _Trend, name: str, at: int, rate: bool) -> str:
    unit = {"cycles": "Hz", "cpu_time": ""}.get(name, "/s") if rate else metric(name).unit
    return f"{format_si(float(trend.values[at]), unit)} at {trend.ranks[at]:g}"


def _from_to(trend: _Trend, name: str, ends: tuple[int, int], rate: bool = False) -> str:
    what = f"{name} over time" if rate else name
    first, last = (_shown(trend, name, at, rate) for at in ends)
    return f"{what}: {first} and {last} ranks" if ends[0] != ends[1] else f"{what}: {last} ranks"


def of_all(entries: Sequence[Entry]) -> tuple[bool | None, str]:
    """Whether counts are of all ranks together where times are elapsed, and the two numbers that show it.

    None where nothing shows it: no metric of :data:`RATES` with a time at several numbers of ranks, and work that does
    not fall.
    """
    for name in RATES:
        rate = _trend(entries, name, "time")
        if rate is None:
            continue
        grows, ends = rate.exponent, rate.ends()
        if grows >= FULL or (np.isnan(grows) and _of_several(rate, name)):
            return True, _from_to(rate, name, ends, rate=True)
        if grows <= NONE:
            return False, _from_to(rate, name, ends, rate=True)
    for name in WORK:
        if (work := _trend(entries, name)) is not None:
            falls = work.exponent <= -FULL
            return (False if falls else None), _from_to(work, name, work.ends())
    return None, ""


@dataclass
class Meanings:
    """What the runs of an import say of what their values mean; ask once all are in.

    `stated`: by the user, of each metric, and of all others under ``""``. `tables`: readers whose formats say nothing.
    """

    stated: Mapping[str, Meaning] = field(default_factory=dict)
    tables: frozenset[str] = frozenset()
    entries: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def apply(self, reading: Reading) -> Reading:
        """The reading with what the user states: of a table without ranks, or in place of what its format says."""
        if not self.stated or reading.counters is None:
            return reading
        if OF_NODE in self.stated.values() and "nodes" not in reading.configuration:
            raise InputError("values are stated as those of a node, and no parameter nodes", "add --parameter nodes")
        general = self.stated.get("", reading.meaning)
        meanings = {**({} if "" in self.stated else reading.meanings), **self.stated}
        meanings.pop("", None)
        if general in (SUM, OF_NODE):  # of times only once it is seen that they are not elapsed
            names = [str(name) for name in reading.counters.columns if name not in COUNTER_KEYS]
            meanings = {**{name: UNSTATED for name in names if is_time(name)}, **meanings}
        return replace(reading, meaning=general, meanings=meanings)

    def add(self, entry: Entry, run: Run) -> None:
        """Count in a run that was stored."""
        if entry.together:
            self.entries.append(replace(entry, run=run.id))

    def settle(self) -> list[Restated]:
        """What is to be stored otherwise. Raises InputError where what was stated, or left open, cannot be used."""
        changes: list[Restated] = []
        for reader in dict.fromkeys(entry.reader for entry in self.entries):
            entries = [entry for entry in self.entries if entry.reader == reader]
            if max(entry.ranks for entry in entries) == 1:
                continue
            by_kind: dict[str, list[Entry]] = {"sum": [], "": [], "other": []}
            for entry in entries:
                by_kind[entry.kind].append(entry)
            if by_kind["sum"]:
                self._of_sums(by_kind["sum"])
            if by_kind[""] and "" not in self.stated:
                changes += self._of_open(by_kind[""], reader)
            changes += self._of_times(entries)
            if (others := by_kind["other"]) and (shown := of_all(others))[0]:
                raise InputError(
                    f"values are stated as {next(m for m in others[0].meanings.values() if m != UNSTATED)}, and those "
                    f"of all ranks are {shown[1]}",
                    "state --values sum",
                )
        return changes

    def _of_sums(self, entries: Sequence[Entry]) -> None:
        """Sums that fall, or whose ranks would slow down, are none. Raises InputError."""
        by_user = bool(self.stated)
        over = [entry.meanings.get("time", UNSTATED) for entry in entries]
        elapsed = SUM not in over and not ("" in self.stated and UNSTATED in over)
        several = SUM not in over and _shows_several(entries)
        for name in WORK:
            work = _trend(entries, name)
            if work is None:
                continue
            rate = None if SUM in over else _trend(entries, name, "time")
            if (pair := work.fall()) is not None:
                what = _from_to(work, name, pair)
                raise InputError(
                    f"sums over ranks do not fall, and {what}",
                    "of one node give all nodes' sums, or state --values node --parameter nodes; of one rank state "
                    "--values mean",
                )
            if by_user and elapsed and not several and rate is not None and rate.exponent <= NONE:
                raise InputError(
                    f"values are taken as sums over ranks, and those of a rank contradict its clock: "
                    f"{_from_to(rate, name, rate.ends(), rate=True)} stay the same on all",
                    "state --values mean",
                )
            if by_user and elapsed and rate is not None and rate.exponent >= 1 + FULL:
                raise InputError(
                    f"values are taken as sums over ranks, and those of a rank would speed up with the ranks: "
                    f"{_from_to(rate, name, rate.ends(), rate=True)}",
                    "correct the ranks, or name the parameter by which the problem grows with --parameter",
                )
            if work.exponent >= FULL and rate is None:
                what = _from_to(work, name, work.ends())
                # Next to a size that varies by itself the problem grows by the ranks.
                if by_user and len(np.unique(work.problem)) == 1:
                    raise InputError(
                        f"sums over ranks are stated, and they grow with the ranks: {what}",
                        "name the parameter by which the problem grows with --parameter, or state --values mean",
                    )
                self.notes.append(f"{what}: the work grows with the ranks (weak scaling)")
            break
        self._of_processors(entries)

    def _of_processors(self, entries: Sequence[Entry]) -> None:
        """Processors that were busy (`CPUs utilized`) against the ranks that a sum is divided by."""
        busy = _trend(entries, "cpu_time", "time")
        if busy is None:
            return
        share = busy.values / busy.ranks / busy.threads
        at = int(np.argmax(share))
        if share[at] > BUSY:
            raise InputError(
                f"{busy.values[at]:.3g} processors were busy (cpu_time over time) in a run of {busy.ranks[at]:g} ranks",
                "correct the number of ranks, or name the threads of a rank with --parameter threads or --set threads",
            )
        at = int(np.argmin(share))
        if share[at] < 0.6:
            self.notes.append(
                f"{busy.values[at]:.3g} processors were busy (cpu_time over time) in a run of {busy.ranks[at]:g} "
                "ranks: if the file counts one of several nodes, state --values node and --parameter nodes"
            )

    def _of_open(self, entries: Sequence[Entry], reader: str) -> list[Restated]:
        """Values of which nobody said what they are over ranks."""
        counted = [e for e in entries if any(name in e.totals for name in {*RATES, *WORK} - {"cpu_time"})]
        every, shown = of_all(counted)
        if every:
            self.notes.append(f"{shown}: counts are taken as sums over ranks; state --values sum or mean")
            return [self._restated(counted, SUM)]
        if counted and every is None and reader in self.tables:
            work = next(trend for name in WORK if (trend := _trend(counted, name)) is not None)
            if abs(work.exponent) <= NONE:
                raise InputError(
                    f"{shown}: these are sums over ranks of one problem, or a rank's of one that grows with the ranks",
                    "state --values sum or --values mean",
                )
            self.notes.append(f"{shown}: counts are taken as a rank's; state --values sum if they are sums over ranks")
        return []

    def _of_times(self, entries: Sequence[Entry]) -> list[Restated]:
        """Times where ``--values sum`` is stated of all metrics: sums, unless they are seen to be elapsed."""
        open_ = [e for e in entries if "time" in e.totals and e.meanings.get("time") == UNSTATED]
        if self.stated.get("") not in (SUM, OF_NODE) or not open_:
            return []
        times = _trend(open_, "time")
        every, shown = of_all(open_)
        if times is not None and (every or times.exponent < -0.5):
            what = shown if every else _from_to(times, "time", times.ends())
            self.notes.append(
                f"{what}: times are elapsed, and are not divided by the ranks; otherwise state --values time=sum"
            )
            return [self._restated(open_, MAXIMUM, times=True)]
        return [self._restated(open_, self.stated[""], times=True)]

    @staticmethod
    def _restated(entries: Sequence[Entry], meaning: Meaning, times: bool = False) -> Restated:
        """Counts, or `times`, of these runs with another meaning."""
        names = dict.fromkeys(name for each in entries for name in each.meanings)
        chosen = [name for name in names if is_time(name) == times]
        return Restated(frozenset(each.run for each in entries), dict.fromkeys(chosen, meaning))
