"""Natures that made-up programs and nodes may have beyond those that :func:`benchmarks.nodes.draw` draws for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.nodes import Cache, Program, draw

Change = Callable[[Program, np.random.Generator], Program]


def _plain(program: Program, rng: np.random.Generator) -> Program:
    return program


def _cache(program: Program, rng: np.random.Generator) -> Program:
    """Kernels that live in the shared cache and ask for more than it gives to all of its cores."""
    node = program.node
    core = node.core * rng.uniform(1.5, 3)
    cache = Cache(core, core * max(1.5, node.cores * rng.uniform(0.2, 0.9)))
    kernels = tuple(
        replace(
            one, cached=one.instructions * one.cpi / node.clock * core * rng.uniform(0.5, 3), traffic=0.02 * one.traffic
        )
        for one in program.kernels
    )
    return replace(program, node=replace(node, cache=cache), kernels=kernels)


def _leaving(program: Program, rng: np.random.Generator) -> Program:
    """Working sets that the caches hold at the smaller sizes and on the more ranks, and not at the larger."""
    node = program.node
    caches = node.private * node.cores + node.shared
    kernels = tuple(
        replace(one, working_set=caches * rng.uniform(0.3, 2.0), steep=rng.uniform(2, 8)) for one in program.kernels
    )
    return replace(program, kernels=kernels)


def _serial(program: Program, rng: np.random.Generator) -> Program:
    """Work that every rank does: it is a hundredth to half of the time on a full node."""
    most = program.node.cores * program.node.count
    kernels = tuple(replace(one, serial=10 ** rng.uniform(-2, -0.3) / most) for one in program.kernels)
    return replace(program, kernels=kernels)


def _clock(program: Program, rng: np.random.Generator) -> Program:
    """A clock that falls by a sixth to two fifths, smoothly or in steps, as more of the node's cores work."""
    return replace(program, node=replace(program.node, turbo=rng.uniform(0.2, 0.6), steps=int(rng.choice([0, 4, 6]))))


def _scattered(program: Program, rng: np.random.Generator) -> Program:
    """Ranks dealt out over the domains of a node of several."""
    return replace(program, placement="scattered", node=replace(program.node, count=max(program.node.count, 2)))


def _uneven(program: Program, rng: np.random.Generator) -> Program:
    """Shares that differ the more the more ranks there are."""
    return replace(program, uneven=rng.uniform(0.02, 0.15), spreading=rng.uniform(0.2, 0.6), blocks=0)


NATURES: dict[str, Change] = {
    "as drawn": _plain,
    "cache's bandwidth": _cache,
    "leaving caches": _leaving,
    "serial work": _serial,
    "falling clock": _clock,
    "scattered": _scattered,
    "imbalance grows": _uneven,
}


def drawn(seed: int, nature: str) -> Program:
    """The program of a seed with a nature."""
    return NATURES[nature](draw(seed), np.random.default_rng([41, seed, list(NATURES).index(nature)]))
