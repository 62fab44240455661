"""Parameters that the runs of an experiment bind to each other, so that no fit can separate what they do.

Two are bound where every value of one comes with one value of the other: ranks and tasks, ranks and threads whose
product is the same everywhere, weak scaling. Three and more are where their logarithms are linearly dependent, as
``ranks = nodes x ranks_per_node``.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from ranksight.core.arrays import Array

EXACT = 1e-9
"""Singular value of the logarithms, over the largest, below which a product of parameters is constant: rounding."""


def bound(configurations: Sequence[Mapping[str, float]]) -> list[str]:
    """A sentence on each set of parameters that change together only; none where every parameter varies by itself.

    `configurations`: all of one experiment. Parameters with one value in all of them are none.
    """
    points = sorted({tuple(sorted(each.items())) for each in configurations})
    if len(points) < 2:
        return []
    names = [name for name, _ in points[0]]
    table = np.array([[value for _, value in point] for point in points])
    varying = [at for at in range(len(names)) if len(np.unique(table[:, at])) > 1]
    groups = _pairs(table, varying)
    sentences = []
    for group in groups:
        if len(group) > 1:
            listed = _listed([names[at] for at in group])
            sentences.append(
                f"{listed} change together in all {len(points)} configurations: their effects cannot be separated; "
                "measure some where one of them changes alone"
            )
    single = [group[0] for group in groups]
    if (tied := _product(table[:, single])) is not None:
        listed = _listed([names[single[at]] for at in tied])
        sentences.append(
            f"{listed} are bound by a product in all {len(points)} configurations: their effects cannot be separated; "
            "leave one of them out"
        )
    return sentences


def _pairs(table: Array, varying: Sequence[int]) -> list[list[int]]:
    """The varying parameters in groups of those that have one value each for each value of the others."""
    groups: list[list[int]] = []
    codes = {at: np.unique(table[:, at], return_inverse=True)[1] for at in varying}
    for at in varying:
        for group in groups:
            joint = np.unique(np.stack([codes[at], codes[group[0]]]), axis=1).shape[1]
            if joint == codes[at].max() + 1 == codes[group[0]].max() + 1:
                group.append(at)
                break
        else:
            groups.append([at])
    return groups


def _product(table: Array) -> list[int] | None:
    """The fewest columns of which a product of powers is constant; None where none is, or too few rows could show it.

    Columns with values that have no logarithm are not looked at.
    """
    places = [at for at in range(table.shape[1]) if (table[:, at] > 0).all()]
    logs = np.log(table[:, places])
    logs = logs - logs.mean(axis=0)
    for count in range(3, len(places) + 1):
        for chosen in itertools.combinations(range(len(places)), count):
            if len(table) <= count:
                continue
            scale = np.linalg.svd(logs[:, chosen] / np.abs(logs[:, chosen]).max(axis=0), compute_uv=False)
            if scale[-1] <= EXACT * scale[0]:
                return [places[at] for at in chosen]
    return None


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
