"""The callgrind parser: the manual's own example, every kind of line, damaged and hostile files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksight.core.errors import InputError
from ranksight.counters import attribution
from ranksight.counters.attribution import attribute
from ranksight.counters.callgrind_profile import read

# sizes and names as in the format's specification: main calls func1 once and func2 twice, func1 calls func2 twice
PLAIN = """# callgrind format
events: Cycles Instructions

fl=file1.c
fn=main
16 20 4
cfn=func1
calls=1 50
16 400 90
cfi=file2.c
cfn=func2
calls=3 20
16 400 12

fn=func1
51 100 21
cfi=file2.c
cfn=func2
calls=2 20
51 300 8

fl=file2.c
fn=func2
20 700 30
"""

COMPRESSED = """version: 1
creator: callgrind-3.19.0
cmd: ./a b
part: 1
positions: instr line
events: Ir Dr Dw
summary: 60 6 3

ob=(1) /bin/app
fl=(1) a.c
fn=(1) main
0x401 16 10 1
+3 +1 20 2 1
fi=(2) inl.h
+1 * 5
fe=(1)
* -1 5 0 2
cob=(2) /lib/libm.so.6
cfi=(3) e_exp.c
cfn=(2) exp
calls=7 0x700 5
+2 * 70 7
jump=3 0x500 18
+1 *
jcnd=1/4 0x500 18
* *
cfn=(3) helper
calls=2 +8 20
* +3 12 1

fn=(3)
0x500 20 6 1

ob=(2)
fl=(3)
fn=(2)
0x700 5 14 2
totals: 60 6 3
"""


def write(folder: Path, text: str | bytes, name: str = "callgrind.out.1") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def by_name(profile):
    return {name: i for i, name in enumerate(profile.functions)}


def costs(profile):
    return dict(zip(zip(profile.functions, profile.objects), profile.self_cost.tolist()))


def arcs(profile):
    names = profile.functions
    pairs = [(names[a], names[b]) for a, b in zip(profile.caller, profile.callee)]
    return dict(zip(pairs, zip(profile.calls, profile.arc_cost.tolist())))


def test_the_manuals_example(tmp_path):
    profile = read(write(tmp_path, PLAIN))
    at = by_name(profile)
    assert profile.events == ("Cycles", "Instructions")
    assert profile.self_cost[at["main"]].tolist() == [20, 4]
    assert profile.self_cost[at["func1"]].tolist() == [100, 21]
    assert profile.self_cost[at["func2"]].tolist() == [700, 30]
    assert profile.visits[[at["main"], at["func1"], at["func2"]]].tolist() == [0, 1, 5]
    assert arcs(profile) == {
        ("main", "func1"): (1, [400, 90]),
        ("main", "func2"): (3, [400, 12]),
        ("func1", "func2"): (2, [300, 8]),
    }
    assert profile.files[at["func2"]] == "file2.c"
    assert [profile.lines[at[name]] for name in ("main", "func1", "func2")] == [16, 51, 20]


INLINED = """events: Ir
fl=(1) a.c
fn=(1) work
fi=(2) b.h
7 5
fe=(1)
30 5

fn=(1)
25 1

fn=(2) main
cfn=(1)
calls=1 25
40 11
41 1

