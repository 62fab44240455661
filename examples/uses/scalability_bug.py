"""A scalability bug: which kernel grows with the ranks though it should not, from where on, and what it costs.

ranksight demo
python examples/uses/scalability_bug.py ranksight-demo 64
"""

import sys

import ranksight as rs
from ranksight.reports.plots import plot_ranking, save_figure
from ranksight.reports.sweep import sweep

folder, ranks = sys.argv[1], float(sys.argv[2])
model = rs.Model.load(f"{folder}/heat.model.json")
asked = sweep(model, to=ranks)

found = model.diagnose(ranks=ranks, **asked.held)
scaling = found.scaling()
named = scaling[scaling["named"]]
print(scaling.head(6)[["kernel", "verdict", "growth", "share", "named"]].to_string(index=False))
for row in named.to_dict("records"):
    formula = model.functions.formula(model.functions.rows[row["kernel"], "instructions"])
    print(f"\n{row['kernel']} grows from {row['at']:g} ranks on; instructions per rank: {formula}")
for row in found.crossovers().to_dict("records")[:3]:
    print(f"{row['kernel']} overtakes {row['over']} above {row['ranks']:.0f} ranks")

save_figure(plot_ranking(asked).figure, "scalability_bug.svg")
sys.exit(3 if len(named) else 0)  # what a build server takes as failed
