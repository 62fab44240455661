"""Mutants of formulas: changes that make an answer wrong, each on a copy of the tree, against the tests that cover it.

A test suite that passes with a wrong formula is no proof of the formula. Every mutant changes one expression in one
file; its tests run on the changed copy and have to fail.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.settings import ROOT, Settings
from benchmarks.table import markdown

TITLE = "Mutants of formulas"
GOAL = 0.95
"""Share of the mutants that tests have to catch."""
PATIENCE = 300.0
"""Seconds for the tests of one mutant; a mutant that makes them hang is caught."""
LEFT_OUT = (".*", "__pycache__", "*.egg-info", "build", "dist", "docs", "ranksight-demo*")


@dataclass(frozen=True)
class Mutant:
    """One wrong formula.

    Attributes
    ----------
    what : str
        The formula, for the table.
    file : str
        Below the repository's root.
    before, after : str
        Text that occurs once in the file, and what replaces it.
    tests : str
        Test files that cover it, separated by spaces.
    """

    what: str
    file: str
    before: str
    after: str
    tests: str


EQUATION = "tests/formulas/test_resource_equation.py"
NETWORKS = "tests/formulas/test_networks.py"
COUNTS = "tests/formulas/test_counts_and_costs.py"
FABRIC = "tests/costs/test_fabric.py tests/formulas/test_networks.py"
SCALES = "tests/diagnosis/test_scales.py"
COUNTED = "tests/kernel_time/test_counted_parts.py"
STATISTICS = "tests/formulas/test_statistics.py"
RESOURCE = "model/resource/equation.py"
HOW = "comm/costs/fabric.py"

MUTANTS = (
    Mutant("execution time at the program's scale", RESOURCE, "self.machine.frequency / self.scale",
           "self.machine.frequency * self.scale", EQUATION),
    Mutant("interval of a quantity", "model/quantity.py", "return float(special.ndtri((1 + level) / 2))",
           "return float(special.ndtri(level))", "tests/model/test_quantity.py"),
    Mutant("prediction interval of a blocking factor", RESOURCE,
           "reach = TAIL * self.error", "reach = self.error", EQUATION),
    Mutant("lower end of a positive sum", RESOURCE, "ratio(down, time) / z", "ratio(up, time) / z", EQUATION),
    Mutant("scatter between jobs and of the machine", RESOURCE, "np.hypot(priors.BETWEEN_JOBS, self.run_to_run)",
           "priors.BETWEEN_JOBS", EQUATION),
    Mutant("noise between jobs", "model/priors.py", "BETWEEN_JOBS = 0.04", "BETWEEN_JOBS = 0.0",
           f"{EQUATION} {COUNTS}"),
    Mutant("memory latency at another clock", RESOURCE, "(*caches, memory * frequency / self.frequency)",
           "(*caches, memory)", EQUATION),
    Mutant("memory latency in cycles", RESOURCE, "memory = float(platform.memory.latency) * frequency",
           "memory = float(platform.memory.latency) * 1e9", EQUATION),
    Mutant("marginal likelihood: determinant's sign", "model/sharing/traffic.py", "+ volume - np.log(precision",
           "- volume - np.log(precision", COUNTS),
    Mutant("marginal likelihood: prior", "model/sharing/traffic.py", "- np.log(precision[2:]).sum()",
           "+ np.log(precision[2:]).sum()", COUNTS),
    Mutant("ring, ranks dealt in turn: p - 1 steps", HOW, "np.asarray((ranks - 1) * self.shift(ranks, size, 1))",
           "np.asarray(ranks * self.shift(ranks, size, 1))", FABRIC),
    Mutant("ring in blocks: steps inside nodes", HOW, "self.hops(size, crossing, ranks - 1 - crossing)",
           "self.hops(size, crossing, ranks - crossing)", FABRIC),
    Mutant("exchange: pairs that stay inside", HOW, "(k % (2 * np.maximum(distance, 1)) == 0) | (ranks <= k)",
           "(k % np.maximum(distance, 1) == 0) | (ranks <= k)", FABRIC),
    Mutant("train of messages: n - 1 gaps", HOW, "np.maximum(far - 1, 0) * _between", "far * _between", FABRIC),
    Mutant("all pairs: distances at both ends", HOW, "np.maximum(ranks - 1 - 2 * (k - 1), 0)",
           "np.maximum(ranks - 1 - (k - 1), 0)", FABRIC),
    Mutant("shift around the end of the ranks", HOW, "hops = np.minimum(ahead, np.maximum(ranks - ahead, 0))",
           "hops = ahead", FABRIC),
    Mutant("rounds of a tree", HOW, "np.maximum(np.asarray(ranks, dtype=np.int64), 1) - 1)[1]",
           "np.maximum(np.asarray(ranks, dtype=np.int64), 1))[1]", "tests/costs/test_collectives.py"),
    Mutant("allreduce around a ring: blocks of m / p", "comm/costs/algorithms.py", "2 * on.ring(p, m / p)",
           "2 * on.ring(p, m)", NETWORKS),
    Mutant("reduce-scatter: blocks that double", "comm/costs/algorithms.py", "whole / core * d", "whole / core * 2 * d",
           NETWORKS),
    Mutant("Rabenseifner: blocks that halve", "comm/costs/algorithms.py", "m / (2 * d)", "m / d", NETWORKS),
    Mutant("chain of ranks on nodes", "comm/costs/trees.py", "between = fabric.nodes(ranks) - 1",
           "between = fabric.nodes(ranks)", NETWORKS),
    Mutant("pieces of a function of message size", "comm/network.py", 'side="right") - 1',
           'side="left") - 1', NETWORKS),
    Mutant("pairs that share a node's bandwidth", "comm/network.py", "1.0 / max(self.node_bandwidth *",
           "0.5 / max(self.node_bandwidth *", NETWORKS),
    Mutant("process grids", "core/dims.py", "extents.index(min(extents))", "extents.index(max(extents))", COUNTS),
    Mutant("binary prefixes", "core/units.py", '"Ki": 2.0**10', '"Ki": 1e3', COUNTS),
    Mutant("Caliper's nanoseconds", "counters/readers/_caliper_names.py", "else 1e-9", "else 1e-6", COUNTS),
    Mutant("load balance (POP)", "analysis/diagnosis/efficiencies.py", "balance = computing / (computing + imbalance)",
           "balance = computing / whole", SCALES),
    Mutant("IPC scaling (POP)", "analysis/diagnosis/efficiencies.py",
           "(instructions / computing) / (instructions[0] / computing[0])",
           "(instructions[0] / computing[0]) / (instructions / computing)", SCALES),
    Mutant("communication efficiency (POP)", "analysis/diagnosis/efficiencies.py",
           "communication = (computing + imbalance) / whole", "communication = computing / whole", SCALES),
    Mutant("mean of a lognormal law", "analysis/planning/cost.py", "np.exp(sigma**2 / 2)",
           "np.exp(sigma**2)", COUNTS),
    Mutant("quantile of a run's cost", "analysis/planning/cost.py",
           "sigma = np.log(upper / median) / float(special.ndtri((1 + LEVEL) / 2))",
           "sigma = np.log(upper / median) / float(special.ndtri(LEVEL))", COUNTS),
    Mutant("interval of a power: degrees of freedom", "analysis/phases/power.py", "stdtrit(self.count - 2,",
           "stdtrit(self.count - 1,", COUNTS),
    Mutant("interval of a power: distance", "analysis/phases/power.py", "1 + 1 / self.count +", "1 / self.count +",
           COUNTS),
    Mutant("standard error of a mean of repetitions", "analysis/comparison/sides.py",
           "error = np.sqrt(deviation[:, None] ** 2 / np.maximum(count, 1) +",
           "error = np.sqrt(deviation[:, None] ** 2 +", COUNTS),
    Mutant("noise between experiments: successive differences", "analysis/history/changepoints.py", "/ np.sqrt(2)\n",
           "/ 2\n", COUNTS),
    Mutant("score of a law: Student's density", "model/laws/stacking.py", "- 0.5 * np.log(nu * np.pi)",
           "+ 0.5 * np.log(nu * np.pi)", "tests/laws/test_stacking.py"),
    Mutant("mixture of laws: variance between them", "model/laws/stacking.py",
           "ratio(between, between + within", "ratio(within, between + within",
           "tests/laws/test_stacking.py"),
    Mutant("fitted equation: least squares of CPI_exec and BF_mem", "model/kernel_time/composed.py",
           "(aa * b - ab * a)", "(aa * b + ab * a)", "tests/kernel_time/test_fitted_equation.py"),
    Mutant("fitted equation: waiting that no run shows", "model/kernel_time/composed.py",
           "+ (unseen / total) ** 2", "", "tests/kernel_time/test_fitted_equation.py"),
    Mutant("own time of a collective: least over ranks", "comm/waiting.py", 'transform("min")', 'transform("mean")',
           "tests/costs/test_waiting.py"),
    Mutant("counted equation: memory latency at the clock", "model/kernel_time/counted.py",
           "self.latencies_at(np.exp(f.centre[0]))[:, None]", "self.latencies[:, None, None]", COUNTED),
    Mutant("counted equation: a domain's need is of all ranks", "model/kernel_time/counted.py",
           "self.where.active(points) * one", "one", COUNTED),
    Mutant("uncertainty of a rate's level", "model/kernel_time/rates.py",
           " + missing**2 * solved.variance[..., None]", "", STATISTICS),
    Mutant("independent errors add in quadrature", "model/quantity.py", "first = np.hypot(first, size)",
           "first = first + size", STATISTICS),
    Mutant("correlation of kernels' noise", "model/application/program_time.py", "rows, shares[rows], rho)",
           "rows, shares[rows], 0.0)", STATISTICS),
    Mutant("effective degrees of freedom", "model/uncertainty/forecast.py", "np.where(wide > 0, variances, nu)",
           "nu", STATISTICS),
    Mutant("evidence of a process: determinant's sign", "model/process/solve.py",
           "scores -= 0.5 * self.log_determinant", "scores += 0.5 * self.log_determinant", STATISTICS),
)  # fmt: skip


def run(settings: Settings) -> str:
    """Table of the mutants and whether tests caught them; with `settings.quick` of every tenth."""
    chosen = MUTANTS[::10] if settings.quick else MUTANTS
    with tempfile.TemporaryDirectory(prefix="ranksight-mutants-") as place:
        tree = Path(place) / "ranksight"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
        every = " ".join(sorted({test for mutant in chosen for test in mutant.tests.split()}))
        if not passes(tree, every):
            raise SystemExit(f"mutants: the tests fail without a mutant, too: {every}")
        rows = [[mutant.what, mutant.file, caught, took] for mutant, caught, took in _each(tree, chosen)]
    count = sum(row[2] == "yes" for row in rows)
    return (
        f"{count} of {len(rows)} mutants are caught ({count / len(rows):.0%}; the goal is {GOAL:.0%}). Each changes "
        "one expression of one file in a copy of the tree; the tests that cover the formula then have to fail.\n\n"
        + markdown(["formula", "file", "caught", "seconds"], rows)
    )


def _each(tree: Path, mutants: tuple[Mutant, ...]) -> Iterator[tuple[Mutant, str, float]]:
    """Each mutant with whether its tests failed on it, and the seconds they took; the tree is put right after each."""
    for mutant in mutants:
        path = tree / mutant.file
        text = path.read_text(encoding="utf-8")
        path.write_text(mutated(mutant, text), encoding="utf-8")
        start = time.perf_counter()
        try:
            passed = passes(tree, mutant.tests)
        finally:
            path.write_text(text, encoding="utf-8")
        yield mutant, "**no**" if passed else "yes", round(time.perf_counter() - start, 1)


def mutated(mutant: Mutant, text: str) -> str:
    """The file's text with the mutant in it; raises ValueError when the formula is not there exactly once."""
    if text.count(mutant.before) != 1:
        raise ValueError(f"{mutant.file} holds {mutant.before!r} {text.count(mutant.before)} times: mend the mutant")
    return text.replace(mutant.before, mutant.after)


def passes(tree: Path, tests: str) -> bool:
    """Whether the tests pass on the copy; no bytecode is kept, as a mutant may be as long as what it replaces."""
    environment = {**os.environ, "PYTHONPATH": str(tree.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests.split()]
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1, 2):  # 2: a mutant that breaks an import
        raise RuntimeError(f"pytest failed: {done.stdout.decode()[-2000:]}{done.stderr.decode()[-2000:]}")
    return done.returncode == 0