fn=(3) tail
+8 1
"""


@pytest.mark.parametrize("block", [24, 1 << 20])
def test_where_functions_begin(tmp_path, block):
    lines = dict(zip((profile := read(write(tmp_path, INLINED), block=block)).functions, profile.lines))
    # what was inlined says nothing of where its function begins, nor does the line of a call
    assert lines["work"] == 25
    assert lines["main"] == 0
    assert lines["tail"] == 49


def test_of_a_functions_copies_the_place_of_the_first_line_is_kept(tmp_path):
    text = "events: Ir\nfl=a.c\nfn=f.cold\n90 1\n\nfn=f\n20 5\n\nfn=main\n1 1\ncfn=f\ncalls=1 20\n2 5\n"
    text += "cfn=f.cold\ncalls=1 90\n3 1\n"
    places = attribute(read(write(tmp_path, text))).places
    assert next(place for place in places if place[0] == "f") == ("f", "a.c", 20)


@pytest.mark.parametrize("block", [60, 1 << 20])
def test_the_file_of_a_function_that_is_called_before_its_own_lines(tmp_path, block):
    text = "creator: callgrind\nevents: Ir\nfl=(1) first.c\nfn=(1) start\n10 1\ncfi=(2) other.c\ncfn=(2) main\ncalls=1 5\n10 7\n"
    text += "cfi=(3) gone.c\ncfn=(3) gone\ncalls=1 5\n10 0\nfl=(2)\nfn=(2)\n5 7\ntotals: 8\n"
    profile = read(write(tmp_path, text), block=block)
    assert dict(zip(profile.functions, profile.files)) == {"start": "first.c", "main": "other.c", "gone": ""}


def test_every_kind_of_line(tmp_path):
    profile = read(write(tmp_path, COMPRESSED))
    at = by_name(profile)
    assert profile.self_cost[at["main"]].tolist() == [40, 3, 3]
    assert profile.self_cost[at["helper"]].tolist() == [6, 1, 0]
    assert profile.self_cost[at["exp"]].tolist() == [14, 2, 0]
    assert profile.self_cost.sum(axis=0).tolist() == [60, 6, 3]
    assert profile.visits[[at["exp"], at["helper"]]].tolist() == [7, 2]
    assert profile.objects[at["exp"]] == "/lib/libm.so.6"
    # a callee without cob= is in the caller's object, though another callee's object was named before
    assert profile.objects[at["helper"]] == "/bin/app"
    assert profile.header["cmd"] == "./a b"


@pytest.mark.parametrize("block", [40, 64, 100, 333, 1 << 20])
def test_the_size_of_blocks_does_not_matter(tmp_path, block):
    file = write(tmp_path, COMPRESSED)
    whole, cut = read(file), read(file, block=block)
    assert costs(cut) == costs(whole)
    assert arcs(cut) == arcs(whole)


def test_parts_and_threads_add_up_even_where_numbers_change_their_names(tmp_path):
    other = (
        COMPRESSED.replace("(1) main", "(1) helper")
        .replace("(3) helper", "(3) main")
        .replace("part: 1", "part: 2\nthread: 2")
    )
    profile = read(write(tmp_path, COMPRESSED + other))
    at = by_name(profile)
    assert sorted(at) == ["exp", "helper", "main"]
    assert profile.self_cost[at["main"]].tolist() == [46, 4, 3]
    assert profile.self_cost[at["helper"]].tolist() == [46, 4, 3]
    assert profile.visits[at["exp"]] == 14


def test_windows_line_ends(tmp_path):
    assert read(write(tmp_path, PLAIN.replace("\n", "\r\n"))).self_cost.sum() == 875


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        (COMPRESSED.replace("totals: 60 6 3\n", ""), "", "cut off"),
        (COMPRESSED[: COMPRESSED.index("+2 * 70")], ":21", "calls="),
        (COMPRESSED.replace("+2 * 70 7", "+2 * 70 7 8 9"), ":22", "3 events"),
        (COMPRESSED.replace("+2 * 70 7", "+2 * 7x 7"), ":22", "7x"),
        (COMPRESSED.replace("+2 * 70 7", "+2 * 99999999999999999999 7"), ":22", "99999999"),
        (COMPRESSED.replace("fn=(3)\n", "fn=(77)\n"), ":31", "(77)"),
        (COMPRESSED.replace("calls=7 ", "calls=many "), ":21", "number of calls"),
        (COMPRESSED.replace("calls=7 ", "calls=-7 "), ":21", "number of calls"),
        (PLAIN.replace("cfn=func1\n", ""), ":7", "cfn="),
        (COMPRESSED.replace("events: Ir Dr Dw\n", ""), "", "events"),
        (COMPRESSED.replace("positions: instr line", "positions: colour"), ":5", "positions"),
        (COMPRESSED.replace("events: Ir Dr Dw", "events: Ir Ir"), ":6", "events"),
        (COMPRESSED.replace("fn=(1) main\n", ""), ":11", "fn="),
        (COMPRESSED + "part: 2\nevents: Ir\n", "", "other events"),
        (COMPRESSED.replace("cmd:", "dmc:"), ":3", "dmc"),
        ("fn=(99999999) x\n", ":1", "absurd"),
        ("", "", "no line names events"),
        ("version: 1\nevents: Ir\n", "", "no costs"),
        ("\x7fELF\x02\x01\x01\x00\x00\n\x00\xff\n", ":1", "not a line of a callgrind"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, text, line, word):
    with pytest.raises(InputError) as caught:
        read(write(tmp_path, text))
    assert f"callgrind.out.1{line}" in caught.value.what
    assert word in str(caught.value)


def test_a_line_without_end_is_refused(tmp_path):
    with pytest.raises(InputError, match="a line of more than"):
        read(write(tmp_path, b"events: Ir\nfn=" + b"x" * (2 << 20)))


def test_a_folder_or_a_missing_file_is_bad_input(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError):
            read(path)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_rubbish_is_read_or_refused_and_nothing_else(tmp_path_factory, data):
    text = bytearray(data.draw(st.sampled_from([PLAIN, COMPRESSED])).encode())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(text) - 1))
        what = data.draw(st.sampled_from(["byte", "cut", "copy", "line"]))
        if what == "byte":
            text[at] = data.draw(st.integers(0, 255))
        elif what == "cut":
            del text[at : at + data.draw(st.integers(1, 40))]
        elif what == "copy":
            text[at:at] = text[: data.draw(st.integers(1, 200))]
        else:
            text[at:at] = data.draw(
                st.sampled_from([b"\ncalls=1 2\n", b"\n+1\n", b"\nfn=(1)\n", b"\nob=\n", b"\n* *\n", b"\nevents: A\n"])
            )
        if not text:
            text = bytearray(b"x")
    file = write(tmp_path_factory.mktemp("fuzz"), bytes(text))
    try:
        lines_of = data.draw(st.sampled_from([None, lambda name, path: True]))
        profile = read(file, lines_of, block=data.draw(st.sampled_from([50, 1 << 20])))
    except InputError as error:
        assert str(file) in error.what
    else:
        assert np.isfinite(profile.self_cost).all()
        assert (profile.self_cost >= 0).all()
        assert len(profile.functions) == len(profile.self_cost)


# ---- whose cost is whose ------------------------------------------------------------------------------------------------

SHARED = """creator: callgrind-3.19.0
events: Ir Dr
ob=(1) /home/me/app
fn=(1) main
1 100 10
cob=(2) /usr/lib/libc.so.6
cfn=(2) __memcpy_avx_unaligned_erms
calls=4 0
1 40 8
cob=(3) /opt/lib/libmpi.so.40
cfn=(3) PMPI_Send
calls=2 0
1 1000 0
cob=(2)
cfn=(4) qsort
calls=1 0
1 90 9
cob=(5) /opt/lib/libsolver.so
cfn=(6) solve.constprop.0
calls=3 0
1 30 3
fn=(8) work'2
1 7 1
ob=(2)
fn=(2)
1 55 11
fn=(4)
1 50 5
cob=(1)
cfn=(7) compare
calls=20 0
1 40 4
ob=(1)
fn=(7)
1 40 4
ob=(3)
fn=(3)
1 985 0
cob=(2)
cfn=(2)
calls=1 0
1 15 3
cob=(5)
cfn=(9) helper
calls=1 0
1 5 0
ob=(5)
fn=(6)
1 20 3
cfn=(9)
calls=2 0
1 10 0
fn=(9)
1 15 0
ob=(6) /lib64/ld-linux-x86-64.so.2
fn=(10) _dl_fixup
1 500 50
totals: 1772 84
"""


def test_cost_goes_to_whom_it_served(tmp_path):
    found = attribute(read(write(tmp_path, SHARED)))
    cost = found.kernels
    assert cost.loc["main", "Ir"] == 100
    assert cost.loc["compare", ["visits", "Ir", "Dr"]].tolist() == [20, 40, 4]
    # memcpy served the application 4 times and MPI once; qsort's call back is not its own cost
    assert cost.loc["memcpy [libc]", ["visits", "Ir", "Dr"]].tolist() == [4, 40, 8]
    assert cost.loc["qsort [libc]", ["visits", "Ir", "Dr"]].tolist() == [1, 50, 5]
    # an application's library counts as far as the application called it
    assert cost.loc["solve", "Ir"] == 20
    assert cost.loc["helper", ["visits", "Ir"]].tolist() == pytest.approx([2, 10])
    assert cost.loc["work", "Ir"] == 7
    assert sorted(cost.index) == ["compare", "helper", "main", "memcpy [libc]", "qsort [libc]", "solve", "work"]
    # what MPI had memcpy and helper do is MPI's
    left = found.left_out["Ir"]
    assert left["mpi"].to_dict() == pytest.approx({"libmpi": 985, "libc": 15, "libsolver": 5})
    assert left["system"].to_dict() == pytest.approx({"ld-linux-x86": 500})
    assert "other" not in left


def test_what_the_tables_say_is_all_there_is(tmp_path):
    profile = read(write(tmp_path, SHARED))
    found = attribute(profile)
    total = found.kernels["Ir"].sum() + found.left_out["Ir"].sum()
    assert total == pytest.approx(profile.self_cost[:, 0].sum())
    rows = found.rows("Ir", "instructions", 3)
    assert rows[["kept", "mpi", "system", "other"]].to_numpy().sum() == pytest.approx(total)
    assert set(rows["rank"]) == {3}


STRIPPED = """events: Ir
ob=(1) /home/me/app
fn=(1) 0x0000000000001149
1 70
cfn=(2) helper
calls=2 0
1 20
cob=(2) /home/me/libwork.so
cfn=(3) work
calls=5 0
1 900
fn=(2)
1 20
fn=(4) 0x0000000000001060
1 11
cob=(3) /usr/lib/libc.so.6
cfn=(5) (below main)
calls=1 0
1 990
ob=(2)
fn=(3)
1 900
ob=(3)
fn=(5)
1 5
cob=(1)
cfn=(1)
calls=1 0
1 990
fn=(6) start_thread
1 3
cob=(2)
cfn=(7) in_a_thread
calls=1 0
1 40
ob=(2)
fn=(7)
1 40
ob=(4) /lib64/ld-linux-x86-64.so.2
fn=(8) _dl_start_user
1 300
cob=(1)
cfn=(4)
calls=1 0
1 1006
totals: 1349
"""


def test_a_stripped_main_next_to_an_exported_function_keeps_its_work(tmp_path):
    found = attribute(read(write(tmp_path, STRIPPED)))
    cost = found.kernels["Ir"]
    assert cost["work"] == 900
    assert cost["helper"] == 20
    assert cost["in_a_thread"] == 40
    # main; the entry stub, which the loader alone calls, is start-up
    assert cost.drop(["work", "helper", "in_a_thread"]).tolist() == [70]
    assert found.left_out["Ir"].sum() == 11 + 5 + 3 + 300


def test_a_chain_of_calls_of_any_depth_serves_the_program(tmp_path):
    depth = 300
    lines = ["events: Ir", "ob=(1) /home/me/app", "fn=(1) main", "1 1", "cob=(2) /home/me/libdeep.so"]
    lines += ["cfn=f0", "calls=1 0", f"1 {10 * depth}", "ob=(2)"]
    for level in range(depth):
        lines += [f"fn=f{level}", "1 10"]
        if level + 1 < depth:
            lines += [f"cfn=f{level + 1}", "calls=1 0", f"1 {10 * (depth - level - 1)}"]
    found = attribute(read(write(tmp_path, "\n".join([*lines, f"totals: {10 * depth + 1}", ""]))))
    assert found.kernels["Ir"].sum() == 10 * depth + 1


def test_shares_that_go_in_circles_cost_no_rounds_over_all_arcs(tmp_path, monkeypatch):
    chain = 300
    lines = ["events: Ir", "ob=/home/me/app", "fn=main", "1 1", "cob=/home/me/libx.so", "cfn=a", "calls=1 0", "1 30"]
    lines += ["cob=/home/me/libx.so", "cfn=f0", "calls=1 0", "1 300"]
    lines += ["ob=/lib/libmpi.so.40", "fn=MPI_Send", "1 1", "cob=/home/me/libx.so", "cfn=a", "calls=1 0", "1 10"]
    lines += ["ob=/home/me/libx.so", "fn=a", "1 100", "cfn=b", "calls=99 0", "1 999", "fn=b", "1 80"]
    lines += ["cfn=a", "calls=98 0", "1 960"]
    for level in range(chain):
        lines += [f"fn=f{level}", "1 1", f"cfn=f{level + 1}", "calls=1 0", f"1 {chain - level}"]
    summed, sum_at = [], attribution._sum_at
    monkeypatch.setattr(attribution, "_sum_at", lambda at, *more: (summed.append(len(at)), sum_at(at, *more))[1])
    found = attribute(read(write(tmp_path, "\n".join([*lines, "totals: 482", ""]))))
    assert found.kernels["Ir"][["a", "b"]].to_numpy() == pytest.approx([75.0, 60.0], rel=1e-9)
    assert len(summed) > 400
    assert sum(summed) < chain**2


MISSED = """events: Ir Dr Dw D1mr D1mw DLmr DLmw DLdmr DLdmw ILdmr

