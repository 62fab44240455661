"""Counters of one run as arrays, which are read without pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Index, Ints, Mask
from ranksight.core.records import dataclass

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Columns:
    """n rows of counters."""

    kernels: tuple[str, ...]
    code: Index  # (n,): the kernel of each row, as its place among `kernels`
    rank: Ints  # (n,)
    values: dict[str, Array]  # mapping of str to (n,) float64: each metric's, NaN where there is none

    def __len__(self) -> int:
        return len(self.code)

    @classmethod
    def of(cls, table: pd.DataFrame) -> Columns:
        """Those of a table as :meth:`ranksight.core.experiment.Experiment.table` gives it."""
        kernel = table["kernel"].astype("category").cat
        return cls(
            tuple(kernel.categories.astype(str)),
            kernel.codes.to_numpy().astype(np.intp),
            table["rank"].to_numpy(),
            {name: table[name].to_numpy(dtype=np.float64) for name in table.columns if name not in ("kernel", "rank")},
        )

    def table(self) -> pd.DataFrame:
        """The same as :meth:`ranksight.core.experiment.Experiment.table` gives it."""
        import pandas as pd

        kernel = pd.Categorical.from_codes(self.code, pd.Index(self.kernels, dtype="str"))
        return pd.DataFrame({"kernel": kernel, "rank": self.rank, **self.values})

    def select(self, rows: Mask) -> Columns:
        """Some of the rows."""
        values = {name: column[rows] for name, column in self.values.items()}
        return Columns(self.kernels, self.code[rows], self.rank[rows], values)
