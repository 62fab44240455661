"""How often verdicts are wrong: of functions that grow as expected, and p times faster, at three levels of noise."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.settings import Settings
from benchmarks.table import markdown
from ranksight.analysis.expectations.checking import check
from ranksight.analysis.expectations.document import read_study
from ranksight.core.experiment import Experiment, Run

TITLE = "Verdicts on expectations"
TEXT = """Functions a + b f(p), f of four classes (1, log p, p, p log p), a and b at random, expected to grow as
f (met), and a + b p f(p), expected to grow as f too (broken); 2 to 64 ranks, three repetitions of log-normal scatter,
deviation limit p^0.5. What is met should be total or approximate, what is broken none."""

CLASSES: dict[str, Callable[[float], float]] = {
    "log p": lambda p: float(np.log2(p)),
    "p": lambda p: p,
    "p log p": lambda p: float(p * np.log2(p)),
    "1": lambda p: 1.0,
}
RANKS = [2.0**i for i in range(1, 7)]
VERDICTS = ("total", "approximate", "none", "insufficient")
EACH = 30
REPETITIONS = 3


def study(noise: float, folder: Path, each: int, seed: int = 1) -> dict[str, dict[str, int]]:
    """Verdicts on functions that grow as expected (``met``) and p times faster (``broken``)."""
    rng = np.random.default_rng(seed)
    functions: dict[str, Callable[[float], float]] = {}
    lines = ['[search]\ndeviation = "O(p^0.5)"\n[expect.time]']
    for number, (name, shape) in enumerate(CLASSES.items()):
        for i in range(each):
            a, b, c = rng.uniform(0.2, 5), rng.uniform(0.2, 5), rng.uniform(0.05, 1)
            functions[f"met_{number}_{i}"] = lambda p, f=shape, a=a, b=b: a + b * f(p)
            functions[f"broken_{number}_{i}"] = lambda p, f=shape, a=a, c=c: a + c * f(p) * p
            lines += [f'{kind}_{number}_{i} = "O({name})"' for kind in ("met", "broken")]
    experiment = Experiment.create(folder, "made up", ["ranks"])
    for p in RANKS:
        for repetition in range(REPETITIONS):
            time = [f(p) * rng.lognormal(0, noise) for f in functions.values()]
            table = pd.DataFrame({"kernel": list(functions), "rank": -1, "time": time})
            experiment.add(Run({"ranks": p}, repetition, "made up"), table)
    counts = {kind: dict.fromkeys(VERDICTS, 0) for kind in ("met", "broken")}
    file = folder / "expectations.toml"
    file.write_text("\n".join(lines))
    for finding in check(read_study(file), experiment).findings:
        counts[finding.function.split("_")[0]][finding.verdict] += 1
    return counts


def run(settings: Settings) -> str:
    """Table of verdicts."""
    rows = []
    for noise in (0.02, 0.1, 0.3):
        with tempfile.TemporaryDirectory() as folder:
            found = study(noise, Path(folder) / "e", EACH // 10 if settings.quick else EACH)
        rows += [(f"{noise:.0%}, {kind}", *(counts[verdict] for verdict in VERDICTS)) for kind, counts in found.items()]
    return f"{TEXT}\n\n{markdown(('scatter, functions', *VERDICTS), rows)}"
