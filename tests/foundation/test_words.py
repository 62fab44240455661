"""Documents, docstrings and messages keep to the words and sentences of the field."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORDS = re.compile(
    r"\b(?:foretell?s?|foretold|untold|told|tells?|carried by|not carried|carries an answer|beside|alike|unrest|stray|"
    r"dear ones|no truth|is no (?:number|truth|JSON|model|table|file)|what (?:nothing|runs|stands|was refused)|"
    r"whole or not at all|scales as well as it can|no trouble is named|nothing grows|no one waits|ranks are even)\b",
    re.IGNORECASE,
)
"""Words that a reader of the field's tools has to learn, and sentences without a subject and a number."""
LONGEST = 35
"""Words of a sentence of a document."""
FENCE = re.compile(r"^(?:```|    |\||<)")


def files(*endings: str) -> list[Path]:
    """Files of the tree with these endings, without tests and benchmarks."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("the tree is not a git repository")
    apart = ("tests/", "benchmarks/", "CHANGELOG.md")
    paths = [line for line in listed.stdout.splitlines() if line.endswith(endings) and not line.startswith(apart)]
    return [ROOT / path for path in paths if (ROOT / path).is_file()]


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings and messages of a module, each with its line: texts with a blank, as no name has."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """Running text of a document with its line: no code, no tables, no headings."""
    held: list[str] = []
    start, fenced = 0, False
    for number, line in enumerate([*page.splitlines(), ""], 1):
        fenced ^= line.startswith("```")
        apart = fenced or FENCE.match(line) or line.lstrip().startswith("|") or not line.strip() or line.startswith("#")
        if held and (apart or re.match(r"\s*(?:[-*]|\d+\.) ", line)):
            yield start, " ".join(held)
            held = []
        if not apart:
            start = start if held else number
            held.append(line.strip())


def sentences(text: str) -> list[str]:
    """Sentences of running text; codes and links count as one word each."""
    plain = re.sub(r"`[^`]*`|\[([^\]]*)\]\([^)]*\)", lambda found: found[1] or "code", text)
    return re.split(r"(?<=[.?!:;])\s+|\s·\s", plain)


@pytest.mark.parametrize("path", files(".md"), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_uses_the_words_of_the_field(path: Path) -> None:
    page = path.read_text()
    hits = [f"{number}: {line}" for number, line in enumerate(page.splitlines(), 1) if WORDS.search(line)]
    assert not hits
    long = [
        f"{number}: {len(sentence.split())} words: {sentence[:60]}"
        for number, text in paragraphs(page)
        for sentence in sentences(text)
        if len(sentence.split()) > LONGEST
    ]
    assert not long


def test_docstrings_and_messages_use_the_words_of_the_field() -> None:
    hits = [
        f"{path.relative_to(ROOT)}:{line}: {found[0]}"
        for path in files(".py")
        for line, text in texts(path)
        if (found := WORDS.search(text))
    ]
    assert not hits


def test_help_and_pages_use_the_words_of_the_field() -> None:
    hits = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files(".toml", ".html")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if WORDS.search(line)
    ]
    assert not hits


@pytest.mark.parametrize(
    ("text", "bad"),
    [("no one waits in turn", True), ("Efficiency 96 % at 1,024 ranks", False), ("the runs tell nothing", True)],
)
def test_the_check_finds_what_it_looks_for(text: str, bad: bool) -> None:
    assert bool(WORDS.search(text)) == bad


def test_sentences_are_counted_without_code() -> None:
    page = (
        "# head\n\nOne `a b c` [two words](x.md). Then\nmore.\n\n    code here\n\n| a | b |\n- item one\n- item two\n"
    )
    found = [sentence for _, text in paragraphs(page) for sentence in sentences(text)]
    assert found == ["One code two words.", "Then more.", "- item one", "- item two"]
