"""Names of other tools' metrics and events, mapped to the registry's names and SI units.

Names are compared folded: case, separators, PMU prefixes (``cpu/.../``, ``perf::``) and privilege modifiers (``:u``) do
not matter, so ``INST_RETIRED.ANY`` of VTune, ``INSTR_RETIRED_ANY`` of LIKWID and ``PAPI_TOT_INS`` are all
``instructions``. Quantities that no single event holds (memory traffic, flops of all widths, loads served by memory)
are weighted sums; where two events claim one metric the more precise one gets it and the other keeps its own name.

Sources: Intel perfmon event lists, AMD PPR for families 17h and 19h, Arm Neoverse PMU guides, POWER9/10 PMU user's
guides, LIKWID's performance groups, ``papi_avail`` of PAPI 7, ``perf list``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.metrics import METRICS

CACHE_LINE = 64.0
"""Bytes of one transfer between caches and memory on every processor whose events are listed here (x86)."""

# fmt: off
SYNONYMS: dict[str, tuple[str, ...]] = {
    "instructions": (
        "instr_retired_any", "inst_retired_any", "inst_retired_any_p", "papi_tot_ins", "inst_retired",
        "ex_ret_instr", "retired_instructions", "pm_run_inst_cmpl", "pm_inst_cmpl", "instructions_retired",
        "hw_instructions", "perf_count_hw_instructions", "instr_retired_any_p", "instr_executed",
    ),
    "cycles": (
        "cpu_clk_unhalted_core", "cpu_clk_unhalted_thread", "cpu_clk_unhalted_thread_p", "papi_tot_cyc", "cpu_cycles",
        "ls_not_halted_cyc", "cpu_clocks_unhalted", "pm_run_cyc", "pm_cyc", "hw_cpu_cycles", "cpu_clk_unhalted",
        "perf_count_hw_cpu_cycles", "actual_cpu_clock", "clockticks",
    ),
    "reference_cycles": (
        "ref_cycles", "cpu_clk_unhalted_ref", "cpu_clk_unhalted_ref_tsc", "papi_ref_cyc", "hw_ref_cpu_cycles",
        "perf_count_hw_ref_cpu_cycles", "max_cpu_clock",
    ),
    "stall_cycles": ("papi_mem_scy", "pm_cmplu_stall_dcache_miss", "stall_backend_mem"),
    "loads": (
        "mem_inst_retired_all_loads", "mem_uops_retired_all_loads", "mem_uops_retired_loads_all",
        "mem_uops_retired_loads", "papi_ld_ins", "ls_dispatch_ld_dispatch", "ls_dispatch_loads", "mem_access_rd",
        "pm_ld_ref_l1", "pm_ld_cmpl", "ld_retired", "ld_spec", "l1_dcache_loads",
    ),
    "stores": (
        "mem_inst_retired_all_stores", "mem_uops_retired_all_stores", "mem_uops_retired_stores_all",
        "mem_uops_retired_stores", "papi_sr_ins", "ls_dispatch_store_dispatch", "ls_dispatch_stores", "mem_access_wr",
        "pm_st_cmpl", "pm_st_fin", "st_retired", "st_spec", "l1_dcache_stores",
    ),
    "loads_l1": ("mem_load_retired_l1_hit", "mem_load_uops_retired_l1_hit"),
    "loads_l2": (
        "mem_load_retired_l2_hit", "mem_load_uops_retired_l2_hit", "ls_dmnd_fills_from_sys_lcl_l2",
        "ls_dmnd_fills_from_sys_local_l2", "ls_refills_from_sys_ls_mabresp_lcl_l2", "pm_data_from_l2",
    ),
    "loads_l3": (
        "mem_load_retired_l3_hit", "mem_load_uops_retired_l3_hit", "mem_load_uops_retired_llc_hit",
        "ls_dmnd_fills_from_sys_int_cache", "ls_dmnd_fills_from_sys_local_ccx",
        "ls_refills_from_sys_ls_mabresp_lcl_cache", "pm_data_from_l3",
    ),
    "loads_mem": ("pm_data_from_memory", "ls_refills_from_sys_ls_mabresp_lcl_dram"),
    "store_misses_l1": ("papi_l1_stm",),
    "bytes_mem_read": ("cas_count_read", "unc_m_cas_count_read"),
    "bytes_mem_written": ("cas_count_write", "unc_m_cas_count_write"),
    "flops": ("papi_fp_ops", "fp_ret_sse_avx_ops_all", "retired_sse_avx_flops_all", "pm_flop_cmpl"),
    "flops_dp": ("papi_dp_ops",),
    "flops_sp": ("papi_sp_ops",),
    "branches": (
        "branch_instructions", "br_inst_retired_all_branches", "papi_br_ins", "ex_ret_brn", "hw_branch_instructions",
        "perf_count_hw_branch_instructions", "br_retired", "retired_branch_instr", "branch_loads",
    ),
    "branch_misses": (
        "br_misp_retired_all_branches", "papi_br_msp", "ex_ret_brn_misp", "hw_branch_misses",
        "perf_count_hw_branch_misses", "br_mis_pred_retired", "retired_mispredicted_branch_instr",
        "branch_load_misses",
    ),
    "visits": ("calls", "call_count", "region_calls", "number_of_calls", "region_count"),
    "time": ("runtime_rdtsc", "rdtsc_runtime"),
    "cpu_time": ("task_clock", "cpu_clock", "cputime"),
}
# fmt: on
"""Events that are one metric, the most precise first."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A metric that is a weighted sum of events: sum of weight x event, `optional` ones counted where present."""

    metric: str
    weights: Mapping[str, float]
    optional: Mapping[str, float] = field(default_factory=dict)
    keep: bool = True
    """Whether the events stay in the table under their own names."""


