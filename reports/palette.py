"""Colours of all plots: Okabe and Ito's palette, told apart by people with every common kind of colour vision."""

MEASURED = "#000000"
PREDICTED = "#0072B2"
BAND = "#56B4E9"
PARTS = {
    "execution": "#009E73",
    "loads_l1": "#F0E442",
    "loads_l2": "#E69F00",
    "loads_l3": "#D55E00",
    "loads_mem": "#CC79A7",
    "contention": "#000000",
    "direct": "#999999",
    "imbalance": "#56B4E9",
    "communication": "#0072B2",
}
NAMES = {
    "execution": "execution",
    "loads_l1": "loads from L1",
    "loads_l2": "loads from L2",
    "loads_l3": "loads from L3",
    "loads_mem": "loads from memory",
    "contention": "waiting for shared bandwidth",
    "direct": "kernels without counters",
    "imbalance": "imbalance",
    "communication": "communication",
}
