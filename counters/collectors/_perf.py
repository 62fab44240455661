"""What the perf collectors share: whether perf may work here, running it per rank, reading back what it recorded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import pandas as pd

from ranksight.campaign.collecting import Availability
from ranksight.campaign.launching import Launch
from ranksight.core.errors import ToolError
from ranksight.core.records import dataclass
from ranksight.counters.attributing import by_object
from ranksight.counters.installing import how_to_install
from ranksight.counters.perfscript import BLOCK, Samples, read

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
LOCKED = Path("/proc/sys/kernel/perf_event_mlock_kb")
DEVICES = Path("/sys/bus/event_source/devices")
_CORE_DEVICES = re.compile(r"cpu|cpu_core|cpum_cf|armv\d\w*pmu\w*|armv\d_\w+|arm_\w*pmu|power\d\w*|nvidia_\w+|riscv\w*")
_SOFTWARE_TYPE = 1


def may_sample(paranoid: Path = PARANOID) -> Availability:
    """Whether perf is here and the kernel lets a user sample his own programs."""
    if shutil.which("perf") is None:
        return Availability(False, "perf is not installed", how_to_install("perf"))
    try:
        level = int(paranoid.read_text())
    except (OSError, ValueError):
        return Availability(False, "the kernel was built without performance events", "ask for a kernel that has them")
    if level > 2 and os.geteuid() != 0:
        return Availability(
            False,
            f"kernel.perf_event_paranoid is {level}: only root may sample",
            "sudo sysctl -w kernel.perf_event_paranoid=2, or ask the site's administrators to",
        )
    return Availability(True)


@lru_cache(maxsize=1)
def record() -> str:
    """``perf record`` with the options of all recordings.

    Build ids are of no use, and their cache would fill the user's home. Since perf 5.1 a thread that listens for BPF
    programs adds a second to every recording unless an option disables it.
    """
    try:
        said = subprocess.run(
            ["perf", "--version"], capture_output=True, text=True, errors="replace", check=False
        ).stdout
    except OSError:
        said = ""
    found = re.search(r"(?<!\d)(\d+)\.(\d+)", said)
    recent = found is not None and (int(found[1]), int(found[2])) >= (5, 1)
    return "perf record -q -B -N --no-bpf-event" if recent else "perf record -q -B -N"


def core_pmu(devices: Path = DEVICES) -> str:
    """Name of the processor's counter unit as the kernel lists it; empty where there is none."""
    try:
        names = sorted(entry.name for entry in devices.iterdir())
    except OSError:
        return ""
    return next((name for name in names if _CORE_DEVICES.fullmatch(name)), "")


def has_hardware(devices: Path = DEVICES) -> Availability:
    """Whether the processor's counters can be reached."""
    if core_pmu(devices):
        return Availability(True)
    return Availability(
        False,
        "the processor's counters cannot be reached: the kernel lists no unit of them (common in virtual machines)",
        "measure on a node that is not a virtual machine or has a virtual PMU; callgrind counts, perf-clock times here",
    )


def buffer_pages(ranks: int, locked: Path = LOCKED) -> int:
    """Pages of each rank's buffer, a power of two, so that all ranks of a node fit what a user may lock.

    The kernel allows ``perf_event_mlock_kb`` per processor and user; one page a buffer is its header.
    """
    try:
        allowed = int(locked.read_text()) * 1024
    except (OSError, ValueError):
        allowed = 516 * 1024
    page = os.sysconf("SC_PAGE_SIZE")
    share = allowed // page // max(1, min(ranks, os.cpu_count() or 1) if os.geteuid() else 1) - 1
    return min(64, 1 << max(1, share.bit_length() - 1)) if share > 1 else 1


def recorded_events(file: Path) -> dict[str, int]:
    """What perf really recorded: each event and the kernel's type of it (0 hardware, 1 software, 3 cache, 4 raw).

    Raises ToolError when perf cannot read the file back.
    """
    done = subprocess.run(
        ["perf", "evlist", "-v", "-f", "-i", str(file)], capture_output=True, text=True, errors="replace", check=False
    )
    types = re.findall(r"(?m)^(\S+): type: (\d+)", done.stdout)
    # newer versions leave out a type of 0, the generic hardware events
    for name in re.findall(r"(?m)^(\S+): (?!type:)[a-z_]+", done.stdout):
        types.append((name, "0"))
    if done.returncode or not types:
        why = (done.stderr.strip() or "it names no event").splitlines()[-1]
        raise ToolError(f"perf cannot read back {file.name}: {why}", "was the program killed before perf could finish?")
    return {name: int(number) for name, number in types}


