"""The one reader of formulas: of parameters, event counts and rules of ranks, of expected growths and of inequalities.

A text is cut into numbers, names and signs. Each name becomes an identifier, ``^`` a power, and Python's own parser
makes the tree: of what it knows, sums, differences, products, quotients, powers, comparisons and calls of the functions
that are allowed can come about, and nothing is evaluated as code. :func:`read_tree` gives the tree with the place of
each word in the text, for messages; :func:`read_formula` a formula that is evaluated on numbers or arrays::

    sum     = product { ("+" | "-") product }
    product = power { ("*" | "/") power }
    power   = ["-"] factor [ "^" power ]
    factor  = number | name | ("min" | "max") "(" sum "," sum ")" | "(" sum ")"

A name may hold dots, digits and more: ``fp_arith_inst_retired.128b_packed_double``, ``A::run``, or anything between
double quotes. Powers bind from the right, before products. A quotient by zero is zero: it stands for a part of cycles
that did not occur.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from functools import cached_property

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass

LONGEST = 1200
"""Characters of a formula; nobody writes more, and nesting is bounded by it."""
DEEPEST = 20
"""Parentheses, or powers of powers, within each other."""
_TOKEN = re.compile(
    r'\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<name>[A-Za-z_~][\w:.\[\]~]*)|"(?P<quoted>[^"]+)"|'
    r"(?P<compare><=|>=|[<>=])|(?P<sign>[-+*/^(),]))"
)
LOGARITHMS = ("log", "log2", "ln", "lg", "log10")
"""Functions that may be written without parentheses, and with an exponent before what they are of: ``log^2 p``."""


class FormulaError(InputError):
    """Text that is not a formula.

    `plain`: what is wrong, without the place. `at`: offset of the first character that does not fit.
    """

    def __init__(self, what: str, at: int, remedy: str = "") -> None:
        super().__init__(f"{what} at column {at + 1}", remedy)
        self.plain, self.at = what, at


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text and its offset; its kind is number, name, quoted, compare, sign or end."""

    kind: str
    text: str
    at: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)

    @property
    def operand(self) -> bool:
        return self.kind in ("number", "name", "quoted")


@dataclass(frozen=True)
class Tree:
    """A text that was read.

    `root`: of ``BinOp``, ``UnaryOp`` (minus), ``Compare``, ``Call``, ``Name`` and ``Constant`` only. `places` (tuple of
    (int, Token)): where each word is in the text that was parsed, and the word.
    """

    text: str
    root: ast.expr
    places: tuple[tuple[int, Token], ...]

    @cached_property
    def _index(self) -> dict[int, int]:
        return {column: index for index, (column, _) in enumerate(self.places)}

    def token(self, node: ast.expr) -> Token:
        """The first word of what a node stands for; of a name or number that word itself."""
        return self.places[self._index[node.col_offset]][1]

    def name(self, node: ast.Name) -> str:
        """A name, as it is in the text."""
        return self.token(node).text

    def sign(self, node: ast.expr) -> Token:
        """The sign before a node, which is an operand of another one."""
        index = self._index[node.col_offset] - 1
        while self.places[index][1].text == "(":
            index -= 1
        return self.places[index][1]

    @property
    def names(self) -> tuple[str, ...]:
        """Names in it, each once, in order of appearance, without those of functions."""
        nodes = ast.walk(self.root)
        called = {id(node.func) for node in ast.walk(self.root) if isinstance(node, ast.Call)}
        found = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in called]
        return tuple(dict.fromkeys(self.name(node) for node in sorted(found, key=lambda node: node.col_offset)))


