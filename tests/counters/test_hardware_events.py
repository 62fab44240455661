"""Hardware events with perf: passes, command lines, what is refused, and the metrics formed; on made-up recordings."""

from __future__ import annotations

import subprocess

import numpy as np
import pandas as pd
import pytest

from ranksight.campaign.launching import Template
from ranksight.core.errors import ToolError
from ranksight.counters.collectors import _events, perf
from ranksight.counters.collectors._events import choose, probe
from ranksight.counters.collectors._perf import Sampled, buffer_pages, core_pmu, has_hardware, may_sample
from ranksight.counters.collectors.perf import Perf, _written
from ranksight.counters.derive import derive
from ranksight.platforms.events import load, names


@pytest.mark.parametrize("name", names())
def test_passes_hold_every_event_once_and_no_more_than_are_counted_at_once(name):
    table = load(name)
    chosen = choose(table, ())
    always = {event for metric in ("cycles", "instructions") for event in table.metrics[metric].formula.names}
    others = [event.name for events in chosen.passes for event in events if event.name not in always]
    assert sorted(others) == sorted(set(table.events) - always)
    for events in chosen.passes:
        assert {event.name for event in events} >= always
        assert len(events) - len(always) <= table.counters


def test_metrics_asked_for_need_fewer_passes():
    chosen = choose(load("icelake-x"), ("stall_cycles",), unsupported=("exe_activity.bound_on_stores",))
    assert [[event.name for event in events] for events in chosen.passes] == [
        ["cpu_clk_unhalted.thread_p", "inst_retired.any_p", "cycle_activity.stalls_mem_any"]
    ]


def test_rare_events_are_sampled_more_often():
    zen = choose(load("zen4"), ())
    events = {event.name: event for one in zen.passes for event in one}
    assert zen.rare(events["ls_dmnd_fills_from_sys.local_l2"])
    assert not zen.rare(events["ls_dispatch.ld_dispatch"])
    assert not zen.rare(events["ls_not_halted_cyc"])


def test_the_command_lines(tmp_path, monkeypatch):
    collector = Perf().using(load("skylake-x"), ("loads", "loads_l3"))
    collector.unsupported = ()
    launch = Template(("true",)).fill({"ranks": 1})
    (step,) = collector.steps(launch, tmp_path)
    line = step.command[2]
    assert "-e 'cpu/event=0x3c,period=2000003,name=cpu_clk_unhalted.thread_p/u'" in line
    assert "-e 'cpu/event=0xd0,umask=0x81,period=2000003,name=mem_inst_retired.all_loads/upp'" in line
    assert "-e 'cpu/event=0xd1,umask=0x4,period=100003,name=mem_load_retired.l3_hit/upp'" in line
    assert line.endswith('-o "$0/pass0.$rank.$$" -- "$@"')


def test_collecting_forms_the_metrics_of_the_table(tmp_path, monkeypatch):
    collector = Perf().using(load("skylake-x"), ("loads", "loads_mem", "stall_cycles"))
    collector.unsupported = ()
    chosen = choose(load("skylake-x"), collector.metrics)
    launch = Template(("true",)).fill({"ranks": 2})
    written = {}
    for number, events in enumerate(chosen.passes):
        for rank in (0, 1):
            (tmp_path / f"pass{number}.{rank}.1{rank}").write_bytes(b"")
        written[number] = [event.name + (":upp" if event.precise else ":u") for event in events]

    def gather(files, launch):
        number = int(next(iter(files.values())).name[4])
        table = pd.DataFrame(
            [
                {
                    "event": event,
                    "kernel": "axpy",
                    "rank": rank,
                    "samples": 10.0 * (k + 1),
                    "period": 1000.0 * (k + 1) * (rank + 1),
                }
                for k, event in enumerate(written[number])
                for rank in (0, 1)
            ]
        )
        return Sampled(table, pd.DataFrame(), 0.0)

    monkeypatch.setattr(perf, "gather", gather)
    monkeypatch.setattr(perf, "refuse_software", lambda file, wanted: None)
    reading = collector.collect(launch, tmp_path)
    row = reading.counters.set_index(["kernel", "rank"]).loc[("axpy", 1)]
    assert row["cycles"] == 2000
    assert row["instructions"] == 4000
    assert row["loads"] == 6000
    assert row["loads_mem"] == 2 * (4000 + 5000)
    assert reading.provenance["loads"] == "sampled, n = 60 (mem_inst_retired.all_loads)"
    assert reading.provenance["loads_mem"].startswith("derived from mem_load_l3_miss_retired.local_dram")
    assert "sampled, n = " in reading.provenance["stall_cycles"]
    samples_of = reading.tables["sampling"].set_index(["metric", "kernel", "rank"])
    # Cycles have one sample in ten of a thousand; a metric of two events the variance of both.
    assert samples_of.loc[("cycles", "axpy", 0), "samples"] == pytest.approx(10)
    assert samples_of.loc[("cycles", "axpy", 1), "worth"] == pytest.approx(200)
    both = samples_of.loc[("loads_mem", "axpy", 0)]
    assert both["samples"] * both["worth"] == pytest.approx(9000)
    assert both["samples"] * both["worth"] ** 2 == pytest.approx(4000 * 100 + 5000 * 100)
    assert any("fewer than 100 samples" in note for note in reading.notes)
    passes = reading.tables["passes"].set_index("event")
    assert set(passes.index) == {chosen.table.needed([name])[0] for name in ("cycles", "instructions")}
    assert (passes["mean"] == [3000, 6000]).all()
    assert (passes["deviation"] == 0).all()


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("mem_load_retired.l1_hit:upp", "mem_load_retired_l1_hit"),
        ("cpu/pm_run_cyc,period=2000003/u", "cpu"),
        ("pm_run_cyc", "pm_run_cyc"),
        ("L1-dcache-loads/period=7/u", "l1_dcache_loads"),
        ("cycles:u", "cycles"),
    ],
)
def test_names_that_perf_writes_back(written, name):
    if written.startswith("cpu/"):
        name = "pm_run_cyc"
    assert _written(written) == name