def _widths(precision: str, lanes: int) -> dict[str, float]:
    prefix = "fp_arith_inst_retired"
    return {f"{prefix}_{bits}b_packed_{precision}": float(bits // 128 * lanes) for bits in (128, 256, 512)}


SUMS: tuple[Sum, ...] = (
    Sum("flops_dp", {"fp_arith_inst_retired_scalar_double": 1.0}, _widths("double", 2)),
    Sum("flops_sp", {"fp_arith_inst_retired_scalar_single": 1.0}, _widths("single", 4)),
    Sum("bytes_mem_read", {"cas_count_rd": CACHE_LINE}, keep=False),
    Sum("bytes_mem_written", {"cas_count_wr": CACHE_LINE}, keep=False),
    Sum("bytes_mem_read", {"unc_m_cas_count_rd": CACHE_LINE}, keep=False),
    Sum("bytes_mem_written", {"unc_m_cas_count_wr": CACHE_LINE}, keep=False),
    Sum(
        "bytes_l2",
        {"l1d_replacement": CACHE_LINE, "l2_trans_l1d_wb": CACHE_LINE},
        {"icache_64b_iftag_miss": CACHE_LINE, "icache_misses": CACHE_LINE},
    ),
    Sum("bytes_l2", {"l1d_replacement": CACHE_LINE, "l1d_m_evict": CACHE_LINE}, {"icache_misses": CACHE_LINE}),
    Sum("loads_mem", {"mem_load_l3_miss_retired_local_dram": 1.0}, {"mem_load_l3_miss_retired_remote_dram": 1.0}),
    Sum(
        "loads_mem",
        {"mem_load_uops_l3_miss_retired_local_dram": 1.0},
        {"mem_load_uops_l3_miss_retired_remote_dram": 1.0},
    ),
    Sum("loads_mem", {"ls_dmnd_fills_from_sys_dram_io_near": 1.0}, {"ls_dmnd_fills_from_sys_dram_io_far": 1.0}),
    Sum("loads_mem", {"ls_dmnd_fills_from_sys_mem_io_local": 1.0}, {"ls_dmnd_fills_from_sys_mem_io_remote": 1.0}),
    Sum("loads_l1", {"papi_ld_ins": 1.0, "papi_l1_ldm": -1.0}),
    Sum("loads_l2", {"papi_l1_ldm": 1.0, "papi_l2_ldm": -1.0}),
    Sum("loads_l3", {"papi_l2_ldm": 1.0, "papi_l3_ldm": -1.0}),
    Sum("loads_mem", {"papi_l3_ldm": 1.0}),
    Sum("bytes_mem", {"bytes_mem_read": 1.0, "bytes_mem_written": 1.0}),
    Sum("flops", {"flops_dp": 1.0, "flops_sp": 1.0}),
)
"""Sums in the order in which they are tried; the first that can be formed gives the metric."""

UNITS: dict[str, float] = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "ms": 1e-3, "msec": 1e-3, "millisec": 1e-3, "milliseconds": 1e-3,
    "us": 1e-6, "usec": 1e-6, "usecs": 1e-6, "microseconds": 1e-6, "µs": 1e-6,
    "ns": 1e-9, "nsec": 1e-9, "nsecs": 1e-9, "nanoseconds": 1e-9,
    "b": 1.0, "byte": 1.0, "bytes": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
    "kbytes": 1e3, "mbytes": 1e6, "gbytes": 1e9, "tbytes": 1e12,
    "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40,
    "hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9,
    "j": 1.0, "joules": 1.0, "w": 1.0, "watts": 1.0, "mj": 1e-3, "uj": 1e-6,
    "": 1.0, "#": 1.0, "occ": 1.0, "count": 1.0, "events": 1.0, "calls": 1.0, "cycles": 1.0,
}  # fmt: skip
"""Factors that bring a unit, folded, to SI."""

_MODIFIERS = re.compile(r":(?:[ukhHGpPSDWI]+)$")
_PRECISE = re.compile(r"(?<=[A-Z0-9])_PS$")
"""Which VTune adds to the name of an event that it sampled precisely."""
_PMU = re.compile(r"^(?:cpu(?:_core|_atom)?|uncore_[a-z0-9_]+|armv\w+|[a-z0-9_]*imc[a-z0-9_]*)/(.*)/[a-zA-Z]*$")
_SEPARATORS = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=8192)
def fold(name: str) -> str:
    """Fold an event's name: ``cpu/INST_RETIRED.ANY/u`` and ``inst_retired_any:u`` become ``inst_retired_any``."""
    bare = name.strip()
    pmu = _PMU.match(bare)
    if pmu:
        bare = pmu[1].removeprefix("event=").split(",")[0]
    bare = _PRECISE.sub("", _MODIFIERS.sub("", bare)).lower()
    bare = bare.split("::", 1)[1] if "::" in bare and bare.split("::", 1)[0] in {"perf", "perf_raw"} else bare
    return _SEPARATORS.sub("_", bare).strip("_")


