"""CSV that verbs print: harmless, and readable back."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.cli._separated import write_frame
from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.core.html import table
from ranksight.core.names import UNSAFE, cell, printable

EVIL = ("=HYPERLINK(\"http://x\")", "+1", "-2+3", "@SUM(A1)", "\tx", "\rx", "'quoted", "a\x1b[31mred", "a\u202eb\u2066",
        "back\\u202eslash", "größe\U0001f600", "two\nlines", "operator-")  # fmt: skip

_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|\\)")


def restored(text: str) -> str:
    """The text that `cell` wrote as `text`."""
    return _ESCAPED.sub(
        lambda found: chr(int(digits, 16)) if (digits := found[1] or found[2] or found[3]) else "\\",
        text.removeprefix("'"),
    )


@given(st.text(st.characters(), max_size=20))
def test_any_text_is_harmless_and_comes_back(text: str) -> None:
    written = cell(text)
    assert isinstance(written, str)
    assert UNSAFE.search(written) is None
    assert not written.startswith(("=", "+", "-", "@"))
    assert restored(written) == text
    assert restored(written.encode("ascii", "backslashreplace").decode("ascii")) == text


def test_numbers_stay() -> None:
    assert [cell(value) for value in (-1.5, 3, None, True)] == [-1.5, 3, None, True]


def test_tables_in_pages_and_terminals_keep_their_direction() -> None:
    assert printable("a\u202eb\u2069\u200f") == "a\ufffdb\ufffd\ufffd"
    assert "\u202e" not in table("caption", ["head"], [["a\u202e"]])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of kernels with names that do harm."""
    folder = tmp_path_factory.mktemp("separated")
    experiment = Experiment.create(folder / "e", "=app", ["ranks"])
    for ranks in (2, 4, 8, 16, 32):
        rows = [(name, 0, float(at + ranks)) for at, name in enumerate(EVIL, start=1)]
        experiment.add(Run({"ranks": ranks}), pd.DataFrame(rows, columns=["kernel", "rank", "time"]))
    assert main(["fit", str(folder / "e"), "-o", str(folder / "m.json"), "--quiet"]) == 0
    return folder / "m.json"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_predictions_as_csv(model: Path, encoding: str) -> None:
    words = ["-m", "ranksight", "predict", str(model), "--ranks", "64", "--format", "csv"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, *words], capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode(encoding))))
    assert {restored(row["kernel"]) for row in rows} >= set(EVIL)
    assert all(
        UNSAFE.search(value) is None and value[:1] not in ("=", "+", "@") for row in rows for value in row.values()
    )
    assert all(float(row["value"]) > 0 for row in rows)


@pytest.mark.parametrize("words", [["fit", "e", "-o", "n.json"], ["diagnose", "m.json", "--ranks", "64"]])
def test_other_verbs_as_csv(
    model: Path, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(model.parent)
    main([*words, "--format", "csv"])
    printed = capsys.readouterr().out
    assert UNSAFE.search(printed.replace("\n", "")) is None
    assert set(map(restored, pd.read_csv(io.StringIO(printed))["kernel"])) >= set(EVIL)


def test_a_table_is_printed_without_its_index(capsys: pytest.CaptureFixture[str]) -> None:
    write_frame(pd.DataFrame({"=name": pd.Categorical(["=a", "b"]), "x": [-1.5, float("nan")], "ok": [True, False]}))
    assert capsys.readouterr().out == "'=name,x,ok\n'=a,-1.5,True\nb,,False\n"
