"""Lines that are shown to be typed are what was meant; an interruption is answered in one line."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import ranksight
from ranksight.cli import fit, measure
from ranksight.cli._continuing import measure_lines
from ranksight.cli._lines import options, shell_line
from ranksight.cli.main import main

HOSTILE = "x;touch y $(z) 'a"


def shown(text: str) -> list[str]:
    """Words of the one line after "next:"."""
    (found,) = (line for line in text.splitlines() if line.startswith("next: "))
    return shlex.split(found.removeprefix("next: "), comments=True)


def test_names_are_quoted_in_every_next_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "table.csv"
    rows = [f"{ranks},{1 / ranks + 0.01 * ranks}" for ranks in (1, 2, 4, 8, 16)]
    file.write_text("p,t\n" + "\n".join(rows) + "\n")
    made, model = str(tmp_path / HOSTILE), str(tmp_path / f"{HOSTILE}.json")
    named = ["--parameter", "ranks=p", "--metric", "time=t"]
    lines = {
        "import": ["import", "csv", str(file), *named, "-o", made],
        "fit": ["fit", made, "-o", model],
        "predict": ["predict", model, "--ranks", "32"],
        "diagnose": ["diagnose", model, "--ranks", "32"],
        "compare": ["compare", made, made],
        "report": ["report", model, "-o", str(tmp_path / f"{HOSTILE}.html")],
        "check": ["check", made],
    }
    after = {
        "import": made,
        "fit": model,
        "predict": model,
        "compare": made,
        "report": str(tmp_path / f"{HOSTILE}.html"),
    }
    for verb, words in lines.items():
        main(words)
        said = capsys.readouterr().out
        if "next: " in said:
            typed = shown(said)
            assert typed[0] in ("ranksight", "xdg-open"), verb
            assert not [word for word in typed if "touch" in word and word not in (made, model, after.get(verb))], verb
        assert verb not in after or after[verb] in shown(said), verb
    assert not (tmp_path / "y").exists()


def test_after_a_prediction_comes_what_can_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without kernels and ranks no diagnosis is possible; a plan is for the answers that are missing."""
    file, made, model = (str(tmp_path / name) for name in ("table.csv", "made", "made.json"))
    Path(file).write_text("nodes,time\n1,100\n2,53\n4,30\n")
    assert main(["import", file, "-o", made, "--quiet"]) == 0
    assert main(["fit", made, "-o", model, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["predict", model, "--nodes", "2,8"]) == 0
    assert shown(capsys.readouterr().out) == ["ranksight", "report", model, "--nodes", "8"]
    main(["predict", model, "--nodes", "8,4096"])
    assert shown(capsys.readouterr().out) == ["ranksight", "plan", model, "--nodes", "4096"]


def test_efficiencies_without_sufficient_data_are_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, made, model = (str(tmp_path / name) for name in ("table.csv", "made", "made.json"))
    Path(file).write_text("ranks,time\n1,100\n2,53\n4,30\n")
    assert main(["import", file, "-o", made, "--quiet"]) == 0
    assert main(["fit", made, "-o", model, "--quiet"]) == 0
    capsys.readouterr()
    main(["diagnose", model, "--ranks", "4096"])
    said = capsys.readouterr().out
    assert "fficiency at 4096 ranks: insufficient data" in " ".join(said.split())
    (shares,) = (line.split() for line in said.splitlines() if line.startswith("global"))
    assert shares[1] == "100%"
    assert shares[2] != "?"
    assert shares[-1] == "?"


def test_values_are_written_so_that_they_are_read_back() -> None:
    values = {"ranks": (1.0, 2.0**53, 16777217.0), "x y": 0.1 + 0.2, "big": 1e300}
    words = options(values)
    assert words[::2] == ["--ranks", "--x y", "--big"]
    read = [tuple(map(float, word.split(","))) for word in words[1::2]]
    assert read == [values["ranks"], (values["x y"],), (values["big"],)]
    assert shlex.split(shell_line(*words)) == words
    (line,) = measure_lines([{"a b": 1.0}], 1, Path("p q"), ("mpirun", "-n", "{ranks}", "x;y"))
    assert shlex.split(line)[2:] == ["--a b", "1", "-o", "p q", "--", "mpirun", "-n", "{ranks}", "x;y"]


@pytest.mark.parametrize(
    ("module", "words"), [(fit, ["fit", "x"]), (measure, ["measure", "-o", "x", "--ranks", "1", "--", "x", "{ranks}"])]
)
def test_only_a_verb_that_goes_on_promises_it(
    module: object, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(chosen: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run", interrupted)
    assert main(words) == 130
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert ("continues" in said) == (module is measure)
    assert ("starts anew" in said) == (module is fit)


def test_an_interruption_of_the_start_is_one_line() -> None:
    text = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name == 'ranksight.cli.main':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from ranksight.__main__ import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "ranksight: cancelled\n")


def test_an_interruption_that_a_library_takes_for_its_own_fault_is_one_line() -> None:
    text = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name == 'ranksight.cli.predict':\n"
        "            try:\n"
        "                os.kill(os.getpid(), signal.SIGINT)\n"
        "            except KeyboardInterrupt:\n"
        "                raise ImportError('a library could not be loaded')\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from ranksight.cli.main import main\n"
        "sys.exit(main(['predict', 'none.json']))\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    said = "ranksight: cancelled; the same line starts anew\n"
    assert (done.returncode, done.stdout, done.stderr) == (130, "", said)


def test_the_package_loads_nothing_before_an_interruption_is_answered(tmp_path: Path) -> None:
    text = "import sys; sys.path[:0] = sys.argv[1:]; before = set(sys.modules); import ranksight\n"
    text += "print(sorted(set(sys.modules) - before))\n"
    (tmp_path / "ranksight").symlink_to(Path(ranksight.__file__).parent)  # whatever the folder of a clone is called
    done = subprocess.run([sys.executable, "-ISc", text, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout in ("['__future__', 'ranksight']\n", "['ranksight']\n")
