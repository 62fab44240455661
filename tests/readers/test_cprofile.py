"""Python's cProfile, as a file and as a table."""

from __future__ import annotations

import cProfile
import io
import marshal
import pstats
from pathlib import Path

import pytest

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS, Reading
from ranksight.core.testing import check_reader

READER = READERS["cprofile"]
MADE = {
    ("/home/me/heat.py", 24, "solve"): (3, 5, 1.25, 2.5, {("/home/me/heat.py", 60, "main"): (3, 5, 1.25, 2.5)}),
    ("/home/me/heat.py", 60, "main"): (1, 1, 0.5, 3.5, {}),
    ("~", 0, "<method 'Allreduce' of 'mpi4py.MPI.Comm' objects>"): (10, 10, 0.75, 0.75, {}),
    ("~", 0, "<built-in method time.sleep>"): (2, 2, 2**40 * 1e-12, 1.0, {}),
}


def value(reading: Reading, kernel: str, metric: str, rank: int = 0) -> float:
    assert reading.counters is not None
    return float(reading.counters.set_index(["kernel", "rank"]).loc[(kernel, rank), metric])


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "heat.prof"
    path.write_bytes(marshal.dumps(MADE))
    assert [name for name in READERS if READERS[name].recognises(path, path.read_bytes()[:4096])] == ["cprofile"]
    (found,) = READER.read(path)
    assert value(found, "solve (heat.py:24)", "time") == 1.25
    assert value(found, "solve (heat.py:24)", "visits") == 5
    assert value(found, "MPI_Allreduce", "time") == 0.75
    assert value(found, "{built-in method time.sleep}", "time") == 2**40 * 1e-12
    assert found.notes == ()
    check_reader(READER, path)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_versions_of_the_format(tmp_path: Path, version: int) -> None:
    path = tmp_path / "heat.prof"
    path.write_bytes(marshal.dumps(MADE, version))
    if version < 2:  # numbers as text, of Python before 2.5
        with pytest.raises(InputError, match=r"heat\.prof is no profile of cProfile: a value of the type 'f'"):
            list(READER.read(path))
        return
    (found,) = READER.read(path)
    assert value(found, "main (heat.py:60)", "time") == 0.5


def test_the_tool_itself(tmp_path: Path) -> None:
    def work(count: int) -> int:
        return count if count == 0 else work(count - 1) + len(sorted(range(2000)))

    profile = cProfile.Profile()
    profile.runcall(work, 20)
    path = tmp_path / "rank0.prof"
    profile.dump_stats(path)
    text = io.StringIO()
    stats = pstats.Stats(str(path), stream=text)
    stats.strip_dirs().print_stats()
    table = tmp_path / "table.txt"
    table.write_text(text.getvalue())
    (one,), (other,) = READER.read(path), READER.read(table)
    name = next(kernel for kernel in one.counters["kernel"] if kernel.startswith("work (test_cprofile.py:"))  # type: ignore[index]
    assert value(one, name, "visits") == value(other, name, "visits") == 21
    for kernel in one.counters["kernel"]:  # type: ignore[index]
        assert value(other, kernel, "time") == pytest.approx(value(one, kernel, "time"), abs=5.1e-4)
    assert (other.wall_time or 0.0) == pytest.approx(stats.total_tt, abs=5.1e-4)  # type: ignore[attr-defined]
    check_reader(READER, table)


def test_a_folder_of_ranks(tmp_path: Path) -> None:
    for rank in range(3):
        row = (1, 1, 1.0 + rank, 1.0, {})
        (tmp_path / f"heat.rank{rank}.prof").write_bytes(marshal.dumps({("heat.py", 3, "main"): row}))
    assert READER.recognises(tmp_path, b"")
    (found,) = READER.read(tmp_path)
    assert found.configuration == {"ranks": 3}
    assert [value(found, "main (heat.py:3)", "time", rank) for rank in range(3)] == [1, 2, 3]


def test_a_list_that_is_reduced_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "table.txt"
    path.write_text(
        "         30 function calls in 2.000 seconds\n\n   Ordered by: internal time\n"
        "   List reduced from 12 to 1 due to restriction <1>\n\n"
        "   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n"
        "     10/2    1.500    0.150    2.000    1.000 heat.py:24(solve)\n\n\n"
    )
    (found,) = READER.read(path)
    assert value(found, "solve (heat.py:24)", "visits") == 10
    assert any("11 functions with 0.5 s together are not listed" in note for note in found.notes)


@pytest.mark.parametrize(
    "content",
    [
        marshal.dumps({"a": 1}),
        marshal.dumps({("a", 1, "b"): (1, 2, 3)}),
        marshal.dumps({("a", 1, "b"): (1, 1, -2.0, 1.0, {})}),
        marshal.dumps({("a", 1, "b"): (1, 2**80, 2.0, 1.0, {})}),
        marshal.dumps(MADE)[:-20],
        b"\xfb)\x03" + b"\xa9\x02r\x00\x00\x00\x00" * 50,
        b"{" + b"(\xff\xff\xff\x7f" * 3,
        b"{" * 5000,
    ],
)
def test_damage_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "heat.prof"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"heat\.prof"):
        list(READER.read(path))
