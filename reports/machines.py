"""The same job on several machines, as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from ranksight.core.html import table
from ranksight.core.metrics import metric
from ranksight.core.units import counted, format_si, in_words, whole
from ranksight.reports.terminal import Block, Table, Text

if TYPE_CHECKING:
    from ranksight.analysis.comparison.machines import Offer

ENERGY = 5
"""Place of the energy among the columns of :func:`_heads`."""


def _heads(found: Sequence[Offer]) -> list[str]:
    """Heads of the columns of :func:`_cells`."""
    interval = f"{100 * found[0].level:g}% interval" if found else "interval"
    currency = next((each.currency for each in found if each.currency), "")
    cost = f"cost, {currency}" if currency else "cost"
    return ["machine", "time", interval, "nodes", "node-hours", "energy", cost, "changed verdicts"]


def blocks(found: Sequence[Offer]) -> list[Block]:
    """A table a configuration, the fastest machine first, and what is assumed of each machine."""
    shown: list[Block] = []
    for place in _places(found):
        mine = [each for each in found if tuple(each.configuration.values()) == place]
        title = in_words({name: whole(value) for name, value in mine[0].configuration.items()})
        name, *numbers, verdicts = _heads(found)
        heads, cells = [f"{name}:word", *numbers, f"{verdicts}:text"], _cells(mine)
        # Energy with its interval, cost and verdicts are a table of their own: a line has 80 columns.
        second = [0, *range(ENERGY, len(heads))]
        parts = [[*range(ENERGY)], second] if any(any(row[ENERGY:]) for row in cells) else [[*range(ENERGY)]]
        shown += [*([""] if shown else []), f"{title}: the job on {counted(len(mine), 'machine')}"]
        for part in parts:
            shown += [] if part is parts[0] else [""]
            shown.append(Table([heads[at] for at in part], [[row[at] for at in part] for row in cells], 2))
        shown += [Text(text, 2) for text in _insufficient(mine)]
    shown += [Text(text, 0) for text in _energies(found)]
    shown += [Text(text, 0) for text in _assumed(found)]
    return shown


def _energies(found: Sequence[Offer]) -> list[str]:
    """What the energies of the machines are of, and that those of different things do not compare."""
    first = {each.machine: each for each in found if each.energy_of}
    kinds = {each.energy_of.partition(",")[0].partition(" at ")[0] for each in first.values()}
    mixed = ["energies of different things do not compare, nor do their costs"] if len(kinds) > 1 else []
    return [*(f"{name}: energy is of {each.energy_of}" for name, each in first.items()), *mixed]


def rows(found: Sequence[Offer]) -> tuple[list[str], list[list[object]]]:
    """Columns and rows for a file of separated values."""
    parameters = list(found[0].configuration) if found else []
    names = ["value", "lower", "upper", "status", "nodes", "node_hours", "energy", "cost", "changed"]
    lines: list[list[object]] = []
    for each in found:
        held = each.to_dict()
        ends = held["interval"]
        assert isinstance(ends, list)
        values = [held["value"], *ends, each.status, each.nodes, held["node_hours"], each.energy, each.cost]
        lines.append([*map(whole, each.configuration.values()), each.machine, *values, "; ".join(each.changed)])
    return [*parameters, "machine", *names], lines


def page(application: str, found: Sequence[Offer]) -> str:
    """One HTML page of the tables, which needs no network."""
    parts = []
    for place in _places(found):
        mine = [each for each in found if tuple(each.configuration.values()) == place]
        title = f"{application}: {in_words({name: whole(value) for name, value in mine[0].configuration.items()})}"
        parts.append(table(title, _heads(found), _cells(mine)))
        parts += [f"<p>{escape(text)}</p>" for text in _insufficient(mine)]
    energies = "".join(f"<p>{escape(text)}.</p>" for text in _energies(found))
    assumed = "".join(f"<li>{escape(text)}</li>" for text in _assumed(found))
    style = "body{font-family:sans-serif;max-width:70em;margin:2em auto}td,th{padding:.2em .8em;text-align:left}"
    head = f"<meta charset='utf-8'><title>{escape(application)}: which machine</title><style>{style}</style>"
    return (
        f"<!doctype html><html lang='en'><head>{head}</head><body><h1>Which machine</h1>{''.join(parts)}{energies}"
        f"<h2>Assumed, learned and to be known</h2><ul>{assumed}</ul></body></html>\n"
    )


def _insufficient(found: Sequence[Offer]) -> list[str]:
    """Why data are insufficient on machines whose times have a question mark."""
    return [f"?: insufficient on {each.machine}: {each.reason}" for each in found if each.status != "ok"]


def _assumed(found: Sequence[Offer]) -> list[str]:
    """What is assumed of each machine, and what else is to be known, each once."""
    return list(dict.fromkeys(f"{each.machine}: {text}" for each in found for text in each.assumed if text))


def _joules(offer: Offer) -> str:
    """Energy with its interval."""
    assert offer.energy is not None
    ends = [] if offer.energy_interval is None else [format_si(end, "J") for end in offer.energy_interval]
    return f"{format_si(offer.energy, 'J')}{f' ({ends[0]} .. {ends[1]})' if ends else ''}"


def _places(found: Sequence[Offer]) -> list[tuple[float, ...]]:
    return list(dict.fromkeys(tuple(each.configuration.values()) for each in found))


def _cells(found: Sequence[Offer]) -> list[list[str]]:
    """The cells of one table."""
    seconds = metric("time")
    lines = []
    for each in found:
        known = each.seconds == each.seconds
        mark = "" if each.status == "ok" else "?"
        lines.append(
            [
                each.machine,
                f"{seconds.format(each.seconds)}{mark}" if known else "?",
                f"{seconds.format(each.lower)} .. {seconds.format(each.upper)}" if known else "",
                str(each.nodes),
                f"{each.node_hours:.3g}" if known else "",
                "" if each.energy is None or not known else _joules(each),
                "" if each.cost is None or not known else f"{each.cost:.3g}",
                ", ".join(each.changed),
            ]
        )
    return lines
