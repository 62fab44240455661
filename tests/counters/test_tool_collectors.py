"""perf stat, LIKWID and PAPI: command lines, and what comes back, with stand-ins that write what the tools document."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ranksight.campaign.launching import Template
from ranksight.core.errors import ToolError
from ranksight.core.experiment import WHOLE
from ranksight.counters.collectors.likwid import Likwid
from ranksight.counters.collectors.papi import Papi
from ranksight.counters.collectors.perf_stat import PerfStat
from ranksight.platforms.events import load

# two "ranks" one after the other, each given its rank as a launcher would
LAUNCHER = '#!/bin/sh\nshift 2\nfor rank in 0 1; do PMI_RANK=$rank "$@" || exit; done\n'

# writes what likwid-perfctr -o FILE.csv writes for one hardware thread
PERFCTR = r"""#!/bin/sh
echo "$@" >> "$LOG"
marker=""
while [ $# -gt 0 ]; do case "$1" in
 -c) cores=$2; shift 2;; -g) group=$2; shift 2;; -m) marker=yes; shift;; -o) out=$2; shift 2;; *) break;; esac; done
"$@" || exit
cycles=$((1000 * (PMI_RANK + 1))); core=${cores%%[-,]*}
case $group in L2) rows=4;; FLOPS_DP) rows=3;; *) rows=2;; esac
{ echo "STRUCT,Info,3,,"; echo "CPU name:,A processor,,"; echo "CPU type:,A type,,"; echo "CPU clock:,2.4 GHz,,"
  if [ $marker ]; then
    echo "TABLE,Region axpy,Group 1 Raw,$group,$rows"; echo "Region Info,HWThread $core"
    echo "RDTSC Runtime [s],0.5"; echo "call count,10"; echo "Event,Counter,HWThread $core"
  else echo "TABLE,Group 1 Raw,$group,$rows"; echo "Event,Counter,HWThread $core"; fi
  echo "INSTR_RETIRED_ANY,FIXC0,$((2 * cycles))"; echo "CPU_CLK_UNHALTED_CORE,FIXC1,$cycles"
  [ $group = L2 ] && { echo "L1D_REPLACEMENT,PMC0,7"; echo "L2_TRANS_L1D_WB,PMC1,3"; }
  [ $group = FLOPS_DP ] && echo "FP_ARITH_INST_RETIRED_SCALAR_DOUBLE,PMC0,55"
  true; } > "$out"
"""


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A folder with a launcher, a program and stand-ins first in the PATH."""
    tools = tmp_path / "tools"
    tools.mkdir()
    executable(tools / "mpirun", LAUNCHER)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    for name in list(os.environ):
        if name.startswith(("OMPI_", "PMI_", "PMIX_", "SLURM_")):
            monkeypatch.delenv(name)
    return tools


def launch():
    return Template(("mpirun", "-n", "{ranks}", "true")).fill({"ranks": 2})


