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
