"""Programs that end in every way, in surroundings that go wrong, alone and under the tracer: their exit codes and
outputs have to be the same, and their traces read or refused in one line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.settings import AS_ROOT, ROOT, Skipped
from ranksight.campaign.collecting import COLLECTORS
from ranksight.campaign.launching import Launch, Template
from ranksight.core.errors import RanksightError

PROGRAMS = ROOT / "tests" / "comm" / "programs"
WAYS: tuple[tuple[str, ...], ...] = (
    ("nothing",), ("fork",), ("failed",), ("freed",), ("outstanding",), ("handler",), ("uncompleted",), ("status",),
    ("exit",), ("_exit",), ("late", "0"), ("late", "1"), ("buffered",), ("many", "100000"),
    *((way, "slowly") for way in ("abort", "term", "segv", "stack", "MPI_Abort", "kill")),
)  # fmt: skip
"""Arguments of ``ends.c``."""
LIMITS = {
    "the file may not grow": "ulimit -f 1",
    "no core file, small stack": "ulimit -c 0; ulimit -s 512",
    "few open files": "ulimit -n 64",
}
"""What a shell sets before the program starts."""


def cases() -> list[tuple[str, str, tuple[str, ...], str, dict[str, str]]]:
    """Name, program, arguments, what goes wrong, and variables of each case."""
    found = [(" ".join(way), "ends.c", way, "", {}) for way in WAYS]
    ends = [way for way in WAYS if way[0] in ("nothing", "_exit", "segv", "MPI_Abort", "status")]
    for way in ends:
        found += [
            (f"{way[0]}, {what}", "ends.c", way, what, {})
            for what in (*LIMITS, "the folder is gone", "the disk is full")
        ]
        found.append((f"{way[0]}, not gathered", "ends.c", way, "", {"RANKSIGHT_TRACE_GATHER": "0"}))
    found += [("threads", "threads.c", (), "", {})]
    found += [(f"spawn {how}", "spawn.c", (how, "3"), "", {}) for how in ("one", "several", "chain")]
    return [
        *found,
        ("no spawn", "spawn.c", ("alone",), "", {}),
        ("threads, the disk is full", "threads.c", (), "the disk is full", {}),
    ]


class Runs:
    """Compiles and runs the programs in `folder`."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("mpicc") is None or shutil.which("mpirun") is None:
            raise Skipped("no MPI is installed")
        self.folder = folder
        folder.mkdir(parents=True)
        self._programs: dict[str, Path] = {}
        self.full = self._full()

    def _full(self) -> Path | None:
        """A folder on a file system without room; None where it cannot be mounted."""
        place = self.folder / "full"
        place.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", "size=4k,mode=700", "tmpfs", str(place)]
        if shutil.which("mount") is None or subprocess.run(words, capture_output=True).returncode:
            return None
        return place

    def close(self) -> None:
        """Give the file system back."""
        if self.full is not None:
            subprocess.run(["umount", str(self.full)], check=True)

    def program(self, name: str) -> Path:
        """The compiled program."""
        if name not in self._programs:
            target = self.folder / Path(name).stem
            words = ["mpicc", "-O2", "-w", "-pthread", "-o", str(target), str(PROGRAMS / name)]
            subprocess.run(words, check=True, capture_output=True, cwd=self.folder)
            self._programs[name] = target
        return self._programs[name]

    def case(self, program: str, words: Sequence[str], what: str, variables: dict[str, str]) -> str:
        """What differs where a program runs under the tracer; "" where nothing does.

        Raises
        ------
        Skipped
            When the case cannot be made here.
        """
        place = self.folder / "traces"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        if what == "the disk is full":
            if self.full is None:
                raise Skipped("no file system can be mounted")
            place = self.full
            for file in place.iterdir():
                file.unlink()
            with (place / "filler").open("wb") as filler:
                os.posix_fallocate(filler.fileno(), 0, 4096)
        command = ("mpirun", "--oversubscribe", "-n", "{ranks}", str(self.program(program)), *words)
        launch = Template(command).fill({"ranks": 2})
        (step,) = COLLECTORS["pmpi"].steps(launch, place)
        if what == "the folder is gone":
            shutil.rmtree(place)
        environment = {**os.environ, **AS_ROOT, "OMPI_MCA_btl": "^ofi,uct,usnic,openib"}
        alone = _run(_limited(launch.command, what), environment)
        traced = _run(_limited(step.command, what), {**environment, **step.environment, **variables})
        if alone != traced:
            return f"alone {alone}, traced {traced}"
        return self._read(launch, place) if place.exists() else ""

    def _read(self, launch: Launch, place: Path) -> str:
        try:
            COLLECTORS["pmpi"].collect(launch, place)
        except RanksightError as error:
            return "" if "\n" not in str(error) else f"a message of several lines: {error}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""


def _limited(command: Sequence[str], what: str) -> Sequence[str]:
    """The command with the program behind a shell that sets its limits."""
    if what not in LIMITS:
        return command
    at = list(command).index("env") if "env" in command else list(command).index("-n") + 2
    return (*command[:at], "sh", "-c", f'{LIMITS[what]}; exec "$@"', "sh", *command[at:])


def _run(command: Sequence[str], environment: dict[str, str]) -> tuple[int, tuple[str, ...]]:
    """Exit code, and what was printed, in an order of its own as ranks print at once."""
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return -1, ("no end",)
    return done.returncode, tuple(sorted(done.stdout.splitlines()))


def run_cases(folder: Path, every: int = 1) -> tuple[int, int, list[str]]:
    """Run each `every`-th case: how many were run, how many could not be, and what differed."""
    runs = Runs(folder)
    found: list[str] = []
    done = skipped = 0
    try:
        for name, program, words, what, variables in cases()[::every]:
            try:
                if differs := runs.case(program, words, what, variables):
                    found.append(f"{name}: {differs}")
                done += 1
            except Skipped:
                skipped += 1
    finally:
        runs.close()
    return done, skipped, found


if __name__ == "__main__":
    print(*run_cases(Path(sys.argv[1]), int(sys.argv[2])), sep="\n")