def refuse_software(file: Path, wanted: Mapping[str, str]) -> None:
    """Refuse hardware events that the kernel served as a software clock.

    Where there is no PMU, ``perf record -e cycles`` succeeds without a word and records ``cpu-clock``. `wanted`
    (mapping of str to str): event as given to perf, and the metric it is for.

    Raises ToolError.
    """
    found = recorded_events(file)
    software = sorted(name for name, kind in found.items() if kind == _SOFTWARE_TYPE)
    if software:
        raise ToolError(
            f"perf served a hardware event as a software clock ({', '.join(software)} in {file.name} for "
            f"{', '.join(sorted(wanted.values()))}): its counts would be times",
            "use --collector perf-clock here, or a machine with a PMU",
        )


def script(file: Path) -> Samples:
    """Read the samples in perf's `file`. Raises ToolError when ``perf script`` fails."""
    # -v: only so does perf write C++ functions with their parameters, as valgrind does
    fields = ["-F", "pid,time,period,event,ip,sym,dso", "--show-mmap-events"]
    command = ["perf", "script", "-v", "-f", "--no-inline", *fields, "-i", str(file)]
    environment = {**os.environ, "PERF_CONFIG": os.devnull, "LC_ALL": "C"}
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, env=environment) as process,
    ):
        stream = process.stdout
        assert stream is not None  # asked for by PIPE
        samples = read(iter(lambda: stream.read(BLOCK), b""), f"perf script of {file.name}")
        if process.wait() != 0:
            said.seek(0)
            lines = said.read(65536).decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
            raise ToolError(f"perf script failed on {file.name}: {lines[-1]}", "measure this run again")
    return samples


@dataclass(frozen=True)
class Sampled:
    """Samples of all ranks."""

    periods: pd.DataFrame  # ``event``, ``kernel``, ``rank``, ``samples``, ``period`` of the application's kernels
    left_out: pd.DataFrame
    """``event``, ``rank``, ``group`` (``mpi`` or ``other``), ``kernel`` (the object file), ``samples``, ``period``."""
    by_name: float  # samples in run-time functions that were given to the application for their names

    def by_object(self, metric: str | None = None, scale: float = 1.0) -> pd.DataFrame:
        """What became no kernel (:mod:`ranksight.core.leftout`), in `scale` of the periods' unit.

        Of each event by its own name; as `metric` where one is named, of a recording of a single event.
        """
        parts = pd.concat([self.periods.assign(group="application"), self.left_out], ignore_index=True)
        parts = parts.assign(value=parts["period"] * scale)
        return pd.concat(
            [by_object(rows, metric or str(event)) for event, rows in parts.groupby("event", sort=False)],
            ignore_index=True,
        )


def gather(files: Mapping[int, Path], launch: Launch) -> Sampled:
    """Read every rank's file. Raises ToolError when no function of the application was hit on any rank."""
    tables = [script(file).table.assign(rank=rank) for rank, file in files.items()]
    table = pd.concat(tables, ignore_index=True)
    ours = table["group"] == "application"
    if not ours.any():
        raise ToolError(
            f"of {int(table['samples'].sum())} samples none hit a function of {launch.program}",
            "the run is too short to be sampled, or the program is stripped of symbols",
        )
    own = table[ours].assign(kernel=_stubs(table[ours]["kernel"]))
    sums = ["samples", "period"]
    return Sampled(
        own.groupby(["event", "kernel", "rank"], sort=True, as_index=False)[sums].sum(),
        table[~ours].groupby(["event", "rank", "group", "kernel"], sort=True, as_index=False)[sums].sum(),
        float(own.loc[own["by_name"].astype(bool), "samples"].sum()),
    )


def _stubs(kernels: pd.Series) -> pd.Series:
    """Give linkage stubs (``exp@plt``) to the function they lead to, where it was hit too."""
    names = set(kernels)
    targets = {name.split(" [")[0]: name for name in names if " [" in name}
    found = {
        name: targets.get(base, base)
        for name in names
        if (base := name.removesuffix("@plt").removeprefix("*ABS*")) != name
    }
    return kernels.replace(found)
