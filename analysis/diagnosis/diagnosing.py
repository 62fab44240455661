"""The diagnosis of a model: verdicts, scaling, crossovers, efficiencies, rooflines and advice, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ranksight.analysis.diagnosis import (
    advice,
    balance,
    efficiencies,
    exchanges,
    layouts,
    pairs,
    ranking,
    roofline,
    saturation,
    scaling,
    verdicts,
    waits,
)
from ranksight.analysis.diagnosis.causes import CAUSES, Causes, causes_of, seconds_of
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.analysis.diagnosis.gathering import gather, observed
from ranksight.analysis.diagnosis.kind import Kind, kind_of, stated
from ranksight.analysis.diagnosis.scaling import line_of
from ranksight.analysis.diagnosis.tabled import Make, reading, tabled
from ranksight.core import html
from ranksight.core.arrays import Array, Mask, ratio
from ranksight.core.errors import InputError, nearest
from ranksight.core.records import dataclass
from ranksight.core.units import counted, finite, format_si, in_words
from ranksight.model.application.breakdown import TERMS, EquationTerms
from ranksight.model.plaindata import plain
from ranksight.model.process.shown import BEYOND
from ranksight.model.structure.coordinates import NO_CLOCK, above_zero, whole_ranks
from ranksight.model.uncertainty.forecast import OK, Forecast

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model
    from ranksight.model.fitting.fitted import Fitted

SCHEMA_VERSION = 1
FEWEST = 4
"""Ranks from which there are several layouts."""


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong with a program at some configurations, and on the way there."""

    application: str
    evidence: Evidence  # what the model knows at the configurations asked for
    causes: Causes  # shares and verdicts there
    model: Model
    level: float  # probability of intervals
    only: tuple[str, ...] = ()  # kernels whose verdicts are reported; all where empty
    of_runs: Array | None = None  # (k, n)
    """The configurations in the parameters of the runs, where the model's are computed from these."""

    def __repr__(self) -> str:
        asked = counted(self.evidence.points.shape[0], "configuration")
        return f"<Diagnosis {self.application}: {counted(len(self.evidence.kernels), 'kernel')} at {asked}>"

    def _repr_html_(self) -> str:
        """What bounds each kernel at the target, the largest first, for notebooks."""
        table = self.verdicts()
        names = list(self.model.parameters)
        table = table[(table[names] == self.target).all(axis=1)].sort_values("time", ascending=False)
        where = in_words(dict(zip(names, self.target, strict=True)))
        rows = [
            [row["kernel"], format_si(row["time"], "s"), f"{row['share']:.0%}", row["verdict"], row["reason"]]
            for row in table.to_dict("records")
        ]
        return html.table(f"{self.application} at {where}", ["kernel", "time", "share", "verdict", "reason"], rows)

    @property
    def target(self) -> Array:
        """The configuration with most ranks, (m,); the last of several."""
        return np.asarray(self.evidence.points[self._last])

    @property
    def _last(self) -> int:
        """Which of the configurations is the target."""
        ranks = self.evidence.ranks
        return int(np.flatnonzero(ranks == ranks.max())[-1])

    @cached_property
    def line(self) -> Evidence:
        """What the model knows at rank counts from the fewest measured to the target's, the rest as at the target: the
        problem of the runs where it was asked for, not the work per rank that is computed from it."""
        if "ranks" not in self.model.parameters:
            raise InputError("the model has no parameter ranks", "fit runs of several rank counts")
        return self._line_to(float(self.evidence.ranks[self._last]))

    def _line_to(self, ranks: float) -> Evidence:
        """What the model knows at rank counts from the fewest measured to `ranks`."""
        coordinates = self.model.coordinates
        if self.of_runs is None:
            points = line_of(self.model.training, self.model.parameters, self.target, ranks, self.model.fitted.ties)
        else:
            points = coordinates.points(line_of(coordinates.seen, coordinates.given, self.of_runs[self._last], ranks))
        return gather(self.model, points, self.level)

    @cached_property
    def kind(self) -> Kind:
        """Strong or weak scaling as it was stated at the fit, or by the rank counts measured, wherever one asks."""
        if (known := stated(self.model.observed)) is not None:
            return known
        return kind_of(self._line_to(float(self.model.training[:, self.model.parameters.index("ranks")].max())))

    @property
    def strong(self) -> bool:
        """Whether a rank's work is known to fall with the ranks."""
        return self.kind == "strong"

    @cached_property
    def insufficient(self) -> Mask:
        """Whether the data do not suffice for the program's time at each rank count of :attr:`line`."""
        program = self.model.programs(self.line.points, ["time"], self.level).get("time")
        return np.zeros(len(self.line.points), dtype=bool) if program is None else np.asarray(program.status[0] != OK)

    @cached_property
    def program(self) -> Forecast | None:
        """The program's time at the configurations asked for, one row, as a prediction gives it; None without one."""
        return self.model.programs(self.evidence.points, ["time"], self.level).get("time")

    @cached_property
    def parts(self) -> dict[str, Array]:
        """Part of the time of kernels, messages and what is outside of them at each configuration, (k,), by
        :data:`~ranksight.analysis.diagnosis.causes.CAUSES` and ``others``."""
        seconds = seconds_of(self.evidence, self.causes).sum(axis=1)
        parts = {**dict(zip(CAUSES, seconds, strict=True)), "others": self.evidence.others}
        return {name: ratio(each, self.evidence.total, 0.0) for name, each in parts.items()}

    # Tables, described where they are made.

    @tabled
    def verdicts(self) -> pd.DataFrame:
        """What bounds each kernel at each configuration; see :func:`ranksight.analysis.diagnosis.verdicts.table`.

        >>> rs.load("heat.model.json").diagnose(ranks=64, size=48).verdicts()[["kernel", "verdict"]]
             kernel    verdict
        0     solve  undecided
        1  exchange  undecided
        """
        table = verdicts.table(self.evidence, self.causes)
        return table[table["kernel"].isin(self.only)].reset_index(drop=True) if self.only else table

    @tabled
    def scaling(self) -> pd.DataFrame:
        """How each kernel goes with the ranks; see :func:`ranksight.analysis.diagnosis.scaling.table`.

        >>> rs.load("heat.model.json").diagnose(ranks=64, size=48).scaling()[["kernel", "verdict"]]
             kernel    verdict
        0     solve     scales
        1  exchange  saturates
        """
        target, network = float(self.line.ranks[-1]), self.model.equation.network
        seen, node = _seen_from(self.model.fitted), network.ranks_per_node

        def along(line: Evidence) -> pd.DataFrame:
            since = np.asarray(seen.reindex(line.kernels).fillna(0.0), dtype=np.float64)
            return scaling.table(line, self.kind, node, since)

        farthest = BEYOND * float(self.model.training[:, self.model.parameters.index("ranks")].max())
        near = along(self.line)
        if target >= farthest:
            return near
        try:
            line = self._line_to(farthest)
        except InputError:  # the network has fewer nodes than that
            return near
        return scaling.with_classes(near, along(line), target)

    @tabled
    def rankings(self) -> pd.DataFrame:
        """Kernels by size at each rank count; see :func:`ranksight.analysis.diagnosis.ranking.rankings`.

        >>> rs.load("heat.model.json").diagnose(ranks=64, size=48).rankings().tail(2)[["kernel", "share"]].round(2)
              kernel  share
        12     solve   0.94
        13  exchange   0.06
        """
        return ranking.rankings(self.line)

    @tabled
    def crossovers(self) -> pd.DataFrame:
        """Where kernels overtake each other; see :func:`ranksight.analysis.diagnosis.ranking.crossovers`.

        >>> list(rs.load("heat.model.json").diagnose(ranks=64, size=48).crossovers().columns)
        ['kernel', 'over', 'ranks', 'lower', 'upper', 'largest', 'share']
        """
        return ranking.crossovers(self.line, self.level)

    @tabled
    def efficiencies(self) -> pd.DataFrame:
        """POP efficiencies by rank count; see :func:`ranksight.analysis.diagnosis.efficiencies.table`.

        >>> rs.load("heat.model.json").diagnose(ranks=64, size=48).efficiencies()[["ranks", "global"]].tail(1).round(2)
           ranks  global
        6   64.0    0.94
        """
        return efficiencies.table(self.line, self.kind)

    @tabled
    def roofline(self) -> pd.DataFrame:
        """Position under the roof of each memory level; see :func:`ranksight.analysis.diagnosis.roofline.table`.

        Empty where no bytes were counted or no machine was described to the fit.

        >>> len(rs.load("heat.model.json").diagnose(ranks=64, size=48).roofline())
        0
        """
        return roofline.table(self.evidence)

    @tabled
    def pairs(self) -> pd.DataFrame:
        """Same CPI, unlike blocking by memory; see :func:`ranksight.analysis.diagnosis.pairs.table`."""
        return pairs.table(self.evidence, self.causes)

    @tabled
    @reading("balance")
    def balance(self) -> pd.DataFrame:
        """Load balance as measured; see :func:`ranksight.analysis.diagnosis.balance.table`."""
        return balance.table(self.evidence, self._observed.get("balance", {}))

    @tabled
    @reading("teams")
    def teams(self) -> pd.DataFrame:
        """Balance of a rank's threads as measured; see :func:`ranksight.analysis.diagnosis.balance.teams_table`."""
        return balance.teams_table(self.evidence, self._observed.get("teams", {}))

    @tabled
    @reading("waits")
    def waits(self) -> pd.DataFrame:
        """Wait states as measured; see :func:`ranksight.analysis.diagnosis.waits.table`."""
        return waits.table(self._observed.get("waits", []))

    @tabled
    def blocking(self) -> pd.DataFrame:
        """BF_comm where it was measured and at the configurations asked for; see
        :func:`ranksight.analysis.diagnosis.exchanges.blocking_table`."""
        points = np.unique(np.concatenate([self.model.training, self.evidence.points]), axis=0)
        return exchanges.blocking_table(self.model, points, self.level)

    @tabled
    def terms(self) -> pd.DataFrame:
        """CPI_exec, BF_mem and clock of each kernel and T_others, with intervals, over the line to the target where
        the model has ranks, else at the configurations asked for; columns
        :data:`ranksight.model.application.breakdown.TERMS`."""
        asked = self.line if "ranks" in self.model.parameters else self.evidence
        broken = asked.broken
        kernels = self.only if self.only else broken.terms.kernels
        terms = EquationTerms(asked.parameters, asked.points, broken.terms, broken.others, kernels)
        return pd.DataFrame(terms.rows(), columns=list(TERMS))

    @tabled
    def algorithms(self) -> pd.DataFrame:
        """Algorithms of collectives; see :func:`ranksight.analysis.diagnosis.exchanges.algorithms_table`."""
        return exchanges.algorithms_table(self.model, np.asarray(self.target, dtype=np.float64))

    @tabled
    @reading("fitted_costs")
    def fitted_costs(self) -> pd.DataFrame:
        """Operations' times as measured; see :func:`ranksight.analysis.diagnosis.exchanges.fitted_table`."""
        return exchanges.fitted_table(self._observed.get("exchanges", {}))

    @tabled
    def saturation(self) -> pd.DataFrame:
        """Kernels that fill their memory domain with some of its cores; see
        :func:`ranksight.analysis.diagnosis.saturation.table`."""
        return saturation.table(self.model, self.target, self.level)

    @tabled
    def advice(self) -> pd.DataFrame:
        """What is wrong and what mending it gives; see :func:`ranksight.analysis.diagnosis.advice.table`.

        >>> rs.load("heat.model.json").diagnose(ranks=64, size=48).advice()[["kernel", "kind"]]
             kernel            kind
        0     solve          kernel
        1  exchange  undivided work
        2  exchange          kernel
        """
        measured = float(self.model.training[:, self.model.parameters.index("ranks")].max())
        memory, layout, uneven = advice.memory(self.line, measured), self._layout(), self.balance()
        named = uneven.loc[uneven["named"].astype(bool), "kernel"].tolist()
        with reading("balance"):
            busiest = balance.busiest_ranks(self._observed.get("balance", {}), named)
        evidences = self.evidence, self.causes, self.scaling(), uneven, self.teams(), self.waits(), self.saturation()
        return advice.table(*evidences, busiest, layout, memory)

    def _layout(self) -> tuple[str, float] | None:
        """A layout of the ranks that saves time at the last configuration, where grid and network are known."""
        application, evidence = self.model.equation, self.evidence
        sent, network = application.communication, application.network
        # Kernels that pack show the grid, and messages do where nothing is packed.
        law = self.model.functions.neighbours or sent.functions.neighbours
        if not law or not sent or not network or evidence.ranks[-1] < FEWEST:
            return None
        candidates = layouts.layouts(law.grid, int(evidence.ranks[-1]), self.strong)
        # What only sends follows the number of messages; what packs and unpacks follows their bytes.
        packing = set(law.kernels) - set(sent.callers)
        in_packing = np.array([kernel in packing for kernel in evidence.kernels], dtype=bool)
        surface = float(evidence.computing[in_packing, -1].sum())
        return layouts.better(candidates, sent, evidence.points[-1], network.fabric(), network.choice(), surface)

    @property
    def _observed(self) -> Mapping[str, Any]:
        return observed(self.model)

    @cached_property
    def _made(self) -> dict[Make, pd.DataFrame]:
        return {}

    def to_dict(self) -> dict[str, Any]:
        """All tables as plain data that JSON can hold, under ``schema_version``.

        >>> rs.load("heat.model.json").diagnose(ranks=64, size=48).to_dict()["work"]
        'strong'
        """
        scales = "ranks" in self.model.parameters
        names = [
            "verdicts",
            *(("scaling", "rankings", "crossovers", "efficiencies") if scales else ()),
            *("roofline", "pairs", "balance", "teams", "waits", "blocking", "algorithms", "terms"),
            "fitted_costs",
            *(("saturation", "advice") if scales else ()),
        ]
        return {
            "schema_version": SCHEMA_VERSION,
            "application": self.application,
            "parameters": list(self.model.parameters),
            "level": self.level,
            "target": dict(zip(self.model.parameters, self.target.tolist(), strict=True)),
            **({"work": self.kind} if scales else {}),
            "machine": None if self.evidence.ceilings is None else self.evidence.ceilings.to_dict(),
            "program": self._program_rows(),
            **{name: [plain(row) for row in getattr(self, name)().to_dict("records")] for name in names},
        }

    def _program_rows(self) -> list[dict[str, Any]]:
        """The program's time, its interval, status and parts at each configuration."""
        rows, program = [], self.program
        for at, point in enumerate(self.evidence.points.tolist()):
            row: dict[str, Any] = {"configuration": dict(zip(self.model.parameters, point, strict=True))}
            if program is not None:
                row |= {name: finite(float(getattr(program, name)[0, at])) for name in ("value", "lower", "upper")}
                row["status"] = "insufficient" if program.status[0, at] else "ok"
                row["reason"] = str(program.reason[0, at])
            rows.append({**row, "parts": {name: finite(float(share[at])) for name, share in self.parts.items()}})
        return rows


