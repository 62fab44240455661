"""How far what is assumed of a machine may be off: one table of spreads, ``assumptions.toml``, with their sources."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ranksight.core.records import dataclass
from ranksight.core.toml import decode

BASES = ("published", "learned", "judgement")
"""What a spread rests on."""


@dataclass(frozen=True)
class Assumption:
    """A standard deviation of a logarithm: of what, what it rests on, and its source."""

    value: float
    what: str
    basis: str
    source: str


@cache
def assumptions() -> dict[str, Assumption]:
    """The table, by name."""
    content = files("ranksight.platforms").joinpath("assumptions.toml").read_bytes()
    rows = decode(content, "assumptions.toml", "")["spread"]
    return {
        name: Assumption(float(row["value"]), row["what"], row["from"], row["source"]) for name, row in rows.items()
    }


def spread(name: str) -> float:
    """The standard deviation of the logarithm of what is assumed under `name`."""
    return assumptions()[name].value
