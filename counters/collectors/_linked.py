"""Which shared libraries a program is linked to."""

from __future__ import annotations

import shutil
import subprocess


def linked_libraries(program: str) -> str:
    """What ``ldd`` says of `program`, its libraries' libraries too; empty for a static one."""
    path, ldd = shutil.which(program), shutil.which("ldd")
    if path is None or ldd is None:
        return ""
    try:
        done = subprocess.run([ldd, path], capture_output=True, text=True, errors="replace", check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
