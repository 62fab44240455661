"""Valgrind's callgrind as a simulated processor with three cache levels: counts that repeat to the digit.

Callgrind simulates two levels. With the same first level and a last level the size of the second-level cache, then the
size of the third, there are three. One run of :mod:`ranksight.counters.collectors.cache_sizes` has both, and a table of
other sizes; callgrind itself runs twice, where that tool cannot be built and where a kernel is refined. With Dr data
reads, D1mr those that miss the first level and DLmr those that miss the last, of the smaller (1) and the larger (2),

    loads_l1 = Dr - D1mr              loads_l3 = DLmr(1) - DLmr(2)
    loads_l2 = D1mr - DLmr(1)         loads_mem = DLmr(2)

Dirty lines thrown out of the last level are simulated too (``--simulate-wb``), for the traffic to memory.
It counts and does not time. Every rank has the caches for itself: a last level that cores share is not divided.

The MPI library is left out, as the instructions of its waiting differ from run to run; the run's notes hold their
number. With a shared MPI library, and in programs of Python, only the code between MPI_Init and MPI_Finalize is
simulated, which halves the time of short runs. A program without a launcher may never initialise MPI, and is simulated
from when the library was loaded.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.campaign.collecting import COLLECTORS, Step
from ranksight.campaign.launching import Launch
from ranksight.core import leftout, places
from ranksight.core.errors import InputError, ToolError
from ranksight.core.reading import Reading
from ranksight.core.sampled import TABLE as SAMPLES
from ranksight.counters import spread
from ranksight.counters.attribution import Attributed, attribute
from ranksight.counters.callgrind_profile import read
from ranksight.counters.collectors import cache_sizes, sampling
from ranksight.counters.collectors._counting import (
    Simulation,
    build,
    by_level,
    files_of,
    is_python,
    uses_shared_mpi,
)
from ranksight.counters.collectors._ranks import before_program, refuse_script
from ranksight.counters.collectors.unseen import own_objects
from ranksight.counters.refine import split, wanted
from ranksight.counters.signature import HALVES

_DIFFERENT = 1e-3
_ATTEMPTS = 3
"""Parts that are simulated, each longer than the one before, until one runs all code that takes time."""
_NATIVE = 2
"""Native runs, where times of the first differ along it: often for other work on the machine, which goes by."""
_PROFILE = re.compile(r"(?:l2|l3|sizes)(?:\.\d+){3}")


@dataclass
class _Counted:
    """Costs of a rank with the smaller last level and with the larger; if known, those by size, and both by the further
    weights of its part."""

    small: Attributed
    large: Attributed
    by_size: pd.DataFrame | None = None
    sums: Sequence[tuple[Attributed, Attributed]] = ()


@dataclass
class Callgrind(Simulation):
    """Simulated counters per kernel and rank; see the module.

    `refine`: kernels to be split into loops; see :mod:`ranksight.counters.refine`. `sample`: occurrences to simulate of
    what repeats, after the first (:mod:`ranksight.counters.signature`); 0: as few as stand for all; None: every one.
    `by_class`: whether ranks are simulated for others (:mod:`ranksight.counters.rank_classes`).
    """

    refine: tuple[str, ...] = ()
    sample: int | None = None
    by_class: bool = False
    text: str = "instructions, loads, stores, cache levels per function, simulated by valgrind (10 to 90 times slower)"
    deterministic: bool = True
    default: bool = True

    def refined(self, kernels: Sequence[str]) -> Callgrind:
        """The same with some kernels split into their loops."""
        return replace(self, refine=tuple(kernels))

    def sampled(self, counted: int | None, by_class: bool = False) -> Callgrind:
        """The same with `counted` occurrences of what repeats, as `sample` states them, and ranks by their class."""
        return replace(self, sample=counted, by_class=by_class)

    def steps(self, launch: Launch, folder: Path) -> Iterable[Step]:
        """One run for all cache sizes, or one with the second-level cache as last level and one with the third."""
        refuse_script(launch)
        library = build(folder) if uses_shared_mpi(launch.program) else None
        options = "--instr-atstart=no" if library else ""
        options += " --dump-instr=yes --collect-jumps=yes" if self.refine else ""
        variables = "" if launch.launcher else "RANKSIGHT_FROM_START=1"
        if not self.refine and cache_sizes.sizes(self.caches()) and cache_sizes.install(folder):
            if library is None or self.sample is None or is_python(launch.program):
                missing = (
                    "the library that counts MPI calls" if uses_shared_mpi(launch.program) else "a shared MPI library"
                )
                python = is_python(launch.program)
                self._in_full(folder, "it is a program of Python" if python else f"{missing} is missing")
                return [self.one_run(launch, folder, library, variables)]
            return self._of_part(launch, folder, library, variables, self.sample)
        self._in_full(folder, "kernels are split" if self.refine else "the tool for all cache sizes cannot be built")
        return self.two_runs(launch, folder, options, library, variables, " --simulate-wb=yes")

    def _in_full(self, folder: Path, why: str) -> None:
        """Record why no part stands for the whole, unless the user asked for all."""
        if self.sample is not None:
            sampling.write_record(folder, sampling.Plans(reason=why))

    def _plans(
        self, launch: Launch, folder: Path, library: Path, variables: str, counted: int
    ) -> Generator[Step, None, sampling.Plans]:
        """A native run, whose calls the plans are made of.

        Where what repeats takes other times along it, as values or other work on the machine make it, it runs again. If
        that does not help, instructions are counted, which takes a quarter of a simulation, and are what repeats.
        """
        preload = f'env RANKSIGHT_CALLS="$0/calls.$rank" LD_PRELOAD="$0/{library.name}${{LD_PRELOAD:+:$LD_PRELOAD}}"'
        for _ in range(_NATIVE):
            _remove(folder, "calls.[0-9]*")
            yield Step(before_program(launch, folder, preload))
            plans = sampling.plan(launch, folder, counted, self.by_class)
            if plans.spared <= sampling.NATIVELY:
                break
        if plans.spared <= sampling.COUNTING:
            return plans
        for rank in range(launch.ranks):
            (folder / f"calls.{rank}").unlink()
        calls = f'{variables} RANKSIGHT_CALLS="$0/calls.$rank"'
        yield self.one_run(launch, folder, library, calls, only_instructions=True)
        return sampling.plan(launch, folder, counted, self.by_class)

    def _of_part(self, launch: Launch, folder: Path, library: Path, variables: str, counted: int) -> Iterator[Step]:
        """Native runs; then one that ends when its signature is simulated, or one in full where there is none."""
        (folder / "calls.h").write_text(sampling.header(), encoding="ascii")
        if build(folder, "signature.c") is None:
            library = build(folder) or library
            plans = sampling.Plans(reason="the library that counts MPI calls cannot be built")
        else:
            plans = yield from self._plans(launch, folder, library, variables, counted)
        own = own_objects(folder, launch.ranks)
        for attempt in range(_ATTEMPTS):
            if not plans.signatures:
                break
            ranks = None if plans.stands is None else plans.stands.simulated
            enough = tuple(sampling.marks(sampling.simulated(plans.stands, launch.ranks), folder, "done"))
            variable = f'{variables} RANKSIGHT_PLAN="$0/plan.$rank"'
            yield self.one_run(launch, folder, library, variable, enough, ranks, own=own)
            if not all(file.exists() for file in enough):
                # Calls that vary from run to run, but behind the first part only, are no reason to simulate all.
                if attempt < _ATTEMPTS - 1 and any(folder.glob("plan.*.places")):
                    _remove(folder, "sizes*", "plan.*.*")
                    plans = sampling.plan(launch, folder, counted, self.by_class, plans.begins, windows=False)
                    continue
                plans = sampling.Plans(reason="the calls of the simulated run were others than those of the native one")
                break
            further = sampling.after_unseen(launch, folder, plans, counted, self.by_class)
            plans = replace(sampling.followed(folder, plans), unseen=0.0) if further is None else further
            if further is None or counted:
                break
            if not plans.signatures or attempt == _ATTEMPTS - 1:
                plans = sampling.Plans(
                    reason=f"code that takes {plans.unseen:.0%} of the time is first run later than the rest repeats"
                )
                break
            _remove(folder, "sizes*", "plan.*.*")
        sampling.write_record(folder, plans)
        if not plans.signatures:
            _remove(folder, "sizes*")
            yield self.one_run(launch, folder, library, variables)

    def _attributed(self, path: Path) -> Attributed:
        if not self.refine:
            return attribute(read(path))
        profile = read(path, lambda function, place: wanted(self.refine, function, place))
        whole = attribute(profile)
        ran = [kernel for kernel in self.refine if kernel in whole.kernels.index]
        if not ran:
            return whole
        parts = split(profile, ran).drop(columns="parent").set_index("kernel")
        return replace(whole, kernels=pd.concat([whole.kernels.drop(ran), parts]))

    def _of_both(self, folder: Path, launch: Launch, ranks: Sequence[int] | None) -> Iterator[tuple[int, _Counted]]:
        """What was counted of each rank that was simulated, all or `ranks`."""
        levels = self.caches()
        if not (folder / "valgrind").exists():
            first, last = (files_of(folder, launch, level) for level in ("l2", "l3"))
            for rank in range(launch.ranks):
                yield rank, _Counted(self._attributed(first[rank]), self._attributed(last[rank]))
            return
        options = cache_sizes.sizes(levels)
        second = options[1:].index(levels[1].option)
        for rank, file in files_of(folder, launch, "sizes", ranks).items():
            sums = {name: attribute(profile) for name, profile in cache_sizes.sums(read(file)).items()}
            by_size = cache_sizes.by_size(sums[""].kernels, options, rank)
            both = {name: _as_two_runs(whole, second) for name, whole in sums.items()}
            yield rank, _Counted(*both[""], by_size, [both[name] for name in HALVES if name in both])

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read every rank; see the module for the metrics."""
        levels = self.caches()
        line = levels[-1].line
        every: dict[int, pd.DataFrame] = {}
        tables: dict[int, pd.DataFrame] = {}
        sums: dict[int, list[pd.DataFrame]] = {}
        libraries: dict[int, pd.DataFrame] = {}
        unlike = ("", 0.0)
        begun: list[tuple[str, str, int]] = []
        stands = sampling.read_stands(folder)
        for rank, counted in self._of_both(folder, launch, None if stands is None else stands.simulated):
            if counted.by_size is not None:
                every[rank] = counted.by_size
            tables[rank], difference = _join(counted.small, counted.large, line)
            sums[rank] = [_join(*both, line)[0] for both in counted.sums]
            unlike = max(unlike, difference, key=lambda pair: pair[1])
            libraries[rank] = counted.large.rows("Ir", "instructions", rank)
            begun += counted.large.places
        counted_by = range(launch.ranks) if stands is None else stands.counted_by
        counters = _of_all({rank: table.reset_index(names="kernel") for rank, table in tables.items()}, counted_by)
        if counters.empty:
            remedy = "check that it calls MPI_Init, and build it with symbols (no -s, no strip)"
            raise ToolError(f"callgrind saw no function of {launch.program}", remedy)
        parents = _parents(self.refine, counters["kernel"].tolist())
        lost = sorted(set(self.refine) - set(parents["parent"]))
        if lost:
            raise InputError(
                f"{', '.join(lost)} cannot be refined: it ran on no rank", "name kernels as tables show them"
            )
        left_out = _of_all(libraries, counted_by)
        mpi, other = (left_out[names].to_numpy().sum() / launch.ranks for names in (["mpi"], ["system", "other"]))
        notes = [
            f"left out: {mpi:.4g} instructions per rank in MPI libraries and {other:.4g} in start-up and the system"
        ]
        if unlike[1] > _DIFFERENT:
            notes.append(f"{unlike[0]} does not repeat: the two runs differ by {unlike[1]:.2g} in its instructions")
        notes.extend(level.note for level in levels if level.note)
        signature, more, warnings = sampling.read_record(folder)
        notes.extend(more)
        inexact = None
        if signature is not None:
            growth = sampling.growth(signature)
            off = {rank: spread.errors(table, sums[rank], growth[rank]) for rank, table in tables.items()}
            inexact, more = spread.record(tables, off, counted_by)
            notes.extend(more)
        ranks, more, further = (None, (), ()) if stands is None else sampling.record_of_ranks(stands, tables)
        notes.extend(more)
        metrics = [name for name in counters.columns if name not in ("kernel", "rank")]
        return Reading(
            configuration=dict(launch.configuration),
            counters=counters[["kernel", "rank", *metrics]],
            tables={leftout.TABLE: left_out}
            | places.tables_of(begun)
            | ({"refined": parents} if self.refine else {})
            | ({cache_sizes.TABLE: _of_all(every, counted_by)} if every else {})
            | ({} if ranks is None else {sampling.RANKS_TABLE: ranks})
            | ({} if signature is None else {sampling.TABLE: signature})
            | ({} if inexact is None else {SAMPLES: inexact}),
            provenance=dict.fromkeys(metrics, self.simulated),
            notes=tuple(notes),
            warnings=(*warnings, *further),
            source=tuple(sorted(file.name for file in folder.iterdir() if _PROFILE.fullmatch(file.name))),
        )


