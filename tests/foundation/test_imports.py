"""Imports run one way, as docs/architecture.md says, and in no circles, those of functions and of types counted too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {"tests", "benchmarks", "docs", "examples", "build", "noxfile"}
ROOMS = {"core": 0, "campaign": 1, "platforms": 2, "comm": 2, "counters": 2, "model": 3, "analysis": 4, "reports": 5, "cli": 6,
         "examples": 0}  # fmt: skip
MODEL = ["series", "search", "spaces", "uncertainty", "process", "fitting", "structure", "resource", "messages", "sharing",
         "kernel_time", "laws", "application"]  # fmt: skip
ANALYSIS = ["phases", "diagnosis", "expectations", "planning", "comparison", "history"]
SHARED = {"formula", "plaindata", "priors", "quantity"}
"""Files of `model` that all of its folders may need; the others put these together."""
TOGETHER = ("machine", "stages", "fit")
"""What needs a model that predicts."""
UPWARDS = {
    ("model.fitted_model", "analysis.diagnosis.diagnosing"),
    ("", "cli._python"),
    ("", "core.experiment"),
    ("", "model.fit"),
    ("", "model.fitted_model"),
    ("", "reports.exporting"),
    ("", "counters.frames"),
    ("", "reports.validation"),
    ("", "reports.widget"),
}
"""``Model.diagnose`` is asked by users who hold a model; what it returns is made in the room above. The package itself
names what it offers, for type checkers."""
IN_FUNCTIONS = {
    # A collector is known before a run starts; its readers load pandas after it.
    "comm.collectors.pmpi": {"comm.readers.pmpi_traces", "comm.tracer.gathering"},
    "core.experiment": {"core.tables"},
    "core.runtables": {"core.tables"},
    # Few imports write tables a second time.
    "campaign.importing": {"core.tables"},
    # Waiting and exchanges are of messages, phases of event traces: many experiments hold neither.
    "analysis.observed": {
        "analysis.diagnosis.exchanges",
        "analysis.diagnosis.machine_observed",
        "analysis.diagnosis.waits",
        "analysis.phases.analysis",
    },
    # What a model answers is loaded when it is asked.
    "model.fitted_model": {"analysis.diagnosis.diagnosing", "model.prediction"},
    # Messages are priced and replayed where some were traced.
    "model.application.fit_application": {"model.messages.fit_messages"},
    "model.application.program_time": {"model.application.replayed"},
    "model.stages.learning": {"model.stages.pricing"},
    "model.fitting.fit_series": {"model.fitting.parallel"},
}  # fmt: skip
"""Imports within functions, by file; those of `cli` are not listed, as a verb loads what it needs when it runs."""
ROUND = {
    # Names that the package offers; loaded when they are asked for.
    "": {
        "cli._python",
        "core.experiment",
        "counters.frames",
        "model.fit",
        "model.fitted_model",
        "reports.exporting",
        "reports.validation",
        "reports.widget",
    },
    "model.series.sampling": {"model.series.reducing"},
    # What a law is given and asked knows the laws.
    "model.laws.law": {"model.laws.view"},
    "model.series.computation": {"model.series.reducing"},
    "model.fitting.columns": {"model.fitting.fitted"},
    "model.fitting.abstaining": {"model.fitting.fitted"},
    "analysis.diagnosis.causes": {"analysis.diagnosis.evidence"},
    "analysis.diagnosis.few": {"analysis.diagnosis.evidence"},
    "analysis.diagnosis.balance": {"analysis.diagnosis.evidence"},
}
"""Imports of types only that would close a circle."""


def _files() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] not in OUTSIDE and not any(part.startswith(".") for part in parts):
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


FILES = _files()


def _imports(tree: ast.AST, inside: str = "loading") -> Iterator[tuple[str, str]]:
    """Modules of ours that a file imports, each with when: on ``loading``, in a ``function``, or for ``types``."""
    for node in ast.iter_child_nodes(tree):
        within = inside
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            within = "types"
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            within = "function"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ranksight"):
            module = str(node.module).removeprefix("ranksight").removeprefix(".")
            for name in node.names:
                whole = f"{module}.{name.name}".removeprefix(".")
                yield (whole if whole in FILES else module), within
        yield from _imports(node, within)


NEEDS = {module: set(_imports(ast.parse(path.read_text()))) for module, path in FILES.items()}


def _height(module: str) -> float:
    """Height above `core`; the root's own two files stand above and below all."""
    parts = module.split(".")
    if parts[0] not in ROOMS:
        return {"": -1, "__main__": 9}[module]
    if parts[:2] == ["core", "testing"]:
        return ROOMS["model"] + 0.9  # the kits check what is registered in the rooms above
    if parts[0] == "model" and len(parts) > 1:
        # What puts a model together stands on all of its folders.
        order = {name: 1 + at for at, name in enumerate(MODEL)} | dict.fromkeys(SHARED, 0)
        last = {name: len(MODEL) + 2 + at for at, name in enumerate(TOGETHER)}
        return ROOMS["model"] + (order | last).get(parts[1], len(MODEL) + 1) / 100
    if parts[0] == "analysis" and len(parts) > 1:
        return ROOMS["analysis"] + (ANALYSIS.index(parts[1]) if parts[1] in ANALYSIS else len(ANALYSIS)) / 100
    return ROOMS[parts[0]]


@pytest.mark.parametrize("module", sorted(FILES))
def test_no_file_imports_from_a_room_above(module: str) -> None:
    needed = {other for other, _ in NEEDS[module]}
    assert not {other for other in needed if _height(other) > _height(module)} - {o for m, o in UPWARDS if m == module}
    for side, other in (("counters", "comm"), ("comm", "counters")):
        if module.startswith(f"{side}."):
            assert not [name for name in needed if name.split(".")[0] == other]


def test_imports_within_functions_are_those_listed() -> None:
    for module, needed in NEEDS.items():
        if module.split(".")[0] not in ("cli", "__main__"):
            assert {other for other, when in needed if when == "function"} <= IN_FUNCTIONS.get(module, set()), module


def test_imports_go_in_no_circle() -> None:
    needs = {
        module: {other for other, _ in needed} - ROUND.get(module, set()) - IN_FUNCTIONS.get(module, set()) - {module}
        for module, needed in NEEDS.items()
    }
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join((*way[way.index(module) :], module))
        if module not in done:
            for other in sorted(needs.get(module, ())):
                visit(other, (*way, module))
            done.add(module)

    for module in sorted(FILES):
        visit(module, ())


def test_the_root_holds_rooms_only() -> None:
    # nox looks for its file in the root; distributions leave it out (MANIFEST.in).
    assert {path.name for path in ROOT.glob("*.py")} == {"__init__.py", "__main__.py", "noxfile.py"}
    assert {name.split(".")[0] for name in FILES} - {"", "__main__"} == set(ROOMS) - {"examples"}


def test_no_name_is_given_twice_within_a_room() -> None:
    seen: dict[tuple[str, str], str] = {}
    for module, path in FILES.items():
        *folders, name = module.split(".")
        if folders and path.name != "__init__.py":
            assert name != folders[-1], f"{module} repeats its folder"
            assert seen.setdefault((folders[0], name), module) == module, f"{module} and {seen[folders[0], name]}"
