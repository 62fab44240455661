"""The project file: written, read, completing the verbs, overridden by the line, refused where it is wrong."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from ranksight.analysis.expectations.document import read_study
from ranksight.cli import init
from ranksight.cli._project import FILE, FLAGS, JOBS, completed, load
from ranksight.cli.init import EXPECTATIONS
from ranksight.cli.main import VERBS, main, verb_parser
from ranksight.core.errors import InputError, UsageError

ROOT = Path(__file__).resolve().parents[2]
WORDS = [
    "--ranks",
    "1,2,4,8",
    "--size",
    "12,16",
    "--reps",
    "3",
    "--platform",
    "zen4",
    "--collector",
    "pmpi",
    "--kernel",
    "op",
]
COMMAND = ["--", "mpirun", "-n", "{ranks}", "./heat", "--n", "{size}", "--name", "a b"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def written() -> None:
    jobs = ["--job-time=20", "--job-option=--account=abc", "--job-option=--qos=x", "--job-at-once=4", "--job-shared"]
    assert main(["init", *WORDS, *jobs, "--expectations", "e.toml", "--target", "ranks=256,1024", "-q", *COMMAND]) == 0


def words(verb: str, *given: str) -> list[str]:
    return completed(verb, given, verb_parser(verb))


@pytest.mark.usefixtures("written")
def test_what_is_written_is_read() -> None:
    project = load(Path(FILE))
    assert project.command == "mpirun -n {ranks} ./heat --n {size} --name 'a b'"
    assert project.experiment == "heat.exp"
    assert project.measure == {"ranks": "1,2,4,8", "size": "12,16", "reps": "3"}
    assert project.target == {"ranks": "256,1024", "size": "16"}
    jobs = {"time": "20", "option": ("--account=abc", "--qos=x"), "at-once": "4", "shared": True}
    assert project.jobs == jobs
    assert project.expectations == "e.toml"
    assert project.history == ("*.exp",)
    Path(FILE).write_text(project.text())
    assert load(Path(FILE)) == project


@pytest.mark.usefixtures("written")
def test_every_verb_takes_its_part() -> None:
    measured = words("measure")
    assert measured[-9:] == COMMAND
    assert "--output=heat.exp" in measured
    assert [word for word in measured if "job-option" in word] == ["--job-option=--account=abc", "--job-option=--qos=x"]
    assert {"--job-time=20", "--job-at-once=4", "--job-shared"} < set(measured)
    assert words("fit") == ["heat.exp", "--platform=zen4"]
    assert words("phases", "-q") == ["heat.exp", "--ranks=256,1024", "-q"]
    model = "heat.exp.model.json"
    target = ["--ranks=256,1024", "--size=16"]
    assert words("predict", "--metric", "time") == [model, *target, "--kernel=op", "--metric", "time"]
    assert words("diagnose") == [model, *target]
    assert words("plan") == ["heat.exp", *target]
    assert words("report") == [model, "--experiment=heat.exp", "--ranks=1024", "--size=16"]
    assert words("check") == ["e.toml", "heat.exp"]
    Path(FILE).write_text('baseline = "old.exp"\n' + Path(FILE).read_text())
    assert words("check") == ["e.toml", "heat.exp", "--baseline=old.exp"]
    assert words("compare", "--threshold=5") == ["old.exp", "heat.exp", "--threshold=5"]
    assert words("doctor") == []


@pytest.mark.usefixtures("written")
def test_the_line_comes_before_the_file() -> None:
    assert words("predict", "--ranks=8", "--kernel", "halo")[1:] == ["--size=16", "--ranks=8", "--kernel", "halo"]
    assert "heat.exp" not in " ".join(words("measure", "-o", "other.exp"))
    for line in (["other.model.json"], ["--ranks", "8", "other.model.json"], ["--help"], ["-q", "other.model.json"]):
        assert words("predict", *line) == line
    assert words("measure", "--ranks", "1", "-o", "x", *COMMAND) == ["--ranks", "1", "-o", "x", *COMMAND]
    assert "--job-shared" not in words("measure", "--no-job-shared")


@pytest.mark.usefixtures("written")
def test_a_history_follows_the_experiments_that_the_file_names(folder: Path) -> None:
    with pytest.raises(UsageError, match="a history needs two"):
        words("history")
    for name in ("b.exp", "a.exp"):
        (folder / name).mkdir()
    assert words("history", "--threshold=5") == ["a.exp", "b.exp", "--threshold=5"]
    Path(FILE).write_text(Path(FILE).read_text().replace('["*.exp"]', '["b.exp", "a.exp", "b.*", "none.exp"]'))
    assert words("history") == ["b.exp", "a.exp", "none.exp"]


@pytest.mark.usefixtures("written")
def test_without_a_baseline_nothing_is_compared() -> None:
    with pytest.raises(UsageError, match="names no experiment to compare heat.exp with"):
        words("compare")


def test_every_option_of_jobs_has_its_place_in_the_file() -> None:
    known = {name for name in verb_parser("measure").options() if name.startswith(("--job-", "--no-job-"))}
    assert known == {f"--job-{name}" for name in JOBS} | {f"--no-job-{name}" for name in FLAGS}


def test_without_a_file_nothing_changes() -> None:
    for verb in VERBS:
        assert words(verb, "--quiet") == ["--quiet"]


def test_verbs_work_without_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{p},{n},{n**3 / p}\n" for p in (1, 2, 4, 8) for n in (8, 12, 16))
    Path("t.csv").write_text(f"ranks,size,time\n{rows}")
    assert (
        main(["init", "--ranks", "1,2,4,8", "--size", "8,12,16", "-q", "--", "run", "{ranks}", "./app", "{size}"]) == 0
    )
    project = tomllib.loads(Path(FILE).read_text())
    assert project["target"] == {"ranks": "128", "size": "16"}
    given = ["--parameter", "ranks", "--parameter", "size", "--metric", "time", "-q", "-o", project["experiment"]]
    assert main(["import", "csv", "t.csv", *given]) == 0
    assert main(["fit", "-q"]) == 0
    capsys.readouterr()
    assert main(["predict"]) in (0, 4)
    assert "ranks 128, size 16: time" in capsys.readouterr().out
    assert main(["export", "csv"]) == 0
    assert "time" in capsys.readouterr().out
    # What init writes asks for instructions, which this experiment lacks; for times it is met.
    assert main(["check", "-q"]) == 1
    assert "holds no metric 'instructions'" in capsys.readouterr().err
    Path(EXPECTATIONS).write_text(Path(EXPECTATIONS).read_text().replace("instructions", "time"))
    assert main(["check"]) == 0
    assert "1 growing slower" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("comand = 'x'", "unknown key comand; did you mean command?"),
        ("command = 3", "command is not a line of text"),
        ("command = 'x'", "experiment is missing"),
        ("measure = 3", "measure is not a table"),
        ("kernels = 3", "kernels is not a list of texts"),
        ("[measure]\nranks = [1, 'a']", "measure.ranks is not a number, a text or a list of them"),
        ("[measure]\nranks = true", "measure.ranks is not a number"),
        ("command = 'x'\nexperiment = 'e'\n[measure]\nranks = '1,x'", "measure.ranks: 'x' in '1,x' is not a number"),
        ("command = 'x'\nexperiment = 'e'\n[target]\nreps = 'a'", "target.reps: 'a' is not a number"),
        ("[jobs]\nqueue = 'long'", "unknown key jobs.queue; known: time"),
        ("[jobs]\nat_once = 4", "unknown key jobs.at_once; did you mean at-once?"),
        ("[jobs]\nshared = 'no'", "jobs.shared is neither true nor false; write shared = true"),
        ("[jobs]\ntime = true", "jobs.time is not a number"),
        ("history = ['x', 3]", "history is not a list of texts"),
        ("command = ", "is not TOML"),
        ("command = 'x \"{ranks}'\nexperiment = 'e'", "command is not a command: No closing quotation"),
        (
            "command = 'x {ranks} {size}'\nexperiment = 'e'\n[measure]\nsizes = 3",
            "measure.sizes: the command has no {sizes}; did you mean size?",
        ),
        (
            "command = 'x {ranks}'\nexperiment = 'e'\n[measure]\nprepare = 'a {side}'\nside = 'b'",
            "measure.side: 'b' is not a number",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(FILE).write_text(text)
    assert main(["fit"]) == 1
    error = capsys.readouterr().err
    assert said in error
    assert FILE in error
    assert error.count("\n") == 1


def test_prices_are_those_of_the_machine_whatever_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Measurements that were imported have no command, and their owner may name the model."""
    Path(FILE).write_text('price = "0.02 CHF/core-hour"\n')
    for verb in ("plan", "report", "serve"):
        assert words(verb, "m.json") == ["--price=0.02 CHF/core-hour", "m.json"]
        assert words(verb, "m.json", "--price", "1 EUR/kWh") == ["m.json", "--price", "1 EUR/kWh"]
        assert main([verb]) == 1
        assert f"{FILE}: experiment is missing" in capsys.readouterr().err
    assert words("predict", "m.json") == ["m.json"]
    assert words("measure", "--ranks", "2", "--", "./a") == ["--ranks", "2", "--", "./a"]
    assert main(["measure"]) == 1
    assert f"{FILE}: command is missing" in capsys.readouterr().err
    Path(FILE).write_text('experiment = "e"\nprice = ["0.02 CHF/core-hour"]\n')
    assert words("serve") == ["e.model.json", "--experiment=e", "--price=0.02 CHF/core-hour"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "no command is given"),
        (["--", "./app"], "the command has no {ranks}"),
        (["--", "run", "{ranks}", "{size}"], "{ranks} has no values"),
        (["--ranks", "1", "--", "run", "{ranks}", "{size}"], "give --size LIST"),
        (["--ranks", "x", "--", "run", "{ranks}", "a"], "is not a number"),
        (["--ranks", "1", "--target", "ranks", "--", "run", "{ranks}", "a"], "names no values"),
        (["--ranks", "1", "--target", "size=3", "--", "run", "{ranks}", "a"], "the command has no {size}"),
    ],
)
def test_what_is_missing_is_named(
    line: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["init", *line]) == 2
    assert said in capsys.readouterr().err
    assert not Path(FILE).exists()


