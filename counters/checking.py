"""What measurements of one run contradict each other, whichever reader they come from.

An import warns of each kind once, with the first run, the two measurements that cannot both be true, and what to do.
Only what cannot be used at all is refused (a number of threads that is none) or left out (a value that a counter added
a power of two to when it overflowed). What needs a machine's description is looked at where the machine is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ranksight.campaign.plausible import Check
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment
from ranksight.core.metrics import CHANCE, FEW, PARTS, TOLERANCE
from ranksight.core.reading import Reading
from ranksight.core.records import dataclass
from ranksight.core.run import HOSTS
from ranksight.core.sampled import TABLE
from ranksight.core.units import counted, format_si
from ranksight.counters.looking import Look
from ranksight.counters.overflow import NO_PROCESSOR, WIDEST, Narrow, without_overflows

if TYPE_CHECKING:
    from ranksight.platforms import Platform


SLOWEST, FASTEST = 0.5, 1.5
"""Parts of a platform's clock under load between which cycles over time lie: power limits below, turbo above."""
ABOVE = 1.25
"""Times the measured bandwidth of a memory domain that the theoretical one stays below."""
SHORT = 0.85
"""Part of the other nodes' traffic below which channels of a node may not have been counted: one of eight to four."""
SAME = 1.1
"""Ratio of the largest to the smallest of nodes that are like each other."""


def _parts(look: Look) -> Iterator[tuple[str, str]]:
    """More of a part than of its whole."""
    for names, whole in PARTS:
        held = [name for name in names if name in look.table.columns]
        if not held or whole not in look.table.columns or (len(names) > 1 and len(held) < 2):
            continue
        part, of = np.nansum([look.column(name) for name in held], axis=0), look.column(whole)
        with np.errstate(invalid="ignore"):
            chance = CHANCE * np.sqrt(np.sum([look.variance(name) for name in (*held, whole)], axis=0))
            excess = np.where((part > FEW) & np.isfinite(of), part - (1 + TOLERANCE) * of - chance, -np.inf)
        if not len(excess) or not excess.max() > 0:
            continue
        row = int(np.argmax(excess))
        name = held[0] if len(names) == 1 else "loads by level together"
        kernels = look.table["kernel"][excess > 0].nunique()
        more = f" and {kernels - 1} more kernels" if kernels > 1 else ""
        yield (
            f"{name} above {whole}",
            f"{name} contradict {whole}: {format_si(part[row])} of {format_si(of[row])} ({look.at(row)}){more}; "
            f"no time is predicted from them: count both in one run without multiplexing, or import the right columns",
        )


def _more_loads(look: Look) -> Iterator[tuple[str, str]]:
    """More loads than instructions: no instruction of a compiler loads twice, and few are loads."""
    loads, instructions = look.column("loads"), look.column("instructions")
    with np.errstate(invalid="ignore"):
        chance = CHANCE * np.sqrt(look.variance("loads") + look.variance("instructions"))
        excess = np.where(
            (loads > FEW) & np.isfinite(instructions), loads - (1 + TOLERANCE) * instructions - chance, -np.inf
        )
    if len(excess) and excess.max() > 0:
        row = int(np.argmax(excess))
        yield (
            "loads above instructions",
            f"loads contradict instructions: {format_si(loads[row])} of {format_si(instructions[row])} "
            f"({look.at(row)}): instructions overflowed, or one is a sum over ranks where the other is not; "
            "measure this run again, or import both in the same way",
        )


def _instruction_rate(look: Look) -> Iterator[tuple[str, str]]:
    """More instructions than a core can retire in its cycles."""
    if not {"cycles", "instructions"} <= set(look.table.columns):
        return
    cycles, instructions = look.column("cycles"), look.column("instructions")
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.where((cycles > FEW) & np.isfinite(instructions), instructions / cycles, 0.0)
    row = int(np.argmax(rate))
    chance = CHANCE * np.sqrt(look.variance("instructions")[row] + WIDEST**2 * look.variance("cycles")[row])
    if instructions[row] > WIDEST * cycles[row] + chance:
        yield (
            "instructions above cycles",
            f"instructions contradict cycles: {format_si(float(rate[row]))} a cycle ({look.at(row)}), and no core "
            f"retires more than {WIDEST:g}: a counter overflowed, or one is a sum over ranks where the other is not; "
            "measure this run again, or import both in the same way",
        )


