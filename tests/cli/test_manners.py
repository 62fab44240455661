"""Manners of the command line: what is meant where a word is misspelt, ranges of values, letters, help, the guide."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from pathlib import Path

import pytest

from ranksight.cli._values import values
from ranksight.cli.main import VERBS, main, verb_parser
from ranksight.cli.options import SHORT
from ranksight.core.errors import meant, nearest
from ranksight.model.fitted_model import Model

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1,2,4", [1, 2, 4]),
        ("1-4", [1, 2, 3, 4]),
        ("3..5", [3, 4, 5]),
        ("16..64:16", [16, 32, 48, 64]),
        ("1..20*2", [1, 2, 4, 8, 16]),
        ("27..1000*8,1000", [27, 216, 1000]),
        ("2^10", [1024]),
        ("2^0..2^3*2, 100", [1, 2, 4, 8, 100]),
        ("0.1..0.3:0.1", [0.1, 0.2, 0.3]),
        ("-4,1e-3,1.5e3", [-4, 1e-3, 1500]),
        ("4,2-4", [4, 2, 3]),
    ],
)
def test_lists_of_values(text: str, wanted: list[float]) -> None:
    assert values(text) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,x", "'x' in '1,x' is not a number"),
        ("", "'' is not a number"),
        ("8-1", "rises nowhere"),
        ("0..8*2", "rises nowhere"),
        ("1..8*1", "rises nowhere"),
        ("1..8:0", "rises nowhere"),
        ("2^n", "has no end: write 1..1024*2"),
        ("nan", "is not finite"),
        ("9^99999", "is not finite"),
        ("1-99999999999", "more than 10000 values"),
        ("1..2^60", "more than 10000 values"),
    ],
)
def test_what_is_no_list_of_values(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=".") as caught:
        values(text)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["predct"], "did you mean predict?"),
        (["xyzzy"], "no verb is named 'xyzzy'; 'ranksight --help' lists all"),
        (["fit", "--plaform", "zen4", "e"], "did you mean --platform"),
        (["predict", "m", "--hlep"], "did you mean --help?"),
        (
            ["measure", "--ranks", "1", "-o", "x", "mpirun", "-n", "{ranks}", "./a"],
            "write: ranksight measure --ranks 1 -o x -- mpirun",
        ),
        (
            ["measure", "--ranks", "1", "--quiet", "-o", "x", "./a"],
            "write: ranksight measure --ranks 1 --quiet -o x -- ./a",
        ),
        (["measure", "--ranks", "1", "--side", "8", "-o", "x", "--", "run", "{ranks}"], "the command has no {side}"),
        (["measure", "--ranks", "1", "--rep", "3", "-o", "x", "--", "run", "{ranks}"], "did you mean --reps"),
        (["measure", "--ranks", "1", "--wrong", "-o", "x", "--", "run", "{ranks}"], "unrecognized arguments: --wrong"),
        (["measure", "--ranks", "2^n", "-o", "x", "--", "run", "{ranks}"], "has no end"),
        (["measure", "--ranks", "1", "-o", "x", "--", "run", "{rank}"], "write it in place of {rank}"),
        (["measure", "--ranks", "1", "--ranks", "2", "-o", "x", "--", "run", "{ranks}"], "--ranks is given twice"),
        (["measure", "--ranks", "1", "--timeout", "0", "-o", "x", "--", "run", "{ranks}"], "give seconds above 0"),
        (
            ["measure", "--ranks", "1", "--job-time", "1:00", "-o", "x", "--", "run", "{ranks}"],
            "--job-time '1:00' is not a whole number; it takes MINUTES: time limit of a job",
        ),
        (["measure", "--timeout", "5min", "--", "run"], "--timeout '5min' is not a number; it takes S: end runs"),
        (["init", "--ranks", "1", "run", "{ranks}"], "write: ranksight init --ranks 1 -- run '{ranks}'"),
        (["predict", "m", "-ranks", "64"], "write --ranks;"),
        (["predict", "m", "--ranks", "1,024"], "'024' in '1,024' begins with 0: a thousand is written 1000"),
        (["predict", "m", "--size", "--metric", "time"], "--size needs a value"),
        (["export", "cvs", "e.exp"], "did you mean csv?"),
        (["calibrate", "--seconds", "-1"], "give seconds above 0"),
    ],
)
def test_a_usage_error_names_what_is_meant(line: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert not printed.out


@pytest.mark.parametrize("verb", ["predict", "diagnose", "plan", "report"])
def test_values_of_parameters_may_come_before_the_model(verb: str) -> None:
    parser = verb_parser(verb)
    module = importlib.import_module(f"ranksight.cli.{verb}")
    before = module.parse(parser, ["--ranks", "64", "--size=24", "--quiet", "m.json"])
    behind = module.parse(parser, ["m.json", "--quiet", "--ranks=64", "--size", "24"])
    assert vars(before) == vars(behind)
    assert before.asked == {"ranks": [64.0], "size": [24.0]}


def test_names_are_found_whatever_their_case() -> None:
    assert meant("Bytes-Sent", ["bytes_sent", "loads"]) == "did you mean bytes_sent?"
    assert meant("watts", ["bytes_sent", "loads"]) == ""
    assert nearest("watts", ["a", "b"]) == "known: a, b"
    assert nearest("watts", map(str, range(40))).endswith(", and 25 more")
    assert nearest("watts", []) == ""


def test_without_a_verb_there_is_a_short_guide(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert len(said.splitlines()) < 15
    for line in said.splitlines():
        if line.startswith("  ranksight "):
            assert line.split()[1] in VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_letters_mean_the_same_in_every_verb(verb: str) -> None:
    for action in verb_parser(verb)._actions:
        for name, letter in SHORT.items():
            assert (name in action.option_strings) == (letter in action.option_strings)


@pytest.mark.parametrize("columns", [60, 100])
@pytest.mark.parametrize("verb", VERBS)
def test_help_takes_the_width_of_the_terminal(verb: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    parser = verb_parser(verb)
    text = parser.format_help().split("\n\n")
    examples = [line for line in (parser.description or "").splitlines() if line.startswith(" ")]
    for block in text[1:]:
        for line in block.splitlines():
            assert len(line) <= columns or line in examples or " " not in line.partition("{")[0].strip()


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_80_columns(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, verb_parser(verb).format_help().splitlines())) <= 80


@pytest.mark.parametrize("verb", VERBS)
def test_help_lists_what_the_parser_takes(verb: str) -> None:
    parser = verb_parser(verb)
    entries = [line.split("  ")[1] for line in parser.format_help().splitlines() if line.startswith("  -")]
    taken = [action.option_strings for action in parser._actions if action.option_strings]
    shown = [[word.rstrip(",") for word in entry.split() if word.startswith("-")] for entry in entries]
    assert sorted(taken) == sorted(shown)


def test_fit_brings_its_own_model_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def imported(rows: str) -> None:
        (tmp_path / "t.csv").write_text(f"ranks,time\n{rows}")
        words = ["csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--metric", "time", "-q", "-f"]
        assert main(["import", *words, "-o", str(tmp_path / "e")]) == 0

    imported("1,8\n2,4\n4,2\n8,1\n")
    model = tmp_path / "e.model.json"
    assert main(["fit", str(tmp_path / "e"), "-q"]) == 0
    imported("1,8\n2,4\n4,2\n8,1\n16,0.5\n")
    assert main(["fit", str(tmp_path / "e"), "-q"]) == 0
    assert len(Model.load(model).training) == 5
    # A name of one's own is not written over, nor is a file that is not a model.
    assert main(["fit", str(tmp_path / "e"), "-q", "-o", str(model)]) == 1
    model.write_text("my notes")
    assert main(["fit", str(tmp_path / "e"), "-q"]) == 1
    assert model.read_text() == "my notes"
    assert "exists already" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff not found")
def test_the_manual_page_is_sound() -> None:
    page = ROOT / "docs" / "ranksight.1"
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-ww", "-P-cbou", str(page)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert not [line for line in done.stderr.splitlines() if "cannot" not in line]
    for verb in VERBS:
        assert verb.upper() in done.stdout


@pytest.mark.parametrize(("verb", "option"), [("predict", "--rank"), ("report", "--rnaks")])
def test_a_parameter_that_was_meant_is_named(
    verb: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{ranks},{1 / ranks}\n" for ranks in (1, 2, 4, 8))
    (tmp_path / "t.csv").write_text("ranks,time\n" + rows)
    made = str(tmp_path / "e")
    assert main(["import", "csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--metric", "time", "-o", made]) == 0
    assert main(["fit", made, "-q"]) == 0
    capsys.readouterr()
    assert main([verb, f"{made}.model.json", option, "16"]) == 1
    assert "did you mean ranks?" in capsys.readouterr().err
