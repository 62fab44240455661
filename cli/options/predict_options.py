"""Predict configurations that were not measured, with prediction intervals.

  ranksight predict heat.model.json --ranks 1024,2048 --size 256
  ranksight predict heat.model.json --ranks 1024 --size 256 --metric time \\
      --format json
  ranksight predict heat.model.json --ranks 1024 --size 256 --messages
  ranksight predict heat.model.json --ranks 256,512,1024 --size 256 --terms
  ranksight predict heat.model.json --ranks 72 --metric energy,power
  ranksight predict heat.model.json --ranks 1024 --size 256 \\
      --on sapphirerapids-8470

Every parameter of the model is an option by its name; several values ask for all combinations. An answer for
which the data are insufficient is marked so, with the reason; exit code 4 when nothing is predicted. Energy and power
(--metric energy, power) are predicted where the runs metered energy.
"""

from ranksight.cli.options import of_answers, of_placing

USAGE = "ranksight predict MODEL --PARAMETER VALUE[,VALUE] [--PARAMETER ...]\n           [options]"
OPTIONS = {
    "model": {"type": "path", "metavar": "MODEL", "help": "model: file of 'ranksight fit'"},
    "--kernel": {"repeat": "values", "metavar": "NAME", "help": "print only this kernel"},
    "--metric": {
        "repeat": "lists",
        "metavar": "NAME[,NAME]",
        "help": "print only these metrics, or 'all' (default: in a table the time, if modelled; otherwise all)",
    },
    "--messages": {
        "nargs": "?",
        "const": "class",
        "choices": ("class", "rank", "links"),
        "metavar": "BY",
        "help": (
            "print the table of messages instead: by 'class' of similar ranks (default), by 'rank', or by 'links' "
            "(the communication pattern)"
        ),
    },
    "--terms": {
        "action": "store_true",
        "help": (
            "print the terms of the resource equation instead: CPI_exec, BF_mem and clock of every kernel, and T_others"
        ),
    },
    "--time": {
        "type": "float",
        "action": "append",
        "default": [],
        "metavar": "SECONDS",
        "help": (
            "time that runs are known to take: energy and power of such runs; may be repeated, one for each "
            "configuration (default: as predicted)"
        ),
    },
    **of_answers.LEVEL,
    "--format": {
        "choices": ("table", "json", "csv", "markdown", "latex"),
        "default": "table",
        "help": "format of the output (default: table)",
    },
    **of_placing.OPTIONS,
    "--units": {
        "metavar": "NAME=FORMULA",
        "help": "indivisible units of the work, such as 'elements=6*size^2' (default: as fitted)",
    },
    "--plot": {
        "type": "path",
        "metavar": "FILE",
        "help": "also draw the program's predicted and measured times: .svg, .png or .pdf",
    },
    "--force": {"action": "store_true", "help": "replace an existing file of --plot"},
    "--quiet": {"action": "store_true", "help": "print only the answers"},
}