def _clock(look: Look) -> Iterator[tuple[str, str]]:
    """Cycles over time that the processor does not run at."""
    if not {"cycles", "time"} <= set(look.table.columns):
        return
    cycles, time = look.column("cycles"), look.column("time")
    both = look.parts & (cycles > 0) & (time > 0)
    if not both.any():
        return
    clock = float(cycles[both].sum() / time[both].sum())
    if look.platform is None:
        if clock > NO_PROCESSOR * look.threads:
            yield (
                "clock",
                f"cycles contradict time: {format_si(clock, 'Hz')} ({look.at()}) is no processor's clock; "
                "give both of each rank, or both as means over ranks, and the unit of times",
            )
        return
    frequency = look.platform.frequency
    if SLOWEST * frequency <= clock <= FASTEST * frequency * look.threads:
        return
    why = (
        "ranks slept or shared cores, or times are of another unit; give one rank a core"
        if clock < frequency
        else "cycles may be sums over ranks or threads where times are not, or have another unit; import both equally"
    )
    yield (
        "clock",
        f"cycles contradict time: {format_si(clock, 'Hz')} ({look.at()}), and {look.platform.name} runs at "
        f"{format_si(frequency, 'Hz')}: {why}, or name the machine that was measured with --platform",
    )


def _traffic(look: Look) -> Iterator[tuple[str, str]]:
    """More traffic than the memory domains of the ranks can move."""
    if look.platform is None or not np.isfinite(look.traffic).any():
        return
    layout, memory = look.platform.layout, look.platform.memory
    domains = np.ceil(look.ranks * look.threads / layout.cores_per_domain)
    reduced = (look.table["rank"] == ALL_RANKS).to_numpy()
    moved = look.traffic * np.where(reduced, look.ranks, 1.0)
    rows = pd.DataFrame({"kernel": look.table["kernel"].astype(str), "bytes": moved, "time": look.column("time")})
    each = rows.groupby("kernel").agg(bytes=("bytes", "sum"), time=("time", "max"))
    rate = (each["bytes"] / each["time"]).where(each["time"] > 0)
    if not rate.max() > ABOVE * domains * memory.bandwidth_domain:
        return
    kernel = str(rate.idxmax())
    place = look.at() if kernel == WHOLE else f"{kernel}, {look.at()}"
    named = f"{counted(int(domains), 'memory domain')} of {look.platform.name}"
    yield (
        "traffic",
        f"bytes to and from memory contradict time: {format_si(float(rate.max()), 'B/s')} ({place}), and {named}, "
        f"filled in turn, can move {format_si(domains * memory.bandwidth_domain, 'B/s')}: where ranks were spread, "
        "fit with --placement scattered; where each rank reports its socket's traffic, keep that of one rank a socket; "
        "otherwise name the machine that was measured with --platform",
    )


def _lines(look: Look) -> Iterator[tuple[str, str]]:
    """Less read from memory than the lines that loads brought."""
    if "loads_mem" not in look.table.columns or not {"bytes_mem_read", "bytes_mem"} & set(look.table.columns):
        return
    said = " ".join(look.reading.provenance.get(name, "") for name in ("loads_mem", "bytes_mem_read", "bytes_mem"))
    if "simulated" in said or "among them" in said:
        return
    read = look.column("bytes_mem_read")
    read = np.where(np.isfinite(read), read, look.column("bytes_mem"))
    loads = look.column("loads_mem")
    both = look.parts & np.isfinite(read) & np.isfinite(loads)
    line = 64.0 if look.platform is None else float(look.platform.line)
    need, have = line * loads[both].sum(), read[both].sum()
    if need > line * FEW and 0 < have < (SHORT - TOLERANCE) * need:
        yield (
            "lines",
            f"bytes read from memory contradict loads_mem: {format_si(have, 'B')} where loads brought lines of "
            f"{format_si(need, 'B')} ({look.at()}): memory channels may be missing in the count; name all of them "
            "(LIKWID's group MEM, every uncore_imc unit of perf)",
        )


