"""Energy and power at configurations that were not measured: the law of power with the counts and times predicted.

    E = P T,    Var ln P = v + (1 - g)^2 Var ln T,    Var ln E = v + g^2 Var ln T

g is the part of the energy that grows with the time, v what the power is uncertain by at this time: a run that takes
longer moves as many bytes as before.

Packages, memory and nodes are predicted apart; energy and power without a component are of packages and memory
together, or of whole nodes where these were metered. Packages that a job holds without a rank on them, which no meter
recorded, are in these with their idle power.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ranksight.core.arrays import Array, ratio
from ranksight.core.records import dataclass
from ranksight.model.application.moved import ELSEWHERE
from ranksight.model.energy.metered import COUNTS, OF_NODES
from ranksight.model.energy.power import HALTED, PowerLaw, amounts
from ranksight.model.energy.stored import ENERGY, NEEDED, Energy, Profile
from ranksight.model.predicting import Learned
from ranksight.model.quantity import TAIL
from ranksight.model.series.computation import cores
from ranksight.model.uncertainty.forecast import NO_DATA, OK, Forecast, judged_by_width

IDLE = "idle"
"""The component of packages, and their memory, that a job holds and no rank is on."""
FEW = "energy was metered at fewer than three numbers of cores, and not at this one: meter runs at three"
LATEST = 2.0
"""Seconds from the first rank's start to the last's over the mean that a rank waits: ranks are started one after
another."""


@dataclass(frozen=True)
class Parts:
    """Energy of a component at k configurations, in joules and relative standard deviations (k,)."""

    joules: Array
    watts: Array
    of_power: Array  # of the power, at the time it takes
    of_energy: Array
    most: Array  # times as much, where packages or nodes are smaller than they are taken to be


@dataclass(frozen=True)
class _Duration:
    """Seconds of a run (k,): of the whole, those in which cores were awake, and the mean in which they were halted."""

    time: Array
    awake: Array
    halted: Array
    of_time: Array  # standard deviation of the logarithm of the time
    of_awake: Array  # of the awake seconds, at this time
    of_wait: Array  # of the share of the time in which ranks wait for others to start


def usable(model: Learned) -> Energy | None:
    """The laws of power of a model; None where no meter can be used, or none was on the machine that is asked for."""
    machine = model.equation.machine
    named = machine.name if machine else ""
    return model.energy if model.metered and model.energy.machine == named else None


def parts(
    energy: Energy,
    model: Learned,
    points: Array,
    times: Array | None = None,
    predicted: tuple[Array, Array] | None = None,
) -> dict[str, Parts]:
    """Joules and watts of each component at `points` (k, m), of runs whose `times` (k,) are known or predicted.

    `predicted`: times (k,) and standard deviations of their logarithms where the model was asked for them already.
    """
    # Counts of the model are those of its own machine: elsewhere rates of the runs there are taken alone.
    needed = ("time",) if energy.machine else NEEDED
    known = [name for name in needed if name in model.fitted.metrics and (predicted is None or name != "time")]
    program = {name: (each.value[0], each.spread[0]) for name, each in model.programs(points, known).items()}
    program |= {} if predicted is None else {"time": predicted}
    count = cores(points, model.parameters)
    growth = energy.nodes(points, model.parameters) / _most_nodes(energy, model)
    lasting = _duration(energy.profile, program, count, growth, times)
    every = _ranks(model, points)
    work = count * lasting.awake  # core-seconds
    counts, doubts, growing = {}, {}, {}
    nothing = np.full(len(points), np.nan), np.zeros(len(points))
    for name in COUNTS:
        if name in program or (energy.machine and np.isfinite(getattr(energy.profile, name)).all()):
            total, doubt = program.get(name, nothing)
            counts[name], doubts[name], growing[name] = energy.profile.counted(
                name, total * every, doubt, lasting.of_time, work, count
            )
    by_component = {}
    for law in energy.laws:
        lost = {name: np.full(len(points), np.nan) for name in law.terms if name in COUNTS and name not in counts}
        places = energy.places(law.component, points, model.parameters)
        window = lasting.awake + lasting.halted
        each = amounts(law.component, places, window, lasting.awake, {**counts, **lost}, count)
        joules = law.joules(each) * np.exp(law.residual_at(count))
        joules = np.where(law.known(count), joules, np.nan)
        total = joules.sum(axis=0)
        spread = amounts(
            law.component, places * energy.most_places(points, model.parameters), window, lasting.awake,
            {**counts, **lost}, count,
        )  # fmt: skip
        share = dict(zip(law.terms, ratio(joules, total, 0.0), strict=True))
        matrix = law.matrix(each)
        of_terms = ratio(np.einsum("qk,qr,rk->k", matrix, law.covariance, matrix), total**2, 0.0)
        variance = of_terms * law.unseen(count) + law.beyond(count) ** 2
        for name in COUNTS:
            variance = variance + (share.get(name, 0.0) * doubts.get(name, 0.0)) ** 2
        # Of a second that cores are awake in place of halted; and of a second that all wait longer.
        waiting = law.coefficient(HALTED) * places / LATEST
        variance = (
            variance
            + (ratio(joules_awake(law, joules), lasting.awake, 0.0) - waiting) ** 2
            * ratio(lasting.of_awake, total) ** 2
        )
        waits = lasting.of_wait * (1 - ratio(waiting * lasting.time, total, 0.0))
        fixed = np.sum([share.get(name, 0.0) * (1 - grows) for name, grows in growing.items()], axis=0)
        by_component[law.component] = Parts(
            total,
            ratio(total, lasting.time),
            np.sqrt(variance + waits**2 + (fixed * lasting.of_time) ** 2),
            np.sqrt(variance + ((1 - fixed) * lasting.of_time) ** 2),
            ratio(law.joules(spread).sum(axis=0), law.joules(each).sum(axis=0), 1.0),
        )
    return by_component | _idle(energy, points, model.parameters, lasting)


def _idle(energy: Energy, points: Array, parameters: Sequence[str], lasting: _Duration) -> dict[str, Parts]:
    """The packages, with their memory, that jobs at `points` (k, m) hold without a rank; nothing where there are none.

    P = (packages held - packages with a rank) (p_halted + p_memory)
    """
    empty = energy.empty(points, parameters)
    if not (empty > 0).any():
        return {}
    each, doubt = energy.idle
    watts = empty * each
    of_power = np.where(empty > 0, doubt / each, 0.0)
    return {
        IDLE: Parts(watts * lasting.time, watts, of_power, np.hypot(of_power, lasting.of_time), np.ones(len(points)))
    }


def _most_nodes(energy: Energy, model: Learned) -> float:
    """The most nodes that a run had whose ranks' start was seen."""
    if not energy.machine or "nodes" in model.parameters:
        return float(energy.nodes(model.training, model.parameters).max())
    each, profile = energy.ranks or energy.cores or energy.each, energy.profile
    return float(np.ceil(profile.cores.max() / each)) if each and len(profile.cores) else 1.0


