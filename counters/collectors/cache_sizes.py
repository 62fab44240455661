"""One simulation for all cache sizes: valgrind with a tool of this project, which reads as callgrind's profiles do.

Callgrind simulates one last level a run. The tool (``cache_sizes.c``) sends what misses the first level to caches of
every size at once, and counts reads and writes that miss each of them, per function and call arc. Counts and misses of
each size are those of callgrind with a last level of that size, to the digit but for two things: instructions go to no
cache, and written lines are marked once.

It is compiled against the libraries that an installed valgrind brings for tools, once
(:mod:`ranksight.counters.collectors._compiled`). Where they or a compiler are missing, callgrind runs twice in its
place, for three cache levels and no other size.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.core.arrays import Array
from ranksight.core.log import log
from ranksight.counters.callgrind_profile import Profile
from ranksight.counters.collectors._compiled import compiler, made_once
from ranksight.platforms import SimulatedCache

TOOL = "cachesizes"
TABLE = "cache_sizes"
"""Table of a run: ``kernel``, ``rank``, ``bytes`` (size of a last level behind the first), ``load_misses`` and
``store_misses`` (accesses that such a level does not serve)."""
LARGEST = 128 << 20
_WAYS, _BETWEEN = 16, 24
_CALLS = "calls."
_ARCHITECTURES = {"x86_64": ("amd64-linux", "-DVGA_amd64", "-DVGP_amd64_linux", "-DVGPV_amd64_linux_vanilla")}
_OPTIONS = (
    "-O2",
    "-DVGO_linux",
    "-fno-strict-aliasing",
    "-fno-builtin",
    "-fno-stack-protector",
    "-fomit-frame-pointer",
)
_LOADED_AT = "-Wl,-Ttext-segment=0x58000000"
"""Where valgrind's tools are in memory, out of the way of the program's own addresses."""


def sizes(levels: tuple[SimulatedCache, SimulatedCache, SimulatedCache]) -> tuple[str, ...]:
    """Options of the caches: first level, last, and the others by their number of sets, as the tool expects them.

    The others are the second level, and powers of two and one and a half times these, from what is larger than the
    first to :data:`LARGEST`. Empty where lines of the levels differ in length, which the tool cannot simulate.
    """
    first, second, last = levels
    if len({level.line for level in levels}) > 1:
        return ()
    power, others = 1 << (first.size.bit_length() - 1), {(second.size, second.ways)}
    while power <= LARGEST:
        near = ((power, _WAYS), (power // _WAYS * _BETWEEN, _BETWEEN))
        others.update(each for each in near if first.size < each[0] <= LARGEST)
        power *= 2
    ordered = sorted(others - {(last.size, last.ways)}, key=lambda cache: (cache[0] // cache[1], cache[0]))
    return (first.option, last.option, *(f"{size},{ways},{first.line}" for size, ways in ordered))


def install(folder: Path) -> bool:
    """Put the tool, and links to what else valgrind needs, into ``folder/valgrind``; whether it can be used here."""
    tool = _compiled()
    if tool is None:
        return False
    return _install(tool, folder / "valgrind")


def _install(tool: bytes, place: Path) -> bool:
    system, libexec, _ = _installation() or ("", Path(), Path())
    if place.exists():  # steps may be asked for again
        return True
    place.mkdir()
    for file in libexec.iterdir():
        if file.name.startswith(("vgpreload_core", "default.supp")) or file.suffix == ".xml":
            (place / file.name).symlink_to(file)
    program = place / f"{TOOL}-{system}"
    program.write_bytes(tool)
    program.chmod(0o755)
    return True


def _installation() -> tuple[str, Path, Path] | None:
    """Valgrind's name of this system, the folder of its tools, and that of its libraries; None where one is missing."""
    valgrind = shutil.which("valgrind")
    known = _ARCHITECTURES.get(os.uname().machine)
    if valgrind is None or known is None:
        return None
    system, top = known[0], Path(valgrind).resolve().parent.parent
    named = [Path(os.environ["VALGRIND_LIB"])] if "VALGRIND_LIB" in os.environ else []
    places = [*named, *(top / f"{name}/valgrind" for name in ("libexec", "lib", "lib64")), *top.glob("lib*/*/valgrind")]
    tools = next((place for place in places if (place / f"callgrind-{system}").exists()), None)
    libraries = next((place for place in places if (place / f"libcoregrind-{system}.a").exists()), None)
    return None if tools is None or libraries is None else (system, tools, libraries)


@cache
def _compiled() -> bytes | None:
    """The tool, from the cache where it has been compiled before; None where it cannot be used."""
    return made_once(TOOL, _depends(), _compile)


