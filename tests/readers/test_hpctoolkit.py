"""HPCToolkit: experiment.xml with and without the binary files of ranks, hostile XML; a real database."""

from __future__ import annotations

import random
import re
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
import readings
from readings import cell

from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS
from ranksight.core.reading import READERS

DATA = Path(__file__).parent / "data" / "hpctoolkit"
SWEEP = 'main->sweep<double, "x">'
NODES = {3: (2000.0, 20.0), 7: (20000.0, 100.0), 9: (4000.0, 10.0)}

read = partial(readings.read, "hpctoolkit")


def store(folder: Path, rank: int, thread: int = 0, order: str = ">") -> Path:
    rows = [
        value for node in range(1, 10) for value in (0.0, NODES.get(node, (0, 0))[0], 0.0, NODES.get(node, (0, 0))[1])
    ]
    rows = [value * (rank + 1) for value in rows]
    head = b"HPCPROF-metricdb__00.10" + (b"b" if order == ">" else b"l") + struct.pack(f"{order}ii", 9, 4)
    path = folder / f"1.heat-{rank:06d}-{thread:03d}-a8c00270-{4000 + rank}-0.metric-db"
    path.write_bytes(head + struct.pack(f"{order}36d", *rows))
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    shutil.copytree(DATA, tmp_path / "db")
    for rank in range(2):
        store(tmp_path / "db", rank)
    return tmp_path / "db"


def test_ranks_from_the_binary_files(database: Path) -> None:
    assert [n for n in READERS if READERS[n].recognises(database, b"")] == ["hpctoolkit"]
    reading = read(database)
    assert reading.configuration == {"ranks": 2.0}
    assert cell(reading, "main", "time") == pytest.approx(0.002)
    assert cell(reading, SWEEP, "time", 1) == pytest.approx(0.04)
    assert cell(reading, SWEEP, "cycles", 1) == 200
    assert cell(reading, f"{SWEEP}->inlined", "cycles") == 10
    assert reading.provenance["time"] == "sampled (REALTIME)"


def test_little_endian_and_threads(database: Path) -> None:
    store(database, 0, thread=1, order="<")
    reading = read(database)
    assert cell(reading, SWEEP, "time") == pytest.approx(0.02)
    assert cell(reading, SWEEP, "cycles") == 200


def test_sums_only() -> None:
    reading = read(DATA / "experiment.xml")
    assert reading.configuration == {}
    assert set(reading.counters["rank"]) == {ALL_RANKS}
    assert cell(reading, SWEEP, "time", ALL_RANKS) == pytest.approx(0.05)
    assert cell(reading, f"{SWEEP}->inlined", "cycles", ALL_RANKS) == 30
    assert any("sums over all ranks" in note for note in reading.notes)


def test_two_clocks_keep_their_times(database: Path) -> None:
    file = database / "experiment.xml"
    file.write_text(file.read_text().replace("PAPI_TOT_CYC", "CPUTIME (usec)"))
    reading = read(database)
    assert cell(reading, SWEEP, "time", 1) == pytest.approx(0.04)
    assert cell(reading, SWEEP, "cpu_time", 1) == pytest.approx(200e-6)
    for store in database.glob("*.metric-db"):
        store.unlink()
    reading = read(database)
    assert cell(reading, SWEEP, "time", ALL_RANKS) == pytest.approx(0.05)
    assert cell(reading, f"{SWEEP}->inlined", "cpu_time", ALL_RANKS) == pytest.approx(30e-6)


def test_entities_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "experiment.xml"
    bomb = '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">\n]>'
    path.write_text((DATA / "experiment.xml").read_text().replace("]>", bomb, 1).replace('n="heat"', 'n="&b;"', 1))
    with pytest.raises(InputError, match=r"experiment\.xml:5: entities are not part"):
        read(path)


def test_damage_is_named(database: Path) -> None:
    text = (database / "experiment.xml").read_text()
    for end in range(200, len(text) - 30, 211):
        (database / "experiment.xml").write_text(text[:end])
        with pytest.raises(InputError, match=r"experiment\.xml"):
            read(database)
    (database / "experiment.xml").write_text(text.replace('db-id="3"', 'db-id="179877"'))
    with pytest.raises(InputError, match="does not number stored metrics 0 to 3"):
        read(database)
    (database / "experiment.xml").write_text(text)
    broken = store(database, 1)
    content = broken.read_bytes()
    for bad in (content[:-8], b"x" * len(content), content[:24] + struct.pack(">ii", 2**31 - 1, 4) + content[32:]):
        broken.write_bytes(bad)
        with pytest.raises(InputError, match=re.escape(broken.name)):
            read(database)
    broken.write_bytes(content[:-8] + struct.pack(">d", -5.0))
    with pytest.raises(InputError, match="negative or endless"):
        read(database)
    broken.unlink()
    store(database, 2)
    with pytest.raises(InputError, match="rank 1 of 0 to 2 is missing"):
        read(database)


CONTEXTS = [(1, "main", 1, [(2, "", 0, [(3, "sweep<int>", 1, [(4, "tiny", 2, [])])]), (5, "MPI_Wait", 1, [])])]
VALUES = {
    0: {1: 100.0, 3: 1000.0},
    1: {0: 10.0, 1: 100.0, 2: 100.0, 3: 1000.0},
    3: {0: 50.0, 1: 70.0, 2: 500.0, 3: 700.0},
    4: {0: 20.0, 1: 20.0, 2: 200.0, 3: 200.0},
    5: {0: 20.0, 1: 20.0, 2: 200.0, 3: 200.0},
}


