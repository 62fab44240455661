"""Formulas as people read them, ``1.33e6 · size³ / ranks + 2e3 · size²``, as LaTeX and as Python.

The text of a function (:meth:`ranksight.model.structure.functions.Functions.formula`) stays as it is in JSON and CSV.
It is read here once, and every notation says how it writes numbers, powers, quotients and cases.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction

from ranksight.core.records import dataclass
from ranksight.core.units import format_si
from ranksight.reports.pasted import latex_text

DIGITS = 3
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_POWER = re.compile(r"(?P<base>.+?)\^(?:\((?P<signed>-?[\d./]+)\)|(?P<plain>[\d.]+))")
_CALL = re.compile(r"log2\((?P<name>[^()]+)\)")
_LIMIT = re.compile(r"(?P<how>min|max)\((?P<name>[^()]+), (?P<value>[^(), ]+)\)")
_TWO = re.compile(r"2\^\((?:(?P<factor>\(?-?[\d./]+\)?) )?(?P<name>[^()]+)\)")
_GRID = re.compile(r"(?P<law>.*) (?P<grid>on an? [^()]*(?: \(\d+ grids fit\))?|\(\d+ sums fit\))", re.DOTALL)
_ITERATIONS = "; iterations: "
"""Before what the iterations of a loop are, whose function is of one."""
_CASE = re.compile(
    r"(?P<sum>.*?) (?:(?P<how>at|above) (?P<name>[^\s()]+) = (?P<value>[^\s()]+)|(?P<below>below))", re.DOTALL
)
Piece = tuple[str, str, str, str]
"""A function as text, ``at``, ``above`` or ``below`` (empty where it holds everywhere), a parameter and its value."""
_SQUARES = {"2": "²", "3": "³"}


@dataclass(frozen=True)
class Notation:
    """How formulas are written."""

    number: Callable[[str], str]  # a number without sign, from its text
    name: Callable[[str], str]  # a parameter
    power: Callable[[str, str], str]  # a base as written, and a positive exponent other than 1
    logarithm: Callable[[str], str]  # ``log2`` of a name as written
    limit: Callable[[str, str, str], str]  # ``min`` or ``max`` of a name and a number, as written
    exponential: Callable[[str, str], str]
    """2 to the power of a factor ("" for 1) and a name."""
    quotient: Callable[[Sequence[str], Sequence[str]], str]  # the factors above and below, neither empty but the first
    times: str  # between factors
    group: Callable[[str], str]  # a sum within a product
    cases: Callable[[Sequence[Piece]], str]
    """Pieces as written, each with ``at`` or ``above`` and a name and value, or ``below``."""
    grid: Callable[[str, str], str]  # a law as written and the grid it holds on


def readable(text: str, unit: str | None = None) -> str:
    """`text` with numbers of three digits, powers as signs and negative powers as divisors.

    `unit`: SI unit of the value: a function that is a number, alone or in every case, is written with it.
    """
    return write(text, PLAIN, unit)


def latex(text: str) -> str:
    """`text` as LaTeX, for mathematics mode; cases need amsmath."""
    return write(text, LATEX)


def python(text: str, parameters: Sequence[str]) -> str:
    """`text` as a Python expression of the `parameters`, :data:`FUNCTIONS` (module math) and :data:`BUILT_IN`; empty
    where it is of anything else, as of the grid of the ranks."""
    known = {name: identifier(name) for name in parameters}
    safe = Notation(**{**PYTHON.__dict__, "name": lambda name: known.get(name) or name.translate(_OPERATORS)})
    written = write(re.sub(r" \(\d+ sums fit\)$", "", text), safe)
    return written if _computes(written, {*known.values(), *FUNCTIONS, *BUILT_IN}) else ""


def _computes(expression: str, names: Collection[str]) -> bool:
    """Whether `expression` is one of Python's, of these `names` alone."""
    try:
        nodes = list(ast.walk(ast.parse(expression, mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    return all(node.id in names for node in nodes if isinstance(node, ast.Name)) and all(
        isinstance(each, ast.Name) and each.id in FUNCTIONS + BUILT_IN for each in called
    )


def identifier(name: str) -> str:
    """A name that Python takes, from any text."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "value"
    return f"_{plain}" if plain[0].isdigit() or keyword.iskeyword(plain) else plain


def write(text: str, way: Notation, unit: str | None = None) -> str:
    """`text` in a notation; see :func:`readable` for the unit."""
    if text == "none":
        return text
    law, separator, iterations = text.partition(_ITERATIONS)
    if separator:
        return way.grid(write(law, way, unit), f"(iterations: {iterations})")
    on = _GRID.fullmatch(text)
    if on is not None and on["law"].count("(") == on["law"].count(")"):
        return way.grid(write(on["law"], way, unit), on["grid"])
    found = [(piece, _CASE.fullmatch(piece)) for piece in _split(text, (", ",))[::2]]
    cases = [(piece, "", "", "") if case is None else _case(case, way) for piece, case in found]
    valued = all(_NUMBER.fullmatch(piece.removeprefix("-")) for piece, *_ in cases)
    pieces = [
        (format_si(float(piece), unit) if unit and valued else _sum(piece, way), how, name, value)
        for piece, how, name, value in cases
    ]
    return pieces[0][0] if len(pieces) == 1 and not pieces[0][1] else way.cases(pieces)


def _case(case: re.Match[str], way: Notation) -> Piece:
    """The function of a case, and where it holds: ``at`` or ``above`` a value of a parameter, or ``below``."""
    value = "" if case["value"] is None else way.number(case["value"])
    return case["sum"], case["how"] or "below", way.name(case["name"] or ""), value


def _split(text: str, signs: tuple[str, ...]) -> list[str]:
    """Parts of `text` and the `signs` between them, outside of brackets."""
    parts, depth, start = [], 0, 0
    for found in re.finditer("|".join(map(re.escape, ("(", ")", *signs))), text):
        sign = found[0]
        if sign in "()":
            depth += 1 if sign == "(" else -1
        elif depth == 0:
            parts += [text[start : found.start()], sign]
            start = found.end()
    return [*parts, text[start:]]


def _sum(text: str, way: Notation) -> str:
    parts = _split(text, (" + ", " - "))
    while len(parts) > 2 and parts[0] in ("0", "(0)") and parts[1] == " + ":
        parts = parts[2:]
    return "".join(part if at % 2 else _product(part, way) for at, part in enumerate(parts))


def _product(text: str, way: Notation) -> str:
    above: list[str] = []
    below: list[str] = []
    for factor in _split(text, (" * ",))[::2]:
        written, divides = _factor(factor, way)
        (below if divides else above).append(written)
    return way.quotient(above, below) if below else way.times.join(above)


def _factor(text: str, way: Notation) -> tuple[str, bool]:
    """One factor, and whether it divides."""
    sign, plain = ("-", text[1:]) if text.startswith("-") else ("", text)
    if _NUMBER.fullmatch(plain):
        return sign + way.number(plain), False
    if text.startswith("(") and text.endswith(")"):
        inner = text[1:-1]
        written = write(inner, way)
        return (written if len(_split(inner, (" ", "-"))) == 1 else way.group(written)), False
    if (two := _TWO.fullmatch(text)) is not None:
        return way.exponential((two["factor"] or "").strip("()"), way.name(two["name"])), False
    found = _POWER.fullmatch(text)
    base, power = (text, "1") if found is None else (found["base"], found["signed"] or found["plain"])
    if (ends := _LIMIT.fullmatch(base)) is not None:
        written = way.limit(ends["how"], way.name(ends["name"]), way.number(ends["value"]))
    else:
        call = _CALL.fullmatch(base)
        written = way.name(base) if call is None else way.logarithm(way.name(call["name"]))
    size = power.removeprefix("-")
    return (written if size == "1" else way.power(written, size)), power.startswith("-")


def _short(text: str) -> str:
    return re.sub(r"e([+-])0*", lambda found: f"e{found[1].strip('+')}", f"{float(text):.{DIGITS}g}")


def _plain_power(base: str, power: str) -> str:
    if power == "1/2":
        return f"√{base}"
    return base + (_SQUARES.get(power) or (f"^({power})" if "/" in power else f"^{power}"))


def _plain_quotient(above: Sequence[str], below: Sequence[str]) -> str:
    under = below[0] if len(below) == 1 else f"({' · '.join(below)})"
    return f"{' · '.join(above) or '1'} / {under}"


def _plain_cases(pieces: Sequence[Piece]) -> str:
    return ", ".join(
        f"{text} {how} {name} = {value}" if value else f"{text} {how}".rstrip() for text, how, name, value in pieces
    )


def _plain_exponential(factor: str, name: str) -> str:
    return f"{2 ** int(factor or 1)}^{name}" if (factor or "1").isdigit() else f"2^({factor} {name})"


PLAIN = Notation(
    number=_short,
    name=str,
    power=_plain_power,
    logarithm="log2({})".format,
    limit="{}({}, {})".format,
    exponential=_plain_exponential,
    quotient=_plain_quotient,
    times=" · ",
    group="({})".format,
    cases=_plain_cases,
    grid="{} {}".format,
)


def _latex_number(text: str) -> str:
    digits, _, power = _short(text).partition("e")
    return f"{digits} \\cdot 10^{{{power}}}" if power else digits


def _latex_cases(pieces: Sequence[Piece]) -> str:
    signs = {"at": "=", "above": ">", "below": r"\leq"}
    # What is below stands below the value that the piece before it is above of.
    _, _, name, value = next((piece for piece in reversed(pieces) if piece[3]), ("", "", "", ""))
    rows = [f"{text} & {own or name} {signs.get(how, '')} {at or value}" for text, how, own, at in pieces]
    return "\\begin{cases} " + r" \\ ".join(rows) + " \\end{cases}"


def _latex_name(name: str) -> str:
    """A name in mathematics mode; signs beyond words are of text alone, for which amsmath has a mode."""
    mode = "mathrm" if re.fullmatch(r"[\w. -]*", name) else "text"
    return f"\\{mode}{{{latex_text(name)}}}" if name else ""


LATEX = Notation(
    number=_latex_number,
    name=_latex_name,
    power=lambda base, power: f"{base}^{{{power}}}",
    logarithm=r"\log_2\left({}\right)".format,
    limit=r"\{}\left({}, {}\right)".format,
    exponential=lambda factor, name: f"2^{{{factor} {name}}}",
    quotient=lambda above, below: f"\\frac{{{r' '.join(above) or '1'}}}{{{' '.join(below)}}}",
    times=r" \, ",
    group=r"\left({}\right)".format,
    cases=_latex_cases,
    grid=lambda law, grid: f"{law} \\quad\\text{{{grid}}}",
)


def _python_cases(pieces: Sequence[Piece]) -> str:
    at = {value: text for text, how, _, value in pieces if how == "at"}
    if len(at) == len(pieces):
        return "{" + ", ".join(f"{value}: {text}" for value, text in at.items()) + f"}}[{pieces[0][2]}]"
    *above, (written, _, _, _) = pieces
    for text, _, name, value in reversed(above):
        written = f"({text} if {name} > {value} else {written})"
    return written


FUNCTIONS, BUILT_IN = ("ceil", "floor", "log2"), ("max", "min")
"""Functions of module math, and those built in, that expressions in Python are written with."""
_OPERATORS = {ord("^"): "**", ord("["): "(", ord("]"): ")"}
"""Powers and conditions (1 where they hold, else 0) of terms by name, in Python."""

PYTHON = Notation(
    number=lambda text: repr(float(text)) if not text.isdigit() else text,
    name=str,
    power=lambda base, power: f"{base}**{f'({power})' if '/' in power else power}",
    logarithm="log2({})".format,
    limit="{}({}, {})".format,
    exponential=lambda factor, name: f"2**({f'({Fraction(factor)}) * ' if factor else ''}{name})",
    quotient=lambda above, below: " / ".join((" * ".join(above) or "1", *below)),
    times=" * ",
    group="({})".format,
    cases=_python_cases,
    grid="{} {}".format,
)
