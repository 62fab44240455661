"""Time, energy, energy-delay product and cost over rank counts, as tables and plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.analysis.planning.spending import COST, DELAY, ENERGY, TIME, Spending
from ranksight.core.arrays import Array
from ranksight.core.metrics import metric
from ranksight.core.units import finite, format_alike, format_factor, in_full, in_words, some_of, whole
from ranksight.reports.plans import percent
from ranksight.reports.terminal import Block, Column, Table, Text

NAMES = {TIME: "time", ENERGY: "energy", DELAY: "EDP", COST: "cost"}
"""Quantities as people read them; EDP is the energy-delay product."""
MOST_DIGITS = 8  # after the point of an amount of money


def amounts(name: str, values: Array, currency: str) -> tuple[str, list[str]]:
    """The unit of a quantity's values, and the values in it."""
    if name == COST:
        least = float(values[np.isfinite(values)].min(initial=1.0))
        digits = int(np.clip(1 - np.floor(np.log10(least)), 2, MOST_DIGITS)) if least > 0 else 2
        return currency, [f"{x:,.{digits}f}" if np.isfinite(x) else "–" for x in values.tolist()]
    return format_alike(values.tolist(), "J s" if name == DELAY else metric(name).unit)


def cells(found: Spending) -> tuple[list[str], list[list[str]]]:
    """Heads, each with its unit, and a row a rank count: each quantity, and the half-width of its interval."""
    heads, columns = [found.along], [[in_full(count) for count in found.counts.tolist()]]
    for name, each in found.quantities.items():
        unit, texts = amounts(name, each.value, found.currency)
        factors = [float(np.sqrt(high / low)) for low, high in zip(each.lower, each.upper, strict=True)]
        known = np.isfinite(each.value).tolist()
        heads += [f"{NAMES[name]}, {unit}", f"{found.level:.0%}"]
        columns += [texts, [f"±{percent(x)}" if fine else "" for x, fine in zip(factors, known, strict=True)]]
    return heads, [list(row) for row in zip(*columns, strict=True)]


def choices(found: Spending) -> list[list[str]]:
    """A row a quantity: the best rank count by it, and what is lost of each of the others there; in brackets where that
    is within what the difference is uncertain by."""
    losses, same = found.losses(), found.same()
    return [
        [
            NAMES[by],
            in_full(float(found.counts[at])),
            *(_cell(losses[by][of], of == by, bool(same[of][at]), int(same[of].sum())) for of in losses),
        ]
        for by, at in found.best().items()
    ]


def _cell(part: float, best: bool, same: bool, count: int) -> str:
    if best:
        return "least" if count == 1 else "(least)"
    return f"({_more(part)})" if same else _more(part)


def ties(found: Spending) -> list[str]:
    """Which counts have the same of each quantity, as far as is known, in sentences."""
    return [
        f"(least): {NAMES[name]} at {some_of([in_full(x) for x in found.counts[mask].tolist()], 12)} {found.along} "
        "differs by less than its uncertainty"
        for name, mask in found.same().items()
        if np.count_nonzero(mask) > 1
    ]


def _more(part: float) -> str:
    """What is lost: in percent, or as a factor where it is twice as much or more."""
    return f"{part:+.1%}" if part < 1 else f"x {format_factor(1 + part, 3)}"


def blocks(found: Spending) -> list[Block]:
    """The table over rank counts, and the best counts."""
    where = f" at {in_words(found.held)}" if found.held else ""
    (along, *others), rows = cells(found)
    heads = [Column(along)]
    for place, (name, interval) in enumerate(zip(others[::2], others[1::2], strict=True)):
        heads += [Column.read(name), Column.read(f"{interval}/{4 - place}")]
    said: list[Block] = [Text(f"what a run takes{where}", style="bold"), Table(heads, rows, 2)]
    best = found.best()
    if len(best) > 1:
        head = f"best number of {found.along} by each, and how much more the others take there"
        said += ["", Text(head, style="bold")]
        said.append(Table(["least:word", found.along, *(NAMES[name] for name in best)], choices(found), 2))
    return [*said, *(Text(f"note: {text}", 0, 4) for text in (*ties(found), *found.notes))]


def to_dict(found: Spending) -> dict[str, Any]:
    """Plain data: a row a rank count, and the best by each quantity with the losses, in parts, and the counts that are
    the same as far as is known."""
    best, same = found.best(), found.same()
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
            name: {
                found.along: whole(float(found.counts[at])),
                "lost": found.losses()[name],
                "same": [whole(count) for count in found.counts[same[name]].tolist()],
            }
            for name, at in best.items()
        },
        "notes": list(found.notes),
    }
