"""The equation of kernels whose stalls were not counted (:mod:`ranksight.model.resource.equation`)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ranksight.model.kernel_time.counted import NO_KERNELS, Counted
from ranksight.model.laws.law import CONSTANT_CPI, COUNTED, LAWS, MACHINE, Law, LawTimes
from ranksight.model.laws.view import Asked, View
from ranksight.model.priors import STALLS_UNCOUNTED
from ranksight.model.resource.blocking import fit_resources
from ranksight.model.resource.equation import LEVELS, Resources


class ConstantCpi(Law):
    """The CPI of the configuration that memory slows least, and a blocking factor for the rest."""

    prior: ClassVar[float] = 0.4
    needs: ClassVar[str] = "instructions and loads by level without stalls, or sampled stalls; a platform"
    formula: ClassVar[str] = "T = i CPI_min / f + BF_mem sum_l n_l l_l / f"
    source: ClassVar[str] = "the minimum CPI of Panadero et al. 2018; Ding et al. 2018, equation 1"
    kind: ClassVar[type[Resources]] = Resources
    part: ClassVar[str] = "resources"
    asks: ClassVar[tuple[str, ...]] = ("instructions", "loads", *LEVELS)
    learns_from: ClassVar[tuple[str, ...]] = (MACHINE,)
    counts: ClassVar[bool] = True
    divides: ClassVar[bool] = True

    def fit(self, view: View) -> Resources | None:
        """CPI and blocking factors of the kernels that the counted equation does not divide."""
        counted: Counted = view.learned(COUNTED) or NO_KERNELS
        split = np.array(counted.kernels, dtype=object)[counted.split]
        rest = view.series.select(~np.isin(np.array(view.series.kernels, dtype=object), split))
        if not len(rest):
            return None
        how = view.settings.get("over_repetitions", "auto")
        settings = {**view.settings, "over_repetitions": "median" if how == "auto" else how}
        return fit_resources(rest, view.machine, view.sampled.samples, slowest=view.slowest, **settings)

    def at(self, learned: Resources, asked: Asked) -> LawTimes:
        """Times of these kernels.

        Which part of a time is stalls rests on one blocking factor for all runs; a change of regime changes that part.
        """
        parts = asked.parts
        time = parts.time
        counted: Counted | None = asked.fits.by(COUNTED)
        if counted is not None:
            inputs = counted.where.inputs(asked.points, asked.work_points)
            waits = np.nan_to_num(parts.memory.sum(axis=2) / np.exp(time.centre))
            time = time.wider(np.clip(waits, STALLS_UNCOUNTED, 1.0) * counted.regime(inputs, of_core=True))
        levels = {name: parts.memory[..., at] for at, name in enumerate(LEVELS)}
        imputed = frozenset(name for name, yes in zip(learned.kernels, learned.imputed, strict=True) if yes)
        answers = parts.answers & np.isfinite(parts.time.centre)
        made_of = {"execution": parts.execution, **levels}
        return LawTimes(learned.kernels, time, answers, learned.evidence, made_of, imputed=imputed)


LAWS.register(CONSTANT_CPI)(ConstantCpi())
