"""A million models of one parameter, with intervals and predictions: time and memory, in one process and in two."""

from __future__ import annotations

from benchmarks.settings import Settings, Skipped
from benchmarks.speed import pieces_table, row_of_pieces

TITLE = "A million models"
COUNT = 1_000_000


def run(settings: Settings) -> str:
    """Table of seconds and memory; takes minutes."""
    if settings.quick:
        raise Skipped("it takes minutes and has no quick form")
    return pieces_table([row_of_pieces(COUNT, jobs) for jobs in (1, 2)])
