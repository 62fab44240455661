"""Content that went wrong, or that somebody made wrong, by what it consists of.

JSON, XML, TOML, tables, archives, packed files, arrays and Parquet are changed in their own terms, so that what is
wrong lies behind the parser; all of them, and texts and binary files, by tokens, lines, integers and bytes, too.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.hostile import packed
from benchmarks.hostile.packed import LARGEST, Dice, Way

TOKEN = re.compile(rb"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[A-Za-z_]+|[^\n]|\n")
NUMBER = re.compile(rb"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
NUMBERS = (b"-1", b"0", b"1.5", b"1e300", b"-1e300", b"nan", b"inf", b"1e999", b"4294967296", b"18446744073709551616",
           b"9" * 30, b"9" * 5000, b"\xc2\xb2", b"0x7fffffff", b"", b"1_000", b"1e-320", b"-0.0")  # fmt: skip
NASTY = (b"\x00", b"\xff", b"\xe2\x80\xae", b"\x1b[31m", b'"', b",", b"\n", b"{", b"[" * 3000, b"<a>" * 3000,
         b"../../etc", b"null", b"true", b"\\", b"%s", b"|", b"(" * 500, b" " * 20_000, b"a-" * 10_000,
         b"=HYPERLINK(1)", b"<script>alert(1)</script>", b"9**9**9", b"\xed\xa0\x80", b"\xef\xbb\xbf",
         b"\r")  # fmt: skip
INTEGERS = (0, 1, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 0.5, 1e300, float("nan"), float("inf"), 2**64, 10**400, "", "\u202e", "nan", "\x00", "\ud800",
    "../../etc/passwd", "9**9**9", "a" * 50_000, [], {}, [[[[]]]], {"": {}}, [1, "a", None], [0] * 5000,
)  # fmt: skip
DEPTH = 3000
"""Levels of what is nested without end: more than Python's own recursion takes."""


def mutated(content: bytes, dice: Dice) -> bytes:
    """`content` with one to three of the things that go wrong; the same for the same state of the dice."""
    for _ in range(dice.choice((1, 1, 2, 3))):
        ways = [way for accepts, way in GRAMMARS if accepts(content)]
        way = dice.choice(ways) if ways and dice.random() < 0.6 else _tokens if _is_text(content) else _bytes
        try:
            content = way(content, dice)
        except Exception:  # an earlier change left nothing of the grammar, and its parser says so in its own way
            content = _bytes(content, dice)
        content = content[:LARGEST]
    return content


# ---- bytes and words ------------------------------------------------------------------------------------------------


def _is_text(content: bytes) -> bool:
    return b"\x00" not in content[:1000]


def _bytes(content: bytes, dice: Dice) -> bytes:
    at = dice.randrange(len(content) + 1)
    way = dice.randrange(4)
    if way == 0:
        return content[:at] + bytes([dice.randrange(256)]) + content[at + 1 :]
    if way == 1:
        end = min(len(content), at + dice.randint(1, 64))
        return content[:at] + content[at:end] * dice.choice((0, 2, 50)) + content[end:]
    if way == 2:
        return content[:at]
    size = dice.choice((1, 2, 4, 8))
    at -= at % size if dice.random() < 0.5 else 0
    value = dice.choice(INTEGERS) & ((1 << 8 * size) - 1)
    return content[:at] + value.to_bytes(size, dice.choice(("little", "big"))) + content[at + size :]


def _tokens(content: bytes, dice: Dice) -> bytes:
    way = dice.randrange(6)
    if way < 3:
        found = list((NUMBER if way < 2 else TOKEN).finditer(content))
        if not found:
            return _bytes(content, dice)
        one = dice.choice(found)
        new = dice.choice(NUMBERS) if way < 2 else dice.choice((*NASTY, dice.choice(found)[0]))
        return content[: one.start()] + new + content[one.end() :]
    if way == 3:
        return _bytes(content, dice)
    lines = content.splitlines(keepends=True) or [b""]
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[at] = lines[other] if way == 4 else lines[at] * dice.choice((0, 3, 300))
    return b"".join(lines)


# ---- JSON -----------------------------------------------------------------------------------------------------------


def _is_json(content: bytes) -> bool:
    return content.lstrip()[:1] in (b"{", b"[")


def _json(content: bytes, dice: Dice) -> bytes:
    held = {"": json.loads(content)}
    change_tree(held, dice)
    text = json.dumps(held[""])
    if dice.random() < 0.02:
        text = text.replace("null", "[" * DEPTH + "]" * DEPTH)
    return text.encode("utf-8", "surrogatepass")


