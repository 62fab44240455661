"""What carried each answer, as people read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.experiment import WHOLE
from ranksight.model.fitted import Fitted


@dataclass(frozen=True)
class Evidence:
    """What carried the answers of s series at k configurations.

    Attributes
    ----------
    told : list of str
        Of each series as a function.
    carried : mapping of int to list of str
        Of those that an equation gives, at each configuration.
    """

    told: list[str]
    carried: Mapping[int, list[str]]

    @classmethod
    def of(
        cls,
        fitted: Fitted,
        provenance: Mapping[str, str],
        carried: Iterable[tuple[int, NDArray[np.bool_], str]],
    ) -> Evidence:
        """Of fitted functions, where their numbers come from, and what equations gave in their place."""
        told = [
            f"function of {count} configurations, {name} {provenance.get(name, 'measured')}"
            for name, count in zip(fitted.metrics, fitted.count.tolist(), strict=True)
        ]
        found: dict[int, list[str]] = {}
        for row, where, text in carried:
            before = found.get(row) or [told[row]] * len(where)
            found[row] = [text if here else old for here, old in zip(where.tolist(), before, strict=True)]
        return cls(told, found)

    def of_series(self, row: int, k: int) -> str:
        """Of one series at one configuration."""
        return self.carried[row][k] if row in self.carried else self.told[row]

    def of_whole(self, fitted: Fitted, name: str, count: int) -> list[str]:
        """Of a metric of the whole program at all `count` configurations."""
        rows = [row for row, key in enumerate(fitted.metrics) if key == name]
        direct = [row for row in rows if fitted.kernels[row] == WHOLE]
        if direct:
            return [self.of_series(direct[0], k) for k in range(count)]
        texts = [list(dict.fromkeys(self.of_series(row, k) for row in rows)) for k in range(count)]
        return [f"sum of {len(rows)} kernels: {'; '.join(found[:4])}" for found in texts]
