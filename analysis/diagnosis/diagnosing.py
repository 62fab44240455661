"""The diagnosis of a model: verdicts, scaling, crossovers, efficiencies, rooflines and advice, as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

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
    teams,
    verdicts,
    waits,
)
from ranksight.analysis.diagnosis.causes import UNDECIDED, Causes, judge, over_the_roof, pooled, too_long
from ranksight.analysis.diagnosis.evidence import Evidence, gather, observed
from ranksight.analysis.diagnosis.execution import execution
from ranksight.analysis.diagnosis.scaling import is_strong, line_of
from ranksight.core import html
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError, nearest
from ranksight.core.units import counted, finite, format_si, in_words
from ranksight.model.application.equation_terms import TERMS, EquationTerms
from ranksight.model.questions import NO_CLOCK, above_zero, whole_ranks
from ranksight.model.resource.contradiction import CONTRADICT

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model

Read = TypeVar("Read")
SCHEMA_VERSION = 1
FEWEST = 4
"""Ranks from which there are several layouts."""
MOST = 100.0
"""Times its value that the upper end of a kernel's time is looked at, where the interval is open."""


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong with a program at some configurations, and on the way there.

    Attributes
    ----------
    evidence : Evidence
        What the model knows at the configurations asked for.
    causes : Causes
        Shares and verdicts there.
    level : float
        Probability of intervals.
    only : tuple of str
        Kernels whose verdicts are reported; all where empty.
    given : Evidence, optional
        The line to the target (:attr:`line`), where it is at hand.
    """

    application: str
    evidence: Evidence
    causes: Causes
    model: Model
    level: float
    only: tuple[str, ...] = ()
    given: Evidence | None = None

    def __repr__(self) -> str:
        asked = counted(self.evidence.points.shape[0], "configuration")
        return f"<Diagnosis {self.application}: {counted(len(self.evidence.kernels), 'kernel')} at {asked}>"

    def _repr_html_(self) -> str:
        """What bounds each kernel at the target, the largest first, for notebooks."""
        found = self.verdicts()
        names = list(self.model.parameters)
        found = found[(found[names] == self.target).all(axis=1)].sort_values("time", ascending=False)
        where = in_words(dict(zip(names, self.target, strict=True)))
        rows = [
            [row["kernel"], format_si(row["time"], "s"), f"{row['share']:.0%}", row["verdict"], row["reason"]]
            for row in found.to_dict("records")
        ]
        return html.table(f"{self.application} at {where}", ["kernel", "time", "share", "verdict", "reason"], rows)

    @property
    def target(self) -> Array:
        """The configuration with most ranks, (m,); the last of several."""
        ranks = self.evidence.ranks
        return np.asarray(self.evidence.points[np.flatnonzero(ranks == ranks.max())[-1]])

    @cached_property
    def line(self) -> Evidence:
        """What the model knows at rank counts from the fewest measured to the target's, the rest as at the target."""
        if self.given is not None:
            return self.given
        if "ranks" not in self.model.parameters:
            raise InputError("the model has no parameter ranks", "fit runs of several rank counts")
        points = line_of(self.model.training, self.model.parameters, self.target)
        return gather(self.model, points, self.level)

    @cached_property
    def strong(self) -> bool:
        """Whether a rank's work falls with the ranks."""
        return is_strong(self.line)

    # Tables; each is made when it is first asked for.

    def verdicts(self) -> pd.DataFrame:
        """What bounds each kernel at each configuration; see :func:`ranksight.analysis.diagnosis.verdicts.table`.

        >>> rs.load("heat.model.json").diagnose(ranks=64, size=48).verdicts()[["kernel", "verdict"]]
             kernel    verdict
        0     solve  undecided
        1  exchange  undecided
        """
        return self._table("verdicts", self._verdicts)

    def _verdicts(self) -> pd.DataFrame:
        found = verdicts.table(self.evidence, self.causes)
        return found[found["kernel"].isin(self.only)].reset_index(drop=True) if self.only else found

    def scaling(self) -> pd.DataFrame:
        """How each kernel goes with the ranks; see :func:`ranksight.analysis.diagnosis.scaling.table`."""
        return self._table("scaling", lambda: scaling.table(self.line, self.strong, self._node, self._since()))

    def _since(self) -> Array:
        """The fewest ranks that each kernel of the line was measured at, (K,); infinite where it was at one number."""
        fitted = self.model.fitted
        low, high = fitted.trained[:, fitted.parameters.index("ranks")].T
        seen = pd.Series(np.where(low == high, np.inf, low)).groupby(np.array(fitted.kernels, dtype=object)).min()
        return np.asarray(seen.reindex(self.line.kernels).fillna(0.0), dtype=np.float64)

    def rankings(self) -> pd.DataFrame:
        """Kernels by size at each rank count; see :func:`ranksight.analysis.diagnosis.ranking.rankings`."""
        return self._table("rankings", lambda: ranking.rankings(self.line))

    def crossovers(self) -> pd.DataFrame:
        """Where kernels overtake each other; see :func:`ranksight.analysis.diagnosis.ranking.crossovers`."""
        return self._table("crossovers", lambda: ranking.crossovers(self.line, self.level))

    def efficiencies(self) -> pd.DataFrame:
        """POP efficiencies by rank count; see :func:`ranksight.analysis.diagnosis.efficiencies.table`."""
        return self._table("efficiencies", lambda: efficiencies.table(self.line, self.strong))

    def roofline(self) -> pd.DataFrame:
        """Position under the roof of each memory level; see :func:`ranksight.analysis.diagnosis.roofline.table`."""
        return self._table("roofline", lambda: roofline.table(self.evidence, self.causes))

    def pairs(self) -> pd.DataFrame:
        """Same CPI, unlike blocking by memory; see :func:`ranksight.analysis.diagnosis.pairs.table`."""
        return self._table("pairs", lambda: pairs.table(self.evidence, self.causes))

    def balance(self) -> pd.DataFrame:
        """Load balance as measured; see :func:`ranksight.analysis.diagnosis.balance.table`."""
        return self._kept("balance", lambda: balance.table(self.evidence, self._observed.get("balance", {})))

    def teams(self) -> pd.DataFrame:
        """Balance of the threads of a rank as measured; see :func:`ranksight.analysis.diagnosis.teams.table`."""
        return self._kept("teams", lambda: teams.table(self.evidence, self._observed.get("teams", {})))

    def waits(self) -> pd.DataFrame:
        """Wait states as measured; see :func:`ranksight.analysis.diagnosis.waits.table`."""
        return self._kept("waits", lambda: waits.table(self._observed.get("waits", [])))

    def blocking(self) -> pd.DataFrame:
        """BF_comm where it was measured and at the configurations asked for; see
        :func:`ranksight.analysis.diagnosis.exchanges.blocking_table`."""
        points = np.unique(np.concatenate([self.model.training, self.evidence.points]), axis=0)
        return self._table("blocking", lambda: exchanges.blocking_table(self.model, points, self.level))

    def terms(self) -> pd.DataFrame:
        """CPI_exec, BF_mem and clock of each kernel and T_others, with intervals, over the line to the target where
        the model has ranks, else at the configurations asked for; columns
        :data:`ranksight.model.application.equation_terms.TERMS`."""
        return self._table("terms", self._terms)

    def _terms(self) -> pd.DataFrame:
        given = self.line if "ranks" in self.model.parameters else self.evidence
        broken, only = given.broken, self.only or None
        found = EquationTerms(given.parameters, given.points, broken.terms, broken.others, only)
        return pd.DataFrame(found.rows(), columns=list(TERMS))

    def fitted_costs(self) -> pd.DataFrame:
        """Operations' times as measured; see :func:`ranksight.analysis.diagnosis.exchanges.fitted_table`."""
        return self._kept("fitted_costs", lambda: exchanges.fitted_table(self._observed.get("exchanges", {})))

    def advice(self) -> pd.DataFrame:
        """What is wrong and what mending it gives; see :func:`ranksight.analysis.diagnosis.advice.table`."""
        return self._table("advice", self._advice)

    def saturation(self) -> pd.DataFrame:
        """Kernels that fill their memory domain with some of its cores; see
        :func:`ranksight.analysis.diagnosis.saturation.table`."""
        return self._table("saturation", lambda: saturation.table(self.model, self.target, self.level))

    def _advice(self) -> pd.DataFrame:
        measured = float(self.model.training[:, self.model.parameters.index("ranks")].max())
        memory, layout, uneven = advice.memory(self.line, measured), self._layout(), self.balance()
        named = uneven.loc[uneven["named"].astype(bool), "kernel"].tolist()
        busiest = self._read("balance", lambda: balance.busiest_ranks(self._observed.get("balance", {}), named))
        found = self.evidence, self.causes, self.scaling(), uneven, self.teams(), self.waits(), self.saturation()
        return advice.table(*found, busiest, layout, memory)

    def _layout(self) -> tuple[str, float] | None:
        """A layout of the ranks that saves time at the last configuration, where grid and network are known."""
        law, application = self.model.functions.neighbours, self.model.equation
        sent, network, evidence = application.communication, application.network, self.evidence
        if law is None or sent is None or network is None or evidence.ranks[-1] < FEWEST:
            return None
        found = layouts.layouts(law.grid, int(evidence.ranks[-1]), self.strong)
        # What only sends follows the number of messages; what packs and unpacks follows their bytes.
        packing = set(law.kernels) - set(sent.callers)
        mine = np.array([kernel in packing for kernel in evidence.kernels], dtype=bool)
        surface = float(evidence.computing[mine, -1].sum())
        return layouts.better(found, sent, evidence.points[-1], network.fabric(), network.choice(), surface)

    @property
    def _node(self) -> int:
        network = self.model.equation.network
        return 1 << 30 if network is None else network.ranks_per_node

    @property
    def _observed(self) -> Mapping[str, Any]:
        return observed(self.model)

    @cached_property
    def _made(self) -> dict[str, pd.DataFrame]:
        return {}

    def _table(self, name: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        if name not in self._made:
            self._made[name] = make()
        return self._made[name].copy()

    def _kept(self, name: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """A table of what the model's file keeps of the measurements, which others may have written."""
        return self._read(name, lambda: self._table(name, make))

    @staticmethod
    def _read(name: str, make: Callable[[], Read]) -> Read:
        try:
            return make()
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"'diagnosis' of the model is damaged or of another version, at {name}", "fit the model again"
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """All tables as plain data that JSON can hold, under ``schema_version``."""
        scales = "ranks" in self.model.parameters
        tables: dict[str, Callable[[], pd.DataFrame]] = {
            "verdicts": self.verdicts,
            **({"scaling": self.scaling, "rankings": self.rankings} if scales else {}),
            **({"crossovers": self.crossovers, "efficiencies": self.efficiencies} if scales else {}),
            "roofline": self.roofline,
            "pairs": self.pairs,
            "balance": self.balance,
            "teams": self.teams,
            "waits": self.waits,
            "blocking": self.blocking,
            "terms": self.terms,
            "fitted_costs": self.fitted_costs,
            **({"saturation": self.saturation} if scales else {}),
            **({"advice": self.advice} if scales else {}),
        }
        return {
            "schema_version": SCHEMA_VERSION,
            "application": self.application,
            "parameters": list(self.model.parameters),
            "level": self.level,
            "target": dict(zip(self.model.parameters, self.target.tolist(), strict=True)),
            **({"work": "strong" if self.strong else "weak"} if scales else {}),
            "machine": None if self.evidence.ceilings is None else self.evidence.ceilings.to_dict(),
            **{name: plain(make()) for name, make in tables.items()},
        }


def diagnose(model: Model, points: Array, *, level: float = 0.9, kernels: Sequence[str] | None = None) -> Diagnosis:
    """Diagnose `model` at `points` (k, m).

    Raises InputError when the model has no kernel's time or not the kernels named, or a configuration has no whole
    number of ranks from 1 on.

    Parameters
    ----------
    points : (k, m)
    level : float
        Probability of intervals.
    kernels : sequence of str, optional
        Kernels whose verdicts are reported; all when not given.
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
    return Diagnosis(model.application, evidence, causes_of(evidence), model, level, tuple(kernels or ()))


def causes_of(evidence: Evidence) -> Causes:
    """Shares and verdicts of what is known.

    Where the data are insufficient for a kernel's time, a verdict stands only if both ends of its interval give it too,
    and none stands where the interval is no more than the value of other configurations;
    where counts or times were sampled, only if it is sure over all that their samples may mean.
    """
    found = _causes(evidence)
    if evidence.drawn:
        found = pooled(found, [_causes(each) for each in evidence.drawn])
    beyond = over_the_roof(evidence, found) | too_long(evidence, found)
    found = replace(
        found, verdict=np.where(beyond, UNDECIDED, found.verdict), chance=np.where(beyond, np.nan, found.chance)
    )
    if evidence.ok.all():
        return found
    ends = [np.clip(np.nan_to_num(end), 0.0, MOST * evidence.computing) for end in (evidence.low, evidence.high)]
    least, most = (_causes(replace(evidence, computing=end)) for end in ends)
    stands = (least.verdict == found.verdict) & (most.verdict == found.verdict)
    stands &= (evidence.low > 0) & evidence.sufficient
    # Counters of which one must be wrong say nothing of causes either.
    stands &= np.array([[CONTRADICT not in str(text) for text in row] for row in evidence.reason], dtype=bool)
    return replace(found, verdict=np.where(evidence.ok | stands, found.verdict, UNDECIDED))


def _causes(evidence: Evidence) -> Causes:
    f = clock(evidence)
    stalls, error = _stalls(evidence)
    counted = np.isfinite(evidence.instructions) & np.isfinite(evidence.frequency)
    instructions = np.where(counted, evidence.instructions, np.nan)
    longest = evidence.longest * f
    known = execution(evidence.computing * f, instructions, longest, evidence.cpi, evidence.minimum_wait, stalls, error)
    waiting = evidence.waiting
    # Top-down levels without loads by level: all stalls count as those of memory.
    bare = np.isfinite(evidence.stalled) & ~np.isfinite(waiting).any(axis=0)
    waiting[2] = np.where(bare, evidence.stalled * evidence.computing, waiting[2])
    determined = np.isfinite(stalls) | counted
    return judge(
        known,
        evidence.mean,
        evidence.communication,
        evidence.lost,
        waiting * evidence.having,
        _used(evidence) * evidence.having,
        np.ones(3) if evidence.ceilings is None else evidence.ceilings.slack[1:],
        determined & (evidence.computing > 0),
        np.isfinite(stalls) & evidence.counted[:, None],
    )


def clock(evidence: Evidence) -> float:
    """Cycles a second; without a machine any value will do, as only parts of the time are asked for."""
    return evidence.frequency if np.isfinite(evidence.frequency) else 1.0


def _stalls(evidence: Evidence) -> tuple[Array, Array]:
    """Stall cycles and their error of the kernels whose counters or top-down levels give them; NaN for the others."""
    each = evidence.broken.each
    memory = np.maximum(sum((each[name] for name in ("loads_l2", "loads_l3", "loads_mem")), each["loads_l1"]), 0.0)
    mine = np.broadcast_to(evidence.counted[:, None], memory.shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.where(evidence.factor > 0, evidence.factor_error / evidence.factor, 0.0)
    f = clock(evidence)
    memory = np.where(each["direct"] > 0, _by_other_laws(evidence, memory), memory)
    stalls = np.where(mine, memory * f, evidence.stalled * evidence.computing * f)
    return stalls, np.nan_to_num(stalls * relative)


def _by_other_laws(evidence: Evidence, memory: Array) -> Array:
    """Seconds of memory stalls, where another law than the equation predicts the kernels' time: that time divided as
    the equation has it."""
    if evidence.ceilings is None:
        return memory
    waiting = np.nan_to_num(evidence.loads * evidence.ceilings.latency[:, None, None]).sum(axis=0) * evidence.factor
    run = evidence.instructions * evidence.cpi
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.maximum(waiting, 0.0) / (np.maximum(waiting, 0.0) + run)
    return np.where(np.isfinite(share), share * evidence.computing, memory)


def _used(evidence: Evidence) -> Array:
    """Seconds that the bytes through L2, L3 and memory take at the bandwidth of a rank, (3, K, k)."""
    if evidence.ceilings is None:
        found = np.full((3, *evidence.computing.shape), np.nan)
    else:
        found = evidence.traffic / evidence.ceilings.share(evidence.cores)[1:, None, :]
    # What sharing was measured to take counts where it is more, or no bandwidth is known.
    return np.where(evidence.shared > 0, np.fmax(found, evidence.shared), found)


def plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain data that JSON can hold; NaN and infinities are None."""
    return [{str(name): _plain(value) for name, value in row.items()} for row in table.to_dict("records")]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return finite(value)
    return list(value) if isinstance(value, tuple) else value
