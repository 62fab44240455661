"""How well LogGP fits predict sizes that were left out: two clusters, a frozen split.

Every fifth size measured (the third of each five, sizes rising) is held out with all its repetitions; the rest is
fitted. The error of a held-out size is ``|T(s) - t| / t``, ``t`` its measured quantile. ``floor`` is the error of
log-interpolating each held-out size between its two measured neighbours: how far sizes scatter around each other,
whatever the model.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.comm.readers.pingpong import load
from ranksight.comm.segments import fit_pieces
from ranksight.comm.sizes import summarise

TITLE = "LogGP: held-out message sizes"
CLUSTERS = ("stampede", "taurus")
RANGES = ((1, 1_000_000), (1, 1_000), (1_000, 65_536), (65_536, 1_000_000))
EVERY, HELD_OUT = 5, 2


def rows(cluster: str, data: Path, quantile: float) -> list[dict[str, object]]:
    """Errors on one cluster for one quantile, a row a range of sizes."""
    timings = load([data / f"{cluster}_PingPong.csv"])
    table = summarise(timings[timings["op"] == "pingpong"], quantile)
    left_out = np.arange(len(table)) % EVERY == HELD_OUT
    known, asked = table.take(~left_out), table.take(left_out)
    fit = fit_pieces(known)
    error = np.abs(fit.function(asked.size) / asked.time - 1)
    between = np.exp(np.interp(np.log(asked.size), np.log(known.size), np.log(known.time)))
    floor = np.abs(between / asked.time - 1)
    found = []
    for low, high in RANGES:
        at = (asked.size >= low) & (asked.size < high)
        found.append(
            {
                "cluster": cluster,
                "quantile": quantile,
                "bytes": f"{low}..{high}",
                "held out": int(at.sum()),
                "pieces": len(fit.starts),
                "median %": 100 * float(np.median(error[at])),
                "90 % below": 100 * float(np.quantile(error[at], 0.9)),
                "floor %": 100 * float(np.median(floor[at])),
            }
        )
    return found


def run(settings: Settings) -> str:
    """The section of RESULTS.md."""
    data = settings.data / "network"
    if not data.is_dir():
        raise Skipped(f"{data} is not there")
    table = [row for cluster in CLUSTERS for quantile in (0.25, 0.5) for row in rows(cluster, data, quantile)]
    text = (
        "Timings of ping-pongs on two clusters; the third of every five sizes is held out, the rest is fitted. Floor "
        "is the error of each held-out size against its two measured neighbours: how far sizes scatter, whatever the "
        "model.\n\n"
    )
    return text + markdown(list(table[0]), [list(row.values()) for row in table])
