"""Formulas as people read them: ``1.33e6 · size³ / ranks + 2e3 · size²``.

The text of a function (:meth:`ranksight.model.structure.functions.Functions.formula`) stays as it is in JSON and CSV.
"""

from __future__ import annotations

import re

DIGITS = 3
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_POWER = re.compile(r"(.+?)\^(?:\((-?[\d./]+)\)|([\d.]+))")
_PLACE = re.compile(r"( (?:above|at) \S+ = [^ ,]+(?:, )?| below| on a .*$)")
_SQUARES = {"2": "²", "3": "³"}


def readable(text: str) -> str:
    """`text` with numbers of three digits, powers as signs and negative powers as divisors; the rest stays."""
    pieces = _PLACE.split(text)
    return "".join(piece if at % 2 else _sum(piece) for at, piece in enumerate(pieces))


def _split(text: str, signs: tuple[str, ...]) -> list[str]:
    """Parts of `text` and the `signs` between them, outside of brackets."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        sign = next((sign for sign in signs if depth == 0 and text.startswith(sign, at)), "")
        if sign:
            parts += [text[start:at], sign]
            start = at = at + len(sign)
        else:
            at += 1
    return [*parts, text[start:]]


def _sum(text: str) -> str:
    return "".join(part if at % 2 else _product(part) for at, part in enumerate(_split(text, (" + ", " - "))))


def _product(text: str) -> str:
    above: list[str] = []
    below: list[str] = []
    for factor in _split(text, (" * ",))[::2]:
        written, divides = _factor(factor)
        (below if divides else above).append(written)
    if not below:
        return " · ".join(above)
    under = below[0] if len(below) == 1 else f"({' · '.join(below)})"
    return f"{' · '.join(above) or '1'} / {under}"


def _factor(text: str) -> tuple[str, bool]:
    """One factor, and whether it divides."""
    sign, plain = ("-", text[1:]) if text.startswith("-") else ("", text)
    if _NUMBER.fullmatch(plain):
        return sign + re.sub(r"e([+-])0*", lambda found: f"e{found[1].strip('+')}", f"{float(plain):.{DIGITS}g}"), False
    if text.startswith("(") and text.endswith(")") and len(_split(text, (" ",))) == 1:
        return f"({_sum(text[1:-1])})", False
    found = _POWER.fullmatch(text)
    if found is None or found[1] == "2":
        return text, False
    power = (found[2] or found[3]).removeprefix("-")
    divides = (found[2] or "").startswith("-")
    if power == "1":
        return found[1], divides
    if power == "1/2":
        return f"√{found[1]}", divides
    return found[1] + (_SQUARES.get(power) or (f"^({power})" if "/" in power else f"^{power}")), divides
