"""ReFrame's performance logs: runs, parameters, units, what did not pass, damaged files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, read
from ranksight.core.reading import READERS

LOG = Path(__file__).parent / "data" / "reframe" / "heat_test.log"


def test_each_run_that_passed_is_a_repetition(tmp_path: Path) -> None:
    assert READERS["reframe"].recognises(LOG, LOG.read_bytes()[:4096])
    assert main(["import", str(LOG), "-o", str(tmp_path / "e"), "-q"]) == 0
    found = read(tmp_path / "e")
    assert set(found.parameters) == {"ranks", "size"}
    assert len(found) == 24
    assert {run.repetition for run in found.runs} == {0, 1}
    run = next(run for run in found.runs if run.configuration == {"ranks": 4, "size": 32})
    table = found.counters(runs=[run]).set_index("kernel")
    assert table.loc[WHOLE, "time"] == pytest.approx(1.2e-3 * 32**2 / 4)
    assert table.loc["solve", "time"] == pytest.approx(1e-3 * 32**2 / 4)
    assert table.loc[WHOLE, "bandwidth"] == 40
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json"), "-q"]) == 0


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("|GB/s|0\n", "\n", "fields, the first line"),
        ("elapsed_value", "elapsed", "no .*|holds|variable"),
        ("|0.256|", "|soon|", "'soon' of .* is not a number"),
        ("solve_", "runtime_", "two variables"),
        ("pass|", "fail|", "holds no run; 25 runs did not pass"),
    ],
)
def test_damaged_logs_name_their_line(old: str, new: str, expected: str, tmp_path: Path) -> None:
    text = LOG.read_text().replace("0.3072|s", "0.256|s")
    assert old in text
    file = tmp_path / "x.log"
    file.write_text(text.replace(old, new))
    if old == "elapsed_value":
        file.write_text("result|a|b\npass|1|2\n")
    with pytest.raises(InputError, match=expected):
        list(READERS["reframe"].read(file))


OLD = """{time}|reframe 3.12.0|heat %size={size} @node:cpu+gnu|jobid={job}|num_tasks={ranks}|elapsed={elapsed}|ref=0 (l=null, u=null)|s
{time}|reframe 3.12.0|heat %size={size} @node:cpu+gnu|jobid={job}|num_tasks={ranks}|solve={solve}|ref=1.0 (l=-0.1, u=0.1)|ms
{time}|reframe 3.12.0|heat %size={size} @node:cpu+gnu|jobid={job}|num_tasks={ranks}|bandwidth=20.5|ref=0 (l=null, u=null)|GB/s
"""
NAMES = (
    "job_completion_time|display_name|jobid|num_tasks|perf_var|perf_value|perf_ref|perf_lower_thres|perf_unit|result\n"
)
LINES = """{time}|heat %size={size}|{job}|{ranks}|elapsed|{elapsed}|0|null|s|pass
{time}|heat %size={size}|{job}|{ranks}|solve|{solve}|1.0|-0.1|ms|{result}
{time}|heat %size={size}|{job}|{ranks}|bandwidth|20.5|0|null|GB/s|pass
"""


@pytest.mark.parametrize(("head", "form"), [("", OLD), (NAMES, LINES)])
def test_one_variable_a_line(tmp_path: Path, head: str, form: str) -> None:
    text = head
    for job, (ranks, size) in enumerate([(1, 16), (2, 16), (2, 16), (4, 16)]):
        text += form.format(
            time="2024-01-01T10:00:00", job=job, ranks=ranks, size=size, elapsed=8 / ranks, solve=7000 / ranks,
            result="pass",
        )  # fmt: skip
    path = tmp_path / "heat.log"
    path.write_text(text)
    assert [name for name in READERS if READERS[name].recognises(path, path.read_bytes()[:4096])] == ["reframe"]
    found = list(READERS["reframe"].read(path))
    assert [each.configuration for each in found] == [{"ranks": p, "size": 16} for p in (1, 2, 2, 4)]
    for each, ranks in zip(found, (1, 2, 2, 4), strict=True):
        assert each.counters is not None
        table = each.counters.set_index("kernel")
        assert table.loc[WHOLE, "time"] == 8 / ranks
        assert table.loc["solve", "time"] == 7 / ranks
        assert table.loc[WHOLE, "bandwidth"] == 20.5
    path.write_text(text.replace("|ref=1.0", "|reef=1.0") if not head else text[:-9])
    with pytest.raises(InputError, match=r"heat\.log:\d+"):
        list(READERS["reframe"].read(path))


def test_runs_that_did_not_pass_are_named(tmp_path: Path) -> None:
    path = tmp_path / "heat.log"
    rows = [
        LINES.format(time="t", job=job, ranks=2, size=16, elapsed=8, solve=70, result=result)
        for job, result in enumerate(["fail", "pass", "fail"])
    ]
    path.write_text(NAMES + "".join(rows).replace("bandwidth|20.5", "bandwidth|null"))
    (found,) = READERS["reframe"].read(path)
    assert found.notes == ("heat.log: 2 runs did not pass (line 2, 8)", "heat.log:5: no value of bandwidth")
