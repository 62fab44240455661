"""Experiments whose messages follow known rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest

from ranksight.comm.patterns.rule import Links, Rule
from ranksight.core.experiment import Experiment, Run

Sizes = Callable[[int, int, float], float]
"""Bytes of a message from the index of its rule, the ranks and the size."""


def message_tables(
    rules: Sequence[Rule], p: int, size: float, bytes_of: Sizes, calls: int = 3
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables ``messages`` and ``peers`` of a kernel ``exchange`` that sends along the rules, and of a ``sum``."""
    parts = []
    for i, rule in enumerate(rules):
        links: Links = rule.links(p)
        part = pd.DataFrame({"rank": links.source, "peer": links.target})
        each = round(bytes_of(i, p, size))
        parts.append(
            part.assign(count=calls, bytes=calls * each, size_class=0 if each == 0 else 1 << (each - 1).bit_length())
        )
    peers = pd.concat(parts).assign(kernel="exchange", operation="Isend", comm_size=p)
    keys = ["kernel", "rank", "operation", "comm_size", "size_class"]
    peers = peers.groupby([*keys, "peer"])[["count", "bytes"]].sum().reset_index()
    sends = (
        peers.groupby(keys)[["count", "bytes"]]
        .sum()
        .join(peers.groupby(keys)["peer"].nunique().rename("peers"))
        .reset_index()
    )
    total = pd.DataFrame(
        {
            "kernel": "sum",
            "rank": range(p),
            "operation": "Allreduce",
            "comm_size": p,
            "size_class": 8,
            "count": 5,
            "bytes": 40,
            "peers": 0,
        }
    )
    return pd.concat([sends, total], ignore_index=True).assign(seconds=1e-6), peers


@pytest.fixture
def experiment_of(tmp_path: Path) -> Callable[..., Experiment]:
    """Writes an experiment of traced runs."""

    def write(
        rules: Sequence[Rule],
        ranks: Sequence[int],
        sizes: Sequence[float] = (8,),
        bytes_of: Sizes = lambda i, p, n: 8 * n * n,
    ) -> Experiment:
        experiment = Experiment.create(tmp_path / f"e{len(list(tmp_path.iterdir()))}", "made-up", ["ranks", "size"])
        for p in ranks:
            for size in sizes:
                messages, peers = message_tables(rules, p, size, bytes_of)
                whole = pd.DataFrame({"kernel": "(whole program)", "rank": range(p), "messages": 1.0})
                experiment.add(
                    Run({"ranks": p, "size": size}, collector="pmpi"), whole, messages, tables={"peers": peers}
                )
        return experiment

    return write
