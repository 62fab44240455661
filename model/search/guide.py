"""Requirements guide times: a kernel's time should grow as the work that its counters show.

For each time the requirements of the same kernel are modelled exactly, since they do not scatter. A form of the time
that has the growing terms of a requirement is preferred when it fits, and the leading term of the time is compared
with those of all requirements: a time that grows faster than every requirement is spent waiting, serialised or out of
balance (Calotoiu et al. 2013, sections 2 and 4). Forms that outgrow all of them by the better part of a power are
rarer: what a unit of work costs rises as caches are outgrown, and then no more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import metric
from ranksight.core.units import some_of
from ranksight.model import priors
from ranksight.model.search.screening import Found

STEEPER = 0.5
"""Power from which on a form that outgrows all requirements by it is as much less likely."""
AGREED = 0.9
NAMED = 3
"""Requirements named that a time grows as; a kernel called once has a dozen."""
FASTER = 1 / 8
"""Exponent by which a time must outgrow a requirement to be called faster; the spaces' exponents lie closer than
twice this."""
EXACT = 0.02
"""Relative leave-one-out error up to which a requirement counts as known."""


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


def prefer(weighed_forms: Found, kernels: tuple[str, ...], metrics: tuple[str, ...]) -> Found:
    """Move weight, within what fits, to the forms that the requirements of the same kernel have."""
    weight = weighed_forms.weight.copy()
    changed: list[int] = []
    growing, leads = _growing(weighed_forms), _leads(weighed_forms)

    def form(series: int, hypothesis: int) -> frozenset[int]:
        """Terms of a hypothesis besides the constant."""
        return frozenset(weighed_forms.members[series, hypothesis][growing[series, hypothesis]].tolist())

    for time, requirements in pairs(kernels, metrics):
        exact = [
            r for r in requirements if weighed_forms.weight[r, 0] > 0.5 and np.sqrt(weighed_forms.press[r, 0]) <= EXACT
        ]
        forms = {form(r, 0) for r in exact}
        forms.discard(frozenset())
        if not forms:
            continue
        same = np.array([form(time, c) in forms for c in range(weight.shape[1])])
        beyond = leads[time][None] - leads[exact, 0][:, None]
        outgrows = (beyond.sum(axis=2) > STEEPER) & (beyond.min(axis=2) >= -FASTER)
        steep = np.asarray(np.all(outgrows, axis=0))
        odds = priors.REQUIREMENT * (same.astype(np.float64) - steep)
        weighed = odds[weight[time] > 0]
        if len(weighed) and weighed.min() < weighed.max():  # a series that no hypothesis fits has no weight
            weight[time] *= np.exp(odds)
            weight[time] /= weight[time].sum()
            changed.append(time)
    if not changed:
        return weighed_forms
    order = np.tile(np.arange(weight.shape[1]), (len(weight), 1))
    rows = np.array(changed)
    # The leading hypothesis stays unless a preferred one has become heavier.
    best = weight[rows].argmax(axis=1)
    heavier = weight[rows, best] > weight[rows, 0]
    order[rows[heavier], 0] = best[heavier]
    order[rows[heavier], best[heavier]] = 0
    arrays: dict[str, Any] = {}
    for name in Found.__dataclass_fields__:
        if name != "basis":
            array = weight if name == "weight" else getattr(weighed_forms, name)
            arrays[name] = np.take_along_axis(array, order.reshape(order.shape + (1,) * (array.ndim - 2)), axis=1)
    return replace(weighed_forms, **arrays)


def _growing(forms: Found) -> Mask:
    """Which members (s, c, q) are terms besides the constant."""
    members = np.where(forms.members >= 0, forms.members, 0)
    listed, place = np.unique(members, return_inverse=True)
    grows: Mask = np.asarray(forms.basis.decode(listed).any(axis=(1, 2)))
    return np.asarray(grows[place].reshape(members.shape) & (forms.members >= 0))


def _leads(forms: Found) -> Array:
    """Powers (s, c, m) of the fastest growing terms of all hypotheses, as :func:`_lead` has them."""
    used = forms.members >= 0
    last = np.maximum(used.sum(axis=2) - 1, 0)[..., None]
    member = np.take_along_axis(np.where(used, forms.members, 0), last, axis=2)[..., 0]
    listed, place = np.unique(member, return_inverse=True)
    powers = _powers(forms.basis.decode(listed))[place].reshape(*member.shape, -1)
    return np.where(np.asarray(used.any(axis=2))[..., None], powers, 0.0)


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