ob=/bin/program
fl=p.c
fn=main
1 10 5 0 0 0 0 0 0 0 0
cob=/lib/libx.so
cfi=x.c
cfn=copy
calls=1 1
1 100 50 0 90 0 20 0 0 0 0
cob=/lib/libmpi.so.40
cfi=m.c
cfn=MPI_Send
calls=1 1
1 150 60 0 0 0 0 0 0 0 0

ob=/lib/libmpi.so.40
fl=m.c
fn=MPI_Send
1 50 10 0 0 0 0 0 0 0 0
cob=/lib/libx.so
cfi=x.c
cfn=copy
calls=1 1
1 100 50 0 0 0 0 0 0 0 0

ob=/lib/libx.so
fl=x.c
fn=copy
1 200 100 0 90 0 20 0 0 0 0
"""


def test_misses_of_a_shared_library_are_no_more_than_its_loads(tmp_path: Path) -> None:
    from ranksight.counters.collectors.callgrind import _join

    (tmp_path / "callgrind.out").write_text(MISSED)
    each = attribute(read(tmp_path / "callgrind.out"))
    table, _ = _join(each, each, 64)
    levels = table[["loads_l1", "loads_l2", "loads_l3", "loads_mem"]]
    copy = next(name for name in table.index if "copy" in name)
    assert table.loc[copy, "loads"] == pytest.approx(50)
    assert (levels >= 0).all(axis=None)
    assert levels.sum(axis=1).to_numpy() == pytest.approx(table["loads"].to_numpy())


STUBS = """events: Ir

ob=/bin/program
fl=p.c
fn=main
1 10
cob=/lib/libx.so
cfi=x.c
cfn=outer
calls=1 1
1 300

ob=/lib/libx.so
fl=x.c
fn=outer
1 20
cob=???
cfi=???
cfn=0x0000000004965170
calls=4 1
1 280

ob=???
fl=???
fn=0x0000000004965170
1 8
cob=/lib/libx.so
cfi=x.c
cfn=inner
calls=4 1
1 272

fn=0x0000000004000000
1 5

ob=/lib/libx.so
fl=x.c
fn=inner
1 272
"""


def test_what_a_library_calls_through_stubs_of_no_known_file_is_the_callers(tmp_path: Path) -> None:
    (tmp_path / "callgrind.out").write_text(STUBS)
    found = attribute(read(tmp_path / "callgrind.out"))
    cost = found.kernels["Ir"].to_dict()
    assert cost == {"main": 10, "outer": 20, "inner": 272, "(no symbol) [???]": 8}
    assert found.left_out["Ir"].to_dict() == {("other", "???"): 5}  # nobody is known to have called it