def _depends() -> Iterator[bytes]:
    """What the tool is made of: its sources, the libraries of this valgrind, and how it is compiled."""
    system, _, libraries = _installation() or ("", Path(), Path())
    with as_file(files("ranksight.counters.collectors")) as sources:
        for source in (sources / "cache_sizes.c", *sorted(sources.glob("cache_*.h"))):
            yield source.read_bytes()
    archives = [libraries / f"lib{part}-{system}.a" for part in ("coregrind", "vex")]
    states = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in archives if path.exists()]
    yield repr((states, compiler(), _OPTIONS, _LOADED_AT)).encode()


def _compile() -> bytes | None:
    """The tool, compiled and tried on a program that does nothing; None where it cannot be used."""
    using, found = compiler(), _installation()
    valgrind = shutil.which("valgrind")
    if using is None or found is None or valgrind is None:
        return None
    system, _, libraries = found
    include = Path(valgrind).resolve().parent.parent / "include" / "valgrind"
    with tempfile.TemporaryDirectory() as name, as_file(files("ranksight.counters.collectors")) as sources:
        place = Path(name)
        program = place / TOOL
        defines = _ARCHITECTURES[os.uname().machine][1:]
        archives = [str(libraries / f"lib{part}-{system}.a") for part in ("coregrind", "vex", "gcc-sup")]
        linked = [archive for archive in archives if Path(archive).exists()]
        command = [
            *(using, *_OPTIONS, *defines, f"-I{include}", str(sources / "cache_sizes.c"), "-o", str(program)),
            *("-static", "-no-pie", "-nodefaultlibs", "-nostartfiles", "-u", "_start", "-s"),
            *(_LOADED_AT, "-Wl,--build-id=none", *linked, "-lgcc"),
        ]
        try:
            made = subprocess.run(command, capture_output=True, check=False, timeout=60)
            if made.returncode == 0:
                tool = program.read_bytes()
                _install(tool, place / "valgrind")
                options = ["--caches=1024,1,64:2048,1,64", f"--out-file={place}/out"]
                tried = [valgrind, "-q", f"--tool={TOOL}", *options, "true"]
                environment = {**os.environ, "VALGRIND_LIB": str(place / "valgrind")}
                made = subprocess.run(tried, capture_output=True, check=False, timeout=60, env=environment)
                if made.returncode == 0 and (place / "out").exists():
                    return tool
            log("cache sizes: %s", made.stderr.decode("utf-8", "replace")[-500:])
        except (OSError, subprocess.TimeoutExpired) as error:
            log("cache sizes: %s", error)
    return None


def sums(profile: Profile) -> dict[str, Profile]:
    """The profile of each sum by its name, that of the counts an empty one: the tool writes all into one file."""
    begins = [at for at, event in enumerate(profile.events) if event.startswith(_CALLS)]
    events = profile.events[: begins[0]] if begins else profile.events
    found = {"": _part(profile, events, 0, profile.calls)}
    for at in begins:
        found[profile.events[at].removeprefix(_CALLS)] = _part(profile, events, at + 1, profile.arc_cost[:, at])
    return found


def _part(profile: Profile, events: tuple[str, ...], first: int, calls: Array) -> Profile:
    """The costs from column `first`, as `events`, over the arcs that were called."""
    columns, called = slice(first, first + len(events)), np.flatnonzero(calls > 0)
    return replace(
        profile,
        events=events,
        self_cost=profile.self_cost[:, columns],
        caller=profile.caller[called],
        callee=profile.callee[called],
        calls=calls[called],
        arc_cost=profile.arc_cost[called, columns],
    )


def as_two_runs(table: pd.DataFrame, second: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Events as callgrind names them in a run with the second-level cache last, and in one with the third.

    `second`: number of the second-level cache among those behind the first.
    """
    small = table.rename(columns={f"r{second}": "DLmr", f"w{second}": "DLmw"})
    large = table.rename(columns={"r0": "DLmr", "w0": "DLmw", "dirty": "DLdmr"}).assign(DLdmw=0.0, ILdmr=0.0)
    return small, large


def by_size(table: pd.DataFrame, options: tuple[str, ...], rank: int) -> pd.DataFrame:
    """Rows of :data:`TABLE` of one rank, kernels and sizes in order. `table`: events by kernel."""
    larger = sorted((int(option.split(",")[0]), number) for number, option in enumerate(options[1:]))
    parts = [
        pd.DataFrame({"bytes": size, "load_misses": table[f"r{number}"], "store_misses": table[f"w{number}"]})
        for size, number in dict(larger).items()
    ]
    rows = pd.concat(parts).rename_axis("kernel").reset_index().sort_values(["kernel", "bytes"], ignore_index=True)
    rows.insert(1, "rank", rank)
    return rows.astype({"rank": "int32", "bytes": "int64"})
