"""Predict a program on many ranks, hold the prediction against runs there, and name what limits the program.

  ranksight demo                 # less than a minute; nothing is run
  # without the mended version of the program and the report
  ranksight demo --quick

A 3-D heat solver ran on 1 to 16 ranks of a cluster that is simulated with SimGrid's SMPI (platform 'simulated'). Its
counts are those of Open MPI runs, at 16 ranks of the simulated run; its times are simulated. The model predicts the
wall time of 128 to 512 ranks, with communication, and each prediction is printed with the time measured there. The
solver has a planted fault, which the diagnosis names; the version without it was measured as well. Experiments, models
and the report stay in the folder.
"""

USAGE = "ranksight demo [options]"
OPTIONS = {
    "--output": {
        "short": "-o",
        "type": "path",
        "metavar": "FOLDER",
        "help": "folder of the results (default: ranksight-demo)",
    },
    "--quick": {"action": "store_true", "help": "leave out the mended version of the program and the report"},
    "--force": {"action": "store_true", "help": "replace the folder of an earlier demo"},
}
