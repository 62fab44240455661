"""The notebooks: stored without outputs, and executed as they stand."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
SHOWN = {"more_ranks": "efficient at 1024 ranks", "scalability_bug": "1 violated"}
"""What a notebook has to print."""


def cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_without_outputs(path: Path) -> None:
    assert len(cells(path)) >= 3
    for cell in cells(path):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        ast.parse("".join(cell["source"]))
    assert path.name in (ROOT / "docs" / "gallery.md").read_text()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    # The kernel is another process; it imports the package that is tested.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT.parent), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs), "a plot appears"
    assert any("text/html" in output.get("data", {}) for output in outputs), "a table appears"
    said = " ".join(" ".join(output.get("text", "") for output in outputs).split())
    assert SHOWN.get(path.stem, "") in said
