"""HPCToolkit databases: ``experiment.xml`` with ``.metric-db`` files, or (since 2022) ``meta.db`` with ``profile.db``.

Every sample belongs to a statement; a kernel is the call path of procedures (inlined ones too) around it. Values of
ranks are in the binary files, node by node; where those are missing only the sums over ranks are known.

Source: document type definition inside ``experiment.xml``; header of ``.metric-db``: 18 bytes "HPCPROF-metricdb__",
5 of version, 1 of byte order (``b``), then numbers of nodes and metrics (int32) and float64 values, node by node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TypeVar
from xml.parsers import expat

import numpy as np

from ranksight.core import limits
from ranksight.core.arrays import Array, Ints
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS
from ranksight.core.files import regular_file
from ranksight.core.meaning import SUM
from ranksight.core.reading import READERS, Reading
from ranksight.core.records import dataclass
from ranksight.core.xml import parse
from ranksight.counters.names import unit_scale
from ranksight.counters.readers._assemble import build
from ranksight.counters.readers._calltree import CallPaths
from ranksight.counters.readers._files import LARGEST, counter, damaged, head_of, head_text, inside
from ranksight.counters.readers._hpctoolkit_db import read_store

_Key = TypeVar("_Key", int, str)
_FILE = re.compile(r"-(\d{1,9})-(\d+)-[0-9a-fA-F]+-\d+-\d+\.metric-db$")
_MAGIC = b"HPCPROF-metricdb__"
_HEADER = 32
_UNIT = re.compile(r"(?:\((?P<unit>\w+)\))?(?::\w+)?$")
_TIMES = {"CPUTIME": "time", "REALTIME": "time", "WALLCLOCK": "time"}
_PROCEDURES = frozenset({"PF", "Pr", "P"})
_STATEMENTS = frozenset({"S", "C"})


@dataclass(slots=True)
class _Tree:
    """What experiment.xml says."""

    metrics: dict[str, str] = field(default_factory=dict)
    """Number of a summed metric -> name."""
    stored: dict[int, str] = field(default_factory=dict)
    """Place in the binary files -> name."""
    kernels: list[str] = field(default_factory=list)
    nodes: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    kernel: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Node and place of the kernel of every statement."""
    sums: dict[str, dict[int, float]] = field(default_factory=dict)
    """Summed metric -> node -> value."""


