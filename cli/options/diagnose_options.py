"""Show what bounds each kernel, how it scales, which becomes the largest and where, and what would help.

  ranksight diagnose heat.model.json
  ranksight diagnose heat.model.json --ranks 64,1024 --size 24
  ranksight diagnose heat.model.json --ranks 1024 --size 24 --format csv \\
      --table crossovers
  ranksight diagnose heat.model.json --ranks 1024 --network --topology archer2

Every parameter of the model is an option by its name; several values ask for all combinations. Parameters that are not
given take their largest measured value, and ranks also sixteen times that. A kernel is memory-, cache-, compute-,
latency-, communication- or imbalance-bound where one cause leads with 90 %, and otherwise undecided, with the reason;
exit code 4 when every kernel is. JSON holds all tables, csv one of them. Of a model of messages alone it shows what
each operation sends and which grow faster than log(ranks).
"""

from ranksight.cli.options import of_answers, of_placing

USAGE = "ranksight diagnose MODEL [--PARAMETER VALUE[,VALUE] ...] [options]"
OPTIONS = {
    "model": {"type": "path", "metavar": "MODEL", "help": "model: file of 'ranksight fit'"},
    "--kernel": {"repeat": "values", "metavar": "NAME", "help": "print only this kernel's verdict"},
    "--top": {
        "type": "int",
        "default": 12,
        "metavar": "N",
        "help": "largest number of rows printed of each table (default: 12)",
    },
    **of_answers.LEVEL,
    "--network": {
        "action": "store_true",
        "help": (
            "replay the predicted messages: waiting, critical path, what latency costs, what an algorithm or "
            "placement gains"
        ),
    },
    "--places": {
        "type": "path",
        "metavar": "FILE",
        "help": "with --network: node of every rank, a line 'RANK NODE' each (default: --distribution)",
    },
    "--format": {
        "choices": ("table", "json", "csv", "markdown", "latex"),
        "default": "table",
        "help": "format of the output (default: table)",
    },
    "--table": {
        "choices": (
            "verdicts",
            "scaling",
            "rankings",
            "crossovers",
            "efficiencies",
            "roofline",
            "pairs",
            "balance",
            "teams",
            "waits",
            "blocking",
            "algorithms",
            "terms",
            "fitted_costs",
            "saturation",
            "advice",
        ),
        "default": "verdicts",
        "metavar": "TABLE",
        "help": (
            "table that --format csv, markdown and latex print: verdicts (the default), scaling, rankings, crossovers, "
            "efficiencies, roofline, pairs, balance, teams, waits, blocking, algorithms, terms, fitted_costs, "
            "saturation or advice"
        ),
    },
    **of_placing.OPTIONS,
    "--quiet": {"action": "store_true", "help": "print only the diagnosis"},
}
