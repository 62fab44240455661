"""Files written atomically: readers see the old content or the new one, never a part."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ranksight.core import limits
from ranksight.core.errors import InputError, readable, writable
from ranksight.core.log import log

_ELSEWHERE = "name a file in a folder that can be written"


def regular_file(path: Path) -> None:
    """Refuse what is not a regular file: a pipe would wait for ever, a device never end."""
    with readable(path):
        mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is not a regular file", "name a file that the tool wrote")


def leads_out(path: Path, folder: Path) -> bool:
    """Whether `path`, its links followed, lies outside of `folder`; links that lead in a circle do not."""
    # not Path.resolve, which raises RuntimeError where links lead in a circle
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def with_name(path: Path) -> Path:
    """`path` by a name that names can be made of: ``.`` and ``..`` are written out.

    Raises InputError when it has none, as ``/``.
    """
    found = path if path.name not in ("", "..") else path.resolve()
    if not found.name:
        raise InputError(f"{path} has no name to name a result by", "name the result with -o")
    return found


def read_bytes(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes; see :func:`opened`."""
    with opened(path, limit) as stream:
        return stream.read(os.fstat(stream.fileno()).st_size)


@contextmanager
def opened(path: Path, limit: int) -> Iterator[BinaryIO]:
    """A regular file of at most `limit` bytes, open for reading.

    It is opened without waiting, and what was opened is checked: neither a pipe nor a device, nor one that takes the
    place of a file meanwhile, is read. Raises InputError when it is not a regular file, larger, or cannot be read.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
            found = os.fstat(stream.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{path} is not a regular file", "name a file that the tool wrote")
            if found.st_size > limit:
                raise InputError(f"{path} is larger than {limit >> 20} MiB", "is it this tool's output?")
            yield stream
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        if "\0" not in str(path):
            raise
        raise InputError(f"{path} cannot be read: {error}") from error


def read_json(file: Path) -> dict[str, Any]:
    """The object that a JSON file holds; InputError naming the file where it holds none."""
    try:
        content = json.loads(read_bytes(file, limits.JSON).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not valid JSON: {error}", "the file is damaged or not ours") from error
    if not isinstance(content, dict):
        raise InputError(f"{file} holds no JSON object", "the file is damaged or not ours")
    return content


def json_text(content: Mapping[str, Any]) -> str:
    """The text of a JSON file that people may look into."""
    return json.dumps(content, indent=1, default=str) + "\n"


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file under another name, sync it, and move it to its place: the file there is always complete."""
    with _replacing(file) as sink:
        sink.write(json_text(content).encode("utf-8"))


def check_output(path: Path, force: bool = False) -> None:
    """Refuse, before work is spent on it, a file that stands already or could not be written.

    Raises InputError.
    """
    _check_kind(path)
    if path.exists() and not force:
        raise InputError(f"{path} exists already", "name another file, or give --force to replace it")
    with writable(path, _ELSEWHERE):
        # Access rights are not enough: the file system may be read-only, or full.
        tempfile.TemporaryFile(prefix=f".{path.name}.", dir=path.absolute().parent).close()


def refuse_link(path: Path, kind: str) -> None:
    """InputError where `path`, which a `kind` (``"file"`` or ``"folder"``) is to take the place of, is a link."""
    if path.is_symlink():
        raise InputError(f"{path} is a link and is not replaced", f"name what it leads to, or another {kind}")


def _check_kind(path: Path) -> None:
    """Refuse to put a file where a folder, a link, a device or a pipe is.

    A link would be replaced, or followed to what may be anybody's.
    """
    with contextlib.suppress(OSError):  # there is none, or who writes it says why
        refuse_link(path, "file")
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            raise InputError(f"{path} is a {'folder' if stat.S_ISDIR(mode) else 'device or pipe'}", "name a file")


