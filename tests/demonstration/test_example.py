"""The demonstration on bundled measurements: complete, quick, and without names of the machine it was measured on."""

from __future__ import annotations

import importlib.util
import json
import lzma
import re
from pathlib import Path

import pytest

from ranksight.core.errors import InputError
from ranksight.core.experiment import read
from ranksight.examples import measured
from ranksight.model.fit import assemble
from ranksight.platforms import load
from ranksight.reports.demonstration import prove


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example")
    measured.unpack(folder)
    return folder


def test_the_bundle_is_small_and_whole(unpacked: Path) -> None:
    assert measured.ARCHIVE.stat().st_size < 300_000
    for place in (unpacked, unpacked / measured.MENDED):
        trained, checked = read(place / "experiment"), read(place / "check")
        most = max(run.configuration["ranks"] for run in trained.runs)
        assert {run.configuration["ranks"] for run in trained.runs} == {1, 2, 4, 8, 16}
        assert len({run.configuration["size"] for run in trained.runs}) == 3
        assert {run.configuration["ranks"] / most for run in checked.runs} >= (
            {8, 16, 32} if place == unpacked else {8, 16}
        )
        assert all(run.wall_time is not None and run.wall_time > 1 for run in checked.runs)


def test_the_bundle_names_no_host_and_no_folder(unpacked: Path) -> None:
    for file in unpacked.rglob("run.json"):
        run = json.loads(file.read_text())
        assert run["environment"] == {}
        assert not re.search(r"/(home|root|tmp|work)/", file.read_text())


def test_times_are_the_simulators_and_counts_are_not(unpacked: Path) -> None:
    for run in read(unpacked / "experiment").runs:
        known = {name for name, text in run.provenance.items() if "SMPI" in text}
        assert known == ({"time", "mpi_time", "wall_time", "compute_time"} if run.collector == "smpi" else set())
        assert (run.wall_time is None) == (run.collector == "pmpi") or run.collector == "callgrind"


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


DOCUMENTS = Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def lines_not_printed(shown: str, printed: str) -> list[str]:
    """The lines of an output in a document that the verb does not print, but for numbers that differ by 5 %."""
    known = [line.split() for line in printed.splitlines()]

    def near(word: str, other: str) -> bool:
        first, second = NUMBER.findall(word), NUMBER.findall(other)
        same = len(first) == len(second) and NUMBER.sub("#", word) == NUMBER.sub("#", other)
        return same and all(abs(float(a) - float(b)) <= 0.05 * float(b) + 1 for a, b in zip(first, second, strict=True))

    return [
        line
        for line in shown.splitlines()
        if line.strip() not in ("", "[...]", "```")
        and not any(len(row) == len(line.split()) and all(map(near, line.split(), row)) for row in known)
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_documents_show_is_what_the_demo_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """README.md, the tour and the page on reports, and the text of the pictures, as docs/generate.py writes them."""
    spec = importlib.util.spec_from_file_location("generate_documents", DOCUMENTS / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    remedy = "run python docs/generate.py --demo"
    shown = 0
    for document in generate.SHOWN:
        written, now = (DOCUMENTS / document).read_text(), generate.printed(document)
        shown += len(generate.PRINTED.findall(written))
        lacking = lines_not_printed(written, now)
        assert not lacking, f"{document}: {remedy}: {lacking}"
    assert shown >= 4
    folder = tmp_path / "ranksight-demo"
    assert (folder / "heat.html").stat().st_size > 10_000
    first = (DOCUMENTS / "README.md").read_text().partition("ranksight demo\n```\n")[2]
    screen = re.findall(r"```\n(.*?)```", first, re.DOTALL)[0]
    assert "simulated" in screen
    assert len(screen.splitlines()) <= 20
    (tmp_path / "images").mkdir()
    generate.images(folder, tmp_path / "images")
    for picture in (tmp_path / "images").glob("*.svg"):
        texts = [
            "\n".join(re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text()))
            for path in (DOCUMENTS / "docs" / "images" / picture.name, picture)
        ]
        assert lines_not_printed(*texts) == [], f"{picture.name}: {remedy}"


@pytest.mark.slow
def test_the_demo_predicts_what_was_measured(tmp_path: Path) -> None:
    """Five of six printed intervals hold, and the planted fault is named, mended and measured again."""
    folder = tmp_path / "demo"
    measured.unpack(folder)
    proofs = []
    for place in (folder, folder / measured.MENDED):
        model, _ = assemble(read(place / "experiment"), platform=load("simulated"))
        proofs.append(prove(model, read(place / "check")))
        table = proofs[-1].table
        assert table["ok"].all()
        assert table["inside"].mean() >= 0.85
        assert table["error"].abs().max() < 0.15
    growing = proofs[0].model.diagnose(ranks=256, size=16).advice().query("kind == 'growth'")
    assert growing.iloc[0]["kernel"] == "find_neighbour"
    assert "find_neighbour" not in set(proofs[1].model.diagnose(ranks=256, size=16).advice()["kernel"])
    faulty, mended = (proof.at({"ranks": 256, "size": 16})["measured"] for proof in proofs)
    assert mended < 0.8 * faulty
