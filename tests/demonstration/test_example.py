"""The demonstration on bundled measurements: complete, quick, and without names of the machine it was measured on."""

from __future__ import annotations

import json
import lzma
import re
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


def printed_rows(text: str) -> set[tuple[str, ...]]:
    """The rows of numbers of a text, each its configuration and the value predicted or measured, to two digits."""
    rows = [line.split() for line in text.splitlines() if re.match(r" +\d+ .* (?:ms|us) ", line)]
    return {
        tuple(f"{float(word):.2g}" if "." in word else word for word in row[:3] if word[0].isdigit()) for row in rows
    }


def shown_in_readme() -> set[tuple[str, ...]]:
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    found = printed_rows(readme[readme.index("<!-- demo output -->") : readme.index("<!-- end of demo output -->")])
    assert len(found) == 5
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_example_predicts_what_was_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "d"
    assert main(["demo", "--example", "-o", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert shown_in_readme() <= printed_rows(printed)
    said = " ".join(printed.split())
    sizes = set(re.findall(r"(?:as ranks|Largest kernels at [0-9]+ ranks), size (\d+)", said))
    assert len(sizes) == 1, "the predicted times and the ranking are of one size"
    assert (folder / "heat.html").stat().st_size > 10_000
    model = Model.load(folder / "heat.model.json")
    assert model.predict(ranks=1024, size=24, metrics=["time"]).answers.ok.any()
    # What is outside of its interval is named.
    outside = len(re.findall(r"[+-][\d.]+% outside", said))
    assert outside == 0 or f"{outside} of" in said
