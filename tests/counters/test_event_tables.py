"""Event tables: what ships, how it is recognised, formulas, and files that make no sense."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranksight.core.errors import InputError
from ranksight.core.formula import read_formula
from ranksight.platforms import load as load_platform
from ranksight.platforms import names as platforms
from ranksight.platforms.events import Processor, load, names, recognise, this_processor
from ranksight.platforms.events.tables import parse

NEEDED = {"cycles", "instructions", "loads", "stores", "loads_l1", "loads_l2", "loads_l3", "loads_mem", "stall_cycles"}


@pytest.mark.parametrize("name", names())
def test_every_table_forms_what_the_model_needs(name):
    table = load(name)
    assert table.name == name
    assert set(table.metrics) >= NEEDED - ({"stall_cycles"} if name == "generic" else set())
    used = {event for metric in table.metrics.values() for event in metric.formula.names}
    assert used == set(table.events)
    assert all(metric.source for metric in table.metrics.values())
    # no two events of one table are the same count under two names
    codes = [(e.event, e.umask, e.cmask) for e in table.events.values() if e.event >= 0]
    assert len(codes) == len(set(codes))


def test_every_platform_names_a_table_that_ships():
    wanted = {load_platform(name).events for name in platforms()} - {""}
    assert wanted
    assert wanted <= set(names())


@pytest.mark.parametrize(
    ("processor", "name"),
    [
        (Processor("GenuineIntel", 6, 45, 7), "sandy-bridge-ep"),
        (Processor("GenuineIntel", 6, 63, 2), "haswell-ep"),
        (Processor("GenuineIntel", 6, 79, 1), "broadwell-ep"),
        (Processor("GenuineIntel", 6, 85, 4), "skylake-x"),
        (Processor("GenuineIntel", 6, 85, 7), "cascade-lake"),
        (Processor("GenuineIntel", 6, 106, 6), "icelake-x"),
        (Processor("GenuineIntel", 6, 143, 8), "sapphire-rapids"),
        (Processor("AuthenticAMD", 23, 49, 0), "zen2"),
        (Processor("AuthenticAMD", 25, 1, 1), "zen3"),
        (Processor("AuthenticAMD", 25, 17, 1), "zen4"),
        (Processor("AuthenticAMD", 26, 2, 1), "zen5"),
        (Processor(implementer=0x41, part=0xD0C), "neoverse-n1"),
        (Processor(implementer=0x41, part=0xD40), "neoverse-v1"),
        (Processor(implementer=0x41, part=0xD4F), "neoverse-v2"),
        (Processor(implementer=0x46, part=0x001), "a64fx"),
        (Processor(cpu="POWER9"), "power9"),
        (Processor("AuthenticAMD", 23, 1, 2), None),  # Zen 1
        (Processor("GenuineIntel", 6, 42, 7), None),
        (Processor(), None),
    ],
)
def test_processors_are_recognised(processor, name):
    found = recognise(processor)
    assert (found.name if found else None) == name


@pytest.mark.parametrize(
    ("text", "processor"),
    [
        (
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel name\t: Xeon\nstepping\t: 6\n",
            Processor("GenuineIntel", 6, 106, 6),
        ),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n", Processor(implementer=0x41, part=0xD40)),
        ("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n", Processor(cpu="POWER9")),
        ("nonsense", Processor()),
    ],
)
def test_cpuinfo(tmp_path, text, processor):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(text)
    assert this_processor(tmp_path) == processor


def test_events_as_perf_takes_them():
    table = load("skylake-x")
    hit = table.events["mem_load_retired.l1_hit"]
    assert hit.perf("cpu", "u") == "cpu/event=0xd1,umask=0x1,name=mem_load_retired.l1_hit/u"
    assert hit.perf("cpu", "u", 1009) == "cpu/event=0xd1,umask=0x1,period=1009,name=mem_load_retired.l1_hit/upp"
    assert "cmask=0x14" in table.events["cycle_activity.stalls_mem_any"].perf("cpu")
    assert load("power9").events["pm_run_cyc"].perf("cpu", "u", 7) == "cpu/pm_run_cyc,period=7/u"
    assert load("generic").events["l1_dcache_loads"].perf("cpu", "u", 7) == "L1-dcache-loads/period=7/u"
    assert load("generic").events["cycles"].perf("cpu", "u") == "cycles:u"
    assert load("generic").events["cycles"].perf("cpu") == "cycles"


def test_events_that_metrics_need():
    table = load("haswell-ep")
    assert table.needed(["stall_cycles", "cycles"]) == (
        "cpu_clk_unhalted.thread_p", "cycle_activity.stalls_ldm_pending", "resource_stalls.sb"
    )  # fmt: skip
    with pytest.raises(InputError, match="flops_dp"):
        table.needed(["flops_dp"])


@pytest.mark.parametrize(
    ("text", "counts", "value"),
    [
        ("a", {"a": 3}, 3),
        ("a + 2 * b.c - 1", {"a": 3, "b.c": 4}, 10),
        ("2 * (a + b) / 4", {"a": 3, "b": 5}, 4),
        ("a - b - c", {"a": 9, "b": 3, "c": 2}, 4),
        ("a / b / 2", {"a": 12, "b": 3}, 2),
        ("a / b", {"a": 12, "b": 0}, 0),
        ("min(a, b) + max(0, a - b)", {"a": 5, "b": 3}, 5),
        ("x.128b_y", {"x.128b_y": 7}, 7),
    ],
)
def test_formulas(text, counts, value):
    formula = read_formula(text, "here")
    assert formula({name: np.float64(number) for name, number in counts.items()}) == value
    assert set(formula.names) == set(counts)


def test_formulas_take_arrays_and_carry_what_is_missing():
    formula = read_formula("max(0, a - b)", "here")
    result = formula({"a": np.array([5.0, 1.0, np.nan]), "b": np.array([2.0, 3.0, 1.0])})
    np.testing.assert_array_equal(result, [3.0, 0.0, np.nan])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a +",
        "a b",
        "(a",
        "a)",
        "min(a)",
        "min(a, b",
        "* a",
        "a ** b",
        "a.b()",
        "__import__('os')",
        "1e5",
        "(" * 99 + "a",
    ],
)
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(InputError, match="here"):
        read_formula(text, "here")


@settings(max_examples=200, deadline=None)
@given(st.text("ab.0129+-*/(), minmax", max_size=60))
def test_any_text_is_a_formula_or_refused(text):
    try:
        formula = read_formula(text, "here")
    except InputError:
        return
    assert np.shape(formula({name: np.ones(3) for name in formula.names})) in ((), (3,))


GOOD = """schema = 1
name = "mine"
title = "Mine"
vendor = "me"
counters = 4
source = "manual"
peak = { instructions = 4, flops_dp = 16, source = "manual" }
[metrics]
cycles = { formula = "c" }
[events]
"c" = { event = 0x3c }
"""


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("schema = 1", "schema = 2", "schema"),
        ('name = "mine"', 'name = "../x"', "name"),
        ("counters = 4", "counters = true", "counters"),
        ("counters = 4", "counters = 0", "counters"),
        ("counters = 4", "", "counters"),
        ('formula = "c"', 'formula = "d"', "d is not in"),
        ('formula = "c"', 'formula = "c +"', "metrics.cycles"),
        ("event = 0x3c", "event = -1", "events.c.event"),
        ("event = 0x3c", "evnt = 1", "evnt"),
        ("event = 0x3c", 'event = 1, precise = "yes"', "precise"),
        ('"c" =', '"C;rm" =', "events.C"),
        ("[metrics]", "[metrics", "TOML"),
        ('source = "manual"\npeak', "peak", "source"),
        ("instructions = 4", "instructions = 0", "peak.instructions"),
        ("instructions = 4", "instruction = 4", "instruction"),
        ("flops_dp = 16", 'flops_dp = "many"', "peak.flops_dp"),
        ("flops_dp = 16, ", "", "peak.flops_dp"),
        ('16, source = "manual"', "16", "peak: source"),
    ],
)
def test_tables_that_make_no_sense(old, new, word):
    good = parse(GOOD.encode(), "mine.toml")
    assert (good.counters, good.peak) == (4, {"instructions": 4.0, "flops_dp": 16.0})
    with pytest.raises(InputError, match="mine.toml") as caught:
        parse(GOOD.replace(old, new).encode(), "mine.toml")
    assert word in str(caught.value)


def test_unknown_names_and_files():
    with pytest.raises(InputError, match="skylake"):
        load("skylake")
    with pytest.raises(InputError, match=r"nowhere\.toml"):
        load("nowhere.toml")
