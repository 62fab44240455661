"""Settings of a run of the benchmarks: folders, and how much to do."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.methods.answers import Method

ROOT = Path(__file__).resolve().parent.parent
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
"""What Open MPI asks for in containers."""


def peak_memory() -> float:
    """Largest resident memory of this process since it was started, in bytes; NaN where the system does not report it.

    The kernel's high-water mark: the one of getrusage outlives the start of a program and so holds the parent's.
    """
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="ascii")) if status.is_file() else None
    return float(found[1]) * 1024 if found else math.nan


class Skipped(Exception):
    """Why a benchmark cannot run here."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of a run.

    Attributes
    ----------
    extrap_python : Path or None
        Interpreter of the environment that holds Extra-P.
    quick : bool
        A tenth of the work, for a first look.
    freeze : bool
        Record splits that are not frozen yet.
    cache : Path or None
        Folder that keeps Extra-P's answers from one run to the next.
    data : Path
        The real measurements.
    kills, inputs : int
        How many kills and hostile inputs.
    seed : str
        Which of them.
    jobs : int
        Processes at once that read hostile inputs.
    keep : Path or None
        Folder of the samples of hostile inputs, and of what those that were read came to.
    """

    extrap_python: Path | None = None
    quick: bool = False
    freeze: bool = False
    cache: Path | None = None
    data: Path = ROOT.parent / "shared" / "data"
    kills: int = 200
    inputs: int = 100_000
    seed: str = "1"
    jobs: int = 1
    keep: Path | None = None

    def methods(self, strong_scaling: bool = False) -> list[Method]:
        """The methods that are compared; those of Extra-P only where its interpreter is named."""
        from benchmarks.methods.engine import Engine
        from benchmarks.methods.extrap import ExtraP
        from benchmarks.methods.power import Last, Power

        methods: list[Method] = [Engine(), Engine(alone=True)]
        if self.extrap_python is not None:
            methods.append(ExtraP(self.extrap_python, cache=self.cache))
            if strong_scaling:
                methods.append(ExtraP(self.extrap_python, negative=True, cache=self.cache))
        methods.append(Power())
        if strong_scaling:
            methods.append(Last())
        return methods