def test_a_file_is_not_written_over(capsys: pytest.CaptureFixture[str]) -> None:
    Path(FILE).write_text("mine")
    line = ["--ranks", "1", "--", "run", "{ranks}", "./a"]
    assert main(["init", *line]) == 1
    assert Path(FILE).read_text() == "mine"
    assert main(["init", "-f", *line]) == 0
    assert load(Path(FILE)).measure == {"ranks": "1"}


def test_expectations_are_started_where_there_are_none(folder: Path) -> None:
    line = ["init", "-q", "--ranks", "1,2,4,8", "--size", "8,16", "--", "run", "{ranks}", "./a", "{size}"]
    assert main(line) == 0
    study = read_study(folder / EXPECTATIONS)
    assert (study.upper, study.least_settings, dict(study.hold)) == (True, 3, {"size": 16.0})
    (folder / EXPECTATIONS).write_text("mine")
    assert main([*line[:1], "-f", *line[1:]]) == 0
    assert (folder / EXPECTATIONS).read_text() == "mine"
    (folder / EXPECTATIONS).unlink()
    assert main([*line[:1], "-f", "--expectations", "own.toml", *line[1:]]) == 0
    assert not (folder / EXPECTATIONS).exists()


def test_it_asks_for_what_is_not_given(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answers = iter(["run {ranks} ./a {size}", "", "8,16"])
    asked: list[str] = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        return next(answers)

    monkeypatch.setattr(init, "_missing", init._asked)
    monkeypatch.setattr("builtins.input", typed)
    assert main(["init", "-q"]) == 0
    assert load(Path(FILE)).measure == {"ranks": "1,2,4,8", "size": "8,16"}
    assert asked[1] == "values of ranks [1,2,4,8]: "
    monkeypatch.setattr("builtins.input", lambda _: "run {ranks} './a")
    assert main(["init", "-f"]) == 2
    assert "is not a command: No closing quotation" in capsys.readouterr().err


def test_the_file_in_the_documents_is_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "project.md").read_text()
    found = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert found is not None
    Path(FILE).write_text(found[1])
    project = load(Path(FILE))
    assert project.measure["ranks"] == "1..8*2"
    assert project.target["ranks"] == "256,1024"
    for verb in ("measure", "fit", "predict", "report"):
        assert words(verb)
    with pytest.raises(InputError):
        load(tmp_path / "none.toml")
