"""Time, energy, energy-delay product and cost over rank counts, as tables and plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.analysis.planning.spending import COST, DELAY, ENERGY, TIME, Spending
from ranksight.core.metrics import metric
from ranksight.core.units import finite, format_si, in_full, in_words, whole
from ranksight.reports.plans import percent
from ranksight.reports.terminal import Block, Column, Table, Text

NAMES = {TIME: "time", ENERGY: "energy", DELAY: "energy x time", COST: "cost"}
"""Quantities as people read them."""


def amount(name: str, number: float, currency: str) -> str:
    """A quantity with its unit."""
    if not np.isfinite(number):
        return "not predicted"
    if name == COST:
        return f"{number:,.2f} {currency}" if number >= 100 else f"{number:.3g} {currency}"
    return format_si(number, "J s") if name == DELAY else metric(name).format(number)


def cells(found: Spending) -> list[list[str]]:
    """A row a rank count: each quantity, and the half-width of its interval."""
    rows = []
    for at, count in enumerate(found.counts.tolist()):
        row = [in_full(count)]
        for name, each in found.quantities.items():
            known = np.isfinite(each.value[at])
            half = percent(float(np.sqrt(each.upper[at] / each.lower[at]))) if known else ""
            row += [amount(name, float(each.value[at]), found.currency), half and f"±{half}"]
        rows.append(row)
    return rows


def choices(found: Spending) -> list[list[str]]:
    """A row a quantity: the best rank count by it, and what is lost of each of the others there."""
    losses = found.losses()
    return [
        [
            NAMES[by],
            in_full(float(found.counts[at])),
            *(f"{losses[by][of]:+.1%}" if of != by else "least" for of in losses),
        ]
        for by, at in found.best().items()
    ]


def blocks(found: Spending) -> list[Block]:
    """The table over rank counts, and the best counts."""
    where = f" at {in_words(found.held)}" if found.held else ""
    heads = [Column(found.along)]
    for place, name in enumerate(found.quantities):
        heads += [Column.read(NAMES[name]), Column.read(f"{found.level:.0%}/{4 - place}")]
    said: list[Block] = [Text(f"what a run takes{where}", style="bold"), Table(heads, cells(found), 2)]
    best = found.best()
    if len(best) > 1:
        said += ["", Text(f"best number of {found.along}, and what is lost of the others there", style="bold")]
        said.append(Table(["least:word", found.along, *(NAMES[name] for name in best)], choices(found), 2))
    return [*said, *(Text(f"note: {text}", 0, 4) for text in found.notes)]


def to_dict(found: Spending) -> dict[str, Any]:
    """Plain data: a row a rank count, and the best by each quantity with the losses, in parts."""
    best = found.best()
    return {
        "along": found.along,
        "held": {name: whole(value) for name, value in found.held.items()},
        "level": found.level,
        "currency": found.currency,
        "runs": [
            {
                found.along: whole(count),
                **{
                    name: {
                        "value": finite(float(each.value[at])),
                        "interval": [finite(float(each.lower[at])), finite(float(each.upper[at]))],
                    }
                    for name, each in found.quantities.items()
                },
            }
            for at, count in enumerate(found.counts.tolist())
        ],
        "best": {
            name: {found.along: whole(float(found.counts[at])), "lost": found.losses()[name]}
            for name, at in best.items()
        },
        "notes": list(found.notes),
    }
