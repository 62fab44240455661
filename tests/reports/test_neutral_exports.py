"""Names that others chose neither steer a terminal nor become a formula in what is exported."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment
from ranksight.core.names import UNSAFE
from ranksight.core.run import Run

NAMES = ["=HYPERLINK(1)", "@SUM(1)", "+1+cmd", "-2+3", "\uff1d1+1", "a\x1b[2Jb", "\x1b]0;own\x07", "\x9b31m", "cr\rx", "l\nm",
         "a\u202eb", "t\u2067x\u2069", "z\u200bero", "j\u200doin", "\ufeffmark", "soft\u00adhy", "\u034fcgj", "\u115ffiller",
         "\u3164blank", "\u180emvs", "\u2028sep", "tag\U000e0041", "vs\ufe0f", 'q"\\', "<script>alert(1)</script>",
         '"><img src=x onerror=alert(1)>', "[click](javascript:alert(1))", "http://host.invalid/x.js", "www.host.invalid",
         "|a|b|", "`code`", "\\input{/etc/passwd}", "& % # _ { } ~ ^ $x$", "$(touch owned)", "<!--", "[/bold]", "x" * 400]  # fmt: skip
MARKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe0f\u180b")
"""Some signs that are not seen, though Unicode has them among letters and marks."""
WORDS = [["export", name, "{e}"] for name in ("csv", "latex", "openmetrics", "extrap", "hatchet")]
WORDS += [["fit", "{e}", "-o", "{e}.again", "--force"], ["compare", "{e}", "{e}"], ["export", "latex", "{m}"]]
WORDS += [
    [*words, "--format", form]
    for words in (["predict", "{m}", "--ranks", "64"], ["diagnose", "{m}", "--ranks", "64"], ["compare", "{e}", "{e}"])
    for form in ("table", "csv", "json", "markdown", "latex")
]


def steering(text: str) -> list[str]:
    """Characters that steer a terminal or are not seen, by their category in Unicode."""
    return [
        sign
        for sign in text
        if sign != "\n" and (unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp") or sign in MARKS)
    ]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Experiment.create(tmp_path_factory.mktemp("hostile") / "e", "hostile", ["ranks"])
    for ranks in (1, 2, 4, 8):
        made.add(Run({"ranks": ranks}), pd.DataFrame({"kernel": NAMES, "rank": -1, "time": 8.0 / ranks}))
    return made.path


@pytest.fixture(scope="module")
def model(experiment: Path) -> Path:
    assert main(["fit", str(experiment), "-o", str(experiment.with_suffix(".json")), "--quiet"]) == 0
    return experiment.with_suffix(".json")


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_outputs_hold_nothing_that_steers(
    experiment: Path, model: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """No character steers; no cell is a formula, no text of Markdown a tag or a link, and LaTeX has no command."""
    assert main([word.format(e=experiment, m=model) for word in words]) in (0, 4)  # 4: some answer is not supported
    shown = capsys.readouterr()
    assert len(shown.out) > 500
    assert not steering(shown.out + shown.err)
    form = next((word for word in words if word in ("csv", "markdown", "latex")), "")
    if form == "csv":
        cells = [cell for row in csv.reader(io.StringIO(shown.out)) for cell in row]
        assert not [cell for cell in cells if re.match(r"\s*[=+@\uff1d-](?![\d.]+$|[\d.]+e|inf$)", cell)]
    elif form == "markdown":
        assert not re.search(r"(?<!\\)[<`]|(?<!\\)://|www\.|(?<!\\)\]\(", shown.out)
    elif form == "latex":
        assert "\\input" not in shown.out
        if words[0] == "export":  # of all names
            assert "\\textbackslash{}input" in shown.out
        assert not re.search(r"\^(?!\{)", re.sub(r"\$[^$]*\$", "", shown.out))


def test_the_report_holds_nothing_that_steers(experiment: Path, model: Path) -> None:
    page = experiment.with_suffix(".html")
    assert main(["report", str(model), "--experiment", str(experiment), "-o", str(page), "--quiet"]) == 0
    text = page.read_text(encoding="utf-8")
    assert not steering(text)
    assert "<script>alert" not in text
    assert "<img src=x" not in text


def test_what_is_unsafe_is_what_unicode_says() -> None:
    """All controls, ends of lines and formats but those of Arabic numbers and hieroglyphs, which are seen."""
    seen = "0600-0605 06dd 070f 0890-0891 08e2 110bd 110cd 13430-13455"
    spans = [[int(end, 16) for end in span.split("-")] for span in seen.split()]
    wrong = [
        hex(number)
        for number in range(0x110000)
        if unicodedata.category(chr(number)) in ("Cc", "Cf", "Zl", "Zp", "Cs")
        and not any(span[0] <= number <= span[-1] for span in spans)
        and not UNSAFE.match(chr(number))
    ]
    assert wrong == []
    assert all(map(UNSAFE.match, MARKS))
    assert not any(map(UNSAFE.match, "a\u00e9\u4e2d\U0001f600\u0301 "))


def test_cells_lose_nothing(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every name is given back by undoing the spelling."""
    assert main(["export", "csv", str(experiment)]) == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))["kernel"].unique()
    restored = {
        re.sub(r"^'", "", text).encode("latin-1", "backslashreplace").decode("unicode_escape") for text in found
    }
    assert restored == set(NAMES)
