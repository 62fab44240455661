"""Limits on what strangers' files make us read: paths, sizes, decompression, counts."""

from __future__ import annotations

import gzip
import io
import os
import signal
import struct
import subprocess
import sys
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ranksight.campaign.recognising import recognise
from ranksight.cli.main import main
from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.core.files import read_bytes
from ranksight.core.reading import READERS, Reading, in_time
from ranksight.core.symbols import read_symbols
from ranksight.core.tables import read_frame
from ranksight.counters.readers._delimited import PIECE, read_delimited
from ranksight.counters.readers.csv_table import Columns, read_table
from ranksight.model import modelfile


def within(code: str, *words: str, memory: int = 2 << 30, seconds: int = 20) -> str:
    """What Python code prints in a process of its own with bounded memory and time."""
    limit = f"import resource, sys; resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))\n"
    done = subprocess.run(
        [sys.executable, "-c", limit + code, *words], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


SYMBOLS = (
    "from pathlib import Path; from ranksight.core.symbols import read_symbols; print(read_symbols(Path(sys.argv[1])))"
)


def elf(sections: list[tuple[int, bytes, int]], names: bytes = b"\0") -> bytes:
    """An object file of sections (kind, content, place of the name); the first holds their names."""
    body, heads = b"", [bytes(64), struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(names), 0, 0, 1, 0)]
    body += names
    for kind, content, name in sections:
        heads.append(
            struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, 64 + len(body), len(content), len(heads) + 1, 0, 1, 0)
        )
        body += content
    head = b"\x7fELF\x02\x01".ljust(16, b"\0") + struct.pack("<HHIQQQ", 3, 62, 1, 0, 0, 64 + len(body))
    head += struct.pack("<IHHHHHH", 0, 64, 56, 0, 64, len(heads), 1)
    return head + body + b"".join(heads)


def symbols(count: int, step: int) -> bytes:
    """A symbol table of functions, the name of each `step` bytes behind the last one's."""
    return b"".join(struct.pack("<IBBHQQ", k * step, 2, 0, 1, 16 * k + 16, 16) for k in range(count))


def test_a_path_of_a_trace_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, Path("a\0b")):
        assert read_symbols(path) is None
        with pytest.raises(InputError):
            read_bytes(path, 100)
    with pytest.raises(InputError, match="not a regular file"):
        recognise(tmp_path / "pipe")


def test_an_object_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.write_bytes(elf([(2, symbols(2, 2), 0), (3, b"f\0g\0", 0)]))
    assert read_symbols(path).names == ["f", "g"]  # type: ignore[union-attr]
    os.truncate(path, limits.OBJECT_FILE + 1)  # sparse
    assert within(SYMBOLS, str(path), memory=1 << 30) == "None"


def test_a_debug_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    names = b"\0.gnu_debuglink\0"
    link = b"other.debug\0" + struct.pack("<I", zlib.crc32(b"")) + b"\0" * 4
    path = tmp_path / "program"
    path.write_bytes(elf([(1, link, 1)], names))
    for place in (tmp_path / "other.debug", tmp_path / ".debug" / "other.debug"):
        place.parent.mkdir(exist_ok=True)
        place.touch()
        os.truncate(place, 1 << 36)
    assert within(SYMBOLS, str(path), memory=1 << 30).startswith("SymbolTable")


def test_names_that_overlap_do_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "overlap"
    path.write_bytes(elf([(2, symbols(50_000, 1), 0), (3, b"f" * 200_000 + b"\0", 0)]))
    assert within(SYMBOLS, str(path)) == "None"


CUBE = """
from pathlib import Path
from ranksight.counters.readers._delimited import PIECE, read_delimited
from ranksight.counters.readers.csv_table import Columns, read_table
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.core.reading import READERS
try:
    list(READERS["cube"].read(Path(sys.argv[1])))
except InputError as error:
    print(error)
"""


