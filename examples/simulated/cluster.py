"""SimGrid's SMPI on a described cluster: programs are run, and what its messages cost is measured.

SMPI simulates the network, and time passes for what a program charges (:file:`charged.h`) and sends. A run repeats to
the last digit. Needs SimGrid 3.32 (smpicc, smpirun).
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ranksight.comm.loggp import fit_loggp
from ranksight.comm.network import NetworkParameters

EAGER_LIMIT = 65536
EAGER = (f"--cfg=smpi/async-small-thresh:{EAGER_LIMIT}", f"--cfg=smpi/send-is-detached-thresh:{EAGER_LIMIT}")
"""Messages below travel before their receiver asks for them, as real libraries do."""


def build_messages(folder: Path) -> None:
    """Compile the program ``collectives`` in `folder`, which measures messages and collectives."""
    source = Path(__file__).with_name("collectives.c")
    subprocess.run(["smpicc", "-O2", "-o", "collectives", str(source)], cwd=folder, check=True)


class Simulator:
    """One described cluster; ranks in blocks on its nodes, or dealt out to them in turn.

    `platform`: the simulator's description (XML) of nodes that are named node-0, node-1 and so on.
    """

    def __init__(self, folder: Path, platform: str, per_node: int = 1, distribution: str = "block") -> None:
        self.folder = folder
        self.per_node, self.distribution = per_node, distribution
        (folder / "platform.xml").write_text(platform)
        pairs = {"apart": (0, 1), "together": (0, 0), "halves": (0,) * per_node + (1,) * per_node}
        for name, nodes_of in pairs.items():
            (folder / name).write_text("".join(f"node-{node}\n" for node in nodes_of))

    def place(self, ranks: int) -> None:
        """Write down the node of each rank."""
        filled = -(-ranks // self.per_node)
        nodes = [rank // self.per_node if self.distribution == "block" else rank % filled for rank in range(ranks)]
        (self.folder / "hosts").write_text("".join(f"node-{node}\n" for node in nodes))

    def start(
        self,
        ranks: int,
        program: list[str],
        pinned: str = "",
        hosts: str = "hosts",
        environment: dict[str, str] | None = None,
        options: tuple[str, ...] = (),
    ) -> list[list[str]]:
        """Run a program; the fields of the lines that it printed with a leading @."""
        self.place(ranks)
        command = ["smpirun", "-np", str(ranks), "-platform", "platform.xml", "-hostfile", hosts]
        command += ["--cfg=smpi/simulate-computation:no", "--log=root.thres:error", *EAGER]
        command += [*([f"--cfg=smpi/{pinned}"] if pinned else []), *options]
        done = subprocess.run(
            [*command, *program],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        rows = [line[1:].split(",") for line in done.stdout.splitlines() if line.startswith("@")]
        if not rows:
            raise SystemExit(f"{' '.join([*command, *program])} failed: {done.stderr[-500:]}")
        return rows

    def run(self, ranks: int, arguments: list[str], pinned: str = "", hosts: str = "hosts") -> pd.DataFrame:
        """Rows ``op, bytes, duration`` that the program printed."""
        rows = self.start(ranks, ["./collectives", *arguments], pinned, hosts)
        return pd.DataFrame(rows, columns=["op", "bytes", "duration"]).astype({"bytes": int, "duration": float})


def link(simulator: Simulator, hosts: str = "apart") -> NetworkParameters:
    """Parameters fitted to simulated messages between two nodes, or within one."""
    timings = simulator.run(2, ["trips"], hosts=hosts)
    fitted = fit_loggp(timings.assign(duration=timings["duration"].clip(lower=1e-9)))
    return replace(fitted, eager_limit=EAGER_LIMIT)


def node_bandwidth(simulator: Simulator) -> float:
    """Bytes a second that all ranks of one node reach together to another node."""
    rows = simulator.run(2 * simulator.per_node, ["pairs", str(1 << 20)], hosts="halves")
    return float(rows["duration"].iloc[0])
