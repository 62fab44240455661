"""Mutants that a tool draws: 200 places in the statistics, one change at each, against the tests of the file.

Operators are those of cosmic-ray. A place is drawn by the hash of its line's text, so that a change of one file leaves
the draw of the others as it is. Left out is what no answer depends on: docstrings and other texts, type annotations,
decorators, and imports. A mutant that changes no answer is equivalent: it is listed, with its reason, in
``equivalent_mutants.toml``.
"""

from __future__ import annotations

import ast
import hashlib
import queue
import re
import shutil
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutants import LEFT_OUT, passes
from benchmarks.settings import ROOT, Settings, Skipped
from benchmarks.table import markdown

try:  # of the extra "dev"
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator, operator_names
except ImportError:
    operator_names = None

TITLE = "Mutants drawn by a tool"
GOAL = 0.9
"""Share of the mutants that are not equivalent that tests have to catch."""
COUNT, SEED = 200, "statistics"
JOBS = 2
"""Mutants at once."""
IMPOSSIBLE = re.compile(
    "RemoveDecorator|USub_Not|(Add|Sub|Mul|Div|Mod|Pow|Shift)_(.Shift|Bit)|Bit.*_(Add|Sub|Mul|.*Div|Mod|Pow|.Shift)$"
    "|(Eq|Lt|LtE|Gt|GtE)_Is"
)
"""Operators whose mutants any test catches, as neither floats nor arrays of booleans have them; and what is no change
of an answer, as numbers have no identity."""
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")

CLOSED = "tests/formulas/test_statistics.py tests/formulas/test_sums_and_mixtures.py"
LAWS = (
    "tests/laws/test_together.py tests/laws/test_stacking.py tests/formulas/test_sums_and_mixtures.py "
    "tests/formulas/test_uneven_ranks.py tests/laws/test_going_on.py tests/laws/test_kit_of_laws.py "
    "tests/laws/test_outside_laws.py tests/kernel_time/test_known_laws.py tests/kernel_time/test_fitted_equation.py"
)
PROCESS = (
    f"tests/process/test_table_and_file.py tests/process/test_turn.py {CLOSED} tests/process/test_centre.py "
    "tests/process/test_several.py tests/process/test_process.py"
)
PROGRAM = (
    "tests/model/test_program_time.py tests/model/test_equation_parts.py "
    "tests/kernel_time/test_clock_of_uneven_ranks.py tests/model/test_whole.py"
)
TESTS = {
    "model/quantity.py": f"{CLOSED} tests/model/test_quantity.py",
    **{f"model/laws/{path.name}": LAWS for path in sorted((ROOT / "model/laws").glob("*.py"))},
    "model/application/program_time.py": PROGRAM,
    "model/application/bulk_synchronous.py": PROGRAM,
    "model/application/whole.py": f"{CLOSED} tests/model/test_whole.py",
    "model/application/breakdown.py": PROGRAM,
    "model/application/imbalances.py": "tests/formulas/test_uneven_ranks.py tests/model/test_imbalances.py",
    "model/application/others.py": f"tests/model/test_sometimes.py tests/process/test_table_and_file.py {CLOSED} "
    "tests/kernel_time/test_others.py",
    "model/application/comm_blocking.py": f"{CLOSED} tests/formulas/test_uneven_ranks.py "
    "tests/model/test_blocking_forms.py tests/model/test_blocking.py",
    "model/process/posterior.py": PROCESS,
    "model/process/covariance.py": PROCESS,
    "model/process/compare.py": PROCESS,
    "model/process/prevalence.py": PROCESS,
}
"""The files of the statistics, and the tests of each, the fast ones first."""


Name = tuple[str, str, str]
"""File, line and changed line of a mutant."""


@dataclass(frozen=True)
class Drawn:
    """One change of one line of a file."""

    file: str
    number: int
    line: str
    changed: str
    operator: str
    source: str  # of the whole file, with the change

    @property
    def name(self) -> Name:
        """What it is called in the list of equivalent ones, wherever the line is in its file."""
        return self.file, self.line, self.changed


def run(settings: Settings) -> str:
    """Table of the mutants by file; with `settings.quick` of every tenth."""
    if operator_names is None:
        raise Skipped("cosmic-ray is not installed: pip install 'ranksight[dev]'")
    chosen = drawn()[:: 10 if settings.quick else 1]
    reasons = equivalent()
    with tempfile.TemporaryDirectory(prefix="ranksight-mutants-") as place:
        caught = caught_of([mutant for mutant in chosen if mutant.name not in reasons], Path(place))
    return shown(chosen, caught, reasons)


def drawn() -> list[Drawn]:
    """The mutants: one at each of :data:`COUNT` places."""
    first: dict[tuple[str, int, int], tuple[str, tuple[str, str, int]]] = {}
    for file in TESTS:
        for start, order, operator, occurrence in _changes(file):
            place, change = (file, *start), (order, (file, operator, occurrence))
            first[place] = min(first.get(place, change), change)
    chosen: dict[Name, Drawn] = {}
    for _, change in sorted(first.values()):
        mutant = _drawn(*change)
        if mutant is not None:
            chosen.setdefault(mutant.name, mutant)
        if len(chosen) == COUNT:
            break
    return list(chosen.values())


