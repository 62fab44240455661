"""The tables of runs: written, and those of many runs stacked without holding them twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ranksight.core.errors import InputError

if TYPE_CHECKING:
    from ranksight.core.experiment import Experiment, Run


def write_table(file: Path, table: pd.DataFrame) -> None:
    """Write a table to a parquet file."""
    columns = {}
    for name, column in table.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            given = column.array
            columns[str(name)] = pa.DictionaryArray.from_arrays(
                pa.array(given.codes, mask=given.codes < 0), pa.array(given.categories, from_pandas=True)
            )
        else:
            columns[str(name)] = pa.array(column, from_pandas=True)
    pq.write_table(pa.table(columns), file, compression="zstd")


def stack_counters(experiment: Experiment, runs: Sequence[Run], metrics: Sequence[str]) -> pd.DataFrame:
    """Stack the counters of `runs`: see :meth:`ranksight.core.experiment.Experiment.counters`.

    Columns are allocated once from the row counts in the files' footers and filled run by run, so the peak is one
    table plus one run.
    """
    files = [(run, experiment.path / "runs" / run.id / "counters.parquet") for run in runs]
    files = [(run, file) for run, file in files if file.is_file()]
    try:
        rows = [pq.read_metadata(file).num_rows for _, file in files]
        total = sum(rows)
        values = {name: np.full(total, np.nan) for name in metrics}
        rank = np.empty(total, dtype=np.int32)
        kernel = np.empty(total, dtype=np.int32)
        kernels: dict[str, int] = {}
        at = 0
        for (_, file), count in zip(files, rows, strict=True):
            present = [name for name in metrics if name in pq.read_schema(file).names]
            table = pq.read_table(file, columns=["kernel", "rank", *present])
            here = slice(at, at + count)
            column = table.column("kernel").combine_chunks()
            if not pa.types.is_dictionary(column.type):
                column = column.dictionary_encode()
            if column.null_count or column.dictionary.null_count:
                raise ValueError(f"a kernel of {file} has no name")
            names = [str(name) for name in column.dictionary.to_pylist()]
            codes = np.array([kernels.setdefault(name, len(kernels)) for name in names], dtype=np.int32)
            kernel[here] = codes[column.indices.to_numpy(zero_copy_only=False)]
            rank[here] = table.column("rank").to_numpy()
            for name in present:
                values[name][here] = table.column(name).to_numpy()
            at += count
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"a counter table of {experiment.path} cannot be read: {error}", "measure this run again"
        ) from error
    run_codes = np.repeat(np.arange(len(files), dtype=np.int32), rows)
    columns = {
        "run": pd.Categorical.from_codes(run_codes, categories=pd.Index([run.id for run, _ in files])),
        "kernel": pd.Categorical.from_codes(kernel, categories=pd.Index(list(kernels))),
        "rank": rank,
        **values,
    }
    return pd.DataFrame(columns, copy=False)