def joules_awake(law: PowerLaw, joules: Array) -> Array:
    """Joules (k,) of the terms that grow with the seconds in which cores are awake."""
    return np.asarray(sum(part for name, part in zip(law.terms, joules, strict=True) if name != HALTED))


def _duration(
    profile: Profile, program: Mapping[str, tuple[Array, Array]], count: Array, growth: Array, times: Array | None
) -> _Duration:
    """The time with its parts, predicted, or of runs whose `times` (k,) are known.

        T = starting + awake (1 + resting)

    Where the time is not the sum of the seconds that cores are predicted to be awake and halted, both differ as they
    are uncertain.
    """
    missing = np.full(len(count), np.nan)
    time, of_time = program.get("time", (missing, missing))
    starting, doubt = profile.starting_at(count, growth)
    of_starting, running = doubt * starting, 1 + profile.resting_at(count)
    cycles, clock = program.get("cycles"), program.get("frequency")
    if cycles is None or clock is None:
        awake, of_awake = (time - starting) / running, of_time * time
    else:
        awake = ratio(cycles[0], clock[0])
        of_awake = cycles[1] * awake
    together = of_awake**2 + of_starting**2
    whole = time if times is None else times
    # A predicted time is itself uncertain: by what does not come from the cores awake.
    further = np.zeros(len(count)) if times is not None else np.maximum((of_time * time) ** 2 - of_awake**2, 0.0)
    shift = whole - awake * running - starting
    awake = np.clip(awake + ratio(of_awake**2, together + further, 1.0) * shift / running, 0.0, whole / running)
    left = np.sqrt(ratio(of_awake**2 * of_starting**2, together, 0.0))
    if times is not None:
        of_time, of_starting = np.zeros(len(count)), np.zeros(len(count))
    halted = (whole - awake * running) / LATEST + awake * (running - 1)
    return _Duration(whole, awake, halted, of_time, left, ratio(of_starting, whole, 0.0))


