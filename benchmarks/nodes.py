"""Made-up programs on made-up nodes, whose times are known at any number of ranks.

A kernel's rank computes for ``work CPI / f`` seconds and moves its traffic at what a core can; next to n others of its
domain it finds a memory interface that saturates, with an edge of its own sharpness q (no law that the model knows):

    core = sum or maximum of both,    T_k = (core^q + (n bytes / B_domain)^q)^(1/q)

The traffic is what the caches do not hold: of a working set W and a capacity C (a private cache and a rank's part of
the shared one), floor + (1 - floor) / (1 + (C / W)^h) goes to memory, so that times fall faster than the ranks rise
where working sets sink into caches. Blocks that cannot be cut make the fullest rank work longer; messages cost

    a + b log2 P + c P^(-2/3) + d P    (P > 1),    b, c, d more between nodes.

All of it is drawn from a seed: nodes of 1 to 8 domains with 8 to 64 cores, clocks that fall as more cores work, cores
that claim lines without reading them, replicated data, serial work, busy waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.platforms import Platform, load

MESSAGES = "exchange"
"""Kernel that holds the time of the messages."""
KINDS = ("compute", "memory", "mixed", "cached")


@dataclass(frozen=True)
class Cache:
    """Bandwidth in B/s that a domain's shared cache gives to one core, and to all of them."""

    core: float
    domain: float


