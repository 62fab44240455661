"""Evidence put together by hand: kernels whose diagnosis is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ranksight.analysis.diagnosis.ceilings import Ceilings
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.model.application.breakdown import PARTS, Breakdown
from ranksight.model.uncertainty.forecast import Forecast

Array = np.ndarray


@pytest.fixture
def machine() -> Ceilings:
    """1 GHz; 64 B lines; a core reads 64, 32 and 16 GB/s from its caches and 8 from memory, two cores a domain; four cores share
    the third cache, which gives 40 GB/s to them all."""
    return Ceilings(
        "made",
        1e9,
        np.array([4.0, 10.0, 40.0, 100.0]),
        np.array([64e9, 32e9, 16e9, 8e9]),
        np.array([np.nan, np.nan, 40e9, 12e9]),
        np.array([1, 1, 4, 2]),
        8,
        64,
        np.ones(4, dtype=bool),
    )


@pytest.fixture
def evidence(machine: Ceilings) -> Callable[..., Evidence]:
    """Make evidence of kernels over ranks; what is not given is zero or not known."""

    def make(
        computing: dict[str, list[float]],
        ranks: list[float],
        *,
        instructions: dict[str, list[float]] | None = None,
        loads: dict[str, list[list[float]]] | None = None,
        communication: dict[str, list[float]] | None = None,
        imbalance: dict[str, list[float]] | None = None,
        having: dict[str, list[float]] | None = None,
        cpi: dict[str, float] | None = None,
        minimum_wait: dict[str, float] | None = None,
        wide: dict[str, float] | None = None,
        stalled: dict[str, list[float]] | None = None,
        ceilings: Ceilings | None = machine,
    ) -> Evidence:
        kernels = tuple(computing)
        k = len(ranks)
        shape = (len(kernels), k)

        def rows(given: dict[str, list[float]] | None, absent: float) -> Array:
            return np.array([(given or {}).get(name, [absent] * k) for name in kernels], dtype=float)

        def column(given: dict[str, float] | None, absent: float = np.nan) -> Array:
            return np.array([(given or {}).get(name, absent) for name in kernels], dtype=float)

        time, sent, uneven = rows(computing, 0), rows(communication, 0), rows(imbalance, 0)
        served = np.full((4, *shape), np.nan)
        for at, name in enumerate(kernels):
            if name in (loads or {}):
                served[:, at] = np.array((loads or {})[name], dtype=float)
        zero = np.zeros(shape)
        blank = np.full((1, k), "", dtype=object)
        sums = (time + sent + uneven).sum(axis=0)[None]
        total = Forecast(sums, sums, sums, np.zeros((1, k), dtype=int), blank, sums)
        factor = column(wide, 1.0)[:, None]
        return Evidence(
            kernels,
            ("ranks",),
            np.array(ranks, dtype=float)[:, None],
            Breakdown(total, kernels, dict.fromkeys(PARTS, zero), np.ones(k)),
            time,
            uneven,
            sent,
            rows(having, 1.0),
            np.zeros((3, *shape)),
            time / factor,
            time * factor,
            np.ones(shape, dtype=bool),
            np.full(shape, "", dtype=object),
            np.ones(shape, dtype=bool),
            np.isfinite(rows(instructions, np.nan)),
            rows(instructions, np.nan),
            np.full(shape, np.nan),
            np.full((3, *shape), np.nan),
            served,
            np.zeros((3, *shape)),
            rows(stalled, np.nan),
            np.repeat(column(cpi)[:, None], k, axis=1),
            column(minimum_wait),
            np.full(shape, np.nan),
            np.full(shape, np.nan),
            np.zeros(len(kernels), dtype=bool),
            ("made",) * len(kernels),
            ceilings,
        )

    return make
