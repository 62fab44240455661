"""From an experiment with event traces to its phases."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd

from ranksight.analysis.phases.calls import LOADS, Calls, Workload, read_calls, traced
from ranksight.analysis.phases.messages import Messages, phase_messages
from ranksight.analysis.phases.pet import Pet, PhaseTime
from ranksight.analysis.phases.phase import Phase, build_phase
from ranksight.analysis.phases.relate import UNRELATED, Related, relate
from ranksight.analysis.phases.table import Clock, phase_table
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.experiment import Experiment
from ranksight.core.records import dataclass
from ranksight.core.units import assigned
from ranksight.model.resource.equation import Machine
from ranksight.platforms import Platform

_RELATED = 0.5
"""Share of the run's time that related phases must hold: with less, the sum over phases says nothing of the run."""


@dataclass(frozen=True)
class Analysis:
    """Phases of an experiment."""

    workload: Mapping[str, float]
    small: Mapping[str, float]
    """Parameters other than the ranks: of the original workload, and of the smaller one of the distant points (empty
    without one)."""
    ranks: tuple[float, ...]  # rank counts of the original workload
    phases: tuple[Phase, ...]
    clock: Clock
    machine: Machine  # whose latencies and clock turn counts into cycles
    coverage: float
    unrelated: float
    """Share of the run's time (of its computation where times in MPI are invalid), at the largest rank count, in phases
    that repeat and in calls that are in no phase of other rank counts."""
    table: pd.DataFrame
    smaller: pd.DataFrame
    """See :func:`ranksight.analysis.phases.table.phase_table`; of the original workload, and of the smaller one."""
    shared: bool  # whether ranks shared cores
    notes: tuple[str, ...]
    messages: Messages | None = None  # the phases' messages on the platform's network, where times in MPI are not known

    def cpi(self) -> pd.DataFrame:
        """Cycles per instruction of the smaller workload: a row a rank count, a column a phase's number.

        Of the phases that a distant point can be had for, those whose instructions stay constant.
        """
        fit = [phase.number for phase in self.phases if any(group.constant for group in phase.groups)]
        rows = self.smaller.assign(phase=self.smaller["phase"] + 1)
        sums = rows[rows["phase"].isin(fit)].groupby(["ranks", "phase"])[["cycles", "instructions"]].sum()
        return (sums["cycles"] / sums["instructions"]).unstack("phase")

    @property
    def pet(self) -> Pet:
        """What predictions need."""
        times = tuple(
            PhaseTime(
                phase.number,
                phase.label,
                phase.weight,
                tuple(group.power for group in phase.groups),
                phase.communication,
                max((group.distant.ranks for group in phase.groups if group.distant is not None), default=0.0),
            )
            for phase in self.phases
        )
        if all(x == x for phase in self.phases for x in phase.communication):
            return Pet(self.workload, self.ranks, times, self.clock, self.coverage, "measured")
        network = "" if self.messages is None else self.messages.platform
        return Pet(self.workload, self.ranks, times, self.clock, self.coverage, network, self.messages)


def analyse(
    experiment: Experiment,
    platform: Platform,
    *,
    workload: Mapping[str, float] | None = None,
    small: Mapping[str, float] | None = None,
    clock: Clock | None = None,
    rule: str | None = None,
) -> Analysis:
    """Find the phases of an experiment and learn how they change with the ranks.

    Raises InputError when the experiment has no parameter ``ranks``, or no such workload; InsufficientError without
    event traces, with one rank count, where nothing repeats, one phase is all there is, or phases of different rank
    counts are not those of one program.

    `experiment`: with a parameter ``ranks``, and runs of the collector ``pmpi-events`` at two rank counts or more.
    `platform`: whose clock and latencies turn counts into cycles, and whose network messages go over. `workload`: the
    original one; that which computes most where not given. `small`: the workload that distant points come from; of the
    others, that with most rank counts where not given. `clock`: which time of computation is taken; see :func:`_clock`
    where not given. `rule`: rank counts that the program admits, of :data:`ranksight.analysis.phases.weights.RULES`.
    """
    by = _calls(experiment)
    chosen = _original(by, workload)
    selected = sorted(by.pop(chosen), key=lambda calls: calls.ranks)
    ranks = [calls.ranks for calls in selected]
    if len(set(ranks)) < 2:
        raise InsufficientError(
            f"event traces of {_words(chosen)} are there at {ranks[0]} ranks only",
            "trace at two rank counts or more, better four",
        )
    other = _smaller(by, small)
    every = [*selected, *itertools.chain.from_iterable(by.values())]
    shared = any(calls.shared for calls in selected)
    clock = clock or _clock(selected, shared)
    machine = Machine.of(platform)
    related = relate(every)
    table = phase_table(every, related, clock, machine)
    if not table["computation"].notna().all():
        raise InsufficientError(
            "the traces hold no times of computation", "add --collector callgrind-intervals, or trace with times"
        )
    if shared or clock == "simulated":
        table["communication"] = np.nan  # waiting for a core, or computation of another machine
    original = table[table["point"] < len(selected)]
    smaller = table[table["point"].isin([at for at, calls in enumerate(every) if calls.workload == other])]
    last = table[table["point"] == len(selected) - 1]
    weight = last.groupby("phase")["weight"].median()
    # Times in MPI are no part of it where ranks shared cores.
    inside = last["computation"] + (0.0 if shared else last["communication"].fillna(0.0))
    spent = (inside * last["weight"]).groupby(last["phase"]).sum()
    spent /= spent.sum()
    unrelated = float(spent.get(UNRELATED, 0.0))
    _refuse(related, weight, unrelated, ranks)
    phases = []
    for number, body in enumerate(related.bodies):
        rows, their = (each[each["phase"] == number] for each in (original, smaller))
        if rows["ranks"].nunique() > 1:  # else its calls were read as other phases' at other rank counts
            phases.append(build_phase(number + 1, body, rows, their, float(spent.get(number, 0.0)), rule))
    measured = np.isfinite(table["communication"]).all()
    return Analysis(
        workload=dict(chosen),
        small=dict(other or ()),
        ranks=tuple(map(float, ranks)),
        phases=tuple(phases),
        clock=clock,
        machine=machine,
        coverage=float(spent[(weight > 1) & (spent.index != UNRELATED)].sum()),
        unrelated=unrelated,
        table=original,
        smaller=smaller,
        shared=shared,
        notes=_notes(every, related, clock, shared),
        messages=None if measured else phase_messages(experiment, every, related, platform),
    )


