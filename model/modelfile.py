"""The file of a model: a ZIP archive of a text and of columns of numbers, written as one and read with suspicion.

``model.json`` holds all but numbers and names that are many; where such stand, it names the column that has them:
``{"$array": "3"}`` is the content of ``3.npy`` as an array, ``{"$list": "3"}`` the same as a list, None where a number
is missing (an array from :data:`LISTED` numbers on), ``{"$texts": "3"}`` the lines of UTF-8 that it holds, and
``{"$texts": "3", "$which": "4"}`` those of its lines that column 4 numbers.

Nothing is compressed and columns begin at multiples of 64 bytes, so that they are mapped into memory, and only what is
asked of a model is read from disk. ``numpy.load`` and ``unzip`` open the file as well.

The text names the version that wrote the file, and every part of the archive has a checksum: a file that cannot be
read, and is as it was written, comes from another version and is to be fitted again; any other is damaged. Files of
other schema versions are refused by name: a fit takes seconds.
"""

from __future__ import annotations

import io
import itertools
import json
import mmap
import struct
import tokenize
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ranksight import __version__
from ranksight.core import limits
from ranksight.core.errors import ContractError, InputError
from ranksight.core.files import check_output, opened, output, read_bytes
from ranksight.model.plaindata import Stored, listed

SCHEMA_VERSION = 14
KIND = "ranksight model"
HEAD = "model.json"
MANY = 32
"""Numbers or names of a list from which on they become a column."""
LISTED = 1 << 16
"""Numbers of a column from which on it is read as an array, where it was a list: lists take ten times the memory."""
_ALIGNED = 64
_PADDING = 0xD935
"""The kind of an extra field of a ZIP archive that aligns what follows it, as Android's zipalign has it."""
_ZIP = b"PK\x03\x04"
_LOCAL = 30
"""Bytes of the header before each part of a ZIP archive, less the name and the extra field."""
_HEAD = ("schema_version", "kind", "made_by")
_WHOLE = tuple(np.iinfo(kind) for kind in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"))
_AGAIN = "fit it again: ranksight fit EXPERIMENT -o MODEL"
_DAMAGED = "the file is damaged or not ours"
_BROKEN = (
    zipfile.BadZipFile,
    struct.error,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    SyntaxError,
    tokenize.TokenError,
)
"""What is raised where an archive is not whole; the last two by numpy, for the header of a column."""


def ours(path: Path) -> bool:
    """Whether a model's file is at `path`, whatever its version and state."""
    try:
        with path.open("rb") as file:
            return KIND.encode() in file.read(512)
    except OSError:
        return False


# ---- writing --------------------------------------------------------------------------------------------------------


def write(path: Path, content: Mapping[str, Any], force: bool = False) -> None:
    """Write `content`, plain data and arrays, with kind and schema version.

    Raises InputError when there is a file already and `force` is not given, it cannot be written, or it would be larger
    than :func:`read` takes.
    """
    check_output(path, force)
    columns: list[NDArray[Any]] = []
    head = {"schema_version": SCHEMA_VERSION, "kind": KIND, "made_by": __version__}
    plain = {name: _packed(value, columns) for name, value in content.items() if name not in _HEAD}
    text = json.dumps({**head, **plain}, separators=(",", ":"), allow_nan=False).encode()
    most = max((column.size for column in columns), default=0)
    size = len(text) + sum(column.nbytes + 3 * _ALIGNED for column in columns)
    if len(text) > limits.MODEL_HEAD or size > limits.MODEL or most > limits.MODEL_NUMBERS:
        raise InputError(
            f"{path} would have {size >> 20} MiB, which is more than can be read again",
            "fit fewer metrics at once with --metric",
        )
    with output(path) as file, zipfile.ZipFile(file, "w") as archive:
        _add(archive, file, HEAD, text)
        for at, column in enumerate(columns):
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(column))
            _add(archive, file, f"{at}.npy", header.getvalue(), column.reshape(-1).view(np.uint8))


