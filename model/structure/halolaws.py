"""Bytes of halos that are as wide as a cut-off: faces of a block with a margin around them.

Particles within a cut-off c of a block of n/x by n/y by n/z are sent to its neighbours. Where what came along one side
is sent on along the next (Plimpton 1995), faces grow by the margin: with r = 2c/n a rank sends

    a times the sum over cut sides of  (1/s_1 + r or 0) (1/s_2 + r or 0)

so that bytes are a polynomial of the block's edges and no power of the ranks. The parameters a and r are the likeliest
ones for each combination of the other parameters, in every order of the exchanges. Particles are whole and start from a
lattice: most numbers of ranks meet the law closely, others cut between planes of the lattice and miss it by some of
them, slabs more than cubes. Relative differences are so taken to be of one of two normal laws, a narrow and a wide one.
Orders that are nearly as likely are within the interval, as is the scatter of all ranks.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Ints, Mask
from ranksight.core.dims import dims_create
from ranksight.core.records import dataclass
from ranksight.model.quantity import CENTRAL
from ranksight.model.structure.rankterm import HALOS, Halo
from ranksight.model.structure.rankterms import RANK_TERMS, term_values

FEWEST = 3
"""Numbers of ranks, more than one each, from which margins are looked for."""
CLOSE, WIDE = 1e-3, 0.05
"""Deviations of ranks that meet the law, and of those that do not."""
CUBES = 0.9
"""Share of the ranks that meet the law where blocks are cubes; the longer one side, the fewer do."""
AGREED = 3.0
"""Deviations within which ranks meet the law."""
SPARE = 2
"""Ranks that have to meet it beyond two of each combination of the other parameters, which any do."""
LIKELY = 3.0
"""Logarithm of the ratio of likelihoods up to which another order is kept."""
MARGINS = np.concatenate([[0.0], np.geomspace(1e-3, 4.0, 800)])


Found = list[tuple[tuple[int, ...], Array]]
"""Sums that fit a series, the simplest or likeliest first: terms (q,), and coefficients (g, q) at the other parameters'
places."""


def find_margins(values: Array, ranks: Ints, kinds: Collection[Halo]) -> tuple[Found, float]:
    """Halos that bytes follow, the likeliest first, and their relative scatter; none where they follow none.

    `values` (g, n): means over ranks at g combinations of the other parameters; NaN where nothing was measured. `ranks`
    (n,). `kinds`: the halos that the messages are of, the likeliest first.
    """
    known = np.isfinite(values) & (values > 0)
    used = known.sum(axis=1) >= FEWEST
    known &= used[:, None]
    names, terms = list(RANK_TERMS), term_values(ranks)
    ways = [[names.index(name) for name in way] for kind in kinds for way in HALOS.get(kind, ())]
    if not used.any() or not ways:
        return [], 0.0
    powers = MARGINS[:, None] ** np.arange(3)
    share = _meeting(ranks)
    fits = [_fit(values, known, powers[:, : len(way)] @ terms[way], share) for way in ways]
    likely = np.array([each.likely for each in fits])
    first = int(likely.argmax())
    best = fits[first]
    scatter = float(np.sqrt((best.difference[known] ** 2).mean()))
    agreed = int((np.abs(best.difference[known]) <= AGREED * CLOSE).sum())
    if scatter > WIDE or agreed < 2 * used.sum() + SPARE:
        return [], 0.0
    halos = []
    for at in np.argsort(-likely, kind="stable").tolist():
        if likely[at] >= likely[first] - LIKELY:
            parts = np.where(used[:, None], fits[at].scale[:, None] * powers[fits[at].margin, : len(ways[at])], np.nan)
            shown = [i for i in range(parts.shape[1]) if (parts[used, i] > 0).any()]
            halos.append((tuple(ways[at][i] for i in shown), parts[:, shown]))
    return halos, scatter


def _meeting(ranks: Ints) -> Array:
    """Share (n,) of the runs at each of `ranks` that meet the law."""
    sides = [dims_create(int(p), 3) for p in ranks]
    return np.array([CUBES * side[-1] / side[0] for side in sides])


def margin_reach(ranks: Ints) -> Array:
    """Relative half-width (n,) of the 90 % interval around the law at each of `ranks`: of deviations of :data:`CLOSE`
    and, where blocks are no cubes, :data:`WIDE`."""
    share = _meeting(ranks)
    tries = np.geomspace(CLOSE, 10 * WIDE, 400)
    near, far = (2 * special.ndtr(tries / width) - 1 for width in (CLOSE, WIDE))
    inside = share[:, None] * near + (1 - share[:, None]) * far
    return np.asarray(tries[(inside >= CENTRAL).argmax(axis=1)])


@dataclass(frozen=True)
class _Fit:
    """The likeliest margin of one order at g combinations of the other parameters."""

    likely: float  # logarithm of the likelihood of all of them together
    margin: Index  # (g,): of :data:`MARGINS`
    scale: Array  # (g,)
    difference: Array  # (g, n): relative; zero where nothing was measured


def _fit(values: Array, known: Mask, shapes: Array, share: Array) -> _Fit:
    """The likeliest of the shapes (m, n), times a factor: one of those that meet one of the values; `share` (n,) of
    these meet them."""
    ratio = np.where(known[:, None], shapes[None] / np.where(known, values, 1.0)[:, None], np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        scales = 1 / ratio
        difference = scales[..., None] * ratio[:, :, None, :] - 1
        density = share / CLOSE * np.exp(-0.5 * (difference / CLOSE) ** 2)
        density += (1 - share) / WIDE * np.exp(-0.5 * (difference / WIDE) ** 2)
        likely = np.where(known[:, None, None], np.log(np.maximum(density, 1e-300)), 0.0).sum(axis=3)
    likely = np.where(np.isfinite(scales), likely, -np.inf)
    flat = likely.reshape(len(likely), -1).argmax(axis=1)
    margin, at = np.unravel_index(flat, likely.shape[1:])
    g = np.arange(len(values))
    used = known.any(axis=1)
    return _Fit(
        float(likely[g, margin, at][used].sum()),
        margin,
        np.where(used, scales[g, margin, at], np.nan),
        np.where(known, difference[g, margin, at], 0.0),
    )