def _ranks(model: Learned, points: Array) -> Array:
    """Ranks (k,) that values of the program are means over."""
    if "ranks" not in model.parameters:
        return np.ones(len(points))
    return np.asarray(points[:, list(model.parameters).index("ranks")], dtype=np.float64)


def forecasts(model: Learned, points: Array, names: Sequence[str], times: Array | None = None) -> dict[str, Forecast]:
    """Forecasts of one row at `points` (k, m) of the metrics `names`, ``energy_package`` and so on."""
    energy = model.energy
    if (machine := model.equation.machine) and usable(model) is None:
        return {name: _elsewhere(ELSEWHERE.format(metric=name, machine=machine.name), len(points)) for name in names}
    time = model.programs(points, ["time"]).get("time") if times is None else None
    predicted = None if time is None else (time.value[0], time.spread[0])
    by_component, answers = parts(energy, model, points, times, predicted), {}
    for name in names:
        kind, _, component = name.partition("_")
        chosen = by_component[component] if component else combined(by_component)
        value, relative = (chosen.joules, chosen.of_energy) if kind == ENERGY else (chosen.watts, chosen.of_power)
        known = np.isfinite(value) & np.isfinite(relative) & (value > 0)
        value = np.where(known, value, np.nan)
        status = np.where(known, OK, NO_DATA).astype(np.intp)
        reason = np.full(value.shape, "", dtype=object)
        reason[~known] = "the time, or a count that power depends on, is not predicted at this configuration"
        reason[~energy.reaches(component, cores(points, model.parameters))] = FEW
        if kind == ENERGY and time is not None:
            untimed = known & (time.status[0] != OK)
            status, reason = np.where(untimed, time.status[0], status), np.where(untimed, time.reason[0], reason)
        factor = np.exp(TAIL * relative)
        most = factor * chosen.most
        status, reason = judged_by_width(factor * most, status, reason)
        answers[name] = Forecast(
            value[None], (value / factor)[None], (value * most)[None], status[None], reason[None],
            np.zeros((1, len(value))),
        )  # fmt: skip
    return answers


def _elsewhere(reason: str, count: int) -> Forecast:
    """A row of no answer."""
    nothing = np.full((1, count), np.nan)
    status, reasons = np.full((1, count), NO_DATA, dtype=np.intp), np.full((1, count), reason, dtype=object)
    return Forecast(nothing, nothing, nothing, status, reasons, np.zeros((1, count)))


def combined(by_component: Mapping[str, Parts]) -> Parts:
    """Energy of all parts: the job's or its nodes' where they were metered, otherwise of packages and memory together,
    with those that are held and idle."""
    chosen = next(
        ([by_component[name]] for name in reversed(OF_NODES) if name in by_component), list(by_component.values())
    )
    joules, watts = (np.sum([getattr(each, name) for each in chosen], axis=0) for name in ("joules", "watts"))
    # The time is the same in all parts, and counts and places are shared: their errors add up.
    spreads = (
        ratio(np.sum([each.joules * getattr(each, name) for each in chosen], axis=0), joules)
        for name in ("of_power", "of_energy", "most")
    )
    return Parts(joules, watts, *spreads)


def evidence(energy: Energy, name: str) -> str:
    """What the answer of a metric is made of."""
    component = name.partition("_")[2]
    laws = [energy.law(component)] if component else list(energy.laws)
    return "law of power of " + " and of ".join(
        f"{law.component} ({law.formula()}; {law.rows} windows)" for law in laws if law is not None
    )