def _as_two_runs(whole: Attributed, second: int) -> tuple[Attributed, Attributed]:
    small, large = cache_sizes.as_two_runs(whole.kernels, second)
    return replace(whole, kernels=small), replace(whole, kernels=large)


def _remove(folder: Path, *patterns: str) -> None:
    for pattern in patterns:
        for file in folder.glob(pattern):
            file.unlink()


def _of_all(tables: Mapping[int, pd.DataFrame], counted_by: Iterable[int]) -> pd.DataFrame:
    """The rows of all ranks, each with those of the rank that was simulated for it."""
    return pd.concat([tables[by].assign(rank=rank) for rank, by in enumerate(counted_by)], ignore_index=True)


def _parents(kernels: Sequence[str], names: Sequence[str]) -> pd.DataFrame:
    """Which of `names` is a part of which refined kernel."""
    rows = [(name, kernel) for name in dict.fromkeys(names) for kernel in kernels if name.startswith(f"{kernel}@")]
    return pd.DataFrame(rows, columns=["kernel", "parent"])


def _join(small: Attributed, large: Attributed, line: int) -> tuple[pd.DataFrame, tuple[str, float]]:
    """One rank's metrics from its two runs; and the kernel of weight in which the runs differ most."""
    names = small.kernels.index.union(large.kernels.index)
    a = small.kernels.reindex(names, fill_value=0.0)
    b = large.kernels.reindex(names, fill_value=0.0)
    one, other = a["Ir"].to_numpy(), b["Ir"].to_numpy()
    top = np.maximum(one, other)
    heavy = top > _DIFFERENT * max(float(top.sum()), 1.0)
    change = np.where(heavy, np.abs(one - other) / np.maximum(top, 1.0), 0.0)
    difference = (str(names[int(change.argmax())]), float(change.max())) if len(names) else ("", 0.0)
    stores_l2 = np.minimum(a["DLmw"], b["D1mw"])
    stores_l3 = np.minimum(b["DLmw"], stores_l2)
    read_bytes = line * (b["DLmr"] + b["DLmw"])
    written_bytes = line * (b["DLdmr"] + b["DLdmw"] + b["ILdmr"])
    table = pd.DataFrame(
        {
            "visits": b["visits"],
            **by_level(a, b),
            "store_misses_l1": b["D1mw"],
            "store_misses_l2": stores_l2,
            "store_misses_l3": stores_l3,
            "bytes_mem_read": read_bytes,
            "bytes_mem_written": written_bytes,
            "bytes_mem": read_bytes + written_bytes,
        },
        index=names,
    )
    return table, difference


COLLECTORS.register("callgrind")(Callgrind())
