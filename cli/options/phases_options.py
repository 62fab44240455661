"""Find the phases that a program repeats, their weights, and its time as the sum of phase time x weight.

  ranksight measure --collector pmpi-events --collector callgrind-intervals \\
      --ranks 1,2,4,8 --size 64 -o heat.exp \\
      -- mpirun -n {ranks} ./heat --total {size}
  ranksight phases heat.exp --ranks 64,512

Phases are followed over rank counts at one workload (strong scaling). With instructions between calls the total work
of each is tested to be constant. Where it is, a smaller workload, measured by 'ranksight measure --distant', gives a
point at many ranks. --instructions prints the table behind it. Exit code 4 where a trace has no phases.
"""

from ranksight.cli.options import of_answers

USAGE = "ranksight phases EXPERIMENT [options]"
OPTIONS = {
    "experiment": {"type": "path", "metavar": "EXPERIMENT", "help": "folder with runs of the collector pmpi-events"},
    "--ranks": {"type": "ranks", "default": [], "metavar": "LIST", "help": "rank counts to predict"},
    "--workload": {
        "action": "append",
        "type": "setting",
        "default": [],
        "metavar": "NAME=VALUE",
        "help": "workload to predict (default: the one that computes most); may be repeated",
    },
    "--time": {
        "choices": ("measured", "simulated"),
        "help": (
            "time of computation to use (default: measured; simulated, where ranks shared cores and it is available)"
        ),
    },
    "--admissible": {
        "metavar": "RULE",
        "help": (
            "rank counts that the program accepts, such as squares (default: inferred from the weights); 'list' "
            "prints all"
        ),
    },
    "--platform": {
        "default": "generic",
        "metavar": "NAME|FILE",
        "help": "machine, by name or file, for latencies and clock (default: generic)",
    },
    "--instructions": {"action": "store_true", "help": "also print the instruction prediction tables"},
    **of_answers.LEVEL,
    **of_answers.FORMAT,
    "--quiet": {"action": "store_true", "help": "print only the answers"},
}
