"""What is mutated: a small, sound sample of every format, and of models, platforms, expectations and experiments."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import io
import marshal
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.settings import AS_ROOT, ROOT

TESTS = ROOT / "tests"
FILES = {
    "caliper": ("readers/data/caliper/*.cali", "readers/data/caliper/*.json"),
    "thicket": ("readers/data/thicket/*.json",),
    "cachegrind": ("readers/data/valgrind/cachegrind*",),
    "callgrind": ("readers/data/valgrind/callgrind.out.100",),
    "gprof": ("readers/data/gprof/*",),
    "gptl": ("readers/data/gptl/*",),
    "hpctoolkit": ("readers/data/hpctoolkit/*.xml",),
    "ipm": ("comm_readers/data/*.xml",),
    "likwid": ("readers/data/likwid/[!f]*",),
    "mpip": ("comm_readers/data/*.mpiP",),
    "ncu": ("readers/data/gpu/ncu*",),
    "nsys": ("readers/data/gpu/nsys*",),
    "papi": ("readers/data/papi/*",),
    "perf-report": ("readers/data/perf/report.txt",),
    "perf-script": ("readers/data/perf/script*",),
    "perf-stat": ("readers/data/perf/stat*", "readers/data/perf/tagged.txt"),
    "pyinstrument": ("readers/data/pyinstrument/heat.json",),
    "reframe": ("readers/data/reframe/one.log",),
    "rocprof": ("readers/data/gpu/rocprof*",),
    "tau": ("readers/data/tau/MULTI__TIME/profile.0.0.0", "readers/data/tau"),
    "vtune": ("readers/data/vtune/*",),
}
"""Samples of the tests, by reader."""
REAL = {
    "caliper": ("caliper/lulesh*",),
    "extrap": ("extrap/input_1.JSON", "extrap/test1.jsonl", "extrap/talpas_1.txt", "extrap/two_parameter_1.txt"),
    "hpctoolkit": ("hpctoolkit/*",),
    "otf2": ("otf2/ping-pong-otf2",),
    "tau": ("tau/*",),
}
"""Real files of the measurements' folder, where it is present."""
EXTRAP = "PARAMETER ranks\nPOINTS 2 4 8\nREGION main\nMETRIC time\nDATA 1 1.1\nDATA 2 2.1\nDATA 4 4.1\n"
SMPI = "0 init\n1 init\n0 compute 1e6\n0 send 1 7 100 6\n1 recv 0 7 100 6\n0 isend 1 7 10 0\n1 irecv 0 7 10 0\n" \
    "0 wait 0 1 7\n1 waitall\n0 bcast 5 0 1\n1 bcast 5 0 1\n0 allreduce 3 1e3 0\n1 allreduce 3 1e3 0\n" \
    "0 scatter 6 6 0 2 2\n1 scatter 6 6 0 2 2\n0 allgatherv 2 2 2 2 0\n0 reducescatter 1 2 500 4\n" \
    "0 finalize\n"  # fmt: skip
ALLPROF = (
    "# htor's PMPI Tracer 1.0 Output File\n# hostname: node1.(none)\n\nMPI_Init:1000:0:0:2000\n"
    "MPI_Allreduce:4100:1:2:3:6,8,8:3:91,0,1:4200\nMPI_Alltoallv:4210:1:2:3:4,4,4:5:6:7:4,4,4:91,0,1:4220\n"
    "MPI_Finalize:5000:-\n"
)
PINGPONG = (
    "op,bytes,start,duration\nMPI_Send,8,1.0,1e-6\nMPI_Recv,8,1.0,3e-6\nMPI_Send,16,2.0,2e-6\nMPI_Recv,16,2.0,4e-6\n"
)


def pingpong() -> str:
    """Timings of messages from 8 B to 4 MB between two ranks, of 1 us and 10 GB/s."""
    rows = [
        f"MPI_{name},{size},{at + 1}.{turn},{1e-6 + (size / 1e10 if name == 'Recv' or size > 8192 else 0):.9g}"
        for at, size in enumerate(8 << 2 * step for step in range(10))
        for turn in range(3)
        for name in ("Send", "Recv")
    ]
    return "op,bytes,start,duration\n" + "\n".join(rows) + "\n"


