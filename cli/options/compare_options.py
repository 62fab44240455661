"""Compare two experiments or models: per kernel what changed, why, and at which scale it matters.

  ranksight compare before.exp after.exp
  ranksight compare gcc.exp icx.exp --ranks 64,1024 --size 96
  ranksight compare main.exp branch.exp --threshold 5
  ranksight compare main.exp branch.exp --threshold 5 --metric instructions
  ranksight compare main.exp branch.exp --output compare.html
  ranksight compare heat.model.json \\
      --on icelake-8360y,sapphirerapids-8470,grace --ranks 1024 --size 96

Two experiments are compared at the configurations that both measured; at others, and for models, what they predict is
compared. A difference within the noise (repetitions, scatter between jobs, width of predictions) is none. The change
of a time is divided among instructions, cycles per instruction, loads of each level and wait time where these were
counted, or among messages where those were.

With --on one model is asked for several machines: time, nodes and node-hours of the job on each, energy and cost where
--power and --price state what a node takes, and the kernels that something else bounds there.

With --threshold the exit code is 3 when the time of a kernel or of the program, or a count that follows from the
program alone (instructions, messages), grew by more, beyond the noise; --metric names the metrics that count. Otherwise
it is 4 when the data are insufficient to compare the program's time, or when predictions leave open whether something
grew by more (unknown).
"""

from ranksight.cli.options import grouped, of_ranks

USAGE = (
    "ranksight compare BEFORE AFTER [--PARAMETER VALUE[,VALUE] ...] [options]\n"
    "       ranksight compare MODEL --on PLATFORM,PLATFORM[,...]\n"
    "           [--PARAMETER VALUE ...] [options]"
)
OPTIONS = {
    "before": {"type": "path", "metavar": "BEFORE", "help": "folder of an experiment, or file of a model"},
    "after": {
        "type": "path",
        "nargs": "?",
        "metavar": "AFTER",
        "help": "folder of an experiment, or file of a model",
    },
    "--on": {
        "group": "which machine",
        "repeat": "lists",
        "metavar": "PLATFORM[,PLATFORM]",
        "help": "predict the job of one model on these machines, by name or file, in place of AFTER",
    },
    "--instructions": {
        "group": "which machine",
        "type": "float",
        "metavar": "RATIO",
        "help": "instructions that the program needs on these machines over those of the runs (default: 1)",
    },
    **grouped("which machine", of_ranks.OPTIONS),
    "--price": {
        "group": "which machine",
        "repeat": "values",
        "metavar": "[PLATFORM=]PRICE",
        "help": (
            "price there, or on all machines, such as '1.5 EUR/node-hour', '0.02 EUR/core-hour' or '0.3 EUR/kWh', "
            "for the cost of the job"
        ),
    },
    "--power": {
        "group": "which machine",
        "repeat": "values",
        "metavar": "PLATFORM=WATTS",
        "help": "power of a node there under load, for the energy of the job",
    },
    "--kernel": {"repeat": "values", "metavar": "NAME", "help": "show only this kernel"},
    "--metric": {
        "repeat": "values",
        "metavar": "NAME",
        "help": (
            "metric that counts for --threshold; may be repeated (default: the time, and counts that follow from the "
            "program alone)"
        ),
    },
    "--rename": {"repeat": "values", "metavar": "OLD=NEW", "help": "kernel OLD of BEFORE is called NEW in AFTER"},
    "--threshold": {
        "type": "percentage",
        "metavar": "PERCENT",
        "help": "exit with code 3 if a time or a count of a kernel or the program grew by more than this",
    },
    "--share": {
        "type": "percentage",
        "default": 1.0,
        "metavar": "PERCENT",
        "help": "least share of the program's time, and of a count, for a kernel to count for --threshold (default: 1)",
    },
    "--scatter": {
        "type": "percentage",
        "default": 3.0,
        "metavar": "PERCENT",
        "help": "scatter of times between jobs, which repetitions within a job do not show (default: 3)",
    },
    "--level": {
        "type": "probability",
        "metavar": "P",
        "help": "probability of the intervals (default: 0.95, with --on 0.9 as of predictions)",
    },
    "--before-platform": {"metavar": "NAME|FILE", "help": "machine of BEFORE, for the resource equation"},
    "--after-platform": {"metavar": "NAME|FILE", "help": "machine of AFTER, for the resource equation"},
    "--format": {
        "choices": ("table", "json", "csv", "markdown", "latex"),
        "default": "table",
        "help": "format of the output (default: table)",
    },
    "--output": {
        "short": "-o",
        "type": "path",
        "metavar": "FILE",
        "help": "also write the comparison as one HTML page",
    },
    "--force": {"action": "store_true", "help": "replace an existing output file"},
    "--quiet": {"action": "store_true", "help": "print only changes beyond the threshold"},
}
