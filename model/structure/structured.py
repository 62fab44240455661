"""The functions of series, with what is known of their structure in addition to the fit of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.core.experiment import Experiment
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.series.reducing import Series
from ranksight.model.structure.functions import Functions, find_minor
from ranksight.model.structure.gridlaw import SENT
from ranksight.model.structure.late import fit_late
from ranksight.model.structure.levels import fit_levels
from ranksight.model.structure.neighbourfit import Tables, fit_neighbours
from ranksight.model.structure.ranklaws import fit_rank_laws
from ranksight.model.structure.stated import Stated
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
    law = fit_neighbours(experiment, names, tables, everywhere, **each)
    lawful = set(law.keys) if law is not None else set()
    sent = {key for key in names - (set() if law is None else law.exact) if key[1] in SENT}
    laws = fit_rank_laws(series, sent, None if law is None else law.halos, **each)
    minor = tuple(key for key in find_minor(series) if key not in lawful)
    unserved, late = find_unserved(series), fit_late(series)
    return Functions(fitted, fit_levels(series, **each), law, minor, stated, unserved, laws, late)
