"""The reader of perf script's text: fields, chains, C++ names, damage; and whom a sample belongs to."""

from __future__ import annotations

import struct

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksight.core.errors import InputError
from ranksight.counters.attributing import Frame, by_object, resolve
from ranksight.counters.perfscript import read

APP, MPI, LIBC, LIBM = "/home/me/heat", "/opt/lib/libmpi.so.40", "/usr/lib/libc.so.6", "/usr/lib/libm.so.6"
KERNEL = "[kernel.kallsyms]"

USUAL = f"""heat 7/7 [000] 1.000001: 1003009 cycles:
\t    401136 law(double*)+0x36 ({APP})
\t    401000 main+0x10 ({APP})

heat 7/7 [001] 1.000002: 1003009 cycles:
\t    401138 law(double*)+0x38 ({APP})
heat 7/7 [001] 1.000003: 1003009 cycles:
\t    401138 law(double*)+0x38 ({APP})
"""
"""The second sample is not ended by an empty line."""
LINES = f"""# ========
# captured on: today
heat  5843/5843  [001]   770.402692:    2000003 cycles:u:      7f64bcc03e00 apply_operator+0x1f ({APP})
heat  5843/5844  [000]   770.404700:    2000003 cycles:u:      7f64bcc03e08 apply_operator+0x27 ({APP})
heat  5843/5843  [001]   770.406702:    2000003 instructions:u:      7f64bc50c017 std::vector<double, A<double> >::at(unsigned long) const ({APP})
heat  5850/5850  [001]   771.408719:    2000003 cycles:u:  7f64bc50c018 opal_progress ({MPI})
my prog  5850/5850  [001]   771.408730:    2000003 cycles:u:  7f64bc50c018 relax ({APP} (deleted))
heat  5850/5850  [001]   771.500000:    1000000 cycles:u:  7f64bc50c018 [unknown] ([unknown])
"""

CHAINS = f"""heat 7/7 1.000001: 1003009 cpu-clock:
\tffffffff813cd05c clear_page_erms ({KERNEL})
\tffffffff821ecc26 asm_exc_page_fault ({KERNEL})
\t          401136 setup+0x36 ({APP})

heat 7/7 1.001001: 1003009 cpu-clock:
\tffffffff813cd05c __schedule ({KERNEL})
\t    7f64bc50c017 __sched_yield ({LIBC})
\t    7f64bc50c017 opal_progress (/opt/lib/libopen-pal.so.80)

heat 7/7 1.002001: 1003009 cpu-clock:
\t    7f64bc50c017 __ieee754_exp_fma ({LIBM})
\t    7f64bc50c017 exp@@GLIBC_2.29 ({LIBM})
\t          401150 law ({APP})

heat 7/7 1.003001: 1003009 cpu-clock:

"""


def rows(samples):
    return {(r.pid, r.event, r.group, r.kernel): (r.samples, r.period) for r in samples.table.itertuples()}


def test_lines_with_all_fields():
    found = read([LINES.encode()], "x")
    assert rows(found) == {
        (5843, "cycles:u", "application", "apply_operator"): (2, 4000006),
        (5843, "instructions:u", "application", "std::vector<double, A<double> >::at(unsigned long) const"): (
            1,
            2000003,
        ),
        (5850, "cycles:u", "mpi", MPI): (1, 2000003),
        (5850, "cycles:u", "application", "relax"): (1, 2000003),
        (5850, "cycles:u", "other", "[unknown]"): (1, 1000000),
    }
    assert found.total == 6


def test_call_chains_show_whom_a_sample_served():
    assert rows(read([CHAINS.encode()], "x")) == {
        (7, "cpu-clock", "application", "setup"): (1, 1003009),
        (7, "cpu-clock", "mpi", "/opt/lib/libopen-pal.so.80"): (1, 1003009),
        (7, "cpu-clock", "application", "exp [libm]"): (1, 1003009),
        (7, "cpu-clock", "other", ""): (1, 1003009),
    }


def test_the_fewest_fields():
    text = f"  2004008 cpu-clock:      401136 law ({APP})\n" * 3
    assert rows(read([text.encode()], "x")) == {(-1, "cpu-clock", "application", "law"): (3, 3 * 2004008)}


