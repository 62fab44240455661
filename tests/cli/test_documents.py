"""Documents are current: verbs as the parsers have them, links that lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from ranksight.platforms import names

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").rglob("*.md")])


def test_verbs_and_machines_are_those_of_the_package() -> None:
    spec = importlib.util.spec_from_file_location("generate_documents", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "verbs.md").read_text() == module.text(), "run python docs/generate.py"
    listed = (ROOT / "docs" / "platforms.md").read_text()
    assert listed == module.platforms(), "run python docs/generate.py"
    assert all(f"| `{name}` |" in listed for name in names())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (document.parent / target).exists(), target


def test_the_reader_of_the_document_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ranksight.cli.main import main
    from ranksight.experiment import read
    from ranksight.reading import READERS

    code = re.search(r"## A reader\n```python\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(), re.DOTALL)
    assert code is not None
    assert "callgrind" in READERS  # filled, so that what is added can be taken away again
    monkeypatch.setattr(READERS, "_items", dict(READERS._items))
    exec(compile(code[1], "extending.md", "exec"), {"__name__": "mytool"})
    (tmp_path / "a.txt").write_text("# mytool 1\nsolve, 2.5\nhalo,0.5\n")
    assert main(["import", str(tmp_path / "a.txt"), "--set", "ranks=4", "-o", str(tmp_path / "e")]) == 0
    assert set(read(tmp_path / "e").counters()["time"]) == {2.5, 0.5}
    (tmp_path / "b.txt").write_text("# mytool 1\nsolve, fast\n")
    assert main(["import", "mytool", str(tmp_path / "b.txt"), "--set", "ranks=4", "-o", str(tmp_path / "f")]) == 1
