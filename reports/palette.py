"""Colours of all plots: Okabe and Ito's palette, distinct for people with every common kind of colour vision.

:data:`DARK` gives each colour its counterpart on a dark ground, with a contrast of three to one or more against it.
"""

MEASURED = "#000000"
PREDICTED = "#0072B2"
BAND = "#56B4E9"
COMPUTATION = "#009E73"
IDEAL = "#D55E00"
RANGE = "#EDEDED"
PARTS = {
    "compute": "#009E73",
    "L2": "#E69F00",
    "L3": "#D55E00",
    "memory": "#CC79A7",
    "unknown": "#999999",
    "imbalance": "#56B4E9",
    "communication": "#0072B2",
    "others": "#7F5539",
}
"""Colour of each part of a program's time, in the order in which parts are stacked and listed."""
NAMES = {
    "compute": "compute",
    "L2": "L2",
    "L3": "L3",
    "memory": "memory",
    "unknown": "unknown",
    "imbalance": "imbalance",
    "communication": "communication",
    "others": "outside kernels and messages",
}
"""Name of each part in every table and figure: the causes of a diagnosis, and the rest of the program."""
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
"""Colours of lines, one a kernel or operation."""
DARK = {
    "#000000": "#F2F2F2",
    "#0072B2": "#4FA8E0",
    "#56B4E9": "#8FD0F5",
    "#009E73": "#2CC79B",
    "#D55E00": "#F2854B",
    "#CC79A7": "#E09CC2",
    "#EDEDED": "#23282E",
    "#FEFEFE": "#14171A",
    "#7F7F7F": "#9A9A9A",
    "#7F5539": "#C4936A",
}
