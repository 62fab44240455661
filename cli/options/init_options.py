"""Write the project file ranksight.toml, so that the verbs need no arguments in this folder.

  ranksight init --ranks 1,2,4,8 --size 12,16,24 --target ranks=256,1024 \\
      -- mpirun -n {ranks} ./heat --n {size}
  ranksight init

Without a command on the line it asks. Afterwards 'ranksight measure', 'fit', 'predict', 'diagnose', 'plan', 'report'
and the others use the file where they are given nothing to work on; options on the line replace the file's. It is made
to be edited (docs/project.md). So is expectations.toml, which it writes for 'check' where no such file is.
"""

from ranksight.cli.options import of_jobs

USAGE = "ranksight init [--ranks LIST] [--PARAMETER LIST ...] [options]\n           [-- COMMAND]"
OPTIONS = {
    "--experiment": {
        "metavar": "FOLDER",
        "help": "folder of the measurements (default: the program's name with .exp)",
    },
    "--reps": {"type": "int", "metavar": "N", "help": "repetitions of measurements that are not deterministic"},
    "--collector": {"repeat": "lists", "metavar": "NAME[,NAME]", "help": "collectors to measure with"},
    "--platform": {"default": "", "metavar": "NAME|FILE", "help": "machine that is measured, by name or file"},
    "--kernel": {"repeat": "values", "metavar": "NAME", "help": "kernel to predict"},
    "--expectations": {
        "metavar": "FILE",
        "help": "file of expectations for 'check' (default: expectations.toml, written where it is not)",
    },
    "--target": {
        "action": "append",
        "default": [],
        "metavar": "NAME=LIST",
        "help": "configurations to predict (default: 16 times the most ranks, the largest of other parameters)",
    },
    "--baseline": {"default": "", "metavar": "EXPERIMENT", "help": "earlier experiment to compare with"},
    "--history": {"repeat": "values", "metavar": "PATTERN", "help": "experiments for 'history' (default: *.exp)"},
    **of_jobs.OPTIONS,
    "--force": {"action": "store_true", "help": "replace ranksight.toml"},
    "--quiet": {"action": "store_true", "help": "print only errors"},
}
