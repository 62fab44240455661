"""The verb compare, end to end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import WHOLE, Experiment, Run


def experiment(place: Path, more: float, slower: float, seed: int) -> None:
    """`solve` with `more` times the instructions, `sort` with the same and `slower` times the time each, `copy` as is."""
    found = Experiment.create(place, "demo", ["ranks"])
    generator = np.random.default_rng(seed)
    for ranks in (2, 4, 8, 16):
        for repetition in range(3):
            rows = [
                ("solve", more * 4e9 / ranks, more * 2.0 / ranks),
                ("sort", 2e9 / ranks, slower * 1.0 / ranks),
                ("copy", 1e9 / ranks, 0.5 / ranks),
            ]
            table = pd.DataFrame(
                [(k, -1, i, t * generator.uniform(0.99, 1.01)) for k, i, t in rows],
                columns=["kernel", "rank", "instructions", "time"],
            )
            found.add(Run({"ranks": ranks}, repetition, "synthetic"), table)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    experiment(folder / "old.exp", 1.0, 1.0, 0)
    experiment(folder / "new.exp", 1.3, 1.25, 1)
    experiment(folder / "again.exp", 1.0, 1.0, 2)
    for name in ("old", "new"):
        assert main(["fit", str(folder / f"{name}.exp"), "--quiet"]) == 0
    return folder


def test_what_changed_and_why(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(place / "old.exp"), str(place / "new.exp"), "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["values"] == "measured"
    at = {(row["kernel"], row["metric"]): row for row in content["changes"] if row["configuration"] == {"ranks": 16}}
    assert at["solve", "time"]["verdict"] == at["sort", "time"]["verdict"] == "changed"
    assert at["copy", "time"]["verdict"] == at["copy", "instructions"]["verdict"] == "same"
    assert at["sort", "instructions"]["verdict"] == "same"
    assert at["solve", "time"]["causes"][0]["name"] == "instructions"
    assert at["solve", "time"]["causes"][0]["part"] == pytest.approx(0.3, abs=0.03)
    assert at["sort", "time"]["causes"][0]["name"] == "time per instruction"
    assert at[None, "time"]["ratio"] == pytest.approx((2.6 + 1.25 + 0.5) / 3.5, rel=0.02)


def test_the_table_shows_it_in_eighty_columns(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(place / "old.exp"), str(place / "new.exp")]) == 0
    lines = capsys.readouterr().out.splitlines()
    text = "\n".join(lines)
    assert "old -> new at ranks 16, measured" in lines[0]
    assert "because instructions +30 %" in text
    assert "1 of 3 kernels: no difference beyond the noise" in text
    assert "solve matters at all scales" in text
    assert lines[-1].startswith("next: ranksight compare ")
    assert all(len(line) <= 80 for line in lines[:-1])


def test_the_threshold_decides_the_exit_code(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, again = (str(place / f"{name}.exp") for name in ("old", "new", "again"))
    assert main(["compare", old, new, "--threshold", "10", "--quiet"]) == 3
    said = capsys.readouterr().out
    assert "solve: +" in said
    assert "copy" not in said
    assert main(["compare", old, new, "--threshold", "50", "--quiet"]) == 0
    assert main(["compare", new, old, "--threshold", "10", "--quiet"]) == 0
    assert main(["compare", old, again, "--threshold", "2", "--quiet"]) == 0


def test_models_are_compared_where_asked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = [str(place / f"{name}.exp.model.json") for name in ("old", "new")]
    assert main(["compare", *models, "--ranks", "32,64", "--format", "csv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "ranks,kernel,metric,before,after,ratio,lower,upper,verdict,causes"
    assert any(row.startswith("64,solve,instructions") and ",changed," in row for row in rows)
    assert any(row.startswith("32,copy,time") and ",same," in row for row in rows)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["old.exp", "none.exp"], 1, "cannot be read"),
        (["old.exp", "new.exp", "--nodes", "4"], 1, "no parameter nodes"),
        (["old.exp", "new.exp", "--threshold", "-1"], 2, "is not a percentage"),
        (["old.exp", "new.exp", "--level", "1"], 2, "not a probability"),
        (["old.exp", "new.exp", "--kernel", "solver"], 1, "neither has a kernel"),
        (["old.exp", "new.exp", "--ranks", "x"], 2, "not a list of numbers"),
        (["old.exp", "new.exp", "--ranks", "0"], 1, "ranks is asked at 0, and was above zero"),
        (["old.exp", "new.exp", "--rename", "solve"], 2, "names no two kernels"),
        (["old.exp", "new.exp", "--rename", "solve=sort"], 1, "two kernels are not one"),
    ],
)
def test_wrong_questions(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    paths = [str(place / word) if word.endswith(".exp") else word for word in words]
    assert main(["compare", *paths]) == code
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_an_experiment_is_the_same_as_itself(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = str(place / "old.exp")
    assert main(["compare", old, old, "--threshold", "0"]) == 0
    said = capsys.readouterr().out
    assert "3 of 3 kernels: no difference beyond the noise" in said
    assert "no kernel's change is 2 % of the program's time" in said


def test_a_change_of_a_program_without_kernels_matters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of times alone: what changed is the program, and no line may say that nothing did."""
    for name, seconds in (("old", 100.0), ("new", 74.0)):
        rows = [f"{p},{seconds / p + 0.4 + 0.001 * (p % 3)}" for p in (1, 2, 4, 8, 16)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["ranks,time", *rows]) + "\n")
        assert main(["import", str(tmp_path / f"{name}.csv"), "-o", str(tmp_path / f"{name}.exp")]) == 0
    capsys.readouterr()
    main(["compare", str(tmp_path / "old.exp"), str(tmp_path / "new.exp")])
    said = capsys.readouterr().out
    assert "(whole program) matters at all scales" in said
    assert "no kernel's change" not in said


