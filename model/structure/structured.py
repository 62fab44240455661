"""The functions of series, with what is known of their structure in addition to the fit of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.core.experiment import Experiment
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import rounded
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.functions import Functions, find_minor
from ranksight.model.structure.gridlaw import EXACT, SENT
from ranksight.model.structure.levels import COUNTS, fit_levels
from ranksight.model.structure.neighbourfit import Tables, fit_neighbours
from ranksight.model.structure.ranklaws import fit_rank_laws
from ranksight.model.structure.stated import BETWEEN, Stated
from ranksight.model.structure.unserved import find_unserved


def structured(
    experiment: Experiment,
    series: Series,
    fitted: Fitted,
    tables: Tables,
    stated: Stated | None = None,
    everywhere: bool = False,
    **settings: Any,
) -> Functions:
    """The functions of a series with what two levels say, what follows the process grid, or sums of other laws of the
    ranks, and what is stated.

    For `tables` and `everywhere` see :func:`ranksight.model.structure.neighbourfit.fit_neighbours`.
    """
    each = {name: value for name, value in settings.items() if name not in ("jobs", "dask")}
    keys = series.keys
    # What follows the work per rank, as stated, does not follow the process grid.
    apart = np.asarray(fitted.apart.any(axis=1)).tolist()
    names = {key for key, yes in zip(keys, apart, strict=True) if not yes}
    called = collective(experiment)
    near = {key for key in names if key[1] not in SENT or key[0] not in called}
    law = fit_neighbours(experiment, near, tables, everywhere, **each)
    if law is not None:
        law = law.without(exact_keys(series, fitted) - law.exact)
    lawful = set(law.keys) if law is not None else set()
    sent = {key for key in names - (set() if law is None else law.exact) if key[1] in SENT}
    together = {kernel for kernel, whole in called.items() if whole}
    laws = fit_rank_laws(series, sent, None if law is None else law.halos, together, **each)
    minor = tuple(key for key in find_minor(series) if key not in lawful)
    return Functions(fitted, fit_levels(series, **each), law, minor, stated, find_unserved(series), laws)


def collective(experiment: Experiment) -> dict[str, bool]:
    """Kernels, and operations of kernels (``kernel: operation``), all of whose messages are collective operations, and
    whether all ranks take part in each of these: then nothing goes by the sides of a process grid."""
    whole: dict[str, bool] = {}
    sending: set[str] = set()
    for run in experiment.runs:
        table = experiment.table(run, "messages")
        if table is None or "ranks" not in run.configuration:
            continue
        sizes = table.groupby(["kernel", "operation"], observed=True)["comm_size"].min()
        for (kernel, operation), size in zip(sizes.index.tolist(), sizes.tolist(), strict=True):
            keys, name = (str(kernel), f"{kernel}{BETWEEN}{operation}"), operation_name(str(operation))
            if name in SENDS:
                sending.update(keys)
            elif name in OPERATIONS:
                whole |= {key: whole.get(key, True) and size == run.configuration["ranks"] for key in keys}
    return {key: yes for key, yes in whole.items() if key not in sending}


def exact_keys(series: Series, fitted: Fitted) -> set[tuple[str, str]]:
    """Counts whose best function meets them to rounding, and more different values than it has terms.

    Values that repeat say nothing more, nor does zero at one rank.
    """
    terms = (fitted.members[:, 0] >= 0).sum(axis=1)
    exact = (fitted.weight[:, 0] > 0) & (fitted.variance[:, 0] < EXACT**2) & ~series.sampled
    values = reduce(series.values, "median", axis=2)
    different = np.array([len(np.unique(rounded(row[np.isfinite(row) & (row > 0)], 9))) for row in values])
    rows = exact & (different > terms) & np.isin(series.metrics, list(COUNTS))
    return {key for key, yes in zip(series.keys, rows.tolist(), strict=True) if yes}
