"""The bundled measurements of ``ranksight demo --example``.

``heat.tar.xz`` beside this file holds the experiments and the machine of one ``ranksight demo``, without raw output.
``python -m ranksight.examples.measured FOLDER`` writes it anew from the folder of a demo.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path, PurePosixPath

from ranksight.core.errors import InputError

ARCHIVE = Path(__file__).with_name("heat.tar.xz")
PARTS = ("experiment", "check", "this-node.toml")
LEFT_OUT = frozenset({"raw", ".campaign.lock"})
KEPT = ("processor", "cores", "machine")
"""What of a run's environment is kept."""


def unpack(folder: Path) -> None:
    """Write the bundled experiments ``experiment`` and ``check`` and the platform ``this-node.toml`` into `folder`.

    Raises
    ------
    InputError
        When the archive is missing or damaged.
    """
    try:
        with tarfile.open(ARCHIVE) as held:
            held.extractall(folder, filter="data")
    except (OSError, tarfile.TarError, EOFError) as error:
        raise InputError(
            f"{ARCHIVE} cannot be read: {error}", "install ranksight again, or run 'ranksight demo'"
        ) from error


def pack(folder: Path, archive: Path = ARCHIVE) -> None:
    """Write the archive from the folder of a demo; names of hosts, folders and users are left out."""
    with tarfile.open(archive, "w:xz", preset=9) as made:
        for path in sorted(
            path
            for part in PARTS
            for path in ((folder / part).rglob("*") if (folder / part).is_dir() else [folder / part])
        ):
            place = path.relative_to(folder)
            if not path.is_file() or LEFT_OUT & set(place.parts):
                continue
            content = path.read_bytes()
            if path.name == "run.json":
                content = _anonymous(content, folder)
            entry = tarfile.TarInfo(str(PurePosixPath(place)))
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))


def _anonymous(content: bytes, folder: Path) -> bytes:
    run = json.loads(content)
    inside = f"{folder.resolve()}/"
    run["command"] = [word.replace(inside, "./") for word in run["command"]]
    run["environment"] = {name: text for name, text in run["environment"].items() if name in KEPT}
    run["source"] = [text.replace(inside, "") for text in run["source"]]
    return json.dumps(run, indent=1).encode()


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
