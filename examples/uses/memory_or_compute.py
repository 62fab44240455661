"""Memory or computation: what bounds each kernel at a scale, how sure that is, and what would help.

python examples/uses/memory_or_compute.py ranksight-demo 8
"""

import sys

import ranksight as rs
from ranksight.reports.plots import plot_roofline, save_figure
from ranksight.reports.sweep import sweep

folder, ranks = sys.argv[1], float(sys.argv[2])
model = rs.Model.load(f"{folder}/heat.model.json")
asked = sweep(model, to=ranks)

verdicts = model.diagnose(ranks=ranks, **asked.held).verdicts()
heavy = verdicts[verdicts["share"] >= 0.02]
columns = ["kernel", "share", "verdict", "level", "chance", "cpi", "bf_mem", "change", "saves"]
print(heavy[columns].to_string(index=False, float_format="{:.2f}".format))

save_figure(plot_roofline(asked).figure, "memory_or_compute.svg")