TABLE = "ranks,size,kernel,rank,time,flops\n" + "".join(
    f"{p},{n},{kernel},{rank},{n / p:.6g},{n * n}\n"
    for p in (1, 2, 4)
    for n in (10, 20)
    for kernel in ("solve", "<b>exchange</b>")
    for rank in range(p)
)
EXPECTATIONS = """
[expect.time]
work = { growth = "O(n^2 / p)", deviation = "O(p^0.5)" }
"ri*" = "O(log p)"
[rules]
time = ["ring <= work + 2 ring"]
[litmus]
time = "ring"
[parameters]
n = "size"
[measurement]
ranks = "max"
[search]
depth = 1
least_r2 = 0.5
upper = true
[search.terms.p]
powers = ["0", "1/4", "-1"]
logs = ["0", "1"]
"""
SACCT = "JobID|JobName|Elapsed|NTasks|State|NNodes\n" + "".join(
    f"{101 + at}.0|heat|00:0{8 >> at}:30|{2**at}|{state}|1\n"
    for at, state in enumerate(("COMPLETED",) * 3 + ("FAILED",))
)
PROFILE = {
    ("/home/me/heat.py", 24, "solve"): (3, 5, 1.25, 2.5, {("/home/me/heat.py", 60, "main"): (3, 5, 1.25, 2.5)}),
    ("/home/me/heat.py", 60, "main"): (1, 1, 0.5, 3.5, {}),
    ("~", 0, "<method 'Allreduce' of 'mpi4py.MPI.Comm' objects>"): (10, 10, 0.75, 0.75, {}),
}
"""A profile of Python, as ``pstats`` dumps it."""
PROJECT = """# Settings of 'ranksight' in this folder
command = "mpirun -n {ranks} ./heat --total {size}"
experiment = "e.exp"
expectations = "own.toml"
baseline = "e.exp"
collectors = ["callgrind", "pmpi"]
kernels = ["work", "ring"]
history = ["*.exp"]
[measure]
ranks = "1,2,4"
size = [10, 20]
reps = 2
[target]
ranks = 64
size = 20
[jobs]
time = "00:10:00"
shared = true
option = ["--partition=short"]
"""
LINES = {
    "predict": "predict {m} --ranks 64,128 --size 20 --level 0.9 --metric time --format json",
    "diagnose": "diagnose {m} --ranks 64 --size 20 --kernel work --format csv --top 5",
    "plan": "plan {m} --ranks 64..512 --size 20 --budget 20 --ranks-rule '6*n^2' --runs 3 --format json",
    "compare": "compare {e} {e} --ranks 8 --size 20 --threshold 5 --metric instructions --scatter 2 --level 0.95",
    "history": "history {e} {f} --threshold 5 --kernel work --ranks 64 --size 20",
    "export": "export openmetrics {e} --metric time,instructions",
    "fit": "fit {e} -o made.json --metric time --verify largest --force --placement scattered",
    "report": "report {m} -o made.html --ranks 64 --size 20 --title name --force",
    "import": "import csv {t} --parameter ranks --parameter size --kernel kernel --rank rank --metric time "
    "--set nodes=2 -o made.exp --force",
}
"""Command lines whose words are changed; ``{e}`` and ``{f}`` are experiments, ``{m}`` the model of one, ``{t}`` a
table."""


def make(folder: Path, data: Path | None = None, tracer: bool = True) -> None:
    """Write samples to ``folder/<kind>/<name>``: kinds are ``reader-<name>``, ``table``, ``model``, ``platform``,
    ``expectations``, ``project``, ``line`` (of words) and ``experiment``.

    Formats whose packages are not installed are left out, as is the tracer's without an MPI.

    Parameters
    ----------
    folder : Path
    data : Path, optional
        The folder of real measurements.
    tracer : bool
        Whether to run a program for the traces of the tracer.
    """
    for origin, patterns in ((TESTS, FILES), *([] if data is None else [(data / "formats", REAL)])):
        for reader, given in patterns.items():
            if reader == "otf2" and importlib.util.find_spec("otf2") is None:
                continue
            place = folder / f"reader-{reader}"
            place.mkdir(exist_ok=True)
            for file in (file for pattern in given for file in sorted(origin.glob(pattern))):
                target = place / (file.name if origin is TESTS else f"real-{file.name}")
                (shutil.copytree if file.is_dir() else shutil.copyfile)(file, target)
    texts = {
        "reader-extrap/text.txt": EXTRAP,
        "reader-smpi/trace.ti": SMPI,
        "reader-liballprof/pmpi-trace-rank-0.txt": ALLPROF,
        "reader-pingpong/times.csv": PINGPONG,
        "reader-sacct/jobs.txt": SACCT,
        "table/table.csv": TABLE,
        "project/ranksight.toml": PROJECT,
        **{f"line/{verb}.txt": line for verb, line in LINES.items()},
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "table" / "packed.csv.gz").write_bytes(gzip.compress(TABLE.encode()))
    (folder / "reader-cprofile").mkdir()
    (folder / "reader-cprofile" / "heat.prof").write_bytes(marshal.dumps(PROFILE))
    (folder / "reader-extrap-experiment").mkdir()
    _archives(folder)
    if tracer and shutil.which("mpicc") and shutil.which("mpirun"):
        _traces(folder / "reader-pmpi" / "traces")
    _made(folder)