_METRIC_OF: dict[str, tuple[str, int]] = {
    event: (metric, place) for metric, events in SYNONYMS.items() for place, event in enumerate(events, start=1)
}


def metric_name(name: str) -> str:
    """The registry's name of another tool's metric or event; `name` itself where the registry has none."""
    folded = fold(name)
    if folded in METRICS:
        return folded
    return _METRIC_OF[folded][0] if folded in _METRIC_OF else name


def unit_scale(unit: str) -> float | None:
    """Factor that brings values in `unit` to SI; None where the unit is unknown."""
    return UNITS.get(unit.strip().casefold())


@dataclass(frozen=True, slots=True)
class Translated:
    """Columns under the registry's names.

    Attributes
    ----------
    columns : dict of str to ndarray, shape (n,)
        Metrics in SI units; what the registry does not know keeps its own name.
    provenance : dict of str to str
        For each metric where it comes from.
    notes : tuple of str
        What was decided on the way.
    parts : dict of str to tuple of (str, float)
        The columns that each metric is the sum of, with their factors.
    """

    columns: dict[str, Array]
    provenance: dict[str, str]
    notes: tuple[str, ...]
    parts: dict[str, tuple[tuple[str, float], ...]]

    @property
    def names(self) -> dict[str, str]:
        """For each metric that is one column under another name, that name."""
        single = {metric: parts[0] for metric, parts in self.parts.items() if len(parts) == 1}
        return {metric: name for metric, (name, weight) in single.items() if weight == 1 and name != metric}


