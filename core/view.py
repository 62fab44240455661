"""Experiments as they would be with other counters: nothing on disk changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ranksight.core.columns import Columns
from ranksight.core.experiment import Experiment, Run
from ranksight.core.sampled import TABLE

if TYPE_CHECKING:
    import pandas as pd


class Change:
    """What a :class:`View` changes of the runs of an experiment; here nothing."""

    def run(self, run: Run, columns: Sequence[str]) -> Run:
        """What is known of a run, whose counters have these `columns`."""
        return run

    def columns(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Columns of the counters that have the columns `names`."""
        return names

    def counters(self, table: Columns) -> Columns:
        """Counters of a run, from those that it has."""
        return table

    def samples(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table of a run's samples (:mod:`ranksight.core.sampled`), from that which it has."""
        return table


class View(Experiment):
    """An experiment with a change of its counters and samples."""

    def __init__(self, experiment: Experiment, change: Change) -> None:
        runs = [change.run(run, experiment.columns(run, "counters")) for run in experiment.runs]
        super().__init__(experiment.path, experiment.application, experiment.parameters, runs)
        self._experiment, self._change = experiment, change

    def columns(self, run: Run, name: str) -> tuple[str, ...]:
        """See :meth:`Experiment.columns`."""
        names = self._experiment.columns(run, name)
        return self._change.columns(names) if name == "counters" and names else names

    def table(self, run: Run, name: str, columns: Sequence[str] | None = None) -> pd.DataFrame | None:
        """See :meth:`Experiment.table`."""
        if name not in ("counters", TABLE):
            return self._experiment.table(run, name, columns)
        table = super().table(run, name)
        return table if table is None or columns is None else table[list(columns)]

    def _read(self, run: Run, name: str, columns: Sequence[str] | None) -> pd.DataFrame | None:
        if name == "counters":
            arrays = self.arrays(run)
            return None if arrays is None else arrays.table()
        table = self._experiment.table(run, name)
        return table if table is None else self._change.samples(table)

    def _read_arrays(self, run: Run, columns: Sequence[str] | None = None) -> Columns | None:
        arrays = self._experiment.arrays(run)
        return None if arrays is None else self._change.counters(arrays)

    def _rows(self, run: Run) -> int:
        return len(arrays) if (arrays := self.arrays(run)) is not None else 0
