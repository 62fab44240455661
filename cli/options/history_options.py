"""Show how a program changed over many experiments: commits, dates, compilers.

  ranksight history nightly/*.exp
  # and the time that each predicts there
  ranksight history nightly/*.exp --ranks 1024 --size 96
  ranksight history nightly/*.exp --output history.html
  # in CI: exit code 3 when the latest change is slower
  ranksight history nightly/*.exp --threshold 5

Times and counts of every kernel are followed at the configurations that all experiments measured. A change point is
marked where a series steps from one level to another by more than the noise, which repetitions and the scatter from one
experiment to the next show. Experiments are put in the order of their first runs. Parameters with a value ask each
experiment's model for the program's time there.

With --threshold the exit code is 3 when the latest change of a time, or of a metric of --metric, is one to more than
that many percent above the level before it.
"""

from ranksight.cli.options import of_answers

USAGE = "ranksight history EXPERIMENT EXPERIMENT [...] [--PARAMETER VALUE ...]\n           [options]"
OPTIONS = {
    "experiments": {
        "type": "path",
        "nargs": "+",
        "metavar": "EXPERIMENT",
        "help": "experiments: two folders or more",
    },
    "--output": {"short": "-o", "type": "path", "metavar": "FILE", "help": "also write one HTML page"},
    "--order": {
        "choices": ("date", "given"),
        "default": "date",
        "help": "order of the experiments: by their first runs, or as given (default: date)",
    },
    "--kernel": {"repeat": "values", "metavar": "NAME", "help": "show only this kernel"},
    "--metric": {
        "repeat": "values",
        "metavar": "NAME",
        "help": "show only this metric, and gate it with --threshold",
    },
    "--top": {
        "type": "int",
        "default": 12,
        "metavar": "N",
        "help": "largest number of changes and kernels printed (default: 12)",
    },
    "--threshold": {
        "type": "percentage",
        "metavar": "PERCENT",
        "help": "exit with code 3 if the latest change made a kernel or the program slower by more than this",
    },
    "--share": {
        "type": "percentage",
        "default": 1.0,
        "metavar": "PERCENT",
        "help": "least share of the program's time for a kernel to count for --threshold (default: 1)",
    },
    "--scatter": {
        "type": "percentage",
        "default": 3.0,
        "metavar": "PERCENT",
        "help": "scatter of times between jobs, assumed with fewer than 6 experiments (default: 3)",
    },
    "--level": {
        "type": "probability",
        "default": 0.95,
        "metavar": "P",
        "help": "probability that nothing is marked when nothing changed (default: 0.95)",
    },
    "--platform": {"metavar": "NAME|FILE", "help": "machine of the predictions, for the resource equation"},
    **of_answers.FORMAT,
    "--force": {"action": "store_true", "help": "replace an existing output file"},
    "--quiet": {"action": "store_true", "help": "print only changes beyond the threshold"},
}
