"""What a fit learned of an application, and what it predicts: every series, and the program's time of its parts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ranksight.core import limits
from ranksight.core.arrays import Array, Index
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.application import whole
from ranksight.model.application.agreement import Agreement, operations_summed, remark, with_doubts
from ranksight.model.application.breakdown import Breakdown, Refined
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.program_time import program_time
from ranksight.model.application.runs import Anchor
from ranksight.model.energy.stored import NO_ENERGY, Energy
from ranksight.model.fitting.columns import Columns
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import Stored, plain, reading
from ranksight.model.quantity import CENTRAL
from ranksight.model.questions import whole_ranks
from ranksight.model.resource.clock import NO_CLOCK, Clock
from ranksight.model.series.folding import Selection
from ranksight.model.structure.coordinates import AS_MEASURED, Coordinates
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.wholeunits import ALL_EVEN, Staircase
from ranksight.model.uncertainty.forecast import NO_DATA, Forecast
from ranksight.model.uncertainty.rows import ARRAYS, rows_of

TIMED = ("time", "cycles")
"""Metrics that a contradiction between counters spoils."""
REMEMBERED = 3
"""Answers that a model remembers."""


@dataclass(frozen=True)
class Remarks(Stored):
    """Sentences on the runs of a model; empty where there is nothing to be said."""

    left_out: str = ""  # runs and values that were not used
    turnover: str = ""  # kernels that come and go with the ranks
    total: str = ""  # name of the timer that became the whole program
    notes: tuple[str, ...] = ()
    contradictions: Mapping[str, str] = field(default_factory=dict)  # how counters of a kernel contradict each other


@dataclass(frozen=True)
class Learned(Stored):
    """Everything that was learned from an experiment; see :class:`ranksight.model.fitted_model.Model`."""

    application: str
    functions: Functions  # of the kernels' metrics, one a series, with what is known of their structure
    training: Array  # (n, m): configurations that were measured
    shares: Array  # (s,)
    """Share of each series in the sum of its metric over kernels, at the runs on most cores; of timers that contain
    each other, in the program's own."""
    correlation: Mapping[str, float] = field(default_factory=dict)  # for each metric that of its kernels' noise
    provenance: Mapping[str, str] = field(default_factory=dict)  # for each metric where its numbers come from
    equation: Application = field(default_factory=Application)  # laws of kernels' times, and parts of the program's
    remarks: Remarks = field(default_factory=Remarks)  # what is to be known of the runs
    coordinates: Coordinates = AS_MEASURED  # how the parameters are computed from those of the runs
    staircase: Staircase = ALL_EVEN  # whole units that the work comes in, as they were stated
    selection: Selection = field(default_factory=Selection)  # which of the experiment's kernels are one in the model
    clock: Clock = NO_CLOCK  # what made times of cycles
    energy: Energy = NO_ENERGY  # laws of power, where the runs metered energy
    agreement: Agreement = field(default_factory=Agreement)  # totals that are sums of parts with their own functions
    platform: str = ""  # description of the machine measured; empty where it is not known
    anchors: tuple[Anchor, ...] = ()  # runs on other machines
    observed: Mapping[str, Any] = field(default_factory=dict)
    """What analyses keep of the measurements for themselves, by their names (:data:`ranksight.model.fit.OBSERVERS`)."""

    @property
    def fitted(self) -> Fitted:
        """The functions without what is known of their structure."""
        return self.functions.fitted

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that are asked for."""
        return self.functions.fitted.parameters

    @property
    def metered(self) -> tuple[str, ...]:
        """Metrics that the laws of power answer."""
        return self.energy.metrics

    # ---- predicting -------------------------------------------------------------------------------------------------

    def forecast(self, points: Array, level: float = CENTRAL) -> Forecast:
        """Forecast every series at `points` (k, m), kernels' times by the resource equation where counters carry it."""
        return self.refined(points).said.at(level)

    def refined(self, points: Array) -> Refined:
        """What is predicted at `points`; verbs ask the same in several ways, and the last answers are remembered."""
        asked = (points.tobytes(), points.shape)
        if asked not in self._answers:
            while len(self._answers) >= REMEMBERED:
                del self._answers[next(iter(self._answers))]
            self._answers[asked] = self._predicted(points)
        refined = self._answers[asked]
        arrays = {name: getattr(refined.said, name).copy() for name in ARRAYS}  # the caller may write to them
        return replace(refined, said=replace(refined.said, **arrays))

    @cached_property
    def _answers(self) -> dict[tuple[bytes, tuple[int, ...]], Refined]:
        return {}

    def _predicted(self, points: Array) -> Refined:
        refined = self._by_equations(points)
        forecast, rows, broken = refined.said, self.functions.rows, self.remarks.contradictions
        status, reason = forecast.status.copy(), forecast.reason.astype(object)
        for (kernel, name), row in rows.items():
            if kernel in broken and name in TIMED:
                status[row], reason[row] = NO_DATA, broken[kernel]
        timed = np.array([row for (_, name), row in rows.items() if name == "time"], dtype=np.intp)
        # No program takes no time at all.
        nothing = np.ix_(timed, (forecast.value[timed] == 0).all(axis=0) & bool(len(timed)))
        status[nothing] = NO_DATA
        reason[nothing] = "every time is zero: the clock was too coarse, or another metric is the time"
        if self.equation.machine:
            self.equation.machine.refuse(status, reason, rows, self.functions.locality.keys)
        forecast, sent = replace(forecast, status=status, reason=reason), self.equation.communication
        sums = operations_summed(sent, points)
        forecast, disagreeing = self.agreement.agreed(forecast, rows, self.shares, sums, self._stated_by_operations())
        if sent.messages and "ranks" in self.parameters:
            forecast = with_doubts(forecast, points, self.functions, sent.messages, self.training)
        forecast = self.agreement.with_programs(forecast, rows, self.shares, sums)
        return replace(refined, said=forecast, sums=sums, remarks=remark(disagreeing, points, self.parameters))

    def _stated_by_operations(self) -> set[str]:
        """Kernels of whose operations, not of themselves, the user states how they go on."""
        sent, stated = self.equation.communication, self.functions.stated
        members: dict[str, list[str]] = {}
        for kernel, name in zip(sent.callers, sent.names, strict=True):
            members.setdefault(kernel, []).append(name)
        return {kernel for kernel, names in members.items() if stated.by_operations(kernel, names)}

    def _by_equations(self, points: Array) -> Refined:
        predicted = self.functions.predict(points)
        share = self.staircase.share(self.functions, points, predicted)
        forecast = self.staircase.predict(predicted, self.functions, share)
        return self.equation.refine(forecast, self.functions, points, share)

    def breakdown(self, points: Array, level: float = CENTRAL) -> Breakdown:
        """The application's time at `points` (k, m) and what it is made of."""
        return self.ask(points, level)[1]

    def ask(self, points: Array, level: float = CENTRAL) -> tuple[Forecast, Breakdown]:
        """Both :meth:`forecast` and :meth:`breakdown` at `points` (k, m), for the price of one."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        refined = self.refined(points)
        return refined.said.at(level), self.broken(refined, points).at(level)

    def broken(self, refined: Refined, points: Array) -> Breakdown:
        """The application's time of what was predicted at `points` (k, m)."""
        rho = self.correlation.get("time", whole.NOISE)
        return program_time(self.equation, refined, self.functions, points, self.shares, rho)

    def check(self, points: Array) -> None:
        """Raise InputError where points ask for what no program runs on."""
        whole_ranks(self.parameters, points, "ranks are asked at {}", "give whole numbers of ranks, 1 or more")

    def programs(self, points: Array, metrics: Sequence[str], level: float = CENTRAL) -> dict[str, Forecast]:
        """The whole program's values at `points` (k, m), one row for each metric that has any."""
        self.check(points)
        refined, names = self.refined(points), np.array(self.fitted.metrics, dtype=object)
        broken = [self.broken(refined, points)] if "time" in metrics else []
        totals = {name: self.total(name, np.flatnonzero(names == name), refined, broken) for name in metrics}
        return {name: total[0].at(level) for name, total in totals.items() if total}

    def total(self, name: str, rows: Index, refined: Refined, broken: Sequence[Breakdown]) -> list[Forecast]:
        """The whole program's value at all points, one row; none where the metric has none.

        `rows`: series of the metric. `broken`: the program's time, where it is known.
        """
        if name == "time" and len(rows):
            for parts in broken:
                return [self.whole_time(refined.said, parts)]
        if name in self.agreement.programs:
            return [self.agreement.total(name, refined.said, self.functions.rows, self.shares, refined.sums)]
        direct = [int(row) for row in rows if self.fitted.kernels[row] == WHOLE]
        if direct:
            return [rows_of(refined.said, np.array(direct[:1]))]
        if not metric(name).additive or not len(rows):
            return []
        rho = self.correlation.get(name, whole.NOISE)
        return [whole.add(refined.said, rows, self.shares[rows], rho).judged()]

    def whole_time(self, forecast: Forecast, broken: Breakdown) -> Forecast:
        """The whole program's time of what :meth:`ask` gave, one row.

        The sum of all parts where T_others is known or the program was not measured as a whole; else what was fitted
        to its time.
        """
        row = self.functions.rows.get((WHOLE, "time"))
        if row is None or self.equation.others is not None:
            return broken.total
        return rows_of(forecast, np.array([row]))

    # ---- the file ---------------------------------------------------------------------------------------------------

    def present(self) -> dict[str, Any]:
        """What a file holds: numbers of the functions as columns, everything else as plain data."""
        parts = super().present()
        functions: Functions = parts.pop("functions")
        arrays = {name: parts.pop(name) for name in ("training", "shares")}
        structures = functions.structures()
        return {**{name: plain(part) for name, part in parts.items()}, **arrays,
                "fitted": Columns.of(functions.fitted), "structures": structures}  # fmt: skip

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`present`; damaged content raises InputError that names the entry."""
        if not isinstance(content.get("fitted"), Mapping):
            raise InputError("'fitted' is missing", "the file is damaged or not ours")
        with reading("'structures'"):
            functions = Functions.with_structures(Fitted.from_dict(content["fitted"]), content.get("structures", {}))
        return super().from_dict({"application": "", **content, "functions": functions})

    def _fits(self) -> bool:
        fitted = self.fitted
        if self.training.ndim != 2 or self.training.shape[1] != len(fitted.parameters):
            raise InputError("'training' does not fit the functions", "fit the model again")
        size = np.abs(self.training)
        possible = (size == 0) | ((size <= limits.PARAMETER) & (size >= 1 / limits.PARAMETER))
        shares = self.shares.shape == (len(fitted),) and np.isfinite(self.shares).all()
        if not (shares and possible.all() and all(0 <= rho <= 1 for rho in self.correlation.values())):
            raise InputError(
                "training points, shares or correlations hold a number out of range", "fit the model again"
            )
        if self.coordinates and self.coordinates.parameters != self.parameters:
            raise InputError("'coordinates' does not fit the functions", "fit the model again")
        self.staircase.of(fitted)
        named = {kernel for law in self.equation.shared for kernel in law.kernels}
        counted = self.equation.counted
        named.update(itertools.compress(counted.kernels, np.isfinite(counted.offset)))
        if unknown := sorted(named - {kernel for kernel, name in fitted.keys if name == "time"}):
            raise InputError(f"'equation' names the kernel {unknown[0]!r}, which has no time", "fit the model again")
        return True
