"""Rules between functions: ``Allreduce <= Reduce + Bcast``, any inequality of sums with non-negative factors.

::

    rule := sum ("<=" | ">=") sum
    sum  := item ("+" item)*
    item := [number ["*"]] NAME

A name is a word, or anything between double quotes; words may hold ``_ : . [ ] ~`` and digits after the first
letter, so that most kernels need no quotes.
"""

from __future__ import annotations

import ast

from ranksight.core.formula import FormulaError, Tree, read_tree
from ranksight.core.records import dataclass

LONGEST = 4000
"""Characters of a rule."""
_REMEDY = "write it like Allreduce <= Reduce + Bcast"

Sum = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Inequality:
    """``smaller <= larger``, each a sum of functions with factors.

    `smaller` and `larger` (tuple of (str, float)): functions and their factors. `text`: as it was written.
    """

    smaller: Sum
    larger: Sum
    text: str

    @property
    def functions(self) -> tuple[str, ...]:
        """All functions it speaks of, each once."""
        return tuple(dict.fromkeys(name for name, _ in (*self.smaller, *self.larger)))


def inequality(text: str) -> Inequality:
    """Read a rule. Raises FormulaError with the column of what does not fit."""
    tree = read_tree(text, (), _REMEDY, implied=True, longest=LONGEST)
    root = tree.root
    if not isinstance(root, ast.Compare):
        raise FormulaError("expected <= or >=, found the end", len(text), _REMEDY)
    if len(root.ops) > 1:
        second = tree.sign(root.comparators[1])
        raise FormulaError(f"expected the end, found {second}", second.at, "a rule is one inequality")
    left, right = _sum(tree, root.left), _sum(tree, root.comparators[0])
    smaller, larger = (left, right) if isinstance(root.ops[0], ast.LtE) else (right, left)
    terms = dict(smaller)
    if all(terms.get(name, 0.0) >= factor for name, factor in larger):
        raise FormulaError(
            "the rule contradicts itself or says nothing", 0, "one side holds all of the other: no measurement decides"
        )
    return Inequality(smaller, larger, " ".join(text.split()))


def _sum(tree: Tree, node: ast.expr) -> Sum:
    total: dict[str, float] = {}
    items = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        items.append(node.right)
        node = node.left
    for item in (node, *reversed(items)):
        factor = 1.0
        if isinstance(item, ast.BinOp) and isinstance(item.op, ast.Mult) and isinstance(item.left, ast.Constant):
            token = tree.token(item.left)
            factor, item = float(token.text), item.right
            if not 0 < factor < 1e100:
                raise FormulaError(f"the factor {token.text} is not positive", token.at)
        if not isinstance(item, ast.Name):
            token = tree.token(item)
            raise FormulaError(f"expected a function, found {token}", token.at, _REMEDY)
        total[tree.name(item)] = total.get(tree.name(item), 0.0) + factor
    return tuple(total.items())
