"""A law as another package would register it: Amdahl's, learned from the first and the last run.

`FAULT` in the environment is what it does wrong; tests put this file into a package of their own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ranksight.core.arrays import Array
from ranksight.model.laws.law import LAWS, Law, LawTimes
from ranksight.model.laws.view import Asked, View
from ranksight.model.plaindata import Stored
from ranksight.model.quantity import Quantity

FAULT = os.environ.get("FAULT", "")


@dataclass(frozen=True)
class Parts(Stored):
    """Seconds of each kernel that are serial, and those that are divided by the ranks."""

    kernels: tuple[str, ...]
    serial: Array
    divided: Array

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | ({"spread": np.nan} if FAULT == "kept" else {})

    def _fits(self) -> bool:
        return self.serial.shape == self.divided.shape == (len(self.kernels),)


class Amdahl(Law):
    """A serial part and a part that is divided by the ranks."""

    prior: ClassVar[float] = 2.0 if FAULT == "prior" else 1.0
    needs: ClassVar[str] = "a time at two rank counts"
    formula: ClassVar[str] = "T = s + d / ranks"
    source: ClassVar[str] = "" if FAULT == "source" else "Amdahl 1967"
    kind: ClassVar[type[Parts]] = Parts

    def fit(self, view: View) -> Parts | None:
        if FAULT == "fit":
            raise ZeroDivisionError("no ranks")
        kernels, names = view.timed, view.series.parameters
        if "ranks" not in names or len(view.series.points) < 2 or not kernels:
            return None
        ranks, times = view.series.points[:, names.index("ranks")], view.medians("time", kernels)
        first, last = int(ranks.argmin()), int(ranks.argmax())
        if ranks[first] == ranks[last]:
            return None
        divided = (times[:, first] - times[:, last]) / (1 / ranks[first] - 1 / ranks[last])
        claimed = tuple(f"{kernel}!" for kernel in kernels) if FAULT == "claims" else kernels
        return Parts(claimed, np.maximum(times[:, last] - divided / ranks[last], 0.0), divided)

    def at(self, learned: Parts, asked: Asked) -> LawTimes | None:
        if FAULT == "at":
            raise KeyError("ranks")
        ranks = asked.points[:, asked.parameters.index("ranks")]
        seconds = learned.serial[:, None] + learned.divided[:, None] / ranks
        width = np.full(seconds.shape, 0.02)
        if FAULT == "nan":
            seconds = seconds * np.nan
        if FAULT == "shape":
            width = width[:, :1]
        known = np.isfinite(seconds) | (FAULT == "nan")
        names = learned.kernels if FAULT != "later" else ("someone else's",) * len(learned.kernels)
        parts = {"execution": seconds * (-1 if FAULT == "negative" else 1)}
        if FAULT == "part":
            parts = {"magic": seconds}
        found = LawTimes(names, Quantity(np.log(seconds), width, width), known, ("",) * len(names), parts)
        return replace(found, answers=known.astype(float)) if FAULT == "truth" else found


if FAULT == "import":
    raise RuntimeError("not here")
LAWS.register("constant CPI" if FAULT == "taken" else "Amdahl")(object() if FAULT == "thing" else Amdahl())
