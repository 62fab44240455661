"""Imports run one way, as CONTRIBUTING.md says, and in no circles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {"tests", "benchmarks", "docs", "examples", "build"}
MODEL = ["series", "search", "spaces", "uncertainty", "fitting", "structure", "resource", "messages", "sharing", "kernel_time",
         "application", "phases", "diagnosis", "expectations", "planning", "comparison"]  # fmt: skip
SHARED = {"formula", "plaindata", "priors", "questions"}
"""Files of `model` that all of its folders may need; the others put these together."""


def _files() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] not in OUTSIDE and not any(part.startswith(".") for part in parts):
            found[".".join(("ranksight", *(part for part in parts if part != "__init__")))] = path
    return found


FILES = _files()


def _imports(tree: ast.AST, lazily: bool) -> Iterator[str]:
    """Modules of ours that are imported when a module is loaded, with `lazily` those in functions, too; no types."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not lazily:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ranksight"):
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                yield whole if whole in FILES else str(node.module)
        yield from _imports(node, lazily)


def _layer(module: str) -> float:
    """Height above the files in the root."""
    parts = module.split(".")[1:]
    if not parts or parts == ["__main__"]:
        return 9 if parts else 0
    if parts[0] == "model" and len(parts) > 1:
        inside = (1 + MODEL.index(parts[1])) / 100 if parts[1] in MODEL else 0 if parts[1] in SHARED else None
        # What puts a model together stands on all but what asks it.
        return 2 + (MODEL.index("diagnosis") + 1.5) / 100 if inside is None else 2 + inside
    return {"platforms": 1, "comm": 1, "counters": 1, "scheduling": 1, "reports": 3, "cli": 4}.get(parts[0], 0)


@pytest.mark.parametrize("module", sorted(FILES))
def test_nothing_needs_what_stands_above_it(module: str) -> None:
    needed = set(_imports(ast.parse(FILES[module].read_text()), lazily=True))
    above = {other for other in needed if _layer(other) > _layer(module)}
    assert not above
    for side, other in (("counters", "comm"), ("comm", "counters")):
        if module.startswith(f"ranksight.{side}."):
            assert not [name for name in needed if name.startswith(f"ranksight.{other}")]


def test_loading_goes_in_no_circle() -> None:
    needs = {module: set(_imports(ast.parse(path.read_text()), lazily=False)) for module, path in FILES.items()}
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join((*way[way.index(module) :], module))
        if module not in done:
            for other in needs.get(module, ()):
                if other != module:
                    visit(other, (*way, module))
            done.add(module)

    for module in FILES:
        visit(module, ())