def _calls(experiment: Experiment) -> dict[Workload, list[Calls]]:
    """The calls of each configuration that was traced, by workload."""
    if "ranks" not in experiment.parameters:
        raise InputError(f"{experiment.path} has no parameter 'ranks'", "phases are followed over rank counts")
    by_workload: dict[Workload, list[Calls]] = {}
    for runs in traced(experiment).values():
        calls = read_calls(experiment, runs)
        by_workload.setdefault(calls.workload, []).append(calls)
    if not by_workload:
        raise InsufficientError(
            f"{experiment.path} holds no event trace", "measure with --collector pmpi-events (also callgrind-intervals)"
        )
    return by_workload


def _words(workload: Workload) -> str:
    return assigned(dict(workload)) or "the program"


def _original(by: Mapping[Workload, list[Calls]], wanted: Mapping[str, float] | None) -> Workload:
    """The workload asked for, or the one that computes most at some rank count."""
    if wanted is not None:
        fits = [each for each in by if wanted.items() <= dict(each).items()]
        if len(fits) != 1:
            known = "; ".join(_words(each) for each in list(by)[:5])
            words = assigned(wanted) or "the program"
            raise InputError(f"{words} names {len(fits)} workloads with event traces", f"there are: {known}")
        return fits[0]
    every = itertools.chain.from_iterable(by.values())
    name = "instructions" if all(calls.has("instructions") for calls in every) else "computation"
    return max(by, key=lambda each: max(float(calls.table[name].sum()) for calls in by[each]))


def _smaller(others: Mapping[Workload, list[Calls]], wanted: Mapping[str, float] | None) -> Workload | None:
    """The smaller workload asked for, or that with most rank counts."""
    fits = [each for each in others if wanted is None or dict(each) == dict(wanted)]
    return max(fits, key=lambda each: len(others[each]), default=None)


def _clock(traces: list[Calls], shared: bool) -> Clock:
    """Measured time where every rank had a core, simulated time where not and loads were simulated between calls."""
    simulated = all(calls.has("flops") or all(calls.has(name) for name in ("instructions", *LOADS)) for calls in traces)
    timed = all(calls.has("computation") for calls in traces)
    return "simulated" if simulated and (shared or not timed) else "measured"


def _notes(traces: list[Calls], related: Related, clock: Clock, shared: bool) -> tuple[str, ...]:
    """What to know of the traces and of how their phases were related."""
    notes = [note for calls in traces for note in calls.notes]
    if related.how["order"]:
        notes.append(f"{related.how['order']} ranks make other calls; their phases are related by order")
    if related.how["bodies"]:
        notes.append(f"{related.how['bodies']} ranks have another number of phases; their calls were looked up")
    if shared:
        what = "computation is processor time, " if clock == "measured" else ""
        notes.append(f"ranks shared cores: {what}their times in MPI are waiting and are not used")
    return tuple(notes)


def _refuse(related: Related, weight: pd.Series, unrelated: float, ranks: list[int]) -> None:
    if not (weight.drop(UNRELATED, errors="ignore") > 1).any():
        raise InsufficientError(
            f"nothing repeats in the trace at {ranks[-1]} ranks: no sequence of calls follows itself",
            "trace more time steps or iterations",
        )
    if len(related.bodies) == 1 and len(related.bodies[0]) == 1:
        kernel, operation = related.bodies[0][0]
        raise InsufficientError(
            f"the whole trace is one phase, {operation} in {kernel}: there is nothing to compare",
            "'ranksight fit' models the kernels of such a program",
        )
    if unrelated > 1 - _RELATED or not np.isfinite(unrelated):
        raise InsufficientError(
            f"{unrelated:.0%} of the time at {ranks[-1]} ranks lies in calls of no phase at other rank counts",
            "trace rank counts at which the program takes the same path",
        )
