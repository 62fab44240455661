"""A ReFrame test: the program's functions scale as expected. Run it by ``reframe -c reframe_check.py -r``."""

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import sanity_function


@rfm.simple_test
class Scalability(rfm.RunOnlyRegressionTest):
    """Measures in one job and checks; the sanity check is the exit code, the figures are counts of expectations."""

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "ranksight"
    executable_opts = ["check", "expectations.toml", "now.exp", "--format", "json"]
    prerun_cmds = [
        "mpicc -O2 -g benchmark.c -o benchmark -lm",
        "ranksight measure --ranks 1..16*2 -o now.exp -- mpirun -n {ranks} ./benchmark",
    ]
    num_tasks = 16

    @sanity_function
    def is_met(self):
        """Exit code 0: every expectation is met."""
        return sn.assert_eq(self.job.exitcode, 0)