def read_tree(
    text: str, functions: Collection[str], remedy: str, *, implied: bool = False, longest: int = LONGEST
) -> Tree:
    """Read a text.

    Raises FormulaError with the column of what does not fit.

    Parameters
    ----------
    functions : collection of str
        Those that may be called.
    remedy : str
        How to write it, for messages.
    implied : bool
        Whether two operands without a sign between them are a product.
    longest : int
        Characters that it may have.
    """
    if len(text) > longest:
        raise FormulaError(f"{len(text)} characters, more than {longest}", longest, remedy)
    tokens = _tokens(text, remedy)
    written = _completed(tokens, functions, remedy, implied)
    places, line = [], ""
    for number, token in enumerate(written):
        places.append((len(line), token))
        if token.kind in ("name", "quoted"):
            line += token.text if token.kind == "name" and token.text in functions else f"_{number}"
        else:
            line += "**" if token.text == "^" else token.text
        line += " "
    try:
        root = ast.parse(line, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        raise FormulaError("it is not a formula", 0, remedy) from error
    return Tree(text, root, tuple(places))


def _tokens(text: str, remedy: str) -> list[Token]:
    """Words of a text and its end; FormulaError where something is none."""
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise FormulaError(f"{text[at]!r} is not understood", at, remedy)
        kind = str(match.lastgroup)
        found.append(Token(kind, match[kind], match.start(kind)))
        at = match.end()
    return [*found, Token("end", "", len(text))]


def _completed(tokens: list[Token], functions: Collection[str], remedy: str, implied: bool) -> list[Token]:
    """The words with every product and call written out, once operands and signs take turns and parentheses match."""
    found: list[Token] = []
    opened, towers, at = 0, 0, 0
    operand = True  # whether one has to come next
    while (token := tokens[at]).kind != "end":
        called, expected = token.kind == "name" and token.text in functions, operand
        if token.kind == "compare" and token.text not in ("<=", ">="):
            raise FormulaError(f"expected <= or >=, found {token}", token.at, remedy)
        if not operand and implied and (token.operand or token.text == "("):
            found.append(Token("sign", "*", token.at))
            operand = True
        if operand:
            if called and token.text in LOGARITHMS:
                words, at = _logarithm(tokens, at, functions, remedy)
                found += words
                operand = False
                continue
            after = tokens[at + 1]
            if called and after.text != "(":
                raise FormulaError(f"expected '(' after {token.text}, found {after}", after.at, remedy)
            if not (token.operand or token.text in ("(", "-")):
                raise FormulaError(f"expected a name or a number, found {token}", token.at, remedy)
            opened += token.text == "("
            operand = called or token.text in ("(", "-")
        else:
            if token.operand or token.text == "(":
                raise FormulaError(f"expected a sign, found {token}", token.at, remedy)
            if token.text == ")" and not opened:
                raise FormulaError(f"expected the end, found {token}", token.at, remedy)
            opened -= token.text == ")"
            operand = token.text != ")"
        if token.text == "^" or (token.text == "-" and expected):
            towers += 1
        elif token.kind == "compare" or (token.kind == "sign" and token.text not in "()"):
            towers = 0
        if max(opened, towers) > DEEPEST:
            raise FormulaError("parentheses or powers are nested too deep", token.at, remedy)
        found.append(token)
        at += 1
    if operand:
        raise FormulaError(f"expected a name or a number, found {tokens[at]}", tokens[at].at, remedy)
    if opened:
        raise FormulaError(f"expected ')', found {tokens[at]}", tokens[at].at, remedy)
    return found


def _logarithm(tokens: list[Token], at: int, functions: Collection[str], remedy: str) -> tuple[list[Token], int]:
    """``log p``, ``log(p)`` and ``log^2 p`` as a call of what it is of, and of its exponent; and what comes after."""
    first = tokens[at]
    at += 1
    exponent: list[Token] = []
    if tokens[at].text == "^":
        at += 1
        end = at + (tokens[at].text == "-") + 1
        if tokens[at].text == "(":
            end = next((k for k in range(at, len(tokens)) if tokens[k].text == ")"), at) + 1
        exponent = tokens[at:end]
        if not exponent or any(token.kind in ("end", "name", "quoted", "compare") for token in exponent):
            raise FormulaError(f"expected a number, found {tokens[at]}", tokens[at].at, remedy)
        at = end
    opened = tokens[at].text == "("
    of = tokens[at + opened]
    if of.kind not in ("name", "quoted") or of.text in functions:
        raise FormulaError(f"expected a parameter after {first.text}, found {of}", of.at, remedy)
    at += 1 + opened
    if opened and tokens[at].text != ")":
        if tokens[at].kind == "end":
            raise FormulaError(f"expected ')', found {tokens[at]}", tokens[at].at, remedy)
        raise FormulaError(
            "a logarithm is of one parameter",
            tokens[at].at,
            "log(p^2) grows as log(p), and log(n p) as log(n) + log(p)",
        )
    more = [Token("sign", ",", first.at), *exponent] if exponent else []
    return [first, Token("sign", "(", first.at), of, *more, Token("sign", ")", of.at)], at + opened


def _power(base: Array, exponent: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.asarray(np.power(base, exponent), dtype=np.float64)


def _quotient(above: Array, below: Array) -> Array:
    above, below = np.broadcast_arrays(above, below)
    return np.divide(above, below, out=np.zeros(below.shape), where=below != 0)


_OPERATIONS: Mapping[type[ast.operator], Callable[[Array, Array], Array]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: _quotient,
    ast.Pow: _power,
}
_FUNCTIONS: Mapping[str, Callable[[Array, Array], Array]] = {"min": np.minimum, "max": np.maximum}
_REMEDY = "write sums, products, powers, min(a, b) and max(a, b)"


@dataclass(frozen=True)
class Formula:
    """A formula over named numbers.

    `text`: as written. `names`: names in it, in order of appearance.
    """

    text: str
    names: tuple[str, ...]
    _tree: Tree = field(compare=False, repr=False)

    def __call__(self, values: Mapping[str, Array]) -> Array:
        """Evaluate on arrays of one shape; NaN where a number that is needed is not known (NaN).

        Raises KeyError when one of :attr:`names` is not among `values`.
        """

        def value(node: ast.expr) -> Array:
            match node:
                case ast.Constant():
                    return np.asarray(float(self._tree.token(node).text))
                case ast.Name():
                    return np.asarray(values[self._tree.name(node)], dtype=np.float64)
                case ast.UnaryOp():
                    return np.negative(value(node.operand))
                case ast.BinOp():
                    return _OPERATIONS[type(node.op)](value(node.left), value(node.right))
                case ast.Call(func=ast.Name(id=name)):
                    return _FUNCTIONS[name](value(node.args[0]), value(node.args[1]))
            raise TypeError(type(node).__name__)

        return value(self._tree.root)


def read_formula(text: str, origin: str) -> Formula:
    """Read a formula.

    `origin`: where it is, for messages. Raises InputError when `text` is not a formula.
    """
    try:
        tree = read_tree(text, tuple(_FUNCTIONS), _REMEDY)
        for node in ast.walk(tree.root):
            if isinstance(node, ast.Call) and len(node.args) != 2:
                raise FormulaError(f"{tree.token(node).text} is of two numbers", tree.token(node).at, _REMEDY)
            if isinstance(node, (ast.Compare, ast.Tuple)):
                raise FormulaError("it is not one number", 0, _REMEDY)
    except FormulaError as error:
        raise InputError(f"{origin}: in '{text[:80]}' {error.plain}", error.remedy) from None
    return Formula(text, tree.names, tree)
