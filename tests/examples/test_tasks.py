"""Three tasks of somebody new, by the lines of the documents alone, with the figures that are expected.

    pytest -m 'slow or not slow' tests/examples/test_tasks.py

A program of one's own with a serial loop of rank 0, files of LIKWID, and a table of times.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ranksight.cli.main import main

PROGRAM = Path(__file__).resolve().parents[1] / "helpers" / "serial_loop.c"


def words(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed since, on one line."""
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not all(map(shutil.which, ("mpicc", "mpirun", "valgrind"))), reason="no MPI or no valgrind")
def test_a_serial_loop_of_rank_0_is_found_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The README's lines for one's own program; at 512 ranks the loop is 512 times as long as at one."""
    monkeypatch.chdir(tmp_path)
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")
    subprocess.run(["mpicc", "-O2", "-g", "-fno-inline", PROGRAM, "-o", "solver"], check=True)
    command = ["mpirun", "--oversubscribe", "-n", "{ranks}", "./solver"]
    assert main(["measure", "--ranks", "1,2,4,8", "-o", "solver.exp", "--", *command]) == 0
    assert main(["fit", "solver.exp"]) == 0
    capsys.readouterr()
    main(["diagnose", "solver.exp.model.json", "--ranks", "512"])
    printed = words(capsys)
    assert "serial section: summarise: only rank 0, the first, runs it, and the others wait" in printed
    # On a busy machine its few samples leave the growth of its time open; that of its instructions is tested below.
    assert re.search(r"growth: summarise: grows with the ranks from \d+ on|growth undecided: summarise", printed)
    main(["predict", "solver.exp.model.json", "--ranks", "64,512", "--metric", "instructions", "--format", "json"])
    rows = json.loads(capsys.readouterr().out)["predictions"]
    fewer, more = (row["value"] for row in rows if row["kernel"] == "summarise")
    assert more / fewer == pytest.approx(8, rel=0.01)
    main(["init", "--ranks", "1,2,4,8", "--experiment", "solver.exp", "--", *command])
    capsys.readouterr()
    assert main(["check"]) == 3
    assert "summarise (instructions): grows faster than expected" in words(capsys)
    main(["report", "solver.exp.model.json", "--ranks", "512"])
    front = Path("solver.exp.html").read_text(encoding="utf-8").partition('id="front"')[2].partition("<section")[0]
    assert "only rank 0, the first, runs it" in front


def test_files_of_likwid_give_the_time_of_a_node_and_its_cause(
    tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tealeaf on 1 to 18 cores, one memory domain of four; it ran 607 s on the node's 72."""
    monkeypatch.chdir(tmp_path)
    folder = shared / "data" / "counters" / "spechpc_likwid_icelake" / "MEM_DP"
    files = [str(folder / f"tealeaf-FritzRank{ranks}-MEM_DP.txt") for ranks in (1, 2, 3, 4, 6, 8, 9, 10, 12, 16, 18)]
    assert main(["import", "likwid", *files, "--parameter", r"ranks=Rank(\d+)", "-o", "app.exp"]) == 0
    assert main(["fit", "app.exp"]) == 0
    capsys.readouterr()
    # Without the machine every verb that answers names what is assumed.
    assumed = "how many cores share memory is not known: 72 are assumed to share it as the 18 of the runs did"
    for verb in ("predict", "diagnose"):
        main([verb, "app.exp.model.json", "--ranks", "72"])
        assert assumed in words(capsys)
    assert main(["fit", "app.exp", "--platform", "icelake-8360y", "--force"]) == 0
    capsys.readouterr()
    main(["predict", "app.exp.model.json", "--ranks", "72", "--metric", "time", "--format", "json"])
    (whole,) = (row for row in json.loads(capsys.readouterr().out)["predictions"] if row["kernel"] is None)
    assert whole["value"] == pytest.approx(607.1, rel=0.05)
    assert whole["interval"][0] < 607.1 < whole["interval"][1]
    main(["diagnose", "app.exp.model.json", "--ranks", "72"])
    printed = words(capsys)
    assert "memory-bound" in printed
    assert re.search(r"the memory domain saturates at \d+ of 18 ranks", printed)
    assert assumed not in printed
    assert main(["report", "app.exp.model.json", "--ranks", "72"]) == 0
    assert "most of it to memory" in words(capsys)


def test_a_table_of_times_gives_a_function_a_prediction_and_latex(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Amdahl's law with 1.5 s that are not divided, to three digits."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{ranks},{155 / ranks + 1.5:.3g}" for ranks in (4, 8, 16, 32, 64)]
    Path("times.csv").write_text("\n".join(["ranks,seconds", *rows, ""]))
    assert (
        main(["import", "csv", "times.csv", "--parameter", "ranks", "--metric", "time=seconds", "-o", "times.exp"]) == 0
    )
    assert main(["fit", "times.exp"]) == 0
    assert "155 / ranks + 1.5" in words(capsys)
    main(["predict", "times.exp.model.json", "--ranks", "128", "--format", "json"])
    (whole,) = json.loads(capsys.readouterr().out)["predictions"]
    assert whole["value"] == pytest.approx(155 / 128 + 1.5, rel=0.01)
    assert whole["interval"][0] < 155 / 128 + 1.5 < whole["interval"][1]
    assert main(["fit", "times.exp", "--force", "--formulas", "latex"]) == 0
    assert r"\frac{155}{\mathrm{ranks}} + 1.5" in capsys.readouterr().out
    assert main(["predict", "times.exp.model.json", "--ranks", "128", "--format", "latex"]) == 0
    assert re.search(r"\(whole program\) & 2.7\d? s & ", capsys.readouterr().out)
