"""Roofline of a program without kernels: a table of LIKWID's totals has one row."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import ranksight as rs
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.platforms import load


def test_a_program_without_kernels_has_a_place_under_the_roof(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "e", "whole", ["ranks"])
    for p in (1, 2, 4, 8, 16):
        values = {"time": 8 / p, "instructions": 8e9 / p, "flops_dp": 4e9 / p, "bytes_mem": 16e9 / p}
        made.add(Run({"ranks": p}), pd.DataFrame([{"kernel": WHOLE, "rank": -1, **values}]))
    found = rs.fit(made, platform=load("icelake-8360y")).diagnose(ranks=64)
    (row,) = found.roofline().to_dict("records")
    assert (row["kernel"], row["level"], row["operations"]) == (WHOLE, "memory", "flops")
    assert row["intensity"] == pytest.approx(0.25, rel=0.02)
    # A mark stands as far below its roof as the table says.
    assert row["ceiling"] == pytest.approx(row["bandwidth"] * row["intensity"])
    assert row["fraction"] == pytest.approx(row["performance"] / row["ceiling"])


def test_verdicts_show_no_blocking_factor_below_zero(tmp_path: Path) -> None:
    """A time below the equation's, without any wait for memory, is no share of latencies."""
    made = Experiment.create(tmp_path / "e", "kernels", ["ranks"])
    for p in (1, 2, 4, 8, 16):
        seconds = {"a": 4 / p * (1.0 if p < 8 else 0.9), "b": 8 / p}
        rows = [
            {"kernel": kernel, "rank": -1, "time": time, "instructions": 4e9 / p, "loads_l2": 1e6 / p, "loads_mem": 1e5}
            for kernel, time in seconds.items()
        ]
        made.add(Run({"ranks": p}), pd.DataFrame(rows))
    found = rs.fit(made, platform=load("icelake-8360y")).diagnose(ranks=64)
    factors = found.verdicts()["bf_mem"].dropna()
    assert len(factors)
    assert (factors >= 0).all()
    terms = found.terms()
    last = terms[(terms["term"] == "bf_mem") & terms["configuration"].map(lambda at: at["ranks"] == 64)]
    assert found.verdicts().set_index("kernel")["bf_mem"].loc[last["kernel"]].tolist() == pytest.approx(
        last["value"].tolist()
    )


def _walked(path: Path, more: tuple[str, ...]) -> Experiment:
    """A kernel that waits for one load of memory after the other, a little longer with each further rank of a domain,
    and one that streams; stalls counted, loads by level, and what else is asked for."""
    machine = load("icelake-8360y")
    made = Experiment.create(path, "walk", ["ranks"])
    for p in (1, 2, 4, 8, 16):
        rows = []
        for kernel, instructions, missed, latency in (("walk", 3e10, 0.02, 85e-9), ("stream", 3e10, 0.06, 6e-9)):
            loads, crowd = instructions * 0.3 / p, 1 + 0.1 * (p - 1) / 17
            stalls = missed * loads * latency * crowd
            if kernel == "stream":
                stalls = max(stalls, missed * loads * 64 * p / machine.bandwidth(18))
            time = 0.4 * instructions / p / machine.frequency + stalls
            row = {"kernel": kernel, "rank": -1, "time": time, "instructions": instructions / p, "loads": loads}
            row |= {"cycles": time * machine.frequency, "stall_cycles": stalls * machine.frequency}
            row |= {"loads_l1": loads * (1 - missed), "loads_l2": 0.0, "loads_l3": 0.0, "loads_mem": loads * missed}
            rows.append({**row, **dict.fromkeys(more, 64 * loads * missed)})
        made.add(Run({"ranks": p}), pd.DataFrame(rows))
    return made


@pytest.mark.parametrize("more", [(), ("bytes_mem",), ("bytes_mem_read",)])
def test_bytes_that_were_counted_as_well_leave_latency_what_it_is(tmp_path: Path, more: tuple[str, ...]) -> None:
    """A law of shared bandwidth knows what the bytes take of the interface, and not what else loads wait for."""
    found = rs.fit(_walked(tmp_path / "e", more), platform=load("icelake-8360y")).diagnose(ranks=[1, 8, 16, 36])
    table = found.verdicts()
    assert set(table.loc[table["kernel"] == "walk", "verdict"]) == {"latency-bound"}
    roof = found.roofline().query("level == 'memory'").set_index(["ranks", "kernel"])["fraction"]
    used = table[table["level"] == "memory"].set_index(["ranks", "kernel"])["bandwidth_used"]
    assert used.to_dict() == pytest.approx(roof.loc[used.index].to_dict())
