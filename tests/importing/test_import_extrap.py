"""Importing Extra-P's formats, alone and in folders with other files."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path

import pytest
from archives import save_extrap
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranksight.cli import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, read
from ranksight.core.reading import READERS, Reading
from ranksight.core.testing import check_reader

TEXT = """# by hand
PARAMETER p
PARAMETER n
POINTS ( 2 10 ) ( 2 20 )
POINTS (4 10)
METRIC time
REGION main
DATA 1.5 1.75
DATA 2.5 2.75
DATA 3.5
REGION main->solve
DATA 0.5 0.25
DATA 0.75
DATA nan
METRIC visits
REGION main
DATA 7 7
DATA nan
DATA nan
"""
OLD = {
    "parameters": [{"id": 1, "name": "p"}],
    "metrics": [{"id": 1, "name": "time"}],
    "callpaths": [{"id": 1, "name": "sweep"}],
    "coordinates": [
        {"id": 1, "parameter_value_pairs": [{"parameter_id": 1, "parameter_value": 4}]},
        {"id": 2, "parameter_value_pairs": [{"parameter_id": 1, "parameter_value": 8}]},
    ],
    "measurements": [
        {"id": 1, "coordinate_id": 1, "callpath_id": 1, "metric_id": 1, "value": 1.5},
        {"id": 2, "coordinate_id": 1, "callpath_id": 1, "metric_id": 1, "value": 1.75},
        {"id": 3, "coordinate_id": 2, "callpath_id": 1, "metric_id": 1, "value": 2.5},
    ],
}
NEW = {
    "parameters": ["p"],
    "measurements": {"sweep": {"time": [{"point": [4], "values": [1.5, 1.75]}, {"point": 8, "values": [2.5]}]}},
}
LINES = [
    {"params": {"p": 4}, "callpath": "sweep", "metric": "time", "value": 1.5},
    {"params": {"p": 4}, "callpath": "sweep", "metric": "time", "value": 1.75},
    {"params": {"p": 8}, "callpath": "sweep", "metric": "time", "value": 2.5},
]
TALPAS = "\n".join(
    f'{{"parameters":{{"p":{p}}};"metric":"time";"callpath":"sweep;loop";"value":{value}}}'
    for p, value in ((4, 1.5), (4, 1.75), (8, 2.5))
)


def readings(path: Path) -> list[Reading]:
    return list(READERS["extrap"].read(path))


def values(found: list[Reading], kernel: str, metric: str) -> dict[tuple[tuple[float, ...], int | None], float]:
    table = {}
    for reading in found:
        assert reading.counters is not None
        for row in reading.counters.to_dict("records"):
            if row["kernel"] == kernel and row.get(metric) == row.get(metric) is not None:
                table[tuple(reading.configuration.values()), reading.repetition] = row[metric]
    return table


def test_text_gives_every_value_its_point_and_repetition(tmp_path: Path) -> None:
    path = tmp_path / "input.txt"
    path.write_text(TEXT)
    found = readings(path)
    assert values(found, "main", "time") == {
        ((2, 10), 0): 1.5,
        ((2, 10), 1): 1.75,
        ((2, 20), 0): 2.5,
        ((2, 20), 1): 2.75,
        ((4, 10), 0): 3.5,
    }
    assert values(found, "main->solve", "time") == {((2, 10), 0): 0.5, ((2, 10), 1): 0.25, ((2, 20), 0): 0.75}
    assert values(found, "main", "visits") == {((2, 10), 0): 7, ((2, 10), 1): 7}


@pytest.mark.parametrize(
    ("name", "content", "kernel"),
    [
        ("old.json", json.dumps(OLD, indent=1), "sweep"),
        ("new.json", json.dumps(NEW, indent=1), "sweep"),
        ("lines.jsonl", "\n\n".join(map(json.dumps, LINES)), "sweep"),
        ("talpas.txt", TALPAS, "sweep;loop"),
    ],
)
def test_all_forms_say_the_same(tmp_path: Path, name: str, content: str, kernel: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    check_reader(READERS["extrap"], path)
    assert values(readings(path), kernel, "time") == {((4,), 0): 1.5, ((4,), 1): 1.75, ((8,), 0): 2.5}


def test_fewer_data_lines_than_points_are_refused_with_the_point(tmp_path: Path) -> None:
    path = tmp_path / "input.txt"
    path.write_text(TEXT.replace("DATA 0.75\nDATA nan\n", "DATA 0.75\n"))
    with pytest.raises(
        InputError,
        match=r"input\.txt:14: 2 DATA lines of time of main->solve for 3 POINTS: point 3 \(p = 4, n = 10\), .*DATA nan",
    ):
        readings(path)
    path.write_text("PARAMETER p\nPOINTS 2 4\nDATA 1\nDATA nan\n")
    assert readings(path)[0].notes == ("input.txt: value of (whole program) is nan at p = 4: left out",)


@pytest.mark.parametrize("blank", ["\t", "  ", " \t ", "\u00a0"])
def test_any_blank_separates_words(tmp_path: Path, blank: str) -> None:
    path = tmp_path / "input.txt"
    path.write_text(TEXT.replace(" ", blank), encoding="utf-8")
    assert READERS["extrap"].recognises(path, path.read_bytes()[:4096])
    found = readings(path)
    path.write_text(TEXT)
    for kernel, metric in (("main", "time"), ("main->solve", "time"), ("main", "visits")):
        assert values(found, kernel, metric) == values(readings(path), kernel, metric)


def saved(path: Path, kept: bool) -> None:
    """What Extra-P 4 saves of three points."""
    entries = [
        {"coordinate": [p], "median": float(p), "mean": 99.0, "minimum": 0.0, "maximum": 99.0, "std": 1.0,
         "repetitions": 2, "values": [0, at] if kept else None}
        for at, p in enumerate((2, 4, 8))
    ]  # fmt: skip
    save_extrap(path, entries)


def test_experiments_that_extrap_saved(tmp_path: Path) -> None:
    path = tmp_path / "study.extra-p"
    reader = READERS["extrap-experiment"]
    saved(path, kept=True)
    check_reader(reader, path)
    found = list(reader.read(path))
    assert values(found, "main", "time") == {((p,), n): p + 0.5 * n for p in (2, 4, 8) for n in (0, 1)}
    assert found[0].notes == ()
    saved(path, kept=False)
    found = list(reader.read(path))
    assert values(found, "main", "time") == {((p,), 0): p for p in (2, 4, 8)}
    assert "3 points hold the median" in found[0].notes[0]


def test_a_line_that_breaks_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "input.jsonl"
    path.write_text('{"params":{"x":1},"value":1}\n{"params":{"x":2},"value":\n')
    with pytest.raises(InputError, match="input.jsonl:2 is not valid JSON"):
        readings(path)


def test_one_line_is_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"params":{"x":1},"value":2}\n')
    (reading,) = readings(path)
    assert reading.counters is not None
    assert reading.counters["kernel"].tolist() == [WHOLE]
    assert reading.counters["value"].tolist() == [2.0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("PARAMETER p\nPOINTS 1 2\nDATA 1\nDATA 2\nDATA 3\n", "input.txt:5: a DATA line more"),
        ("PARAMETER p\nPOINTS (1 2)\nDATA 1\n", "input.txt:2: the point (1 2) has 2 values for 1"),
        ("PARAMETER p\nPOINTS (1\nDATA 1\n", "input.txt:2: parentheses"),
        ("POINTS 1\n", "input.txt:1: POINTS before"),
        ("PARAMETER p\nPOINTS 1\nDATA fast\n", "input.txt:3: 'fast' is not a number"),
        ("PARAMETER p\nPOINTS 1\nDATA inf\n", "input.txt:3: 'inf' is not finite"),
        ("PARAMETER p\nPOINTS nan\n", "input.txt:2: 'nan' is not finite"),
        ("PARAMETER p\nPOINTS 1\nDATE 1\n", "input.txt:3: 'DATE' is none of"),
        ("PARAMETER p\nPOINTS 1\n", "holds no measurement"),
        ("PARAMETER p\nPARAMETER p\n", "input.txt:2"),
        ('{"params":{"x":1},"value":2}\n{"params":{"y":1},"value":2}\n', "input.txt:2 has the parameters y"),
        ('{"params":{"x":1},"value":2}\n{"params":{"x":1}\n', "input.txt:2 is not valid JSON"),
        ('{"params":{"x":1},"value":2}\n{"params":{"x":1}}\n', "input.txt:2 lacks value"),
        ('{"params":{"x":"a"},"value":2}\n', "not a number"),
        (
            json.dumps({**OLD, "measurements": [{"coordinate_id": 9, "callpath_id": 1, "metric_id": 1, "value": 1}]}),
            "9",
        ),
        (json.dumps({**NEW, "parameters": ["p", "q"]}), "1 values for 2 parameters"),
        (json.dumps({"parameters": ["p"], "measurements": [1]}), "not built as"),
        ("{" * 100_000, "input.txt"),
        ("", "is empty"),
    ],
)
def test_damaged_files_name_the_place(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "input.txt"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        readings(path)
    assert said in str(caught.value)


def test_a_folder_is_searched_and_the_rest_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data"
    (folder / "more").mkdir(parents=True)
    (folder / "a.json").write_text(json.dumps(OLD))
    (folder / "more" / "b.jsonl").write_text("\n".join(map(json.dumps, LINES)))
    (folder / "c.txt").write_text("PARAMETER q\nPOINTS 1\nDATA 1\n")
    (folder / "d.json").write_text(json.dumps(OLD)[:-40])
    (folder / "notes.md").write_text("nothing to read")
    assert main(["import", str(folder), "-o", str(tmp_path / "made")]) == 0
    said = capsys.readouterr().err
    assert "c.txt has the parameters q" in said
    assert "d.json" in said
    assert "not recognised" in said
    assert "a.json and b.jsonl became repetitions of one configuration" in said
    assert "notes.md" in said
    experiment = read(tmp_path / "made")
    assert experiment.parameters == ("p",)
    assert [(run.configuration["p"], run.repetition) for run in experiment.runs] == [
        (4, 0),
        (4, 1),
        (4, 2),
        (4, 3),
        (8, 0),
        (8, 1),
    ]


def test_strict_refuses_all_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(OLD))
    (folder / "d.json").write_text(json.dumps(OLD)[:-40])
    assert main(["import", "extrap", str(folder), "-o", str(tmp_path / "made"), "--strict"]) == 1
    assert sorted(item.name for item in tmp_path.iterdir()) == ["data"]


def test_parameters_and_metrics_are_renamed_and_added(tmp_path: Path) -> None:
    path = tmp_path / "nodes3.txt"
    path.write_text(TEXT)
    line = [
        "import",
        "extrap",
        str(path),
        "--parameter",
        "ranks=p",
        "--parameter",
        r"nodes=nodes(\d)",
        "--set",
        "steps=5",
    ]
    assert main([*line, "--metric", "calls=visits", "-o", str(tmp_path / "made")]) == 0
    experiment = read(tmp_path / "made")
    assert set(experiment.parameters) == {"ranks", "n", "nodes", "steps"}
    assert experiment.metrics() == ("time", "calls")
    assert {run.configuration["nodes"] for run in experiment.runs} == {3.0}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--parameter", "ranks=cores"), "does not state 'cores'"),
        (("--parameter", r"ranks=rank(\d+)"), "does not match its path"),
        (("--parameter", "ranks=("), "not a regular expression"),
        (("--parameter", r"ranks=(\d)(\d)"), "2 groups"),
        (("--metric", "time=cycles"), "holds no metric 'cycles'"),
        (("--parameter", "a=p", "--set", "a=1"), "found and set"),
    ],
)
def test_wrong_options_name_what_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "input.txt"
    path.write_text(TEXT)
    assert main(["import", str(path), *options, "-o", str(tmp_path / "made")]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


def test_unknown_formats_point_to_the_table_reader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "times.txt"
    path.write_text("p,t\n1,2\n")
    assert main(["import", str(path)]) == 1
    assert "ranksight import csv" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "absent")]) == 1


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(
        st.text(alphabet="PARMETOINSDGC pn()0123.e-#\n", max_size=150).map(
            lambda text: "PARAMETER p\nPOINTS 1 2 3\n" + text
        ),
        st.lists(
            st.sampled_from(
                ["PARAMETER n", "POINTS (1 2)", "POINTS 4", "METRIC m", "REGION r", "DATA 1 2", "DATA x", ""]
            )
        ).map("\n".join),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ["parameters", "measurements", "params", "value", "callpaths", "id", "point", "values"]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=12,
        ).map(lambda content: json.dumps({"parameters": ["p"], "measurements": content})),
    )
)
def test_any_text_is_read_or_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "any.txt"
    path.write_text(content)
    try:
        found = readings(path)
    except InputError as error:
        refused = error.what
        found = None
    if found is None:
        assert "any.txt" in refused
    else:
        assert found


def test_the_samples_of_extrap_are_all_read(shared: Path) -> None:
    folder = shared / "data" / "formats" / "extrap"
    counts = {file.name: len(readings(file)) for file in sorted(folder.iterdir())}
    assert len(counts) == 15
    assert counts["two_parameter_1.txt"] == counts["talpas_2.txt"] == 125
    assert counts["one_parameter_1.txt"] == 30


NESTED = """PARAMETER p
POINTS ( 2 ) ( 4 ) ( 8 )
METRIC time
REGION main()
DATA 8 8
DATA 5 5
DATA 3 3
REGION solve
DATA 7 7
DATA 4.5 4.5
DATA 2.8 2.8
REGION inner
DATA 6 6
DATA 4 4
DATA 2.5 2.5
"""


def test_a_main_that_seems_to_hold_the_others_is_asked_for_and_may_be_the_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nested.txt").write_text(NESTED)
    line = ["import", "extrap", str(tmp_path / "nested.txt"), "--parameter", "ranks=p"]
    assert main([*line, "-o", str(tmp_path / "a.exp")]) == 1
    assert "--total 'main()'" in capsys.readouterr().err
    assert main([*line, "--total", "main()", "-o", str(tmp_path / "b.exp")]) == 0
    assert "--total" not in capsys.readouterr().err
    found = read(tmp_path / "b.exp")
    kernels = set(found.table(found.runs[0], "counters", ["kernel"])["kernel"])  # type: ignore[index]
    assert kernels == {WHOLE, "main()", "solve", "inner"}
    assert main([*line, "--total", "nix", "-o", str(tmp_path / "c.exp")]) == 1
    assert "no kernel is named 'nix'" in capsys.readouterr().err
    # One that takes longest and holds nothing is not suspected.
    apart = NESTED.replace("REGION solve\nDATA 7 7", "REGION solve\nDATA 1 1").replace("DATA 6 6", "DATA 1 1")
    (tmp_path / "apart.txt").write_text(apart)
    assert main(["import", "extrap", str(tmp_path / "apart.txt"), "--parameter", "ranks=p", "-o", str(tmp_path / "d.exp")]) == 0  # fmt: skip
    assert "--total" not in capsys.readouterr().err


def test_values_below_zero_mark_runs_that_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "input.txt"
    path.write_text("PARAMETER p\nPOINTS 2 4 8\nMETRIC time\nREGION main\nDATA 1.5 1.75\nDATA -1 2.5\nDATA 0\n")
    found = readings(path)
    assert values(found, "main", "time") == {((2,), 0): 1.5, ((2,), 1): 1.75, ((4,), 1): 2.5, ((8,), 0): 0.0}
    assert "input.txt: time of main is below zero at p = 4: left out" in found[0].notes
    assert main(["import", str(path), "-o", str(tmp_path / "e"), "--quiet"]) == 0
    assert {run.configuration["p"] for run in read(tmp_path / "e").runs} == {2, 4}
    assert "takes 0 s at p = 8" in capsys.readouterr().err


@pytest.mark.parametrize("damage", [b"(3,", b"{'descr': '''", b"\\"])
def test_headers_of_arrays_that_are_no_python(tmp_path: Path, damage: bytes) -> None:
    path, other = tmp_path / "study.extra-p", tmp_path / "damaged.extra-p"
    saved(path, kept=True)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as made:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith(".vals"):
                content = content.replace(b"{'descr': '<f8', ", damage.ljust(len(b"{'descr': '<f8', ")), 1)
            elif name.endswith(".indx") and damage == b"\\":
                content = content[:-8] + b"\xff" * 8
            made.writestr(name, content)
    with pytest.raises(InputError, match=r"damaged\.extra-p is no experiment of Extra-P 4"):
        list(READERS["extrap-experiment"].read(other))


def test_a_deflated_part_that_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "study.extra-p"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("experiment.json", b'{"Extra-P": 1}' * 200)
    content = bytearray(path.read_bytes())
    begin = 30 + len("experiment.json")
    content[begin : begin + 8] = b"\x07" * 8  # a block of a kind that there is not
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"study\.extra-p is no experiment of Extra-P 4: Error -3"):
        list(READERS["extrap-experiment"].read(path))


def saved_by_three(order: str = "<") -> bytes:
    """An experiment of Extra-P 3: two regions of one name, a model, and points of one to four repetitions."""

    def text(content: str) -> bytes:
        return struct.pack(f"{order}I", len(content)) + content.encode()

    def numbers(kinds: str, *values: float) -> bytes:
        return struct.pack(order + kinds, *values)

    parts = [b"\1\0" if order == "<" else b"\0\1", text("EXTRAP_EXPERIMENT"), text("1.0")]
    parts += [text("Parameter"), numbers("q", 0), text("p"), text("Metric"), numbers("q", 0), text("time"), text("sec")]
    for number, (name, line) in enumerate([("main", 3), ("solve", 20), ("solve", 40)]):
        parts += [text("Region"), numbers("q", number), text(name), text("heat.c"), numbers("q", line)]
        parts += [text("Callpath"), numbers("qqq", number, number, 0 if number else -1)]
    for number, p in enumerate((2.0, 4.0, 8.0)):
        parts += [text("Coordinate"), numbers("qq", number, 1), text("p"), numbers("d", p)]
    parts += [text("ModelComment"), numbers("q", 0), text("no model"), text("Model"), bytes(range(200))]
    for kernel in range(3):
        for number, (count, least, median, greatest) in enumerate([(2, 1, 1.5, 2), (3, 3, 5, 9), (4, 1, 4, 7)]):
            statistics = (9.0, 0.0, 9.0, 1.0, median + kernel, 0.0, 9.0, least + kernel, greatest + kernel)
            parts += [text("ExperimentPoint"), numbers("qqdddddddddqq", number, count, *statistics, 0, kernel)]
    return b"".join(parts)


@pytest.mark.parametrize("order", ["<", ">"])
def test_experiments_of_extrap_three(tmp_path: Path, order: str) -> None:
    path = tmp_path / "old.extra-p"
    path.write_bytes(saved_by_three(order))
    reader = READERS["extrap-experiment"]
    check_reader(reader, path)
    found = list(reader.read(path))
    assert values(found, "main", "time") == {
        ((2,), 0): 1, ((2,), 1): 2, ((4,), 0): 3, ((4,), 1): 5, ((4,), 2): 9, ((8,), 0): 4,
    }  # fmt: skip
    assert values(found, "main->solve (heat.c:40)", "time")[(8,), 0] == 6
    assert "3 points hold the median of their repetitions alone" in found[0].notes[0]


@pytest.mark.parametrize("length", [30, 120, 400, -1, -60, -500])
def test_experiments_of_extrap_three_that_break_off(tmp_path: Path, length: int) -> None:
    path = tmp_path / "old.extra-p"
    path.write_bytes(saved_by_three()[:length])
    with pytest.raises(InputError, match=r"old\.extra-p is no experiment of Extra-P 3|holds no measurement"):
        list(READERS["extrap-experiment"].read(path))
