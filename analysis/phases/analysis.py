"""From an experiment with event traces to its phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ranksight.analysis.phases.calls import LOADS, Calls, read_calls, traced
from ranksight.analysis.phases.messages import Messages
from ranksight.analysis.phases.pet import Pet, PhaseTime
from ranksight.analysis.phases.phase import Phase, build_phase
from ranksight.analysis.phases.relate import UNRELATED, Related, relate
from ranksight.analysis.phases.table import Clock, phase_table
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.application.comm_blocking import costs_time
from ranksight.model.application.communication import Communication
from ranksight.model.application.network import Network
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.resource.equation import Machine
from ranksight.model.series.reducing import Series
from ranksight.model.structure.stated import BETWEEN
from ranksight.model.structure.structured import structured
from ranksight.platforms import Platform

Workload = tuple[tuple[str, float], ...]
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
    clock: Clock  # {"measured", "simulated"}
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

    Parameters
    ----------
    experiment : Experiment
        With a parameter ``ranks``, and runs of the collector ``pmpi-events`` at two rank counts or more.
    platform : Platform
        Whose clock and latencies turn counts into cycles, and whose network messages go over.
    workload : mapping of str to float, optional
        The original workload; that which computes most where not given.
    small : mapping of str to float, optional
        The workload that distant points come from; of the others, that with most rank counts where not given.
    clock : {"measured", "simulated"}, optional
        Which time of computation is taken. When not given, measured time where every rank had a core, and simulated
        time where not and loads were simulated between calls.
    rule : str, optional
        Rank counts that the program admits, of :data:`ranksight.analysis.phases.weights.RULES`.
    """
    given = _calls(experiment)
    chosen = _original(given, workload)
    mine, others = _divided(given, chosen)
    ranks = [calls.ranks for calls in mine]
    shared = any(calls.shared for calls in mine)
    clock = clock or _clock(mine, shared)
    machine = Machine.of(platform)
    related = relate([*mine, *others])
    table = phase_table([*mine, *others], related, clock, machine)
    if not table["computation"].notna().all():
        raise InsufficientError(
            "the traces hold no times of computation", "add --collector callgrind-intervals, or trace with times"
        )
    if shared or clock == "simulated":
        table["communication"] = np.nan  # waiting for a core, or computation of another machine
    table["original"] = table["point"] < len(mine)
    last = table[table["point"] == len(mine) - 1]
    weight = last.groupby("phase")["weight"].median()
    spent = _spent(last, shared)
    total = float(spent.sum())
    unrelated = float(spent.get(UNRELATED, 0.0)) / total
    _refuse(related, weight, unrelated, ranks)
    smaller, used = _smaller(table, others, small)
    original = table[table["original"]]
    phases = _phases(original, smaller, related, spent / total, rule)
    messages = None
    if not np.isfinite(table["communication"]).all():
        messages = phase_messages(experiment, [*mine, *others], related, platform)
    return Analysis(
        workload=dict(chosen),
        small=used,
        ranks=tuple(map(float, ranks)),
        phases=phases,
        clock=clock,
        machine=machine,
        coverage=float(spent[(weight > 1) & (spent.index != UNRELATED)].sum()) / total,
        unrelated=unrelated,
        table=original.drop(columns="original"),
        smaller=smaller.drop(columns="original"),
        shared=shared,
        notes=_notes(given, related, clock, shared),
        messages=messages,
    )


def _calls(experiment: Experiment) -> list[Calls]:
    """The calls of each configuration that was traced."""
    if "ranks" not in experiment.parameters:
        raise InputError(f"{experiment.path} has no parameter 'ranks'", "phases are followed over rank counts")
    runs = traced(experiment)
    if not runs:
        raise InsufficientError(
            f"{experiment.path} holds no event trace", "measure with --collector pmpi-events (also callgrind-intervals)"
        )
    return [read_calls(experiment, each) for each in runs.values()]


def _divided(given: list[Calls], chosen: Workload) -> tuple[list[Calls], list[Calls]]:
    """The calls of the chosen workload by ascending ranks, and those of all others."""
    mine = sorted((calls for calls in given if _workload(calls) == chosen), key=lambda calls: calls.ranks)
    if len({calls.ranks for calls in mine}) < 2:
        raise InsufficientError(
            f"event traces of {_words(dict(chosen))} are there at {mine[0].ranks if mine else 0} ranks only",
            "trace at two rank counts or more, better four",
        )
    return mine, [calls for calls in given if _workload(calls) != chosen]


def _workload(calls: Calls) -> Workload:
    return tuple((name, float(value)) for name, value in calls.configuration.items() if name != "ranks")


def _words(workload: Mapping[str, float]) -> str:
    return " ".join(f"{name}={value:g}" for name, value in workload.items()) or "the program"


def _original(given: list[Calls], wanted: Mapping[str, float] | None) -> Workload:
    """The workload asked for, or the one that computes most, at the least rank count of each."""
    present = dict.fromkeys(_workload(calls) for calls in given)
    if wanted is not None:
        fits = [each for each in present if all(dict(each).get(name) == value for name, value in wanted.items())]
        if len(fits) != 1:
            known = "; ".join(_words(dict(each)) for each in list(present)[:5])
            raise InputError(f"{_words(wanted)} names {len(fits)} workloads with event traces", f"there are: {known}")
        return fits[0]
    work: dict[Workload, float] = {}
    for calls in given:
        name = "instructions" if all(each.has("instructions") for each in given) else "computation"
        total = float(calls.table[name].sum()) if name in calls.table else 0.0
        work[_workload(calls)] = max(work.get(_workload(calls), 0.0), total)
    return max(work, key=lambda each: work[each])


