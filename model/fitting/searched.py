"""What a search says of many series, and parts of it together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.model.search.screening import Found
from ranksight.model.uncertainty.lasting import Lasting


@dataclass(frozen=True)
class Searched:
    """What the search says of s series."""

    found: Found
    drift: Array  # (s, m, 2): how far series may leave their functions along each parameter, downwards and upwards
    lasting: Lasting | None  # correlated residuals
    breaks: Array  # (s,): changepoints within the range; NaN without one
    pace: Array  # (s,)
    """How much faster than usual series leave their functions (:func:`ranksight.model.uncertainty.drift.pace`)."""
    turned: Array  # (s,): changes of slope that the values show (:func:`ranksight.model.uncertainty.slope.turned`)


def joined(parts: list[Searched], order: Index) -> Searched:
    """Parts of the search together."""
    lasting = Lasting.join([part.lasting for part in parts], [len(part.breaks) for part in parts], order)
    rest = (
        np.concatenate([getattr(part, name) for part in parts])[order] for name in ("drift", "breaks", "pace", "turned")
    )
    drift, broken, pace, turned = rest
    return Searched(_join([part.found for part in parts], order), drift, lasting, broken, pace, turned)


def _join(founds: list[Found], order: Index) -> Found:
    """Put parts over the same table together, padded to the same numbers of hypotheses and terms."""
    kept = max(part.members.shape[1] for part in founds)
    width = max(part.members.shape[2] for part in founds)
    arrays = {}
    for name in Found.__dataclass_fields__:
        if name == "basis":
            continue
        fill = -1 if name == "members" else np.inf if name == "variance" else 1.0 if name == "freedom" else 0.0
        grown = []
        for part in founds:
            array = getattr(part, name)
            extra = [(0, 0), (0, kept - array.shape[1]), *((0, width - size) for size in array.shape[2:])]
            grown.append(np.pad(array, extra, constant_values=fill))
        arrays[name] = np.concatenate(grown)[order]
    return Found(basis=founds[0].basis, **arrays)
