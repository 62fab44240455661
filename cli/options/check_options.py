"""Compare an experiment with expectations of how its functions scale.

  ranksight check expectations.toml mpi.exp
  ranksight check expectations.toml mpi.exp --ranks 4096,65536 \\
      --junit report.xml
  ranksight check new.exp --baseline old.exp --metric time

The file states for each function and metric a growth in big O, such as O(log p) or O(k^3 2^k), rules between
functions, and a litmus test (docs/expectations.md). Each function found is stripped to its leading term and compared:
a total match, an approximate one within the deviation limit, or none. With --baseline, what an earlier experiment did
is expected of functions that have no expectation. Parameters are options as in 'predict': they set the configurations
at which costs are reported.

Exit code 3 when an expectation or a rule is violated, otherwise 4 when the data are insufficient for one of them.
"""

from ranksight.cli.options import of_answers

USAGE = "ranksight check [EXPECTATIONS.toml] EXPERIMENT\n           [--PARAMETER VALUE[,VALUE] ...] [options]"
OPTIONS = {
    "paths": {"type": "path", "nargs": "+", "metavar": "PATH", "help": "file of expectations, and experiment"},
    "--baseline": {
        "type": "path",
        "metavar": "EXPERIMENT",
        "help": "earlier experiment: its growth is expected of functions without an expectation",
    },
    "--metric": {"repeat": "lists", "metavar": "NAME[,NAME]", "help": "use only these metrics"},
    "--upper": {"action": "store_true", "help": "treat expectations as upper bounds: slower growth is accepted"},
    "--junit": {"type": "path", "metavar": "FILE", "help": "write a JUnit XML report for a build server"},
    "--github": {"action": "store_true", "help": "also print violations as annotations of GitHub Actions"},
    **of_answers.FORMAT,
    "--force": {"action": "store_true", "help": "replace an existing JUnit file"},
    "--quiet": {"action": "store_true", "help": "print only errors; the exit code is the result"},
}
