"""Fit every metric of every kernel of an experiment as a function of its parameters.

  ranksight fit heat.exp -o heat.model.json
  ranksight fit heat.exp --metric time --verify largest
  ranksight fit heat.exp --platform icelake-8360y --also there.exp \\
      --platform sapphirerapids-8470

Functions are judged out of sample, with a constant among the hypotheses, and have prediction intervals. A function for
which the data are insufficient is marked; exit code 4 when no configuration is predicted. The next step is
'ranksight predict MODEL --ranks N'.
"""

from ranksight.cli.options import of_answers

USAGE = "ranksight fit EXPERIMENT [options]"
OPTIONS = {
    "experiment": {
        "type": "path",
        "nargs": "?",
        "metavar": "EXPERIMENT",
        "help": "experiment: folder of 'measure' or 'import'",
    },
    "--output": {
        "short": "-o",
        "type": "path",
        "metavar": "MODEL",
        "help": "file of the model (default: EXPERIMENT with .model.json, which is updated)",
    },
    "--metric": {"repeat": "lists", "metavar": "NAME[,NAME]", "help": "use only these metrics"},
    "--reduce": {
        "group": "values and functions",
        "choices": ("auto", "mean", "median", "min", "max", "q1", "gmean"),
        "default": "auto",
        "help": "reduction of repetitions to one value (default: chosen by their scatter)",
    },
    "--ranks-reduce": {
        "group": "values and functions",
        "repeat": "values",
        "metavar": "[METRIC=]HOW",
        "help": "reduction of ranks to one value: mean, max, sum, min, median, q1, gmean (default: each metric's own)",
    },
    "--space": {
        "group": "values and functions",
        "default": "default",
        "metavar": "NAME",
        "help": "hypothesis space (default: default); 'list' prints all",
    },
    "--verify": {
        "group": "values and functions",
        "choices": ("largest",),
        "help": "hold out the largest configuration and print the error there",
    },
    "--all-kernels": {
        "group": "values and functions",
        "action": "store_true",
        "help": "fit every kernel; without it kernels below 0.1 % of every metric are summed as (others)",
    },
    "--platform": {
        "group": "machine",
        "repeat": "values",
        "metavar": "NAME",
        "help": (
            "machine that was measured, by name or file: its latencies and network are used (default: generic, where "
            "loads by cache level were counted); again for each --also, and for each further machine in EXPERIMENT"
        ),
    },
    "--also": {
        "group": "machine",
        "type": "path",
        "repeat": "values",
        "metavar": "EXPERIMENT",
        "help": (
            "runs of the same program on another machine, a domain or a small size, which the next --platform names: "
            "'predict --on' that machine goes through them"
        ),
    },
    "--clock": {
        "group": "machine",
        "metavar": "HZ",
        "help": (
            "clock of runs with cycles and no times, such as 2.5GHz: time = cycles / clock (default: the clock of "
            "--platform)"
        ),
    },
    "--placement": {
        "group": "machine",
        "choices": ("compact", "scattered"),
        "default": "compact",
        "help": (
            "placement of the measured ranks on the memory domains of a node (default: compact, one domain after the "
            "other)"
        ),
    },
    "--ranks-per-node": {
        "group": "machine",
        "type": "int",
        "metavar": "N",
        "help": "ranks on each node (default: one per core)",
    },
    "--cores-per-domain": {
        "group": "machine",
        "type": "int",
        "metavar": "N",
        "help": (
            "cores of a memory domain, in place of --platform; the bandwidth is then inferred from the measured curve"
        ),
    },
    "--units": {
        "group": "what the program depends on",
        "metavar": "NAME=FORMULA",
        "help": "indivisible units of the work, such as 'elements=6*size^2': the busiest rank has ceil(units/ranks)",
    },
    "--derive": {
        "group": "what the program depends on",
        "repeat": "values",
        "metavar": "NAME=FORMULA",
        "help": "parameter computed from others, such as 'x=size^3/ranks'; replaces those in its formula except ranks",
    },
    "--work": {
        "group": "what the program depends on",
        "metavar": "FORMULA",
        "help": (
            "work per rank, such as '6*ne*ne/ranks': computation depends on it alone; messages, imbalance and "
            "occupancy of nodes still depend on ranks"
        ),
    },
    "--scaling": {
        "group": "what the program depends on",
        "choices": ("strong", "weak"),
        "help": (
            "whether more ranks divide one problem (strong) or have as much work each (weak) (default: by times and "
            "counts)"
        ),
    },
    "--iterations": {
        "group": "what the program depends on",
        "metavar": "PARAMETER",
        "help": "parameter that counts iterations: every value is a set-up plus a constant per iteration",
    },
    "--volume": {
        "group": "what the program depends on",
        "repeat": "values",
        "metavar": "KERNEL=FORMULA",
        "help": (
            "growth of the bytes that a kernel or an operation sends, beyond the measured sizes, such as "
            "'halo=size^2' or 'Allreduce=1'"
        ),
    },
    "--jobs": {
        "group": "processes",
        "type": "int",
        "default": 1,
        "metavar": "N",
        "help": "number of processes, for very many series (default: 1)",
    },
    "--dask": {
        "group": "processes",
        "metavar": "ADDRESS",
        "help": "Dask scheduler to use in place of processes, such as tcp://node1:8786",
    },
    **of_answers.FORMAT,
    "--formulas": {
        "choices": ("latex", "python"),
        "help": "print the functions as LaTeX or as a Python module, in place of the table",
    },
    "--force": {"action": "store_true", "help": "replace an existing output file"},
    "--quiet": {"action": "store_true", "help": "print only errors"},
}
