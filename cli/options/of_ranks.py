"""Options of verbs that take the placement of ranks."""

OPTIONS = {
    "--placement": {
        "choices": ("compact", "scattered"),
        "help": "placement of ranks on the memory domains of a node (default: as measured)",
    },
    "--ranks-per-node": {"type": "int", "metavar": "N", "help": "ranks on each node (default: as measured)"},
}