def fake(stderr):
    return lambda *args, **kwargs: subprocess.CompletedProcess(args, 0, "", stderr)


def test_events_that_are_not_counted_are_left_out(monkeypatch):
    chosen = choose(load("generic"), ("loads",))
    rows = "12;;cycles:u;1;100.00;;\n34;;instructions:u;1;100.00;;\n<not supported>;;L1-dcache-loads:u;0;100.00;;\n"
    monkeypatch.setattr(_events.subprocess, "run", fake(rows))
    assert probe(chosen) == ("l1_dcache_loads",)


@pytest.mark.parametrize(
    ("stderr", "word"),
    [
        ("<not supported>;;cycles:u;0;100.00;;\n" * 3, "does not count cycles, instructions"),
        ("event syntax error: 'cpu/event=...'\n", "event syntax error"),
        ("", "no reason"),
    ],
)
def test_machines_without_counters_are_refused(monkeypatch, stderr, word):
    monkeypatch.setattr(_events.subprocess, "run", fake(stderr))
    with pytest.raises(ToolError, match=word):
        probe(choose(load("generic"), ("loads",)))


def test_derived_metrics_show_where_they_come_from():
    events = {
        "LS_DISPATCH.LD_DISPATCH": np.array([100.0, 10.0]),
        "ls_dispatch.ld_st_dispatch:u": np.array([10.0, 0.0]),
        **{f"ls_dmnd_fills_from_sys.{name}": np.array([5.0, 4.0]) for name in
           ("local_l2", "local_ccx", "dram_io_near", "dram_io_far", "near_cache", "far_cache")},
    }  # fmt: skip
    found = derive(events, load("zen4"))
    assert found.columns["loads"].tolist() == [110, 10]
    assert found.columns["loads_l1"].tolist() == [80, 0]  # 10 - 24 is below zero
    assert found.columns["loads_mem"].tolist() == [10, 8]
    assert found.provenance["loads_mem"].startswith(
        "derived from ls_dmnd_fills_from_sys.dram_io_near, ls_dmnd_fills_from_sys.dram_io_far: "
    )
    assert found.missing["cycles"] == ("ls_not_halted_cyc",)
    assert "stall_cycles" in found.missing


def test_what_was_not_counted_stays_missing():
    found = derive({"cpu_cycles": np.array([np.nan, 2.0])}, load("neoverse-v1"))
    np.testing.assert_array_equal(found.columns["cycles"], [np.nan, 2.0])


def test_counter_units(tmp_path):
    assert core_pmu(tmp_path) == ""
    assert not has_hardware(tmp_path / "missing").ok
    for name in ("software", "uprobe", "uncore_imc_0", "msr"):
        (tmp_path / name).mkdir()
    assert core_pmu(tmp_path) == ""
    (tmp_path / "armv8_pmuv3_0").mkdir()
    assert core_pmu(tmp_path) == "armv8_pmuv3_0"
    (tmp_path / "cpu").mkdir()
    assert has_hardware(tmp_path).ok


def test_who_may_sample(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/" + name)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    level = tmp_path / "paranoid"
    assert "without performance events" in may_sample(level).reason
    level.write_text("4\n")
    assert "perf_event_paranoid=2" in may_sample(level).remedy
    level.write_text("2\n")
    assert may_sample(level).ok


def test_buffers_fit_what_a_user_may_lock(tmp_path, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("os.cpu_count", lambda: 128)
    monkeypatch.setattr("os.sysconf", lambda name: 4096)
    locked = tmp_path / "mlock"
    locked.write_text("516\n")
    for ranks in (1, 2, 7, 64, 128, 4096):
        pages = buffer_pages(ranks, locked)
        assert pages & (pages - 1) == 0
        assert pages == 1 or (pages + 1) * 4096 * min(ranks, 128) <= 516 * 1024