def packed_tar(path: Path, mode: str, member: str, size: int) -> Path:
    """An archive of one member of zeros."""
    with tarfile.open(path, mode) as archive:
        info = tarfile.TarInfo(member)
        info.size = size
        archive.addfile(info, io.BufferedReader(Zeros()))
    return path


class Zeros(io.RawIOBase):
    """Blanks without an end."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        buffer[:] = b" " * len(buffer)
        return len(buffer)


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
def test_a_cube_that_is_compressed_as_a_whole_is_refused(tmp_path: Path, mode: str) -> None:
    pytest.importorskip("pycubexr")
    path = packed_tar(tmp_path / "p.cubex", mode, "anchor.xml", 1 << 16)
    assert "p.cubex" in within(CUBE, str(path), memory=1 << 30)
    with pytest.raises(InputError, match="CUBE4"):
        list(READERS["cube"].read(path))
    content = gzip.compress(b" " * (1 << 20))
    path.write_bytes(content)
    with pytest.raises(InputError, match="CUBE4"):
        list(READERS["cube"].read(path))


def test_a_cube_made_whole_and_then_compressed_is_refused(tmp_path: Path, write_cube: Callable[..., Path]) -> None:
    pytest.importorskip("pycubexr")
    tree = ("main", [])
    path = write_cube(tmp_path / "p.cubex", tree, [0], {"time": ("EXCLUSIVE", "DOUBLE", "sec", {0: [1.0]})})
    assert len(list(READERS["cube"].read(path))) == 1
    path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(InputError, match=r"p\.cubex"):
        list(READERS["cube"].read(path))


def anchored(path: Path, anchor: bytes) -> Path:
    """An archive of this anchor."""
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("anchor.xml")
        info.size = len(anchor)
        archive.addfile(info, io.BytesIO(anchor))
    return path


def test_an_anchor_is_read_within_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pycubexr")
    head = b"<?xml version='1.0'?>"
    entity = b"<!DOCTYPE cube [<!ENTITY a 'aaaa'>]>"
    monkeypatch.setattr(limits, "CUBE_ANCHOR", 1 << 20)
    monkeypatch.setattr(limits, "CUBE_ELEMENTS", 100)
    monkeypatch.setattr(limits, "DEPTH", 50)
    monkeypatch.setattr(limits, "LINE", 1 << 19)
    piece = b"x" * (1 << 19)
    cases = {
        "50 deep": head + b"<a>" * 60,
        "holds a text of more than": head + b"<cube>" + piece + b"x",
        "markup is longer than": head + b"<cube a='" + piece + piece[:-100] + b"'/>",
        "longer than": head + b"<cube>" + (b"<!--" + b" " * 300_000 + b"-->") * 4,
        "more than": head + b"<cube>" + b"<cnode/>" * 100,
        "document type": head + entity + b"<cube>&a;</cube>",
    }
    for message, anchor in cases.items():
        for content in (anchor, gzip.compress(anchor)):
            with pytest.raises(InputError, match=message):
                list(READERS["cube"].read(anchored(tmp_path / "p.cubex", content)))


LINES = (
    "@--- " + "a " * 40_000,
    "@--- a" + " " * 80_000 + "b",
    "@--- " + "a-" * 40_000 + "b",
    "@--- Callsites: 1 ---\n1 0 " + "a " * 40_000 + "\x0b" * 2,
    "@--- Callsites: 1 ---\n1 0 a" + " " * 80_000 + "a\x1c \x1c a",
    "@--- Callsites: 1 ---\n" + "1" * 80_000,
    "@--- Callsites: 1 ---\n" + " " * 80_000 + "x",
)


@pytest.mark.parametrize("line", LINES)
def test_long_lines_of_mpip_take_no_long_time(tmp_path: Path, line: str) -> None:
    path = tmp_path / "report.mpiP"
    path.write_text(f"@ mpiP\n@ Version: 3.5\n{line}\n")
    began = time.process_time()
    with pytest.raises(InputError):
        list(READERS["mpip"].read(path))
    assert time.process_time() - began < 2


def test_threads_of_hpctoolkit_are_those_in_the_file(tmp_path: Path, write_database: Callable[..., Path]) -> None:
    folder = write_database(
        tmp_path / "db", [(1, "main", 0, [])], ["REALTIME (sec)"], [(0, 0, {1: {0: 1.0, 1: 1.0}, 0: {1: 1.0}})]
    )
    (found,) = READERS["hpctoolkit"].read(folder)
    assert found.counters is not None
    path = folder / "profile.db"
    content = bytearray(path.read_bytes())
    (at,) = struct.unpack_from("<Q", content, 24)
    (first,) = struct.unpack_from("<Q", content, at)
    for size, count in ((0, 1 << 31), (48, 1 << 31), (48, 1000)):
        struct.pack_into("<QLB", content, at, first + 48, count, size)
        path.write_bytes(bytes(content))
        with pytest.raises(InputError, match="threads lie outside of the file"):
            list(READERS["hpctoolkit"].read(folder))


def test_a_packed_table_is_read_a_piece_at_a_time(tmp_path: Path) -> None:
    """60 MB of text, of lines that are all comments but a few: nothing near that is held."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"ranks,time\n2,1.5\n" + b"# a comment\n" * 5_000_000 + b"4,2.5\n", 1))
    os.truncate(path, 1_000_000)  # zeros behind the end belong to no text, and make no packed file that is too small
    code = """
from pathlib import Path
from ranksight.counters.readers._delimited import PIECE, read_delimited
from ranksight.counters.readers.csv_table import Columns, read_table
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = read_delimited(Path(sys.argv[1]), ["time"])
print(found.columns, list(found.lines), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000)
"""
    assert within(code, str(path), seconds=60) == "{'time': ['1.5', '2.5']} [2, 5000003] True"


