"""Build the documentation site: ``python docs/site.py`` writes build/site; warnings are errors.

The pages are those of docs/, README.md as the start page, the measured results, the changes and how to contribute, with
their links turned to each other, and a page of the Python API from its docstrings. Links to other files of the
repository become their names, as the site holds no sources.
"""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "build" / "site-source"
PAGES = {
    "README.md": "index.md",
    "benchmarks/RESULTS.md": "results.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Pages from outside of docs/, and their place in the site."""
LINK = re.compile(
    r"(?P<block>```.*?```)"
    r"|(?P<text>!?\[(?:`[^`\n]*`|[^\]`])*\])\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)"
    r"|(?P<code>`[^`\n]*`)",
    re.DOTALL,
)
"""A link, or code in which none is looked for."""


def pages() -> dict[str, Path]:
    """The files of the site by their place in it."""
    found = {str(path.relative_to(ROOT / "docs")): path for path in (ROOT / "docs").rglob("*.md")}
    found |= {place: ROOT / name for name, place in PAGES.items() if (ROOT / name).is_file()}
    pictures = {f"images/{path.name}": path for path in (ROOT / "docs" / "images").glob("*.*")}
    return found | pictures


def turned(text: str, path: Path, place: str, places: dict[Path, str]) -> str:
    """A page with its links as the site has them; `places` names the place of every file of the site."""

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if found["text"] is None or not target or re.match(r"[a-z]+:", target):
            return found[0]
        there = places.get((path.parent / target).resolve())
        if there is None:
            return found["text"][1:-1]
        depth = len(PurePosixPath(place).parent.parts)
        return f"{found['text']}({'../' * depth}{there}{found['anchor'] or ''})"

    return LINK.sub(link, text)


def api() -> str:
    """The Python API: what ``import ranksight`` offers and the public methods of what it returns, with docstrings."""
    import ranksight
    from ranksight.analysis.diagnosis.diagnosing import Diagnosis
    from ranksight.model.fitted_model import OFFERED
    from ranksight.model.prediction import Prediction

    lines = ["# Python API", "", "`import ranksight as rs`; see [In Python and notebooks](python.md) for examples.", ""]
    offered = [(f"rs.{name}", getattr(ranksight, name)) for name in ranksight.__all__ if not name.startswith("_")]
    for name, thing in [*offered, ("Prediction", Prediction), ("Diagnosis", Diagnosis)]:
        lines += _described(f"## {name}", thing)
        if inspect.isclass(thing):
            for each, member in inspect.getmembers(thing):
                public = each in OFFERED if thing is ranksight.Model else not each.startswith("_")
                if public and (inspect.isfunction(member) or inspect.ismethod(member)):
                    lines += _described(f"### {name}.{each}", member)
    return "\n".join(lines) + "\n"


def _described(heading: str, thing: object) -> list[str]:
    try:
        signature = str(inspect.signature(thing)) if callable(thing) else ""  # type: ignore[arg-type]
    except ValueError:
        signature = ""
    name = heading.lstrip("# ").rpartition(".")[2]
    return [heading, "", "```text", f"{name}{signature}", "", inspect.getdoc(thing) or "", "```", ""]


def build() -> int:
    """Gather the pages and build the site; the exit code of mkdocs."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    found = pages()
    places = {path.resolve(): place for place, path in found.items()}
    for place, path in found.items():
        (SOURCE / place).parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            (SOURCE / place).write_text(turned(path.read_text(encoding="utf-8"), path, place, places), encoding="utf-8")
        else:
            shutil.copyfile(path, SOURCE / place)
    (SOURCE / "api.md").write_text(api(), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "docs/mkdocs.yml"]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(build())
