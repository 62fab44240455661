"""The program's time as the sum of its parts: kernels, imbalance, messages, and what is outside of all these.

    T_app = sum_k T_k + T_imbalance + BF_comm T_comm + T_others

Every part is a quantity (:mod:`ranksight.model.quantity`); the probability of an interval enters with the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array, Index, ratio
from ranksight.core.experiment import WHOLE
from ranksight.core.mpi import communicates, operation_of
from ranksight.model.application import whole
from ranksight.model.application.breakdown import PARTS, Breakdown, Refined
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.comm_blocking import kind_of
from ranksight.model.application.communication import Communication
from ranksight.model.application.exchanged import NOT_EXCHANGED, Exchanged
from ranksight.model.application.hidden import unhidden
from ranksight.model.quantity import CENTRAL, Quantity, add, product
from ranksight.model.series.computation import PROGRAM
from ranksight.model.structure.functions import Functions
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, rows_of
from ranksight.platforms.assumptions import spread


def program_time(
    equation: Application, refined: Refined, functions: Functions, points: Array, shares: Array, rho: float
) -> Breakdown:
    """Sum everything up at `points` (k, m).

    `refined`: of the same points, from :meth:`Application.refine`. `shares` (s,): share of each series in the measured
    total of its metric. `rho`: correlation of the kernels' noise.
    """
    timed, exchanged = _summands(equation, refined.said, functions, points)
    refined = _without_waiting(equation, refined, timed, points, functions.fitted.parameters)
    predicted = refined.said
    messages = exchanged.times
    if exchanged:
        if equation.machine:
            messages = equation.machine.exchanged(messages, points, functions.fitted.parameters)
        if "inter" not in equation.network.table:
            every = np.ones(len(messages.value), dtype=bool)
            messages = equation.first_step(messages, every, ~every, points)
    rows = _rows(timed)
    summed = whole.add(predicted, rows, shares[rows], rho)
    total, form = _first_row(summed), summed.form[0]
    if equation.pace > 0:
        narrow, total = total, total.no_narrower(equation.pace)
        form = forecast.form_of((_square(narrow), form), (_square(total) - _square(narrow), np.zeros(form.shape)))
    callers = equation.communication.callers if exchanged else ()
    kernels = tuple(dict.fromkeys((*timed, *callers)))
    place = {kernel: at for at, kernel in enumerate(kernels)}
    names = functions.fitted.parameters
    ranks = points[:, names.index("ranks")] if "ranks" in names else np.full(len(points), np.inf)
    busiest = _busiest(equation, refined, timed, points, np.maximum(ranks, 1.0))
    slowest = np.exp(busiest.centre)
    each = _seconds(equation, refined, timed, place, points, slowest)
    total = product([total, busiest])
    if exchanged:
        np.add.at(each["communication"], [place[name] for name in callers], messages.value)
        of_each = forecast.form_of(*zip((messages.upper - messages.lower) ** 2, messages.form, strict=True))
        value, lower, upper = (end.sum(axis=0) for end in (messages.value, messages.lower, messages.upper))
        total, form = _plus(total, form, Quantity.of_ends(value, lower, upper), of_each)
        equation.communication.judge(messages, np.exp(total.centre), summed.status[0], summed.reason[0])
    others = forecast.NO_ROWS
    if equation.others is not None:
        others = equation.others.at(points, np.exp(total.centre), ranks)
        if equation.machine:
            others = equation.machine.wider(others, spread("outside"))
        total, form = _plus(total, form, _first_row(others), others.form[0])
    value, lower, upper = (end[None] for end in total.interval(CENTRAL))
    summed = replace(summed, form=form[None], value=value, lower=lower, upper=upper).judged()
    if not exchanged and not any(kernel in PROGRAM or equation.sends(kernel) for kernel in timed):
        summed = equation.first_step(summed, np.array([False]), np.array([True]), points)
    return Breakdown(summed, kernels, each, slowest, refined.terms, others, exchanged, refined.taken)


def _without_waiting(
    equation: Application, refined: Refined, timed: Mapping[str, int], points: Array, parameters: tuple[str, ...]
) -> Refined:
    """The same where communication is what it is besides waiting for ranks that still compute."""
    rest = equation.unwaited(points, parameters)
    calls = {kernel: row for kernel, row in timed.items() if communicates(kernel)}
    if rest is None or not calls:
        return refined
    rows = _rows(calls)
    waiting = rows_of(refined.said, rows)
    most = {name: getattr(waiting, name).sum(axis=0) for name in ("value", "lower", "upper")}
    part, law = ratio(waiting.value, most["value"], 0.0), equation.imbalances and equation.imbalances.unwaited
    if law:  # a call has what it takes by itself, however long ranks wait in it
        by_call = law.parts(tuple(calls), points)
        part = np.where(np.isfinite(by_call).all(axis=0), by_call, part)
    ends = {name: np.fmin(getattr(rest, name), end) * part for name, end in most.items()}
    shorter = replace(rows_of(rest, np.zeros(len(rows), dtype=np.intp)), **ends)
    known = np.isfinite(rest.value) & np.isfinite(part)
    return replace(refined, said=choose(refined.said, shorter, rows, known))


def _rows(timed: Mapping[str, int]) -> Index:
    return np.array(list(timed.values()), dtype=np.intp)


def _first_row(answers: Forecast) -> Quantity:
    return Quantity.of_ends(answers.value[0], answers.lower[0], answers.upper[0])


def _square(quantity: Quantity) -> Array:
    """Square of the width of the 90 % interval."""
    _, low, high = quantity.interval(CENTRAL)
    return np.asarray((high - low) ** 2)


def _plus(total: Quantity, form: Array, part: Quantity, form_of_part: Array) -> tuple[Quantity, Array]:
    """A sum and the share of the form in its variance, (k,) each, with an independent part more."""
    share = forecast.form_of((_square(total), form), (_square(part), form_of_part))
    return add([total, part]), share


def _summands(
    equation: Application, predicted: Forecast, functions: Functions, points: Array
) -> tuple[dict[str, int], Exchanged]:
    """The kernels whose times are summed, each with its row, and the messages that come on top."""
    timed = {kernel: row for (kernel, name), row in functions.rows.items() if name == "time"}
    if equation.nested:
        timed = {WHOLE: timed[WHOLE]}
    elif len(timed) > 1:  # kernels other than the whole are its parts
        timed.pop(WHOLE, None)
    sent = equation.communication
    if equation.nested or not sent.priced(equation.network):
        return timed, NOT_EXCHANGED
    exchanged = sent.exchanged(points, equation.network)
    calls = [kernel for kernel in timed if communicates(kernel) and _is_sent(kernel, sent)]
    if 0 < len(calls) < len(timed):  # a profile timed the same messages
        if exchanged.assumed:
            return timed, NOT_EXCHANGED
        timed = {kernel: row for kernel, row in timed.items() if kernel not in calls}
    computing = np.nan_to_num(predicted.value[_rows(timed)]).sum(axis=0)
    return timed, _with_waiting(equation, sent, exchanged, points, computing)


def _is_sent(kernel: str, sent: Communication) -> bool:
    """Whether the time of a kernel that is MPI's is that of messages which have a time of their own. Waits for messages
    whose sends a profile has no bytes of are not, nor are other functions than those that send."""
    operation = operation_of(kernel)
    return not operation or kind_of(operation) in sent.kinds


def _with_waiting(
    equation: Application, sent: Communication, exchanged: Exchanged, points: Array, computing: Array
) -> Exchanged:
    """Times of messages with what computation hides of them, and with those that replay of the calls' order has, in the
    proportion of its weight."""
    behind = np.zeros(len(points))
    if sent.hidden is not None:
        behind = exchanged.network[sent.hidden.rows(sent.kinds)].sum(axis=0)
        exchanged = unhidden(sent.hidden, exchanged, sent.kinds, computing)
    replay = equation.replay
    if replay is None:
        return exchanged
    from ranksight.model.application.replayed import mixed, replayed_seconds

    law, messages = replay
    asked = ~exchanged.measured  # what was measured is not replayed
    seconds, deviation = np.full((2, len(points)), np.nan), np.zeros((2, len(points)))
    seconds[:, asked], deviation[:, asked] = replayed_seconds(
        messages, equation.network, points[asked], computing[asked]
    )
    return mixed(law, exchanged, seconds[0], deviation[0], behind)


def _busiest(equation: Application, refined: Refined, timed: Mapping[str, int], points: Array, most: Array) -> Quantity:
    """What the busiest rank has over the mean, (k,), at `most` (k,)."""
    if equation.imbalances is not None:
        # The kernels' counts by rank are more precise than the sum of a rank's scattering times.
        times = np.nan_to_num(refined.said.value[_rows(timed)])
        ends = equation.imbalances.program(tuple(timed), times, points)
    else:
        balance, single = equation.balance, np.full(len(points), equation.imbalance)
        ends = (single,) * 3 if balance is None else balance.imbalance(points)
        # No rank does more than all together.
        value, low, high = (np.minimum(end, most) for end in ends)
        ends = value, low, high
    return Quantity.of_ends(*ends).moved(np.log(refined.uneven))


def _seconds(
    equation: Application,
    refined: Refined,
    timed: Mapping[str, int],
    place: Mapping[str, int],
    points: Array,
    busiest: Array,
) -> dict[str, Array]:
    """The parts of every kernel at `points`, without messages."""
    each = {name: np.zeros((len(place), len(points))) for name in PARTS}
    times = np.nan_to_num(refined.said.value[_rows(timed)])
    each["direct"][: len(timed)] = times
    each["imbalance"][: len(timed)] = times * (busiest - 1.0)
    for name, part in refined.split.items():
        each[name][: len(timed)] = np.array([part[kernel] for kernel in timed])
    if equation.imbalances is not None:
        # Times of slowest ranks hold the imbalance, as do times of the ranks that have a kernel; they give it up
        # to the kernels that are uneven, or that few ranks have.
        kernels = tuple(timed)
        mean = equation.imbalances.means(kernels, times, points)
        for name in PARTS:
            each[name][: len(kernels)] *= mean / np.where(times > 0, times, 1.0)
        each["imbalance"][: len(kernels)] = equation.imbalances.parts(kernels, times, points)
    calls = np.flatnonzero([communicates(kernel) for kernel in timed])
    if len(calls):  # what ranks do in MPI is no computing, and no imbalance of it
        seconds = times[calls] * (busiest if equation.imbalances is None else 1.0)
        for name in PARTS:
            each[name][calls] = seconds if name == "communication" else 0.0
    return each
