"""Checks of readings before they are stored: times of a program that are none, and what callers look for themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ranksight.core.experiment import COUNTER_KEYS, WHOLE
from ranksight.core.reading import Reading
from ranksight.core.units import CYCLE, LEAST, in_full


class Check:
    """What every reading goes through once its values are those of a rank; this one finds nothing."""

    def __call__(self, reading: Reading) -> Reading:
        """The reading, with what was found among its notes."""
        return reading

    def forget(self, texts: Iterable[str]) -> frozenset[str]:
        """Find no longer what was found of values that turned out to mean something else; all that is no longer."""
        return frozenset(texts)


def timed(reading: Reading, path: Path) -> tuple[Reading | None, str]:
    """The reading without a time of the whole program that is none, None where it has nothing else, and why.

    A program that ends takes time: 0 s, and what is next to it, are the mark of a run that failed, or that nobody
    timed. Less than a cycle of a processor is kept with a note: its unit may be another.
    """
    table = reading.counters
    if table is None or table.empty:
        return reading, ""
    rows = table["kernel"] == WHOLE
    rows = rows if rows.any() else ~rows
    zero = [name for name in ("time", "wall_time") if name in table and (table.loc[rows, name] < LEAST).all()]
    where = ", ".join(f"{name} = {in_full(value)}" for name, value in reading.configuration.items())
    if not zero:
        most = float(table.loc[rows, "time"].max()) if "time" in table else CYCLE
        if not most < CYCLE:
            return reading, ""
        note = f"{path.name}: the whole program takes {most:g} s at {where}, less than a cycle: is it in another unit?"
        return replace(reading, notes=(*reading.notes, note)), ""
    most = float(table.loc[rows, zero[0]].max())
    what = f"{path.name}: the whole program takes {most:g} s at {where}: the run failed, or was not timed"
    others = [name for name in table.columns if name not in (*COUNTER_KEYS, *zero)]
    if reading.messages is None and not (table[others] > 0).any(axis=None):
        return None, f"{what}, and is left out"
    note = f"{what}; the time is left out"
    provenance = {name: text for name, text in reading.provenance.items() if name not in zero}
    kept = replace(reading, counters=table[[*COUNTER_KEYS, *others]], provenance=provenance, wall_time=None)
    if not others:
        kept = replace(kept, counters=None)
    return kept, note
