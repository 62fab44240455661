"""The tables of runs: written, and read within limits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ranksight.core import limits
from ranksight.core.arrays import Array, Index
from ranksight.core.columns import Columns
from ranksight.core.contract import beyond, check_messages, check_ranks
from ranksight.core.errors import InputError
from ranksight.core.experiment import COUNTER_KEYS, MESSAGE_COLUMNS
from ranksight.core.files import regular_file
from ranksight.core.metrics import metric

if TYPE_CHECKING:
    import pandas as pd


TEXTS = frozenset({"kernel", "operation"})
NUMBERS = frozenset({"rank", "peer", "comm_size", "size_class", "count", "bytes", "seconds", "peers"})
"""Columns of one kind in every table that has them."""
REQUIRED = {"counters": COUNTER_KEYS, "messages": MESSAGE_COLUMNS, "peers": ("rank", "operation", "peer")}
"""Columns without which a table is none."""
MANY = 1 << 17
"""Values of a table from which on threads that read its columns gain more than their start takes."""
_WRONG = (OSError, pa.ArrowException, KeyError, TypeError, ValueError, OverflowError)
"""What pyarrow raises for damaged files."""


def write_table(file: Path, table: pd.DataFrame) -> None:
    """Write a table to a parquet file."""
    import pandas as pd

    columns = {}
    for name, column in table.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            given = column.array
            columns[str(name)] = pa.DictionaryArray.from_arrays(
                pa.array(given.codes, mask=given.codes < 0), pa.array(given.categories, from_pandas=True)
            )
        else:
            plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiu"
            columns[str(name)] = pa.array(column.to_numpy() if plain else column, from_pandas=True)
    # Measured numbers hardly repeat: looking each up in a dictionary takes longer than to compress it.
    named = [name for name, column in columns.items() if not pa.types.is_floating(column.type)]
    pq.write_table(pa.table(columns), file, compression="zstd", use_dictionary=named)


def open_table(file: Path) -> pq.ParquetFile:
    """The Parquet file of a run's table, whose columns and size are what they may be.

    Raises InputError when the file is not a regular one, is damaged, lacks a column, names one twice or of another kind
    than its name says, or holds more than :mod:`ranksight.core.limits` allows.
    """
    regular_file(file)
    try:
        source = pq.ParquetFile(file)
        held = source.metadata
        _check_schema(source.schema_arrow, file.stem, rows=held.num_rows)
        size = sum(held.row_group(at).total_byte_size for at in range(held.num_row_groups))
        # One value that is repeated takes no room in the file, whatever the number of rows.
        most = max(limits.TABLE_SMALL, limits.TABLE_GROWTH * file.stat().st_size) // 8
        cells = held.num_rows * len(source.schema_arrow)
        if cells > min(most, limits.TABLE_CELLS) or size > limits.TABLE_BYTES:
            raise ValueError(
                f"{held.num_rows} rows of {len(source.schema_arrow)} columns, {size} bytes, are too many for its size"
            )
        return source
    except _WRONG as error:
        raise _damaged(file, error) from error


def read_table(file: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """A table of a run, or these columns of it; texts that the file holds once for many rows are no larger here.

    Raises InputError as :func:`open_table`; when a column is missing, a kernel has no name, a rank cannot be, or its
    texts would fill the memory.
    """
    try:
        with open_table(file) as source:
            schema = source.schema_arrow
            names = list(schema.names if columns is None else columns)
            if missing := [name for name in names if name not in schema.names]:
                raise ValueError(f"it has no column {missing[0]}")
            plain = [name for name in names if _is_text(schema.field(name).type)]
            threads = source.metadata.num_rows * len(names) > MANY
            if not plain:
                table = source.read(columns=names, use_threads=threads)
        if plain:
            with pq.ParquetFile(file, metadata=source.metadata, read_dictionary=plain) as source:
                table = source.read(columns=names, use_threads=threads)
        for name in plain:
            at, column = table.column_names.index(name), table.column(name)
            if _text_size(column) > limits.TABLE_BYTES:
                raise ValueError(f"the texts of {name} are too long")
            table = table.set_column(at, name, column.cast(schema.field(name).type))
        if "kernel" in names and _nameless(table.column("kernel")):
            raise ValueError("a kernel has no name")
        if "rank" in names:
            if table.column("rank").null_count:
                raise ValueError("a row has no rank")
            check_ranks(_plain(table.column("rank")), f"the rows of {file}")
        if file.stem == "counters":
            for name in (name for name in names if name not in COUNTER_KEYS):
                values = _plain(table.column(name))
                # A difference of counters may be below zero, by the error of both; no clock runs backwards.
                least = 0.0 if metric(name).unit == "s" else -limits.VALUE
                if (at := beyond(values, least)) is not None:
                    raise ValueError(f"row {at + 1} has {values[at]:g} of {name}, which no counter or clock holds")
        return table
    except _WRONG as error:
        raise _damaged(file, error) from error


def read_frame(file: Path, columns: Sequence[str] | None = None, ranks: float = np.inf) -> pd.DataFrame:
    """What :func:`read_table` reads of a run of so many `ranks`, as pandas has it.

    Raises InputError as :func:`read_table`; when all of a message table is read, as
    :func:`ranksight.core.contract.check_messages`.
    """
    table = read_table(file, columns)
    try:
        frame: pd.DataFrame = table.to_pandas(use_threads=table.num_rows * table.num_columns > MANY)
    except Exception as error:  # what the file says of pandas' own types may be anything
        raise _damaged(file, error) from error
    if file.stem == "messages" and columns is None:
        check_messages(frame, str(file), ranks)
    return frame


def read_arrays(file: Path, columns: Sequence[str] | None = None) -> Columns:
    """The counters that :func:`read_table` reads, as arrays; InputError as there."""
    table = read_table(file, columns)
    try:
        kernels, code = _kernels(table)
        values = {name: _numbers(table.column(name)) for name in table.column_names if name not in COUNTER_KEYS}
        return Columns(kernels, code, _plain(table.column("rank")), values)
    except _WRONG as error:
        raise _damaged(file, error) from error


def _kernels(table: pa.Table) -> tuple[tuple[str, ...], Index]:
    """The distinct kernels of a table, as the file lists them or else sorted, and the place of each row's among
    them."""
    column = table.column("kernel").combine_chunks()
    listed = pa.types.is_dictionary(column.type)
    column = column if listed else column.dictionary_encode()
    names = tuple(map(str, column.dictionary.to_pylist()))
    if len(set(names)) < len(names):
        raise ValueError("it lists a kernel twice")
    code = _plain(column.indices).astype(np.intp)
    if listed:
        return names, code
    order = sorted(range(len(names)), key=names.__getitem__)
    return tuple(names[at] for at in order), np.argsort(order)[code]


def _numbers(column: pa.ChunkedArray) -> Array:
    """A column of numbers, NaN where it has none."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return np.asarray(_plain(column), dtype=np.float64)