def run(collector, folder):
    folder.mkdir()
    for step in collector.steps(launch(), folder):
        done = subprocess.run(step.command, env={**os.environ, **step.environment}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return collector.collect(launch(), folder)


def test_likwid_as_a_wrapper(bench, tmp_path):
    executable(bench / "likwid-perfctr", PERFCTR)
    reading = run(Likwid(("FLOPS_DP", "L2")), tmp_path / "run")
    table = reading.counters.set_index(["kernel", "rank"])
    assert table.loc[(WHOLE, 1), "cycles"] == 2000
    assert table.loc[(WHOLE, 0), "instructions"] == 2000
    assert table.loc[(WHOLE, 0), "bytes_l2"] == 64 * 10
    assert table.loc[(WHOLE, 1), "flops_dp"] == 55
    assert reading.provenance["cycles"].endswith("(FLOPS_DP)")
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 4
    cores = next(
        line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "Cpus_allowed_list" in line
    )
    assert lines[3] == f"-c {cores} -g L2 -o {tmp_path / 'run'}/L2.rank1.csv true"


def test_likwid_marker_regions(bench, tmp_path, monkeypatch):
    executable(bench / "likwid-perfctr", PERFCTR)
    monkeypatch.setattr(
        "ranksight.counters.collectors.likwid.linked_libraries", lambda program: "liblikwid.so.5.2 => /x"
    )
    reading = run(Likwid(("L2",)), tmp_path / "run")
    table = reading.counters.set_index(["kernel", "rank"])
    assert table.loc[("axpy", 1), "cycles"] == 2000
    assert table.loc[("axpy", 0), "visits"] == 10
    assert " -m " in (tmp_path / "log").read_text()


def test_likwid_shows_that_a_group_is_the_sockets(bench, tmp_path):
    executable(bench / "likwid-perfctr", PERFCTR)
    reading = run(Likwid(("MEM_DP",)), tmp_path / "run")
    assert any("whole socket" in note for note in reading.notes)


def test_likwid_and_papi_say_what_they_miss(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for collector in (Likwid(), Papi()):
        state = collector.available()
        assert not state.ok
        assert "module load" in state.remedy
    executable(tmp_path / "papi_avail", "#!/bin/sh\necho 'Of 108 possible events, 0 are available'\n")
    assert "no event" in Papi().available().reason


AVAIL = """#!/bin/sh
echo '    Name        Code    Deriv Description (Note)'
for event in PAPI_TOT_CYC PAPI_TOT_INS PAPI_LD_INS PAPI_SR_INS PAPI_L1_LDM PAPI_L2_LDM PAPI_L3_LDM; do
 echo "$event  0x80000032  No   something"; done
"""
# what a program instrumented with PAPI's high-level interface leaves
INSTRUMENTED = r"""#!/usr/bin/env python3
import json, os, pathlib
rank = int(os.environ["PMI_RANK"])
events = os.environ["PAPI_EVENTS"].split(",")
place = pathlib.Path(os.environ["PAPI_OUTPUT_DIRECTORY"]) / "papi_hl_output"
place.mkdir(parents=True, exist_ok=True)
values = {name: str(100 * (k + 1) * (rank + 1)) for k, name in enumerate(events)}
region = {"name": "solve", "region_count": "3", "cycles": "5000", "real_time_nsec": "2000", **values}
content = {"papi_version": "7.0.0.0", "cpu_info": "x", "max_cpu_rate_mhz": "2000", "min_cpu_rate_mhz": "1000",
           "event_definitions": {name: {"component": "perf_event", "type": "delta"} for name in events},
           "threads": {"0": {"regions": {"0": region}}}}
(place / f"rank_{rank:06d}.json").write_text(json.dumps(content))
"""


def papi_launch(program):
    return Template(("mpirun", "-n", "{ranks}", str(program))).fill({"ranks": 2})


def test_papi_regions(bench, tmp_path):
    executable(bench / "papi_avail", AVAIL)
    program = executable(tmp_path / "program", INSTRUMENTED)
    collector = Papi()
    assert collector.available().ok
    assert collector.passes() == [
        ("PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_LD_INS", "PAPI_SR_INS", "PAPI_L1_LDM", "PAPI_L2_LDM"),
        ("PAPI_TOT_CYC", "PAPI_TOT_INS", "PAPI_L3_LDM"),
    ]
    folder = tmp_path / "run"
    folder.mkdir()
    for step in collector.steps(papi_launch(program), folder):
        subprocess.run(step.command, check=True)
    reading = collector.collect(papi_launch(program), folder)
    table = reading.counters.set_index(["kernel", "rank"])
    assert table.loc[("solve", 1), "cycles"] == 200
    assert table.loc[("solve", 0), "loads"] == 300
    assert table.loc[("solve", 0), "visits"] == 3
    assert table.loc[("solve", 1), "loads_mem"] == 600


def test_papi_of_a_program_without_regions(bench, tmp_path):
    executable(bench / "papi_avail", AVAIL)
    with pytest.raises(ToolError, match="PAPI left nothing"):
        run(Papi(), tmp_path / "run")


# answers as perf stat -x';' does, 1000 x (place in the list) for each event
PERF = r"""#!/usr/bin/env python3
import os, re, subprocess, sys
arguments = sys.argv[1:]
assert arguments[:2] == ["stat", "-x;"], arguments
listed = arguments[arguments.index("-e") + 1]
events = re.findall(r"(?:[^,/]|/[^/]*/)+", listed)
rows = []
for k, event in enumerate(events):
    name = re.search(r"name=([^/,]+)", event)
    shown = (name[1] if name else event.split("/")[0])
    if event == "task-clock":
        rows.append("1500.25;msec;task-clock;1500250000;100.00;0.99;CPUs utilized")
    elif shown in os.environ.get("UNSUPPORTED", "").split():
        rows.append(f"<not supported>;;{shown};0;100.00;;")
    else:
        rows.append(f"{1000 * k};;{shown}:u;1500250000;{os.environ.get('SHARE', '100.00')};;")
text = "# started on Fri\n\n" + "\n".join(rows) + "\n"
if "-o" in arguments:
    open(arguments[arguments.index("-o") + 1], "w").write(text)
    sys.exit(subprocess.run(arguments[arguments.index("--") + 1 :]).returncode)
sys.stderr.write(text)
"""


def test_perf_stat_counts_each_rank(bench, tmp_path):
    executable(bench / "perf", PERF)
    reading = run(PerfStat().using(load("icelake-x"), ("loads", "stall_cycles")), tmp_path / "run")
    table = reading.counters.set_index(["kernel", "rank"])
    assert table.index.tolist() == [(WHOLE, 0), (WHOLE, 1)]
    assert table.loc[(WHOLE, 1), "cpu_time"] == pytest.approx(1.50025)
    assert table.loc[(WHOLE, 0), ["cycles", "instructions", "loads"]].tolist() == [1000, 2000, 3000]
    assert table.loc[(WHOLE, 0), "stall_cycles"] == 4000 + 5000
    assert reading.provenance["loads"] == "measured (mem_inst_retired.all_loads)"
    assert (reading.tables["multiplexing"]["share"] == 1).all()


def test_perf_stat_keeps_how_long_an_event_was_counted(bench, tmp_path, monkeypatch):
    executable(bench / "perf", PERF)
    monkeypatch.setenv("SHARE", "62.50")
    reading = run(PerfStat().using(load("icelake-x"), ("loads",)), tmp_path / "run")
    assert "scaled: counted for 62 % of the time" in reading.provenance["loads"]
    assert reading.tables["multiplexing"]["share"].tolist() == pytest.approx([0.625] * 6)


def test_perf_stat_leaves_out_what_is_not_counted_here(bench, tmp_path, monkeypatch):
    executable(bench / "perf", PERF)
    monkeypatch.setenv("UNSUPPORTED", "exe_activity.bound_on_stores")
    reading = run(PerfStat().using(load("icelake-x"), ("stall_cycles",)), tmp_path / "run")
    assert "stall_cycles" not in reading.counters
    assert any("exe_activity.bound_on_stores" in note for note in reading.notes)
    monkeypatch.setenv("UNSUPPORTED", "inst_retired.any_p")
    with pytest.raises(ToolError, match="does not count inst_retired"):
        PerfStat().using(load("icelake-x"), ("loads",)).steps(launch(), tmp_path)


def test_perf_stat_refuses_a_file_cut_off(bench, tmp_path):
    executable(bench / "perf", PERF)
    collector = PerfStat().using(load("icelake-x"), ("loads",))
    run(collector, tmp_path / "run")
    file = next((tmp_path / "run").glob("stat0.1.*"))
    file.write_text("\n".join(file.read_text().splitlines()[:-1]))
    with pytest.raises(ToolError, match="holds 3 of 4 events"):
        collector.collect(launch(), tmp_path / "run")
