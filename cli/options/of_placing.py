"""Options of verbs that predict on another machine, or with ranks placed in another way."""

from ranksight.cli.options import of_ranks

OPTIONS = {
    "--on": {
        "metavar": "PLATFORM",
        "help": (
            "predict for this machine, by name or file, in place of that of the runs: counts stay, loads move "
            "between levels where misses were counted by cache size, what is assumed widens the intervals"
        ),
    },
    "--instructions": {
        "type": "float",
        "metavar": "RATIO",
        "help": (
            "instructions that the program needs on the machine of --on over those of the runs (default: 1; not "
            "known to 20 % between instruction sets)"
        ),
    },
    **of_ranks.OPTIONS,
    "--distribution": {
        "choices": ("block", "cyclic"),
        "help": "distribution of ranks over nodes: one node after the other, or in turn (default: block)",
    },
    "--topology": {
        "metavar": "NAME|FILE",
        "help": (
            "shape of the network between nodes: a system, such as archer2, or a TOML file (default: that of the "
            "platform)"
        ),
    },
    "--algorithm": {
        "repeat": "values",
        "metavar": "OPERATION=NAME",
        "help": (
            "algorithm of a collective operation, such as 'allreduce=ring' (default: that of the platform's "
            "[network], otherwise inferred from measured times)"
        ),
    },
}
