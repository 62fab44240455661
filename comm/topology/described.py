"""Topologies as TOML tables: ``[network.topology]`` of a platform file, a file of its own, or one that ships.

=================== ===========================================================================================
kind                ``fat tree``, ``dragonfly`` or ``torus``
source              where the values come from; ``estimate = true`` where they were inferred
nodes_per_switch    fat tree: nodes below a switch, of each level below the top
nodes               fat tree: all nodes
nodes_per_router    dragonfly; with ``routers_per_group`` and ``groups``
routing             dragonfly: ``minimal`` or ``adaptive``; both are considered where it is left out. Fat tree:
                    ``static`` (the target decides which of several links up is taken) or ``adaptive`` (default)
extents             torus: nodes along each dimension; the last varies fastest
link_bandwidth      B/s of a link each way
taper               bandwidth of the nodes below a cut over that of the cut: a number, ``{ at_least, at_most }``, or
                    one of these for each level; unknown where left out, and then an interval
adapters            of a node, which its ranks share (default 1)
message_rate        messages a second of an adapter
sharing             ``equal`` (default), or ``round trip`` where flow control gives less of a link to messages of longer
                    round trips, as TCP does
hop_latency         seconds of each switch beyond the first: a number, or ``from``, ``alpha``, ``beta`` by message size
=================== ===========================================================================================

``system = "NAME"`` alone takes one that ships.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from ranksight.comm.network import Piecewise
from ranksight.comm.topology.shape import EQUAL, KINDS, Taper, Topology
from ranksight.core.errors import InputError
from ranksight.core.toml import check_known, decode, find, shipped

SYSTEMS = "ranksight.platforms.systems"
SIZES = {
    "fat tree": ("nodes_per_switch", "nodes"),
    "dragonfly": ("nodes_per_router", "routers_per_group", "groups"),
    "torus": ("extents",),
}
"""What states the size of each kind."""
COMMON = ("kind", "source", "estimate", "link_bandwidth", "adapters", "message_rate", "sharing", "hop_latency")
SEE = "docs/network.md shows a table of each kind"
MOST = 1 << 40


def names() -> tuple[str, ...]:
    """Names of the systems that ship with the package, sorted."""
    return shipped(SYSTEMS)


def load(name_or_path: str | os.PathLike[str]) -> Topology:
    """The topology of a system that ships, or of a TOML file; InputError where there is none, or a value is wrong."""
    content, origin = find(name_or_path, SYSTEMS, "topology")
    table = decode(content, origin, SEE)
    if isinstance(table.get("network"), dict):  # a whole platform file
        table = table["network"].get("topology", {})
    else:
        table.pop("system", None)
        table.pop("machines", None)
    return from_dict(table, origin, os.path.basename(os.fspath(name_or_path)).removesuffix(".toml"))


def from_dict(content: object, where: str = "network.topology", name: str = "") -> Topology:
    """From plain data; see the module. Raises InputError, naming `where` and the key, for what is wrong in it."""
    if not isinstance(content, Mapping):
        raise InputError(f"{where} is not a table", SEE)
    if set(content) == {"system"}:
        return load(_text(content["system"], where, "system"))
    kind = content.get("kind")
    if kind not in KINDS:
        raise InputError(f"{where}: kind is {kind!r:.60}", f"known: {', '.join(KINDS)}")
    more = {"fat tree": ("taper", "routing"), "dragonfly": ("taper", "routing"), "torus": ()}[kind]
    check_known(content, (*COMMON, *SIZES[kind], *more), where)
    for key in ("link_bandwidth", "source", *SIZES[kind]):
        if key not in content:
            raise InputError(f"{where}: {key} is missing", SEE)
    _text(content["source"], where, "source")
    rate = content.get("message_rate")
    try:
        return Topology(
            kind=kind,
            extents=_extents(content, kind, where),
            link_bandwidth=_number(content["link_bandwidth"], where, "link_bandwidth", least=0.0),
            tapers=_tapers(content["taper"], where) if "taper" in content else (),
            adapters=_whole(content.get("adapters", 1), where, "adapters"),
            message_rate=None if rate is None else _number(rate, where, "message_rate"),
            hop_latency=_hop_latency(content.get("hop_latency", 0.0), where),
            routing=_text(content["routing"], where, "routing") if "routing" in content else "",
            sharing=_text(content.get("sharing", EQUAL), where, "sharing"),
            name=name,
        )
    except InputError as error:
        raise error if error.what.startswith(where) else InputError(f"{where}: {error.what}", error.remedy) from None


def to_dict(topology: Topology) -> dict[str, Any]:
    """As plain data that :func:`from_dict` reads."""
    sizes: dict[str, Any] = dict(zip(SIZES[topology.kind], topology.extents, strict=False))
    if topology.kind == "fat tree":
        sizes = {"nodes_per_switch": list(topology.extents[:-1]), "nodes": topology.extents[-1]}
    elif topology.kind == "torus":
        sizes = {"extents": list(topology.extents)}
    found = {"kind": topology.kind, "source": topology.name or "stated", **sizes}
    found |= {name: getattr(topology, name) for name in ("link_bandwidth", "adapters", "hop_latency")}
    if isinstance(topology.hop_latency, Piecewise):
        found["hop_latency"] = topology.hop_latency.to_dict()
    if topology.tapers:
        found["taper"] = [{"at_least": low, "at_most": high} for low, high in topology.tapers]
    for name in ("message_rate", "routing", "sharing"):
        if getattr(topology, name) not in (None, "", EQUAL):
            found[name] = getattr(topology, name)
    return found


def _extents(content: Mapping[str, Any], kind: str, where: str) -> tuple[int, ...]:
    found: list[int] = []
    for key in SIZES[kind]:
        value = content[key]
        found += [_whole(each, where, key) for each in (value if isinstance(value, list) else [value])]
    return tuple(found)


def _tapers(value: object, where: str) -> tuple[Taper, ...]:
    found = []
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, Mapping):
            if set(each) != {"at_least", "at_most"}:
                raise InputError(f"{where}: taper has {', '.join(map(str, each))}", "give at_least and at_most")
            found.append((_number(each["at_least"], where, "taper"), _number(each["at_most"], where, "taper")))
        else:
            found.append((_number(each, where, "taper"),) * 2)
    return tuple(found)


def _hop_latency(value: object, where: str) -> float | Piecewise:
    if isinstance(value, Mapping):
        return Piecewise.from_dict(value, f"{where}.hop_latency")
    return _number(value, where, "hop_latency", least=0.0)


def _number(value: object, where: str, key: str, least: float | None = None) -> float:
    wrong = isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value)
    if wrong or value > 1e18 or (value <= 0 if least is None else value < least):  # type: ignore[operator]
        raise InputError(f"{where}: {key} is {value!r:.60}", "give a number above 0, at most 1e18")
    return float(value)  # type: ignore[arg-type]


def _whole(value: object, where: str, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST:
        raise InputError(f"{where}: {key} is {value!r:.60}", "give a whole number from 1")
    return value


def _text(value: object, where: str, key: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 1000:
        raise InputError(f"{where}: {key} is {value!r:.60}", "give a line of text")
    return value
