"""The documentation site: every page is in its menu, links are turned to pages of the site, and it builds."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_of_documents", ROOT / "docs" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_the_menu(site: ModuleType) -> None:
    menu = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "docs" / "mkdocs.yml").read_text(), re.MULTILINE))
    assert menu == {place for place in site.pages() if place.endswith(".md")} | {"api.md"}


def test_links_lead_to_pages_of_the_site(site: ModuleType) -> None:
    found = site.pages()
    places = {path.resolve(): place for place, path in found.items()}
    seen = 0
    for place, path in found.items():
        if path.suffix != ".md":
            continue
        text = re.sub(r"```.*?```|`[^`\n]*`", "", site.turned(path.read_text(), path, place, places), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s#]+)", text):
            if not re.match(r"[a-z]+:", target):
                assert os.path.normpath(os.path.join(os.path.dirname(place), target)) in found, (place, target)
                seen += 1
    assert seen > 50


def test_links_are_turned(site: ModuleType) -> None:
    readme, plan = ROOT / "README.md", ROOT / "docs" / "plan.md"
    places = {readme: "index.md", plan: "plan.md"}
    text = "[a](docs/plan.md#what) [b](LICENSE) `[c](docs/plan.md)` [d](https://x.org) [`e`](docs/plan.md)"
    assert (
        site.turned(text, readme, "index.md", places)
        == "[a](plan.md#what) b `[c](docs/plan.md)` [d](https://x.org) [`e`](plan.md)"
    )
    assert site.turned("[r](../README.md)", plan, "ci/plan.md", places) == "[r](../index.md)"


def test_the_api_page_has_every_name_and_its_docstring(site: ModuleType) -> None:
    import ranksight

    text = site.api()
    for name in ranksight.__all__:
        assert name.startswith("_") or f"## rs.{name}\n" in text
    assert "### rs.Model.predict\n" in text
    assert "InputError" in text


@pytest.mark.slow
def test_the_site_builds_without_a_warning() -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    done = subprocess.run([sys.executable, str(ROOT / "docs" / "site.py")], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert (ROOT / "build" / "site" / "index.html").is_file()
