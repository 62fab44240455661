"""How many ranks fill the bandwidth of a memory domain.

The law that predicts a kernel's time says which part of it the interface of the domain is at work. With more ranks
than fill it, a bandwidth-bound kernel is no faster (Treibig and Hager, "Introducing a performance model for
bandwidth-limited loop kernels", PPAM 2009).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ranksight.core.arrays import Array
from ranksight.core.experiment import WHOLE
from ranksight.model.laws.together import BUSY
from ranksight.model.series.computation import cores
from ranksight.model.series.domains import NOT_DESCRIBED

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model

COLUMNS = ["kernel", "ranks", "cores", "share"]
FULL = 0.95
"""Part of the time that the interface is at work from which on more ranks hardly bring more."""
LARGE = 0.05
"""Part of the program's time that a kernel needs to be named."""


def table(model: Model, target: Array, level: float = 0.9) -> pd.DataFrame:
    """Kernels that fill their memory domain with fewer ranks than it has cores, with the other parameters as at
    `target` (m,) and no more ranks to a domain than there.

    Columns: ``kernel`` (empty where the whole program was measured alone), ``ranks`` (fewest that fill the domain,
    times their threads), ``cores`` (of the domain), ``share`` (of the program's time with these), the largest kernel
    first.
    """
    equation, names = model.equation, model.parameters
    domains = equation.sharing.domains if equation.sharing is not None else NOT_DESCRIBED
    domains = domains or equation.counted.where.domains
    if not domains or "ranks" not in names or domains.cores < 2:
        return pd.DataFrame(columns=COLUMNS)
    column, asked = names.index("ranks"), np.asarray(target, dtype=np.float64)[None]
    most = float(cores(asked, names)[0])
    team = most / asked[0, column]
    ranks = np.arange(1.0, max(domains.ranks_per_node // team, 1.0) + 1)
    active, first = np.unique(domains.active(ranks * team), return_index=True)
    usable = active <= min(domains.active(np.array([most]))[0], domains.cores)
    points = np.repeat(asked, int(usable.sum()), axis=0)
    points[:, column] = ranks[first[usable]]
    _, broken = model.ask(points, level)
    whole = broken.total.value[0]
    share = broken.by_kernel / np.where(whole > 0, whole, np.inf)
    busy = broken.taken.get(BUSY, {})
    rows = []
    for kernel, part in zip(broken.kernels, share, strict=True):
        full = np.flatnonzero(np.nan_to_num(busy.get(kernel, np.zeros(len(points)))) >= FULL)
        if len(full) and active[full[0]] < domains.cores and part[full[0]] >= LARGE:
            name = "" if kernel == WHOLE else kernel
            rows.append((name, int(active[full[0]]), domains.cores, float(part[full[0]])))
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.sort_values("share", ascending=False, kind="stable", ignore_index=True)
