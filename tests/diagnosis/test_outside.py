"""Kernels whose time is neither computing nor memory: messages by their counts, files, and time without cycles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.analysis.diagnosis.causes import CAUSES
from ranksight.analysis.diagnosis.diagnosing import Diagnosis
from ranksight.analysis.diagnosis.outside import running
from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.platforms import load

Rows = Callable[[int], list[dict[str, object]]]


def _computes(p: int, name: str = "update", clock: float = 2.4e9) -> dict[str, object]:
    instructions = 6e11 / p
    return {"kernel": name, "rank": -1, "time": 0.6 * instructions / clock, "instructions": instructions} | {
        "cycles": 0.6 * instructions
    }


def _diagnosed(path: Path, rows: Rows, ranks: int, counts: tuple[int, ...] = (2, 4, 8, 16, 32)) -> Diagnosis:
    made = Experiment.create(path, "outside", ["ranks"])
    for p in counts:
        made.add(Run({"ranks": p}), pd.DataFrame(rows(p)))
    return rs.fit(made, platform=load("icelake-8360y")).diagnose(ranks=ranks)


def _row(found: Diagnosis, kernel: str) -> dict[str, object]:
    row = found.verdicts().set_index("kernel").loc[kernel]
    assert row[list(CAUSES)].sum() == pytest.approx(1)
    return {str(name): value for name, value in row.to_dict().items()}


def test_a_kernel_with_few_cycles_waits_outside_of_computation_and_memory(tmp_path: Path) -> None:
    """One writes for two seconds and more, of which a tenth has cycles; one runs at half the clock of the others."""

    def rows(p: int) -> list[dict[str, object]]:
        written = {"kernel": "dump", "rank": -1, "time": 2 + 0.1 * p, "instructions": 8e8, "cycles": 5e8}
        return [_computes(p), _computes(p, "vectors", 1.2e9), written]

    found = _diagnosed(tmp_path / "e", rows, 128)
    dump = _row(found, "dump")
    assert dump["verdict"] == "undecided"
    assert str(dump["reason"]).startswith("waits outside of computation and memory: cycles fill ")
    assert dump["unknown"] > 0.8
    assert dump["memory_high"] < 0.2
    assert "outside" not in str(_row(found, "vectors")["reason"])


def test_times_far_above_cycles_are_halted_against_the_kernel_with_most() -> None:
    cycles = np.array([[4e9], [1e9], [1e9], [np.nan]])
    part = running(cycles, np.array([[2.0], [1.0], [5.0], [1.0]]))[:, 0]
    assert part[1:3].tolist() == pytest.approx([0.5, 0.1])
    assert np.isnan(part[[0, 3]]).all()


def test_functions_of_files_are_no_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All runs fit on one node: messages between nodes were not seen, and files need none."""

    def rows(p: int) -> list[dict[str, object]]:
        files = {"kernel": "output->MPI_File_write_at_all", "rank": -1, "time": 3 + 0.2 * np.log2(p)}
        return [_computes(p), files, {"kernel": "MPI_Allreduce", "rank": -1, "time": 0.02 * np.log2(p)}]

    found = _diagnosed(tmp_path / "e", rows, 256, (4, 8, 16, 32, 64))
    files, reduction = _row(found, "output->MPI_File_write_at_all"), _row(found, "MPI_Allreduce")
    assert (files["verdict"], files["communication"], files["status"]) == ("undecided", 0, "ok")
    assert files["reason"] == "waits outside of computation and memory: a function of MPI that handles files"
    assert reduction["communication"] == 1
    network = found.advice().query("kind == 'network'")["saves"].sum()
    assert network == pytest.approx(found.parts["communication"][-1] / 2, abs=0.01)
    found.model.save(tmp_path / "m.json")
    main(["diagnose", str(tmp_path / "m.json"), "--ranks", "256"])
    assert "waits: files" in capsys.readouterr().out


@pytest.mark.parametrize("everywhere", [True, False])
def test_kernels_of_which_messages_alone_were_counted_communicate(tmp_path: Path, everywhere: bool) -> None:
    """Not called as MPI's functions are; where a run of the kernel lacks the counts, nothing says what it does."""

    def rows(p: int) -> list[dict[str, object]]:
        sent = {"messages": 1200.0, "bytes_sent": 4e9 / p ** (2 / 3)} if everywhere or p < 320 else {}
        swap = {"kernel": "swap_faces", "rank": -1, "time": 0.3 * (40 / p) ** (1 / 3), **sent}
        packs = {**_computes(p, "pack"), "messages": 10.0}
        return [_computes(p), packs, swap]

    found = _diagnosed(tmp_path / "e", rows, 1280, (40, 80, 160, 320))
    assert _row(found, "swap_faces")["verdict"] == ("communication-bound" if everywhere else "undecided")
    assert _row(found, "pack")["communication"] == 0
    assert ("swap_faces" in set(found.advice().query("kind == 'undivided work'")["kernel"])) != everywhere


def test_nodes_are_not_called_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Experiment.create(tmp_path / "e", "nodes", ["nodes"])
    for n in (1, 2, 4, 8, 16):
        made.add(Run({"nodes": n}), pd.DataFrame([{"kernel": "solve", "rank": -1, "time": 40 / n + 0.1}]))
    rs.fit(made).save(tmp_path / "m.json")
    main(["diagnose", str(tmp_path / "m.json"), "--nodes", "32"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "import a column that counts all ranks, of all nodes, with --parameter ranks=COLUMN" in shown
