"""Prototypes of the MPI standard as the installed ``mpi.h`` declares them."""

from __future__ import annotations

import re

from ranksight.core.errors import ToolError
from ranksight.core.records import dataclass

_PROTOTYPE = re.compile(r"(?<=[\s*])(?P<name>P?MPI_[A-Z]\w*)\s*\((?P<params>[^(){};]*)\)\s*;")
_NO_TYPE = re.compile(r"[^\w\s*]")
"""What separates a function's type from the text before it."""
_NAME = re.compile(r"^(?P<type>.*?[\s*])(?P<name>[A-Za-z_]\w*)\s*(?P<array>(?:\[[^\]]*\]\s*)*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its C type as written, and the text in brackets after its name."""

    type: str
    array: str = ""

    @property
    def bare(self) -> str:
        """The type without ``const``, ``struct`` and needless blanks; an array's is that of its pointer."""
        words = re.sub(r"\bconst\b|\brestrict\b", " ", self.type).replace("*", " * ").split()
        stars = words.count("*") + (1 if self.array else 0)
        return " ".join(word for word in words if word != "*") + "*" * stars

    def declare(self, name: str) -> str:
        """Declaration of this parameter under `name`."""
        return f"{self.type} {name}{self.array}"


@dataclass(frozen=True, slots=True)
class Prototype:
    """One function of MPI."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]


def _without_attributes(text: str) -> str:
    """Remove ``__attribute__((...))``, which may hold parentheses of its own, and line markers."""
    text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.MULTILINE)
    parts: list[str] = []
    at = 0
    for match in re.finditer(r"\b__(?:attribute(?:__)?|declspec|asm__)\s*(?=\()", text):
        if match.start() < at:
            continue
        parts.append(text[at : match.start()])
        depth, at = 0, match.end()
        while at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
            if depth == 0:
                break
    return "".join(parts) + text[at:]


def _parameter(text: str) -> Parameter:
    text = " ".join(text.split())
    match = _NAME.match(text)
    if match is None or match["name"] in ("int", "char", "long", "double", "void"):
        return Parameter(re.sub(r"\[[^\[\]]*\]", "*", text))
    return Parameter(match["type"].strip(), match["array"].replace(" ", ""))


def parse(preprocessed: str) -> dict[str, Prototype]:
    """Find the functions that a preprocessed ``mpi.h`` declares both as ``MPI_X`` and as ``PMPI_X``.

    `preprocessed`: what ``mpicc -E`` gives for ``#include <mpi.h>``. Raises ToolError when not even ``MPI_Send`` is
    there: this is no ``mpi.h``.

    Returns
    -------
    dict of str to Prototype
        By name, in the header's order. Functions with a variable number of arguments are left out: they cannot be
        passed on (``MPI_Pcontrol`` alone).
    """
    functions: dict[str, Prototype] = {}
    profiled: set[str] = set()
    for statement in _without_attributes(preprocessed).split(";"):
        match = _PROTOTYPE.search(f"{statement};")
        before = "" if match is None else _NO_TYPE.split(statement[: match.start()])[-1]
        if match is None or not before.strip(" *\n\t") or "typedef" in before.split():
            continue
        name, params = match["name"], match["params"].strip()
        if name.startswith("PMPI_"):
            profiled.add(name[1:])
            continue
        if "..." in params:
            continue
        result = " ".join(word for word in before.split() if word not in ("extern", "static", "inline"))
        listed = () if params in ("", "void") else tuple(_parameter(part) for part in params.split(","))
        functions.setdefault(name, Prototype(name, result, listed))
    found = {name: function for name, function in functions.items() if name in profiled}
    if "MPI_Send" not in found:
        raise ToolError(
            "mpi.h of the compiler wrapper declares no MPI_Send with a PMPI_Send",
            "check that mpicc belongs to an MPI installation with its headers",
        )
    return found
