"""Show the report of a model in a browser, and let its fields ask the model live.

  ranksight serve heat.model.json
  ranksight serve heat.model.json --experiment heat.exp --ranks 4096 --size 256 --port 8123

The page is that of 'ranksight report', at the printed address. Other users of the machine need the token in the
address; nothing listens on the network. From a cluster, forward the port: ssh -L 8123:127.0.0.1:8123 cluster. Ctrl-C
ends it.
"""

from ranksight.cli.options import of_ranks

USAGE = "ranksight serve MODEL [--experiment FOLDER] [--PARAMETER VALUE] [--port N] [options]"
OPTIONS = {
    "model": {"type": "path", "metavar": "MODEL", "help": "model: file of 'ranksight fit'"},
    "--port": {
        "type": "int",
        "default": 0,
        "metavar": "N",
        "help": "port of this machine to listen on (default: any free one)",
    },
    "--experiment": {
        "action": "append",
        "type": "path",
        "default": [],
        "metavar": "FOLDER",
        "help": (
            "measured runs to show, fitted to or not; may be repeated (default: those of the model, next to its file)"
        ),
    },
    "--platform": {"metavar": "NAME", "help": "machine to describe, by name or file; the model keeps that of 'fit'"},
    "--on": {"metavar": "PLATFORM", "help": "answer for this machine, by name or file, in place of that of the runs"},
    "--instructions": {
        "type": "float",
        "metavar": "RATIO",
        "help": "instructions that the program needs on the machine of --on over those of the runs (default: 1)",
    },
    **of_ranks.OPTIONS,
    "--along": {"metavar": "PARAMETER", "help": "parameter to draw over (default: ranks, if they varied)"},
    "--title": {"help": "title of the page"},
    "--efficiency": {
        "type": "float",
        "default": 0.7,
        "metavar": "E",
        "help": "least efficiency of the recommended rank count (default: 0.7)",
    },
    "--price": {
        "repeat": "values",
        "metavar": "PRICE",
        "help": (
            "price of machine time or electricity: '0.02 EUR/core-hour', '1.5 EUR/node-hour', '0.3 EUR/kWh' "
            "(default: cost is not shown)"
        ),
    },
    "--level": {
        "type": "probability",
        "default": 0.9,
        "metavar": "P",
        "help": "probability of the intervals (default: 0.9)",
    },
    "--quiet": {"action": "store_true", "help": "print only the address"},
}
