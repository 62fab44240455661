"""One run as checks of its counters see it: values by row, time, ranks and what samples leave open."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import ALL_RANKS, WHOLE
from ranksight.core.reading import Reading
from ranksight.core.records import dataclass
from ranksight.core.sampled import TABLE

if TYPE_CHECKING:
    from ranksight.platforms import Platform

VAGUE = 1 / 8
"""Relative standard error of values from samples whose number is not known: 64 of them."""


@dataclass(frozen=True)
class Look:
    """One run as the checks see it."""

    reading: Reading
    table: pd.DataFrame
    platform: Platform | None

    def column(self, name: str) -> Array:
        """A metric's values, NaN where it was not measured."""
        if name not in self.table.columns:
            return np.full(len(self.table), np.nan)
        return self.table[name].to_numpy(np.float64)

    @property
    def whole(self) -> Mask:
        """Rows of the whole program."""
        return np.asarray(self.table["kernel"] == WHOLE)

    @cached_property
    def parts(self) -> Mask:
        """Rows that add up to the program: those of kernels, or of the program where there are none."""
        return self.whole if self.whole.all() else ~self.whole

    @cached_property
    def threads(self) -> float:
        """Threads of a rank, as far as that is known."""
        table = self.reading.tables.get("threads")
        shown = 1
        if table is not None and {"rank", "thread"} <= set(table.columns) and len(table):
            shown = table.groupby("rank")["thread"].nunique().max()
        return max(float(self.reading.configuration.get("threads", 1.0)), float(shown))

    @cached_property
    def ranks(self) -> float:
        """Ranks of the run."""
        most = float(self.table["rank"].max()) + 1 if len(self.table) else 1.0
        return max(float(self.reading.configuration.get("ranks", 1.0)), most, 1.0)

    @cached_property
    def traffic(self) -> Array:
        """Bytes to and from memory of each row."""
        both = self.column("bytes_mem_read") + self.column("bytes_mem_written")
        return np.where(np.isfinite(both), both, self.column("bytes_mem"))

    @cached_property
    def seconds(self) -> float:
        """How long the run took at most; NaN where no time was measured."""
        times = (
            pd.Series(np.where(self.parts, self.column("time"), np.nan)).groupby(self.table["rank"].to_numpy()).sum()
        )
        known = [self.reading.wall_time or 0.0, float(times.max()), float(np.nanmax(self.column("time"), initial=0.0))]
        return max(known) or np.nan

    def variance(self, name: str) -> Array:
        """What samples leave open of a metric's values; a good deal where nobody knows how many there were."""
        samples = self.reading.tables.get(TABLE)
        if samples is not None and {"metric", "samples", "worth"} <= set(samples.columns):
            mine = samples[samples["metric"] == name]
            if len(mine):
                each = (mine["samples"] * mine["worth"] ** 2).groupby([mine["kernel"].astype(str), mine["rank"]]).sum()
                keys = pd.MultiIndex.from_arrays([self.table["kernel"].astype(str), self.table["rank"]])
                return np.asarray(np.nan_to_num(each.reindex(keys).to_numpy(np.float64)), dtype=np.float64)
        said = self.reading.provenance.get(name, "")
        unknown = said.startswith("sampled") or "(sampled" in said
        return np.nan_to_num(VAGUE * self.column(name)) ** 2 if unknown else np.zeros(len(self.table))

    def at(self, row: int | None = None) -> str:
        """Where in the runs this is, in words."""
        words = [f"{name} = {value:g}" for name, value in self.reading.configuration.items()]
        if row is not None:
            kernel, rank = self.table["kernel"].iloc[row], int(self.table["rank"].iloc[row])
            of_rank = [] if rank == ALL_RANKS else [f"rank {rank}"]
            words = [*([] if kernel == WHOLE else [str(kernel)]), *of_rank, *words]
        return ", ".join(words)
