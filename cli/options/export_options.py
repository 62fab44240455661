"""Write measurements or a model in the format of another tool.

  ranksight export extrap heat.exp -o heat.jsonl
  ranksight export latex heat.exp.model.json --metric time
  ranksight export openmetrics heat.exp --metric time,instructions -o heat.prom
  ranksight export --list-formats

Values of ranks are reduced in each metric's own way; repetitions are kept where the format has a place for them.
Without -o text is printed. In Python, experiment.counters(), model.table() and prediction.table() are pandas tables,
ranksight.to_xarray(experiment) is a data set of xarray, and ranksight.to_hatchet(experiment, ranks=8, size=24) is a
GraphFrame of Hatchet.
"""

USAGE = "ranksight export FORMAT [EXPERIMENT|MODEL] [options]"
OPTIONS = {
    "form": {
        "nargs": "?",
        "metavar": "FORMAT",
        "help": "format: extrap, csv, parquet, netcdf, hatchet, openmetrics or latex",
    },
    "source": {
        "type": "path",
        "nargs": "?",
        "metavar": "EXPERIMENT|MODEL",
        "help": "folder of an experiment, or file of 'ranksight fit' (default: the project file's experiment)",
    },
    "--output": {
        "short": "-o",
        "type": "path",
        "metavar": "FILE",
        "help": "file to write (default: standard output)",
    },
    "--metric": {"repeat": "lists", "metavar": "NAME[,NAME]", "help": "use only these metrics"},
    "--list-formats": {"action": "store_true", "help": "list the formats and exit"},
    "--force": {"action": "store_true", "help": "replace an existing output file"},
    "--quiet": {"action": "store_true", "help": "do not report what was written"},
}
