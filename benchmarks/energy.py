"""Energy of programs on more cores and nodes than were measured, from LIKWID's energies, each program by itself.

SPEChpc 2021 tiny on nodes of two machines and SPEChpc small on 1 to 16 nodes. Coefficients are those of each
program's own runs. On 16 nodes ranks wait for others to be started half of the time, which differs by a quarter and
more from job to job: where it is not known, neither is the energy. POWER_DRIFT, RATE_DRIFT, DRAM and STARTING of
``model/priors.py`` are those of these programs together; ``energy_priors`` shows each with what the others say.
COUNT_ENERGY was widened with these programs in sight: errors and coverage of other programs may be larger.
"""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.reading import READERS, Reading
from ranksight.core.run import Run
from ranksight.model.energy.metered import metered
from ranksight.model.energy.power import amounts_of
from ranksight.model.energy.predicted import parts
from ranksight.model.energy.stored import Energy
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.platforms import load

TITLE = "Energy"
TASKS = (
    ("one domain of Ice Lake, 1..18 ranks", "spechpc_likwid_icelake", "icelake-8360y", 18, (36, 72)),
    ("one package of Ice Lake, 1..36 ranks", "spechpc_likwid_icelake", "icelake-8360y", 36, (72,)),
    (
        "one domain of Sapphire Rapids, 1..13 ranks",
        "spechpc_likwid_sapphirerapids",
        "sapphirerapids-8470",
        13,
        (52, 104),
    ),
    (
        "4 nodes of Sapphire Rapids, 104..416 ranks",
        "spechpc_small_sapphirerapids",
        "sapphirerapids-8470",
        416,
        (832, 1664),
    ),
)
"""Name, folder, platform, most ranks to train on, and ranks that are asked."""
COMPONENTS = ("package", "dram")
WAYS = ("windows and counts measured", "true time", "power x true time", "predicted time", "last power x time")
HEAD = (
    "Errors of the energy in %, median (largest) over the programs. *Windows and counts measured*: the law of power "
    "alone, with the seconds in which each package's cores were awake and halted and what they counted. *True time*: "
    "``predict --time`` with the measured "
    "time. *Power x true time*: the predicted power times it. *Last power x time*: power of the last run, scaled with "
    "the packages held, times the true time."
)


@dataclass(frozen=True)
class Case:
    """One program at one count: signed errors by component, with the true and the predicted time; who is inside."""

    program: str
    ranks: int
    law: Mapping[str, float]
    true_time: Mapping[str, float]
    power: Mapping[str, float]
    predicted: Mapping[str, float]
    simple: Mapping[str, float]
    inside: Mapping[str, bool]
    inside_power: Mapping[str, bool]
    time: float


def run(settings: Settings) -> str:
    """Tables of errors by task and by program, of coverage, and of the rank count of least energy."""
    data = settings.data / "counters"
    if not data.is_dir():
        raise Skipped("the real measurements are not there")
    rows, each, covered, choices = [], [], [], []
    for title, folder, platform, most, asked in TASKS:
        programs = readings(data / folder / "MEM_DP")
        cases = [case for name, found in programs.items() for case in judged(name, found, platform, most, asked)]
        for ranks in asked:
            here = [case for case in cases if case.ranks == ranks]
            row: list[object] = [f"{title} -> {ranks}"]
            for component in COMPONENTS:
                for of in ("law", "true_time", "power", "predicted", "simple"):
                    errors = np.abs([getattr(case, of)[component] for case in here])
                    row.append(f"{np.median(errors):.1f} ({errors.max():.1f})")
            rows.append(row)
            each += [
                [
                    f"{case.program}, {ranks}",
                    *(case.true_time[c] for c in COMPONENTS),
                    *(case.power[c] for c in COMPONENTS),
                    *(case.predicted[c] for c in COMPONENTS),
                    case.time,
                ]
                for case in here
            ]
            covered.append(
                [
                    f"{title} -> {ranks}",
                    *(
                        100 * np.mean([getattr(case, of)[c] for case in here])
                        for of in ("inside_power", "inside")
                        for c in COMPONENTS
                    ),
                ]
            )
        choices += [chosen(title, name, found, platform, most) for name, found in programs.items()]
    heads = [f"{c}, {what}" for c in COMPONENTS for what in WAYS]
    signed = [f"{c}, {way}" for way in ("true time", "power", "energy") for c in COMPONENTS]
    return "\n\n".join(
        [
            HEAD,
            markdown(["task", *heads], rows),
            "Signed errors in % of each program: with the true time, of the power, with the predicted time, of it.",
            markdown(["program", *signed, "time"], each),
            "Parts of the 90 % intervals, in %, that hold the measured value.",
            markdown(["task", "power, package", "power, DRAM", "energy, package", "energy, DRAM"], covered),
            "Rank count of least energy (packages and DRAM) of those measured; what the chosen one takes more, in %.",
            markdown(["program", "least", "chosen", "more"], choices),
        ]
    )


