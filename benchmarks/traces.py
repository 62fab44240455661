"""How fast traces and profiles of communication of 1,024 ranks are read.

The files are made here, of a program on a process grid of 16 x 8 x 8: every iteration sends to up to six neighbours,
waits for all, and reduces a number. Traces hold every call, profiles the sums of a call site and rank. Each is read in
a process of its own.
"""

from __future__ import annotations

import importlib.util
import io
import json
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.settings import ROOT, Settings, peak_memory
from benchmarks.table import markdown

TITLE = "Reading communication of 1,024 ranks"
DIMS = (16, 8, 8)
ITERATIONS = 20
FACES = (4608, 9216, 9216)
"""Bytes of a message along each dimension."""


def neighbours(dims: tuple[int, ...]) -> list[list[tuple[int, int]]]:
    """Rank and bytes of each neighbour of every rank."""
    ranks = int(np.prod(dims))
    found: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    place = np.stack(np.unravel_index(np.arange(ranks), dims), axis=1)
    for rank in range(ranks):
        for d, extent in enumerate(dims):
            for step in (-1, 1):
                there = place[rank].copy()
                there[d] += step
                if 0 <= there[d] < extent:
                    found[rank].append((int(np.ravel_multi_index(tuple(there), dims)), FACES[d]))
    return found


def smpi(place: Path, dims: tuple[int, ...]) -> int:
    """Time-independent traces, a file a rank and one that lists them."""
    place.mkdir()
    calls = 0
    for rank, around in enumerate(neighbours(dims)):
        turn = [f"{rank} irecv {peer} 0 {size} 6" for peer, size in around]
        turn += [f"{rank} isend {peer} 0 {size} 6" for peer, size in around]
        turn += [f"{rank} waitall {2 * len(around)}", f"{rank} compute 1.5e6", f"{rank} allreduce 1 1e3 0"]
        lines = [f"{rank} init", *turn * ITERATIONS, f"{rank} finalize"]
        calls += (len(turn) - 1) * ITERATIONS
        (place / f"rank-{rank}.txt").write_text("\n".join(lines) + "\n")
    return calls


def liballprof(place: Path, dims: tuple[int, ...]) -> int:
    """liballprof's files, one a rank."""
    place.mkdir()
    calls = 0
    for rank, around in enumerate(neighbours(dims)):
        comm, now = f"91,{rank},{int(np.prod(dims))}", 2000
        lines = ["# htor's PMPI Tracer 1.0 Output File", "", "MPI_Init:1000:0:0:2000"]
        for _ in range(ITERATIONS):
            for name in ("Irecv", "Isend"):
                for peer, size in around:
                    lines.append(f"MPI_{name}:{now}:140000:{size // 8}:6,8,8:{peer}:7:{comm}:140500:{now + 2}")
                    now += 3
            lines.append(f"MPI_Waitall:{now}:{2 * len(around)}:140500:0:{now + 20}")
            lines.append(f"MPI_Allreduce:{now + 500}:1:2:1:6,8,8:3:{comm}:{now + 540}")
            now += 600
            calls += 2 * len(around) + 2
        (place / f"pmpi-trace-rank-{rank}.txt").write_text("\n".join([*lines, f"MPI_Finalize:{now}:-", ""]))
    return calls


def otf2(place: Path, dims: tuple[int, ...]) -> int:
    """An OTF2 archive, written by the package."""
    import otf2 as package
    from otf2.enums import CollectiveOp, CommFlag, GroupType, LocationType, Paradigm, RegionRole

    calls, around = 0, neighbours(dims)
    with package.writer.open(str(place), timer_resolution=1_000_000) as trace:
        define = trace.definitions
        names = ("main", "exchange", "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce")
        main, exchange, irecv, isend, waitall, allreduce = (
            define.region(name, region_role=RegionRole.FUNCTION) for name in names
        )
        node = define.system_tree_node("node")
        groups = [define.location_group(f"MPI Rank {rank}", system_tree_parent=node) for rank in range(len(around))]
        places = [define.location("Master thread", type=LocationType.CPU_THREAD, group=group) for group in groups]
        define.group("", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=places)
        everyone = list(range(len(around)))
        world = define.group("", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=everyone)
        comm = define.comm("MPI_COMM_WORLD", group=world, flags=CommFlag.NONE)
        for where, mine in zip(places, around, strict=True):
            writer, now = trace.event_writer_from_location(where), 0
            writer.enter(now, main)
            for _ in range(ITERATIONS):
                writer.enter(now, exchange)
                for name in (irecv, isend):
                    for request, (peer, size) in enumerate(mine):
                        writer.enter(now, name)
                        if name is isend:
                            writer.mpi_isend(now, peer, comm, 7, size, request)
                        writer.leave(now + 2, name)
                        now += 3
                writer.enter(now, waitall)
                for request, (peer, size) in enumerate(mine):
                    writer.mpi_irecv(now, peer, comm, 7, size, request)
                writer.leave(now + 20, waitall)
                writer.leave(now + 20, exchange)
                writer.enter(now + 500, allreduce)
                writer.mpi_collective_begin(now + 500)
                size = 8 * len(around)
                writer.mpi_collective_end(now + 540, CollectiveOp.ALLREDUCE, comm, 0, size, size)
                writer.leave(now + 540, allreduce)
                now += 600
                calls += 2 * len(mine) + 2
            writer.leave(now, main)
    return calls


