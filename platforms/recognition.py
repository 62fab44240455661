"""Find the description of a node, by its processor's name and the layout of its cores."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from ranksight.platforms.files import load, names
from ranksight.platforms.platform import Layout, Platform

_NOISE = re.compile(r"\((?:r|tm)\)|\b(?:cpu|processor)\b")


def described(model: str, layout: Layout) -> Platform | None:
    """The description of a node.

    The processor's name and its number of cores must agree: a core design (``Neoverse V2``) is in several machines, and
    a virtual machine has a part of one. How many sockets and domains they form is a node's own affair, see
    :func:`options`. `model`: as the system names the processor: :attr:`ranksight.platforms.topology.Topology.model`.

    Returns
    -------
    Platform or None
        Among several the one whose domains are those of `layout`, where one is; None where none is described.
    """
    found = [each for each in named(model) if each.layout.cores_per_socket == layout.cores_per_socket]
    found.sort(key=lambda each: each.layout.cores_per_domain != layout.cores_per_domain)
    return found[0] if found else None


def named(model: str) -> tuple[Platform, ...]:
    """Described machines with a processor of that name, whatever their cores."""
    machines = map(load, names()) if _words(model) else ()  # descriptions take a tenth of a second to read
    return tuple(each for each in machines if is_named(model, each))


def is_named(model: str, platform: Platform) -> bool:
    """Whether `model` names a processor of the platform."""
    words = _words(model)
    return any(_holds(words, _words(name)) for name in platform.processors)


def same_name(one: str, other: str) -> bool:
    """Whether two names, as systems and tools write them, are of one processor."""
    return _words(one) == _words(other)


def measured_on(environment: Mapping[str, str]) -> Platform | None:
    """The described machine that matches a run's recorded `environment`: its processor's name and number of cores.

    None where there is no such machine, or the run's had another number of cores (and hardware threads).
    """
    for each in named(environment.get("processor", "")):
        if environment.get("cores") in {str(each.cores), str(each.cores * each.layout.threads_per_core)}:
            return each
    return None


def related(events: str) -> tuple[str, ...]:
    """Names of the described machines with the same table of hardware events, which are of the same architecture."""
    return tuple(name for name in names() if events and load(name).events == events)


def nearest_description(model: str, layout: Layout, events: str) -> Platform:
    """The described machine that stands in for a node: of the same processor, else of its architecture, else generic.

    `model`: as the system names the processor. `events`: name of the node's table of hardware events; empty where none
    is known.
    """
    same = described(model, layout)
    if same is not None:
        return same
    like = [*named(model), *map(load, related(events))]
    like.sort(key=lambda each: abs(each.layout.cores_per_socket - layout.cores_per_socket))
    return like[0] if like else load("generic")


def options(platform: Platform, layout: Layout) -> str:
    """Options of ``ranksight fit`` that name the description, and what of a node's `layout` differs from it.

    Sub-NUMA clustering and nodes per socket (SNC, NPS) are set at boot; for other domains than the described ones the
    measured curve gives the bandwidth.
    """
    words = [f"--platform {shlex.quote(platform.name)}"]
    if layout.cores_per_domain != platform.layout.cores_per_domain:
        words.append(f"--cores-per-domain {layout.cores_per_domain}")
    if (cores := layout.sockets * layout.cores_per_socket) != platform.cores:
        words.append(f"--ranks-per-node {cores}")
    return " ".join(words)


def _words(name: str) -> list[str]:
    return _NOISE.sub(" ", name.lower()).split()


def _holds(words: list[str], wanted: list[str]) -> bool:
    """Whether `wanted` stands in `words` as it is: ``xeon platinum 8470`` is not in ``xeon platinum 8470q``."""
    size = len(wanted)
    return size > 0 and any(words[at : at + size] == wanted for at in range(len(words) - size + 1))
