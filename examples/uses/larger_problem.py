"""A larger problem: the same program at a size nobody has run, with what its time is made of.

python examples/uses/larger_problem.py ranksight-demo 48
"""

import sys

import ranksight as rs
from ranksight.reports.plots import plot_breakdown, save_figure
from ranksight.reports.sweep import sweep

folder, size = sys.argv[1], float(sys.argv[2])
model = rs.Model.load(f"{folder}/heat.model.json")

asked = sweep(model, along="size", to=size, at={"ranks": 8})
for k, value in enumerate(asked.values):
    total = asked.total
    shares = {name: seconds[k] / total.value[0, k] for name, seconds in asked.breakdown.parts.items()}
    said = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if share > 0.01)
    remark = f"   insufficient: {total.reason[0, k]}" if total.status[0, k] else ""
    print(f"size {value:4.1f}: {total.value[0, k] * 1e3:8.2f} ms   {said}{remark}")

save_figure(plot_breakdown(asked).figure, "larger_problem.svg")
