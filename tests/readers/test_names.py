"""Names of other tools' metrics: folding, synonyms, weighted sums, conflicts, units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.core.metrics import METRICS
from ranksight.counters.names import SUMS, SYNONYMS, fold, metric_name, translate, unit_scale


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("INSTR_RETIRED_ANY", "instructions"),
        ("INST_RETIRED.ANY", "instructions"),
        ("inst_retired.any_p", "instructions"),
        ("PAPI_TOT_INS", "instructions"),
        ("instructions:u", "instructions"),
        ("cpu_core/instructions/", "instructions"),
        ("cpu/INST_RETIRED.ANY/u", "instructions"),
        ("perf::INSTRUCTIONS", "instructions"),
        ("ex_ret_instr", "instructions"),
        ("RETIRED_INSTRUCTIONS", "instructions"),
        ("PM_RUN_INST_CMPL", "instructions"),
        ("CPU_CLK_UNHALTED_CORE", "cycles"),
        ("CPU_CLK_UNHALTED.THREAD", "cycles"),
        ("cycles:ppp", "cycles"),
        ("ls_not_halted_cyc", "cycles"),
        ("CPU_CLK_UNHALTED_REF", "reference_cycles"),
        ("ref-cycles", "reference_cycles"),
        ("MEM_INST_RETIRED.ALL_LOADS", "loads"),
        ("MEM_UOPS_RETIRED_LOADS_ALL", "loads"),
        ("L1-dcache-loads", "loads"),
        ("MEM_LOAD_RETIRED.L2_HIT", "loads_l2"),
        ("MEM_LOAD_UOPS_RETIRED.L1_HIT_PS", "loads_l1"),
        ("PAPI_BR_MSP", "branch_misses"),
        ("branch-misses", "branch_misses"),
        ("PAPI_FP_OPS", "flops"),
        ("PAPI_DP_OPS", "flops_dp"),
        ("uncore_imc/cas_count_read/", "bytes_mem_read"),
        ("Region calls", "visits"),
        ("TOPDOWN_SLOTS", "TOPDOWN_SLOTS"),
        ("My own metric [x]", "My own metric [x]"),
    ],
)
def test_names(name: str, metric: str) -> None:
    assert metric_name(name) == metric


def test_every_synonym_leads_to_a_metric_and_to_one_only() -> None:
    assert set(SYNONYMS) <= set(METRICS)
    events = [event for names in SYNONYMS.values() for event in names]
    assert len(set(events)) == len(events)
    assert all(fold(event) == event for event in events)
    assert not set(events) & set(METRICS)
    assert {rule.metric for rule in SUMS} <= set(METRICS)


@given(st.text(max_size=40))
def test_folding_is_stable(name: str) -> None:
    assert fold(fold(name)) == fold(name)


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("msec", 1e-3),
        ("usec", 1e-6),
        ("ns", 1e-9),
        ("GBytes", 1e9),
        ("MiB", 2.0**20),
        ("MHz", 1e6),
        ("", 1.0),
        ("sec", 1.0),
    ],
)
def test_units(unit: str, factor: float) -> None:
    assert unit_scale(unit) == factor
    assert unit_scale("furlongs") is None


def columns(**values: list[float]) -> dict[str, np.ndarray]:
    return {name: np.array(given) for name, given in values.items()}


def test_flops_are_weighted_by_width() -> None:
    told = translate(
        columns(
            FP_ARITH_INST_RETIRED_SCALAR_DOUBLE=[10.0],
            FP_ARITH_INST_RETIRED_128B_PACKED_DOUBLE=[10.0],
            FP_ARITH_INST_RETIRED_256B_PACKED_DOUBLE=[10.0],
            FP_ARITH_INST_RETIRED_512B_PACKED_DOUBLE=[10.0],
            FP_ARITH_INST_RETIRED_SCALAR_SINGLE=[1.0],
            FP_ARITH_INST_RETIRED_512B_PACKED_SINGLE=[1.0],
        )
    )
    assert told.columns["flops_dp"] == 10 * (1 + 2 + 4 + 8)
    assert told.columns["flops_sp"] == 1 + 16
    assert told.columns["flops"] == 150 + 17
    assert "FP_ARITH_INST_RETIRED_256B_PACKED_DOUBLE x 4" in told.provenance["flops_dp"]
    assert told.columns["FP_ARITH_INST_RETIRED_256B_PACKED_DOUBLE"] == 10


def test_traffic_replaces_the_counts_it_is_made_of() -> None:
    told = translate(columns(CAS_COUNT_RD=[3.0, 0.0], CAS_COUNT_WR=[1.0, 0.0]))
    assert list(told.columns["bytes_mem_read"]) == [192.0, 0.0]
    assert list(told.columns["bytes_mem"]) == [256.0, 0.0]
    assert "CAS_COUNT_RD" not in told.columns


def test_papi_loads_by_level() -> None:
    told = translate(
        columns(PAPI_LD_INS=[100.0, 5.0], PAPI_L1_LDM=[10.0, 7.0], PAPI_L2_LDM=[4.0, 0.0], PAPI_L3_LDM=[1.0, 0.0])
    )
    assert list(told.columns["loads"]) == [100.0, 5.0]
    assert list(told.columns["loads_l1"]) == [90.0, 0.0]
    assert list(told.columns["loads_l2"]) == [6.0, 7.0]
    assert list(told.columns["loads_l3"]) == [3.0, 0.0]
    assert list(told.columns["loads_mem"]) == [1.0, 0.0]
    assert any("loads_l1 came out negative in 1 places" in note for note in told.notes)


def test_dram_of_both_sockets() -> None:
    told = translate(
        {
            "MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM": np.array([5.0, 6.0]),
            "MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM": np.array([1.0, np.nan]),
        }
    )
    assert list(told.columns["loads_mem"]) == [6.0, 6.0]


def test_two_events_for_one_metric() -> None:
    told = translate({"L1-dcache-loads": np.array([1.0]), "MEM_INST_RETIRED.ALL_LOADS": np.array([2.0])})
    assert told.columns["loads"] == 2
    assert told.columns["L1-dcache-loads"] == 1
    assert any("L1-dcache-loads is loads too" in note for note in told.notes)


def test_aliases_and_origin() -> None:
    told = translate(
        {"cycles": np.array([4.0]), "PAPI_TOT_CYC": np.array([3.0])},
        {"cycles": "measured (TSC)"},
        {"cycles": "reference_cycles"},
    )
    assert told.columns["reference_cycles"] == 4
    assert told.columns["cycles"] == 3
    assert told.provenance == {"reference_cycles": "measured (TSC)", "cycles": "measured (PAPI_TOT_CYC)"}


@given(
    st.dictionaries(st.sampled_from([e for names in SYNONYMS.values() for e in names]), st.floats(0, 1e15), max_size=30)
)
def test_nothing_is_lost(values: dict[str, float]) -> None:
    """Every event given is there afterwards, under some name, unless it went into a sum that replaces it."""
    told = translate({name: np.array([value]) for name, value in values.items()})
    assert set(told.columns) == set(told.provenance)
    held = [float(column[0]) for column in told.columns.values()]
    assert all(value in held for value in values.values())
    assert all(value >= 0 for value in held)
