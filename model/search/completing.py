"""What a few terms leave unexplained, and one more of the whole dictionary that explains most of it.

Orthogonal least squares (Chen, Billings and Luo 1989, *International Journal of Control* 50, 1873).
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model import priors
from ranksight.model.search.problem import Problem

ADDED = 6
"""Terms of one axis and of several that are tried for each base."""


def complete(problem: Problem, bases: Index, dictionary: Index) -> tuple[Index, Index, Array]:
    """Terms that explain most of what bases (s, b, 2) leave: a choice of terms, hypotheses over it, their priors."""
    single = (problem.basis.axes(dictionary) == 1).astype(bool)
    root = np.sqrt(problem.weights)
    table = problem.basis.shape(dictionary)
    norm = problem.weights @ (table**2).T
    added = []
    for base in range(bases.shape[1]):
        terms = bases[:, base]
        design = np.where((terms >= 0)[..., None], problem.basis.shape(terms), 0.0) * root[:, None, :]
        q = _orthonormal(design)
        target = root * problem.values
        rest = target - np.einsum("skn,sk->sn", q, np.einsum("skn,sn->sk", q, target))
        along = (root * rest) @ table.T
        remaining = norm.copy()
        for k in range(q.shape[1]):
            remaining -= ((q[:, k] * root) @ table.T) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            possible = (remaining > 1e-9 * norm) & ((along > 0) | ~problem.parts[:, None])
            gain = np.where(possible, along**2 / remaining, -1.0)
        added.append(np.concatenate([_largest(gain, dictionary, few) for few in (single, ~single)], axis=1))
    simple = min(ADDED, int(single.sum()))
    constant = np.zeros((len(root), 1), dtype=np.intp)
    choice = np.concatenate([constant, np.maximum(bases, 0).reshape(len(root), -1), *added], axis=1)
    rows: list[list[int]] = []
    prior: list[float] = []
    at = 1 + 2 * bases.shape[1]
    for base in range(bases.shape[1]):
        left, right = 1 + 2 * base, 2 + 2 * base
        for extra in range(added[base].shape[1]):
            # The term added last stands last. A base may hold the constant itself, so all shapes are tried.
            rows += [[left, right, at + extra], [0, left, right, at + extra], [left, at + extra], [right, at + extra]]
            prior += [priors.FORMS["completed"] if extra < simple else priors.FORMS["completed by a product"]] * 4
        at += added[base].shape[1]
    members = np.full((len(rows), 4), -1, dtype=np.intp)
    for row, terms_of in enumerate(rows):
        members[row, : len(terms_of)] = terms_of
    return choice, members, np.array(prior)


def _largest(gain: Array, dictionary: Index, among: Mask) -> Index:
    """The terms (s, a) of largest gain (s, d) among some of the dictionary."""
    gain, terms = gain[:, among], dictionary[among]
    kept = min(ADDED, gain.shape[1])
    if kept == 0:
        return np.empty((len(gain), 0), dtype=np.intp)
    return np.asarray(terms[np.argpartition(-gain, kept - 1, axis=1)[:, :kept]])


def _orthonormal(design: Array) -> Array:
    """Orthonormal rows (s, k, n) spanning the rows of designs (s, k, n) of at most two rows; zero where there is
    none."""
    done: list[Array] = []
    for k in range(design.shape[1]):
        row = design[:, k]
        for other in done:
            row = row - other * (row * other).sum(axis=1, keepdims=True)
        size = np.sqrt((row**2).sum(axis=1, keepdims=True))
        full = np.sqrt((design[:, k] ** 2).sum(axis=1, keepdims=True))
        done.append(np.where(size > 1e-7 * np.maximum(full, 1e-300), row / np.where(size > 0, size, 1.0), 0.0))
    return np.stack(done, axis=1)