def _changes(file: str) -> Iterator[tuple[tuple[int, int], str, str, int]]:
    """All changes of a file: place, what orders them at random, operator and which of its changes it is."""
    source = (ROOT / file).read_text(encoding="utf-8")
    lines, idle = source.splitlines(), _idle(source)
    nodes = list(ast_nodes(get_ast(source)))
    for name in operator_names():
        if IMPOSSIBLE.search(name) or get_operator(name).arguments():
            continue
        spans = [span for node in nodes for span in get_operator(name)().mutation_positions(node)]
        for occurrence, (start, _) in enumerate(spans):
            if any(begin <= start < end for begin, end in idle):
                continue
            text = lines[start[0] - 1]
            again = sum(span[0] == start for span in spans[:occurrence])
            key = SEED, file, text.strip(), start[1] - len(text) + len(text.lstrip()), name, again
            yield start, hashlib.sha256(repr(key).encode()).hexdigest(), name, occurrence


def _idle(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Spans of a source that no answer depends on: annotations, and texts for people."""
    nodes: list[ast.AST | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            nodes += [node] if node.name in ("__repr__", "__str__") else [node.returns]
        elif isinstance(node, ast.arg | ast.AnnAssign):
            nodes.append(node.annotation)
        elif isinstance(node, ast.JoinedStr | ast.Raise):
            nodes.append(node)
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        for node in nodes
        if isinstance(node, ast.stmt | ast.expr)
    ]


def _drawn(file: str, operator: str, occurrence: int) -> Drawn | None:
    """The change; None where the language does not allow it."""
    source = (ROOT / file).read_text(encoding="utf-8")
    changed = mutate_code(source, get_operator(operator)(), occurrence)
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    before, after = source.splitlines(), changed.splitlines()
    line = next(at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new)
    return Drawn(file, line + 1, before[line].strip(), after[line].strip(), operator.removeprefix("core/"), changed)


def equivalent() -> dict[Name, str]:
    """Why mutants are equivalent, by their names."""
    listed = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutant"]
    return {(one["file"], one["line"], one["changed"]): one["reason"] for one in listed}


def caught_of(mutants: Sequence[Drawn], place: Path) -> dict[Name, bool]:
    """Whether the tests of its file fail on each mutant, two at a time."""
    trees: queue.SimpleQueue[Path] = queue.SimpleQueue()
    every = " ".join(sorted({test for mutant in mutants for test in TESTS[mutant.file].split()}))
    for at in range(JOBS):
        tree = place / str(at) / "ranksight"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
        trees.put(tree)
    if not passes(tree, every):
        raise SystemExit(f"mutants: the tests fail without a mutant, too: {every}")

    def caught(mutant: Drawn) -> bool:
        tree = trees.get()
        path = tree / mutant.file
        before = path.read_text(encoding="utf-8")
        path.write_text(mutant.source, encoding="utf-8")
        try:
            return not passes(tree, TESTS[mutant.file])
        finally:
            path.write_text(before, encoding="utf-8")
            trees.put(tree)

    with ThreadPoolExecutor(JOBS) as pool:
        return dict(zip([mutant.name for mutant in mutants], pool.map(caught, mutants), strict=True))


def shown(chosen: Sequence[Drawn], caught: Mapping[Name, bool], reasons: Mapping[Name, str]) -> str:
    """The tables: by file, of those that survived, and of the equivalent ones."""
    names = ("caught", "survived", "equivalent")
    ordered = sorted(chosen, key=lambda mutant: (mutant.file, mutant.number))
    state = {each: names[2] if each.name in reasons else names[not caught[each.name]] for each in ordered}
    count, total = Counter((each.file, state[each]) for each in ordered), Counter(state.values())
    files = [[file, *(count[file, name] for name in names)] for file in dict.fromkeys(each.file for each in ordered)]
    survived, equal = (
        [
            [each.file, code(each.line), code(each.changed), each.operator, reasons.get(each.name, "")]
            for each in ordered
            if state[each] == name
        ]
        for name in names[1:]
    )
    real = total["caught"] + total["survived"]
    heads = ["file", "line", "mutant", "operator", "why"]
    parts = [
        f"{total['caught']} of {real} mutants that are not equivalent are caught "
        f"({total['caught'] / max(1, real):.0%}, goal {GOAL:.0%}), "
        f"of {len(chosen)} that operators of cosmic-ray make at places drawn with a fixed seed.",
        markdown(["file", *names], files),
        "Not caught:",
        markdown(heads[:-1], [row[:-1] for row in survived]),
        "Equivalent, as they change no answer:",
        markdown(heads, equal),
    ]
    return "\n\n".join(parts)


def code(text: str) -> str:
    """A line of a program in a cell of a table."""
    return "`" + text.replace("|", "\\|") + "`"