def mpip(place: Path, dims: tuple[int, ...]) -> int:
    """A verbose report of twelve call sites."""
    around = neighbours(dims)
    rule = "-" * 75
    sites = [
        (site, f"kernel_{site}", name) for site, name in enumerate(["Isend", "Irecv", "Waitall", "Allreduce"] * 3, 1)
    ]
    lines = ["@ mpiP", "@ Command : ./halo", "@ Version                  : 3.5.0", "", rule]
    lines += ["@--- MPI Time (seconds) " + rule[:51], rule, "Task    AppTime    MPITime     MPI%"]
    lines += [f"{rank:4d} {2 + rank * 1e-4:.4g} 0.5 25.00" for rank in range(len(around))]
    lines += ["   *       2048        512    25.00", rule, f"@--- Callsites: {len(sites)} " + rule[:50], rule]
    lines += [" ID Lev File/Address        Line Parent_Funct             MPI_Call"]
    lines += [f"{site:3d}   0 halo.c  {site} {kernel} {name}" for site, kernel, name in sites]
    lines += [rule, "@--- Callsite Time statistics (all, milliseconds): 1 " + rule[:20], rule]
    lines += ["Name              Site Rank  Count      Max     Mean      Min   App%   MPI%"]
    for site, _, name in sites:
        lines += [f"{name:17s} {site:4d} {r:4d} {100:6d} 25 20.5 15 10.00 40.00" for r in range(len(around))]
        lines += [f"{name:17s} {site:4d}    * 102400 25 20.5 15 10.00 40.00", ""]
    lines += [rule, "@--- Callsite Message Sent statistics (all, sent bytes) " + rule[:20], rule]
    lines += ["Name              Site Rank   Count       Max      Mean       Min       Sum"]
    for site, _, name in sites:
        if name in ("Isend", "Allreduce"):
            lines += [f"{name:17s} {site:4d} {r:4d} {100:6d} 9216 6912 4608 6.912e+05" for r in range(len(around))]
            lines += [f"{name:17s} {site:4d}    * 102400 9216 6912 4608 7.078e+08", ""]
    lines += [rule, "@--- End of Report " + rule[:56], rule]
    place.write_text("\n".join(lines) + "\n")
    return 6 * 2 * len(around) + 3 * len(around)


def ipm(place: Path, dims: tuple[int, ...]) -> int:
    """A full log: a row a call, size and partner."""
    rows = 0
    around = neighbours(dims)
    with place.open("w") as out:
        out.write('<?xml version="1.0" encoding="iso-8859-1"?>\n<ipm_job_profile>\n')
        for rank, mine in enumerate(around):
            out.write(f'<task ipm_version="2.0.6" mpi_rank="{rank}" mpi_size="{len(around)}" pid="{rank}" >\n')
            out.write('<perf wtime="2.0e+00" utime="1.9e+00" mtime="5.0e-01"></perf>\n<regions n="1" >\n')
            out.write(
                '<region label="ipm_global" nexits="1" wtime="2" mtime="0.5" id="0">\n</region>\n</regions>\n<hash>\n'
            )
            calls = [(name, peer, size) for name in ("Isend", "Irecv") for peer, size in mine]
            calls += [("Waitall", 0, 0), ("Allreduce", 0, 8), ("Allreduce", 0, 40), ("Barrier", 0, 0)]
            for number, (name, peer, size) in enumerate(calls * 3):
                where = f'bytes="{size}" orank="{peer}" region="0" callsite="{number}" count="10" tid="0"'
                out.write(f'<hent key="0x{number:x}" call="MPI_{name}" {where} >1.0e-03 1.0e-05 2.0e-04</hent>\n')
            out.write("</hash>\n</task>\n")
            rows += 3 * len(calls)
        out.write("</ipm_job_profile>\n")
    return rows


