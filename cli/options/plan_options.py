"""List the next runs: those that narrow a prediction most for their core-hours.

  ranksight plan heat.exp --ranks 1024 --size 256
  ranksight plan heat.exp --ranks 6144 --size 256 --ranks-rule '6*n^2' \\
      --budget 20
  ranksight plan heat.model.json --ranks 4096 --size 256 --max-ranks 256 \\
      --runs 3

Every parameter of the model is an option by its name and sets the target of the prediction. The values that a
parameter may take in a run follow a rule: --NAME-rule with a list (8,27,64), a range (16..512:16), cubes, squares,
powers-of-two, or a formula in n (6*n^2, 2^n); without one it is the rule that the values measured follow. --min-NAME
and --max-NAME limit them. Runs with more ranks than the machine of the experiment has cores are left out unless
--max-ranks names more. A run costs its predicted time x ranks, of the program without collectors, whose factor is
stated; the budget is in core-hours. Nothing is proposed that is expected to narrow the interval by less than 10 %, but
for a few cheap runs that vary a parameter which never varied.

What makes the interval wide is named with what mends it: too few samples by longer runs, scatter by repetitions, ranks
that shared cores by an idle node, a network that was not measured by 'ranksight calibrate', scale by the runs listed.
Nothing beyond the budget is proposed; without --budget, nothing that costs more than the target where that can be run.

The functions that still fit the measurements predict different outcomes of a run. The plan estimates how far each
outcome would narrow the interval at the target. Given the experiment's folder, the lines to measure are ready to use.
Exit code 4 when the target is not predicted and no run is worth its cost.
"""

from ranksight.cli.options import of_answers

USAGE = "ranksight plan EXPERIMENT|MODEL --PARAMETER VALUE[,VALUE]\n           [--PARAMETER-rule RULE] [options]"
OPTIONS = {
    "model": {
        "type": "path",
        "metavar": "EXPERIMENT|MODEL",
        "help": "folder of an experiment, or file of 'ranksight fit'",
    },
    "--kernel": {"metavar": "NAME", "help": "narrow the interval of this kernel, not of the whole program"},
    "--metric": {"metavar": "NAME", "help": "metric whose interval is narrowed (default: time)"},
    "--budget": {
        "type": "float",
        "metavar": "CORE-HOURS",
        "help": "largest cost of all runs (default: the cost of running the target)",
    },
    "--runs": {"type": "int", "default": 5, "metavar": "N", "help": "largest number of runs (default: 5)"},
    "--reps": {"type": "int", "metavar": "N", "help": "repetitions of each run (default: as measured)"},
    **of_answers.PRICE,
    **of_answers.LEVEL,
    **of_answers.FORMAT,
    "--quiet": {"action": "store_true", "help": "print only the plan"},
}
