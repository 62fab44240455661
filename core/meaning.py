"""What a value means: over ranks, of which part of the machine, and of a run or a call.

Tools print sums over ranks, means, the largest rank's value, or one rank's. The model is one of ranks: counts are means
over them, times those of the slowest. Each reader states what its format gives (:class:`Meaning`), tables without a
column of ranks are stated by the user, and :func:`per_rank` is the one place where sums become values of a rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ranksight.core.errors import InputError
from ranksight.core.metrics import Per, Place, metric
from ranksight.core.records import dataclass

if TYPE_CHECKING:
    import pandas as pd

Over = Literal["", "each", "one", "sum", "mean", "max"]
REDUCED = ("sum", "mean", "max")
"""Values of all ranks together."""
_WORDS = {
    "": "not stated over ranks",
    "each": "each rank's",
    "one": "one rank's",
    "sum": "sum over ranks",
    "mean": "mean over ranks",
    "max": "maximum over ranks",
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the values of a metric, or of all metrics of a table, mean.

    Raises InputError where a word is none of those listed.
    """

    over: Over = ""
    """``each``: a row a rank; ``one``: of one rank; ``sum``, ``mean``, ``max``: of all ranks. Empty: not stated."""
    of: Place = "rank"
    """What was counted: a core, a rank, or all that a socket, node or job did. Sums of a node are over its ranks."""
    per: Per = "run"  # cumulative over the run, or an average of one call

    def __post_init__(self) -> None:
        for value, known in ((self.over, Over), (self.of, Place), (self.per, Per)):
            if value not in get_args(known):
                raise InputError(f"{value!r:.40} is no meaning of values", f"known: {', '.join(get_args(known))}")

    @property
    def reduced(self) -> bool:
        """Whether a value is of all ranks together."""
        return self.over in REDUCED

    def __str__(self) -> str:
        place = "" if self.of == "rank" else f", of a {self.of}"
        return f"{_WORDS[self.over]}{place}{', per call' if self.per == 'call' else ''}"

    def code(self) -> str:
        """As files of runs hold it."""
        return f"{self.over}/{self.of}/{self.per}"

    @classmethod
    def read(cls, code: str) -> Meaning:
        """The meaning that :meth:`code` wrote. Raises InputError where it is none."""
        parts: list[Any] = code.split("/")
        if len(parts) != 3:
            raise InputError(f"{code!r:.40} is no meaning of values", "write over/of/per, such as sum/rank/run")
        return cls(*parts)


UNSTATED = Meaning()
SUM, MEAN, MAXIMUM, ONE, EACH = (Meaning(over) for over in ("sum", "mean", "max", "one", "each"))
OF_NODE = Meaning("sum", "node")
"""All that was counted on one node."""
OF_CORE = Meaning("mean", "core")
"""Of one core, where a rank has several threads."""
OF_SOCKET = Meaning("each", "socket")
"""A row a rank, of which one of a socket holds what was counted on all of it and the others none."""
METERED = "packages metered"
"""Fact of a run's environment: how many packages were metered, each whether a rank was on it or not."""


def divided(name: str, meaning: Meaning) -> bool:
    """Whether values of a metric with this meaning become those of a rank by division.

    Ratios and values of a call are the same on all ranks, and what belongs to sockets or nodes (energy) adds up.
    """
    known = metric(name)
    single = known.kind == "ratio" or known.per == "call" or meaning.per == "call" or name == "wall_time"
    return meaning.over == "sum" and known.over_ranks != "sum" and not single


def per_rank(
    table: pd.DataFrame, meanings: Mapping[str, Meaning], configuration: Mapping[str, float]
) -> tuple[pd.DataFrame, dict[str, Meaning]]:
    """The table with sums over ranks divided by their number, and what its values then mean.

    Without ``ranks`` in the configuration sums stay sums. Where ``nodes`` is there, a node's sums are those of its
    share of the ranks.

    Parameters
    ----------
    table : DataFrame
        Counters, or samples (columns ``metric`` and ``worth``).
    meanings : mapping of metric to Meaning
    configuration : mapping of parameter to value

    Examples
    --------
    >>> table = pd.DataFrame({"kernel": ["solve"], "rank": [-1], "cycles": [8e9]})
    >>> per_rank(table, {"cycles": SUM}, {"ranks": 4.0})[0]["cycles"].tolist()
    [2000000000.0]
    """
    ranks, nodes = configuration.get("ranks"), max(configuration.get("nodes", 1.0), 1.0)
    if ranks is None:
        return table, dict(meanings)
    share = {
        name: max(ranks / nodes, 1.0) if meaning.of == "node" else ranks
        for name, meaning in meanings.items()
        if divided(name, meaning)
    }
    after = {name: replace(meaning, over="mean") if name in share else meaning for name, meaning in meanings.items()}
    if "worth" in table.columns and "metric" in table.columns:
        over = table["metric"].astype(str).map(share).fillna(1.0).to_numpy(np.float64)
        return table.assign(worth=table["worth"] / over), after
    return table.assign(**{name: table[name] / over for name, over in share.items() if name in table}), after
