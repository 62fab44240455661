"""The commands of README.md, the tour, the uses and the page on clusters are executed, and the files they name exist.

A folder is prepared with what a reader has at that point: an experiment, its model, a machine's description, expectations
and tables. Commands that measure, build or calibrate are slow and run on a real machine; the others ask a small
experiment of the same names.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.platforms import load, save

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "docs/tour.md", "docs/uses.md", "docs/clusters.md", "docs/history.md")
NOT_RUN = ("python3 -m venv", "pip ", "xdg-open", "export ", ". ")
"""Lines that install or open something: they are the reader's own."""
SLOW = ("measure", "calibrate", "demo", "mpicc")
KERNELS = ("apply_operator", "find_neighbour", "halo")


def commands(document: str) -> list[str]:
    """The lines of shell code of a document, joined where they go on, without notes."""
    text = (ROOT / document).read_text()
    text = re.sub(r"<!-- test command -->.*?<!-- end -->", "", text, flags=re.DOTALL)
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    blocks += re.findall(r"(?:^|\n)((?:    (?:ranksight|pip|python3) .*\n?(?:      .*\n?)*)+)", text)
    lines = [line.strip() for block in blocks for line in re.sub(r"\\\n\s*", " ", block).splitlines()]
    return [line for line in lines if line and not line.startswith("#") and not line.startswith(NOT_RUN)]


def _slow(line: str) -> bool:
    words = line.split()
    return (words[1] if words[0] == "ranksight" else words[0]) in SLOW and "--emit" not in words


LINES = [(document, line) for document in DOCUMENTS for line in commands(document)]
FAST = [(document, line) for document, line in LINES if not _slow(line)]


def made(place: Path, name: str, factor: float = 1.0) -> None:
    """A small experiment of a program with the kernels that the documents name."""
    experiment = Experiment.create(place / name, "heat", ["ranks", "size"])
    generator = np.random.default_rng(0)
    for ranks in (1, 2, 4, 8):
        for size in (12, 16, 24):
            work = factor * size**3
            rows = [
                (KERNELS[0], 1e-7 * work, 40.0 * work),
                (KERNELS[1], 2e-8 * work * ranks**0.5, 5.0 * work),
                (KERNELS[2], 1e-7 * size**2, 9.0 * size**2),
            ]
            table = pd.DataFrame(
                [(k, -1, t * generator.uniform(0.99, 1.01), i) for k, t, i in rows],
                columns=["kernel", "rank", "time", "instructions"],
            )
            command = ("mpirun", "-n", str(ranks), "./heat", "--n", str(size))
            experiment.add(Run({"ranks": ranks, "size": size}, 0, "synthetic", command=command, wall_time=0.1), table)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader of the documents has it."""
    place = tmp_path_factory.mktemp("reader")
    made(place, "heat.exp")
    for name, factor in (("before.exp", 1.0), ("after.exp", 1.1), ("main.exp", 1.0), ("branch.exp", 1.01)):
        made(place, name, factor)
    shutil.copytree(place / "main.exp", place / "monday.exp")
    shutil.copytree(place / "branch.exp", place / "tuesday.exp")
    shutil.copytree(place / "main.exp", place / "a.exp")
    shutil.copytree(place / "branch.exp", place / "b.exp")
    for folder, names in (("nightly", ("01.exp", "02.exp")), ("artifacts", ("a1.exp", "b2.exp"))):
        (place / folder).mkdir()
        for name, made_before in zip(names, ("main.exp", "branch.exp"), strict=True):
            shutil.copytree(place / made_before, place / folder / name)
    save(load("generic"), place / "this-node.toml")
    (place / "ranksight-demo").mkdir()
    assert main(["fit", str(place / "heat.exp"), "-q"]) == 0
    shutil.copy(place / "heat.exp.model.json", place / "ranksight-demo" / "heat.model.json")
    shutil.copytree(place / "heat.exp", place / "ranksight-demo" / "experiment")
    (place / "expectations.toml").write_text(
        '[expect.instructions]\napply_operator = "O(1)"\n[hold]\nsize = 16\n[search]\nleast_settings = 4\n'
    )
    lines = ["ranks,size,kernel,wallmax", *(f"{p},{n},solve,{n**3 / p}" for p in (1, 2, 4, 8) for n in (8, 16))]
    (place / "runs.csv").write_text("\n".join(lines) + "\n")
    return place


@pytest.fixture
def reader(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh copy of the folder, in which the commands are typed."""
    shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def test_the_documents_hold_commands() -> None:
    assert {document for document, _ in LINES} == set(DOCUMENTS)
    assert len(FAST) > 20
    assert any("ranksight demo" in line for _, line in LINES)


@pytest.mark.parametrize(("document", "line"), FAST)
def test_every_command_does_what_its_document_says(
    document: str, line: str, reader: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = shlex.split(line, comments=True)
    if words[0] != "ranksight":
        pytest.fail(f"{document}: {line}: this runner knows no such command")
    if "likwid" in line:
        for n in (1, 2):
            (reader / f"run-{n}").mkdir()
            shutil.copy(ROOT / "tests/readers/data/likwid/groups.csv", reader / f"run-{n}" / "likwid.csv")
    if "import" in words and "-o" in words:
        shutil.rmtree(reader / words[words.index("-o") + 1], ignore_errors=True)
    words = [
        str(found) for word in words for found in (sorted(reader.glob(word)) if "*" in word and "/" in word else [word])
    ]
    words = [str(Path(word).relative_to(reader)) if word.startswith(f"{reader}/") else word for word in words]
    code = main(words[1:])
    said = capsys.readouterr()
    # A comparison may find what it looks for; an answer may be insufficient for so few runs.
    assert code in ((0, 3) if words[1] in ("compare", "check", "history") else (0, 4)), said.err
    assert "Traceback" not in said.err
    for option in ("-o", "--output", "--plot", "--junit"):
        if option in words[: words.index("--") if "--" in words else None]:
            name = words[words.index(option) + 1]
            assert (reader / name).exists() or (reader / f"{name}.jobs").exists()


@pytest.mark.slow
@pytest.mark.skipif("RANKSIGHT_DOCUMENTS" not in os.environ, reason="RANKSIGHT_DOCUMENTS=1 runs them, half an hour")
@pytest.mark.mpi
@pytest.mark.valgrind
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("document", DOCUMENTS)
def test_heavy_commands_run_in_their_order(document: str, tmp_path: Path) -> None:
    """Build, measure, calibrate and the demo, as typed one after another in one folder."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    script = tmp_path / "ranksight"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m ranksight "$@"\n')
    script.chmod(0o755)
    environment["PATH"] = f"{tmp_path}{os.pathsep}{environment['PATH']}"
    lines = [line for name, line in LINES if name == document and _slow(line)]
    if document != "README.md":
        build = next(line for name, line in LINES if name == "README.md" and line.startswith("mpicc"))
        lines.insert(0, build)
    for line in lines:
        done = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
