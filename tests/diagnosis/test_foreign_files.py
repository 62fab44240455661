"""What a model's file keeps for the diagnosis may be damaged, or of another version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ranksight
from ranksight.cli.main import main
from ranksight.core.errors import InputError


@pytest.mark.parametrize(
    "kept",
    [
        {"waits": [{"kernel": "a", "operation": "Recv"}]},
        {"waits": [7]},
        {"balance": {"kernels": {"a": 3}, "configurations": [[1.0]]}},
    ],
)
def test_damage_is_reported(tmp_path: Path, kept: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("ranks,kernel,time\n" + "".join(f"{p},a,{p}\n{p},b,3\n" for p in (1, 2, 4, 8, 16)))
    words = ["import", "csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--kernel", "kernel", "--metric", "time"]
    assert main([*words, "-o", str(tmp_path / "e")]) == 0
    model = ranksight.fit(ranksight.read(tmp_path / "e"))
    damaged = replace(model, observed={**model.observed, "diagnosis": kept})
    with pytest.raises(InputError, match="fit the model again"):
        damaged.diagnose(ranks=[8, 64]).advice()
    damaged.save(tmp_path / "m.json")
    assert main(["diagnose", str(tmp_path / "m.json"), "--ranks", "8,64"]) == 1
    assert "Traceback" not in capsys.readouterr().err
