"""An expectation in continuous integration: the build fails when a function outgrows what its author stated.

    ranksight demo
    python examples/uses/expectation_in_ci.py ranksight-demo/experiment

The verb does the same: ``ranksight check expectations.toml EXPERIMENT --junit report.xml``.
"""

import sys
from pathlib import Path

import ranksight as rs
from ranksight.analysis.expectations.checking import check
from ranksight.analysis.expectations.document import read_study
from ranksight.reports.checks import blocks
from ranksight.reports.terminal import show

experiment = rs.read(sys.argv[1])
study = read_study(Path(__file__).with_name("expectations.toml"))
result = check(study, experiment)
show(*blocks(result))
sys.exit(result.exit_code)  # 3 when an expectation is violated, 4 when the runs are too few to decide
