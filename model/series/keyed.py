"""What is kept for many series, each of a kernel and a metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from ranksight.core.arrays import Index


class Keyed:
    """A dataclass whose `kernels` and `metrics` name its series."""

    kernels: tuple[str, ...]
    metrics: tuple[str, ...]

    @cached_property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Kernel and metric of each series."""
        return tuple(zip(self.kernels, self.metrics, strict=True))

    @cached_property
    def rows(self) -> Mapping[tuple[str, str], int]:
        """Index of each series by kernel and metric."""
        return {key: row for row, key in enumerate(self.keys)}

    def indices(self, keys: Sequence[tuple[str, str]]) -> Index:
        """Indices of series by kernel and metric."""
        return np.array([self.rows[key] for key in keys], dtype=np.intp)
