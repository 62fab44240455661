"""The demonstration on bundled measurements: complete, quick, and without names of the machine it was measured on."""

from __future__ import annotations

import json
import lzma
import re
import shlex
from pathlib import Path

import pytest

from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import read
from ranksight.examples import measured
from ranksight.model.fitted_model import Model
from ranksight.platforms import load


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    measured.unpack(folder)
    return folder


def test_the_bundle_is_small_and_whole(unpacked: Path) -> None:
    assert measured.ARCHIVE.stat().st_size < 300_000
    trained, checked = read(unpacked / "experiment"), read(unpacked / "check")
    assert {run.configuration["ranks"] for run in trained.runs} == {1, 2, 4, 8}
    assert len({run.configuration["size"] for run in trained.runs}) >= 3
    held_out = {tuple(run.configuration.values()) for run in checked.runs}
    assert not held_out & {tuple(run.configuration.values()) for run in trained.runs}
    assert max(run.configuration["ranks"] for run in checked.runs) > 8
    assert load(str(unpacked / "this-node.toml")).caches


def test_the_bundle_names_no_host_and_no_folder(unpacked: Path) -> None:
    for file in unpacked.rglob("run.json"):
        run = json.loads(file.read_text())
        assert set(run["environment"]) <= set(measured.KEPT)
        assert not [word for word in run["command"] if word.startswith("/")]
    assert not re.search(r"/(home|root|tmp|work)/", (unpacked / "this-node.toml").read_text())


def test_what_is_packed_is_unpacked(unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "again.tar.xz"
    measured.pack(unpacked, archive)
    monkeypatch.setattr(measured, "ARCHIVE", archive)
    measured.unpack(tmp_path / "there")
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (unpacked, tmp_path / "there")
    )
    assert first.keys() == second.keys()
    assert all(first[path] == second[path] for path in first if path.name != "run.json")


def test_a_damaged_bundle_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "ARCHIVE", tmp_path / "heat.tar.xz")
    with pytest.raises(InputError, match="install ranksight again"):
        measured.unpack(tmp_path)
    (tmp_path / "heat.tar.xz").write_bytes(lzma.compress(b"no archive") + b"cut")
    with pytest.raises(InputError, match="cannot be read"):
        measured.unpack(tmp_path)


@pytest.mark.parametrize("other", ["--quick", "--bug"])
def test_what_was_measured_cannot_be_changed(other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--example", other, "-o", str(tmp_path / "d")]) == 2
    assert "leave --quick and --bug out" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


DOCUMENTS = Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def lines_not_printed(shown: str, printed: str) -> list[str]:
    """The lines of an output in a document that the verb does not print, but for numbers that differ by 5 %."""
    known = [line.split() for line in printed.splitlines()]

    def near(word: str, other: str) -> bool:
        found, there = NUMBER.findall(word), NUMBER.findall(other)
        return NUMBER.sub("#", word) == NUMBER.sub("#", other) and all(
            abs(float(a) - float(b)) <= 0.05 * float(b) + 1 for a, b in zip(found, there, strict=True)
        )

    return [
        line
        for line in shown.splitlines()
        if line.strip() not in ("", "[...]", "```")
        and not any(len(row) == len(line.split()) and all(map(near, line.split(), row)) for row in known)
    ]


def shown_in_documents() -> list[tuple[list[str], str]]:
    """Commands on the measurements that come with the package, and the output that documents show of each."""
    text = "".join((DOCUMENTS / "docs" / f"{name}.md").read_text() for name in ("tour", "plan", "report"))
    found = re.findall(
        r"^    ranksight ([^\n]* ranksight-demo/[^\n]*)\n\n```\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )
    return [(shlex.split(line), shown) for line, shown in found]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_example_predicts_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what README.md and the tour show is what is printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    folder = tmp_path / "ranksight-demo"
    assert main(["demo", "--example"]) == 0
    printed = capsys.readouterr().out
    readme = (DOCUMENTS / "README.md").read_text()
    shown = readme[readme.index("demo output -->") :].partition("\n")[2].partition("<!-- end")[0]
    assert lines_not_printed(shown, printed) == []
    assert len(shown_in_documents()) == 4
    monkeypatch.setenv("COLUMNS", "80")
    for words, shown in shown_in_documents():
        assert main([*words, *(["--force"] if words[0] == "report" else [])]) == 0
        lacking = lines_not_printed(shown, capsys.readouterr().out)
        assert len(lacking) <= 0.1 * len(shown.splitlines()), (
            f"{words}: a document shows what is not printed: {lacking}"
        )
    said = " ".join(printed.split())
    sizes = set(re.findall(r"(?:as ranks|Largest kernels at [0-9]+ ranks), size (\d+)", said))
    assert len(sizes) == 1, "the predicted times and the ranking are of one size"
    assert (folder / "heat.html").stat().st_size > 10_000
    model = Model.load(folder / "heat.model.json")
    assert model.predict(ranks=1024, size=24, metrics=["time"]).answers.ok.any()
    # What is outside of its interval is named.
    outside = len(re.findall(r"[+-][\d.]+% outside", said))
    assert outside == 0 or f"{outside} of" in said
