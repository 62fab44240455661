"""Which forms are common among the series of a metric: kernels of one program behave alike.

Weights of classes of hypotheses (structure, and the power of what decays) are estimated from all series together by
expectation maximisation, next to the weights before the data. Powers of what grows are told apart by each series
alone: a class learned from others must not decide how something explodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranksight.model.problem import Problem
from ranksight.model.search import Screened

Array = NDArray[np.float64]

PSEUDO = 20.0
"""Series that the weights before the data count for."""
ROUNDS = 3


def classes(table: Array, members: NDArray[np.intp]) -> NDArray[np.intp]:
    """Class (h,) of each hypothesis, from terms (t, m, 3) and the hypotheses' rows of them (h, q)."""
    exponent, logs, rate = (table[:, :, part] for part in range(3))
    grows = (rate > 0) | (exponent > 0) | ((exponent == 0) & (logs > 0))
    digit = np.where(exponent < 0, 2 + np.round(-12 * exponent), np.where(grows, 1.0, 0.0))
    code = 1 + digit @ (256.0 ** np.arange(table.shape[1]))
    rows = np.where(members >= 0, code[members], 0.0)
    _, found = np.unique(np.sort(rows, axis=1), axis=0, return_inverse=True)
    return np.asarray(found.reshape(-1), dtype=np.intp)


def shift(problem: Problem, screened: Screened, evidence: Array) -> Array:
    """What to add to the hypotheses' evidence (s, h): logarithm (h,) of how much more common their classes are than
    thought.

    Parameters
    ----------
    evidence : (s, h)
        Log marginal likelihoods with the space's own prior; series without any count for nothing.
    """
    evidence = evidence[np.isfinite(evidence).any(axis=1)]
    if screened.choice is not None:
        # Each series has hypotheses of its own: there are no common classes to count.
        return np.zeros(0)
    base = np.exp(screened.prior - screened.prior.max())
    base = base / base.sum()
    group = classes(problem.basis.decode(np.arange(screened.members.max() + 1)), screened.members)
    expected = np.bincount(group, base)
    likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True)) if len(evidence) else np.ones((0, len(base)))
    ratio = np.ones(len(expected))
    for _ in range(ROUNDS):
        moved = likelihood * ratio[group]
        moved /= moved.sum(axis=1, keepdims=True)
        ratio = (PSEUDO * expected + np.bincount(group, moved.sum(axis=0))) / (PSEUDO + len(evidence)) / expected
    return np.asarray(np.log(ratio)[group])


def shifted(evidence: Array, shift: Array) -> Array:
    """Evidence (s, h) with what the classes of the first hypotheses are more common; those that only some series have
    come last and have none."""
    return evidence + np.pad(shift, (0, evidence.shape[1] - len(shift)))
