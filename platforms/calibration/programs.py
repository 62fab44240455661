"""Compile and run the measuring programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from types import TracebackType

from ranksight.core.errors import ToolError
from ranksight.platforms.calibration.sampling import Samples, select

_FLAGS = (("-O3", "-march=native"), ("-O3", "-mcpu=native"), ("-O3",))
_TIMEOUT = 600.0
_LINE = re.compile(r"([0-9]+) ([0-9]\.[0-9]+e[+-][0-9]+) ([0-9]+\.[0-9]+)")


class Programs:
    """The measuring programs, compiled at first use into a folder that is removed on leaving the context.

    `compiler`: a C compiler; by default that of ``$CC``, or the first found of cc, gcc and clang. Raises ToolError when
    there is none.
    """

    def __init__(self, compiler: str | None = None) -> None:
        wanted = [compiler] if compiler else [os.environ.get("CC") or "cc", "gcc", "clang"]
        found = next(filter(None, map(shutil.which, wanted)), None)
        if found is None:
            raise ToolError(
                f"no C compiler is found ({', '.join(wanted)})",
                "install gcc (apt install gcc, dnf install gcc), load a module (module load gcc), or set CC",
            )
        self.compiler = found
        self.flags: tuple[str, ...] = ()
        self._folder = tempfile.TemporaryDirectory(prefix="ranksight-calibrate-")
        self._built: dict[str, Path] = {}

    def __enter__(self) -> Programs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def build(self, name: str) -> Path:
        """The program `name`, compiled for this processor, or portably where the compiler cannot."""
        if name in self._built:
            return self._built[name]
        target = Path(self._folder.name) / name
        said = ""
        with as_file(files("ranksight.platforms.calibration")) as sources:
            for flags in (self.flags,) if self.flags else _FLAGS:
                command = [self.compiler, *flags, str(sources / f"{name}.c"), "-o", str(target), "-pthread"]
                done = _run(command)
                if done.returncode == 0:
                    self.flags = flags
                    self._built[name] = target
                    return target
                said = said or " | ".join(line for line in done.stderr.splitlines() if "error" in line)[:400]
        what = f"{self.compiler} cannot compile {name}.c: {said or 'no error was named'}"
        raise ToolError(what, "set CC to a C11 compiler")

    def run(self, name: str, arguments: Sequence[object], label: str) -> Samples:
        """Run a program once; ``timing.h`` says what it prints.

        Raises ToolError when the program fails, hangs, or prints anything else.
        """
        done = _run([str(self.build(name)), *map(str, arguments)])
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            raise ToolError(f"measuring {label} failed: {said[0]}", "free memory and processors, or choose --quick")
        matches = [_LINE.fullmatch(line) for line in done.stdout.splitlines()]
        if len(matches) < 2 or None in matches:
            raise ToolError(f"measuring {label} printed {done.stdout[:80]!r}, no samples")
        rows = [tuple(map(float, match.groups())) for match in matches if match is not None]
        return select(label, [(work, seconds, share) for work, seconds, share in rows])


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        what = f"{command[0]} did not end within {_TIMEOUT:.0f} s"
        raise ToolError(what, "free the machine, or choose --quick") from None
    except OSError as error:
        remedy = "is the folder for temporary files mounted noexec? set TMPDIR to another"
        raise ToolError(f"{command[0]} cannot be run: {error.strerror}", remedy) from error
