"""What is there after a crash: files are on disk before the name that shows them is."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core import experiment as store
from ranksight.core.experiment import Experiment, Run
from ranksight.core.files import Staging


def _inodes(folder: Path) -> set[int]:
    return {entry.stat().st_ino for entry in [folder, *folder.rglob("*")]}


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Inodes of what was synced so far."""
    found: set[int] = set()
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle)
        found.add(os.fstat(handle).st_ino)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def test_an_import_is_on_disk_before_it_is_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: set[int]
) -> None:
    lacking: list[set[int]] = []
    real = Staging.put

    def put(self: Staging, name: str) -> None:
        lacking.append(_inodes(self.path / name) - synced)
        real(self, name)

    monkeypatch.setattr(Staging, "put", put)
    (tmp_path / "in.txt").write_text(
        "PARAMETER x\nPOINTS 4 8 16\nMETRIC time\nREGION a\nDATA 1 2\nDATA 3 4\nDATA 5 6\n"
    )
    assert main(["import", str(tmp_path / "in.txt"), "-o", str(tmp_path / "e"), "--quiet"]) == 0
    assert lacking == [set()]
    assert len(Experiment.read(tmp_path / "e")) == 6


def test_a_run_is_on_disk_before_it_is_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: set[int]
) -> None:
    made = Experiment.create(tmp_path / "e", "app", ["ranks"])
    lacking: list[set[int]] = []
    real = os.rename

    def rename(source: Path, target: Path) -> None:
        lacking.append(_inodes(Path(source)) - synced)
        real(source, target)

    monkeypatch.setattr(store.os, "rename", rename)
    made.add(Run({"ranks": 2.0}), pd.DataFrame({"kernel": ["a"], "rank": [0], "time": [1.0]}))
    assert lacking == [set()]
