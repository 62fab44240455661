"""Placement files: the node of every rank.

One line a rank, ``RANK NODE``; nodes are whole numbers from 0, as the topology numbers them. ``#`` begins a comment.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ranksight.core import limits
from ranksight.core.arrays import Ints
from ranksight.core.errors import InputError, readable

_LINE = re.compile(r"([0-9]{1,9})[\s,:=]+([0-9]{1,9})")


def read_places(path: Path) -> Ints:
    """The node of each rank, (P,); InputError names the line of a rank that is there twice, or the rank that lacks."""
    with readable(path, "give a file with a line 'RANK NODE' for every rank"), path.open("rb") as stream:
        content = stream.read(limits.TOML + 1)
    if len(content) > limits.TOML:
        raise InputError(f"{path} is larger than {limits.TOML} bytes", "give a line 'RANK NODE' for every rank")
    where: dict[int, tuple[int, int]] = {}
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            raise InputError(f"{path}:{number}: {text[:60]!r} is not 'RANK NODE'", "such as '17 2': rank 17 on node 2")
        rank, node = int(match[1]), int(match[2])
        if rank in where:
            raise InputError(
                f"{path}:{number}: rank {rank} is placed twice, first in line {where[rank][1]}", "give each rank a node"
            )
        where[rank] = node, number
    missing = next((rank for rank in range(len(where)) if rank not in where), None)
    if not where or missing is not None:
        raise InputError(f"{path} does not place rank {missing or 0}", "give a line for every rank from 0")
    return np.array([where[rank][0] for rank in range(len(where))], dtype=np.int64)
