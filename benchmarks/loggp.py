"""How well LogGP fits predict sizes that were left out: two clusters, a frozen split.

    python benchmarks/loggp.py [--data ../shared/data/network] [--write FILE]

Every fifth size measured (the third of each five, sizes rising) is held out with all its repetitions; the rest is
fitted. The error of a held-out size is ``|T(s) - t| / t``, ``t`` its measured quantile. ``floor`` is the error of
log-interpolating each held-out size between its two measured neighbours: how far sizes scatter around each other,
whatever the model.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.comm.readers.pingpong import load
from ranksight.comm.segments import fit_pieces
from ranksight.comm.sizes import summarise

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


def main() -> int:
    """Print the table, and write it as CSV where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    beside = Path(__file__).resolve().parents[2] / "shared" / "data" / "network"
    parser.add_argument("--data", type=Path, default=beside)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"{options.data} is not there: name the folder of timings with --data", file=sys.stderr)
        return 1
    table = pd.DataFrame(
        [row for cluster in CLUSTERS for quantile in (0.25, 0.5) for row in rows(cluster, options.data, quantile)]
    )
    print(table.to_string(index=False, float_format="{:.2f}".format))
    if options.write is not None:
        table.to_csv(options.write, index=False, float_format="%.4f")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