class HpcToolkit:
    """Reads HPCToolkit's databases; see the module's text."""

    text = "HPCToolkit: experiment.xml with .metric-db, or meta.db with profile.db; call paths, all metrics"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path` is a database folder, or its experiment.xml."""
        if path.is_dir():
            if (path / "meta.db").is_file() and (path / "profile.db").is_file():
                return True
            return self.recognises(path / "experiment.xml", head_of(path / "experiment.xml"))
        return path.suffix == ".xml" and "<!DOCTYPE HPCToolkitExperiment" in head_text(head)

    def read(self, path: Path) -> Iterator[Reading]:
        """Read a database.

        Raises InputError, naming file and line, where it is damaged, of a version that is not read, or lacks a rank.
        """
        folder = path if path.is_dir() else path.parent
        file = path / "experiment.xml" if path.is_dir() else path
        if not file.exists() and (folder / "meta.db").exists():
            yield _from_store(folder)
            return
        regular_file(file)
        tree = _parse(file)
        stores = [store for store in inside(folder) if _FILE.search(store.name)]
        yield _ranked(file, tree, stores) if stores and tree.stored else _summed(file, tree)


READERS.register("hpctoolkit")(HpcToolkit())


def _from_store(folder: Path) -> Reading:
    store = read_store(folder)
    count, threads = len(store.kernels), len(store.rows)
    columns: dict[str, Array] = {}
    origin: dict[str, str] = {}
    for full, values in store.columns.items():
        metric = _metric(full)
        columns[metric.name] = values.ravel() * metric.scale
        origin[metric.name] = f"sampled ({full})"
    return build(
        folder,
        np.tile(np.array(store.kernels, dtype=object), threads),
        np.repeat([rank for rank, _ in store.rows], count),
        columns,
        threads=np.repeat(np.array([thread for _, thread in store.rows], dtype=object), count),
        origin=origin,
    )


def _parse(file: Path) -> _Tree:
    tree = _Tree()
    calls = CallPaths(str(file))
    statements: list[tuple[int, int]] = []
    procedures: dict[str, str] = {}
    scopes: list[int] = []
    elements: list[tuple[str, int]] = []
    parser = expat.ParserCreate()

    def fail(what: str, remedy: str = "the file is damaged") -> InputError:
        return InputError(f"{file}:{parser.CurrentLineNumber}: {what}", remedy)

    def entity(*_: object) -> None:
        raise fail("entities are not part of this format", "the file is not HPCToolkit's")

    def begin(tag: str, attributes: dict[str, str]) -> None:
        node = -1
        if tag == "Metric":
            tree.metrics[attributes["i"]] = attributes["n"]
        elif tag == "MetricDB":
            tree.stored[int(attributes["db-id"])] = attributes["n"]
        elif tag == "Procedure":
            procedures[attributes["i"]] = attributes["n"]
        elif tag in _PROCEDURES and "i" in attributes:
            node = int(attributes["i"])
            own = procedures.get(attributes.get("n", ""), attributes.get("n", "(unnamed)"))
            scopes.append(calls.number(scopes[-1] if scopes else CallPaths.ROOT, own))
            if len(elements) > limits.DEPTH:
                raise fail(f"the call tree is more than {limits.DEPTH} deep")
        elif tag in _STATEMENTS and "i" in attributes:
            node = int(attributes["i"])
            if not scopes:
                raise fail("a statement is outside of all procedures")
            if not 0 <= node < limits.VALUE:
                raise fail(f"a statement is number {attributes['i'][:20]}")
            statements.append((node, scopes[-1]))
        elif tag == "M" and elements and elements[-1][0] in _STATEMENTS:
            tree.sums.setdefault(attributes["n"], {})[elements[-1][1]] = counter(
                str(file), attributes["v"], f"metric {attributes['n']}"
            )
        elements.append((tag, node))

    def end(tag: str) -> None:
        if elements.pop()[0] in _PROCEDURES and scopes and tag in _PROCEDURES:
            scopes.pop()

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.EntityDeclHandler = entity
    try:
        with file.open("rb") as stream:
            parse(parser, stream.read, str(file), limits.XML)
    except expat.ExpatError as error:
        raise damaged(f"{file}:{error.lineno}: {expat.ErrorString(error.code)}") from error
    except (KeyError, ValueError) as error:
        raise fail(f"{type(error).__name__} {error}") from error
    if not statements or not tree.metrics:
        raise InputError(f"{file} holds no call paths or no metrics", "was hpcprof run to its end?")
    if sorted(tree.stored) != list(range(len(tree.stored))):
        raise damaged(f"{file} does not number stored metrics 0 to {len(tree.stored) - 1}")
    tree.kernels, places = calls.kernels()
    tree.nodes, paths = np.array(statements, dtype=np.int64).T
    tree.kernel = places[paths]
    return tree


def _ranked(file: Path, tree: _Tree, stores: Sequence[Path]) -> Reading:
    own = _exclusive(tree.stored)
    if not own:
        raise InputError(f"{file} has no exclusive metric", "was the profile made with call paths?")
    count = len(tree.kernels)
    columns: dict[str, list[Array]] = {metric.name: [] for metric in own.values()}
    ranks, threads = [], []
    for store in stores:
        values = _values(store, len(tree.stored))
        if tree.nodes.max() > len(values) or tree.nodes.min() < 1:
            raise damaged(f"{store} has {len(values)} nodes, experiment.xml {tree.nodes.max()}")
        named = _FILE.search(store.name)
        assert named is not None  # it is one of these
        ranks.append(int(named[1]))
        threads.append(named[2])
        for place, metric in own.items():
            added = np.bincount(tree.kernel, weights=values[tree.nodes - 1, place], minlength=count)
            columns[metric.name].append(np.asarray(added * metric.scale, dtype=np.float64))
    return build(
        file,
        np.tile(np.array(tree.kernels, dtype=object), len(stores)),
        np.repeat(ranks, count),
        {name: np.concatenate(parts) for name, parts in columns.items()},
        threads=np.repeat(np.array(threads, dtype=object), count),
        origin={metric.name: f"sampled ({metric.given})" for metric in own.values()},
    )


def _summed(file: Path, tree: _Tree) -> Reading:
    columns: dict[str, Array] = {}
    origin = {}
    order = np.argsort(tree.nodes, kind="stable")
    sorted_nodes = tree.nodes[order]
    for number, metric in _exclusive(tree.metrics).items():
        if (len(columns) + 1) * len(tree.kernels) * 8 > limits.PROFILE_TABLE:
            raise InputError(
                f"{file} holds more than {len(columns)} metrics of {len(tree.kernels)} call paths",
                "filter it with hpcprof",
            )
        given = tree.sums.get(number, {})
        nodes = np.fromiter(given, dtype=np.int64, count=len(given))
        # A node may stand there more than once, in several call paths.
        first, last = np.searchsorted(sorted_nodes, nodes), np.searchsorted(sorted_nodes, nodes, side="right")
        values = np.repeat(np.fromiter(given.values(), dtype=np.float64, count=len(given)), last - first)
        at = np.arange(len(values)) + np.repeat(first - np.cumsum(last - first) + (last - first), last - first)
        found = np.bincount(tree.kernel[order[at]], weights=values, minlength=len(tree.kernels))
        columns[metric.name] = np.asarray(found * metric.scale, dtype=np.float64)
        origin[metric.name] = f"sampled ({metric.given})"
    return build(
        file,
        tree.kernels,
        [ALL_RANKS] * len(tree.kernels),
        columns,
        origin=origin,
        configuration={},
        meaning=SUM,
        notes=("its folder holds no .metric-db: values are sums over all ranks",),
    )


@dataclass(frozen=True, slots=True)
class _Metric:
    given: str  # the name that it has there, without unit, statistic and scope
    name: str  # ours
    scale: float  # to SI units


def _exclusive(named: Mapping[_Key, str]) -> dict[_Key, _Metric]:
    """The exclusive ones, ``REALTIME (usec):Sum (E)``, of metrics by their full names; the first clock is the time."""
    found: dict[_Key, _Metric] = {}
    for key, full in named.items():
        if full.endswith("(E)"):
            metric = _metric(full.removesuffix("(E)").rstrip())
            taken = metric.name in {one.name for one in found.values()}
            found[key] = replace(metric, name=metric.given) if taken else metric
    return found


def _metric(full: str) -> _Metric:
    """A metric by its name, unit and statistic: ``REALTIME (usec):Sum``."""
    found = _UNIT.search(full)
    assert found is not None  # it matches the empty end
    given = full[: found.start()].strip()
    scale = unit_scale(found["unit"]) if found["unit"] else None
    return _Metric(given, _TIMES.get(given, given), 1.0 if scale is None else scale)


def _values(store: Path, metrics: int) -> Array:
    """Values of a .metric-db, nodes x metrics."""
    regular_file(store)
    head = head_of(store, _HEADER)
    if len(head) < _HEADER or not head.startswith(_MAGIC):
        raise damaged(f"{store} is not a .metric-db of HPCToolkit")
    order = ">" if head[23:24] == b"b" else "<"
    nodes, width = (int(number) for number in np.frombuffer(head[24:32], dtype=f"{order}i4"))
    if width != metrics or nodes < 1 or store.stat().st_size != _HEADER + 8 * nodes * width:
        raise damaged(
            f"{store} announces {nodes} nodes x {width} metrics, {metrics} metrics are described, and it has "
            f"{store.stat().st_size} bytes"
        )
    values: Array = np.fromfile(store, dtype=f"{order}f8", offset=_HEADER).reshape(nodes, width)
    if (values < 0).any() or not np.isfinite(values).all() or (values >= LARGEST).any():
        raise damaged(f"{store} holds negative or endless values")
    return values.astype(np.float64)
