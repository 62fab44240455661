"""HPCToolkit: experiment.xml with and without the binary files of ranks, hostile XML; a real database."""

from __future__ import annotations

import re
import shutil
import struct
from pathlib import Path

import pytest
from ranksight.errors import InputError
from ranksight.experiment import ALL_RANKS
from ranksight.reading import READERS, Reading

DATA = Path(__file__).parent / "data" / "hpctoolkit"
SWEEP = 'main->sweep<double, "x">'
NODES = {3: (2000.0, 20.0), 7: (20000.0, 100.0), 9: (4000.0, 10.0)}


def read(path: Path) -> Reading:
    (reading,) = READERS["hpctoolkit"].read(path)
    return reading


def cell(reading: Reading, kernel: str, rank: int, metric: str) -> float:
    table = reading.counters
    row = table[(table["kernel"] == kernel) & (table["rank"] == rank)]
    assert len(row) == 1
    return float(row[metric].iloc[0])


def store(folder: Path, rank: int, thread: int = 0, order: str = ">") -> Path:
    rows = [value for node in range(1, 10) for value in (0.0, NODES.get(node, (0, 0))[0], 0.0, NODES.get(node, (0, 0))[1])]
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
    assert cell(reading, "main", 0, "time") == pytest.approx(0.002)
    assert cell(reading, SWEEP, 1, "time") == pytest.approx(0.04)
    assert cell(reading, SWEEP, 1, "cycles") == 200
    assert cell(reading, f"{SWEEP}->inlined", 0, "cycles") == 10
    assert reading.provenance["time"] == "sampled (REALTIME)"


def test_little_endian_and_threads(database: Path) -> None:
    store(database, 0, thread=1, order="<")
    reading = read(database)
    assert cell(reading, SWEEP, 0, "time") == pytest.approx(0.02)
    assert cell(reading, SWEEP, 0, "cycles") == 200


def test_sums_only() -> None:
    reading = read(DATA / "experiment.xml")
    assert reading.configuration == {}
    assert set(reading.counters["rank"]) == {ALL_RANKS}
    assert cell(reading, SWEEP, ALL_RANKS, "time") == pytest.approx(0.05)
    assert cell(reading, f"{SWEEP}->inlined", ALL_RANKS, "cycles") == 30
    assert any("sums over all ranks" in note for note in reading.notes)


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


def test_newer_database_is_named(tmp_path: Path) -> None:
    for name in ("meta.db", "profile.db"):
        (tmp_path / name).write_bytes(b"HPCTOOLKITmeta")
    assert READERS["hpctoolkit"].recognises(tmp_path, b"")
    with pytest.raises(InputError, match="2022 or later"):
        read(tmp_path)


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
