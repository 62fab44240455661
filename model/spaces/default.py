"""The default space: growth, decay and their sums, a constant with or without them.

Exponents are those of Extra-P's default, steeper ones, and those of strong scaling; see :func:`default`.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError
from ranksight.core.metrics import Kind
from ranksight.model import priors
from ranksight.model.search.basis import Basis
from ranksight.model.search.chosen import together
from ranksight.model.search.crosswise import Crossed
from ranksight.model.search.offer import Listed, Offer
from ranksight.model.search.pairs import best_pairs
from ranksight.model.search.problem import Problem, pose
from ranksight.model.search.screening import CANCELLED, Screened, borne, screen
from ranksight.model.search.terms import (
    DOUBLING,
    GRID_ODDS,
    GRIDDED,
    ONE,
    SHIFTED,
    SORTED,
    Factor,
    Hypotheses,
    ghosted,
    hypotheses,
    on_a_grid,
)
from ranksight.model.series.noise import Location
from ranksight.model.spaces import SPACES

# x^i log2(x)^j that grow: Extra-P's default exponents (extra-p/extrap, single-parameter modeler).
GROWING: tuple[Factor, ...] = tuple(
    (n / d, float(j), 0.0)
    for n, d, logs in (
        (0, 1, (1, 2)),
        (1, 4, (0, 1, 2)),
        (1, 3, (0, 1, 2)),
        (1, 2, (0, 1, 2)),
        (2, 3, (0, 1, 2)),
        (3, 4, (0, 1, 2)),
        (4, 5, (0,)),
        (1, 1, (0, 1, 2)),
        (5, 4, (0, 1)),
        (4, 3, (0, 1)),
        (3, 2, (0, 1, 2)),
        (5, 3, (0,)),
        (7, 4, (0,)),
        (2, 1, (0, 1, 2)),
        (9, 4, (0,)),
        (7, 3, (0,)),
        (5, 2, (0, 1, 2)),
        (8, 3, (0,)),
        (11, 4, (0,)),
        (3, 1, (0, 1)),
    )
    for j in logs
)
# Steeper than volumes: time steps that shrink with the cells, iterations that become more, exact quantum chemistry.
STEEP: tuple[Factor, ...] = tuple((n / d, 0.0, 0.0) for n, d in ((7, 2), (4, 1), (9, 2), (5, 1), (6, 1), (7, 1)))
# Work that is divided among ranks. Measured decay is a mixture of shares of volumes and surfaces, so the powers are
# dense.
FALLING: tuple[Factor, ...] = tuple((-n / 12, 0.0, 0.0) for n in range(1, 25))
_SURFACES: tuple[Factor, ...] = tuple((-n / d, 0.0, 0.0) for n, d in ((1, 3), (1, 2), (2, 3)))
_COARSE: tuple[Factor, ...] = tuple(
    (i, j, 0.0)
    for i, j in (
        (0.0, 1.0),
        (0.0, 2.0),
        (0.5, 0.0),
        (1.0, 0.0),
        (1.0, 1.0),
        (1.5, 0.0),
        (2.0, 0.0),
        (2.0, 1.0),
        (2.5, 0.0),
        (3.0, 0.0),
    )
)
# A share that is sorted or transformed, and the part of it that others get of it.
_SHARES: tuple[Factor, ...] = (SORTED, (-2.0, 0.0, 0.0))
# Lengths and faces of a block with what surrounds it: (n/x + 2) (n/y + 2) (n/z + 2).
_OTHERS = on_a_grid("x - 1")
_LENGTHS, _FACES = on_a_grid("1/x + 1/y + 1/z"), on_a_grid("(x + y + z) / ranks")


@SPACES.register("default")
@lru_cache(maxsize=8)
def default(parameters: int) -> Offer:
    """The default space over `parameters` parameters. Raises InputError for more than four parameters."""
    if parameters == 1:
        return Single()
    if parameters > MOST:
        raise InputError(f"{parameters} parameters are too many", f"fit at most {MOST} at once and hold the others")
    return Crossed(
        (*_FALLS, SORTED, *GROWING, *STEEP, *DOUBLING),
        COARSE[parameters],
        parameters,
        grids=tuple(factor for factor, each in GRIDDED.items() if each.crossed),
    )


class Single(Listed):
    """The default space of one parameter; of what is deterministic and fits no listed form, all pairs of terms are
    tried. They are made when they are first asked for, as times go without them.
    """

    parameters = 1

    def __init__(self, ranks: bool = False) -> None:
        self._ranks = ranks

    @property
    def hypotheses(self) -> Hypotheses:  # type: ignore[override]
        """Those of what scatters."""
        return self._spaces[0]

    @property
    def counted(self) -> Hypotheses:
        """Others, over the same terms, for what is deterministic."""
        return self._spaces[1]

    @property
    def _spaces(self) -> tuple[Hypotheses, Hypotheses]:
        return _along_ranks() if self._ranks else _single()

    def along_ranks(self) -> Single:
        """The same where the parameter is the number of ranks: counts may follow the sides of a process grid."""
        return Single(ranks=True)

    def screen(self, points: Array, location: Location, positive: Mask, kind: Kind) -> tuple[Problem, Screened]:
        """Solve all hypotheses on all series."""
        basis = Basis.listed(self.hypotheses.terms, points).counting(points, 0 if self._ranks else None)
        problem = pose(basis, points, location, positive, kind)
        listed = borne(
            problem, screen(self.counted if kind == "requirement" else self.hypotheses, problem), listed=True
        )
        if kind != "requirement" or len(points) < ENOUGH:
            return problem, listed
        # A form with as many terms as there are values fits whatever they are.
        refutable = (listed.members >= 0).sum(axis=1) <= len(points) - FREE
        rest = np.where(refutable, listed.residual, np.inf).min(axis=1, initial=np.inf)
        most = problem.count * CANCELLED**2
        rows = np.flatnonzero((rest > most) & (problem.count >= ENOUGH))
        if not len(rows):
            return problem, listed
        every = np.arange(len(self.hypotheses.terms))
        usable = every[problem.basis.usable(every) & (every > 0)]
        pairs, _ = best_pairs(problem, rows, usable)
        # Some pair of so many follows what scatters.
        pairs = replace(pairs, offset=np.where(pairs.residual > most[:, None], -np.inf, pairs.offset))
        if not np.isfinite(pairs.offset).any():
            return problem, listed
        choice = np.ascontiguousarray(np.broadcast_to(every, (len(problem.weights), len(every))))
        return problem, together([replace(listed, choice=choice, common=False), pairs])


FREE = 2
"""Values beyond the number of its terms that a form has to meet for it to say something."""
ENOUGH = 5
"""Points that pairs of any terms with a constant need to be put to the test."""


@lru_cache(maxsize=1)
def _single() -> tuple[Hypotheses, Hypotheses]:
    forms, prior = _forms()
    counted = list(forms)
    for term in SHIFTED:
        counted += [((term,),), ((ONE,), (term,))]
    # What is done at the points of an element, and in between along one side more.
    counted += [((low,), (high,)) for low, high in itertools.pairwise(SHIFTED) if low[0] < high[0]]
    weights = [*prior, *[priors.FORMS["more"]] * (len(counted) - len(prior))]
    return _over_the_same(hypotheses(forms, prior), hypotheses(counted, weights))


@lru_cache(maxsize=1)
def _along_ranks() -> tuple[Hypotheses, Hypotheses]:
    forms, prior = _forms()
    counted, weights = list(forms), list(prior)
    volume: Factor = (-1.0, 0.0, 0.0)
    several = priors.FORMS["process grid"]
    for term, weight in zip((*GRIDDED, *_SHARES), (*GRID_ODDS.tolist(), *[several] * len(_SHARES)), strict=True):
        for others, less in (
            ((), priors.FORMS["alone"]),
            ((ONE,), 0.0),
            ((volume,), 0.0),
            ((ONE, volume), priors.FORMS["falls and grows"]),
        ):
            # A rank is not a partner of its own: what grows as a side does has a further term.
            if others or term[0] <= 0 or term == _OTHERS:
                counted.append(tuple((each,) for each in (*others, term)))
                weights.append(weight + less)
    for grown in _COARSE[:1] + _COARSE[3:4]:
        counted.append(tuple((each,) for each in (volume, _SHARES[0], grown)))
        weights.append(priors.FORMS["more"])
    for others in ((ONE,), (volume,), (ONE, volume)):
        counted.append(tuple((each,) for each in (*others, _LENGTHS, _FACES)))
        weights.append(several + priors.FORMS["more"])
    for block in (ghosted(2), ghosted(3)):
        for others in ((), (ONE,)):
            counted.append(tuple((each,) for each in (*others, volume, *block)))
            weights.append(several + priors.FORMS["more"])
    return _over_the_same(hypotheses(forms, prior), hypotheses(counted, weights))


def _over_the_same(some: Hypotheses, counted: Hypotheses) -> tuple[Hypotheses, Hypotheses]:
    """Both over the terms of the second, which begin with those of the first."""
    return Hypotheses(counted.terms, some.members, some.prior), counted


def _forms() -> tuple[list[tuple[tuple[Factor, ...], ...]], list[float]]:
    forms: list[tuple[tuple[Factor, ...], ...]] = [((ONE,),)]
    prior = [priors.FORMS["constant"]]

    def add(terms: tuple[Factor, ...], weight: float) -> None:
        forms.append(tuple((term,) for term in terms))
        prior.append(weight)

    for term in GROWING + STEEP + FALLING:
        add((term,), priors.FORMS["alone"] + _beyond(term))
        add((ONE, term), _beyond(term))
    for term in DOUBLING:
        add((term,), priors.FORMS["more"])
        add((ONE, term), priors.FORMS["more"])
    for low, high in itertools.combinations(_COARSE, 2):
        if high[0] - low[0] >= 0.5 or low[0] == 0.0:
            add((low, high), priors.FORMS["more"])
            add((ONE, low, high), priors.FORMS["more"])
    for fall in (*_SURFACES, (-0.75, 0.0, 0.0), (-1.0, 0.0, 0.0), (-4 / 3, 0.0, 0.0)):
        for grow in _COARSE[:6]:
            add((fall, grow), priors.FORMS["falls and grows"] + _beyond(fall))
            add((ONE, fall, grow), priors.FORMS["more"] + _beyond(fall))
    # Volume and surface of a share of the domain.
    for surface in _SURFACES:
        add(((-1.0, 0.0, 0.0), surface), priors.FORMS["alone"])
    return forms, prior


def _beyond(term: Factor) -> float:
    return priors.FORMS["beyond ideal"] if term[0] < -1 else 0.0


MOST = 4
_FALLS: tuple[Factor, ...] = tuple(
    (-n / d, 0.0, 0.0) for n, d in ((1, 4), (1, 3), (1, 2), (2, 3), (3, 4), (1, 1), (5, 4), (4, 3), (3, 2), (2, 1))
)
_FEW: tuple[Factor, ...] = (
    *((-n / d, 0.0, 0.0) for n, d in ((2, 1), (1, 1), (2, 3), (1, 2), (1, 3))),
    *((n / d, 0.0, 0.0) for n, d in ((1, 3), (1, 2), (2, 3), (1, 1), (4, 3), (3, 2), (5, 3), (2, 1), (5, 2), (3, 1))),
    *((i, j, 0.0) for i, j in ((0.0, 1.0), (0.0, 2.0), (0.5, 1.0), (1.0, 1.0), (1.0, 2.0), (2.0, 1.0))),
    SORTED,
)
_FEWEST: tuple[Factor, ...] = (
    *((-n / d, 0.0, 0.0) for n, d in ((1, 1), (2, 3), (1, 2))),
    (0.0, 1.0, 0.0),
    (1.0, 1.0, 0.0),
    *((n / d, 0.0, 0.0) for n, d in ((1, 2), (1, 1), (3, 2), (2, 1), (3, 1))),
)
COARSE: dict[int, tuple[Factor, ...]] = {2: _FEW, 3: _FEWEST, 4: _FEWEST[:1] + _FEWEST[3:4] + _FEWEST[5:]}
