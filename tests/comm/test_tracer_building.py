"""The tracer is built once for an MPI, and says plainly when it cannot be."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ranksight.campaign.collecting import COLLECTORS
from ranksight.campaign.launching import Launch
from ranksight.comm.collectors.pmpi import _matching_mpicc, check_launcher, check_program
from ranksight.comm.tracer import building
from ranksight.comm.tracer.building import Compiler, build, compiler
from ranksight.core.errors import ToolError


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def fake(tmp_path: Path) -> Compiler:
    """A compiler wrapper that counts how often it links, and leaves an empty library."""
    log = tmp_path / "log"
    mpicc = script(
        tmp_path / "bin" / "mpicc",
        f'echo "$@" >> {log}; while [ $# -gt 1 ]; do [ "$1" = -o ] && touch "$2"; shift; done',
    )
    header = (
        "int MPI_Send(int a); int PMPI_Send(int a); int MPI_Init(int *a, char ***b); int PMPI_Init(int *a, char ***b);"
    )
    header += "int MPI_Comm_rank(MPI_Comm c, int *r); int PMPI_Comm_rank(MPI_Comm c, int *r);"
    return Compiler(str(mpicc), "cc 1", header, "Open MPI", "5.0")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("RANKSIGHT_MPICC", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def short_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """MPI_Send of the fake header has one parameter: no rule looks at the others."""
    monkeypatch.setattr("ranksight.comm.tracer.wrappers.RULES", {})


@pytest.mark.usefixtures("short_rules")
def test_a_second_build_is_not_one(fake: Compiler, cache: Path, tmp_path: Path) -> None:
    first = build(fake)
    assert first == build(fake)
    assert first.is_relative_to(cache / "ranksight" / "tracer")
    assert (tmp_path / "log").read_text().count("-shared") == 1
    other = build(Compiler(fake.path, "cc 2", fake.header, fake.family, fake.release))
    assert other != first
    assert not list((cache / "ranksight" / "tracer").glob(".new-*"))


@pytest.mark.usefixtures("short_rules")
def test_builds_at_the_same_time_give_one_library(fake: Compiler, cache: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: build(fake), range(8)))
    assert len(found) == 1
    assert len(list((cache / "ranksight" / "tracer").iterdir())) == 1


@pytest.mark.usefixtures("short_rules")
def test_what_was_compiled_before_an_interruption_is_kept(
    fake: Compiler, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = building._run, []

    def interrupted(command: list[str], text: str = "") -> object:
        calls.append(command)
        if "-shared" in command:
            raise KeyboardInterrupt
        return real(command, text)

    with monkeypatch.context() as patch:
        patch.setattr(building, "_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build(fake)
    (objects,) = (cache / "ranksight" / "tracer").iterdir()
    assert len(list(objects.glob("*.o"))) == len(calls) - 1 > 5
    (objects / "groups.o").unlink()
    (tmp_path / "log").unlink()
    assert build(fake).is_file()
    compiled, linked = (tmp_path / "log").read_text().splitlines()
    assert compiled.endswith("groups.c")
    assert "-shared" in linked
    assert not objects.exists()


@pytest.mark.usefixtures("short_rules")
def test_how_far_a_build_is(fake: Compiler, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "ranksight")
    build(fake)
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("building the tracer")]
    whole = len(said) - 1
    assert said == [f"building the tracer for Open MPI 5.0, once: {done} of {whole}" for done in range(whole + 1)]
    assert whole > 5
    caplog.clear()
    build(fake)
    assert not caplog.records


@pytest.mark.usefixtures("short_rules")
def test_one_language_is_left_out_where_it_alone_does_not_compile(fake: Compiler, tmp_path: Path) -> None:
    text = Path(fake.path).read_text().splitlines()
    script(Path(fake.path), f'case "$*" in *" -c "*fortran*) echo "error: no f2c" >&2; exit 1;; esac\n{text[1]}')
    assert build(fake).is_file()
    (linked,) = (line for line in (tmp_path / "log").read_text().splitlines() if "-shared" in line)
    assert "fortran" not in linked
    assert "wrappers_0.o" in linked


@pytest.mark.usefixtures("short_rules")
def test_a_cache_that_cannot_be_written_is_no_obstacle(fake: Compiler, cache: Path, tmp_path: Path) -> None:
    cache.write_text("a file where the folder should be")
    place = tmp_path / "run"
    place.mkdir()
    assert build(fake, place).parent == place


def test_no_compiler_wrapper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"no mpicc is found.*; load the site's MPI module, or: pip install"):
        compiler()
    found = COLLECTORS["pmpi"].available()
    assert not found.ok
    assert "mpicc" in found.reason
    assert "pip install" in found.remedy


def test_a_compiler_wrapper_without_compiler(tmp_path: Path) -> None:
    mpicc = script(tmp_path / "bin" / "mpicc", 'echo "mpi.h: error: gcc is not installed" >&2; exit 1')
    with pytest.raises(ToolError, match="cannot preprocess mpi.h: mpi.h: error: gcc is not installed"):
        compiler(str(mpicc))


@pytest.mark.usefixtures("short_rules")
def test_a_compiler_that_fails(fake: Compiler, tmp_path: Path, cache: Path) -> None:
    script(Path(fake.path), 'echo "tables.c:3: error: no such thing" >&2; echo more >&2; exit 1')
    with pytest.raises(ToolError, match=r"does not compile the tracer: tables.c:3: error: no such thing; check"):
        build(fake)
    assert not list((cache / "ranksight" / "tracer").iterdir())


def test_a_header_that_is_none(fake: Compiler) -> None:
    with pytest.raises(ToolError, match="declares no MPI_Send"):
        build(Compiler(fake.path, fake.version, "int main(void);", "", ""))


@pytest.mark.parametrize(
    ("said", "family", "refused"),
    [
        ("mpirun (Open MPI) 5.0.1", "MPICH", "belongs to Open MPI"),
        ("HYDRA build details:\n Version: 4.0.2", "Open MPI", "belongs to MPICH"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9", "Open MPI", "belongs to Intel MPI"),
        ("HYDRA build details:", "Intel MPI", ""),
        ("mpirun (Open MPI) 4.1", "Open MPI", ""),
        ("something of the site", "Open MPI", ""),
        ("mpirun (Open MPI) 6.0.0", "MPI ABI", ""),
    ],
)
def test_a_launcher_of_another_mpi_is_refused(tmp_path: Path, said: str, family: str, refused: str) -> None:
    mpirun = script(tmp_path / "bin" / "mpirun", f"cat <<'END'\n{said}\nEND")
    launch = Launch((str(mpirun), "-n", "2", "app"), 3, {"ranks": 2.0}, 2)
    using = Compiler("/opt/mpi/bin/mpicc", "", "", family, "4.0")
    if refused:
        with pytest.raises(ToolError, match=refused):
            check_launcher(using, launch)
    else:
        check_launcher(using, launch)


@pytest.mark.mpi
def test_a_program_of_another_mpi_is_refused_before_it_runs(tracing, tmp_path: Path) -> None:
    tracing.mpi(".openmpi")
    suffix, _ = tracing.mpi(".mpich")
    program = tracing.compile("names.cpp", wrapper=f"mpicxx{suffix}")
    launch = tracing.launch(program, 1, mpirun=("mpirun.openmpi",))
    with pytest.raises(ToolError, match=r"is linked with .*libmpich.so.*, but .*mpicc.openmpi \(Open MPI"):
        COLLECTORS["pmpi"].steps(launch, tmp_path)


@pytest.mark.mpi
def test_a_program_of_the_standard_abi_needs_its_compiler_wrapper(tracing, tmp_path: Path, monkeypatch) -> None:
    suffix, mpirun = tracing.mpi("_abi")
    launch = tracing.launch(tracing.compile("ends.c", wrapper=f"mpicc{suffix}"), 1, mpirun=mpirun)
    assert "mpicc_abi" in str(_matching_mpicc(launch))
    monkeypatch.setenv("RANKSIGHT_MPICC", str(Path(mpirun[0]).with_name("mpicc")))
    with pytest.raises(
        ToolError, match=r"is linked with .*libmpi_abi.so.1, but .*mpicc \(MPICH .* builds for .*libmpi.so"
    ):
        COLLECTORS["pmpi"].steps(launch, tmp_path)


@pytest.mark.mpi
def test_a_static_program_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "main.c"
    source.write_text("int main(void) { return 0; }\n")
    if subprocess.run(["cc", "-static", "-o", tmp_path / "app", source], capture_output=True).returncode != 0:
        pytest.skip("no static C library")
    using = compiler()
    with pytest.raises(ToolError, match="linked statically"):
        check_program(using, Path(shutil.which("ls") or "/bin/ls"), str(tmp_path / "app"))


@pytest.mark.mpi
def test_the_installed_mpi_is_recognised() -> None:
    found = compiler()
    assert found.family
    assert os.path.isabs(found.path)
    functions = building._generate(found)
    text = "".join(functions.values())
    assert text.count("RS_EXPORT int MPI_") > 300
    assert text.count("RS_EXPORT int MPI_Send(") == text.count("RS_EXPORT void mpi_send_(") == 1
