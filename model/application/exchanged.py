"""Times of operations in a program, and BF_comm of all together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Mask, log_ratio, ratio
from ranksight.core.records import dataclass
from ranksight.core.units import whole
from ranksight.model.plaindata import Stored
from ranksight.model.priors import NODE_REGIMES, NODE_STEP, PROGRAM_STEP
from ranksight.model.quantity import TAIL, Quantity
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.mixture import quantiles

EXCHANGED = ("configuration", "communication", "network", "factor", "lower", "upper", "method", "meaning")
"""Columns of BF_comm over configurations: seconds in the program, seconds on the network, BF_comm with its interval."""
MEANINGS = {
    "overlap": "below 1, part of the communication overlaps with computation",
    "waiting": "above 1, ranks wait for each other in MPI",
    "": "1 is inside its interval, so that neither overlap nor waiting is shown",
}
"""What is said of a BF_comm."""
NEVER_LEFT = (
    "all runs fit on one node, and what messages between nodes cost was not seen: measure {ranks} ranks, two full nodes"
)
NORMAL = 1e6
"""Degrees of freedom at which Student's law is the normal one."""


@dataclass(frozen=True)
class Replay(Stored):
    """How much replay counts against BF_comm times prices (:mod:`ranksight.model.application.replayed`)."""

    weight: float  # from 0, not at all, to 1, alone
    error: float  # of replay at held-out runs, root mean square of logarithms
    ratio: float = 1.0  # of measured times to those of replay, on the most ranks that were run

    def _fits(self) -> bool:
        return 0 <= self.weight <= 1 and self.error >= 0 and 0 < self.ratio < np.inf


NO_REPLAY = Replay(0.0, 0.0)
"""Where it was not weighed."""


@dataclass(frozen=True)
class Exchanged:
    """Times of operations in a program."""

    times: Forecast  # seconds of each operation, (o, k)
    factor: Forecast  # BF_comm of all together, one row
    measured: Mask  # (k,): where BF_comm was measured
    network: Array  # (o, k): seconds of each operation on the network, without BF_comm
    crossings: tuple[tuple[str, ...], ...] = ()
    """At each configuration, thresholds of the MPI library between the runs and it, in words."""
    assumed: bool = False  # whether no communication time was measured at all: BF_comm is 1 then, with a wide interval

    def __bool__(self) -> bool:
        return bool(len(self.times.value))

    def at(self, level: float) -> Exchanged:
        """The same with central intervals of probability `level`."""
        return replace(self, times=self.times.at(level), factor=self.factor.at(level))

    def taking(self, times: Forecast) -> Exchanged:
        """The same with other times of operations, and the BF_comm that goes with them."""
        before, ends = self.times.value.sum(axis=0), np.stack([times.value, times.lower, times.upper]).sum(axis=1)
        value, lower, upper = ratio(self.factor.value * ends[:, None], before, np.nan)
        return replace(self, times=times, factor=replace(self.factor, value=value, lower=lower, upper=upper))

    @property
    def methods(self) -> tuple[str, ...]:
        """Where BF_comm comes from at each configuration: ``measured``, ``fitted`` or ``assumed``."""
        return tuple("assumed" if self.assumed else "measured" if yes else "fitted" for yes in self.measured.tolist())

    @property
    def meanings(self) -> tuple[str, ...]:
        """What BF_comm means at each configuration.

        ``overlap`` where its interval is below 1: part of the communication is hidden behind computation or other
        messages; ``waiting`` where it is above 1: ranks wait for each other; else empty.
        """
        low, high = self.factor.lower[0].tolist(), self.factor.upper[0].tolist()
        return tuple("overlap" if b < 1 else "waiting" if a > 1 else "" for a, b in zip(low, high, strict=True))

    def table(self, parameters: Sequence[str], points: Array) -> list[dict[str, Any]]:
        """A row of :data:`EXCHANGED` for each of `points` (k, m) that has communication."""
        seconds, factor = self.times.value.sum(axis=0), self.factor
        columns = (seconds, ratio(seconds, factor.value[0], 0.0), factor.value[0], factor.lower[0], factor.upper[0])
        where = [dict(zip(parameters, map(whole, point), strict=True)) for point in points.tolist()]
        rows = zip(where, *(column.tolist() for column in columns), self.methods, self.meanings, strict=True)
        return [dict(zip(EXCHANGED, row, strict=True)) for row in rows if row[2] > 0]


