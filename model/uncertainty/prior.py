"""Laws on a grid of what series have in common, learned from all of them and applied to each (empirical Bayes)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDS = 20


def learn(density: Array, prior: Array, pseudo: float) -> Array:
    """The law (g,) from log-densities (s, g) of what each series shows, by expectation maximisation.

    Parameters
    ----------
    density : (s, g)
        All zero for series that show nothing; each of the others counts as one.
    prior : (g,)
        The law before the data, which counts for `pseudo` series.
    """
    density = density[density.any(axis=1)]
    if not len(density):
        return prior
    likelihood = np.exp(density - density.max(axis=1, keepdims=True))
    law = prior
    for _ in range(ROUNDS):
        law = (pseudo * prior + _shares(likelihood, law).sum(axis=0)) / (pseudo + len(density))
    return law


def posterior(density: Array, law: Array) -> Array:
    """The law (s, g) of each series, its own log-densities (s, g) included."""
    return _shares(np.exp(density - density.max(axis=1, keepdims=True)), law)


def _shares(likelihood: Array, law: Array) -> Array:
    share = likelihood * law
    return np.asarray(share / share.sum(axis=1, keepdims=True))