def _clock(mine: list[Calls], shared: bool) -> Clock:
    """Measured time where every rank had a core, simulated time where not and loads were simulated between calls."""
    simulated = all(calls.has("flops") or all(calls.has(name) for name in ("instructions", *LOADS)) for calls in mine)
    timed = all(calls.has("computation") for calls in mine)
    return "simulated" if simulated and (shared or not timed) else "measured"


def _spent(rows: pd.DataFrame, shared: bool) -> pd.Series:
    """Time that each phase takes in the run of these rows; without its times in MPI where ranks `shared` cores."""
    inside = rows["computation"] + (0.0 if shared else rows["communication"].fillna(0.0))
    return (inside * rows["weight"]).groupby(rows["phase"]).sum()


def _phases(
    table: pd.DataFrame, smaller: pd.DataFrame, related: Related, part: pd.Series, rule: str | None
) -> tuple[Phase, ...]:
    """The phases from the rows of both workloads; `part` is each one's of the run's time."""
    phases = []
    for number, body in enumerate(related.bodies):
        rows = table[table["phase"] == number]
        if rows["ranks"].nunique() < 2:
            continue  # its calls were read as other phases' at other rank counts
        their = smaller[smaller["phase"] == number]
        phases.append(build_phase(number + 1, body, rows, their, float(part.get(number, 0.0)), rule))
    return tuple(phases)


def _notes(given: list[Calls], related: Related, clock: Clock, shared: bool) -> tuple[str, ...]:
    """What to know of the traces and of how their phases were related."""
    notes = [note for calls in given for note in calls.notes]
    if related.how["order"]:
        notes.append(f"{related.how['order']} ranks make other calls; their phases are related by order")
    if related.how["bodies"]:
        notes.append(f"{related.how['bodies']} ranks have another number of phases; their calls were looked up")
    if shared:
        what = "computation is processor time, " if clock == "measured" else ""
        notes.append(f"ranks shared cores: {what}their times in MPI are waiting and are not used")
    return tuple(notes)


def _smaller(
    table: pd.DataFrame, others: list[Calls], wanted: Mapping[str, float] | None
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Rows of the smaller workload asked for, or of that with most rank counts; and that workload."""
    rest = table[~table["original"]]
    counts: dict[Workload, int] = {}
    for calls in others:
        counts[_workload(calls)] = counts.get(_workload(calls), 0) + 1
    if wanted is not None:
        counts = {each: number for each, number in counts.items() if dict(each) == dict(wanted)}
    if not counts:
        return rest.iloc[:0], {}
    chosen = max(counts, key=lambda each: counts[each])
    first = int(table.loc[table["original"], "point"].max()) + 1
    points = [first + at for at, calls in enumerate(others) if _workload(calls) == chosen]
    return rest[rest["point"].isin(points)], dict(chosen)


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


_METRICS = ("messages", "bytes_sent")


def phase_messages(
    experiment: Experiment, given: Sequence[Calls], related: Related, platform: Platform
) -> Messages | None:
    """Learn how the phases' messages grow; None without messages or without a described network."""
    if not platform.network:
        return None
    tables = {
        _point(experiment, calls.configuration): _counts(table)
        for calls, table in zip(given, related.labelled, strict=True)
    }
    names = sorted({kernel for table in tables.values() for kernel in table["kernel"]})
    if not names:
        return None
    values = np.full((len(_METRICS) * len(names), len(tables), 1), np.nan)
    for at, (calls, table) in enumerate(zip(given, tables.values(), strict=True)):
        sums = table.groupby("kernel")[list(_METRICS)].sum() / calls.ranks
        for row, metric in enumerate(_METRICS):
            mine = sums[metric].reindex(names).to_numpy(dtype=float)
            values[row * len(names) : (row + 1) * len(names), at, 0] = mine
    points = np.array(list(tables), dtype=np.float64)
    kernels = tuple(names) * len(_METRICS)
    series = Series(experiment.parameters, points, values, kernels, tuple(np.repeat(_METRICS, len(names)).tolist()))
    first = {point: runs[0].id for point, runs in traced(experiment).items()}

    def table_of(run: Run) -> pd.DataFrame | None:
        point = _point(experiment, run.configuration)
        return tables[point] if first.get(point) == run.id else None

    functions = structured(experiment, series, fit_series(series), table_of)
    network = Network(dict(platform.network), platform.cores if "inter" in platform.network else 1 << 30)
    return Messages(platform.name, tuple(experiment.parameters), Communication(functions), network)


def _point(experiment: Experiment, configuration: Mapping[str, float]) -> tuple[float, ...]:
    return tuple(float(configuration[name]) for name in experiment.parameters)


def _counts(table: pd.DataFrame) -> pd.DataFrame:
    """Counts and bytes of a configuration: ``kernel`` (phase and operation), ``rank``, ``messages``, ``bytes_sent``."""
    known = {name: costs_time(name) for name in table["operation"].unique()}
    chosen = table[(table["phase"] != UNRELATED) & table["operation"].map(known).astype(bool)]
    names = (chosen["phase"] + 1).astype(str) + BETWEEN + chosen["operation"].astype(str)
    grouped = chosen.assign(kernel=names).groupby(["kernel", "rank"])["bytes"]
    return pd.DataFrame({"messages": grouped.size().astype(float), "bytes_sent": grouped.sum()}).reset_index()