@pytest.mark.parametrize("text", [LINES, CHAINS])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_pieces_of_any_size(text, size, monkeypatch):
    monkeypatch.setattr("ranksight.counters.perfscript.BLOCK", 64)
    data = text.encode()
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    assert rows(read(pieces, "x")) == rows(read([data], "x"))


@pytest.mark.parametrize(
    ("frames", "answer"),
    [
        ([("memcpy", LIBC), ("opal_copy", "/x/libopen-pal.so.80")], ("mpi", "/x/libopen-pal.so.80", False)),
        ([("__memmove_avx512_unaligned_erms", LIBC)], ("application", "memcpy [libc]", True)),
        ([("__sched_yield", LIBC)], ("other", LIBC, False)),
        ([("__poll", LIBC), ("[unknown]", "[unknown]")], ("other", LIBC, False)),
        ([("_dl_fixup", "/lib64/ld-linux-x86-64.so.2"), ("law", APP)], ("application", "law", False)),
        ([("dgemm_kernel", "/x/libopenblas.so.0"), ("solve", APP)], ("application", "dgemm_kernel", False)),
        ([("[unknown]", "/x/libX11.so.6")], ("other", "/x/libX11.so.6", False)),
        ([("[unknown]", "/x/libsolver.so"), ("main", APP)], ("application", "(no symbol) [libsolver]", False)),
        ([("inflate", "/x/libz.so.1"), ("ucs_init", "/x/libucs.so.0")], ("mpi", "/x/libucs.so.0", False)),
        ([("MPIR_Wait", APP)], ("mpi", APP, False)),
        ([("_start", APP)], ("other", APP, False)),
        ([("_init", "/lib/libm.so.6")], ("other", "/lib/libm.so.6", False)),
        ([("compare", APP), ("qsort", LIBC), ("main", APP)], ("application", "compare", False)),
        ([("msort_with_tmp", LIBC), ("qsort_r", LIBC), ("main", APP)], ("application", "qsort_r [libc]", False)),
        ([], ("other", "", False)),
    ],
)
def test_whose_a_sample_is(frames, answer):
    assert resolve([Frame(*frame) for frame in frames]) == answer


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (LINES + "what is this\n", 9),
        (LINES.replace("7f64bcc03e08 apply", "xyz apply"), 4),
        (CHAINS.replace("ffffffff821ecc26 asm", "!! asm"), 3),
        (USUAL, 7),
        ("\x00\x01\x02\n", 1),
    ],
)
def test_damage_is_named_with_its_line(text, line):
    with pytest.raises(InputError) as caught:
        read([text.encode()], "perf.txt")
    assert f"perf.txt:{line}: " in caught.value.what


def test_samples_of_a_usual_chain_are_counted_one_by_one():
    text = (
        USUAL.replace("\nheat 7/7 [001] 1.000003", "\n\nheat 7/8 [001] 1.000003")
        + "\n"
        + USUAL[: USUAL.find("\n\n") + 2]
    )
    found = read([text.encode()], "perf.txt")
    assert found.table[["kernel", "samples", "period"]].values.tolist() == [["law(double*)", 4.0, 4 * 1003009.0]]


def test_nothing_is_no_samples():
    assert read([], "x").total == 0
    assert read([b"# only a header\n\n"], "x").table.empty


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_rubbish_is_read_or_refused_and_nothing_else(data):
    text = bytearray(data.draw(st.sampled_from([LINES, CHAINS])).encode())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text)))
        if data.draw(st.booleans()):
            text[at : at + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=10))
        else:
            text[at:at] = text[: data.draw(st.integers(0, 100))]
    try:
        found = read([bytes(text)], "fuzzed")
    except InputError as error:
        assert "fuzzed:" in error.what
    else:
        assert (found.table["samples"] > 0).all()
        assert (found.table["period"] >= 0).all()


