"""Sizes of communicators as equations of the number of ranks: all of them, a fixed few, a line of the process grid."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ranksight.comm.patterns.rule import exact_root
from ranksight.core.dims import dims_create
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass

if TYPE_CHECKING:
    from ranksight.core.arrays import Ints

_NAMED: dict[str, Callable[[int], int]] = {"ranks": lambda p: p, "sqrt(ranks)": exact_root}
for _d in (2, 3):
    for _n in range(1, _d):
        for _axes in itertools.combinations(range(_d), _n):

            def _extent(p: int, d: int = _d, axes: tuple[int, ...] = _axes) -> int:
                found = 1
                for axis in axes:
                    found *= dims_create(p, d)[axis]
                return found

            _NAMED[f"{' x '.join('xyz'[a] for a in _axes)} of a {_d}-d grid"] = _extent


@dataclass(frozen=True, slots=True)
class CommunicatorSize:
    """An equation of the size of a communicator."""

    name: str
    """``ranks``, ``sqrt(ranks)``, ``x of a 2-d grid``, ..., ``constant``, ``ranks /``, or ``unknown``: several sizes
    that no equation explains, reported as one."""
    number: int = 0  # of the last two

    def __post_init__(self) -> None:
        if self.name not in _NAMED and self.name not in ("constant", "ranks /", "unknown"):
            raise InputError(f"no communicator has the size {self.name!r}", "fit the model again")

    def at(self, ranks: int) -> int:
        """Size at a number of ranks; 0 where it is not known or not whole."""
        if self.name == "constant":
            return self.number
        if self.name == "unknown":
            return 0
        if self.name == "ranks /":
            return ranks // self.number if self.number and ranks % self.number == 0 else 0
        return _NAMED[self.name](ranks)

    def groups(self, ranks: int) -> Ints:
        """Which of the communicators each rank is in, (P,): lines of a grid whose last dimension varies fastest, as
        MPI's Cartesian communicators have it; others hold ranks in a row."""
        import numpy as np

        rank, axes, _, dimensions = np.arange(ranks), *self.name.partition(" of a ")
        if not dimensions:
            return rank // max(self.at(ranks), 1)
        extents = dims_create(ranks, int(dimensions[0]))
        places = np.unravel_index(rank, extents)
        fixed = [axis for axis in range(len(extents)) if "xyz"[axis] not in axes.split(" x ")]
        return np.ravel_multi_index([places[axis] for axis in fixed], [extents[axis] for axis in fixed])

    @property
    def text(self) -> str:
        """As people read it."""
        return {"constant": str(self.number), "ranks /": f"ranks / {self.number}"}.get(self.name, self.name)


UNKNOWN = CommunicatorSize("unknown")


def communicator_sizes(seen: Mapping[int, Sequence[int]], grid: bool = False) -> list[CommunicatorSize]:
    """Equations whose values are exactly the sizes seen at each number of ranks.

    `seen` (mapping of int to sequence of int): sizes at each number of ranks; 0 stands for operations without a
    communicator. `grid`: whether the program lays its ranks out on a grid: of equations that explain as much, lines of
    one come before constants and parts of the ranks.

    Returns
    -------
    list of CommunicatorSize
        As few as will do; :data:`UNKNOWN` alone where no equations explain all sizes.
    """
    wanted = {p: set(sizes) for p, sizes in seen.items()}
    first = next(iter(wanted))
    counted = [CommunicatorSize("constant", n) for n in sorted(wanted[first]) if n]
    counted += [CommunicatorSize("ranks /", first // n) for n in sorted(wanted[first]) if n and first // n > 1]
    lines = [CommunicatorSize(name) for name in _NAMED if name != "ranks"]
    candidates = [CommunicatorSize("constant", 0), CommunicatorSize("ranks")]
    candidates += [*lines, *counted] if grid else [*counted, *lines]
    fitting = [c for c in candidates if all(c.at(p) in sizes for p, sizes in wanted.items())]
    chosen: list[CommunicatorSize] = []
    left = {(p, size) for p, sizes in wanted.items() for size in sizes}
    while left:
        gains = [len({(p, c.at(p)) for p in wanted} & left) for c in fitting]
        if not gains or max(gains) == 0:
            return [UNKNOWN]
        best = fitting[gains.index(max(gains))]
        chosen.append(best)
        left -= {(p, best.at(p)) for p in wanted}
    return chosen
