"""The cost of what a message table holds, row by row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ranksight.comm.costs import pointtopoint
from ranksight.comm.costs.collective import OPERATIONS, block, operation_name
from ranksight.comm.costs.cost import cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.costs.selection import Selector
from ranksight.comm.network import NetworkParameters
from ranksight.core.errors import InputError


def message_times(
    messages: pd.DataFrame,
    network: Fabric | NetworkParameters,
    choice: str | Selector | Mapping[str, str] = "openmpi-5.0",
) -> pd.Series[float]:
    """Seconds that each row's calls cost on a network.

    ``count * cost(operation, comm_size, bytes / count)``: the mean size stands for all of a row, whose sizes lie
    within a factor of two of each other where a size class is kept.

    Parameters
    ----------
    messages : DataFrame
        ``operation``, ``comm_size``, ``count``, ``bytes`` (and ``peers``, used for collectives among neighbours), as
        :data:`ranksight.core.experiment.MESSAGE_COLUMNS` has them. A point-to-point row whose communicator size is not
        known (0) is taken between nodes where the fabric has them.
    network, choice
        See :func:`ranksight.comm.costs.cost.cost`.

    Returns
    -------
    Series of float
        Index of `messages`; NaN for an operation that no cost is known for (input and output, set-up of communicators).

    Raises
    ------
    InputError
        When a column is missing, or a count or size is negative.
    """
    missing = [name for name in ("operation", "comm_size", "count", "bytes") if name not in messages.columns]
    if missing:
        raise InputError(f"the message table lacks the column {', '.join(missing)}")
    fabric = Fabric.flat(network) if isinstance(network, NetworkParameters) else network
    seconds = pd.Series(np.nan, index=messages.index, dtype=float)
    names = messages["operation"].astype(str).map({text: operation_name(text) for text in set(messages["operation"])})
    count = messages["count"].to_numpy(dtype=float)
    if (count < 0).any() or (messages["bytes"].to_numpy(dtype=float) < 0).any():
        raise InputError("the message table holds a negative count or size")
    mean = messages["bytes"].to_numpy(dtype=float) / np.maximum(count, 1.0)
    several = fabric.ranks_per_node + 1 if fabric.inter is not None else 1
    ranks = messages["comm_size"].to_numpy(dtype=float)
    if "scatter" in set(names) or "scatterv" in set(names):
        mean = _scattered(messages, names, mean)
    for name in names.unique():
        at = (names == name).to_numpy()
        size, p = mean[at], ranks[at]
        if name in OPERATIONS:
            size, p = block(name, np.maximum(p, 1), size), np.maximum(p, 1)
        elif name in pointtopoint.NEIGHBOURS and "peers" in messages.columns:
            peers = np.maximum(messages["peers"].to_numpy(dtype=float)[at], 1)
            link = fabric.far if fabric.inter is not None else fabric.near
            seconds[at] = count[at] * pointtopoint.neighbours(size / peers, peers, link)
            continue
        elif _known(name):
            p = np.where(p > 0, p, several)
        else:
            continue
        seconds[at] = count[at] * cost(name, p, size, fabric, choice)
    return seconds


def _known(name: str) -> bool:
    kinds = (pointtopoint.SENDS, pointtopoint.FETCHES, pointtopoint.NEIGHBOURS, pointtopoint.RECEIVES)
    return name.endswith("_init") or any(name in kind for kind in kinds)


def _scattered(messages: pd.DataFrame, names: pd.Series[str], mean: np.ndarray) -> np.ndarray:
    """Let a scatter's rows hold the block: the median over ranks, of which the root alone hands over all blocks."""
    at = names.isin(["scatter", "scatterv"]).to_numpy()
    keys = [name for name in ("run", "kernel", "operation", "comm_size") if name in messages.columns]
    rows = messages.loc[at, keys].assign(mean=mean[at])
    mean = mean.copy()
    mean[at] = rows.groupby(keys, observed=True)["mean"].transform("median").to_numpy()
    return mean
