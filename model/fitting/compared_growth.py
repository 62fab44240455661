"""How a kernel's time grows compared with the work that its counters show.

A time that grows faster than every requirement of its kernel is spent waiting, serialised or out of balance (Calotoiu
et al. 2013, sections 2 and 4).
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.metrics import metric
from ranksight.core.units import some_of

AGREED = 0.9
NAMED = 3
"""Requirements named that a time grows as; a kernel called once has a dozen."""
FASTER = 1 / 8
"""Exponent by which a time must outgrow a requirement to be called faster; the spaces' exponents lie closer than
twice this."""


def pairs(kernels: tuple[str, ...], metrics: tuple[str, ...]) -> list[tuple[int, list[int]]]:
    """Each time with the requirements of its kernel."""
    kinds = {name: metric(name).kind for name in set(metrics)}
    requirements: dict[str, list[int]] = {}
    for i, (kernel, name) in enumerate(zip(kernels, metrics, strict=True)):
        if kinds[name] == "requirement":
            requirements.setdefault(kernel, []).append(i)
    return [
        (i, requirements[kernel])
        for i, (kernel, name) in enumerate(zip(kernels, metrics, strict=True))
        if kinds[name] == "time" and kernel in requirements
    ]


def notes(
    terms: Array,
    members: Index,
    weight: Array,
    kernels: tuple[str, ...],
    metrics: tuple[str, ...],
    only: frozenset[str] | None = None,
) -> dict[int, str]:
    """For times, how their growth compares with that of their kernel's requirements.

    Parameters
    ----------
    terms : (t, m, 3)
    members : (s, c, q)
        Terms of the hypotheses, the fastest growing last; -1 pads.
    weight : (s, c)
        A remark is made when hypotheses of more than nine tenths of the weight agree in it.
    only : frozenset of str, optional
        The kernels to remark on; all when not given.
    """
    texts = {}
    for time, requirements in pairs(kernels, metrics):
        if only is not None and kernels[time] not in only:
            continue
        others = [(_lead(terms, members[r, 0]), metrics[r]) for r in requirements]
        leads = [(float(w), _lead(terms, m)) for w, m in zip(weight[time], members[time], strict=True) if w > 0]
        faster = sum(w for w, lead in leads if all(_outgrows(lead, other) for other, _ in others))
        same = {name: sum(w for w, lead in leads if np.abs(lead - other).max() <= FASTER) for other, name in others}
        similar = [name for name, w in same.items() if w > AGREED]
        if faster > AGREED:
            texts[time] = "grows faster than every requirement: waiting, serialisation, imbalance or shared bandwidth"
        elif similar:
            texts[time] = f"grows as {some_of(similar, NAMED)}"
    return texts


def _outgrows(lead: Array, other: Array) -> bool:
    return bool((lead - other).sum() > FASTER and (lead - other).min() >= -FASTER)


def _lead(terms: Array, members: Index) -> Array:
    """Powers (m,) of the fastest growing term, a logarithm counted as a quarter of a power."""
    used = members[members >= 0]
    if not len(used):
        return np.zeros(terms.shape[1])
    return _powers(terms[used[-1]])


def _powers(terms: Array) -> Array:
    """Powers (..., m) of terms (..., m, 3), a logarithm counted as a quarter of one."""
    return np.asarray(terms[..., 0] + 0.25 * terms[..., 1] + 1e3 * np.maximum(terms[..., 2], 0.0))
