"""How communication grows, as the user knows it: the volume of a kernel's messages by a formula of the parameters.

Beyond what was measured of its parameters, a stated volume is that at the nearest value measured times what the formula
grows by from there,

    bytes(x) = bytes(x') g(x) / g(x'),      x' = x with the formula's parameters kept to their measured range,

and as many messages are sent as there (Ding et al. 2018, section 3.1.2, carry halos to another problem size by such
ratios, one for each operation: 8, 1 and 16 for its point-to-point messages, broadcasts and reductions). How the volume
follows the ranks stays learned. What was measured has to agree with the formula. A formula without parameters states
that the volume is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError
from ranksight.core.formula import Formula, read_formula
from ranksight.core.records import dataclass
from ranksight.model.formula import check_names, evaluate
from ranksight.model.plaindata import Stored
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, rows_of

BYTES, MESSAGES = "bytes_sent", "messages"
BETWEEN = ": "
"""Between kernel and operation in the name of a series."""
TOLERANCE = 0.05
"""Relative difference from the measurements up to which a formula agrees with them: headers, and edges of a share."""


@dataclass(frozen=True)
class Stated(Stored):
    """Formulas of volumes of kernels, of operations of kernels (``kernel: operation``), and of operations of all."""

    parameters: tuple[str, ...]  # of the model
    texts: Mapping[str, str]  # formula of each of these
    trained: Array  # (m, 2): smallest and largest value measured of each parameter

    @classmethod
    def read(cls, texts_given: Sequence[str], parameters: tuple[str, ...], points: Array) -> Stated:
        """Read ``KERNEL=FORMULA``.

        Raises InputError when a formula cannot be read, names ranks or what is not a parameter, or is not positive
        where measured.
        """
        texts: dict[str, str] = {}
        for each in texts_given:
            kernel, equals, text = each.rpartition("=")
            if not equals or not kernel.strip() or not text.strip():
                raise InputError(
                    f"{each!r} states no volume", "write KERNEL=FORMULA, such as 'halo=size^2', or OPERATION=FORMULA"
                )
            texts[kernel.strip()] = text.strip()
        if not texts:
            return NOTHING_STATED
        stated = cls(parameters, texts, np.stack([points.min(axis=0), points.max(axis=0)], axis=1))
        for kernel in texts:
            stated.growth(kernel, points)
        return stated

    def __post_init__(self) -> None:
        for kernel, formula in self._formulas.items():
            known = [name for name in self.parameters if name != "ranks"]
            check_names(formula, known, f"the volume of {kernel}", constant=True)

    @cached_property
    def _formulas(self) -> dict[str, Formula]:
        return {kernel: read_formula(text, f"volume of '{kernel[:40]}'") for kernel, text in self.texts.items()}

    def kernel_of(self, name: str) -> str | None:
        """The stated kernel that a series is of, by its name, with or without an operation behind it."""
        kernel, between, operation = name.rpartition(BETWEEN)
        of_name = (name, kernel, operation) if between else (name,)
        return next((each for each in of_name if each in self.texts), None)

    def by_operations(self, kernel: str, operations: Sequence[str]) -> bool:
        """Whether what is stated of a kernel is stated of its `operations` (``kernel: operation``) alone."""
        return kernel not in self.texts and any(self.kernel_of(name) is not None for name in operations)

    def _columns(self, kernel: str) -> list[int]:
        """Columns of the parameters in a kernel's formula; all but ranks where it names none."""
        named = self._formulas[kernel].names or [name for name in self.parameters if name != "ranks"]
        return [self.parameters.index(name) for name in named]

    def reference(self, kernel: str, points: Array) -> Array:
        """x' of points (k, m)."""
        moved = np.array(points, dtype=np.float64)
        columns = self._columns(kernel)
        moved[:, columns] = np.clip(moved[:, columns], self.trained[columns, 0], self.trained[columns, 1])
        return moved

    def growth(self, kernel: str, points: Array) -> Array:
        """g(x) / g(x') of points (k, m); InputError where the formula is not positive."""
        return self._at(kernel, points) / self._at(kernel, self.reference(kernel, points))

    def _at(self, kernel: str, points: Array) -> Array:
        return evaluate(self._formulas[kernel], points, self.parameters, f"the volume of {kernel}")

    def check(self, names: Sequence[str], points: Array, values: Array) -> None:
        """Hold the formulas against volumes (s, n) measured at `points`.

        Raises InputError when a kernel sends nothing, or what it sends grows otherwise.
        """
        owners = [self.kernel_of(name) for name in names]
        for kernel in self.texts:
            if kernel not in owners:
                parts = [name.rpartition(BETWEEN)[::2] for name in names]
                kernels = ", ".join(dict.fromkeys(sender or name for sender, name in parts)) or "none was traced"
                operations = ", ".join(dict.fromkeys(name for sender, name in parts if sender))
                remedy = f"kernels that send: {kernels}" + (f"; operations: {operations}" if operations else "")
                raise InputError(f"no messages of {kernel!r} were measured", remedy)
        for owner, row in zip(owners, values, strict=True):
            if owner is not None:
                self._compare(owner, points, row)

    def _compare(self, kernel: str, points: Array, row: Array) -> None:
        """Hold a formula against volumes (n,) at points that differ in its parameters alone."""
        stated = self._at(kernel, points)
        _, group = np.unique(np.delete(points, self._columns(kernel), axis=1), axis=0, return_inverse=True)
        for g in np.unique(group):
            rows = np.flatnonzero((group.ravel() == g) & (row > 0))
            if len(rows) < 2:
                continue
            ratio = np.log(row[rows] / stated[rows])
            if np.ptp(ratio) > np.log1p(TOLERANCE):
                one, other = sorted(rows[[ratio.argmin(), ratio.argmax()]], key=stated.__getitem__)
                where = [", ".join(f"{n} = {x:g}" for n, x in zip(self.parameters, points[at], strict=True))
                         for at in (one, other)]  # fmt: skip
                raise InputError(
                    f"{kernel} sends {row[other] / row[one]:.3g} times as much at {where[1]} as at {where[0]}, stated "
                    f"is {stated[other] / stated[one]:.3g} times",
                    "correct the formula of --volume, or leave it out: the volume is learned from what was measured",
                )

    def remark(self, points: Array) -> list[str]:
        """The notes on points (k, m) beyond the measured range."""
        return [
            f"bytes of {kernel}, as stated, beyond what was measured: "
            + (f"they grow like {text}" if self._formulas[kernel].names else "they stay as they are")
            for kernel, text in self.texts.items()
            if (self.reference(kernel, points) != points).any()
        ]

    def _fits(self) -> bool:
        return self.trained.shape == (len(self.parameters), 2) and bool(np.isfinite(self.trained).all())


NOTHING_STATED = Stated((), {}, np.empty((0, 2)))


def extended(
    stated: Stated, learned: Callable[[Array], Forecast], points: Array, names: Sequence[str], grows: Mask
) -> Forecast:
    """The forecast of s series at `points` (k, m), those of stated kernels as they go on from what was measured.

    `learned` (callable): the forecast at any points by the measurements. `names` (s of str): of the series, after their
    kernels. `grows` (s,): whether a series is a volume; others stay as at the nearest values measured.
    """
    answer = learned(points)
    for kernel in stated.texts:
        nearest = stated.reference(kernel, points)
        index = np.flatnonzero([stated.kernel_of(name) == kernel for name in names])
        out = (nearest != points).any(axis=1)
        if not len(index) or not out.any():
            continue
        factor = np.where(grows[index, None], stated.growth(kernel, points), 1.0)
        carried = rows_of(learned(nearest), index)
        carried = replace(carried, **{end: factor * getattr(carried, end) for end in ("value", "lower", "upper")})
        answer = choose(answer, carried, index, np.broadcast_to(out, carried.value.shape))
    return answer
