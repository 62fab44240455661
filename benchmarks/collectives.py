"""How well the cost equations of collectives meet a simulator: SimGrid's SMPI, algorithm by algorithm.

    python benchmarks/collectives.py [--ranks 8,24,64] [--per-node 4] [--only bcast] [--write FILE]

SMPI runs every operation with a pinned algorithm on a described cluster; the network's parameters are
fitted to messages simulated on the same cluster, so that what differs is the equation alone. Needs SimGrid 3.32
(smpicc, smpirun). Errors are relative to the simulated time.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.comm.costs.collective import collective
from ranksight.comm.costs.fabric import Fabric
from ranksight.examples.simulated.cluster import Simulator, build_messages, link, node_bandwidth

SIZES = (8, 512, 8192, 131072, 1048576)
PAIRS = {
    "barrier/dissemination": "barrier:ompi_bruck",
    "barrier/recursive_doubling": "barrier:ompi_recursivedoubling",
    "barrier/double_ring": "barrier:ompi_doublering",
    "barrier/linear": "barrier:ompi_basic_linear",
    "bcast/binomial": "bcast:binomial_tree",
    "bcast/linear": "bcast:flattree",
    "bcast/scatter_ring": "bcast:scatter_LR_allgather",
    "bcast/scatter_recursive_doubling": "bcast:scatter_rdb_allgather",
    "reduce/binomial": "reduce:binomial",
    "reduce/linear": "reduce:flat_tree",
    "reduce/rabenseifner": "reduce:scatter_gather",
    "allreduce/recursive_doubling": "allreduce:rdb",
    "allreduce/ring": "allreduce:lr",
    "allreduce/rabenseifner": "allreduce:rab_rdb",
    "allgather/ring": "allgather:NTSLR",
    "allgather/recursive_doubling": "allgather:rdb",
    "allgather/bruck": "allgather:bruck",
    "alltoall/pairwise": "alltoall:ring",
    "alltoall/bruck": "alltoall:bruck",
    "alltoall/linear": "alltoall:basic_linear",
    "gather/binomial": "gather:ompi_binomial",
    "gather/linear": "gather:ompi_basic_linear",
    "scatter/binomial_in_order": "scatter:ompi_binomial",
    "scatter/linear": "scatter:ompi_basic_linear",
}
"""Ours and SMPI's name of an algorithm."""
POWERS = ("bcast:scatter_rdb_allgather", "reduce:scatter_gather", "allgather:rdb")
"""What is compared on powers of two alone: elsewhere the second aborts, the third has rounds that no library has."""
CLUSTERS = {"ethernet": (1.25e9, 5e-6), "infiniband": (12.5e9, 0.5e-6)}
"""B/s of a node's link each way, and seconds of its latency."""
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="node-" suffix="" radical="0-{last}" speed="1Gf" core="{cores}" bw="{bandwidth}Bps"
           lat="{latency}s" sharing_policy="SPLITDUPLEX" loopback_bw="8GBps" loopback_lat="0.2us"/>
</platform>
"""


def cluster(name: str, nodes: int, per_node: int = 1) -> str:
    """The simulator's description of one of :data:`CLUSTERS`."""
    bandwidth, latency = CLUSTERS[name]
    return PLATFORM.format(last=nodes - 1, cores=per_node, bandwidth=bandwidth, latency=latency)


def compare(name: str, ranks: list[int], folder: Path, only: str, k: int) -> list[dict[str, object]]:
    """Rows of simulated and predicted times, `k` ranks a node."""
    simulator = Simulator(folder, cluster(name, max(2, -(-max(ranks) // k)), k), k)
    inside = link(simulator, "together") if k > 1 else None
    fabric = Fabric(inside, replace(link(simulator), node_bandwidth=node_bandwidth(simulator)), k)
    rows: list[dict[str, object]] = []
    for ours, theirs in ((ours, theirs) for ours, theirs in PAIRS.items() if only in ours):
        operation, _, kind = ours.partition("/")
        for p in ranks:
            if theirs in POWERS and p & (p - 1):
                continue
            sizes = [str(size) for size in (SIZES if operation != "barrier" else (0,))]
            found = simulator.run(p, [operation, *sizes], theirs)
            predicted = collective(operation, kind)(p, found["bytes"].to_numpy(dtype=float), fabric)
            for size, simulated, ours_time in zip(found["bytes"], found["duration"], predicted, strict=True):
                rows.append(
                    {
                        "cluster": name,
                        "algorithm": ours,
                        "ranks": p,
                        "bytes": size,
                        "simulated": simulated,
                        "predicted": float(ours_time),
                        "error %": 100 * (float(ours_time) / simulated - 1),
                    }
                )
    return rows


def main() -> int:
    """Print median and largest error an algorithm and cluster, and write all rows where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=lambda text: [int(word) for word in text.split(",")], default=[8, 24, 64])
    parser.add_argument("--per-node", type=int, default=1, help="ranks on a node")
    parser.add_argument("--only", default="", help="algorithms whose name holds this")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    if shutil.which("smpicc") is None or shutil.which("smpirun") is None:
        print("SimGrid's smpicc and smpirun are not found: apt install libsimgrid-dev", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        build_messages(folder)
        chosen = (options.ranks, folder, options.only, options.per_node)
        rows = [row for name in CLUSTERS for row in compare(name, *chosen)]
    table = pd.DataFrame(rows)
    table["size"] = np.where(table["bytes"] < 65536, "small %", "large %")
    error = table.assign(error=table["error %"].abs())
    shown = error.pivot_table(index="algorithm", columns=["cluster", "size"], values="error", aggfunc="median")
    shown[("both", "largest %")] = error.groupby("algorithm")["error"].max()
    print(shown.to_string(float_format="{:.1f}".format))
    print(f"median over all: {error['error'].median():.1f} %")
    if options.write is not None:
        table.drop(columns="size").to_csv(options.write, index=False, float_format="%.6g")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
