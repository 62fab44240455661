"""The model of a message table, and the table it predicts."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ranksight.comm.patterns.recognition import disagree, distinguishing_ranks
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model.messages.entry import Entry
from ranksight.model.messages.order import NO_ORDER, Order
from ranksight.model.messages.table import MessageTable, Row, rows_of
from ranksight.model.messages.volumes import Volumes
from ranksight.model.plaindata import Some
from ranksight.model.structure.coefficients import Coefficients
from ranksight.model.structure.stated import BETWEEN, NOTHING_STATED, Stated, extended
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.rows import ARRAYS

UNLIKE = 1.1
"""Ratio of the numbers of links from which rules are unlike."""
ENOUGH = 512
"""Ranks among which rules that differ at more differ too."""


@dataclass(frozen=True)
class Messages(Some):
    """Who sends what to whom at any number of ranks."""

    entries: tuple[Entry, ...]
    volumes: Volumes  # counts and sizes that the entries' parts point at
    grid: tuple[int, ...]  # dimensions and order of extents of the process grid, empty without one
    measured: tuple[int, ...]  # numbers of ranks that were traced
    trained: Array  # (m, 2): smallest and largest value traced of each parameter
    stated: Stated = NOTHING_STATED  # how volumes go on beyond these, as the user knows it
    order: Order = NO_ORDER  # of the calls of a step, where an event trace shows it
    _sizes = "parameters:m trained:m2"

    @cached_property
    def replays(self) -> dict[object, Any]:
        """What replays of them gave, by what was asked (:mod:`ranksight.model.application.replayed`)."""
        return {}

    @property
    def parameters(self) -> tuple[str, ...]:
        """Those of the volumes."""
        return self.volumes.parameters

    def predict(self, point: Array) -> MessageTable:
        """The message table at one configuration, (m,).

        Raises InputError when the number of ranks is not whole, or too large to name every rank.
        """
        return self.tables(np.asarray(point, dtype=np.float64)[None, :])[0]

    def tables(self, points: Array) -> list[MessageTable]:
        """The message tables at several configurations, (k, m); see :meth:`predict`."""
        for asked in points[:, self.parameters.index("ranks")].tolist():
            if asked < 1 or not asked.is_integer():
                raise InputError(f"{asked:g} ranks", "messages are between whole ranks: ask for a whole number from 1")
        if not len(points):
            return []
        names, sizes = [""] * len(self.volumes.laws), np.zeros(len(self.volumes.laws), dtype=bool)
        for entry in self.entries:
            for part in entry.parts:
                names[part.count] = names[part.size] = f"{entry.kernel}{BETWEEN}{entry.operation}"
                sizes[part.size] = True
        volumes = extended(self.stated, self.volumes.predict, points, names, sizes)
        each = [{name: getattr(volumes, name)[:, k : k + 1] for name in ARRAYS} for k in range(len(points))]
        return [self._table(point, replace(volumes, **one)) for point, one in zip(points, each, strict=True)]

    def _table(self, point: Array, volumes: forecast.Forecast) -> MessageTable:
        """The table at one configuration, (m,), of the volumes there."""
        ranks = int(point[self.parameters.index("ranks")])
        rows: list[Row] = []
        for entry in self.entries:
            reason = self._doubt(entry, ranks) or self._unvaried(entry, point)
            for part in entry.parts:
                for i in (part.count, part.size):
                    if volumes.status[i, 0] != forecast.OK and not reason and not _none(volumes, part.count):
                        reason = str(volumes.reason[i, 0])
            rows += rows_of(entry, ranks, volumes, reason)
        configuration = dict(zip(self.parameters, map(float, point), strict=True))
        return MessageTable(configuration, ranks, tuple(rows), self.grid, self._periodic)

    def _unvaried(self, entry: Entry, point: Array) -> str:
        """Why nothing is known at a configuration where a parameter is not what it was in all traces."""
        kernel = self.stated.kernel_of(f"{entry.kernel}{BETWEEN}{entry.operation}")
        if kernel is not None:
            point = self.stated.reference(kernel, point[None])[0]
        for name, x, (low, high) in zip(self.parameters, point.tolist(), self.trained.tolist(), strict=True):
            if name != "ranks" and low == high != x:
                return forecast.REASONS[forecast.UNVARIED].format(parameter=name)
        return ""

    @property
    def _periodic(self) -> bool:
        """Whether all steps on the grid go around its ends, so that no rank has a border."""
        rules = [rule for entry in self.entries if entry.explanations for rule in entry.explanations[0].rules]
        steps = [bool(getattr(rule, "periodic", False)) for rule in rules if rule.family == "step"]
        return bool(steps) and all(steps)

    def _doubt(self, entry: Entry, ranks: int) -> str:
        """Why an entry cannot be predicted at a number of ranks; empty where it can."""
        if entry.gone:
            return f"the run with {entry.gone} ranks did not have it"
        if len(self.measured) < 2:
            return "one number of ranks was traced: trace another"
        if disagree(entry.explanations, ranks):
            run = distinguishing_ranks(entry.explanations, self.measured, ranks)
            more = f": trace {run} ranks" if run else ""
            names = " | ".join(one.text for one in entry.explanations[:2])
            return f"{len(entry.explanations)} rules explain the communication pattern ({names}){more}"
        if entry.kind == "links" and ranks > 1 and not entry.explanations[0].codes(ranks).size:
            return "its rules have no meaning at this number of ranks"
        if entry.communicator.at(ranks) == 0 and entry.communicator.name not in ("constant", "unknown"):
            return f"no communicator has {entry.communicator.text} ranks here"
        return ""

    def open_partners(self, ranks: int) -> dict[str, str]:
        """Kernels whose number of messages at `ranks` depends on which of several rules holds, and why.

        As many go over every link, while the rules that explain the traces have unlike many links: at 2, 4 and 8 ranks
        the neighbours of a rank with diagonals are all others.
        """
        doubts: dict[str, str] = {}
        ranks = min(ranks, ENOUGH)
        for entry in self.entries:
            if entry.kind != "links" or entry.kernel in doubts or len(entry.explanations) < 2:
                continue
            if {"constant"} != {self.volumes.laws[part.count] for part in entry.parts} - {""}:
                continue
            links = [one.codes(ranks).size for one in entry.explanations]
            links_per_rank = {entry.explanations[0].codes(p).size / p for p in self.measured if p > 1}
            if len(links_per_rank) > 1 and max(links) > UNLIKE * min(links):
                doubts[entry.kernel] = self._doubt(entry, ranks)
        return {kernel: why for kernel, why in doubts.items() if why}

    def _fits(self) -> bool:
        laws = len(self.volumes.laws)
        stated = not self.stated.texts or self.stated.parameters == self.parameters
        return stated and all(entry.of_volumes(laws) for entry in self.entries)


_NOTHING = Coefficients(np.zeros(0))
NO_MESSAGES = Messages((), Volumes((), (), _NOTHING, _NOTHING), (), (), np.zeros((0, 2)))
"""Where no traces have the ranks that messages go to."""


def _none(volumes: forecast.Forecast, i: int) -> bool:
    """Whether a count is none at all: then nothing has to be known of its messages' size."""
    return bool(volumes.value[i, 0] == 0 and volumes.upper[i, 0] == 0)
