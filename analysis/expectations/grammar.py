"""The grammar of expectations and rules; nothing is ever evaluated as code.

An expectation is ``O(growth)``, or the growth alone::

    growth   := product ("+" product)*             one summand has to outgrow the others
    product  := factor (["*"] factor | "/" factor)*
    factor   := base ["^" exponent]
    base     := NAME | 1 | NUMBER "^" rate | ("sqrt" | "cbrt") "(" growth ")" | log | "(" growth ")"
    log      := ("log" | "log2" | "ln" | "lg" | "log10") ["^" exponent] (NAME | "(" NAME ")")
    rate     := NAME | "(" [number] ["*"] NAME ["/" number] ")"
    exponent := ["-"] number | "(" ["-"] number ["/" number] ")"

such as ``O(p^0.5 log p)``, ``O(k^3 2^k)``, ``O(n^3 / p)``, ``O(sqrt(p) log^2 p)``. A decimal of two digits or more that
rounds a fraction with a denominator up to 6 means the fraction: 0.67 is 2/3. See
:mod:`ranksight.analysis.expectations.inequality` for rules.
"""

from __future__ import annotations

import ast
import math
from fractions import Fraction

from ranksight.core.formula import LOGARITHMS, FormulaError, Tree, read_tree
from ranksight.model.search.growth import LARGEST_DENOMINATOR, Growth, Order, leading

ROOTS = {"sqrt": Fraction(1, 2), "cbrt": Fraction(1, 3)}
LONGEST = 400
"""Characters of an expectation; nobody writes more."""
LARGEST = 64
"""Largest exponent; beyond it values overflow within a few doublings."""


_REMEDY = "write it like O(p^0.5 log p)"


def growth(text: str) -> Growth:
    """Read an expectation.

    Raises FormulaError with the column of what does not fit.

    Examples
    --------
    >>> str(growth("O(p^0.5 log p)"))
    'O(p^0.5 log p)'
    """
    if not text.strip():
        raise FormulaError("nothing is written", 0, "write it like O(log p); O(1) is constant")
    tree = read_tree(text, ("O", *ROOTS, *LOGARITHMS), _REMEDY, implied=True, longest=LONGEST)
    root = tree.root
    whole = isinstance(root, ast.Call) and tree.token(root).text == "O" and len(root.args) == 1
    result = _Reader(tree).growth(root.args[0] if whole and isinstance(root, ast.Call) else root)
    if any(abs(part) > LARGEST for _, order in result.orders for part in order):
        raise FormulaError(f"an exponent above {LARGEST} is not supported", 0, "values would overflow")
    return result


class _Reader:
    """From the tree of an expectation to the growth that it means."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def wrong(self, node: ast.expr, wanted: str) -> FormulaError:
        token = self.tree.token(node)
        return FormulaError(f"expected {wanted}, found {token}", token.at, _REMEDY)

    def growth(self, node: ast.expr) -> Growth:
        match node:
            case ast.BinOp(op=ast.Add()):
                return self.sum(node)
            case ast.BinOp(op=ast.Sub(), right=right):
                at = self.tree.sign(right).at
                raise FormulaError("a difference has no place in big O", at, "leave the smaller term out")
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self.growth(left) * self.growth(right)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self.growth(left) / self.growth(right)
            case ast.BinOp(left=ast.Constant() as base, op=ast.Pow(), right=exponent):
                return self.exponential(base, exponent)
            case ast.BinOp(left=left, op=ast.Pow(), right=exponent):
                return self.growth(left) ** self.exponent(exponent)
            case ast.Call(args=args):
                return self.call(node, args)
            case ast.Name():
                return Growth.of({self.tree.name(node): Order(power=Fraction(1))})
            case ast.Constant():
                return self.constant(node)
        raise self.wrong(node, "a parameter, log, sqrt or a number")

    def sum(self, node: ast.expr) -> Growth:
        summands, rest = [], node
        while isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Add):
            summands.append(self.growth(rest.right))
            rest = rest.left
        summands = [self.growth(rest), *reversed(summands)]
        most = leading(summands)
        if most not in summands:
            each = " + ".join(str(one)[2:-1] for one in summands)
            what = f"no summand of {each} outgrows the others along every parameter"
            raise FormulaError(what, self.tree.token(node).at, "write a product")
        return most

    def call(self, node: ast.Call, args: list[ast.expr]) -> Growth:
        name = self.tree.token(node).text
        if name in ROOTS and len(args) == 1:
            return self.growth(args[0]) ** ROOTS[name]
        if name in LOGARITHMS and isinstance(args[0], ast.Name):
            exponent = self.exponent(args[1]) if len(args) == 2 else Fraction(1)
            return Growth.of({self.tree.name(args[0]): Order(log=exponent)})
        raise self.wrong(node, "a parameter, log, sqrt or a number")

    def constant(self, node: ast.Constant) -> Growth:
        token = self.tree.token(node)
        if Fraction(token.text) == 1:
            return Growth()
        what = f"the constant {token.text} has no place in big O"
        remedy = "leave it out; write an exponent that is a fraction in parentheses: p^(1/2)"
        raise FormulaError(what, token.at, remedy)

    def exponential(self, base: ast.Constant, exponent: ast.expr) -> Growth:
        token = self.tree.token(base)
        value = Fraction(token.text)
        if value <= 1:
            raise FormulaError(f"{token.text} to a power does not grow", token.at, "write a base above 1, such as 2^k")
        name, rate = self.rate(exponent)
        scale = Fraction(math.log2(value)).limit_denominator(LARGEST_DENOMINATOR)
        return Growth.of({name: Order(rate=rate * scale)})

    def rate(self, node: ast.expr) -> tuple[str, Fraction]:
        """The parameter that an exponent is proportional to, and its factor."""
        match node:
            case ast.Name():
                return self.tree.name(node), Fraction(1)
            case ast.UnaryOp(operand=operand):
                name, rate = self.rate(operand)
                return name, -rate
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                name, rate = self.rate(right)
                return name, self.exponent(left) * rate
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                name, rate = self.rate(left)
                return name, rate / self.divisor(right)
        raise self.wrong(node, "a parameter in the exponent")

    def exponent(self, node: ast.expr) -> Fraction:
        value = self.number(node)
        if abs(value) > LARGEST:
            at = self.tree.token(node).at
            raise FormulaError(f"an exponent of {float(value):g} is not supported", at, f"at most {LARGEST}")
        return value

    def number(self, node: ast.expr) -> Fraction:
        match node:
            case ast.Constant():
                return simple(self.tree.token(node).text)
            case ast.UnaryOp(operand=operand):
                return -self.number(operand)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self.number(left) / self.divisor(right)
        raise self.wrong(node, "a number")

    def divisor(self, node: ast.expr) -> Fraction:
        value = self.number(node)
        if value == 0:
            raise FormulaError("a fraction is divided by zero", self.tree.token(node).at)
        return value


def simple(text: str) -> Fraction:
    """A number as a fraction; what rounds a fraction with a denominator up to 6 to two digits or more is that."""
    exact = Fraction(text)
    digits = len(text.partition(".")[2])
    if digits >= 2:
        near = exact.limit_denominator(6)
        if abs(near - exact) <= Fraction(1, 2 * 10**digits):
            return near
    return exact.limit_denominator(LARGEST_DENOMINATOR)
