"""Documents are current: verbs as the parsers have them, links that lead somewhere."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from ranksight.cli._project import completed
from ranksight.cli.main import VERBS, _module, verb_parser
from ranksight.core.errors import UsageError
from ranksight.core.registry import Registry
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
    assert (ROOT / "docs" / "ranksight.1").read_text() == module.manual(), "run python docs/generate.py"
    listed = (ROOT / "docs" / "platforms.md").read_text()
    assert listed == module.platforms(), "run python docs/generate.py"
    assert all(f"| `{name}` |" in listed for name in names())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (document.parent / target).exists(), target


def test_files_that_the_architecture_names_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", text)
    assert len(named) > 15
    assert not [name for name in named if not (ROOT / name).exists()]


def _typed(document: Path) -> list[str]:
    """The command lines that a document shows to be typed, without those that stand for several or are cut off."""
    text = re.sub(r"\\\n\s*", " ", document.read_text())
    lines = re.findall(r"^[ $-]*(?:run: )?(?:next: )?(ranksight [a-z].*)$", text, re.MULTILINE)
    return [line for line in lines if not re.search(r"\.\.\.|\[[A-Z-]", line) and line.split()[1] in VERBS]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_command_lines_have_options_that_exist(document: Path, tmp_path: Path) -> None:
    # A page that shows a project file shows the command that goes with it.
    project = tmp_path / "ranksight.toml"
    if (shown := re.search(r"```toml\n(command = .*?)```", document.read_text(), re.DOTALL)) is not None:
        project.write_text(shown[1])
    for line in _typed(document):
        words = shlex.split(re.split(r" (?:\|\||&&|\||;) ", line)[0], comments=True)[1:]
        parser, module = verb_parser(words[0]), _module(words[0])
        words[1:] = completed(words[0], words[1:], parser, project)
        parse = getattr(module, "parse", None)
        try:
            chosen = parser.parse_args(words[1:]) if parse is None else parse(parser, words[1:])
        except UsageError as error:
            pytest.fail(f"{line}: {error}")
        assert chosen is not None


def test_the_lines_of_the_tour_are_looked_at() -> None:
    assert len(_typed(ROOT / "docs" / "tour.md")) > 8


def test_what_can_be_added_stands_where_the_document_says() -> None:
    rows = re.findall(
        r"^\| [^|]+ \| `([\w.]+)` \| `([\w.]+)` \| `([\w.]+)` \|$", (ROOT / "docs/extending.md").read_text(), re.M
    )
    assert len(rows) > 5
    for protocol, registry, group in rows:
        module, name = protocol.rsplit(".", 1)
        assert hasattr(importlib.import_module(f"ranksight.{module}"), name), protocol
        place = module if "." not in registry else registry.rsplit(".", 1)[0]
        found = getattr(importlib.import_module(f"ranksight.{place}"), registry.rsplit(".", 1)[-1])
        assert isinstance(found, Registry)
        assert found._group == group


def test_the_reader_of_the_document_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ranksight.cli.main import main
    from ranksight.core.experiment import read
    from ranksight.core.reading import READERS

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


def _document_code(heading: str) -> str:
    text = (ROOT / "docs" / "extending.md").read_text()
    found = re.search(rf"## {heading}\n.*?```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_search_space_of_the_document_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ranksight.cli.main import main
    from ranksight.model.spaces import SPACES

    assert "default" in SPACES
    monkeypatch.setattr(SPACES, "_items", dict(SPACES._items))
    exec(compile(_document_code("A search space"), "extending.md", "exec"), {"__name__": "mine"})
    rows = "".join(f"{x},{3 * x + 5 * x ** (2 / 3) + 7}\n" for x in (1, 8, 27, 64, 125, 216))
    (tmp_path / "t.csv").write_text("ranks,time\n" + rows)
    words = ["csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--metric", "time", "-o", str(tmp_path / "e")]
    assert main(["import", *words, "--quiet"]) == 0
    assert main(["fit", str(tmp_path / "e"), "--space", "surfaces", "-o", str(tmp_path / "m"), "--quiet"]) == 0
    from ranksight.model.fitted_model import Model

    answer = Model.load(tmp_path / "m").predict(ranks=1000).table()
    assert answer["value"].iloc[0] == pytest.approx(3 * 1000 + 5 * 100 + 7, rel=1e-6)


def test_the_collective_of_the_document_works(monkeypatch: pytest.MonkeyPatch) -> None:
    from ranksight.comm.costs.collective import COLLECTIVES, collective
    from ranksight.comm.costs.fabric import Fabric
    from ranksight.comm.network import NetworkParameters

    assert "scan/linear" in COLLECTIVES
    monkeypatch.setattr(COLLECTIVES, "_items", dict(COLLECTIVES._items))
    exec(compile(_document_code("A collective's algorithm"), "extending.md", "exec"), {"__name__": "mine"})
    fabric = Fabric(NetworkParameters.linear(1e-6, 1e-9), NetworkParameters.linear(1e-6, 1e-9), 1)
    found = collective("bcast", "flat")([1, 2, 9], 1000.0, fabric)
    assert found[0] == 0
    assert found[2] == pytest.approx(8 * found[1])
    assert found[1] > 1000 * 1e-9
