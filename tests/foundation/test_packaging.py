"""What is installed is what is in the tree."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from ranksight.cli.main import _module, verb_parser

ROOT = Path(__file__).resolve().parents[2]
NOT_INSTALLED = {"tests", "benchmarks", "docs", "build", "dist"}


def tracked(pattern: str) -> list[Path]:
    """Files of the tree below the folders that are installed."""
    found = (file.relative_to(ROOT) for file in ROOT.rglob(pattern))
    return [
        file for file in found if file.parts[0] not in NOT_INSTALLED and not any(p.startswith(".") for p in file.parts)
    ]


def test_every_subpackage_is_listed() -> None:
    with (ROOT / "pyproject.toml").open("rb") as source:
        listed = set(tomllib.load(source)["tool"]["setuptools"]["packages"])
    there = {".".join(("ranksight", *file.parent.parts)) for file in tracked("__init__.py")}
    assert listed == there


def test_every_module_and_data_file_lies_in_a_package() -> None:
    for pattern in ("*.py", "*.c", "*.h", "*.toml"):
        for file in tracked(pattern):
            if file.parent != Path() and "mpi_scalability" not in file.parts:
                assert (ROOT / file.parent / "__init__.py").is_file(), f"{file} would vanish from the wheel"


@pytest.mark.slow
def test_the_wheel_holds_modules_and_data(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 and "No module named" in done.stderr:
        pytest.skip("the packages that build a wheel are not installed")
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for pattern in ("*.py", "*.c", "*.h", "*.html", "*.css", "*.js"):
        for file in tracked(pattern):
            assert f"ranksight/{file.as_posix()}" in names
    for file in tracked("*.toml"):
        if file.parent != Path():
            assert f"ranksight/{file.as_posix()}" in names


@pytest.mark.slow
def test_the_source_distribution_holds_documents_and_tests(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 and "No module named" in done.stderr:
        pytest.skip("the packages that build a source distribution are not installed")
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    for folder in ("docs", "tests", "benchmarks"):
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and not any(
                p.startswith(".") or p == "__pycache__" for p in file.parts[len(ROOT.parts) :]
            ):
                assert file.relative_to(ROOT).as_posix() in names
    assert {"CITATION.cff", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"} <= names
    assert not any("__pycache__" in name for name in names)


def test_the_citation_is_of_this_version() -> None:
    with (ROOT / "pyproject.toml").open("rb") as source:
        project = tomllib.load(source)["project"]
    cited = dict(line.split(": ", 1) for line in (ROOT / "CITATION.cff").read_text().splitlines() if ": " in line)
    assert cited["version"] == project["version"]
    assert cited["license"] == project["license"]


WORKFLOWS = [
    *(ROOT / "docs" / "ci").glob("*.yml"),
    *(ROOT / ".github").rglob("*.yml"),
    ROOT / ".pre-commit-config.yaml",
]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_files_of_build_servers_are_sound(file: Path) -> None:
    """They are YAML, and their commands of ours are ones that exist."""
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load(file.read_text())
    lines: list[str] = []

    def gather(found: object) -> None:
        if isinstance(found, dict):
            lines.extend(str(found[key]) for key in ("run",) if key in found)
            lines.extend(map(str, found.get("script", ()) if isinstance(found.get("script"), list) else ()))
            for each in found.values():
                gather(each)
        elif isinstance(found, list):
            for each in found:
                gather(each)

    gather(content)
    if file.name == "test.yml":
        assert ".ci/run" in lines
        return
    for line in lines:
        words = shlex.split(re.sub(r"\$COMMAND", "mpirun -n {ranks} ./a", line.replace('"$RANKS"', "1,2")))
        if words[0] == "ranksight":
            parser, module = verb_parser(words[1]), importlib.import_module(_module(words[1]))
            assert module.parse(parser, words[2:]) is not None
    assert len([line for line in lines if "ranksight" in line]) >= 2 or file.name.startswith(".pre")


def test_images_install_this_package() -> None:
    """Every continued line of the image's recipe belongs to an instruction, and what it copies is installed."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "examples" / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "RUN", "COPY", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {line.split()[0] for line in lines} <= known
    assert lines[0].startswith("FROM python:3.12")
    assert lines.index("COPY . /src") < next(at for at, line in enumerate(lines) if "pip install" in line)
    assert next(at for at, line in enumerate(lines) if line.startswith("USER")) < len(lines) - 1
    recipe = (ROOT / "examples" / "apptainer.def").read_text()
    assert all(f"%{section}" in recipe for section in ("files", "post", "runscript"))


def test_recipes_need_what_the_project_needs() -> None:
    with (ROOT / "pyproject.toml").open("rb") as source:
        project = tomllib.load(source)["project"]
    needed = {re.split(r"[><=]", each)[0]: each.partition(">=")[2] for each in project["dependencies"]}
    spack = (ROOT / "docs/packaging/package.py").read_text()
    listed = dict(re.findall(r'depends_on\("py-([\w-]+)@([\d.]+):", type=\("build", "run"\)\)', spack))
    assert listed == needed
    assert f'depends_on("python@{project["requires-python"].removeprefix(">=")}:"' in spack
    conda = (ROOT / "docs/packaging/meta.yaml").read_text()
    run = conda.partition("  run:\n")[2].partition("\n\n")[0].replace("matplotlib-base", "matplotlib")
    found = dict(re.findall(r"- ([\w-]+) >=([\d.]+)", run))
    assert found.pop("python") == project["requires-python"].removeprefix(">=")
    assert found == needed
    assert f'version = "{project["version"]}"' in conda