NOT_EXCHANGED = Exchanged(forecast.NO_ROWS, forecast.NO_ROWS, np.zeros(0, dtype=bool), np.empty((0, 0)))
"""Where messages have no time."""


def first_step_note(ranks: int) -> str:
    """What is said of several nodes after runs on one; `ranks`: of two full nodes."""
    return (
        "all runs fit on one node: the intervals of the program, or of its messages, on several allow for what was not "
        f"seen; {ranks} ranks, two full nodes, would show it"
    )


def farther(times: Forecast, where: Mask, messages: Mask, ranks: int) -> Forecast:
    """Times (s, k) on several nodes after runs on one, `where` they are: the step there was not seen
    (:data:`~ranksight.model.priors.NODE_STEP`), of `messages` (s,) alone or of programs that send some. `ranks`: of two
    full nodes."""
    of_messages = NODE_STEP * np.sqrt(1 - NODE_REGIMES["one"])
    step = np.where(where, np.where(messages, of_messages, PROGRAM_STEP)[:, None], 0.0)
    with np.errstate(divide="ignore"):
        wider = times.having(Quantity.of_ends(times.value, times.lower, times.upper).wider(step))
    form = forecast.form_of((times.spread**2, times.form), (step**2, np.ones(step.shape)))
    unseen = where & (times.status == forecast.OK) & ~(wider.upper <= forecast.WIDEST * wider.lower)
    status = np.where(unseen, forecast.WIDE, times.status).astype(np.intp)
    reason = np.where(unseen, NEVER_LEFT.format(ranks=ranks), times.reason)
    return replace(wider, form=np.where(where, form, times.form), status=status, reason=reason)


def mixture_of(weights: Array, centres: Array, spread: Array, exact: Mask) -> tuple[Array, Array, Array]:
    """Medians (r, k) of mixtures of c normal laws, and how far the ends of their intervals are below and above.

    `weights`, `centres`, `spread` (c, r, k). `exact` (r, k): where all centres are the same.
    """
    none = ~np.isfinite(centres).all(axis=0)
    plain = np.where(none, 0.0, centres)
    middle = (weights * plain).sum(axis=0)
    down = up = TAIL * np.sqrt((weights * spread**2).sum(axis=0))
    if len(centres) > 1:
        tail = float(special.ndtr(-TAIL))
        low, half, high = quantiles((tail, 0.5, 1 - tail), weights, plain, spread, np.full(plain.shape, NORMAL))
        middle, down, up = (np.where(exact, *pair) for pair in ((middle, half), (down, half - low), (up, high - half)))
    return np.where(none, -np.inf, middle), down, up


def exchanged_of(
    network_times: Forecast, middle: Array, scaled: Array, down: Array, up: Array, exact: Mask
) -> Exchanged:
    """Put together what :meth:`Communication.exchanged` gives, from (o, k) each.

    `network_times`: times on the network; `scaled`: their logarithms. `middle`, `down`, `up`: logarithms of the times
    in the program, and how far the ends of the intervals of BF_comm are below and above. `exact`: where the time in the
    program was measured: nothing else is uncertain there.
    """
    value = np.exp(middle)
    fall, rise = (
        log_ratio(network_times.value, network_times.lower),
        log_ratio(network_times.upper, network_times.value),
    )
    fall, rise = (np.where(exact, 0.0, np.where(np.isnan(end), 0.0, end)) for end in (fall, rise))
    lower, upper = value * np.exp(-np.hypot(fall, down)), value * np.exp(np.hypot(rise, up))
    theirs = forecast.form_of(((fall + rise) ** 2, network_times.form), ((down + up) ** 2, np.where(exact, 0.0, 1.0)))
    times = replace(network_times, value=value, lower=lower, upper=upper, form=theirs)
    measured = np.asarray(np.where(value > 0, exact, True).all(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        middle, low, high = (
            (end.sum(axis=0) / np.exp(scaled).sum(axis=0))[None]
            for end in (value, value * np.exp(-down), value * np.exp(up))
        )
    status = np.where(np.isfinite(middle), forecast.OK, forecast.NO_DATA).astype(np.intp)
    reason = np.full(status.shape, "", dtype=object)
    known = measured[None].astype(np.float64)
    factor = Forecast(middle, low, high, status, reason, 1 - known)
    return Exchanged(times, factor, measured, network_times.value)
