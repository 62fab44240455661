"""Memory that ranks share, known from the loads that it served."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.core.sampled import sampling
from ranksight.model.fit import fit
from ranksight.platforms import Platform, load

CORES = 18
SHARP = 6.0
"""How suddenly a domain is full."""


def _rank(platform: Platform, ranks: int, size: float, lines: float) -> dict[str, float]:
    """Seconds and counts of a rank of a kernel that asks for so many lines an instruction."""
    work = 3e4 * size**3 / ranks
    moved = lines * work
    alone = work / 2 / platform.frequency + 0.04 * moved * platform.memory.latency
    domain = 64 * moved * min(ranks, CORES) / platform.memory.bandwidth_domain
    time = (alone**SHARP + domain**SHARP) ** (1 / SHARP)
    loads = {"loads": 0.3 * work, "loads_l1": 0.3 * work - moved, "loads_l2": 0.0, "loads_l3": 0.0, "loads_mem": moved}
    return {"time": time, "cycles": time * platform.frequency, "instructions": work, **loads}


def _measured(
    path: Path, platform: Platform, ranks: tuple[int, ...], seen: float, how: str = "exact", each: float = 1e-3
) -> Experiment:
    """Runs of a streaming and a computing kernel, of whose lines so many are loads that wait: others were fetched
    ahead. Counts are exact, sampled, or simulated next to times of which a sample is worth `each` seconds."""
    rng = np.random.default_rng(1)
    made = Experiment.create(path, "made up", ["ranks", "size"])
    for p in ranks:
        for size in (64, 80, 96):
            rows = []
            for kernel, lines in (("stream", 0.04), ("compute", 1e-4)):
                row = _rank(platform, p, size, lines)
                row["loads_mem"] *= seen
                rows += [{"kernel": kernel, "rank": r, **row} for r in range(p)]
            table = pd.DataFrame(rows)
            table["time"] *= rng.normal(1, 0.01, len(table))
            if how == "exact":
                made.add(Run({"ranks": p, "size": size}), table)
                continue
            if how == "simulated":
                counts = table.drop(columns=["time", "cycles"])
                expected = dict.fromkeys(counts.columns[2:], "simulated by callgrind")
                made.add(Run({"ranks": p, "size": size}, 0, "callgrind", provenance=expected), counts)
                times = table[["kernel", "rank", "time"]].assign(time=each * rng.poisson(table["time"] / each))
                extra = {"sampling": sampling(times, {"time": each})}
                run = Run({"ranks": p, "size": size}, 0, "perf-clock", provenance={"time": "sampled, n = 1"})
                made.add(run, times, tables=extra)
                continue
            worth = {name: 1e5 for name in table.columns if name not in ("kernel", "rank", "time")} | {"time": 1e-3}
            for name, one in worth.items():
                table[name] = one * rng.poisson(table[name] / one)
            expected = dict.fromkeys(worth, "sampled, n = 1")
            made.add(
                Run({"ranks": p, "size": size}, 0, "perf", provenance=expected),
                table,
                tables={"sampling": sampling(table, worth)},
            )
    return made


@pytest.mark.parametrize("how", ["exact", "sampled", "simulated"])
@pytest.mark.parametrize("seen", [1.0, 0.4])
def test_a_full_domain_is_reported_by_loads(tmp_path: Path, seen: float, how: str) -> None:
    """Times that rise where the interface fills do not go on rising with the ranks of further domains."""
    platform = load("icelake-8360y")
    model = fit(_measured(tmp_path / "e", platform, (1, 2, 4, 8, 12, 18), seen, how), platform=platform)
    for ranks, size in ((72, 96), (72, 160), (36, 64)):
        for answer in model.predict(ranks=ranks, size=size, metrics=["time"], kernels=["stream", "compute"]).answers:
            true = _rank(platform, ranks, size, 0.04 if answer.kernel == "stream" else 1e-4)["time"]
            assert answer.value == pytest.approx(true, rel=0.04)
            assert answer.lower <= true <= answer.upper
            assert ("shared memory bandwidth" in answer.evidence) == (answer.kernel == "stream")


def test_a_domain_that_was_not_full_is_predicted(tmp_path: Path) -> None:
    platform = load("icelake-8360y")
    model = fit(_measured(tmp_path / "e", platform, (1, 2, 4), 0.5), platform=platform)
    (answer,) = (each for each in model.predict(ranks=72, size=96, metrics=["time"]).answers if each.kernel == "stream")
    true = _rank(platform, 72, 96, 0.04)["time"]
    assert answer.lower <= true <= 1.02 * answer.upper
    assert answer.value > _rank(platform, 1, 96, 0.04)["time"] / 72
    assert answer.upper < 4 * answer.lower


def test_kernels_that_hardly_ask_for_memory_are_the_equations(tmp_path: Path) -> None:
    platform = load("icelake-8360y")
    model = fit(_measured(tmp_path / "e", platform, (1, 2, 4, 8), 1.0), platform=platform)
    assert model.equation.sharing is not None
    assert model.equation.sharing.kernels == ("stream",)


def test_few_samples_show_nothing_of_others(tmp_path: Path) -> None:
    """With a handful of samples a kernel that waits for others looks as one that was unlucky."""
    platform = load("icelake-8360y")
    made = _measured(tmp_path / "e", platform, (1, 2, 4, 8), 1.0, "simulated", each=1.0)
    assert fit(made, platform=platform).equation.sharing is None
