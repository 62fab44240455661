"""More ranks: what a program takes at rank counts nobody has run, and what keeps it from scaling.

python examples/uses/more_ranks.py ranksight-demo 512
"""

import sys

import numpy as np

import ranksight as rs
from ranksight.reports.ideal import ideal, losses
from ranksight.reports.measured import measured
from ranksight.reports.plots import plot_prediction, save_figure
from ranksight.reports.sweep import sweep

folder, ranks = sys.argv[1], float(sys.argv[2])
model = rs.Model.load(f"{folder}/heat.model.json")
runs = [rs.read(f"{folder}/experiment"), rs.read(f"{folder}/check")]

asked = sweep(model, to=ranks)  # the other parameters stay at their largest measured value
best = ideal(asked)
assert best is not None  # the demonstration varies the ranks
table = model.predict({**asked.held, "ranks": asked.values.tolist()}, metrics=["time"]).table()
print(table[table["kernel"].isna()][["ranks", "value", "lower", "upper", "status"]].to_string(index=False))

print(f"\n{best.kind} scaling, {best.efficiency(asked)[-1]:.0%} efficient at {ranks:g} ranks; lost to")
for loss in losses(asked, best)[:3]:
    print(f"  {loss.kernel}: {loss.part}, {loss.seconds * 1e3:.3f} ms")

ax = plot_prediction(asked, measured(model, runs), best)
save_figure(ax.figure, "more_ranks.svg")
assert np.isfinite(asked.total.value).all()