def _seen_from(fitted: Fitted) -> pd.Series:
    """The fewest ranks that each kernel was seen at, of which its time grew: two where one rank has another law, as it
    has nobody to wait for; infinite where it was seen at one number of ranks."""
    axis = fitted.parameters.index("ranks")
    low, high = fitted.trained[:, axis].T
    seen = pd.Series(np.where(low == high, np.inf, low)).groupby(np.array(fitted.kernels, dtype=object)).min()
    for part in fitted.below:
        lone = (part.axis == axis) & (part.between[:, 0] == 1)
        for row, first in zip(part.rows[lone].tolist(), part.between[lone, 1].tolist(), strict=True):
            if fitted.metrics[row] == "time":
                seen[fitted.kernels[row]] = max(seen[fitted.kernels[row]], first)
    return seen


def diagnose(
    model: Model,
    points: Array,
    *,
    level: float = 0.9,
    kernels: Sequence[str] | None = None,
    of_runs: Array | None = None,
) -> Diagnosis:
    """Diagnose `model` at `points` (k, m).

    Raises InputError when the model has no kernel's time or not the kernels named, or a configuration has no whole
    number of ranks from 1 on.

    `level`: probability of intervals. `kernels`: those whose verdicts are reported; all when not given. `of_runs`
    (k, n): the same configurations in the parameters of the runs, see :meth:`Model.of_runs`.
    """
    points = np.atleast_2d(np.asarray(points, dtype=np.float64))
    if "time" not in model.fitted.metrics:
        remedy = NO_CLOCK if "cycles" in model.fitted.metrics else "measure with perf-clock, or import times"
        raise InputError("the model has no kernel's time", remedy)
    whole_ranks(model.parameters, points, "{} is not a number of ranks", "ranks are whole numbers from 1")
    above_zero(model.parameters, model.training, points)
    evidence = gather(model, points, level)
    for name in kernels or ():
        if name not in evidence.kernels:
            raise InputError(f"the model has no time of a kernel {name!r}", nearest(name, evidence.kernels))
    return Diagnosis(model.application, evidence, causes_of(evidence), model, level, tuple(kernels or ()), of_runs)