@pytest.mark.parametrize(
    ("limit", "most", "content", "message"),
    [
        ("UNPACKED_SMALL", 1 << 20, b"1,2\n" * (1 << 19), "unpacks to more than 1 MiB"),
        ("LINE", 1 << 20, b"1," + b"".join(b"%d" % k for k in range(1 << 19)), "a line is longer than 1 MiB"),
        ("TABLE_RUNS", 5, b"1,2\n" * 6, "holds 6 runs, more than 5"),
        ("TABLE_ROWS", 5, b"1,2\n" * 6, "more than 5 rows"),
        ("TABLE_ROWS", 5, b'1,"2"\n' * 6, "more than 5 rows"),
    ],
)
def test_packed_tables_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, content: bytes, message: str
) -> None:
    monkeypatch.setattr(limits, limit, most)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"ranks,time\n" + content))
    with pytest.raises(InputError, match=message):
        list(read_table(path, Columns({"ranks": "ranks"}, {"time": "time"})))


def test_names_of_too_many_columns_are_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TABLE_COLUMNS", 100)
    for delimiter in ",;\t| ":
        (tmp_path / "t.csv").write_text(delimiter.join(f"c{k}" for k in range(200)) + "\n")
        with pytest.raises(InputError, match="t.csv:1 names more than 100 columns"):
            read_delimited(tmp_path / "t.csv", ["c1"])


@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1])
def test_lines_that_end_where_a_piece_does(tmp_path: Path, size: int) -> None:
    """The two letters of an end of line may be in two pieces; the rows are the same."""
    head = b"ranks,time,kernel\r\n"
    first = b"1,2," + b"k" * (size - len(head) - 5) + b"\r"
    (tmp_path / "t.csv").write_bytes(head + first + b"\n3,4,b\r\n")
    found = read_delimited(tmp_path / "t.csv", ["ranks", "time"])
    assert [list(column) for column in found.columns.values()] == [["1", "3"], ["2", "4"]]
    assert list(found.lines) == [2, 3]


