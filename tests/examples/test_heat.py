"""The bundled heat conduction program: right answers, known counts, clear errors, kernels that stay apart."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ranksight.core.errors import InputError, ToolError
from ranksight.examples.build import build, first_errors, names, source

KERNELS = {
    "apply_operator", "dot_product", "axpy", "xpby", "material_law", "table_lookup", "pack_halo", "unpack_halo",
    "exchange_halo", "find_neighbour", "solve_step", "serialised_section", "ordered_energy", "known_solution",
    "build_table",
}  # fmt: skip
STEPS, ITERATIONS = 2, 25

mpi = pytest.mark.mpi


def launch(program: Path, ranks: int, *options: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ["mpirun", "--oversubscribe", "-n", str(ranks), str(program), *options]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)  # of a busy machine


def report(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)


def split(text: str) -> list[int]:
    return [int(part) for part in text.split(" x ")]


def expected_traffic(cells: list[int], dims: list[int], exchanges: int) -> tuple[int, int]:
    """Messages and bytes of all halo exchanges: every inner face is crossed both ways, 8 bytes a cell of it."""
    messages = sum(2 * (dims[d] - 1) * math.prod(dims) // dims[d] for d in range(3))
    bytes_ = sum(2 * 8 * (dims[d] - 1) * math.prod(cells) // cells[d] for d in range(3))
    return messages * exchanges, bytes_ * exchanges


@pytest.fixture(scope="module")
def heat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("heat", tmp_path_factory.mktemp("heat"))


@mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("grid", [("--n", "9"), ("--total", "13")])
def test_solution_and_traffic_are_those_of_the_closed_forms(heat: Path, ranks: int, grid: tuple[str, str]) -> None:
    done = launch(heat, ranks, *grid)
    assert done.returncode == 0, done.stderr
    found = report(done)
    assert "check passed" in done.stdout
    assert float(found["error (discrete solution)"]) < 1e-12
    assert float(found["error (material law)"]) < 1e-13
    cells, dims = split(found["grid"]), split(found["processes"])
    assert math.prod(dims) == ranks
    assert cells == ([9 * d for d in dims] if grid[0] == "--n" else [13] * 3)
    exchanges = STEPS * (ITERATIONS + 1)
    assert (int(found["messages sent"]), int(found["bytes sent"])) == expected_traffic(cells, dims, exchanges)
    sums = STEPS * (2 + 2 * ITERATIONS)
    assert int(found["collective calls"]) == ranks * (sums + 4)  # and a barrier, two for the check, one for the counts
    assert int(found["collective bytes"]) == ranks * 8 * (sums + 5 + 3 + 4)


@mpi
def test_every_number_of_ranks_finds_the_same_field(heat: Path) -> None:
    norms = [float(report(launch(heat, p, "--total", "14"))["norm of the solution"]) for p in (1, 2, 3, 5, 8)]
    assert norms == pytest.approx([norms[0]] * 5, rel=1e-13)


@mpi
def test_discretisation_error_falls_as_theory_says(heat: Path) -> None:
    # The step is a multiple of h^2; what one step leaves out is of second order in the step, so of fourth order in h.
    errors = [
        float(report(launch(heat, 2, "--total", str(n), "--steps", "1"))["error (continuous solution)"])
        for n in (15, 31, 63)
    ]
    orders = [math.log2(errors[i] / errors[i + 1]) for i in range(2)]
    assert orders[1] == pytest.approx(4, abs=0.15)
    assert abs(orders[1] - 4) < abs(orders[0] - 4)


@mpi
def test_planted_faults_leave_the_result_alone(heat: Path) -> None:
    plain = report(launch(heat, 4, "--n", "8"))
    done = launch(heat, 4, "--n", "8", "--bug", "--wait", "--imbalance", "0.7", "--lookup-table", "1Mi")
    assert done.returncode == 0, done.stderr
    planted = report(done)
    same = ("grid", "residual", "error (discrete solution)", "error (material law)", "norm of the solution")
    assert {key: planted[key] for key in same} == {key: plain[key] for key in same}
    handed_on = STEPS * 3
    assert int(planted["messages sent"]) == int(plain["messages sent"]) + handed_on
    assert int(planted["bytes sent"]) == int(plain["bytes sent"]) + 8 * handed_on


@mpi
def test_too_few_iterations_for_the_tolerance_fail_the_check(heat: Path) -> None:
    done = launch(heat, 2, "--n", "8", "--iterations", "2", "--check", "1e-9")
    assert done.returncode == 1
    assert "check FAILED" in done.stdout
    assert launch(heat, 2, "--n", "8", "--iterations", "2").returncode == 0  # within what CG promises after two


def assert_refused(done: subprocess.CompletedProcess[str], status: int, says: str) -> None:
    assert done.returncode == status
    said = [line for line in done.stderr.splitlines() if line.startswith("heat: ")]
    assert len(said) == 1
    assert says in said[0]
    assert "norm of the solution" not in done.stdout


@mpi
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--n", "0"), "--n takes a whole number from 1 to 4096, not '0'"),
        (("--n", "8x"), "not '8x'"),
        (("--n", ""), "--n takes"),
        (("--n", "99999999999999999999"), "--n takes"),
        (("--iterations", "-1"), "--iterations takes"),
        (("--imbalance", "nan"), "--imbalance takes"),
        (("--lookup-table", "3Ti"), "--lookup-table takes bytes"),
        (("--n",), "'--n' needs a value"),
        (("--sizes", "3"), "no option '--sizes'"),
        (("-q",), "no option '-q'"),
        (("8",), "no argument '8'"),
        (("--n", "4", "--total", "8"), "exclude each other"),
    ],
)
def test_bad_options_are_one_line(heat: Path, options: tuple[str, ...], says: str) -> None:
    assert_refused(subprocess.run([heat, *options], capture_output=True, text=True, timeout=60), 2, says)


@mpi
@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (("--steps", "many"), 2, "--steps takes"),
        (("--crash", "2"), 2, "ranks 0 to 1"),
        (("--total", "1"), 1, "cannot be shared by 2 ranks"),
    ],
)
def test_all_ranks_end_alike_with_one_line(heat: Path, options: tuple[str, ...], status: int, says: str) -> None:
    assert_refused(launch(heat, 2, *options), status, says)


@mpi
def test_help_is_printed_once(heat: Path) -> None:
    done = launch(heat, 3, "--help")
    assert done.returncode == 0
    assert done.stdout.count("usage: heat") == 1


@mpi
def test_crash_is_a_segmentation_fault_of_the_run(heat: Path) -> None:
    done = launch(heat, 2, "--n", "4", "--crash", "1")
    assert done.returncode != 0
    assert "signal 11" in done.stderr or "Segmentation" in done.stderr or done.returncode in (139, -11)
    assert "check" not in done.stdout


def counted(program: Path, folder: Path, ranks: int) -> list[dict[str, int]]:
    """Instructions of every kernel, by rank, under callgrind."""
    folder.mkdir()
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    profile = f"--callgrind-out-file={folder}/%q{{OMPI_COMM_WORLD_RANK}}"
    command = ["mpirun", "--oversubscribe", "-n", str(ranks), "valgrind", "--tool=callgrind", profile, str(program)]
    command += ["--n", "6", "--bug", "--steps", "1", "--iterations", "5", "--lookup-table", "4Ki"]
    subprocess.run(command, capture_output=True, check=True, env=environment, timeout=240)
    found = []
    for rank in range(ranks):
        annotate = ["callgrind_annotate", "--auto=no", "--threshold=100", str(folder / str(rank))]
        table = subprocess.run(annotate, capture_output=True, text=True, check=True).stdout
        rows = re.findall(r"^ *([0-9,]+) \([^)]*\) +\S*heat\w*\.[ch]:(\w+) ", table, re.MULTILINE)
        found.append({name: int(count.replace(",", "")) for count, name in rows if name in KERNELS})
    return found


@mpi
@pytest.mark.valgrind
@pytest.mark.slow
def test_counts_repeat_and_follow_from_the_grid_and_the_ranks(heat: Path, tmp_path: Path) -> None:
    one = counted(heat, tmp_path / "one", 1)[0]
    two, again = (counted(heat, tmp_path / folder, 2) for folder in ("two", "again"))
    calling_others = {"exchange_halo", "solve_step", "known_solution"}  # symbols are resolved once, libm is called
    assert [{name: rank[name] for name in rank.keys() - calling_others} for rank in two] == [
        {name: rank[name] for name in rank.keys() - calling_others} for rank in again
    ]
    for name in ("apply_operator", "dot_product", "axpy", "xpby", "material_law", "table_lookup"):
        assert one[name] == two[0][name] == two[1][name] > 0
    calls = 2 * 27 * (5 + 1)  # for receives and for sends, all cells around, in every exchange
    assert two[0]["find_neighbour"] == two[1]["find_neighbour"]
    assert (two[0]["find_neighbour"] - one["find_neighbour"]) % calls == 0
    assert two[0]["find_neighbour"] - one["find_neighbour"] >= 10 * calls


@mpi
@pytest.mark.skipif(shutil.which("nm") is None, reason="nm not found")
@pytest.mark.parametrize("level", ["-O1", "-O2", "-O3"])
def test_kernels_stay_functions_of_their_own(tmp_path: Path, level: str) -> None:
    program = build("heat", tmp_path, flags=(level, "-g"))
    listing = subprocess.run(["nm", str(program)], capture_output=True, text=True, check=True).stdout
    places = {line.split()[2]: line.split()[0] for line in listing.splitlines() if len(line.split()) == 3}
    assert places.keys() >= KERNELS
    assert len({places[name] for name in KERNELS}) == len(KERNELS)  # equal bodies are not merged
    assert not [name for name in places if re.fullmatch(rf"({'|'.join(KERNELS)})\..*", name)]  # no clones, no parts


def test_names_and_source() -> None:
    assert "heat" in names()
    assert "apply_operator" in source("heat").read_text()


@pytest.mark.parametrize("name", ["no-such", "../heat", "", "heat.c"])
def test_unknown_program_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no bundled program"):
        source(name)


def test_missing_compiler_names_the_extra(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"ranksight\[mpi\]"):
        build("heat", tmp_path, mpicc="no-such-mpicc")


@mpi
def test_compiler_error_is_shown_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no-such-option"):
        build("heat", tmp_path, flags=("--no-such-option",))
    assert list(tmp_path.iterdir()) == []


@mpi
def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot build"):
        build("heat", tmp_path / "file")


def test_first_errors_prefers_errors_to_warnings() -> None:
    assert first_errors("a.c:1: warning: w\na.c:2: error: e\n") == "a.c:2: error: e"
    assert first_errors("\n") == "it said nothing"
