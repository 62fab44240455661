"""Divergence and match: the function found, stripped to its leading term, against the expectation.

``delta = G / E``; a total match is delta = 1, an approximate one lies within [1/D, D], the boundary included, anything
else is none (Shudler et al. 2015, sections 2.3 and 2.4: with D_l = E/D and D_u = E D). Along several parameters all of
them have to hold, each with its own D, the others being held.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from ranksight.core.records import dataclass
from ranksight.model.search.growth import NONE, Growth
from ranksight.model.spaces.rulers import deviation

Rank = Literal["total", "approximate", "none"]


@dataclass(frozen=True, slots=True)
class Match:
    """How a growth compares with what was expected."""

    expected: Growth  # E, G, delta and D
    found: Growth
    divergence: Growth
    limit: Growth
    rank: Rank
    faster: bool  # whether it grows faster than expected along some parameter
    exceeds: bool  # whether it does so by more than the limit


def limit_of(expected: Growth, stated: Growth | None = None) -> Growth:
    """The deviation limit D: as stated; along parameters that the statement does not name, each one's default."""
    defaults = Growth.of((name, deviation(order)) for name, order in expected.orders)
    if stated is None:
        return defaults
    return Growth.of([*defaults.orders, *stated.orders])


def match(leading: Growth, expected: Growth, limit: Growth) -> Match:
    """Hold a growth against an expectation.

    `leading`, `expected`, `limit`: G, E and D.
    """
    delta = leading / expected
    above = [name for name, order in delta.orders if order > limit[name]]
    below = [name for name, order in delta.orders if order.to(Fraction(-1)) > limit[name]]
    rank: Rank = "total" if not delta.orders else "none" if above or below else "approximate"
    return Match(expected, leading, delta, limit, rank, any(order > NONE for _, order in delta.orders), bool(above))
