"""The algorithm that a library takes: switch points by ranks and size, as data with their source.

The tables are TOML files in this folder. A rule applies where all of its conditions hold, and the first such counts:
``ranks_below``, ``power_of_two``, and ``choose``, a list of (first size no longer meant, algorithm), 0 for no end.
``fewer_elements`` names the algorithm where the vector has fewer elements than ranks. ``instead`` names, for an
operation's algorithm, the one that its own code takes where it cannot give every rank an element.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.costs.collective import COLLECTIVES, OPERATIONS, operation_name
from ranksight.comm.costs.fabric import floor_log2
from ranksight.comm.costs.hierarchical import HIERARCHICAL
from ranksight.core.arrays import Array, Ints
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass

TABLES = {"openmpi-4.1": "openmpi", "openmpi-5.0": "openmpi", "mpich": "mpich"}
"""Selectors that come with the package, and the file that holds each."""
ELEMENT = 8.0
"""Bytes of an element where a rule counts elements: a double."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One bracket of ranks, and what is chosen in it by size; see the module."""

    ends: tuple[float, ...]
    algorithms: tuple[str, ...]
    ranks_below: float = np.inf
    power_of_two: bool = False
    fewer_elements: str = ""


@dataclass(frozen=True, slots=True)
class Selector:
    """One library's choice of algorithms."""

    name: str
    source: str
    rules: Mapping[str, tuple[Rule, ...]]  # by operation; the last rule of each holds everywhere
    whole: frozenset[str] = field(default_factory=frozenset)
    """Operations whose switch points count the bytes of all ranks together."""
    hierarchical: frozenset[str] = field(default_factory=frozenset)
    """Operations done in two levels where ranks share nodes and there are several."""
    instead: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By operation, what an algorithm is replaced with where the vector has fewer elements than ranks."""

    def choose(self, operation: str, ranks: Ints, size: Array) -> NDArray[np.object_]:
        """Name of the algorithm for each of the broadcast `ranks` and `size`.

        Raises InputError when the selector has no rules for the operation.
        """
        if operation not in self.rules:
            raise InputError(
                f"selector {self.name} has no algorithm for {operation}", f"it knows {', '.join(sorted(self.rules))}"
            )
        ranks, size = np.broadcast_arrays(ranks, size)
        measure = size * ranks if operation in self.whole else size
        chosen = np.full(ranks.shape, "", dtype=object)
        for rule in self.rules[operation]:
            holds = (chosen == "") & (ranks < rule.ranks_below)
            if rule.power_of_two:
                holds &= (ranks & (ranks - 1)) == 0
            names = np.array(rule.algorithms, dtype=object)[np.searchsorted(rule.ends, measure, side="right")]
            if rule.fewer_elements:
                few = size < ELEMENT * (1 << floor_log2(ranks))
                names = np.where(few, rule.fewer_elements, names)
            chosen = np.where(holds, names, chosen)
        for kind, other in self.instead.get(operation, {}).items():
            chosen = np.where((chosen == kind) & (size < ELEMENT * ranks), other, chosen)
        return chosen


@cache
def selector(name: str) -> Selector:
    """The selector `name` of :data:`TABLES`; InputError naming those there are."""
    if name not in TABLES:
        raise InputError(f"no selector of collectives is named {name!r}", f"known: {', '.join(TABLES)}")
    text = resources.files("ranksight.comm.costs").joinpath(f"{TABLES[name]}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    return read_selector(name, content | content.get("versions", {}).get(name, {}), f"{TABLES[name]}.toml")


def algorithms_of(operation: str) -> tuple[str, ...]:
    """Names of the algorithms of an operation, sorted; ``hierarchical`` where there is a form in two levels."""
    known = {name.partition("/")[2] for name in COLLECTIVES if name.partition("/")[0] == operation}
    return tuple(sorted(known | ({"hierarchical"} if operation in HIERARCHICAL else set())))


def stated(algorithms: Mapping[str, str], where: str) -> dict[str, str]:
    """Algorithms by operation as a user states them, with plain names of operations.

    `algorithms` (mapping of str to str): ``{"MPI_Allreduce": "ring"}``. `where`: option, or file and table, for
    messages. Raises InputError when an operation or an algorithm is not known; it lists those that are.
    """
    found: dict[str, str] = {}
    for operation, kind in algorithms.items():
        name = operation_name(str(operation))
        known = algorithms_of(name)
        if not known:
            every = [each for each in OPERATIONS if algorithms_of(each)]
            raise InputError(f"{where}: {operation!r} is not a collective operation", f"known: {', '.join(every)}")
        if kind not in known:
            raise InputError(f"{where}: {name} has no algorithm {kind!r}", f"known: {', '.join(known)}")
        if name in found:
            raise InputError(f"{where}: the algorithm of {name} is stated twice", "state it once")
        found[name] = kind
    return found


def forced(algorithms: Mapping[str, str], otherwise: Selector) -> Selector:
    """A selector with the stated algorithm (``hierarchical`` too) of some operations, and `otherwise` for the rest."""
    fixed = {name: kind for name, kind in algorithms.items() if kind != "hierarchical"}
    for name, kind in fixed.items():
        COLLECTIVES[f"{name}/{kind}"]
    return Selector(
        f"{otherwise.name} with {', '.join(f'{name}={kind}' for name, kind in sorted(algorithms.items()))}",
        otherwise.source,
        {**otherwise.rules, **{name: (Rule((), (kind,)),) for name, kind in fixed.items()}},
        otherwise.whole,
        (otherwise.hierarchical - set(fixed)) | (set(algorithms) - set(fixed)),
        {name: pairs for name, pairs in otherwise.instead.items() if name not in fixed},
    )


def read_selector(name: str, content: Mapping[str, Any], where: str) -> Selector:
    """Build a selector from the content of a table; InputError naming `where` when an algorithm or rule is unknown."""
    try:
        rules = {
            operation: tuple(_rule(rule, operation) for rule in rows) for operation, rows in content["rules"].items()
        }
        return Selector(
            name,
            str(content["source"]),
            rules,
            frozenset(content.get("whole", ())),
            frozenset(content.get("hierarchical", ())),
            _instead(content.get("instead", {})),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{where}: selector {name} is malformed: {error!r}", "compare it with a selector that comes along"
        ) from error


def _instead(content: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    found = {operation: {str(a): str(b) for a, b in pairs.items()} for operation, pairs in content.items()}
    for operation, pairs in found.items():
        for kind in (*pairs, *pairs.values()):
            if f"{operation}/{kind}" not in COLLECTIVES:
                raise ValueError(f"no algorithm {operation}/{kind}")
    return found


def _rule(content: Mapping[str, Any], operation: str) -> Rule:
    known = {"ranks_below", "power_of_two", "choose", "fewer_elements"}
    if set(content) - known:
        raise ValueError(f"{operation}: unknown entry {sorted(set(content) - known)[0]}")
    steps = [(float(end), str(kind)) for end, kind in content["choose"]]
    ends = tuple(end for end, _ in steps[:-1])
    if steps[-1][0] != 0 or any(b <= a for a, b in zip((0.0, *ends), ends, strict=False)):
        raise ValueError(f"{operation}: sizes of a rule rise and end with 0")
    kinds = tuple(kind for _, kind in steps)
    few = str(content.get("fewer_elements", ""))
    for kind in {*kinds, few} - {""}:
        if f"{operation}/{kind}" not in COLLECTIVES:
            raise ValueError(f"no algorithm {operation}/{kind}")
    return Rule(ends, kinds, float(content.get("ranks_below", np.inf)), bool(content.get("power_of_two", False)), few)