def write_output(path: Path, content: str | bytes) -> None:
    """Write a text or bytes that a user asked for; see :func:`output`."""
    with output(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def output(path: Path) -> Iterator[BinaryIO]:
    """What a user asked for, written under another name, synced, then moved to its place with the rights of the umask.

    Raises InputError when it cannot be written.
    """
    with writable(path, _ELSEWHERE):
        _check_kind(path)
        with _replacing(path) as file:
            yield file


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file of a name that nobody can know before, which takes the place of `path` once it is on disk; OSError."""
    _remove_left(path)
    with _unfinished(path) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            log("wrote %s, %d bytes", path, file.tell())
            os.replace(file.name, path)
        finally:
            Path(file.name).unlink(missing_ok=True)
    sync(path.absolute().parent)


def _unfinished(path: Path) -> BinaryIO:
    """A new file next to `path`, locked for as long as it is open: :func:`_remove_left` leaves it alone."""
    while True:
        file = path.with_name(_unused(f".{path.name}.")).open("xb")
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.exists(file.name):  # nobody took it for left in between
            return file
        file.close()


def _remove_left(path: Path) -> None:
    """Remove what processes that were killed while they wrote `path` have left next to it."""
    ours = re.compile(re.escape(f".{path.name}.") + "[0-9a-f]{8}")
    for entry in os.scandir(path.absolute().parent):
        if ours.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            with contextlib.suppress(OSError), open(entry.path, "rb+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(entry.path)


def sync(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Wait until a folder and all in it is on disk."""
    for root, _, files in os.walk(folder):
        for name in files:
            sync(Path(root) / name)
        sync(Path(root))


def new_folder(parent: Path, prefix: str) -> Path:
    """Make a folder of an unused name, with the rights that the umask leaves; OSError where that is not possible."""
    folder = parent / _unused(prefix)
    folder.mkdir()
    return folder


def _unused(prefix: str) -> str:
    return f"{prefix}{os.urandom(4).hex()}"


_HELD, _REPLACED = ".held", "replaced"
_EXCHANGE, _HERE = 2, -100
"""``RENAME_EXCHANGE`` (linux/fs.h) and ``AT_FDCWD`` (fcntl.h)."""
_FRESH = 60.0
"""Seconds in which another process has surely locked the folder that it made."""


class Staging:
    """A folder ``.NAME-...`` next to `place`, in which its new content is made; a context manager.

    It is locked while it is open, so that :func:`recover` knows what a process that was killed has left. Raises OSError
    when the folder cannot be made.

    Attributes
    ----------
    path : Path
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.path = new_folder(place.parent, f".{place.name}-")
        self._lock = os.open(self.path / _HELD, os.O_RDWR | os.O_CREAT, 0o666)
        _locked(self._lock)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def put(self, name: str) -> None:
        """Move the folder `name` in it to its place, what was there before into it: in one step where the system can.

        Raises OSError when it cannot; the place then holds what it held.
        """
        new = self.path / name
        if not os.path.lexists(self.place):
            os.rename(new, self.place)
        elif not _exchange(new, self.place):
            os.rename(self.place, self.path / _REPLACED)
            try:
                os.rename(new, self.place)
            except OSError:
                os.rename(self.path / _REPLACED, self.place)
                raise
        sync(self.place.absolute().parent)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or a file system without locks
        return False
    return True


def _exchange(one: Path, other: Path) -> bool:
    """Let two paths change places in one step; False where the system or the file system cannot.

    Raises OSError when the paths cannot be renamed.
    """
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        return False
    if library.renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number), str(other))


def recover(place: Path) -> None:
    """Remove staging folders of a place that no process holds any more; put back what was moved away from it."""
    # The whole name, as the name of another place may have the same beginning.
    ours = re.compile(re.escape(f".{place.name}-") + "[0-9a-f]{8}")
    try:
        left = [entry for entry in place.absolute().parent.iterdir() if ours.fullmatch(entry.name) and entry.is_dir()]
    except OSError:
        return
    for folder in left:
        try:
            handle = os.open(folder / _HELD, os.O_RDWR)
        except OSError:
            try:  # killed before it was locked
                if time.time() - folder.stat().st_mtime > _FRESH:
                    folder.rmdir()
            except OSError:
                pass  # not empty: not ours
            continue
        try:
            if _locked(handle):
                if (folder / _REPLACED).exists() and not os.path.lexists(place):
                    os.rename(folder / _REPLACED, place)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)