def test_a_file_that_takes_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.txt"
    path.write_text("PARAMETER ranks\nREGION main\nMETRIC time\n")

    class Endless:
        text = "never ends"

        def read(self, path: Path) -> Iterator[Reading]:
            yield Reading({"ranks": 2.0})
            while True:
                pass

    monkeypatch.setitem(READERS._items, "endless", Endless())
    monkeypatch.setattr(limits, "READING", 0.1)
    assert main(["import", "endless", str(path), "-o", str(tmp_path / "e")]) == 1
    said = capsys.readouterr().err
    assert "t.txt takes more than 0.1 s to read" in said
    assert said.count("\n") == 1
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)
    assert signal.getsignal(signal.SIGPROF) == signal.SIG_DFL


def test_a_table_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "1\n" * 500)
    monkeypatch.setattr(limits, "TABLE_ROWS", 300)
    with pytest.raises(InputError, match="more than 300 rows"):
        read_delimited(path, ["a"])


def test_parameters_of_a_model_do_not_overflow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = Experiment.create(tmp_path / "e", "app", ["ranks"])
    for ranks in (2, 4, 8):
        experiment.add(Run({"ranks": ranks}), pd.DataFrame({"kernel": ["a"], "rank": [0], "time": [float(ranks)]}))
    path = tmp_path / "m.json"
    main(["fit", str(tmp_path / "e"), "-o", str(path), "--quiet"])
    content = modelfile.read(path)
    for value in (1e308, -1e200, 5e-324):
        content["training"] = [[value], [4.0], [8.0]]
        modelfile.write(path, content, force=True)
        assert main(["predict", str(path), "--ranks", "16"]) == 1
        assert "out of range" in capsys.readouterr().err
    os.truncate(path, limits.MODEL + 1)
    assert main(["predict", str(path), "--ranks", "16"]) == 1
    assert "larger than" in capsys.readouterr().err