def elf(path):
    """A file with one loaded segment at 0x400000 and two functions without symbols, 0x401100 and 0x401180."""
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, 0, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    base = 0x402000
    entries = [(0x401100, 0x80), (0x401180, 0x40)]
    frames = b"".join(
        struct.pack("<IIiI", 12, 0, start - (base + 0x100 + 16 * at + 8), size)
        for at, (start, size) in enumerate(entries)
    )
    table = b"".join(struct.pack("<ii", start - base, 0x100 + 16 * at) for at, (start, _) in enumerate(entries))
    index = bytes((1, 0x1B, 0x03, 0x3B)) + struct.pack("<iI", 0, len(entries)) + table
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, 0x3000, 0x3000, 0x1000)
    held = struct.pack("<IIQQQQQQ", 0x6474E550, 4, 0x2000, base, base, len(index), len(index), 4)
    content = bytearray(0x3000)
    content[: len(header)] = header
    content[64 : 64 + 112] = load + held
    content[0x2000 : 0x2000 + len(index)] = index
    content[0x2100 : 0x2100 + len(frames)] = frames
    path.write_bytes(content)


@pytest.mark.parametrize("chains", [False, True])
def test_functions_without_a_symbol_are_distinguished_where_files_were_mapped(tmp_path, chains):
    place = tmp_path / "stripped"
    elf(place)

    def mapped(pid, begin):
        return f" {pid} PERF_RECORD_MMAP2 {pid}/{pid}: [{begin:#x}(0x1000) @ 0x1000 fe:00 21 16]: r-xp {place}\n"

    def sample(pid, address):
        end = "\n\t" if chains else ""
        return f"{pid} 1.000001: 10 cycles:u: {end} {address:x} [unknown] ({place})\n" + "\n" * chains

    text = mapped(7, 0x401000) + sample(7, 0x401104) + sample(7, 0x401184) + sample(7, 0x4011F0)
    text += mapped(8, 0x7F0000001000) + sample(8, 0x7F0000001110) + sample(8, 0x7F0000001180) + sample(7, 0x401120)
    if chains:
        text += sample(8, 0x1124)  # an offset, as some versions write
    found = rows(read([text.encode()], "x"))
    names = {(pid, kernel): count for (pid, _, _, kernel), (count, _) in found.items()}
    assert names == {
        (7, "0x401100 [stripped]"): 2,
        (7, "0x401180 [stripped]"): 1,
        (7, "(no symbol) [stripped]"): 1,
        (8, "0x401100 [stripped]"): 1 + chains,
        (8, "0x401180 [stripped]"): 1,
    }


def test_what_became_no_kernel_is_kept_by_object():
    samples = read([CHAINS.encode()], "x").table.assign(rank=0)
    more = [("other", LIBC, 5.0), ("other", "/x/libX11.so.6", 7.0), ("other", KERNEL, 2.0)]
    added = pd.DataFrame(more, columns=["group", "kernel", "period"]).assign(rank=0)
    table = pd.concat([samples, added], ignore_index=True)
    found = by_object(table.assign(value=table["period"]), "time").set_index("object")
    assert found.loc["", "kept"] == 2 * 1003009
    assert found.loc["libopen-pal", "mpi"] == 1003009
    assert found.loc[["libc", "[kernel.kallsyms]"], "system"].tolist() == [5, 2]
    assert found.loc["libX11", "other"] == 7


def test_samples_of_one_function_are_summed_whatever_their_periods_and_offsets():
    """What differs from sample to sample, period and place in the function, is remembered for none of them."""
    chain = "\t  {address:x} {name}+{offset:#x} (/home/me/app)\n\t  401136 main+0x36 (/home/me/app)\n\n"
    given = [("step", 1000, 0x10), ("step", 2000, 0x20), ("flux", 4000, 0x10), ("step", 8000, 0x10)]
    text = "".join(
        f"app 7/7 [000] {at}.000001: {period} cycles: \n"
        + chain.format(address=0x401000 + offset, name=name, offset=offset)
        for at, (name, period, offset) in enumerate(given)
    )
    table = read([text.encode()], "it").table.set_index("kernel")
    expected = {
        name: (sum(p for n, p, _ in given if n == name), sum(n == name for n, _, _ in given))
        for name in ("step", "flux")
    }
    assert {name: (table.loc[name, "period"], table.loc[name, "samples"]) for name in table.index} == expected