def _add(archive: zipfile.ZipFile, file: BinaryIO, name: str, *parts: bytes | NDArray[np.uint8]) -> None:
    """Add a part of an archive that begins at a multiple of :data:`_ALIGNED` bytes."""
    entry = zipfile.ZipInfo(name)
    blank = -(file.tell() + _LOCAL + len(name) + 4) % _ALIGNED
    entry.extra = struct.pack("<HH", _PADDING, blank) + bytes(blank)
    entry.file_size = sum(map(len, parts))  # decides on how many bytes sizes take
    with archive.open(entry, "w") as sink:
        for part in parts:
            sink.write(part if isinstance(part, bytes) else part.data)


def _packed(content: Any, columns: list[NDArray[Any]]) -> Any:
    """Plain data with the arrays and long lists of numbers moved into `columns`."""
    if isinstance(content, Stored):
        content = content.present()
    if isinstance(content, Mapping):
        return {str(name): _packed(value, columns) for name, value in content.items()}
    if isinstance(content, np.ndarray):
        columns.append(_narrow(np.ascontiguousarray(content)))
        return {"$array": str(len(columns) - 1)}
    if isinstance(content, list | tuple):
        if len(content) >= MANY and (texts := _texts(list(content), columns)) is not None:
            return texts
        column = _column(list(content)) if len(content) >= MANY else None
        if column is None:
            return [_packed(value, columns) for value in content]
        columns.append(_narrow(column))
        return {"$list": str(len(columns) - 1)}
    return content


def _texts(texts: list[Any], columns: list[NDArray[Any]]) -> dict[str, str] | None:
    """Move a list of texts into `columns`, each text once where they repeat; None where it holds another thing."""
    if set(map(type, texts)) != {str} or any("\n" in text for text in texts):
        return None
    distinct = list(dict.fromkeys(texts))
    repeated = len(distinct) <= len(texts) // 4
    lines = "\n".join(distinct if repeated else texts)
    try:
        columns.append(np.frombuffer(lines.encode(), dtype=np.uint8))
    except UnicodeEncodeError:  # half of a pair of surrogates, which JSON holds
        return None
    reference = {"$texts": str(len(columns) - 1)}
    if repeated:
        place = {text: at for at, text in enumerate(distinct)}
        columns.append(_narrow(np.array([place[text] for text in texts])))
        reference["$which"] = str(len(columns) - 1)
    return reference


def _column(content: list[Any]) -> NDArray[Any] | None:
    """A list of numbers of one kind, or of equally long lists of such, as an array; None where it is another."""
    kinds = set(map(type, content))
    if kinds == {list}:
        width = len(content[0])
        if not width or set(map(len, content)) != {width}:
            return None
        flat = _column(list(itertools.chain.from_iterable(content)))
        return None if flat is None else flat.reshape(len(content), width, *flat.shape[1:])
    if kinds <= {float, type(None)}:
        return np.array(content, dtype=np.float64)  # numpy reads None as NaN
    if kinds == {bool}:
        return np.array(content, dtype=bool)
    if kinds == {int} and min(content) >= -(2**63) and max(content) < 2**63:
        return np.array(content, dtype=np.int64)
    return None


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in as few bytes as they need."""
    if column.dtype.kind not in "iu" or not column.size:
        return column
    least, most = int(column.min()), int(column.max())
    kind = next(kind for kind in _WHOLE if kind.min <= least and most <= kind.max)
    return column.astype(kind.dtype, copy=False)


# ---- reading --------------------------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Any]:
    """What a model's file holds, plain data and arrays.

    Raises InputError when the file is not a model, is damaged, or was written by another version.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a model")
        with opened(path, limits.MODEL) as stream:
            packed = stream.read(len(_ZIP)) == _ZIP
            return _unpacked(path, stream) if packed else _from_json(path)
    except InputError as error:
        raise InputError(error.what, error.remedy or "make a model with 'ranksight fit'") from error


def _from_json(path: Path) -> dict[str, Any]:
    """The JSON object of a text, which no model's file of this version is: why it is none."""
    try:
        content = json.loads(read_bytes(path, limits.MODEL_HEAD).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not valid JSON: {error}",
            "the file is damaged or not ours; 'ranksight import' reads tables, 'ranksight fit' makes models",
        ) from error
    return _checked(path, content)


