"""Spreads of the law of power and of what it is asked with, from LIKWID's energies, each with the program left out.

For every program and machine the law is fitted to the runs of one domain, package or few nodes, and compared with the
runs on more cores, at N e-folds more of them. Memory modules are also fitted to all runs. Three things drift:

    power:     ln E / E_law with the counts measured there      ~ s sqrt(N)   (POWER_DRIFT, of packages and memory)
    rates:     ln of instructions or bytes a second of a core   ~ s sqrt(N)   (RATE_DRIFT)
    starting:  ln of seconds from the first start to the last      = p ln(nodes) (STARTING)

s is such that nine of ten changes lie within 1.645 s, p a mean and deviation. The priors are those of all programs; a
program is judged by the others.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from benchmarks.energy import COMPONENTS, TASKS, experiment_of, readings
from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.core.arrays import Array
from ranksight.core.reading import Reading
from ranksight.model import priors
from ranksight.model.energy.agreeing import fit_law
from ranksight.model.energy.metered import COUNTS, Metered, metered
from ranksight.model.energy.power import amounts_of
from ranksight.model.energy.stored import Profile
from ranksight.platforms import load

TITLE = "Priors of energy"
TAIL = 1.645
"""Standard deviations of the ends of a 90 % interval."""
AWAKE, BYTE = "memory at rest, W", "memory, nJ a byte"
CENTRED = ("starting", AWAKE, BYTE)
"""Quantities of which a mean is known."""
Drifts = dict[str, dict[str, list[float]]]
"""Changes over the root of their distance, or powers, by quantity and program."""


def run(settings: Settings) -> str:
    """Each program's own spread, that of the others, and how many of its changes lie within it."""
    data = settings.data / "counters"
    if not data.is_dir():
        raise Skipped("the real measurements are not there")
    drifts: Drifts = defaultdict(lambda: defaultdict(list))
    for _, folder, platform, most, _ in TASKS:
        for program, files in readings(data / folder / "MEM_DP").items():
            for quantity, value in _changes(program, files, platform, most):
                drifts[quantity][program].append(value)
    rows: list[list[object]] = []
    for quantity, programs in drifts.items():
        centred = quantity in CENTRED
        for program, values in programs.items():
            others = np.array([v for name, theirs in programs.items() if name != program for v in theirs])
            middle = float(others.mean()) if centred else 0.0
            spread = float(others.std()) if centred else _spread(others)
            each = np.array(values)
            inside = 100 * float(np.mean(np.abs(each - middle) <= TAIL * spread))
            own = float(each.mean()) if centred else _spread(each)
            rows.append([quantity, program, len(values), own, middle, spread, inside])
    heads = ["what", "program", "changes", "its own", "mean of the others", "spread of the others", "inside 90 %, %"]
    return "\n\n".join([_summary(drifts), markdown(heads, rows)])


def _spread(changes: Array) -> float:
    """The standard deviation whose 90 % interval holds nine of ten changes."""
    return float(np.quantile(np.abs(changes), 0.9)) / TAIL


def _summary(drifts: Drifts) -> str:
    every = {name: np.array([v for values in each.values() for v in values]) for name, each in drifts.items()}
    of_power = ", ".join(f"{c} {_spread(every[f'power, {c}']):.3f} ({priors.POWER_DRIFT[c]:g})" for c in COMPONENTS)
    rates = np.concatenate([every[name] for name in every if name.startswith("rate")])
    power, doubt = priors.STARTING
    return (
        f"All programs, with the priors in brackets: power of {of_power}; rates {_spread(rates):.3f} "
        f"({priors.RATE_DRIFT:g}); starting {every['starting'].mean():.2f} +- {every['starting'].std():.2f} "
        f"({power:g} +- {doubt:g}); "
        + "; ".join(
            f"{name} {every[name].mean():.3g} +- {every[name].std():.2g} ({middle:g} +- {spread:g})"
            for name, (middle, spread) in zip((AWAKE, BYTE), priors.DRAM.values(), strict=True)
        )
        + "."
    )


def _changes(program: str, files: Mapping[int, Reading], platform: str, most: int) -> Iterator[tuple[str, float]]:
    """Changes from the runs of up to `most` ranks to each run on more."""
    described = load(platform)
    with tempfile.TemporaryDirectory() as folder:
        experiment = experiment_of(folder, program, files, files)
        for component in COMPONENTS:
            windows = metered(experiment, component, described)
            assert windows is not None
            by_run = _runs(windows)
            law, _ = fit_law(windows.rows(np.concatenate([rows for n, rows in by_run.items() if n <= most])), component)
            for ranks, rows in by_run.items():
                if ranks > most:
                    said = law.joules(amounts_of(windows.rows(rows), component)).sum()
                    gap = np.log(windows.joules[rows].sum() / said) - float(law.residual_at(np.array([ranks]))[0])
                    yield f"power, {component}", float(gap / np.sqrt(np.log(ranks / most)))
        assert windows is not None
        yield from zip((AWAKE, BYTE), fit_law(windows, "dram")[0].coefficients.tolist(), strict=True)
        last = max(ranks for ranks in by_run if ranks <= most)
        for ranks, rows in by_run.items():
            if ranks <= most:
                continue
            for name in set(COUNTS) & set(windows.counts) - {"cycles"}:
                change = _rate(windows, name, rows) - _rate(windows, name, by_run[last])
                yield f"rate of {name}", float(change / np.sqrt(np.log(ranks / last)))
        if most > described.cores:
            beyond = [ranks for ranks in by_run if ranks >= last]
            profile = Profile.of(windows)
            waits = np.interp(np.log(beyond), np.log(profile.cores), np.log(profile.starting))
            yield "starting", float(np.polyfit(np.log(beyond), waits, 1)[0])


def _runs(windows: Metered) -> dict[float, Array]:
    """Rows of each run, by its cores."""
    names = np.array(windows.runs, dtype=object)
    rows = [np.flatnonzero(names == name) for name in dict.fromkeys(windows.runs)]
    return dict(sorted((float(windows.cores[each].sum()), each) for each in rows))


def _rate(windows: Metered, name: str, rows: Array) -> float:
    """Logarithm of counts a second of a core that is awake."""
    return float(np.log(windows.counts[name][rows].sum() / (windows.cores * windows.awake)[rows].sum()))
