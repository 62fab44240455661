"""Read measurements that other tools made, and make an experiment of them.

  ranksight import runs/ --parameter ranks='Rank(\\d+)' --set size=30 -o lulesh
  ranksight import extrap input.txt
  ranksight import csv times.csv --parameter ranks --parameter size=ne \\
      --kernel kernel --metric time=wallmax
  ranksight import log slurm-*.out --time 'Elapsed: {time} s' \\
      --parameter ranks='on {ranks} processes'
  ranksight import experiment monday.exp tuesday.exp -o both.exp

The format is recognised, or named before the paths. Runs of one configuration become its repetitions. A file that
cannot be read is named and skipped, the others are imported; with --strict nothing is imported then.
"""

USAGE = (
    "ranksight import [FORMAT] PATH... [--parameter NAME[=WHERE]]\n           [--set NAME=VALUE] [options] -o FOLDER"
)
OPTIONS = {
    "paths": {"nargs": "*", "metavar": "PATH", "help": "files or folders; the format may be named before them"},
    "--output": {
        "short": "-o",
        "type": "path",
        "metavar": "FOLDER",
        "help": "folder of the experiment (default: PATH.experiment)",
    },
    "--parameter": {
        "group": "content of the files",
        "repeat": "values",
        "metavar": "NAME[=WHERE]",
        "help": (
            "parameter read from the path by a regular expression ('Rank(\\d+)'), from the file itself, (csv) from a "
            "column, or (log) by a pattern ('on {ranks} processes')"
        ),
    },
    "--set": {
        "group": "content of the files",
        "repeat": "values",
        "metavar": "NAME=VALUE",
        "help": "parameter with the same value in all runs",
    },
    "--metric": {
        "group": "content of the files",
        "repeat": "values",
        "metavar": "NAME[=SOURCE]",
        "help": "metric, and its name in the source (csv: its column)",
    },
    "--period": {
        "group": "content of the files",
        "repeat": "values",
        "metavar": "METRIC=N",
        "help": "value of one sample of a sampled metric: occurrences of an event, or seconds",
    },
    "--values": {
        "group": "content of the files",
        "repeat": "values",
        "metavar": "[METRIC=]sum|mean|max|node|core",
        "help": (
            "what values of all ranks together are: sums over ranks (divided by their number) or over those of a "
            "node, means, maxima; core: of one core, where ranks have threads, over which counts of a rank are sums"
        ),
    },
    "--total": {
        "group": "content of the files",
        "metavar": "KERNEL",
        "help": "timer that contains all others, where timers are nested; '' where none does",
    },
    "--platform": {
        "group": "content of the files",
        "metavar": "NAME",
        "help": "machine that was measured, by name or file: its formulas compute metrics from events",
    },
    "--application": {"group": "content of the files", "metavar": "NAME", "help": "name of the program in tables"},
    "--jobs": {
        "type": "int",
        "default": 1,
        "metavar": "N",
        "help": "number of processes that read files (default: 1)",
    },
    "--dask": {"metavar": "ADDRESS", "help": "Dask scheduler to use in place of processes, such as tcp://node1:8786"},
    "--strict": {"action": "store_true", "help": "import nothing if a file or row cannot be used"},
    "--force": {"action": "store_true", "help": "replace an existing experiment"},
    "--quiet": {"action": "store_true", "help": "print no progress and no summary"},
    "--format": {"choices": ("table", "json"), "default": "table", "help": "format of the summary (default: table)"},
    "--list-formats": {"action": "store_true", "help": "list the formats that can be read, and exit"},
    "--time": {
        "group": "logs of jobs (log)",
        "metavar": "PATTERN",
        "help": "text of the line that states the time, with {time} in its place: 'Elapsed: {time} s'",
    },
    "--kernel": {
        "group": "tables (csv)",
        "metavar": "COLUMN",
        "help": "column of kernels (default: rows are of the whole program)",
    },
    "--repetition": {
        "group": "tables (csv)",
        "metavar": "COLUMN",
        "help": "column of repetitions (default: rows with the same configuration)",
    },
    "--rank": {
        "group": "tables (csv)",
        "metavar": "COLUMN",
        "help": "column of ranks (default: rows are of all ranks)",
    },
    "--where": {
        "group": "tables (csv)",
        "repeat": "values",
        "metavar": "COLUMN=VALUE",
        "help": "import only rows with this value in the column",
    },
    "--melt": {
        "group": "tables (csv)",
        "repeat": "values",
        "metavar": "NAME=COLUMN,COLUMN...",
        "help": (
            "join columns, or patterns such as 't_*': their names become the column NAME, their cells the column "
            "'value'"
        ),
    },
    "--pivot": {
        "group": "tables (csv)",
        "metavar": "NAMES=VALUES",
        "help": "split a column: each name in column NAMES becomes a column, with cells from column VALUES",
    },
    "--delimiter": {
        "group": "tables (csv)",
        "metavar": "CHARACTER",
        "help": "separator of fields (default: detected)",
    },
    "--decimal": {"group": "tables (csv)", "choices": (".", ","), "help": "decimal separator (default: detected)"},
}