HOSTILE_TABLES = {
    "a column twice": (lambda: pa.table([["a"], [0], [1.0], [1.0]], names=["kernel", "rank", "time", "time"]), "twice"),
    "nested": (lambda: pa.table({"kernel": ["a"], "rank": [0], "time": [[1.0]]}), "time is of type list"),
    "a struct": (lambda: pa.table({"kernel": [{"a": 1}], "rank": [0], "time": [1.0]}), "kernel is of type struct"),
    "text": (lambda: pa.table({"kernel": ["a"], "rank": [0], "time": ["1"]}), "time is of type string"),
    "no rank": (lambda: pa.table({"kernel": ["a"], "rank": pa.array([None], pa.int32()), "time": [1.0]}), "no rank"),
    "no kernel": (lambda: pa.table({"rank": [0], "time": [1.0]}), "no column kernel"),
    "rows": (lambda: pa.table({"kernel": ["a"] * 400, "rank": [0] * 400, "time": [1.0] * 400}), "are too many"),
    "long texts": (lambda: pa.table({"kernel": ["a" * 9000] * 90, "rank": [0] * 90, "time": [1.0] * 90}), "too long"),
    "pandas": (
        lambda: pa.table({"kernel": ["a"], "rank": [0], "time": [1.0]}).replace_schema_metadata({"pandas": "{"}),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("case", HOSTILE_TABLES)
def test_hostile_tables_of_a_run_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    make, message = HOSTILE_TABLES[case]
    experiment = Experiment.create(tmp_path / "e", "app", ["ranks"])
    run = experiment.add(Run({"ranks": 2}), pd.DataFrame({"kernel": ["a"], "rank": [0], "time": [1.0]}))
    monkeypatch.setattr(limits, "TABLE_CELLS", 1000)
    monkeypatch.setattr(limits, "TABLE_BYTES", 100_000)
    pq.write_table(make(), tmp_path / "e" / "runs" / run.id / "counters.parquet")
    if case != "pandas":
        with pytest.raises(InputError, match=message):
            experiment.counters(["time"])
    with pytest.raises(InputError, match=message):
        experiment.table(run, "counters")
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json"), "--quiet"]) in (0, 1, 4)
    said = capsys.readouterr().err
    assert "internal error" not in said


@pytest.mark.parametrize("kind", [pa.null(), pa.string(), pa.int64(), pa.float64()])
def test_a_table_without_rows_has_whatever_types(tmp_path: Path, kind: pa.DataType) -> None:
    """One rank sends nothing to anybody: nothing is known of the types of its table of partners."""
    experiment = Experiment.create(tmp_path / "e", "app", ["ranks"])
    run = experiment.add(Run({"ranks": 1}), pd.DataFrame({"kernel": ["a"], "rank": [0], "time": [1.0]}))
    nothing = pa.table({name: pa.array([], kind) for name in ("kernel", "rank", "operation", "peer", "count")})
    pq.write_table(nothing, tmp_path / "e" / "runs" / run.id / "peers.parquet")
    found = experiment.table(run, "peers")
    assert found is not None
    assert len(found) == 0


def test_a_dictionary_that_unpacks_to_more_than_the_memory_is_refused(tmp_path: Path) -> None:
    """Some kilobytes whose kernel's name of 1 MB stands in 100,000 rows."""
    experiment = Experiment.create(tmp_path / "e", "app", ["ranks"])
    run = experiment.add(Run({"ranks": 2}), pd.DataFrame({"kernel": ["a"], "rank": [0], "time": [1.0]}))
    file = tmp_path / "e" / "runs" / run.id / "counters.parquet"
    zeros = pa.array([0] * 100_000, pa.int32())
    names = pa.DictionaryArray.from_arrays(zeros, pa.array(["x" * 1_000_000]))
    table = pa.table({"kernel": names, "rank": zeros, "time": [1.0] * 100_000})
    pq.write_table(table, file, store_schema=False)  # a text for whoever reads it
    assert file.stat().st_size < 100_000
    code = """
from ranksight.core.errors import InputError
from ranksight.core.experiment import read
try:
    read(sys.argv[1]).counters()
except InputError as error:
    print(error)
"""
    assert "texts of kernel are too long" in within(code, str(tmp_path / "e"))


def test_rows_of_one_value_do_not_fill_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "counters.parquet"
    for rows in (1000, 10_000_000):
        kernel = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), rows), pa.array(["work"]))
        zeros = pa.repeat(pa.scalar(0, pa.int32()), rows)
        pq.write_table(pa.table({"kernel": kernel, "rank": zeros, "time": zeros}), file, compression="zstd")
        if rows == 1000:
            assert len(read_frame(file)) == rows
    with pytest.raises(InputError, match="10000000 rows of 3 columns, .* are too many for its size"):
        read_frame(file)


def test_counters_of_text_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "counters.parquet"
    pd.DataFrame({"kernel": ["work"], "rank": [0], "operation": ["Isend"]}).to_parquet(file)
    with pytest.raises(InputError, match="its column operation is of type"):
        read_frame(file)


@pytest.mark.parametrize("target", ["/dev/zero", "counters.parquet", "nowhere"])
def test_a_table_that_is_no_file_is_not_taken_for_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    experiment = Experiment.create(tmp_path / "e", "app", ["ranks"])
    for ranks in (2, 4, 8):
        experiment.add(Run({"ranks": ranks}), pd.DataFrame({"kernel": ["a"], "rank": [0], "time": [float(ranks)]}))
    file = tmp_path / "e" / "runs" / experiment.runs[0].id / "counters.parquet"
    file.unlink()
    file.symlink_to(target)
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json"), "--quiet"]) == 1
    said = capsys.readouterr().err
    assert str(file) in said
    assert said.count("\n") == 1


def test_a_name_that_is_no_unicode_text_is_refused_by_any_pandas(tmp_path: Path) -> None:
    counters = pd.DataFrame({"kernel": pd.Series(["main", "\ud800"], dtype=object), "rank": 0, "time": 1.0})
    with pytest.raises(InputError, match="not Unicode text"):
        list(in_time(tmp_path, iter([Reading(counters=counters)])))
