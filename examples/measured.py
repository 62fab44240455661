"""The bundled measurements of ``ranksight demo``.

``heat.tar.xz`` in this folder holds the experiments that :mod:`ranksight.examples.record` made, without raw output.
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path, PurePosixPath

from ranksight.core.errors import InputError

ARCHIVE = Path(__file__).with_name("heat.tar.xz")
MENDED = "mended"
"""Folder of the second version of the program."""
PARTS = ("experiment", "check", f"{MENDED}/experiment", f"{MENDED}/check")
LEFT_OUT = frozenset({"raw", ".campaign.lock"})


def unpack(folder: Path) -> None:
    """Write the bundled experiments into `folder`: ``experiment`` and ``check``, and those of the mended program.

    Raises
    ------
    InputError
        When the archive is missing or damaged.
    """
    try:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(folder, filter="data")
    except (OSError, tarfile.TarError, EOFError) as error:
        raise InputError(f"{ARCHIVE} cannot be read: {error}", "install ranksight again") from error


def pack(folder: Path, archive: Path = ARCHIVE) -> None:
    """Write the archive from the folder of a recording; names of hosts, folders and users are left out."""
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(path for part in PARTS for path in (folder / part).rglob("*")):
            place = path.relative_to(folder)
            if not path.is_file() or LEFT_OUT & set(place.parts):
                continue
            content = path.read_bytes()
            if path.name == "run.json":
                content = _anonymous(content, folder)
            entry = tarfile.TarInfo(str(PurePosixPath(place)))
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))


def _anonymous(content: bytes, folder: Path) -> bytes:
    run = json.loads(content)
    inside = f"{folder.resolve()}/"
    run["command"] = [word.replace(inside, "./") for word in run["command"]]
    run["environment"] = {}
    run["source"] = [text.replace(inside, "") for text in run["source"]]
    return json.dumps(run, indent=1).encode()
