"""Parts of the tracer by themselves: prototypes, wrappers, symbols, files."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksight.comm.tracer import fortran, wrappers
from ranksight.comm.tracer.callsites import UNKNOWN, CallSites
from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.operations import RULES
from ranksight.comm.tracer.prototypes import parse
from ranksight.comm.tracer.rawfile import HEAD, MAGIC, PEER, RECORD, THREAD, RankTrace, read
from ranksight.comm.tracer.tables import tabulate
from ranksight.core.errors import InputError, ToolError
from ranksight.core.symbols import plain_names, read_symbols

HEADER = """
# 1 "mpi.h"
typedef int (MPI_Handler_function)(MPI_Comm *, int *, ...);
extern __attribute__((visibility("default"))) int MPI_Send(const void *buf, int count, MPI_Datatype datatype,
    int dest, int tag, MPI_Comm comm) __attribute__((pointer_with_type_tag(MPI,1,3)));
int PMPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int MPI_Init(int *argc, char ***argv); int PMPI_Init(int *argc, char ***argv);
int MPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup);
int PMPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup);
int MPI_Pcontrol(const int level, ...); int PMPI_Pcontrol(const int level, ...);
double MPI_Wtime(void); double PMPI_Wtime(void);
int MPI_Only_here(int a);
MPI_Fint MPI_Comm_c2f(MPI_Comm comm); MPI_Fint PMPI_Comm_c2f(MPI_Comm comm);
int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]);
int PMPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]);
int MPI_Send_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int PMPI_Send_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int MPI_Barrier(MPI_Comm comm); int PMPI_Barrier(MPI_Comm comm);
int MPI_Win_fence(int assert, MPI_Win win); int PMPI_Win_fence(int assert, MPI_Win win);
int MPI_Query_thread(int *provided); int PMPI_Query_thread(int *provided);
"""


def test_prototypes_are_found_in_any_dress() -> None:
    found = parse(HEADER)
    assert found["MPI_Send"].parameters[0].bare == "void*"
    assert [p.bare for p in found["MPI_Waitall"].parameters] == ["int", "MPI_Request*", "MPI_Status*"]
    assert found["MPI_Group_range_incl"].parameters[2].declare("a2") == "int a2[][3]"
    assert found["MPI_Wtime"].result == "double"
    assert found["MPI_Init"].parameters[1].bare == "char***"
    assert "MPI_Pcontrol" not in found  # cannot be passed on
    assert "MPI_Only_here" not in found  # has no profiled twin
    assert "MPI_Handler_function" not in found


def test_a_header_without_mpi_is_refused() -> None:
    with pytest.raises(ToolError, match="declares no MPI_Send"):
        parse("int printf(const char *format, ...);")


def test_wrappers_are_generated_by_rule_or_by_the_communicator_they_name() -> None:
    functions = wrappers.wrapped(parse(HEADER))
    assert {f.name for f in functions} == {
        "MPI_Send", "MPI_Init", "MPI_Group_range_incl", "MPI_Waitall", "MPI_Send_c", "MPI_Barrier", "MPI_Win_fence",
        "MPI_Query_thread",
    }  # fmt: skip
    kinds = wrappers.operations(functions)
    assert kinds["Send"] == "s"
    assert kinds["Barrier"] == "c"
    assert "Send_c" not in kinds
    numbers = {name: number for number, name in enumerate(kinds)}
    code = wrappers.generate(functions, numbers, kinds)
    assert f"rs_send(&c, {numbers['Send']}, a1, a2, a3, a4, a5);" in code
    assert f"rs_on_win(&c, {numbers['Win_fence']}, a1);" in code
    assert f"rs_plain(&c, {numbers['Query_thread']});" in code
    lines = fortran.generate(functions, numbers)
    assert "RS_EXPORT void mpi_send_f08_(" in lines
    assert "mpi_send_f08ts_(" in lines
    assert "mpi_send_c_" not in lines
    assert "{" not in wrappers.fill(RULES["Sendrecv"].after, dict.fromkeys(["Sendrecv", "Sendrecv_recv"], 1))


def test_every_rule_names_operations_that_it_declares() -> None:
    import re

    for name, rule in RULES.items():
        declared = {name, *(other for other, _ in rule.also)}
        assert set(re.findall(r"#(\w+)", rule.after + rule.before)) <= declared, name
        assert rule.kind in "srcpgiwo"


def test_names_of_static_functions_from_a_program(tmp_path: Path) -> None:
    source = tmp_path / "main.c"
    source.write_text(
        "static __attribute__((noinline)) int inner(int x) { return x * 3; }\n"
        "int outer(int x) { return inner(x) + 1; }\nint main(int c, char **v) { return outer(c); }\n"
    )
    program = tmp_path / "app"
    if subprocess.run(["cc", "-O1", "-o", program, source], capture_output=True).returncode != 0:
        pytest.skip("no C compiler")
    table = read_symbols(program)
    assert table is not None
    for name in ("inner", "outer", "main"):
        at = table.names.index(name)
        start, size = int(table.starts[at]), int(table.sizes[at])
        segment = next(s for s in table.segments if s["vaddr"] <= start < s["vaddr"] + s["memsz"])
        offset = start - int(segment["vaddr"]) + int(segment["offset"])
        assert table.find(np.array([offset, offset + size - 1], dtype=np.uint64)) == [name, name]
    assert table.find(np.array([1 << 40], dtype=np.uint64)) == [None]


def test_what_is_no_program_has_no_names(tmp_path: Path) -> None:
    for content in (b"", b"#!/bin/sh\n", b"\x7fELF\x02\x01" + b"\xff" * 200, b"\x7fELF\x01\x01" + bytes(60)):
        file = tmp_path / "file"
        file.write_bytes(content)
        assert read_symbols(file) is None
    assert read_symbols(tmp_path / "absent") is None


def test_clones_have_their_function_s_name() -> None:
    assert plain_names(["solve.constprop.0", "halo.isra.0.cold", "work._omp_fn.0", "a.part.3"]) == [
        "solve", "halo", "work._omp_fn.0", "a",
    ]  # fmt: skip


# ---- files ----------------------------------------------------------------------------------------------------------

OPERATIONS = b"Send\ts\nRecv\tr\nBarrier\tc\nFinalize\to\n"


def chunk(tag: bytes, item: int, data: bytes) -> bytes:
    return struct.pack("=4sIQ", tag, item, len(data)) + data + bytes(-len(data) % 8)


def trace_bytes(rank: int = 0, size: int = 1, records: int = 3, end: bool = True, **head: int) -> bytes:
    values = dict.fromkeys(HEAD, 0) | {"rank": rank, "size": size, "use_tsc": 1, "cpu_mode": 1}
    values |= {"init_begin": 0, "init_end": 1000, "final_begin": 2_000_001_000}
    values |= {"init_mono": 5, "final_mono": 1_000_000_005} | head  # 2 GHz
    table = np.zeros(records + 1, RECORD)
    table["key"][0] = 2**64 - 1
    for i in range(1, records + 1):
        table[i]["pc"] = 0x401000 + 16 * i
        table[i]["key"] = size | ((i - 1) % 3) << 32 | 4 << 48
        table[i]["count"], table[i]["bytes"], table[i]["inside"], table[i]["compute"] = 10, 80, 2_000_000, 4_000_000
        table[i]["before"] = 0x401000
    peers = np.zeros(2, PEER)
    peers[1]["record"], peers[1]["peer"], peers[1]["count"], peers[1]["bytes"] = 1, -1, 10, 80
    content = MAGIC + struct.pack("=II", 2, 0x01020304)
    content += chunk(b"HEAD", 8, struct.pack(f"={len(HEAD)}Qd", *values.values(), 0.5))
    content += chunk(b"OPER", 1, OPERATIONS) + chunk(b"MAPS", 1, b"400000-500000 r-xp 00000000 08:01 7 /no/such/file\n")
    content += chunk(b"THRD", 8, struct.pack(f"={len(THREAD)}Q", *([0] * len(THREAD))))
    content += chunk(b"RECS", RECORD.itemsize, table.tobytes()) + chunk(b"PEER", PEER.itemsize, peers.tobytes())
    return content + (chunk(b"DONE", 1, b"") if end else b"")


def test_a_trace_is_read_and_tabulated(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"rank-{rank:06d}.trace").write_bytes(trace_bytes(rank, 2))
    traces, lost = read_folder(tmp_path, 2)
    assert lost == []
    tables = tabulate(traces)
    assert tables.messages["operation"].value_counts().to_dict() == {"Send": 2, "Recv": 2, "Barrier": 2}
    assert (tables.messages["size_class"] == 8).all()
    np.testing.assert_allclose(tables.messages["seconds"], 1e-3)
    np.testing.assert_allclose(tables.ranks["wall_time"], 1.0)
    np.testing.assert_allclose(tables.ranks["compute_time"], 3 * 2e-3)
    assert tables.messages["kernel"].iloc[0] == "(no symbol) [file]"  # 0x40100f, one before the return address
    assert tables.peers["peer"].tolist() == [-1, -1]
    assert tables.messages.set_index(["rank", "operation"]).loc[(0, "Send"), "peers"] == 1


def test_a_file_of_several_ranks_is_read_as_files_of_each(tmp_path: Path) -> None:
    (tmp_path / "rank-000000.trace").write_bytes(b"".join(trace_bytes(rank, 5) for rank in (0, 2, 1)))
    (tmp_path / "rank-000003.trace").write_bytes(trace_bytes(3, 5))
    (tmp_path / "rank-000002.trace").write_bytes(trace_bytes(2, 5, how=3, number=15))  # before it was gathered
    traces, lost = read_folder(tmp_path)
    assert [trace.head["rank"] for trace in traces] == [0, 1, 2, 3]
    assert {trace.ended for trace in traces} == {"finalize"}
    assert lost == ["rank 4 left no trace: killed, started without the tracer, or the disk was full"]
    (tmp_path / "rank-000000.trace").write_bytes(trace_bytes(0, 5) + trace_bytes(1, 5)[:-20])
    with pytest.raises(InputError, match=r"rank-000000.trace, byte \d+: "):
        read_folder(tmp_path)
    (tmp_path / "rank-000000.trace").write_bytes(trace_bytes(0, 5) + b"more")
    with pytest.raises(InputError, match="rank-000000.trace, byte .*: is not a trace; the trace is damaged"):
        read_folder(tmp_path)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damage_is_an_error_of_ours(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    content = bytearray(trace_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
        broken = True
    else:
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] ^= data.draw(st.integers(1, 255))
        broken = False
    file = tmp_path_factory.getbasetemp() / "damaged.trace"
    file.write_bytes(bytes(content))
    try:
        (trace,) = read(file)
    except InputError as error:
        assert str(file) in str(error)
    else:
        assert not broken
        assert isinstance(trace, RankTrace)
        tabulate([trace])


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty: the rank was killed"),
        (b"PK\x03\x04" + bytes(20), "is not a trace"),
        (trace_bytes(end=False), "is cut off"),
        (MAGIC + struct.pack("=II", 9, 0x01020304), "has format version 9"),
        (MAGIC + struct.pack("=II", 2, 0x04030201), "other byte order"),
        (trace_bytes(rank=5, size=2), "impossible numbers"),
    ],
)
def test_each_damage_is_named(tmp_path: Path, content: bytes, what: str) -> None:
    file = tmp_path / "rank-000000.trace"
    file.write_bytes(content)
    with pytest.raises(InputError, match=what):
        read(file)


def test_traces_that_do_not_belong_together(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no trace; check that the program calls MPI_Init"):
        read_folder(tmp_path, 2)
    (tmp_path / "rank-000000.trace").write_bytes(trace_bytes(0, 1))
    (tmp_path / "rank-000000-77.trace").write_bytes(trace_bytes(0, 1, init_begin=1))
    with pytest.raises(InputError, match="each of 2 processes .* takes itself for the only one"):
        read_folder(tmp_path, 2)
    (tmp_path / "rank-000001.trace").write_bytes(trace_bytes(1, 4))
    with pytest.raises(InputError, match="more than one MPI program"):
        read_folder(tmp_path, 4)


def test_a_call_from_nowhere_has_no_name() -> None:
    places = CallSites()
    trace = RankTrace({"rank": 0}, 1e-9, (), ((0x1000, 0x2000, 0, "/no/such/file"),), [])
    sites = places.sites(trace, np.array([0x10, 0x1801, 0x9000], dtype=np.uint64))
    known, names = places.kernels()
    assert names[np.searchsorted(known, sites)].tolist() == [UNKNOWN, "(no symbol) [file]", UNKNOWN]


def test_a_folder_of_traces_is_a_format(tmp_path: Path) -> None:
    from ranksight.core.reading import READERS
    from ranksight.core.testing import check_reader

    for rank in range(2):
        (tmp_path / f"rank-{rank:06d}.trace").write_bytes(trace_bytes(rank, 3))
    reader = READERS["pmpi"]
    file = tmp_path / "rank-000001.trace"
    check_reader(reader, tmp_path)
    assert reader.recognises(file, file.read_bytes()[:4096])
    assert not reader.recognises(tmp_path.parent, b"")
    (reading,) = reader.read(tmp_path)
    assert reading.configuration == {"ranks": 3.0}
    assert reading.notes == ("rank 2 left no trace: killed, started without the tracer, or the disk was full",)
    assert reading.counters is not None
    assert reading.messages is not None
    assert set(reading.tables) == {"peers", "phases", "ranks"}