def readings(folder: Path) -> dict[str, dict[int, Reading]]:
    """Readings by program and ranks; files that hold access errors are left out."""
    found: dict[str, dict[int, Reading]] = defaultdict(dict)
    for file in sorted(folder.iterdir()):
        program, ranks = re.findall(r"^(\w+)-\w+Rank(\d+)-", file.name)[0]
        try:
            found[program][int(ranks)] = next(iter(READERS["likwid"].read(file)))
        except InputError:
            continue
    return found


def experiment_of(folder: str, name: str, found: Mapping[int, Reading], chosen: Collection[int]) -> Experiment:
    """An experiment in `folder` with the readings of the ranks that are `chosen`."""
    experiment = Experiment.create(Path(folder) / "e.exp", name, ["ranks"])
    for ranks in chosen:
        reading = found[ranks]
        run = Run({"ranks": float(ranks)}, wall_time=reading.wall_time, meanings=reading.meanings)
        experiment.add(run, reading.counters, tables=reading.tables)
    return experiment


def model_of(name: str, found: Mapping[int, Reading], platform: str, most: int) -> Model:
    """The model of the runs of up to `most` ranks."""
    with tempfile.TemporaryDirectory() as folder:
        return fit(experiment_of(folder, name, found, [n for n in found if n <= most]), platform=platform)


def by_law(name: str, found: Mapping[int, Reading], platform: str, energy: Energy, ranks: int) -> dict[str, float]:
    """Joules that the law of each component gives for what the run of `ranks` counted."""
    with tempfile.TemporaryDirectory() as folder:
        experiment, joules = experiment_of(folder, name, found, [ranks]), {}
        for component in COMPONENTS:
            windows, law = metered(experiment, component, load(platform)), energy.law(component)
            assert windows is not None
            assert law is not None
            terms = law.joules(amounts_of(windows, component)).sum()
            joules[component] = float(terms * np.exp(law.residual_at(np.array([float(ranks)]))[0]))
        return joules


def measured(reading: Reading) -> dict[str, float]:
    """Joules of each component, and the time."""
    table = reading.counters
    assert table is not None
    table = table[table["kernel"] == WHOLE]
    return {"time": float(table["time"].max()), **{c: float(table[f"energy_{c}"].sum()) for c in COMPONENTS}}


def judged(name: str, found: Mapping[int, Reading], platform: str, most: int, asked: tuple[int, ...]) -> Iterator[Case]:
    """The cases of one program."""
    model = model_of(name, found, platform, most)
    last = measured(found[max(ranks for ranks in found if ranks <= most)])
    size = model.energy
    for ranks in asked:
        if ranks not in found:
            continue
        truth, at = measured(found[ranks]), np.array([[float(ranks)]])
        said, given = parts(size, model, at), parts(size, model, at, np.array([truth["time"]]))
        held = size.places("package", np.array([[float(ranks)], [float(most)]]), ("ranks",))
        names = [f"{kind}_{c}" for kind in ("energy", "power") for c in COMPONENTS]
        inside = {}
        for answer in model.predict(ranks=ranks, metrics=names).answers:
            kind, _, component = answer.metric.partition("_")
            value = truth[component] / (truth["time"] if kind == "power" else 1.0)
            inside[answer.metric] = answer.lower <= value <= answer.upper
        law = by_law(name, found, platform, size, ranks)
        scale = held[0] / held[1] * truth["time"] / last["time"]
        time = model.programs(at, ["time"])["time"].value[0, 0]
        yield Case(
            name,
            ranks,
            {c: 100 * (law[c] / truth[c] - 1) for c in COMPONENTS},
            {c: 100 * float(given[c].joules[0] / truth[c] - 1) for c in COMPONENTS},
            {c: 100 * float(said[c].watts[0] * truth["time"] / truth[c] - 1) for c in COMPONENTS},
            {c: 100 * float(said[c].joules[0] / truth[c] - 1) for c in COMPONENTS},
            {c: 100 * float(last[c] * scale / truth[c] - 1) for c in COMPONENTS},
            {c: inside[f"energy_{c}"] for c in COMPONENTS},
            {c: inside[f"power_{c}"] for c in COMPONENTS},
            100 * float(time / truth["time"] - 1),
        )


def chosen(title: str, name: str, found: Mapping[int, Reading], platform: str, most: int) -> list[object]:
    """The rank count of least energy, the one that the model chooses, and what it costs more."""
    model = model_of(name, found, platform, most)
    counts = sorted(found)
    said = parts(model.energy, model, np.array(counts, dtype=np.float64)[:, None])
    total = np.sum([said[c].joules for c in COMPONENTS], axis=0)
    truth = np.array([sum(measured(found[ranks])[c] for c in COMPONENTS) for ranks in counts])
    picked = int(np.argmin(total))
    return [
        f"{name}, {title}",
        counts[int(np.argmin(truth))],
        counts[picked],
        100 * float(truth[picked] / truth.min() - 1),
    ]
