"""Call paths that are deep, or of long names: their names grow with the square of the depth."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.reading import READERS
from ranksight.counters.readers._calltree import CallPaths, tree

HEAD = (
    '<?xml version="1.0"?>\n<!DOCTYPE HPCToolkitExperiment [<!ELEMENT a (b)>]>\n<HPCToolkitExperiment version="2.0">'
    '<SecCallPathProfile i="0" n="a"><SecHeader><MetricTable>{metrics}</MetricTable>'
    '<ProcedureTable><Procedure i="7" n="{name}"/></ProcedureTable></SecHeader><SecCallPathProfileData>'
)
TAIL = "</SecCallPathProfileData></SecCallPathProfile></HPCToolkitExperiment>"


def hpctoolkit(folder: Path, body: str, name: str = "f", metrics: int = 1) -> Path:
    """An experiment.xml."""
    named = "".join(f'<Metric i="{k}" n="REALTIME{k or ""} (usec):Sum (E)"/>' for k in range(metrics))
    (folder / "experiment.xml").write_text(HEAD.format(metrics=named, name=name) + body + TAIL)
    return folder / "experiment.xml"


def deep_hpctoolkit(folder: Path, depth: int, name: str) -> Path:
    calls = "".join(f'<PF i="{k + 2}" n="7"><S i="{k + 50_000}"><M n="0" v="1"/></S>' for k in range(depth))
    return hpctoolkit(folder, calls + "</PF>" * depth, name)


def deep_caliper(folder: Path, depth: int, name: str) -> Path:
    nodes = [{"label": name, "column": "path", **({"parent": k - 1} if k else {})} for k in range(depth)]
    content = {"data": [[k, 1.0] for k in range(depth)], "columns": ["path", "time"], "nodes": nodes}
    (folder / "c.json").write_text(
        json.dumps({**content, "column_metadata": [{"is_value": False}, {"is_value": True}]})
    )
    return folder / "c.json"


def deep_papi(folder: Path, depth: int, name: str) -> Path:
    regions = [{str(k): {"name": name, "parent_region_id": str(k - 1), "cycles": 1}} for k in range(depth)]
    (folder / "rank_000000.json").write_text(json.dumps({"threads": [{"id": "0", "regions": regions}]}))
    return folder / "rank_000000.json"


DEEP: dict[str, Callable[[Path, int, str], Path]] = {
    "hpctoolkit": deep_hpctoolkit,
    "caliper": deep_caliper,
    "papi": deep_papi,
}


@pytest.mark.parametrize("reader", sorted(DEEP))
def test_names_of_deep_paths_do_not_fill_the_memory(tmp_path: Path, reader: str) -> None:
    path = DEEP[reader](tmp_path, 9000, "main")  # less than a MB, and 250 MB of names
    start = time.process_time()
    with pytest.raises(InputError, match="names of its call paths are longer than 128 MiB"):
        list(READERS[reader].read(path))
    assert time.process_time() - start < 20


@pytest.mark.parametrize("reader", sorted(DEEP))
def test_paths_that_are_not_as_deep_are_read(tmp_path: Path, reader: str) -> None:
    (found,) = READERS[reader].read(DEEP[reader](tmp_path, 500, "main"))
    assert found.counters is not None
    assert sorted(found.counters["kernel"]) == sorted("->".join(["main"] * depth) for depth in range(1, 501))


@pytest.mark.parametrize("reader", sorted(DEEP))
def test_paths_deeper_than_the_limit_are_refused(tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DEPTH", 50)
    with pytest.raises(InputError, match="more than 50 deep"):
        list(READERS[reader].read(DEEP[reader](tmp_path, 60, "main")))


def test_statements_of_many_metrics(tmp_path: Path) -> None:
    count, metrics = 2000, 200
    calls = "".join(
        f'<PF i="{k}" n="f{k}"><S i="{k + 50_000}"><M n="{k % metrics}" v="1"/></S></PF>' for k in range(1, count)
    )
    path = hpctoolkit(tmp_path, calls, metrics=metrics)
    (found,) = READERS["hpctoolkit"].read(path)
    assert found.counters is not None
    assert found.counters.drop(columns=["kernel", "rank"]).to_numpy().sum() == pytest.approx((count - 1) * 1e-6)


def test_more_metrics_and_paths_than_fit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PROFILE_TABLE", 8 * 10)
    calls = "".join(f'<PF i="{k}" n="f{k}"><S i="{k + 99}"><M n="0" v="1"/></S></PF>' for k in range(1, 5))
    with pytest.raises(InputError, match="more than 2 metrics of 4 call paths"):
        list(READERS["hpctoolkit"].read(hpctoolkit(tmp_path, calls, metrics=3)))


def test_values_of_statements_that_are_named_twice_count_in_both_paths(tmp_path: Path) -> None:
    calls = '<PF i="2" n="f"><S i="9"><M n="0" v="5"/></S></PF><PF i="3" n="g"><S i="9"/><S i="10"/></PF>'
    (found,) = READERS["hpctoolkit"].read(hpctoolkit(tmp_path, calls))
    assert found.counters is not None
    assert found.counters["kernel"].tolist() == ["f", "g"]
    assert found.counters["time"].tolist() == pytest.approx([5e-6, 5e-6])


def test_the_nearest_caller_with_a_row() -> None:
    calls = CallPaths("a file")
    main = calls.number(CallPaths.ROOT, "main")
    inner = calls.number(calls.number(main, "a"), "b")
    leaf = calls.number(inner, "c")
    rows = tree(calls, [leaf, main, leaf, inner, CallPaths.ROOT], [0, 0, 1, 0, 0], [""] * 5, {})
    assert rows.kernels == ["main->a->b->c", "main", "main->a->b->c", "main->a->b", "(whole program)"]
    assert rows.parents.tolist() == [3, -1, -1, 1, -1]


def test_two_paths_of_one_name_are_one_kernel() -> None:
    calls = CallPaths("a file")
    paths = [calls.number(CallPaths.ROOT, "a->b"), calls.number(calls.number(CallPaths.ROOT, "a"), "b")]
    names, places = calls.kernels()
    assert names == ["a->b", "a"]
    assert places[paths].tolist() == [0, 0]


def test_records_of_caliper_that_name_deep_nodes_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("caliperreader")
    lines = (Path(__file__).parent / "data" / "caliper" / "reduced.cali").read_text().splitlines()[:9]
    lines += [f"__rec=node,id={k},attr=25,data=f" + (f",parent={k - 1}" if k > 60 else "") for k in range(60, 3000)]
    lines += ["__rec=ctx,ref=2999,attr=34,data=1"] * 1000
    path = tmp_path / "deep.cali"
    path.write_text("\n".join([*lines, ""]))
    with pytest.raises(InputError, match="name more nodes"):
        list(READERS["caliper"].read(path))


def test_paths_of_caliper_that_are_no_numbers_of_nodes(tmp_path: Path) -> None:
    content = {"data": [["main", 2.0], [0, 1.0], [["main", "f"], 0.5]], "columns": ["path", "time"]}
    nodes = [{"label": "a", "column": "path"}]
    metadata = [{"is_value": False}, {"is_value": True}]
    path = tmp_path / "c.json"
    path.write_text(json.dumps({**content, "nodes": nodes, "column_metadata": metadata}))
    (found,) = READERS["caliper"].read(path)
    assert found.counters is not None
    assert sorted(found.counters["kernel"]) == ["a", "main", "main->f"]


def test_names_of_metrics_of_many_blanks_take_no_long_time(tmp_path: Path) -> None:
    """Less than a MB; the time of a search that begins anew at each blank grows with the square."""
    path = hpctoolkit(tmp_path, '<PF i="2" n="f"><S i="9"><M n="0" v="5"/></S></PF>', metrics=2)
    text = path.read_text()
    for name in (" " * 200_000 + "x", "(" * 200_000, ":a" * 100_000, "(a" * 100_000 + " (E)", " " * 200_000 + "(E)"):
        path.write_text(text.replace("REALTIME1 (usec):Sum (E)", name))
        start = time.process_time()
        (found,) = READERS["hpctoolkit"].read(path)
        assert found.counters is not None
        assert found.counters["time"].tolist() == pytest.approx([5e-6])
        assert time.process_time() - start < 5