def _channels(look: Look) -> Iterator[tuple[str, str]]:
    """A node whose memory traffic is short of that of the others."""
    hosts = look.reading.tables.get(HOSTS)
    ranks = look.table["rank"].to_numpy()
    if hosts is not None:
        node = pd.Series(ranks).map(hosts.drop_duplicates("rank").set_index("rank")["host"]).to_numpy(dtype=object)
    elif look.platform is not None and look.ranks * look.threads > look.platform.cores:
        node = (ranks * look.threads // look.platform.cores).astype(int).astype(object)
    else:
        return
    taken = look.parts & (ranks != ALL_RANKS) & np.isfinite(look.traffic)
    work = look.column("instructions")
    frame = pd.DataFrame({"node": node, "rank": ranks, "bytes": look.traffic, "work": work})[taken]
    each = frame.groupby("node").agg(bytes=("bytes", "sum"), work=("work", "sum"), ranks=("rank", "nunique"))
    each = each[each["ranks"] == each["ranks"].max()]
    counted = bool((each["work"] > 0).all())
    per = (each["bytes"] / (each["work"] if counted else each["ranks"])).sort_values()
    if len(per) < 2 or not per.iloc[0] > 0:
        return
    others = per.iloc[1:]
    share = float(per.iloc[0] / others.median())
    if share < SHORT and others.max() <= SAME * others.min():
        of = "an instruction" if counted else "a rank"
        name = per.index[0]
        yield (
            "channels",
            f"memory traffic of node {name} contradicts that of the others: {1 - share:.0%} less {of} ({look.at()}): "
            "a memory channel may be missing in its count; look at each channel's count there, or leave the node out",
        )


def _teams(look: Look) -> Iterator[tuple[str, str]]:
    """Threads that do not fill the cores of a node."""
    threads = look.reading.configuration.get("threads")
    if threads is None:
        return
    if not (threads >= 1 and threads == round(threads)):
        raise InputError(
            f"threads = {threads:g} ({look.at()}) is not a number of threads",
            "threads are whole numbers from 1: correct it, or name that parameter otherwise",
        )
    if look.platform is None:
        return
    cores = look.platform.cores
    if threads > cores or cores % threads:
        what = f"are more than the {cores} cores" if threads > cores else f"do not divide the {cores} cores"
        yield (
            "threads",
            f"threads = {threads:g} ({look.at()}) {what} of a node of {look.platform.name}: cores are shared, "
            "stay idle, or teams span memory domains; name the machine that was measured, or leave such runs out",
        )


def _absent(look: Look) -> Iterator[tuple[str, str]]:
    """Ranks of which nothing was read, where several were."""
    listed = look.table.loc[look.table["rank"] != ALL_RANKS, "rank"].nunique()
    if 1 < listed < look.ranks:
        yield (
            "ranks",
            f"values of {listed} of {look.ranks:g} ranks ({look.at()}): the others are missing, and means are over "
            f"{listed}; import what belongs to them too, or leave the run out",
        )


CHECKS: tuple[Callable[[Look], Iterator[tuple[str, str]]], ...] = (
    _parts,
    _more_loads,
    _instruction_rate,
    _clock,
    _traffic,
    _lines,
    _channels,
    _teams,
    _absent,
)
"""Each yields a kind and a sentence for what it finds in a run."""


@dataclass
class Checks(Check):
    """Checks of all runs of an import; call it with each reading.

    `platform`: the machine that was measured. `found`: for each kind of contradiction what was found, a sentence a run.
    """

    platform: Platform | None = None
    found: dict[str, list[str]] = field(default_factory=dict)
    narrow: Narrow = field(default_factory=Narrow)

    def __call__(self, reading: Reading) -> Reading:
        """The reading with what was found among its notes, and without values that overflowed.

        Raises InputError when the number of threads is none.
        """
        counters = reading.counters
        if counters is None or counters.empty:
            return reading
        look = Look(reading, counters, self.platform)
        kept, said = without_overflows(counters, look.seconds, look.ranks * look.threads)
        look = Look(reading, kept, self.platform)
        self.narrow.add(kept, look.at())
        findings = [("overflow", f"{text} ({look.at()})") for text in said]
        findings += [finding for check in CHECKS for finding in check(look)]
        for kind, text in findings:
            self.found.setdefault(kind, []).append(text)
        if not findings:
            return reading
        return replace(reading, counters=kept, notes=(*reading.notes, *(text for _, text in findings)))

    def forget(self, texts: Iterable[str]) -> frozenset[str]:
        """Take back what was found of values that turned out to mean something else; all that was taken back. Values
        that overflowed are gone, and stay noted."""
        lost = frozenset(texts) - frozenset(self.found.get("overflow", ()))
        self.found = {kind: left for kind, said in self.found.items() if (left := [t for t in said if t not in lost])}
        return lost

    @property
    def texts(self) -> frozenset[str]:
        """All that was found."""
        return frozenset(text for texts in self.found.values() for text in texts)

    def warnings(self) -> list[str]:
        """What to say: of each kind the first, and how many runs more have it."""
        said = [f"{texts[0]}{_more(len(texts) - 1)}" for texts in self.found.values()]
        return [*said, *self.narrow.warnings()]


AT_IMPORT = ("clock", "overflow")
"""Kinds that are no matter of a fit: it has a check of the clock of its own, and values that overflowed are gone."""


def unnoted(experiment: Experiment, platform: Platform) -> list[str]:
    """Warnings of what the runs of an experiment contradict once their machine is named.

    `platform`: the machine that was measured. Raises InputError when the number of threads is none.

    Returns
    -------
    list of str
        Without what an import has noted of the runs already.
    """
    checks = Checks(platform)
    for run in experiment.runs:
        if run.state != "complete":
            continue
        found = {name: experiment.table(run, name) for name in ("threads", TABLE, HOSTS)}
        tables = {name: table for name, table in found.items() if table is not None}
        counters = experiment.table(run, "counters")
        checks(Reading(run.configuration, counters, tables=tables, provenance=run.provenance))
    noted = {note for run in experiment.runs for note in run.notes}
    new = {kind: [text for text in texts if text not in noted] for kind, texts in checks.found.items()}
    return Checks(platform, {kind: texts for kind, texts in new.items() if texts and kind not in AT_IMPORT}).warnings()


def _more(count: int) -> str:
    return f" [and in {counted(count, 'more run')}]" if count else ""
