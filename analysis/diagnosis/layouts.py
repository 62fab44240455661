"""Other layouts of the ranks on their grid: fewer directions send fewer messages and more bytes (Ding et al. 2018).

With m messages and B bytes that a rank sends to its neighbours, another layout sends m' = m M'/M and B' = B V'/V, where
M counts pairs of neighbours and V the surface between them. On a network where a message of s bytes takes t(s) it saves

    m t(B / m) - m' t(B' / m') - T_surface (V'/V - 1),

T_surface the time of kernels that follow the surface, such as those that pack and unpack. (4, 3, 1) in the place of
(3, 2, 2) pays where messages are small enough for their number to count.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ranksight.comm.costs.collective import operation_name
from ranksight.comm.costs.cost import Choice, cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.comm.patterns.grid import Cartesian
from ranksight.core.arrays import Array
from ranksight.model.structure.stated import BETWEEN

if TYPE_CHECKING:
    from ranksight.model.application.communication import Communication


def layouts(grid: Cartesian, ranks: int, cubic: bool = True) -> pd.DataFrame:
    """Ways to lay `ranks` out on `grid`, with what each sends.

    A pair of neighbours exchanges two messages, and a cut through the domain is one plane of it sent either way. Where
    ranks run along the first side fastest (a rising grid), layouts are written with that side first, too.

    Columns: ``layout`` (tuple), ``default`` (whether ``MPI_Dims_create`` gives it), ``directions`` (with messages),
    ``messages`` (a rank sends, on average), ``volume`` (planes of the domain sent, both ways, over the ranks, a plane
    of a cube of its size being 1); the fewest messages first. `cubic`: whether the domain has equal sides; else what a
    rank has of it does, as the program lays them out.
    """
    turn = -1 if grid.rising else 1
    now, rings = grid.extents(ranks)[::turn], grid.periodic[::turn]
    sides = np.ones(grid.dimensions) if cubic else np.array(now, dtype=np.float64)
    planes = np.prod(sides) ** (1 / grid.dimensions) / sides
    rows = []
    for extents in dict.fromkeys((*_factorisations(ranks, grid.dimensions), now)):
        # A line of n ranks has n - 1 cuts, a ring as many as ranks.
        cuts = [n * (n > 1) if ring else n - 1 for n, ring in zip(extents, rings, strict=True)]
        pairs = sum(cut * ranks // n for cut, n in zip(cuts, extents, strict=True))
        default = extents == now
        volume = 2 * float(planes @ cuts) / ranks
        rows.append((extents, default, sum(n > 1 for n in extents), 2 * pairs / ranks, volume))
    table = pd.DataFrame(rows, columns=["layout", "default", "directions", "messages", "volume"])
    return table.sort_values(["messages", "volume"], kind="stable", ignore_index=True)


def _factorisations(ranks: int, dimensions: int) -> list[tuple[int, ...]]:
    """Ordered factors of `ranks`, largest first, without repeats by permutation."""
    divisors = [d for d in range(1, math.isqrt(ranks) + 1) if ranks % d == 0]
    divisors = sorted({*divisors, *(ranks // d for d in divisors)})
    if dimensions == 1:
        return [(ranks,)]
    grids = set()
    for some in itertools.combinations_with_replacement(divisors, dimensions - 1):
        product = math.prod(some)
        if ranks % product == 0:
            grids.add(tuple(sorted((*some, ranks // product), reverse=True)))
    return sorted(grids)


def better(
    table: pd.DataFrame, sent: Communication, point: Array, fabric: Fabric, choice: Choice, surface: float
) -> tuple[str, float] | None:
    """The layout that saves most, in words, and the seconds of a rank that it saves; None where none does.

    `table`: of :func:`layouts`. `point` (m,): configuration. `choice`: of collective algorithms; see
    :func:`ranksight.comm.costs.cost.cost`. `surface`: seconds of a rank in kernels that follow the surface.
    """
    default = table[table["default"]]
    if default.empty:
        return None
    now = default.iloc[0]
    more, larger = (table[name].to_numpy(dtype=float) / now[name] for name in ("messages", "volume"))
    functions = sent.functions
    predicted, rows = functions.predict(np.atleast_2d(point)).value[:, 0], functions.rows
    ranks = float(point[functions.fitted.parameters.index("ranks")])
    saved = -surface * (larger - 1)
    for name in sent.names:
        operation = name.rpartition(BETWEEN)[2]
        if operation_name(operation) not in SENDS:
            continue
        calls, volume = (float(np.nan_to_num(predicted[rows[name, metric]])) for metric in ("messages", "bytes_sent"))
        if calls <= 0:
            continue
        before = calls * float(cost(operation, ranks, volume / calls, fabric, choice))
        saved = saved + before - calls * more * cost(operation, ranks, volume * larger / (calls * more), fabric, choice)
    best = int(np.argmax(saved))
    if not saved[best] > 0:
        return None
    layout = table["layout"].iloc[best]
    text = (
        f"{_written(layout)} instead of {_written(now['layout'])}: {more[best] - 1:+.0%} messages, "
        f"{larger[best] - 1:+.0%} bytes"
    )
    return text, float(saved[best])


def _written(layout: tuple[int, ...]) -> str:
    return " x ".join(map(str, layout))