@dataclass(frozen=True)
class Node:
    """A node: `count` domains of `cores` cores, rates in B/s, capacities in B, and how far
    the clock falls, smoothly or in `steps`."""

    cores: int
    count: int
    core: float
    domain: float
    private: float
    shared: float
    clock: float
    turbo: float
    steps: int = 0
    cache: Cache | None = None

    def active(self, ranks: int, placement: str) -> int:
        """Ranks in the fullest domain."""
        here = min(ranks, self.cores * self.count)
        return min(here, self.cores) if placement == "compact" else -(-here // self.count)

    def nodes(self, ranks: int) -> int:
        """Nodes that are used."""
        return -(-ranks // (self.cores * self.count))

    def frequency(self, ranks: int) -> float:
        """Clock in Hz with so many ranks on the program's fullest node."""
        full = min(ranks, self.cores * self.count) / (self.cores * self.count)
        if self.steps:  # turbo comes in bins of so many active cores
            full = np.ceil(full * self.steps - 1e-9) / self.steps
        return float(self.clock * (1 + self.turbo * (1 - full)))

    def rate(self, active: int, edge: float) -> float:
        """Bandwidth of so many cores of a domain that do nothing else."""
        return float(((1 / (active * self.core)) ** edge + (1 / self.domain) ** edge) ** (-1 / edge))

    def platform(self) -> Platform:
        """Its description as a calibration would give it, with a curve of bandwidths."""
        plain = load("generic")
        layout = replace(
            plain.layout,
            sockets=1,
            cores_per_socket=self.cores * self.count,
            domains_per_socket=self.count,
            cores_per_domain=self.cores,
        )
        shared_by = (1, 1, self.cores)
        sizes = (32 << 10, int(self.private) >> 16 << 16, int(self.shared) >> 16 << 16)
        caches = tuple(
            replace(cache, size=size, shared_by=by, ways=8)
            for cache, size, by in zip(plain.caches, sizes, shared_by, strict=True)
        )
        if self.cache is not None:
            last = replace(caches[-1], bandwidth=self.cache.core, bandwidth_shared=self.cache.domain)
            caches = (*caches[:-1], last)
        counts = sorted({1, 2, *(max(1, self.cores * i // 6) for i in range(1, 7))})
        curve = tuple((n, self.rate(n, 6.0)) for n in counts)
        memory = replace(
            plain.memory,
            bandwidth_core=curve[0][1],
            bandwidth_domain=max(curve[-1][1], curve[0][1]),
            scaling={"read": curve, "update": tuple((n, 0.92 * rate) for n, rate in curve)},
        )
        clock = replace(plain.clock, base=self.clock, measured=self.clock, single=None)
        return replace(plain, name="made-up", layout=layout, clock=clock, caches=caches, memory=memory, network={})


@dataclass(frozen=True)
class Kernel:
    """A kernel: of all ranks together its instructions, its traffic to memory and (`cached`) to a shared cache, and its
    working set in bytes, at size 1."""

    name: str
    instructions: float
    cpi: float
    traffic: float
    written: float
    working_set: float
    floor: float
    steep: float
    edge: float
    reach: float
    width: float
    overlap: bool
    claimed: float
    replicated: float
    serial: float
    cached: float = 0.0


@dataclass(frozen=True)
class Costs:
    """What messages cost: a + b log2 P + c P^(-2/3) + d P seconds, and how much more between nodes."""

    constant: float
    tree: float
    halo: float
    linear: float
    far: float


@dataclass(frozen=True)
class Truth:
    """One configuration of a program: seconds of each kernel, and the counts of a rank."""

    times: dict[str, float]
    instructions: dict[str, float]
    read: dict[str, float]
    written: dict[str, float]
    cached: dict[str, float]

    @property
    def total(self) -> float:
        """Seconds of the program."""
        return sum(self.times.values())


@dataclass(frozen=True)
class Program:
    """Kernels on a node, messages between their ranks, `blocks` that cannot be cut (0: work can), and noise.

    Shares of the work lie between 1 - d and 1 + d of their mean, d = `uneven` P^`spreading`, below a half.
    """

    node: Node
    placement: str
    kernels: tuple[Kernel, ...]
    costs: Costs
    blocks: int
    noise: float
    waiting: float
    uneven: float = 0.0
    spreading: float = 0.0

    def shares(self, ranks: int) -> np.ndarray:
        """Work of each rank over the mean, (P,)."""
        if ranks == 1 or not self.uneven:
            return np.ones(ranks)
        return 1 + min(self.uneven * ranks**self.spreading, 0.5) * np.linspace(1, -1, ranks)

    def at(self, ranks: int, size: float = 1.0) -> Truth:
        """The truth, without noise."""
        node = self.node
        active, clock = node.active(ranks, self.placement), node.frequency(ranks)
        uneven = -(-int(self.blocks * size) // ranks) * ranks / int(self.blocks * size) if self.blocks else 1.0
        uneven *= float(self.shares(ranks).max())
        times, work, read, written, cached = {}, {}, {}, {}, {}
        for kernel in self.kernels:
            share = size / ranks
            capacity = node.private + node.shared / active
            missed = kernel.floor + (1 - kernel.floor) / (1 + (capacity / (kernel.working_set * share)) ** kernel.steep)
            claimed = 1 - kernel.claimed * (active - 1) / max(node.cores - 1, 1)
            moved = kernel.traffic * share * missed
            reads = moved * (1 - kernel.written) * claimed + kernel.replicated * (ranks > 1)
            writes = moved * kernel.written
            count = kernel.instructions * (share + kernel.serial)
            bytes_moved = (reads + writes) * uneven
            busy, alone = count * uneven * kernel.cpi / clock, bytes_moved / (node.core * kernel.reach)
            core = max(busy, alone) if kernel.overlap else busy + alone
            crowd = active * bytes_moved / (node.domain * kernel.width)
            through = kernel.cached * share + moved
            if node.cache is not None:
                near = through * uneven
                core += near / node.cache.core
                crowd = max(crowd, active * near / node.cache.domain)
            cached[kernel.name] = through
            times[kernel.name] = (core**kernel.edge + crowd**kernel.edge) ** (1 / kernel.edge)
            work[kernel.name], read[kernel.name], written[kernel.name] = count, reads, writes
        costs, far = self.costs, self.costs.far if node.nodes(ranks) > 1 else 1.0
        sent = costs.tree * np.log2(ranks) + costs.halo * (size / ranks) ** (2 / 3) + costs.linear * ranks
        times[MESSAGES] = 0.0 if ranks == 1 else costs.constant + far * float(sent)
        return Truth(times, work, read, written, cached)

    def write(
        self,
        path: Path,
        points: list[tuple[int, float]],
        rng: np.random.Generator,
        whole: bool,
        metrics: tuple[str, ...],
    ) -> Experiment:
        """An experiment of runs at (ranks, size): of the whole program as LIKWID counts it, or kernel by kernel."""
        sized = len({size for _, size in points}) > 1
        experiment = Experiment.create(path, "made-up", ["ranks", "size"] if sized else ["ranks"])
        for ranks, size in points:
            truth = self.at(ranks, size)
            part = self.shares(ranks)
            pace = part / part.max()
            factor = float(np.exp(rng.normal(0, self.noise)))
            names = [kernel.name for kernel in self.kernels]
            rank = np.arange(ranks)
            if whole:
                tables = [self._whole(truth, rank, factor, rng)]
            else:
                own = np.exp(rng.normal(0, self.noise, len(names))) * factor
                tables = [
                    pd.DataFrame(
                        {
                            "kernel": name,
                            "rank": rank,
                            "time": truth.times[name] * spread * pace,
                            "instructions": truth.instructions[name] * part,
                            "bytes_mem_read": truth.read[name] * float(np.exp(rng.normal(0, 0.005))) * part,
                            "bytes_mem_written": truth.written[name] * float(np.exp(rng.normal(0, 0.005))) * part,
                            "bytes_l3": truth.cached[name] * part,
                        }
                    )
                    for name, spread in zip(names, own, strict=True)
                ]
                if ranks > 1:
                    sent = truth.times[MESSAGES] * float(np.exp(rng.normal(0, 2 * self.noise)))
                    # Ranks with less to do wait for the fullest.
                    waits = sum(truth.times[name] * spread for name, spread in zip(names, own, strict=True)) * (
                        1 - pace
                    )
                    tables.append(pd.DataFrame({"kernel": MESSAGES, "rank": rank, "time": sent + waits}))
            configuration = {"ranks": float(ranks)} | ({"size": size} if sized else {})
            table = pd.concat(tables, ignore_index=True)
            kept = [name for name in table.columns if name in ("kernel", "rank", *metrics)]
            experiment.add(Run(configuration, collector="made-up"), table[kept])
        return experiment

    def _whole(self, truth: Truth, rank: np.ndarray, factor: float, rng: np.random.Generator) -> pd.DataFrame:
        time, ranks = truth.total * factor, len(rank)
        waits = np.linspace(0.0, self.waiting, ranks) if ranks > 1 else np.zeros(1)
        table = pd.DataFrame({"kernel": WHOLE, "rank": rank, "time": time})
        table["instructions"] = sum(truth.instructions.values()) * self.shares(ranks) * (1 + waits)
        table["cycles"] = time * self.node.frequency(ranks)
        table["bytes_l3"] = sum(truth.cached.values())
        first = (rank == 0).astype(float) * ranks
        table["bytes_mem_read"] = first * sum(truth.read.values()) * float(np.exp(rng.normal(0, 0.005)))
        table["bytes_mem_written"] = first * sum(truth.written.values()) * float(np.exp(rng.normal(0, 0.005)))
        return table


def draw_node(rng: np.random.Generator) -> Node:
    """A node."""
    cores, count = int(rng.choice([8, 10, 12, 16, 18, 24, 32, 64])), int(rng.choice([1, 2, 4, 8]))
    core = rng.uniform(8e9, 25e9)
    saturated = cores * rng.uniform(0.2, 0.9)
    private, shared = rng.choice([256, 512, 1024, 2048]) * 1024.0, cores * rng.uniform(0.8, 4.0) * 2**20
    turbo = float(rng.choice([0.0, 0.0, rng.uniform(0.05, 0.3)]))
    return Node(cores, count, core, core * max(saturated, 1.5), private, shared, rng.uniform(1.8e9, 3.2e9), turbo)


def draw(seed: int) -> Program:
    """A program on a node."""
    rng = np.random.default_rng([2026, seed])
    node = draw_node(rng)
    kernels = tuple(_kernel(f"kernel{at}", node, rng) for at in range(int(rng.integers(1, 5))))
    plain = Program(node, "compact", kernels, Costs(0, 0, 0, 0, 1), 0, 0.0, 0.0)
    most = node.cores * node.count
    full = plain.at(most).total
    # Messages are up to a quarter of the computation of the full node, by one or two laws.
    parts = rng.dirichlet([0.4] * 4) * full * rng.choice([0.0, 0.02, 0.1, 0.25])
    costs = Costs(
        parts[0], parts[1] / max(np.log2(most), 1), parts[2] * most ** (2 / 3), parts[3] / most, rng.uniform(1, 3)
    )
    blocks = int(rng.choice([0, 0, 0, most * int(rng.integers(1, 6))]))
    placement = str(rng.choice(["compact", "compact", "scattered"]))
    return replace(
        plain, costs=costs, blocks=blocks, placement=placement, noise=rng.uniform(0.01, 0.05), waiting=rng.uniform(0, 1)
    )


def _kernel(name: str, node: Node, rng: np.random.Generator) -> Kernel:
    kind = str(rng.choice(KINDS))
    seconds, cpi = 10.0 ** rng.uniform(1, 3), rng.uniform(0.3, 1.2)
    instructions = seconds * node.clock / cpi
    # Seconds of one core's transfers per second of its computation.
    ratio = {"compute": rng.uniform(0.0, 0.1), "memory": rng.uniform(1.0, 4.0)}.get(kind, rng.uniform(0.1, 1.0))
    caches = node.private * node.cores + node.shared
    fits = rng.uniform(0.3, 6.0) if kind == "cached" else 10 ** rng.uniform(1.5, 3)
    traffic = ratio * seconds * node.core
    return Kernel(
        name,
        instructions,
        cpi,
        traffic,
        written=rng.uniform(0, 0.5),
        working_set=caches * fits,
        floor=rng.uniform(0.01, 0.1),
        steep=rng.uniform(2, 8),
        edge=float(np.exp(rng.uniform(np.log(2), np.log(12)))),
        reach=rng.uniform(0.5, 1.0),
        width=float(np.exp(rng.normal(0, 0.06))),
        overlap=bool(rng.integers(2)),
        claimed=float(rng.choice([0.0, 0.0, rng.uniform(0, 0.25)])),
        replicated=traffic * float(rng.choice([0.0, 0.0, 10 ** rng.uniform(-5, -3)])),
        serial=float(rng.choice([0.0, 0.0, 10 ** rng.uniform(-5, -3)])),
    )
