"""What is compiled once and used again: files in ``$XDG_CACHE_HOME/ranksight/<name>/<key>/`` (``~/.cache`` by default).

The key is a hash of all that the file depends on.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path


def compiler() -> str | None:
    """The C compiler: ``$CC``, or the first that is found; None where there is none."""
    return next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))), None)


def made_once(name: str, depends: Iterable[bytes], make: Callable[[], bytes | None]) -> bytes | None:
    """The file `name` as it was made before from all that it `depends` on, else as `make` makes it, kept if it can."""
    digest = hashlib.sha256()
    for each in depends:
        digest.update(each + b"\0")
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    place = root / "ranksight" / name / digest.hexdigest()[:24]
    with suppress(OSError):
        return (place / name).read_bytes()
    made = make()
    if made is not None:
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=place, delete=False) as file:
                file.write(made)
            os.replace(file.name, place / name)
    return made