def _unpacked(path: Path, stream: BinaryIO) -> dict[str, Any]:
    """The text of an archive, with the columns that it names."""
    try:
        with zipfile.ZipFile(stream) as archive:
            entry = archive.getinfo(HEAD)
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > limits.MODEL_HEAD:
                raise InputError(f"{path}: {HEAD} is compressed or too large", _DAMAGED)
            content = _checked(path, json.loads(archive.read(entry).decode("utf-8")))
            columns = _Columns(path, archive, stream)
            return {name: columns.within(value) for name, value in content.items()}
    except (*_BROKEN, RecursionError) as error:
        raise InputError(f"{path} is damaged: {error}", "copy it again, or fit the model again") from error


class _Columns:
    """The columns of an archive, mapped into memory."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, stream: BinaryIO) -> None:
        self.path, self.archive = path, archive
        self.map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)

    def within(self, content: Any) -> Any:
        """Plain data with the columns in their places."""
        if isinstance(content, dict):
            if len(content) == 1 and isinstance(name := content.get("$array"), str):
                return self.column(name)
            if len(content) == 1 and isinstance(name := content.get("$list"), str):
                column = self.column(name)
                return column if column.size >= LISTED else listed(column)
            if isinstance(name := content.get("$texts"), str) and len(content) <= 2:
                return self.texts(name, content.get("$which"))
            return {name: self.within(value) for name, value in content.items()}
        if isinstance(content, list):
            return [self.within(value) if isinstance(value, dict | list) else value for value in content]
        return content

    def texts(self, name: str, which: str | None) -> list[str]:
        """The lines of a column, or those that another column numbers."""
        lines = self.column(name).tobytes().decode().split("\n")
        if which is None:
            return lines
        chosen = self.column(which)
        if chosen.dtype.kind != "u" or chosen.ndim != 1 or (chosen >= len(lines)).any():
            raise InputError(f"{self.path}: column {which} numbers no texts", _DAMAGED)
        return [lines[at] for at in chosen.tolist()]

    def column(self, name: str) -> NDArray[Any]:
        """One column; it cannot be written to."""
        entry = self.archive.getinfo(f"{name}.npy")
        with self.archive.open(entry) as part:
            np.lib.format.read_magic(part)
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(part)
            before = part.tell()
        size = int(np.prod(shape, dtype=object))
        names, extra = struct.unpack_from("<HH", self.map, entry.header_offset + _LOCAL - 4)
        start = entry.header_offset + _LOCAL + names + extra + before
        if (
            entry.compress_type != zipfile.ZIP_STORED
            or dtype.kind not in "fiub"
            or fortran
            or size > limits.MODEL_NUMBERS
            or before + size * dtype.itemsize != entry.file_size
        ):
            raise InputError(f"{self.path}: column {name} is not an array of numbers", _DAMAGED)
        return np.frombuffer(self.map, dtype, size, start).reshape(shape)


def _checked(path: Path, content: Any) -> dict[str, Any]:
    """The object that a model's text holds, if it is one of this version."""
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise InputError(f"{path} is not a model", "make one with 'ranksight fit'")
    version = content.get("schema_version")
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{path}: schema_version is {version!r}", _DAMAGED)
    if version > SCHEMA_VERSION:
        raise InputError(
            f"{path}: schema version {version} is newer than {SCHEMA_VERSION}, which this version reads",
            "install a newer ranksight",
        )
    if version < SCHEMA_VERSION:
        raise InputError(f"{path} was made by an older version of ranksight", _AGAIN)
    return content


@contextmanager
def understanding(path: Path, content: Mapping[str, Any]) -> Iterator[None]:
    """Make sense of what :func:`read` gave; InputError says where that cannot be done, and why."""
    try:
        yield
    except ContractError:  # of a package that is installed, not of the file
        raise
    except InputError as error:
        raise _misread(path, content, error) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        damage = InputError(f"an entry is of another kind than it should be: {error}", "fit the model again")
        raise _misread(path, content, damage) from error


def _misread(path: Path, content: Mapping[str, Any], error: InputError) -> InputError:
    """What to say where the content of a model's file raised `error`."""
    try:
        with zipfile.ZipFile(path) as archive:
            intact = archive.testzip() is None
    except (OSError, *_BROKEN):
        intact = False
    if not intact:
        return InputError(f"{path}: {error.what}", error.remedy)
    maker = f"another version of ranksight, {content.get('made_by')}"
    return InputError(f"{path} was made by {maker}: {error.what}", _AGAIN)
