"""Names from programs and files, made safe and short enough for a terminal, a plot or a page."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial

UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufff9-\uffff"
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    r"\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that steer a terminal, break a page, are not seen, or change the direction of the text around them:
controls, ends of lines, surrogates and noncharacters, and Unicode's Default_Ignorable_Code_Point."""
FORMULA = ("=", "+", "-", "@", "'", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings of a cell that spreadsheets take for a formula, some in full width, and their mark of a text."""
_GUARDED = (
    r"\boperator ?(?:\(\)|\[\]|<=>|<<=?|>>=?|->\*?|<=?|>=?)|\((?:anonymous namespace|lambda[^()]*)\)|"
    r"\{[^{}()]*+(?:\([^{}()]*+\)[^{}()]*+)?\}"
)
"""Brackets that enclose neither template arguments nor parameters."""
_RETURNED = r"^(?:[\w:\ue000-\uf8ff]+[*&]* )+(?=[\w:~\ue000-\uf8ff])(?<!operator )"
_PARTED = r"::|[<>()]"
_PLACE = r" \([^()]*:\d+\)$"
"""Where a function of Python begins: ``(heat.py:24)``."""
_NAMING = re.compile(r"[\w>)\ue000-\uf8ff]")
_CLOSING = {"<": ">", "(": ")"}
DOTS = "\u2026"
CALLS = "->"
"""Between the regions of a call path in a kernel's name."""
_CALLS = re.compile(r"(?<!operator)->(?=.)")


def printable(text: str) -> str:
    """`text` on one line, without characters that would steer a terminal or break a page."""
    return UNSAFE.sub("\ufffd", text)


def spelled(text: str) -> str:
    r"""`text` with the characters that :func:`printable` replaces as Python writes them (``\x1b``, ``\u202e``), and a
    backslash as ``\\``: nothing is lost."""
    return UNSAFE.sub(_spelled, text.replace("\\", "\\\\"))


def _spelled(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


def cell(value: object) -> object:
    """What to write for a value in a table of text: texts spelled and none a formula, all else as it is."""
    if not isinstance(value, str):
        return value
    text = spelled(value)
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def clipped(text: str, width: int) -> str:
    """`text`, printable, in `width` columns: its beginning and its end."""
    return _elided(printable(text), width, _head(width))


def demangled(names: Sequence[str]) -> list[str]:
    """`names` with those of C++ as the source has them, where ``c++filt`` is installed; others as they are."""
    tool = shutil.which("c++filt") if any(name.startswith(("_Z", "__Z")) for name in names) else None
    if tool is None or any("\n" in name for name in names):
        return list(names)
    import subprocess

    try:
        done = subprocess.run(
            [tool], input="\n".join(names) + "\n", capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return list(names)
    lines = done.stdout.split("\n")[:-1]
    return lines if len(lines) == len(names) else list(names)


def call_path(name: str) -> list[str]:
    """The regions of a kernel's call path, its own last: ``["main", "solve"]`` of ``main->solve``.

    The operator ``->`` of C++ is no call.
    """
    return [part for part in _CALLS.split(name) if part] or [name]


def short_names(names: Iterable[str], width: int) -> dict[str, str]:
    """What to show of each of `names` in `width` columns; names that are shown together stay distinct.

    A name that is too long loses its template arguments first, then parameters and what a function returns, then
    enclosing namespaces and classes, as far as it must; what is left is cut in its middle. Names that would become
    equal keep the part in which they differ, and are numbered where `width` has no room for it. `names`: all that are
    shown together: distinct is a property of the set. `width`: at least 1.
    """
    return dict(_short_names(tuple(dict.fromkeys(names)), max(1, width)))


@lru_cache(maxsize=64)
def _short_names(names: tuple[str, ...], width: int) -> dict[str, str]:
    plain = dict(zip(names, map(printable, demangled(names)), strict=True))
    shown = {name: _fitted(text, width) for name, text in plain.items()}
    # the first way that makes all names of a group distinct; failing that, one that does for some
    for all_of, how in itertools.product((True, False), _ways(width)):
        equal = _equal(shown)
        if not equal:
            return shown
        taken = set(shown.values()) - {shown[name] for group in equal for name in group}
        for group in equal:
            fresh = {name: how(plain[name]) for name in group}
            texts = set(fresh.values())
            if len(texts) >= (len(group) if all_of else 2) and not taken & texts:
                shown |= fresh
                taken |= texts
    for group in _equal(shown):
        taken = set(shown.values())
        for name in (name for name in group if name != shown[name]):
            numbers = (f"{shown[name][: max(0, width - len(f'~{at}'))]}~{at}" for at in itertools.count(1))
            shown[name] = next(text for text in numbers if text not in taken)
            taken.add(shown[name])
    return shown


def _equal(shown: dict[str, str]) -> list[list[str]]:
    """Names that are shown as one."""
    groups: dict[str, list[str]] = {}
    for name, text in shown.items():
        groups.setdefault(text, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _ways(width: int) -> Iterable[Callable[[str], str]]:
    """Ways to show names that stripping makes the same: with what was stripped first, then cut at other places.

    What is cut is the name in its innermost scope, then all of it.
    """
    for templates, parameters in ((False, True), (True, False), (True, True)):
        yield partial(_keeping, width=width, templates=templates, parameters=parameters)
    heads = sorted(range(width), key=lambda head: abs(head - _head(width)))
    for cut in (_scoped, _elided):
        for head in heads:
            yield partial(cut, width=width, head=head)


def _keeping(text: str, width: int, templates: bool, parameters: bool) -> str:
    return text if len(text) <= width else _fitted_from([_stripped(text, templates, parameters)], width)


def _scoped(text: str, width: int, head: int) -> str:
    """`text` cut as :func:`_elided` does, of a function's name all but its last two components left out before."""
    if len(text) <= width:
        return text
    name, back = _guard(_stripped(text, False, False))
    return _elided(back(name[([0, 0, *_scopes(name)])[-2] :]), width, head)


def _head(width: int) -> int:
    """How much of a name's beginning to keep in `width` columns: two thirds, as a shorter end is enough."""
    return max(0, width - 1 - (width - 1) // 3)


def _elided(text: str, width: int, head: int) -> str:
    """`text` in `width` columns: where it is longer, its first `head` characters, an ellipsis, and its last."""
    if len(text) <= width:
        return text
    tail = width - 1 - head
    return f"{text[:head]}{DOTS}{text[len(text) - tail :] if tail > 0 else ''}"[:width]


def _fitted(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    return _fitted_from([_stripped(text, False, True), _stripped(text, False, False)], width)


def _fitted_from(forms: Sequence[str], width: int) -> str:
    """The first of `forms` that fits; or the last with as many enclosing scopes as fit, at worst cut in its middle."""
    for form in forms:
        if len(form) <= width:
            return form
    last = forms[-1]
    guarded, back = _guard(last)
    starts = _scopes(guarded)
    fitting = [form for start in starts if len(form := back(guarded[start:])) <= width]
    if fitting:
        return fitting[0]
    inner = back(guarded[starts[-1] :]) if starts else last
    return clipped(inner, width)


def _scopes(text: str) -> list[int]:
    """Places behind each ``::`` that is in no brackets."""
    depth, found = 0, []
    for match in re.finditer(_PARTED, text):
        letter = match[0]
        depth += (letter in "<(") - (letter in ">)")
        if letter == "::" and depth == 0:
            found.append(match.end())
    return found


def _guard(text: str) -> tuple[str, Callable[[str], str]]:
    """`text` with each bracketed whole that is none of arguments as one character, and what puts them back."""
    held: dict[str, str] = {}

    def keep(match: re.Match[str]) -> str:
        mark = chr(0xE000 + len(held) % 0x1900)
        held[mark] = match[0]
        return mark

    guarded = re.sub(_GUARDED, keep, text)
    return guarded, lambda part: "".join(held.get(letter, letter) for letter in part)


def _stripped(text: str, templates: bool, parameters: bool) -> str:
    """A function's name without template arguments and without parameters, what it returns and the place where it
    begins, unless they are kept."""
    name, back = _guard(text if parameters else re.sub(_PLACE, "", text))
    if not templates:
        name = _without(name, "<")
    if not parameters:
        bare = _without(name, "(")
        if bare != name:
            name = re.sub(_RETURNED, "", bare.replace(" const", ""))
    return back(name)


def _without(text: str, opening: str) -> str:
    """`text` without brackets, and what is in them, that directly follow a name."""
    closing, kept, depth, before = _CLOSING[opening], [], 0, " "
    for letter in text:
        if letter == opening and (depth or _NAMING.match(before)):
            depth += 1
        elif letter == closing and depth:
            depth -= 1
        elif not depth:
            kept.append(letter)
        before = letter
    return text if depth else "".join(kept)
