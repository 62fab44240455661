"""Patterns that share a call site, distinguished by the tags of their messages.

A program whose phases all communicate through one function makes one kernel's operation of several patterns: a halo, a
transposition, a ring. An event trace records the tag of every message; messages of tags with the same partners are one
pattern, and each pattern has rules of its own (Panadero et al. 2015, section 2.2.1: the general equations of a phase).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ranksight.comm.costs.fabric import ceil_log2

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 32
"""Patterns of one operation beyond which tags number something else than patterns."""
CALLED = ["kernel", "rank", "operation", "comm_size", "size_class", "peer"]
TAGGED = frozenset({"kernel", "rank", "operation", "comm_size", "peer", "bytes", "tag"})
"""Columns of an event trace that records the tags of messages."""


def with_tags(peers: pd.DataFrame, events: pd.DataFrame | None) -> pd.DataFrame:
    """`peers` with a column ``tag``, a row for each; unchanged where the events do not hold every message.

    `peers`: :data:`CALLED`, ``count`` and ``bytes``. `events`: :data:`TAGGED`, a row a transfer; rows without a peer
    are calls.
    """
    if events is None:
        return peers
    moved = events[(events["peer"] >= 0).fillna(False).to_numpy(dtype=bool) & events["tag"].notna().to_numpy()]
    size = moved["bytes"].to_numpy(dtype=np.int64)
    sums = moved.assign(
        size_class=np.where(size > 0, np.int64(1) << ceil_log2(size), 0),
        peer=moved["peer"].astype(np.int64),
        tag=moved["tag"].astype(np.int64),
    ).astype({"kernel": str, "operation": str})
    sums = sums.groupby([*CALLED, "tag"])["bytes"].agg(count="size", bytes="sum").reset_index()
    # A trace that was cut off has the tags of its beginning only.
    wanted, listed = (table.groupby(CALLED)[["count", "bytes"]].sum().astype(np.int64) for table in (peers, sums))
    return sums if wanted.equals(listed) else peers


def tag_classes(peers: Mapping[int, pd.DataFrame], ranks: Mapping[int, int]) -> list[tuple[int, ...]]:
    """Tags of one operation by pattern: those of a class have the same partners in every run.

    `peers`: by configuration ``rank``, ``peer`` and, where it is known, ``tag``. `ranks`: of each configuration.

    One class, empty, where tags do not help: they are not known everywhere, all have the same partners, or they number
    something else (they are others at every number of ranks, or too many).
    """
    together: list[tuple[int, ...]] = [()]
    if not peers or any("tag" not in table.columns for table in peers.values()):
        return together
    links = {place: table[["tag", "rank", "peer"]].drop_duplicates() for place, table in peers.items()}
    tags = {place: frozenset(table["tag"].unique().tolist()) for place, table in links.items()}
    rising = sorted(links, key=lambda place: ranks[place])
    for fewer, more in itertools.pairwise(rising):
        if not tags[fewer] <= tags[more]:
            return together
    # What the largest run alone has may be the number of a rank or of a message.
    counts = sorted({ranks[place] for place in links})
    if len(counts) > 1 and len({tags[place] for place in links if ranks[place] in counts[-2:]}) > 1:
        return together
    partners: dict[int, list[bytes]] = {tag: [] for tag in sorted(tags[rising[-1]])}
    for place in rising:
        codes = (links[place]["rank"] * ranks[place] + links[place]["peer"]).groupby(links[place]["tag"])
        links_of = {int(tag): np.sort(part.to_numpy(dtype=np.int64)).tobytes() for tag, part in codes}
        for tag, seen in partners.items():
            seen.append(links_of.get(tag, b""))
    classes: dict[tuple[bytes, ...], list[int]] = {}
    for tag, seen in partners.items():
        classes.setdefault(tuple(seen), []).append(tag)
    if not 1 < len(classes) <= MOST_CLASSES:
        return together
    return [tuple(members) for members in classes.values()]