def _plain(column: pa.ChunkedArray | pa.Array) -> NDArray[Any]:
    """A column of numbers as numpy has it: a view where each row has one, as pyarrow's own conversion loads pandas."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    # Columns of a table without rows have whatever type nothing has.
    if whole.null_count or pa.types.is_boolean(whole.type) or not pa.types.is_primitive(whole.type):
        return np.asarray(whole.to_numpy(zero_copy_only=False))
    return np.asarray(np.from_dlpack(whole))


def _damaged(file: Path, error: Exception) -> InputError:
    said = " ".join(str(error).split())[:200]
    return InputError(f"{file} cannot be read: {said}", "the file is damaged; measure this run again")


def _check_schema(schema: pa.Schema, table: str, rows: int) -> None:
    """Raise ValueError where a column is missing, there twice, or not of the kind that its name says.

    Columns of a table without rows have whatever type nothing has.
    """
    if missing := [name for name in REQUIRED.get(table, ()) if name not in schema.names]:
        raise ValueError(f"it has no column {missing[0]}")
    if len(set(schema.names)) != len(schema.names):
        raise ValueError("it names a column twice")
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if not rows and not pa.types.is_nested(kind):
            continue
        if field.name in (TEXTS if table != "counters" else ("kernel",)):
            fits = _is_text(kind)
        elif table == "counters" or field.name in NUMBERS:
            fits = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        else:
            fits = not pa.types.is_nested(kind)
        if not fits:
            raise ValueError(f"its column {field.name} is of type {str(field.type)[:40]}")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _text_size(column: pa.ChunkedArray) -> int:
    """Bytes of the texts of a column of dictionaries, written out."""
    import pyarrow.compute as pc  # takes as long as all else to import, and what we write has no such columns

    return sum(
        pc.sum(pc.take(pc.binary_length(chunk.dictionary).cast(pa.int64()), chunk.indices)).as_py() or 0
        for chunk in column.chunks
    )


def _nameless(column: pa.ChunkedArray) -> bool:
    return bool(column.null_count) or any(
        chunk.dictionary.null_count for chunk in column.chunks if pa.types.is_dictionary(chunk.type)
    )