def test_without_a_common_clock_only_counts_are_compared(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Experiment.create(place / "cycles.exp", "demo", ["ranks"])
    for ranks in (2, 4, 8, 16):
        table = pd.DataFrame({"kernel": ["solve"], "rank": -1, "cycles": 1e9 / ranks, "instructions": 4e9 / ranks})
        other.add(Run({"ranks": ranks}, 0, "synthetic"), table)
    assert main(["compare", str(place / "old.exp"), str(place / "cycles.exp")]) == 4
    said = capsys.readouterr().out
    assert "no time in common (old has time; cycles has cycles)" in said
    assert "no count of a kernel that both have changed by 1 %" in said or "counts that changed" in said


def counted_kernels(path: Path, more: dict[str, float], command: str, collector: str, threads: str) -> None:
    """Forty kernels with instructions, and a clock of the whole program alone."""
    found = Experiment.create(path, "counted", ["ranks"])
    for ranks in (2, 4, 8):
        counts = {f"k{at}": more.get(f"k{at}", 1.0) * 1e6 * (at + 1) / ranks for at in range(40)}
        counts |= {name: factor * 1e6 / ranks for name, factor in more.items() if name not in counts}
        table = pd.DataFrame({"kernel": list(counts), "rank": -1, "instructions": list(counts.values())})
        clock = pd.DataFrame({"kernel": [WHOLE], "rank": [-1], "compute_cpu_time": [1.0 / ranks]})
        facts = {"processor": "one", "OMP_NUM_THREADS": threads, "host": path.name}
        words = ("mpirun", "-n", str(ranks), command)
        found.add(Run({"ranks": ranks}, 0, collector, command=words, environment=facts), table)
        found.add(Run({"ranks": ranks}, 0, "pmpi", command=words, environment=facts), clock)


def test_kernels_without_a_time_are_compared_by_what_both_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted_kernels(tmp_path / "old.exp", {"k39": 1.0, "gone": 1.0}, "./a", "callgrind", "1")
    counted_kernels(tmp_path / "new.exp", {"k39": 1.5}, "./b", "callgrind-lite", "2")
    assert main(["compare", str(tmp_path / "old.exp"), str(tmp_path / "new.exp")]) == 0
    out = capsys.readouterr().out
    text = " ".join(out.split())
    # What differs comes before the values.
    heading = text.index("old -> new at ranks 8")
    for said in ("commands differ: 'mpirun -n 2 ./a' and", "collectors differ:", "OMP_NUM_THREADS differs: 1 and 2"):
        assert 0 <= text.index(said) < heading
    assert "host" not in text
    # Half as many instructions more are no kernel that did not change.
    assert "no kernel's change" not in text
    assert "no kernel's compute_cpu_time is known; the program's change is not both 2 % and beyond the noise" in text
    rows = {line.split()[0]: line.split() for line in out.splitlines() if line.startswith("k")}
    assert len(rows) >= 15
    assert rows["k39"][-5] == "+50"
    assert "39 of 41 kernels: no difference beyond the noise" in text
    assert "only old has 1 kernel: gone" in text
    assert main(["compare", str(tmp_path / "old.exp"), str(tmp_path / "new.exp"), "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["only"]["before"] == {"metrics": [], "kernels": ["gone"]}
    assert content["only"]["after"] == {"metrics": [], "kernels": []}
    assert len(content["differences"]) == 3


def test_a_change_that_one_of_many_kernels_may_show_by_chance_is_not_called_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = []
    for name, more in (("before", 1.0), ("after", 1.2)):
        made = Experiment.create(tmp_path / f"{name}.exp", "many", ["ranks"])
        rows = [("slow", -1, 9.0 * more), *((f"k{at}", -1, 1.0) for at in range(40))]
        made.add(Run({"ranks": 4}, 0, "synthetic"), pd.DataFrame(rows, columns=["kernel", "rank", "time"]))
        sides.append(str(made.path))
    assert main(["compare", *sides]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "slow 9 s 10.8 s perhaps +" in said
    assert "40 of 41 kernels: no difference beyond the noise" in said
    assert "perhaps: its interval, of one kernel by itself, leaves out 0" in said


def test_runs_that_are_alike_have_no_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("old", "new"):
        counted_kernels(tmp_path / f"{name}.exp", {}, "./a", "callgrind", "1")
    assert main(["compare", str(tmp_path / "old.exp"), str(tmp_path / "new.exp")]) == 0
    out = capsys.readouterr().out
    assert "note:" not in out
    assert "only " not in out


def test_the_page_holds_before_and_after(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "c.html"
    words = ["compare", str(place / "old.exp"), str(place / "new.exp"), "-o", str(page)]
    assert main(words) == 0
    assert f"xdg-open {page}" in " ".join(capsys.readouterr().out.split())
    text = page.read_text()
    assert "The program is slower" in text
    solve = text[text.index("because instructions +30 %") :]
    assert 'class="num poor"' in solve[: solve.index("</tr>")]
    assert re.search(r'<td class="num" data-value="[^"]*">[^<]*</td><td>[^<]*</td><td>same</td>', text)
    assert main(words) == 1, "the file exists"
    assert main(["compare", str(place / "old.exp"), str(place / "again.exp"), "-o", str(page), "--force"]) == 0
    assert "within the noise" in page.read_text()


def test_names_on_the_page_are_text(tmp_path: Path) -> None:
    for name, factor in (("<b>old", 1.0), ("new", 2.0)):
        found = Experiment.create(tmp_path / name, "demo", ["ranks"])
        for ranks in (2, 4, 8):
            table = pd.DataFrame({"kernel": ["<script>x()</script>", "$\\frac$"], "rank": -1, "time": factor / ranks})
            found.add(Run({"ranks": ranks}, 0, "synthetic"), table)
    assert main(["compare", str(tmp_path / "<b>old"), str(tmp_path / "new"), "-o", str(tmp_path / "c.html")]) == 0
    text = (tmp_path / "c.html").read_text()
    assert "<script>x()" not in text
    assert "<b>old" not in text


def test_no_configuration_in_common_is_said_before_anything_is_fitted(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    far = Experiment.create(tmp_path / "far.exp", "demo", ["ranks"])
    table = pd.DataFrame([("solve", -1, 1e9, 1.0)], columns=["kernel", "rank", "instructions", "time"])
    far.add(Run({"ranks": 64}, 0, "synthetic"), table)
    monkeypatch.setattr("ranksight.model.fit.assemble", None)
    assert main(["compare", str(place / "old.exp"), str(far.path)]) == 1
    assert "old and far have no configuration in common; say where" in capsys.readouterr().err


def _program(folder: Path, name: str, seconds: float, seed: int) -> str:
    generator = np.random.default_rng(seed)
    rows = ["ranks,kernel,rep,time"]
    for ranks in (1, 2, 4, 8, 16):
        for repetition in range(3):
            solve, io = (t * generator.normal(1, 0.02) for t in (seconds / ranks, 3.0))
            rows += [f"{ranks},solve,{repetition},{solve}", f"{ranks},io,{repetition},{io}"]
    (folder / f"{name}.csv").write_text("\n".join(rows))
    assert main(["import", str(folder / f"{name}.csv"), "-o", str(folder / f"{name}.exp"), "--quiet"]) == 0
    return str(folder / f"{name}.exp")


def test_what_predictions_leave_open_is_unknown_and_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel 20 % slower at all scales measured: far out nobody knows it to be the same."""
    before, after = (_program(tmp_path, name, t, seed) for name, t, seed in (("before", 80, 1), ("after", 96, 2)))
    capsys.readouterr()
    assert main(["compare", before, after, "--ranks", "256", "--threshold", "5"]) == 4
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"solve \S+ \S+ \S+ \S+ unknown (-|x 0)", text)
    assert "solve matters from 1 to" in text
    assert "unknown at 256: insufficient data" in text
    assert "may have grown by more than 5 %, insufficient data: 3" in text
    assert main(["compare", before, after, "--ranks", "256", "--threshold", "900"]) == 0
    assert main(["compare", before, after, "--threshold", "5"]) == 3
    capsys.readouterr()
    assert main(["compare", before, after, "--ranks", "256", "--threshold", "5", "--format", "json"]) == 4
    content = json.loads(capsys.readouterr().out)
    assert {row["verdict"] for row in content["changes"]} == {"unknown"}
    assert {each["kernel"] for each in content["unknown_at_threshold"]} == {None, "solve", "io"}
    (matters,) = content["matters"]
    assert matters["to_ranks"] >= 16
    assert matters["unknown_beyond"]


def test_a_model_compared_with_itself_is_the_same(place: Path) -> None:
    model = str(place / "old.exp.model.json")
    assert main(["compare", model, model, "--ranks", "32", "--threshold", "1", "--quiet"]) == 0