def change_tree(tree: Any, dice: Dice) -> None:
    """Change one place of nested mappings and lists."""
    places: list[tuple[Any, Any]] = []
    todo = [tree]
    while todo and len(places) < 20_000:
        node = todo.pop()
        items = list(node.items() if isinstance(node, dict) else enumerate(node))
        places += [(node, key) for key, _ in items]
        todo += [value for _, value in items if isinstance(value, (dict, list))]
    node, key = dice.choice(places)
    other, name = dice.choice(places)
    way = dice.randrange(6)
    if way == 0 and node is not tree:
        del node[key]
    elif way == 1:
        node[key] = copy.deepcopy(other[name])
    elif way == 2 and isinstance(node, list):
        node[:] = node * dice.choice((0, 2, 100))
    elif way == 3 and isinstance(node, dict) and node is not tree:
        node[str(dice.choice(VALUES))[:1000]] = node.pop(key)
    elif way == 4 and isinstance(node[key], (int, float)):
        node[key] = dice.choice((-node[key], node[key] + 0.5, str(node[key]), [node[key]], node[key] * 1e200, 10**18))
    else:
        node[key] = copy.deepcopy(dice.choice(VALUES))


# ---- XML ------------------------------------------------------------------------------------------------------------


def _is_xml(content: bytes) -> bool:
    return content.lstrip()[:1] == b"<"


def _xml(content: bytes, dice: Dice) -> bytes:
    root = ElementTree.fromstring(content)
    every = list(root.iter())
    one, other = dice.choice(every), dice.choice(every)
    way = dice.randrange(7)
    value = dice.choice(NUMBERS + NASTY).decode("utf-8", "replace")
    if way == 0 and one.attrib:
        one.set(dice.choice(list(one.attrib)), value)
    elif way == 1 and one.attrib and other.attrib:
        one.set(dice.choice(list(one.attrib)), dice.choice(list(other.attrib.values())))
    elif way == 2 and one.attrib:
        del one.attrib[dice.choice(list(one.attrib))]
    elif way == 3:
        one.text = value
    elif way == 4 and len(one):
        children = list(one)
        one.remove(dice.choice(children))
        one.extend(children * dice.choice((0, 1, 50)))
    elif way == 5:
        one.tag = other.tag
    else:
        other.append(copy.deepcopy(one))
    text = ElementTree.tostring(root, encoding="unicode")
    if dice.random() < 0.05:
        deep = f"<{one.tag}>"
        text = text.replace("><", ">" + deep * DEPTH + deep.replace("<", "</") * DEPTH + "<", 1)
    if dice.random() < 0.05:
        text = '<!DOCTYPE a [<!ENTITY b "cccc">]>' + text.replace("><", ">&b;<", 1)
    return text.encode("utf-8", "replace")


# ---- TOML -----------------------------------------------------------------------------------------------------------


def _is_toml(content: bytes) -> bool:
    return re.search(rb"^\w+ *= *[\[{\"\w-]", content, re.MULTILINE) is not None and b"\n[" in content


def _toml(content: bytes, dice: Dice) -> bytes:
    held = {"": tomllib.loads(content.decode())}
    change_tree(held, dice)
    if not isinstance(held[""], dict):
        raise ValueError
    lines = [f"{json.dumps(key)} = {_inline(value)}" for key, value in held[""].items()]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _inline(value: Any) -> str:
    """A value in one line of TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, default=str)


# ---- tables ---------------------------------------------------------------------------------------------------------


def _delimiter(content: bytes) -> bytes:
    head = content[:2000]
    return max((b",", b"\t", b"|", b";", b":", b" "), key=head.count)


def _is_table(content: bytes) -> bool:
    return _is_text(content) and content[:2000].count(_delimiter(content)) > 4


def _table(content: bytes, dice: Dice) -> bytes:
    mark = _delimiter(content)
    rows = [line.split(mark) for line in content.split(b"\n")]
    row = dice.randrange(len(rows))
    cells = rows[row]
    at = dice.randrange(len(cells))
    way = dice.randrange(8)
    if way < 3:
        cells[at] = dice.choice(NUMBERS if way < 2 else NASTY)
    elif way == 3:
        del cells[at]
    elif way == 4:
        cells.insert(at, dice.choice(dice.choice(rows)))
    elif way == 5:
        cells *= 200
    elif way == 6:  # a column of one value
        value = dice.choice(NUMBERS)
        for each in rows[1:]:
            if at < len(each):
                each[at] = value
    else:
        dice.shuffle(rows)
    return b"\n".join(mark.join(cells) for cells in rows)


GRAMMARS: tuple[tuple[Callable[[bytes], bool], Way], ...] = (
    (_is_json, _json),
    (_is_xml, _xml),
    (_is_toml, _toml),
    (packed.is_tar, partial(packed.change_tar, change=mutated)),
    (packed.is_zip, partial(packed.change_zip, change=mutated)),
    (packed.is_array, packed.change_array),
    (packed.is_packed, partial(packed.change_packed, change=mutated)),
    (packed.is_parquet, packed.change_parquet),
    (_is_table, _table),
)
"""What content is of a grammar, and how it is changed in its terms."""