def translate(
    columns: Mapping[str, Array], origin: str | Mapping[str, str] = "measured", aliases: Mapping[str, str] | None = None
) -> Translated:
    """Bring columns under their source's names to the registry's names.

    Parameters
    ----------
    columns : mapping of str to ndarray, shape (n,)
        Values under the source's names, in SI units already.
    origin : str or mapping of str to str
        Provenance of all columns, or of each (``"measured"`` where it is not listed).
    aliases : mapping of str to str, optional
        Names that only this source uses, and the metric each of them is.
    """
    given = {name: origin if isinstance(origin, str) else origin.get(name, "measured") for name in columns}
    claims: dict[str, list[tuple[int, str]]] = {}
    for name in columns:
        folded = fold(name)
        if aliases and name in aliases:
            claims.setdefault(aliases[name], []).append((-1, name))
        elif folded in METRICS:
            claims.setdefault(folded, []).append((0, name))
        elif folded in _METRIC_OF:
            metric, place = _METRIC_OF[folded]
            claims.setdefault(metric, []).append((place, name))
    winner = {min(names, key=lambda claim: claim[0])[1]: metric for metric, names in claims.items()}
    chosen = {metric: name for name, metric in winner.items()}
    notes = [
        f"{name} is {metric} too, which {chosen[metric]} gives: kept under its own name"
        for metric, names in claims.items()
        for _, name in names
        if name not in winner
    ]
    result: dict[str, Array] = {}
    provenance: dict[str, str] = {}
    made: dict[str, tuple[tuple[str, float], ...]] = {}
    for name, values in columns.items():
        metric = winner.get(name, name)
        made[metric] = ((name, 1.0),)
        result[metric] = np.asarray(values, dtype=np.float64)
        said = given[name]
        provenance[metric] = said if metric == name or said != "measured" else f"measured ({name})"
    _form_sums(columns, result, provenance, notes, made)
    return Translated(result, provenance, tuple(notes), made)


def _form_sums(
    columns: Mapping[str, Array],
    result: dict[str, Array],
    provenance: dict[str, str],
    notes: list[str],
    made: dict[str, tuple[tuple[str, float], ...]],
) -> None:
    """Add the metrics that are sums of others to `result`, in place."""
    place = {fold(name): name for name in columns}
    for rule in SUMS:
        if rule.metric in result:
            continue
        parts = _parts(rule.weights, place, columns, result)
        if len(parts) < len(rule.weights):
            continue
        extra = _parts(rule.optional, place, columns, result)
        total = np.zeros_like(parts[0][2])
        for _, weight, values in parts:
            total = total + weight * values
        for _, weight, values in extra:
            total = total + weight * np.nan_to_num(values)
        if (total < 0).any():
            notes.append(f"{rule.metric} came out negative in {int((total < 0).sum())} places and is set to 0 there")
            total = np.where(total < 0, 0.0, total)
        result[rule.metric] = total
        weights = [(name, weight) for name, weight, _ in (*parts, *extra)]
        made[rule.metric] = tuple(
            (source, weight * own) for name, weight in weights for source, own in made.get(name, ((name, 1.0),))
        )
        names = [name for name, _, _ in (*parts, *extra)]
        terms = [name if weight == 1 else f"{name} x {weight:g}" for name, weight, _ in (*parts, *extra)]
        provenance[rule.metric] = f"derived from {', '.join(terms)}"
        if not rule.keep:
            for name in names:
                result.pop(name, None)
                provenance.pop(name, None)


def _parts(
    weights: Mapping[str, float], place: Mapping[str, str], columns: Mapping[str, Array], result: Mapping[str, Array]
) -> list[tuple[str, float, Array]]:
    found: Sequence[tuple[str, float, Array | None]] = [
        (place.get(name, name), weight, columns[place[name]] if name in place else result.get(name))
        for name, weight in weights.items()
    ]
    return [(name, weight, np.asarray(values)) for name, weight, values in found if values is not None]
