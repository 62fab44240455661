"""Numbers of many small plots in few characters.

A curve is stored as 16-bit steps between its smallest and its largest value, of the logarithm where all are positive:
over six decades a step is 0.02 % of the value, less than three digits show. A third of the characters of written
numbers, and the script draws from it at once.
"""

from __future__ import annotations

import base64

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.records import dataclass

STEPS = 65534
MISSING = 65535


@dataclass(frozen=True)
class Packed:
    """Rows of numbers.

    `codes`: base64 of little-endian uint16, row by row; 65535 is missing. `scale`: for each row the value of code 0 and
    of code 65534, and whether codes are steps of the logarithm.
    """

    codes: str
    scale: list[list[float]]


def pack(rows: Array) -> Packed:
    """Pack rows (s, k); NaN and infinities are missing."""
    rows = np.asarray(rows, dtype=np.float64)
    known = np.isfinite(rows)
    filled = np.where(known, rows, np.nan)
    with np.errstate(all="ignore"):
        positive = np.asarray((np.where(known, rows, 1.0) > 0).all(axis=1) & known.any(axis=1))
        work = np.where(positive[:, None], np.log(np.where(positive[:, None] & known, rows, 1.0)), filled)
        work = np.where(known, work, np.nan)
    low = np.where(known.any(axis=1), np.fmin.reduce(work, axis=1, initial=np.inf), 0.0)
    high = np.where(known.any(axis=1), np.fmax.reduce(work, axis=1, initial=-np.inf), 0.0)
    span = np.where(high > low, high - low, 1.0)
    codes = np.where(known, np.round((np.nan_to_num(work) - low[:, None]) / span[:, None] * STEPS), MISSING)
    codes = np.clip(codes, 0, MISSING).astype("<u2")
    scale = [[_digits(float(a)), _digits(float(b)), int(c)] for a, b, c in zip(low, low + span, positive, strict=True)]
    return Packed(base64.b64encode(codes.tobytes()).decode("ascii"), scale)


def _digits(number: float) -> float:
    return float(f"{number:.9g}")
