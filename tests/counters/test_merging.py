"""Passes that count other events of the same kernels, and how far they differ."""

import os
import subprocess

import numpy as np
import pandas as pd
import pytest

from ranksight.campaign.launching import Template
from ranksight.core.experiment import WHOLE
from ranksight.core.reading import Reading
from ranksight.counters import merging
from ranksight.counters.collectors._ranks import joined
from ranksight.counters.collectors.perf_stat import PerfStat
from ranksight.platforms.events import load


def of_pass(cycles, **others):
    return pd.DataFrame({"cycles": cycles, **others}, index=[f"k{at}" for at in range(len(cycles))])


def test_deviation_of_what_every_pass_counts():
    table, notes = merging.merged([of_pass([100.0, 1000.0], a=[1.0, 2.0]), of_pass([110.0, 1000.0], b=[3.0, 4.0])])
    rows = table.set_index(["kernel", "event"])
    assert rows.loc[("k0", "cycles"), "deviation"] == pytest.approx(np.std([100, 110], ddof=1) / 105)
    assert rows.loc[("k1", "cycles"), "deviation"] == 0
    assert set(table["event"]) == {"cycles"}
    assert "6.7% at most: cycles of k0" in notes[0]
    assert len(notes) == 1


def test_small_kernels_are_not_named():
    _, notes = merging.merged([of_pass([1.0, 1000.0]), of_pass([3.0, 1001.0])])
    assert "cycles of k1" in notes[0]


def test_passes_that_differ_are_said():
    _, notes = merging.merged([of_pass([100.0]), of_pass([150.0])])
    assert "the passes differ" in notes[1]


def test_a_kernel_that_one_pass_lacks_counts_as_none_there():
    table, _ = merging.merged([of_pass([100.0, 50.0]), of_pass([100.0])])
    assert table.set_index("kernel").loc["k1", "deviation"] == pytest.approx(np.sqrt(2))


def test_one_pass_has_no_error_of_merging():
    assert merging.merged([of_pass([1.0])]) == (None, ())
    assert merging.merged([]) == (None, ())


def test_groups_of_tools_are_compared_too():
    launch = Template(("true",)).fill({"ranks": 2})
    readings = [
        Reading({"ranks": 2.0}, pd.DataFrame({"kernel": "a", "rank": [0, 1], "cycles": cycles, name: [1.0, 1.0]}))
        for name, cycles in (("loads", [100.0, 200.0]), ("stores", [100.0, 206.0]))
    ]
    reading = joined(readings, launch)
    assert reading.counters["cycles"].tolist() == [100, 200]
    deviation = reading.tables[merging.TABLE]["deviation"]
    assert deviation.tolist() == pytest.approx([np.std([300, 306], ddof=1) / 303])


# answers as perf stat -x';' does; the n-th run of a rank counts n tenths more
PERF = r"""#!/usr/bin/env python3
import re, subprocess, sys
arguments = sys.argv[1:]
place = arguments[arguments.index("-o") + 1]
number = int(re.search(r"stat(\d+)\.", place)[1])
events = re.findall(r"(?:[^,/]|/[^/]*/)+", arguments[arguments.index("-e") + 1])
names = [(re.search(r"name=([^/,]+)", event) or re.match("([^/]+)", event))[1] for event in events]
rows = ["1500.25;msec;task-clock;1500250000;100.00;0.99;CPUs utilized"]
rows += [f"{1000 + 100 * number};;{name}:u;1500250000;100.00;;" for name in names[1:]]
open(place, "w").write("\n".join(rows) + "\n")
sys.exit(subprocess.run(arguments[arguments.index("--") + 1 :]).returncode)
"""


def test_perf_stat_records_how_its_passes_differ(tmp_path, monkeypatch):
    (tmp_path / "perf").write_text(PERF)
    (tmp_path / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    launch = Template(("true",)).fill({"ranks": 1})
    collector = PerfStat().using(load("icelake-x"))
    collector.unsupported = ()
    folder = tmp_path / "run"
    folder.mkdir()
    steps = collector.steps(launch, folder)
    for step in steps:
        subprocess.run(step.command, env={**os.environ, **step.environment}, check=True)
    reading = collector.collect(launch, folder)
    table = reading.tables[merging.TABLE]
    assert len(steps) > 2
    assert set(table["kernel"]) == {WHOLE}
    assert (table["passes"] == len(steps)).all()
    values = 1000 + 100 * np.arange(len(steps))
    assert table["deviation"].tolist() == pytest.approx([np.std(values, ddof=1) / values.mean()] * 2)
    assert any("passes differ" in note for note in reading.notes)