def _archives(folder: Path) -> None:
    sys.path.insert(0, str(TESTS / "helpers"))
    from archives import CubeWriter, Database, save_extrap

    entries = [
        {"coordinate": [p], "median": p, "mean": p, "minimum": p, "maximum": p, "std": 0.0, "repetitions": 2,
         "values": [0, at]}
        for at, p in enumerate((2, 4, 8))
    ]  # fmt: skip
    save_extrap(folder / "reader-extrap-experiment" / "study.extra-p", entries)

    if importlib.util.find_spec("pycubexr") is not None:
        metrics = {
            "time": ("EXCLUSIVE", "DOUBLE", "sec", {0: [1.0, 2.0], 1: [3.0, 4.0]}),
            "visits": ("EXCLUSIVE", "UINT64", "occ", {0: [1, 2], 1: [3, 4]}),
        }
        for reader in ("cube", "cube-mpi"):
            (folder / f"reader-{reader}").mkdir()
            for packed in (False, True):
                tree = ("main", [("MPI_Send", []), ("work<int>", [])])
                CubeWriter()(folder / f"reader-{reader}" / f"p{packed:d}.cubex", tree, [0, 1], metrics, packed)
    values = {1: {0: 1.0, 1: 1.0}, 2: {0: 2.0, 1: 2.0}, 0: {1: 3.0}}
    contexts = [(1, "main", 0, [(2, "work", 0, [])])]
    Database().write(
        folder / "reader-hpctoolkit" / "db", contexts, ["REALTIME (sec)"], [(0, 0, values), (1, 0, values)]
    )


def _traces(place: Path) -> None:
    """Traces of the tracer's test program on two ranks, one of them ended by a signal."""
    from ranksight.campaign.collecting import COLLECTORS
    from ranksight.campaign.launching import Template

    place.mkdir(parents=True)
    program = place.parent.parent / "ends"
    subprocess.run(["mpicc", "-w", "-o", str(program), str(TESTS / "comm" / "programs" / "ends.c")], check=True)
    launch = Template(("mpirun", "--oversubscribe", "-n", "{ranks}", str(program), "nothing")).fill({"ranks": 2})
    (step,) = COLLECTORS["pmpi"].steps(launch, place)
    subprocess.run(
        step.command, env={**os.environ, **AS_ROOT, **step.environment}, check=True, capture_output=True, timeout=120
    )
    program.unlink()


def experiment(place: Path, kernels: tuple[str, ...] = ("work", "ring", "<i>wait</i>")) -> Path:
    """An experiment of known times, with counters, messages and a table of its collector."""
    from ranksight.core.experiment import MESSAGE_COLUMNS, Experiment, Run

    made = Experiment.create(place, "known <program>", ["ranks", "size"])
    for p in (1, 2, 4, 8, 16):
        for n in (10, 20):
            rows = [
                (kernel, rank, 1e-3 * n * n / p * (at + 1) + 1e-4 * np.log2(2 * p), 1e6 * n * n / p, 2e6 * n * n / p)
                for at, kernel in enumerate(kernels)
                for rank in range(p)
            ]
            counters = pd.DataFrame(rows, columns=["kernel", "rank", "time", "instructions", "cycles"])
            sent = [(kernels[0], rank, "Isend", p, 8, 10, 80.0 * n, 1e-5, 1) for rank in range(p)]
            made.add(
                Run({"ranks": p, "size": n}, collector="made", provenance={"time": "measured"}),
                counters,
                pd.DataFrame(sent, columns=list(MESSAGE_COLUMNS)),
                tables={"peers": pd.DataFrame({"rank": range(p), "peer": range(p), "operation": "Isend", "count": 1,
                                               "bytes": 8.0})},
            )  # fmt: skip
    return place


def _made(folder: Path) -> None:
    """An experiment and its model, a platform, expectations."""
    from ranksight.cli.main import main

    for kind in ("experiment", "model", "platform", "expectations"):
        (folder / kind).mkdir()
    place = experiment(folder / "experiment" / "e.exp")
    with contextlib.redirect_stdout(io.StringIO()):
        main(["fit", str(place), "-o", str(folder / "model" / "e.model.json"), "--quiet"])
    for file in (TESTS / "model" / "data").glob("version_*.model.json"):
        shutil.copy(file, folder / "model")
    shutil.copyfile(ROOT / "platforms" / "machines" / "zen4.toml", folder / "platform" / "zen4.toml")
    (folder / "expectations" / "own.toml").write_text(EXPECTATIONS)
