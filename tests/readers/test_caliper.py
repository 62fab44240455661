"""Caliper: .cali and both kinds of JSON, exclusive values, reduced profiles, damage; real files against their own sums."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import readings
from readings import cell

from ranksight.core.errors import InputError, ToolError
from ranksight.core.experiment import ALL_RANKS, WHOLE
from ranksight.core.reading import READERS, in_time

DATA = Path(__file__).parent / "data" / "caliper"
caliperreader = pytest.importorskip("caliperreader")
read = partial(readings.read, "caliper")


@pytest.mark.parametrize(
    "name", ["two_ranks.cali", "reduced.cali", "split.json", "records.json", "report.json", "callpath.json"]
)
def test_recognised_by_no_other_reader(name: str) -> None:
    path = DATA / name
    assert [n for n in READERS if READERS[n].recognises(path, path.read_bytes()[:4096])] == ["caliper"]


def test_stream_with_ranks() -> None:
    reading = read(DATA / "two_ranks.cali")
    assert reading.configuration == {"ranks": 2.0}
    assert reading.environment["problem_size"] == "30"
    assert reading.command == ("./heat", "-n", "30")
    solve = "main->solve<a,b>"
    assert cell(reading, "main", "time") == pytest.approx(3.0)
    assert cell(reading, solve, "time") == pytest.approx(4.5)
    assert cell(reading, solve, "time_inclusive") == 6.0
    assert cell(reading, f'{solve}->say "hi"', "time", 1) == 7.5
    assert cell(reading, solve, "time", 1) == 0.0
    assert any("exceeds the caller's in 1 places" in note for note in reading.notes)
    assert cell(reading, solve, "instructions", 1) == 5001
    assert cell(reading, solve, "visits", 1) == 4
    # Half a second was outside of regions that took eight: it is not the whole program.
    assert cell(reading, "(outside of regions)", "time") == 0.5
    assert WHOLE not in set(reading.counters["kernel"])
    assert reading.provenance["time"].startswith("derived from inclusive#sum#time.duration")
    assert any("min#papi.PAPI_TOT_INS" in note for note in reading.notes)


@pytest.mark.parametrize(("seconds", "kernel"), [(9.0, WHOLE), (0.1, "(outside of regions)")])
def test_a_record_without_a_path_is_the_whole_where_it_holds_the_rest(
    seconds: float, kernel: str, tmp_path: Path
) -> None:
    records = [{"time": seconds}, {"path": "main", "time": 2.0}, {"path": "main/solve", "time": 6.0}]
    (tmp_path / "r.json").write_text(json.dumps(records))
    assert cell(read(tmp_path / "r.json"), kernel, "time") == pytest.approx(seconds)


def test_profile_reduced_over_ranks() -> None:
    reading = read(DATA / "reduced.cali").per_rank("here")
    assert reading.configuration == {"ranks": 4.0}
    assert set(reading.counters["rank"]) == {ALL_RANKS}
    assert cell(reading, "main", "time", ALL_RANKS) == pytest.approx((40.0 - 24.0) / 4)
    assert cell(reading, "main->solve", "time", ALL_RANKS) == pytest.approx(6.0)
    assert cell(reading, "main->solve", "max#inclusive#sum#time.duration", ALL_RANKS) == pytest.approx(7.0)


def test_split_json() -> None:
    reading = read(DATA / "split.json")
    assert reading.configuration == {"ranks": 2.0}
    assert cell(reading, 'main->f<a, "b">', "time", 1) == pytest.approx(2.0)
    assert cell(reading, 'main->f<a, "b">', "visits", 1) == 7
    assert cell(reading, "(outside of regions)", "time") == pytest.approx(4.0)
    assert any("microseconds" in note for note in reading.notes)
    assert reading.environment["problem_size"] == "64"


def test_report_whose_columns_are_named_for_people(tmp_path: Path) -> None:
    reading = read(DATA / "report.json")
    assert reading.configuration == {"ranks": 4.0}
    assert cell(reading, "main", "time", ALL_RANKS) == pytest.approx(4.0)
    assert cell(reading, "main->solve->halo", "time", ALL_RANKS) == pytest.approx(2.0)
    assert cell(reading, "main->solve", "Max time/rank", ALL_RANKS) == 7.0
    assert any("does not say whether callees count: taken with them" in note for note in reading.notes)
    path = tmp_path / "exclusive.json"
    path.write_text((DATA / "report.json").read_text().replace("11.0, 10.0", "11.0, 1.0"))
    reading = read(path)
    assert cell(reading, "main", "time", ALL_RANKS) == 1.0
    assert cell(reading, "main->solve", "time", ALL_RANKS) == 6.0


def test_call_paths_from_the_stack() -> None:
    reading = read(DATA / "callpath.json")
    assert cell(reading, "main", "visits") == 30
    assert cell(reading, "main->(unnamed)", "visits", 1) == 40


def test_records_json() -> None:
    reading = read(DATA / "records.json")
    assert cell(reading, "main->solve", "time", 1) == 2.5
    assert cell(reading, "main->solve", "visits") == 7


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("two_ranks.cali", "__rec=globals,ref=66\n", "", r":\d+ breaks off"),
        ("two_ranks.cali", "attr=25,data=main", "attr=99,data=main", r":\d+ cannot be read"),
        ("two_ranks.cali", "__rec=ctx,ref=50", "__ref=50", r":18 cannot be read: ValueError a record does not begin"),
        (
            "two_ranks.cali",
            "id=51,attr=25,data=solve<a\\,b>,parent=50",
            "id=51,attr=25,data=s,parent=51",
            ":15 cannot.*its own",
        ),
        ("two_ranks.cali", "id=50,attr=25,data=main", "id=50,attr=25,data=main,parent=51", ":14 cannot.*not known yet"),
        ("two_ranks.cali", "id=51,attr=25", "id=50,attr=25", ":15 cannot.*(its own|a second time)"),
        (
            "two_ranks.cali",
            "id=33,attr=10,data=65,parent=32",
            "id=33,attr=10,data=65,parent=4,parent=33",
            ":8 cannot.*own",
        ),
        ("two_ranks.cali", "data=0=9.0", "data=0=x", "'x' of inclusive#sum#time.duration is not a number"),
        ("two_ranks.cali", "data=0=9.0", "data=0=1e300", r"inclusive#sum#time.duration is 1e\+300, which"),
        ("two_ranks.cali", "data=0=9.0", "data=0=-3", "inclusive#sum#time.duration is -3, which"),
        ("two_ranks.cali", "data=0=9.0", "data=zero=9.0", "has the rank 'zero'"),
        ("two_ranks.cali", "data=2\n", "data=3\n", "holds 2 of 3 ranks"),
        ("two_ranks.cali", "inclusive#sum#", "max#", "."),
        ("split.json", "3000000, 0, 2, 0", "3000000, 0, 2, 9", "names node 9 of 2"),
        ("split.json", "3000000, 0, 2, 0", "3000000, 0, 2", "row 1 of data has not 4 values"),
        ("split.json", '"parent": 0', '"parent": 1', "node 1 has no proper parent"),
        ("split.json", '"label": "main"', '"label" "main"', r"split.json:12 is not valid JSON"),
        (
            "split.json",
            "5000000, 1, 3, 0 ],\n    [ 2000000, 1",
            "5, 2, 3, 0 ],\n [ 2, 2",
            "rank 1 of 0 to 2 is missing",
        ),
        ("split.json", '"column_metadata": [', '"column_metadata": 5, "other": [', "column_metadata is not a list"),
        ("split.json", "3000000,", "-3,", "sum#time.duration is -3, which no counter holds"),
        ("split.json", "3000000,", '"text",', "'text' of sum#time.duration is not a number"),
        ("split.json", "3000000,", "1" + "0" * 400 + ",", "not a number|no counter"),
    ],
)
def test_damage_is_named(tmp_path: Path, name: str, old: str, new: str, says: str) -> None:
    text = (DATA / name).read_text()
    assert old in text
    path = tmp_path / name
    path.write_text(text.replace(old, new, 1))
    if says == ".":
        assert set(read(path).counters) >= {"visits", "instructions"}
        return
    with pytest.raises(InputError, match=says):
        read(path)


def test_a_region_without_a_name_has_one_here(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    path.write_text((DATA / "split.json").read_text().replace('"label": "main"', '"label": ""'))
    assert cell(read(path), '(unnamed)->f<a, "b">', "visits", 1) == 7


def test_half_a_surrogate_pair_in_a_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "split.json"
    path.write_text((DATA / "split.json").read_text().replace('"label": "main"', '"label": "\\ud800"'))
    with pytest.raises(InputError, match=r"split\.json holds the name .*, which is not Unicode text"):
        list(in_time(path, READERS["caliper"].read(path)))


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text('{"data":[' + "[" * 100_000)
    with pytest.raises(InputError, match=r"deep\.json"):
        read(path)


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "caliperreader", None)
    with pytest.raises(ToolError, match=r"pip install 'ranksight\[caliper\]'"):
        read(DATA / "two_ranks.cali")
    assert read(DATA / "split.json").counters is not None


# ---- real files -----------------------------------------------------------------------------------------------------


def test_real_json_agrees_with_its_inclusive_column(shared: Path) -> None:
    """The file holds inclusive times too: each must be the sum of our exclusive ones below it."""
    path = shared / "data" / "formats" / "caliper" / "lulesh-annotation-profile.json"
    table = read(path).counters
    content = json.loads(path.read_text())
    names: list[str] = []
    for node in content["nodes"]:
        names.append(f"{names[node['parent']]}->{node['label']}" if "parent" in node else node["label"])
    compared = 0
    for inclusive, rank, _, node in content["data"]:
        mine = table[table["rank"] == rank]
        if node is None:
            continue
        below = mine[(mine["kernel"] == names[node]) | mine["kernel"].str.startswith(names[node] + "->")]
        assert below["time"].sum() == pytest.approx(inclusive * 1e-6, rel=1e-9)
        compared += 1
    assert compared > 100


def test_real_streams_agree_with_their_totals(shared: Path) -> None:
    files = sorted((shared / "data" / "scaling" / "lulesh_caliper_weak").glob("*.cali"))
    files += sorted((shared / "data" / "formats" / "caliper").glob("2*.cali"))
    assert len(files) >= 6
    for path in files:
        reading = read(path)
        contents = caliperreader.CaliperReader()
        contents.read(str(path))
        ranks = float(contents.globals["mpi.world.size"])
        assert reading.configuration == {"ranks": ranks}
        total = sum(
            float(record["sum#inclusive#sum#time.duration"])
            for record in contents.records
            if len(record.get("path", [])) < 2 and "sum#inclusive#sum#time.duration" in record
        )
        # the file gives six decimals of each of about 46 sums
        assert reading.counters["time"].sum() == pytest.approx(total, rel=1e-4)
        assert reading.per_rank("here").counters["time"].sum() == pytest.approx(total / ranks, rel=1e-4)
        assert np.isfinite(reading.counters["time"]).all()
        assert float(reading.environment["problem_size"]) == 30


def test_real_exclusive_stream(shared: Path) -> None:
    reading = read(shared / "data" / "formats" / "caliper" / "lulesh-annotation-profile.cali")
    kernel = "main->lulesh.cycle->LagrangeLeapFrog->LagrangeNodal->CalcForceForNodes->CalcVolumeForceForElems"
    assert cell(reading, f"{kernel}->IntegrateStressForElems", "time") == 0.056681
    assert cell(reading, kernel, "visits") == 30


NODES = "__rec=node,id=24,attr=10,data=64,parent=3\n__rec=node,id=25,attr=8,data=region,parent=24\n"


@pytest.mark.parametrize(
    "record",
    [
        "__rec=node,id=26,attr=10,da,par=25,attr=8,data=region,parent=26=more",
        "__rec=node,id=26,attr=8,data=backslash\\\\,parent=26",
        "  __rec=node,id=26,attr=8,data=region,parent=26",
        "x=1,__rec=node,id=26,attr=8,data=region,parent=26",
        "__rec=no\\de,id=26,attr=8,data=region,parent=26",
        "__rec=ctx,__rec=node,id=26,attr=8,data=region,parent=26",
    ],
)
def test_a_node_below_itself_is_refused_however_it_is_written(tmp_path: Path, record: str) -> None:
    """Found by fuzzing: caliper-reader follows such a node's parents for ever."""
    path = tmp_path / "loop.cali"
    path.write_text(f"{NODES}{record}\n__rec=ctx,ref=26\n")
    with pytest.raises(InputError, match=r"loop\.cali:3 cannot be read"):
        list(READERS["caliper"].read(path))


def test_escaped_commas_are_part_of_a_name(tmp_path: Path) -> None:
    text = (Path(__file__).parent / "data" / "caliper" / "two_ranks.cali").read_text()
    (before,) = READERS["caliper"].read(Path(__file__).parent / "data" / "caliper" / "two_ranks.cali")
    name = next(line for line in text.splitlines() if "data=solve" in line or "data=main" in line).split("data=")[1]
    name = name.split(",")[0]
    path = tmp_path / "p.cali"
    path.write_text(text.replace(f"data={name}", f"data={name}\\,parent\\=7"))
    (after,) = READERS["caliper"].read(path)
    assert len(after.counters) == len(before.counters)
    assert any(",parent=7" in kernel for kernel in after.counters["kernel"])
