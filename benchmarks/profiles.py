"""How fast profiles are read, in how much memory: callgrind files, the text of perf script, LIKWID's files.

The files are made here, shaped like real ones: a program of some thousand functions whose calls carry inclusive costs,
and samples of some thousand places. Each is read in a process of its own.
"""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.settings import ROOT, Settings, peak_memory
from benchmarks.table import markdown

TITLE = "Reading profiles"
SEED = 5
SIZES = {"callgrind": (50, 1000), "perf lines": (50, 1000), "perf chains": (50,)}
"""Megabytes of each."""


def callgrind(file: Path, megabytes: float) -> None:
    """Write a profile with calls, inlined files and three quarters of its lines costs."""
    generator = random.Random(SEED)
    functions = 5000
    with file.open("w") as out:
        out.write("version: 1\ncreator: callgrind-3.19.0\npid: 1\ncmd: ./app\npart: 1\n\npositions: line\n")
        out.write("events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\n\nob=(1) /home/me/app\n")
        for k in range(functions):
            out.write(f"fl=({k + 1}) /home/me/src/file{k}.c\nfn=({k + 1}) function_{k}\n1 1\n\n")
        piece = []
        while out.tell() < megabytes * 1e6:
            piece.clear()
            for _ in range(2000):
                caller = generator.randrange(functions)
                piece.append(f"fl=({caller + 1})\nfn=({caller + 1})\n")
                for _ in range(10):
                    numbers = generator.randrange(10**6), generator.randrange(10**5), generator.randrange(99)
                    piece.append("+{} {} {} 0 0 {}\n".format(generator.randrange(9), *numbers))
                callee = (7 * caller + generator.randrange(8)) % functions  # functions call a few others, not any
                calls = generator.randrange(1000)
                piece.append(f"cfn=({callee + 1})\ncalls={calls} 5\n* 123456 2345 678 1 2\n\n")
            out.write("".join(piece))
        out.write("totals: 1\n")


def perf(file: Path, megabytes: float, chains: bool = False) -> None:
    """Write samples with times, of functions with skewed shares."""
    generator = random.Random(SEED)
    places = [f"{0x401000 + 16 * k:16x} function_{k % 800} (/home/me/app)" for k in range(4000)]
    weights = [1 / (k + 1) for k in range(len(places))]
    moment = 1000.0
    with file.open("w") as out:
        while out.tell() < megabytes * 1e6:
            piece = []
            for place in generator.choices(places, weights, k=20_000):
                moment += 0.001003
                head = f"app  5843/5843  [001] {moment:13.6f}:    1003009 cpu-clock: "
                piece.append(f"{head}\n\t{place}\n\t{places[0]}\n\t{places[1]}\n\n" if chains else f"{head} {place}\n")
            out.write("".join(piece))


def reading(kind: str, path: str) -> dict[str, float]:
    """Read one file in this process."""
    file = Path(path)
    records = 0
    if kind == "callgrind":
        from ranksight.counters.callgrind_profile import read as read_profile

        start = time.process_time()
        records = len(read_profile(file).functions)
    elif kind == "likwid":
        from ranksight.core.reading import READERS

        reader = READERS["likwid"]
        start = time.process_time()
        for each in sorted(file.rglob("*.txt"))[:100]:
            try:
                records += sum(1 for _ in reader.read(each))
            except Exception as error:  # some hold access errors in place of tables
                if type(error).__name__ != "InputError":
                    raise
    elif kind in ("cube", "pycubexr"):
        take = _cube if kind == "cube" else _pycubexr
        files = sorted(file.rglob("*.cubex"))
        take(files[0])  # what is loaded once is no part of the speed
        times = []
        for _ in range(5):
            start = time.process_time()
            records = sum(map(take, files))
            times.append(time.process_time() - start)
        return {"seconds": min(times), "peak": peak_memory(), "records": records}
    else:
        from ranksight.counters.perfscript import BLOCK
        from ranksight.counters.perfscript import read as read_samples

        start = time.process_time()
        with file.open("rb") as stream:
            records = read_samples(iter(lambda: stream.read(BLOCK), b""), path).total
    return {"seconds": time.process_time() - start, "peak": peak_memory(), "records": records}


def _cube(file: Path) -> int:
    from ranksight.core.reading import READERS

    return sum(0 if one.counters is None else len(one.counters) for one in READERS["cube"].read(file))


def _pycubexr(file: Path) -> int:
    """The exclusive values of all call paths as pycubexr itself gives them, one array a metric and call path."""
    from pycubexr import CubexParser
    from pycubexr.utils.exceptions import MissingMetricError

    count = 0
    with CubexParser(str(file)) as cube:
        nodes = cube.all_cnodes()
        for metric in cube.all_metrics():
            if metric.data_type in ("MINDOUBLE", "MAXDOUBLE"):
                continue
            try:
                values = cube.get_metric_values(metric, cache=False)
            except MissingMetricError:
                continue
            count += sum(len(values.cnode_values(node, convert_to_exclusive=True)) for node in nodes)
    return count


def _apart(kind: str, file: Path) -> dict[str, float]:
    code = f"import json; from benchmarks.profiles import reading; print(json.dumps(reading({kind!r}, {str(file)!r})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(settings: Settings) -> str:
    """Table of files, speed and memory."""
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "profile"
        for kind, sizes in SIZES.items():
            for megabytes in sizes[:1] if settings.quick else sizes:
                if kind == "callgrind":
                    callgrind(file, megabytes)
                else:
                    perf(file, megabytes, chains=kind == "perf chains")
                found = _apart(kind, file)
                size = file.stat().st_size / 1e6
                samples = found["records"] / found["seconds"] if kind != "callgrind" else float("nan")
                speed = size / found["seconds"]
                rows.append([f"{kind}, {size:,.0f} MB", found["seconds"], speed, samples, found["peak"] / 1e6])
    folder = settings.data / "counters" / "spechpc_likwid_icelake"
    if folder.is_dir():
        found = _apart("likwid", folder)
        rows.append(["LIKWID, 100 files of SPEChpc", found["seconds"], float("nan"), float("nan"), found["peak"] / 1e6])
    folder = settings.data / "formats" / "cube"
    if folder.is_dir() and importlib.util.find_spec("pycubexr") is not None:
        ours, theirs = (_apart(kind, folder) for kind in ("cube", "pycubexr"))
        size = sum(file.stat().st_size for file in folder.rglob("*.cubex")) / 1e6
        for name, found in (("CUBE, 11 files, to a checked table", ours), ("the same, pycubexr's own values", theirs)):
            rows.append([name, found["seconds"], size / found["seconds"], float("nan"), found["peak"] / 1e6])
        ratio = f"CUBE: {ours['seconds'] / theirs['seconds']:.2f} times the time of pycubexr's own exclusive values."
    else:
        ratio = "CUBE was not read: its files or pycubexr are not here."
    return f"{ratio} CPU seconds of one process.\n\n" + markdown(
        ["what", "CPU s", "MB/s", "samples/s", "peak memory, MB"], rows
    )
