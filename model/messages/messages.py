"""The model of a message table, and the table it predicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.patterns.recognition import disagree, telling_ranks
from ranksight.errors import InputError
from ranksight.model import forecast
from ranksight.model.messages.entry import Entry
from ranksight.model.messages.table import MessageTable, Row, rows_of
from ranksight.model.messages.volumes import Volumes

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Messages:
    """Who sends what to whom at any number of ranks.

    Attributes
    ----------
    parameters : tuple of str
    entries : tuple of Entry
    volumes : Volumes
        Counts and sizes that the entries' parts point at.
    grid : tuple of int
        Dimensions and order of extents of the process grid, empty without one.
    measured : tuple of int
        Numbers of ranks that were traced.
    """

    parameters: tuple[str, ...]
    entries: tuple[Entry, ...]
    volumes: Volumes
    grid: tuple[int, ...]
    measured: tuple[int, ...]

    def predict(self, point: Array, level: float = 0.9) -> MessageTable:
        """The message table at one configuration, (m,).

        Raises
        ------
        InputError
            When the number of ranks is not whole, or too large to name every rank.
        """
        point = np.asarray(point, dtype=np.float64)
        asked = float(point[self.parameters.index("ranks")])
        if asked < 1 or not asked.is_integer():
            raise InputError(f"{asked:g} ranks", "messages are between whole ranks: ask for a whole number from 1")
        ranks = int(asked)
        said = self.volumes.predict(point[None, :], level)
        rows: list[Row] = []
        for entry in self.entries:
            reason = self._doubt(entry, ranks)
            for part in entry.parts:
                for i in (part.count, part.size):
                    if said.status[i, 0] != forecast.OK and not reason and not _none(said, part.count):
                        reason = str(said.reason[i, 0])
            rows += rows_of(entry, ranks, said, reason)
        configuration = dict(zip(self.parameters, map(float, point), strict=True))
        return MessageTable(configuration, ranks, tuple(rows), self.grid, self._periodic)

    @property
    def _periodic(self) -> bool:
        """Whether all steps on the grid go around its ends, so that no rank has a border."""
        rules = [rule for entry in self.entries if entry.explanations for rule in entry.explanations[0].rules]
        steps = [bool(getattr(rule, "periodic", False)) for rule in rules if rule.family == "step"]
        return bool(steps) and all(steps)

    def _doubt(self, entry: Entry, ranks: int) -> str:
        """Why an entry cannot be told at a number of ranks; empty where it can."""
        if entry.gone:
            return f"the run with {entry.gone} ranks did not have it"
        if len(self.measured) < 2:
            return "one number of ranks was traced: trace another"
        if disagree(entry.explanations, ranks):
            run = telling_ranks(entry.explanations, self.measured, ranks)
            more = f": trace {run} ranks" if run else ""
            names = " | ".join(one.text for one in entry.explanations[:2])
            return f"{len(entry.explanations)} rules explain who talks to whom ({names}){more}"
        if entry.kind == "links" and ranks > 1 and not entry.explanations[0].codes(ranks).size:
            return "its rules have no meaning at this number of ranks"
        if entry.communicator.at(ranks) == 0 and entry.communicator.name not in ("constant", "unknown"):
            return f"no communicator has {entry.communicator.text} ranks here"
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "entries": [entry.to_dict() for entry in self.entries],
            "volumes": self.volumes.to_dict(),
            "grid": list(self.grid),
            "measured": list(self.measured),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Messages:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        try:
            volumes = Volumes.from_dict(content["volumes"])
            entries = tuple(Entry.from_dict(entry, len(volumes.laws)) for entry in content["entries"])
            grid = tuple(int(x) for x in content["grid"])
            measured = tuple(int(x) for x in content["measured"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"'messages' is damaged: {error}", "fit the model again") from error
        return cls(volumes.parameters, entries, volumes, grid, measured)


def _none(said: forecast.Forecast, i: int) -> bool:
    """Whether a count is none at all: then nothing has to be known of its messages' size."""
    return bool(said.value[i, 0] == 0 and said.upper[i, 0] == 0)
