"""CUBE4 profiles (.cubex) of Score-P, Scalasca and others, by pycubexr: call path x rank x metric, exclusive.

A metric stored inclusively is made exclusive here for all call paths at once: own value minus the children's. An
unsigned counter whose children exceed it (counters of overlapping events do that) is 0 there, as in the CUBE library.
Minima, maxima and distributions of single visits do not add and are left out.

Source: CUBE 4 file format as documented with pycubexr; metrics of Score-P (``scorep_metrics.html``).
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ranksight.core import limits
from ranksight.core.arrays import Array, Ints
from ranksight.core.cube import locations, opened
from ranksight.core.errors import InputError
from ranksight.core.files import regular_file
from ranksight.core.places import tables_of
from ranksight.core.reading import READERS, Reading
from ranksight.core.records import dataclass
from ranksight.counters.names import unit_scale
from ranksight.counters.readers._assemble import build
from ranksight.counters.readers._calltree import CallPaths
from ranksight.counters.readers._files import damaged

_MEMBER = re.compile(rb"(?:\./)?(?:anchor\.xml|remapping\.spec|\d+\.(?:data|index)|[\w./-]+)\0")
_ADDABLE = re.compile(
    r"DOUBLE|FLOAT|U?INT\d*|(?:UN)?SIGNED .*INT(?:EGER)?|INTEGER|SHORT INT|(?:UN)?SIGNED INT(?:EGER)?"
)


@dataclass(frozen=True, slots=True)
class _Tree:
    """Call paths in file order."""

    paths: list[str]  # names; a region called from two places of its caller is one
    kernel: Ints  # for each node of the file its path's place among `paths`
    parents: Ints  # for each node its caller's place; -1 at the root
    place: dict[int, int]  # where each node's id stands
    defined: dict[str, pd.DataFrame]  # the table of places that the regions are defined in


class Cube:
    """Reads CUBE4 archives; see the module's text."""

    text = "CUBE4 (.cubex) of Score-P and Scalasca: call paths, all metrics (extra: cube)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path` is a tar archive with a CUBE's anchor."""
        if head[257:262] != b"ustar" or _MEMBER.match(head[:101] + b"\0") is None:
            return False
        if path.suffix == ".cubex":
            return True
        try:
            with tarfile.open(path, "r:") as archive:
                return any(member.name.removeprefix("./") == "anchor.xml" for member in archive)
        except (tarfile.TarError, OSError):
            return False

    def read(self, path: Path) -> Iterator[Reading]:
        """Read one archive.

        Raises InputError when it is damaged, holds paths that lead out of it, or none of its metrics can be read;
        ToolError when pycubexr is not installed.
        """
        regular_file(path)
        with opened(path) as cube:
            reading = _read(path, cube)
        yield reading


READERS.register("cube")(Cube())


def _read(path: Path, cube: Any) -> Reading:
    tree = _tree(path, cube)
    locations, ranks = _locations(path, cube)
    width = len(locations)
    columns: dict[str, Array] = {}
    missing: list[str] = []
    notes: list[str] = []
    for metric in cube.all_metrics():
        if not _ADDABLE.fullmatch(str(metric.data_type)):
            notes.append(f"{metric.name} ({metric.data_type}) does not add over call paths: left out")
            continue
        if len(tree.parents) * width * 8 > limits.PROFILE_VALUES:
            raise InputError(f"{path} has {len(tree.parents)} paths x {width} locations", "reduce it with cube_cut")
        try:
            stored = cube.get_metric_values(metric, cache=False)
        except Exception as error:  # MissingMetricError is pycubexr's; a damaged member raises anything
            if type(error).__name__ != "MissingMetricError":
                raise damaged(
                    f"{path}: values of metric {metric.name} cannot be read: {type(error).__name__} {error}"[:300]
                ) from error
            missing.append(metric.name)
            continue
        columns[metric.name] = _added(_exclusive(metric, stored, tree, width, notes), tree.kernel).ravel()
    if missing:
        notes.append(f"declared but without values: {', '.join(missing)}")
    if not columns:
        raise InputError(f"{path} has no metric with values", "was the profile written completely?")
    kernels = pd.Series(tree.paths).array.repeat(width)
    threads = np.tile(locations, len(tree.paths)) if len(set(ranks.tolist())) < width else None
    return build(
        path,
        kernels,
        np.tile(ranks, len(tree.paths)),
        columns,
        threads=threads,
        distinct=True,
        notes=notes,
        tables=tree.defined,
    )


def _tree(path: Path, cube: Any) -> _Tree:
    calls = CallPaths(str(path))
    paths: list[int] = []
    parents: list[int] = []
    place: dict[int, int] = {}
    regions: list[tuple[str, int]] = []
    todo = [(node, -1) for node in reversed(cube.get_root_cnodes())]
    while todo:
        node, parent = todo.pop()
        at = len(paths)
        region = cube.get_region(node)
        regions.append((str(region.mod or ""), max(0, int(region.begin or 0))))
        own = region.name or "(unnamed)"
        if node.parameters:
            own += f"({', '.join(f'{key}={value}' for key, value in node.parameters.items())})"
        paths.append(calls.number(CallPaths.ROOT if parent < 0 else paths[parent], own))
        parents.append(parent)
        place[node.id] = at
        todo.extend((child, at) for child in reversed(node.get_children()))
    if not paths:
        raise InputError(f"{path} has no call path", "was the profile written completely?")
    kernels, places = calls.kernels()
    kernel = places[paths]
    defined = tables_of((kernels[k], *region) for k, region in zip(kernel.tolist(), regions, strict=True))
    return _Tree(kernels, kernel, np.array(parents, dtype=np.int64), place, defined)


def _locations(path: Path, cube: Any) -> tuple[NDArray[np.object_], Ints]:
    """Name and rank of every location, in the order of the values."""
    names, ranks = zip(*locations(path, cube), strict=True)
    return np.array([f"{name} ({at})" for at, name in enumerate(names)], dtype=object), np.array(ranks, dtype=np.int64)


def _exclusive(metric: Any, stored: Any, tree: _Tree, width: int, notes: list[str]) -> Array:
    """Values of one metric over call path x location, exclusive, in SI units."""
    raw = np.asarray(stored.values).reshape(-1, width)
    values = np.zeros((len(tree.parents), width))
    rows = np.array([tree.place[node] for node in stored.cnode_indices], dtype=np.int64)
    values[rows] = raw[np.fromiter(stored.cnode_indices.values(), dtype=np.int64)]
    if metric.metric_type == "INCLUSIVE":
        inner = tree.parents >= 0
        children = _added(values[inner], tree.parents[inner], len(values))
        own = values - children
        negative = own < 0
        # rounding of times is not a finding, an unsigned counter below its children's sum is
        if (own[negative] < -1e-6 * values[negative]).any():
            notes.append(f"{metric.name} of callees exceeds the caller's in {int(negative.sum())} places: 0 there")
        values = np.where(negative, 0.0, own)
    scale = unit_scale(str(metric.units or ""))
    if scale is None:
        notes.append(f"{metric.name} is in {metric.units}, as stored")
    return values * (1.0 if scale is None else scale)


def _added(values: Array, group: Ints, size: int = 0) -> Array:
    """Sums of the rows of `values` by group; `size` is the number of groups, where the last may be empty."""
    if len(group) and (np.diff(group) == 1).all() and group[0] == 0 and size in (0, len(group)):
        return values
    sums = np.zeros((size or int(group.max()) + 1, values.shape[1]))
    if len(group):
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        sums[group[order][starts]] = np.add.reduceat(values[order], starts, axis=0)
    return sums
