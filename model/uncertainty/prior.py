"""Laws on a grid of what series have in common, learned from all of them and applied to each (empirical Bayes)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDS = 20


def learn(density: Array, prior: Array, pseudo: float, worth: float | None = None) -> Array:
    """The law (g,) from log-densities (s, g) of values left out, by expectation maximisation.

    Parameters
    ----------
    density : (s, g)
        All zero for series of which nothing was left out.
    prior : (g,)
        The law before the data, which counts for `pseudo` series.
    worth : float, optional
        For how many series all together count; else for as many as they are.
    """
    density = density[density.any(axis=1)]
    if not len(density):
        return prior
    worth = float(len(density)) if worth is None else worth
    likelihood = np.exp(density - density.max(axis=1, keepdims=True))
    law = prior
    for _ in range(ROUNDS):
        law = (pseudo * prior + worth * _shares(likelihood, law).mean(axis=0)) / (pseudo + worth)
    return law


def posterior(density: Array, law: Array) -> Array:
    """The law (s, g) of each series, its own log-densities (s, g) included."""
    return _shares(np.exp(density - density.max(axis=1, keepdims=True)), law)


def _shares(likelihood: Array, law: Array) -> Array:
    share = likelihood * law
    return np.asarray(share / share.sum(axis=1, keepdims=True))