def cube(place: Path, dims: tuple[int, ...]) -> int:
    """A CUBE4 archive of twelve kernels with four MPI functions each."""
    ranks, names = int(np.prod(dims)), ("MPI_Isend", "MPI_Irecv", "MPI_Waitall", "MPI_Allreduce")
    regions = ["main", *names, *(f"kernel_{k}" for k in range(12))]
    number = iter(range(1 << 20))
    calls = f'<cnode id="{next(number)}" calleeId="0">'
    for k in range(12):
        calls += f'<cnode id="{next(number)}" calleeId="{len(names) + 1 + k}">'
        calls += (
            "".join(f'<cnode id="{next(number)}" calleeId="{at}"></cnode>' for at, _ in enumerate(names, 1))
            + "</cnode>"
        )
    calls += "</cnode>"
    nodes = next(number)
    metrics = {
        "visits": ("<u8", 100),
        "time": ("<f8", 0.1),
        "bytes_sent": ("<u8", 8192),
        "bytes_received": ("<u8", 8192),
    }
    files: dict[str, bytes] = {}
    described = ""
    for at, (name, (kind, value)) in enumerate(metrics.items()):
        dtype = "DOUBLE" if kind == "<f8" else "UINT64"
        described += f'<metric id="{at}" type="EXCLUSIVE"><disp_name>{name}</disp_name><uniq_name>{name}</uniq_name>'
        described += f"<dtype>{dtype}</dtype><uom></uom><url></url><descr></descr></metric>"
        places = np.arange(nodes, dtype="<i4").tobytes()
        files[f"{at}.index"] = b"CUBEX.INDEX" + struct.pack("<ihBi", 1, 0, 0, nodes) + places
        files[f"{at}.data"] = b"CUBEX.DATA" + np.full(nodes * ranks, value, dtype=kind).tobytes()
    program = "".join(
        f'<region id="{at}" mod="" begin="-1" end="-1"><name>{name}</name><mangled_name/><paradigm/><role/><url/>'
        "<descr/></region>"
        for at, name in enumerate(regions)
    )
    system = "".join(
        f'<locationgroup Id="{r}"><name>p</name><rank>{r}</rank><type>process</type><location Id="{r}"><name>t</name>'
        f"<rank>0</rank><type>thread</type></location></locationgroup>"
        for r in range(ranks)
    )
    anchor = (
        f'<?xml version="1.0" encoding="UTF-8"?><cube version="4.4"><metrics>{described}</metrics><program>{program}'
    )
    anchor += f'{calls}</program><system><systemtreenode Id="0" class="machine"><name>m</name>{system}</systemtreenode>'
    files["anchor.xml"] = f"{anchor}</system></cube>".encode()
    with tarfile.open(place, "w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return 12 * len(names) * ranks


FORMATS: dict[str, tuple[Callable[[Path, tuple[int, ...]], int], str, str]] = {
    "smpi": (smpi, "", "calls"),
    "liballprof": (liballprof, "", "calls"),
    "otf2": (otf2, "otf2", "calls"),
    "mpip": (mpip, "", "lines"),
    "ipm": (ipm, "", "rows"),
    "cube-mpi": (cube, "pycubexr", "values of each metric"),
}
"""What writes a format, the package that it needs, and what it counts."""


def reading(name: str, path: str) -> dict[str, float]:
    """Read one in this process."""
    from ranksight.core.reading import READERS

    reader = READERS[name]
    start = time.process_time()
    (found,) = reader.read(Path(path))
    spent = time.process_time() - start
    rows = 0 if found.messages is None else len(found.messages)
    return {"seconds": spent, "peak": peak_memory(), "rows": rows, "ranks": found.configuration["ranks"]}


def run(settings: Settings) -> str:
    """Table of formats."""
    dims = (4, 4, 4) if settings.quick else DIMS
    table: list[list[object]] = []
    for name, (write, package, what) in FORMATS.items():
        if package and importlib.util.find_spec(package) is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "trace"
            count = write(place, dims)
            files = [place] if place.is_file() else [file for file in place.rglob("*") if file.is_file()]
            size = sum(file.stat().st_size for file in files) / 1e6
            code = "import json; from benchmarks.traces import reading; "
            code += f"print(json.dumps(reading({name!r}, {str(place)!r})))"
            done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        speed = count / found["seconds"]
        table.append(
            [name, f"{found['ranks']:,.0f}", f"{count:,} {what}", size, found["seconds"], speed, found["peak"] / 1e6]
        )
    shape = " x ".join(map(str, dims))
    text = f"{ITERATIONS} iterations on {shape} ranks. CPU seconds of one process, start-up left out.\n\n"
    return text + markdown(["format", "ranks", "holds", "MB", "CPU s", "a second", "peak memory, MB"], table)
