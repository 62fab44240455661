"""Where kernels stand under the roofs of the memory levels and of the core.

Williams, Waterman and Patterson, "Roofline", CACM 52 (2009) 65.

A kernel that does W operations and moves B bytes through a level of bandwidth b runs at most at W / B x b there. Where
floating-point operations were counted they are W; where they were not, instructions are (instruction roofline; Ding and
Williams, "An instruction roofline model for GPUs", PMBS 2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ranksight.analysis.diagnosis.causes import seconds_of_bytes
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.core.arrays import ratio

Array = NDArray[Any]
LEVELS = ("L2", "L3", "memory")


def table(evidence: Evidence) -> pd.DataFrame:
    """One row a configuration, kernel and level whose bytes and bandwidth are known.

    One column a parameter, ``kernel``, ``level``; ``operations`` (``flops`` or ``instructions``), ``intensity``
    (operations a byte), ``performance`` (operations a second of a rank), ``bandwidth`` (B/s that a rank reads:
    as described, or as ranks were measured to share it where that is less), ``ceiling`` (operations a second that the
    level allows), ``fraction`` (performance over ceiling), ``nearest`` (whether no other level's roof is nearer),
    ``peak`` (operations a second that the rank's cores can do at most; NaN where the processor is not known).
    """
    count, k = evidence.computing.shape
    flops = np.isfinite(evidence.flops) & (evidence.flops > 0)
    work = np.where(flops, evidence.flops, evidence.instructions)
    traffic, machine = evidence.traffic, evidence.ceilings
    bandwidth = np.full(traffic.shape, np.nan)
    if machine is not None:
        described = machine.share(evidence.cores)[1:, None, :]
        bandwidth = ratio(traffic, seconds_of_bytes(evidence), described, where=evidence.shared > traffic / described)
    with np.errstate(invalid="ignore", divide="ignore"):
        intensity = ratio(work, traffic)
        speed = ratio(work, evidence.computing)
    ceiling = intensity * bandwidth
    fraction = ratio(speed, ceiling)
    top = np.fmax.reduce(np.nan_to_num(fraction, nan=-1.0), axis=0)

    def flat(values: Array) -> Array:
        return np.broadcast_to(values, (3, count, k)).transpose(2, 1, 0).reshape(-1)

    columns: dict[str, object] = {
        name: np.repeat(evidence.points[:, at], 3 * count) for at, name in enumerate(evidence.parameters)
    }
    columns["kernel"] = np.tile(np.repeat(np.array(evidence.kernels, dtype=object), 3), k)
    columns["level"] = np.tile(np.array(LEVELS, dtype=object), count * k)
    columns["operations"] = flat(np.where(flops, "flops", "instructions"))
    columns |= {"intensity": flat(intensity), "performance": flat(speed)}
    columns |= {"bandwidth": flat(bandwidth), "ceiling": flat(ceiling), "fraction": flat(fraction)}
    cores_each = evidence.cores / evidence.ranks
    most = {kind: np.nan if machine is None else machine.peak(kind) for kind in ("flops", "instructions")}
    columns["peak"] = flat(np.where(flops, most["flops"], most["instructions"]) * cores_each)
    columns["nearest"] = flat(np.nan_to_num(fraction, nan=-2.0) >= top[None])
    table = pd.DataFrame(columns)
    keep = np.isfinite(table["ceiling"].to_numpy(dtype=float)) & flat(evidence.separate[:, None])
    shown: pd.DataFrame = table.loc[keep]
    return shown.reset_index(drop=True)