def test_database_of_version_4(tmp_path: Path, write_database: Callable[..., Path]) -> None:
    double = {number: {m: 2 * value for m, value in given.items()} for number, given in VALUES.items()}
    metrics = ["CPUTIME (usec)", "PAPI_TOT_INS"]
    folder = write_database(tmp_path / "db", CONTEXTS, metrics, [(0, 0, VALUES), (1, 0, double), (1, 1, VALUES)])
    assert [n for n in READERS if READERS[n].recognises(folder, b"")] == ["hpctoolkit"]
    reading = read(folder)
    assert reading.configuration == {"ranks": 2.0}
    assert cell(reading, "main", "time") == pytest.approx(10e-6)
    assert cell(reading, "main->sweep<int>", "time", 1) == pytest.approx(100e-6)
    assert cell(reading, "main->sweep<int>", "instructions", 1) == 1500
    assert cell(reading, "main->sweep<int>->tiny", "instructions") == 200
    assert len(reading.tables["threads"]) == 3 * 4


def test_inlined_functions_are_not_counted_twice(tmp_path: Path, write_database: Callable[..., Path]) -> None:
    both = {**VALUES, 3: {0: 70.0, 1: 70.0, 2: 700.0, 3: 700.0}}
    reading = read(write_database(tmp_path / "db", CONTEXTS, ["REALTIME (sec)", "PAPI_TOT_INS"], [(0, 0, both)]))
    assert cell(reading, "main->sweep<int>", "time") == 70
    assert reading.counters["time"].sum() == 100
    wrong = {**VALUES, 3: {0: 33.0, 1: 70.0, 2: 500.0, 3: 700.0}}
    with pytest.raises(InputError, match="exclusive values add up to 83, the whole is 100"):
        read(write_database(tmp_path / "wrong", CONTEXTS, ["REALTIME (sec)", "PAPI_TOT_INS"], [(0, 0, wrong)]))


def test_damaged_database_of_version_4(tmp_path: Path, write_database: Callable[..., Path]) -> None:
    folder = write_database(tmp_path / "db", CONTEXTS, ["REALTIME (sec)", "PAPI_TOT_INS"], [(0, 0, VALUES)])
    dice = random.Random(4)
    for name in ("meta.db", "profile.db"):
        whole = (folder / name).read_bytes()
        for end in range(0, len(whole), 61):
            (folder / name).write_bytes(whole[:end])
            with pytest.raises(InputError, match=r"\.db"):
                read(folder)
        for _ in range(150):
            piece = bytearray(whole)
            at = dice.randrange(len(piece))
            piece[at : at + 4] = dice.choice((b"\xff\xff\xff\x7f", b"\0\0\0\0", dice.randbytes(4)))
            (folder / name).write_bytes(bytes(piece[: len(whole)]))
            try:
                assert (read(folder).counters["rank"] >= 0).all()
            except InputError as error:
                assert "db" in str(error)
        (folder / name).write_bytes(whole)


def test_values_of_no_context_are_refused(tmp_path: Path, write_database: Callable[..., Path]) -> None:
    folder = write_database(tmp_path / "db", CONTEXTS, ["REALTIME (sec)", "PAPI_TOT_INS"], [(0, 0, VALUES)])
    file = folder / "profile.db"
    whole = bytearray(file.read_bytes())
    (table,) = struct.unpack_from("<Q", whole, 24)
    first, count, size = struct.unpack_from("<QLB", whole, table)
    for number in range(count):
        struct.pack_into("<L", whole, first + number * size + 16, 0)
    file.write_bytes(whole)
    with pytest.raises(InputError, match="out of order"):
        read(folder)


def test_real_database(shared: Path) -> None:
    folder = shared / "data" / "formats" / "hpctoolkit" / "hpctoolkit-cpi-database"
    reading = read(folder)
    assert reading.configuration == {"ranks": 4.0}
    # the root's inclusive time of every rank, as the binary files have it: first value, microseconds
    for file in folder.glob("*.metric-db"):
        rank = int(file.name.split("-")[1])
        (whole,) = struct.unpack(">d", file.read_bytes()[32:40])
        total = reading.counters.loc[reading.counters["rank"] == rank, "time"].sum()
        assert total == pytest.approx(whole * 1e-6, rel=1e-12)
    summed = float(re.search(r'<M n="2" v="([^"]+)"', (folder / "experiment.xml").read_text())[1]) * 1e-6
    assert reading.counters["time"].sum() == pytest.approx(summed, rel=1e-5)


def test_real_database_by_procedure(shared: Path) -> None:
    """What the file itself gives as exclusive of its procedure frames, summed over ranks."""
    folder = shared / "data" / "formats" / "hpctoolkit" / "hpctoolkit-cpi-database"
    root = ElementTree.fromstring((folder / "experiment.xml").read_text())
    names = {item.get("i"): item.get("n") for item in root.iter("Procedure")}
    given: dict[str, float] = {}
    for frame in root.iter("PF"):
        for value in frame.findall("M"):
            if value.get("n") == "3":
                name = names[frame.get("n")]
                given[name] = given.get(name, 0.0) + float(value.get("v")) * 1e-6
    table = read(folder).counters
    mine = table.groupby(table["kernel"].str.split("->").str[-1])["time"].sum()
    assert given
    for name, seconds in given.items():
        assert mine[name] == pytest.approx(seconds, rel=1e-5)
    assert mine.sum() == pytest.approx(sum(given.values()), rel=1e-5)
