"""Archives, packed files, arrays and Parquet that went wrong, changed in their own terms."""

from __future__ import annotations

import gzip
import io
import random
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

REALS = (0.0, -1.0, 0.5, 1e300, -1e300, 1e-320, float("nan"), float("inf"), float("-inf"), 2.0**63)
LARGEST = 1 << 22
"""Bytes of what is made."""

Dice = random.Random
Way = Callable[[bytes, Dice], bytes]


def is_tar(content: bytes) -> bool:
    """Whether content is a tar archive."""
    return content[257:262] == b"ustar"


def change_tar(content: bytes, dice: Dice, change: Way) -> bytes:
    """A member changed, by `change` or left out, repeated, renamed or of another type."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        members = [(item, archive.extractfile(item)) for item in archive]
        items = [(item, b"" if stream is None else stream.read()) for item, stream in members]
    at = dice.randrange(len(items))
    item, body = items[at]
    way = dice.randrange(8)
    if way < 4:
        items[at] = item, change(body, dice)
    elif way == 4:
        del items[at]
    elif way == 5:
        items += [items[at]] * dice.choice((1, 1000))
    elif way == 6:
        item.name = dice.choice(("../../tmp/x", "/etc/x", "", "a" * 300, items[0][0].name, "anchor.xml"))
    else:
        item.type = dice.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE))
        item.linkname = dice.choice(("/etc/passwd", "/dev/zero", item.name, "anchor.xml"))
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for item, body in items:
            item.size = len(body)
            archive.addfile(item, io.BytesIO(body))
    return made.getvalue()


def is_zip(content: bytes) -> bool:
    """Whether content is a ZIP archive, as models are."""
    return content[:4] == b"PK\x03\x04"


def change_zip(content: bytes, dice: Dice, change: Way) -> bytes:
    """A member changed, by `change` or left out, renamed or with the content of another."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        items = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    at = dice.randrange(len(items)) if dice.random() < 0.5 else 0  # the first is what the others hang on
    name, body = items[at]
    way = dice.randrange(10)
    if way < 7:
        items[at] = name, change(body, dice)
    elif way == 7:
        del items[at]
    elif way == 8:
        items[at] = dice.choice(("../../tmp/x", "/etc/x", "", "a" * 300, dice.choice(items)[0])), body
    else:
        items[at] = name, dice.choice(items)[1]
    made = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two parts of one name are meant
        packing = zipfile.ZIP_DEFLATED if dice.random() < 0.02 else zipfile.ZIP_STORED
        with zipfile.ZipFile(made, "w") as archive:
            for name, body in items:
                archive.writestr(zipfile.ZipInfo(name), body, packing)
    return made.getvalue()


def is_array(content: bytes) -> bool:
    """Whether content is an array of numpy."""
    return content[:6] == b"\x93NUMPY"


def change_array(content: bytes, dice: Dice) -> bytes:
    """Other values, sizes, types or shapes."""
    array: Any = np.array(np.load(io.BytesIO(content), allow_pickle=False))
    way = dice.randrange(7)
    with np.errstate(all="ignore"):
        if way < 3:
            value = np.array(dice.choice(REALS)).astype(array.dtype)
            array.flat[dice.randrange(array.size) if way < 2 else slice(None)] = value
        elif way == 3:
            array = array[: dice.randrange(len(array) + 1)]
        elif way == 4:
            array = np.concatenate([array] * dice.choice((2, 100)))
        elif way == 5:
            array = array.astype(dice.choice(("u1", "i8", "f8", "f4", "?", "c16", "U3", "S2")))
        else:
            array = array.reshape(dice.choice(((-1,), (1, -1), (-1, 1, 1), array.shape[::-1])), order=dice.choice("CF"))
    made = io.BytesIO()
    np.save(made, array, allow_pickle=False)
    return made.getvalue()


def is_packed(content: bytes) -> bool:
    """Whether content is packed by gzip."""
    return content[:2] == b"\x1f\x8b"


def change_packed(content: bytes, dice: Dice, change: Way) -> bytes:
    """The unpacked content changed, by `change` or repeated, packed twice or with more behind it."""
    body = gzip.decompress(content)
    way = dice.randrange(5)
    if way == 0:
        body *= 20
    elif way == 1:
        return gzip.compress(content, 1)
    elif way == 2:
        return content + dice.choice((content, b"", b"x" * 10, gzip.compress(b"\n" * (1 << 18), 9)))
    else:
        body = change(body, dice)
    return gzip.compress(body[:LARGEST], 1)


def is_parquet(content: bytes) -> bool:
    """Whether content is a Parquet file."""
    return content[:4] == b"PAR1"


def change_parquet(content: bytes, dice: Dice) -> bytes:
    """Columns, values, types or metadata changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(content))
        at = dice.randrange(table.num_columns)
        name, column, rows = table.column_names[at], table.column(at), table.num_rows
        way = dice.randrange(9)
        if way == 0:
            table = table.drop_columns([name])
        elif way == 1:
            table = table.rename_columns([dice.choice((*table.column_names, "", "rank")) for _ in table.column_names])
        elif way == 2:
            nested = pa.array([[[1.0, None]]] * rows) if dice.random() < 0.5 else pa.array([{"a": {"b": 1}}] * rows)
            table = table.set_column(at, name, nested)
        elif way == 3:
            value = dice.choice(
                (None, "x", b"\xff", 1e300, -1.0, float("nan"), float("inf"), 2**62, -5, True, "1" * 9999)
            )
            table = table.set_column(at, name, pa.array([value] * rows))
        elif way == 4:
            values = column.to_pylist()
            values[dice.randrange(rows)] = dice.choice((None, values[0]))
            table = table.set_column(at, name, pa.array(values))
        elif way == 5:
            table = pa.concat_tables([table] * dice.choice((0, 2, 1000)) or [table.slice(0, 0)])
        elif way == 6:
            table = table.append_column(name, column)
        elif way == 7:
            zeros = pa.array([0] * rows, pa.int32())
            table = table.set_column(at, name, pa.DictionaryArray.from_arrays(zeros, pa.array(["x" * 100_000])))
        else:
            table = table.replace_schema_metadata(
                {b"pandas": dice.choice((b"{", b"[]", b'{"index_columns": [1]}', b""))}
            )
        made = io.BytesIO()
        pq.write_table(table, made, compression=dice.choice(("zstd", "none", "snappy")))
        return made.getvalue()
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
