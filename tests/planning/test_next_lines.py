"""The line after `next:` runs: it asks for nothing that was measured, and keeps what was asked."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ranksight.cli import main


def made(folder: Path, name: str, seconds: float, ranks: tuple[int, ...]) -> str:
    path, target = folder / f"{name}.csv", folder / f"{name}.exp"
    path.write_text("ranks,time\n" + "".join(f"{p},{seconds / p + 1 + r / 100}\n" for p in ranks for r in range(2)))
    options = ["--parameter", "ranks", "--metric", "time", "--quiet"]
    assert main(["import", str(path), "-o", str(target), *options]) == 0
    return str(target)


def next_words(capsys: pytest.CaptureFixture[str]) -> list[str]:
    program, *words = shlex.split(" ".join(capsys.readouterr().out.split()).rsplit("next: ", 1)[1])
    assert program == "ranksight"
    return words


@pytest.mark.parametrize("ranks", ["8", "2,4"])
def test_more_runs_are_planned_for_what_one_configuration_does_not_answer(
    ranks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = made(tmp_path, "one", 100, (4,))
    assert main(["fit", one, "-o", str(tmp_path / "one.model.json"), "--quiet"]) == 0
    capsys.readouterr()
    main(["predict", str(tmp_path / "one.model.json"), "--ranks", ranks])
    words = next_words(capsys)
    assert words[0] == "plan"
    assert main(words) == 0


def test_a_comparison_looks_farther_out_where_it_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = (made(tmp_path, name, s, (1, 2, 4, 8, 16)) for name, s in (("before", 80), ("after", 96)))
    capsys.readouterr()
    assert main(["compare", before, after, "--ranks", "16"]) == 0
    words = next_words(capsys)
    assert words[0] == "compare"
    assert main(words) in (0, 4)
    assert next_words(capsys)[0] == "plan"


def test_a_check_that_passes_goes_on_to_a_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = (made(tmp_path, name, s, (1, 2, 4, 8, 16)) for name, s in (("before", 80), ("after", 96)))
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert main(["check", after, "--baseline", before, "--metric", "time", "--upper", "--ranks", "64"]) == 0
    words = next_words(capsys)
    assert words == ["fit", after]
    assert main(words) == 0
