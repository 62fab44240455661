"""Verdicts against what is known: kernels of known nature, planted troubles, top-down levels; and what they cost.

Kernels and troubles are measured on this machine, with the collectors that work here; a folder given with ``--cache``
keeps what was measured. Programs are run as ``mpirun -n N ./program`` there.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks import rajaperf
from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.analysis.diagnosis.diagnosing import Diagnosis
from ranksight.core.errors import RanksightError
from ranksight.model.fitted_model import Model

TITLE = "Verdicts"
NATURE = {
    "polynomial": "compute", "division": "compute", "square_root": "compute", "recurrence": "compute",
    "integer_hash": "compute", "matrix_product": "compute", "bytes_in_cache": "compute", "unpredictable": "compute",
    "in_l1": "compute", "in_l2": "cache", "in_l3": "cache", "sum_memory": "memory", "copy_memory": "memory",
    "triad_memory": "memory", "stencil_memory": "memory", "chase_l3": "latency", "chase_memory": "latency",
    "gather_memory": "latency", "update_memory": "latency",
}  # fmt: skip
"""What binds each kernel of ``examples/microkernels.c``, by how it is written."""
PLANTED = {
    "nothing": ((), None),
    "uneven work": (("--imbalance", "1"), ("imbalance", "material_law")),
    "a search through all ranks": (("--bug",), ("growth", "find_neighbour")),
    "a sum handed on from rank to rank": (("--wait",), ("serialisation", "serialised_section")),
}
"""Options of ``examples/heat.c``, and the trouble that must be named."""
SWEPT = ("apply_operator", "axpy", "xpby")
"""Kernels of ``examples/heat.c`` that sweep through its fields: a farther level serves them where these outgrow the
second cache. How much of their time they wait then is measured: they take less where the fields stay in that cache."""
WAITING, CALM_ENOUGH = 0.4, 0.1
"""Least part of its time that a sweep waits to be bound by memory or a cache, as the second makes it wait too, and the
part up to which it computes. Between them it is bound by both, and undecided is right."""
WRITTEN = {"material_law": ("compute",), "table_lookup": ("latency",)}
"""What binds others, by how they are written."""
TALKING = ("exchange_halo", "solve_step")
"""Its kernels that do nothing but call MPI: halos, and the sums of inner products."""
FIELDS = 5
"""Fields of eight-byte numbers that it holds."""
CALM = 0.5
"""Size of its fields over that of the second cache, where they stay in it."""
CELLS = 20e6
"""Cells swept in a step of the largest fields, so that sweeps take long enough to be sampled."""
SCALE = 1024
FAR = 256 << 20
"""Bytes that memory surely has to serve on any core."""
CLEAR = 0.1
"""Difference of memory and core bound from which a label is clear."""


def run(settings: Settings) -> str:
    """The tables."""
    parts = []
    with _folder(settings) as folder:
        for make in (_micro, _planted, _bundled):
            try:
                parts.append(make(settings, folder))
            except (Skipped, RanksightError) as reason:
                parts.append(f"Not measured here: {reason}")
    parts += [_rajaperf(settings), _speed(settings)]
    return "\n\n".join(parts)


@contextlib.contextmanager
def _folder(settings: Settings) -> Iterator[Path]:
    if settings.cache is not None:
        folder = settings.cache.absolute() / "verdicts"
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.chdir(folder):
            yield folder
        return
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        yield Path(name)


def _command(*words: str) -> None:
    """One line of the command line; its output is left aside."""
    from ranksight.cli.main import main

    with contextlib.redirect_stdout(io.StringIO()):
        code = main(list(words))
    if code not in (0, 4):
        raise Skipped(f"ranksight {words[0]} ended with {code}")


def _model(folder: Path, name: str, *more: str) -> Model:
    platform = _platform(folder)
    _command("fit", f"{name}.exp", "-o", f"{name}.model.json", "--platform", str(platform), *more, "--force", "--quiet")
    return Model.load(folder / f"{name}.model.json")


def _platform(folder: Path) -> Path:
    """This node, calibrated; a generic network stands between it and others."""
    from ranksight.platforms import load, save

    file = folder / "this-node.toml"
    if not file.exists():
        _command("calibrate", "-o", str(file))
        _command("calibrate", "-o", str(file), "--network", "--quiet", "--", "mpirun", "-n", "2")
    machine = load(str(file))
    if "inter" not in machine.network:
        network = {**machine.network, "inter": load("generic").network["inter"]}
        save(replace(machine, network=network), file, overwrite=True)
    return file


def _capacities(folder: Path) -> list[int]:
    """Bytes of the three caches that this node's cores see."""
    from ranksight.platforms import load

    caches = load(str(_platform(folder))).caches
    return [caches[0].capacity, caches[1].capacity, caches[-1].capacity]


def _far(folder: Path) -> int:
    """Bytes that memory has to serve, whatever of the last cache the cores see: what names far more of it than they do
    gives that of other cores, too. Fields between the two are served by either, as others leave room."""
    from ranksight.platforms import load

    last = load(str(_platform(folder))).caches[-1]
    return min(4 * last.size, max(4 * last.capacity, FAR))


def _micro(settings: Settings, folder: Path) -> str:
    from ranksight.examples.build import build

    build("microkernels", folder)
    rounds = "1,2" if settings.quick else "2,4"
    sizes = [word for level, size in enumerate(_capacities(folder), 1) for word in (f"--l{level}", str(size))]
    sizes += ["--far", str(_far(folder))]
    program = ("mpirun", "-n", "{ranks}", "./microkernels", "--rounds", "{rounds}", *sizes)
    given = ("--ranks", "1", "--rounds", rounds, "--reps", "5", "--platform", str(_platform(folder)))
    _command("measure", *given, "-o", "microkernels.exp", "--quiet", "--", *program)
    found = _model(folder, "microkernels").diagnose(ranks=1, rounds=float(rounds[-1])).verdicts().set_index("kernel")
    rows: list[list[object]] = []
    right = 0
    for kernel, nature in NATURE.items():
        row = found.loc[kernel]
        right += row["verdict"] == f"{nature}-bound"
        shares = [f"{100 * row[name]:.0f}" for name in ("compute", "L2", "L3", "memory")]
        rows.append([kernel, nature, row["verdict"], *shares, row["cpi"], row["bandwidth_used"], row["in_flight"]])
    undecided = int((found.loc[list(NATURE), "verdict"] == "undecided").sum())
    return (
        "Kernels of known nature (`examples/microkernels.c`), counts simulated by callgrind, time sampled, no counter "
        f"of stalls: {right} of {len(NATURE)} right, {undecided} undecided. Shares in percent; bandwidth is the part "
        "of what a core reads from memory; in flight are loads of the level that holds a kernel up most. No blind "
        "test: a first measurement showed loads from memory that took twice the idle latency (page walks; the bound on "
        "waiting was widened) and three kernels bound by two things (in_l2, in_l3, stencil_memory; rewritten).\n\n"
        + markdown(["kernel", "is", "verdict", "compute", "L2", "L3", "memory", "CPI", "bandwidth", "in flight"], rows)
    )


def _planted(settings: Settings, folder: Path) -> str:
    from ranksight.examples.build import build

    build("heat", folder)
    sizes, reps = _small(settings)
    rows: list[list[object]] = []
    for planted, (options, trouble) in PLANTED.items():
        name = options[0].strip("-") if options else "clean"
        command = ("mpirun", "--oversubscribe", "-n", "{ranks}", "./heat", "--n", "{size}", *options)
        _command("measure", "--ranks", "1,2,4,8", "--size", ",".join(map(str, sizes)), "--reps", str(reps),
                 "-o", f"{name}.exp", "--quiet", "--", *command)  # fmt: skip
        found = _model(folder, name).diagnose(ranks=[8, SCALE], size=sizes[-1])
        named = _named(found)
        right = named == ([] if trouble is None else [trouble])
        said = "; ".join(f"{kind} of {kernel}" for kind, kernel in named) or "nothing"
        rows.append([planted, said, "yes" if right else "no"])
    return (
        f"Troubles planted in the bundled program, measured at 1 to 8 ranks of {sizes[0]}^3 and {sizes[1]}^3 cells, "
        f"{reps} repetitions, diagnosed for {SCALE} ranks:\n\n" + markdown(["planted", "named", "just that"], rows)
    )


def _small(settings: Settings) -> tuple[tuple[int, int], int]:
    """Edges of the cells of a rank, and repetitions, of the runs with planted troubles."""
    return ((8, 12), 2) if settings.quick else ((12, 24), 3)


def _bundled(settings: Settings, folder: Path) -> str:
    from ranksight.examples.build import build

    build("heat", folder)
    far = _far(folder)
    small, edge = (int((held / 8 / FIELDS) ** (1 / 3)) for held in (CALM * _capacities(folder)[1], far))
    sizes = (small, round((small * edge) ** 0.5), edge)
    sweeps = str(max(2, round(CELLS / edge**3)))
    options = ("--n", "{size}", "--steps", "{steps}", "--iterations", sweeps, "--lookup-table", str(far))
    for size in sizes:  # as many cells in all, so that samples fall on every size
        turns = round((edge / size) ** 3)
        given = ("--ranks", "1", "--size", str(size), "--steps", f"{turns},{2 * turns}", "--reps", "5")
        program = ("mpirun", "-n", "{ranks}", "./heat", *options)
        _command(
            "measure", *given, "--platform", str(_platform(folder)), "-o", "bundled.exp", "--quiet", "--", *program
        )
    alone = _model(folder, "bundled", "--iterations", "steps").diagnose(ranks=1, size=edge, steps=2)
    alone = alone.verdicts().set_index("kernel")
    each = _small(settings)[0][-1]
    scaled = _model(folder, "clean").diagnose(ranks=SCALE, size=each).verdicts().set_index("kernel")
    rows: list[list[object]] = []
    right = 0
    waits = _waits(folder / "bundled.exp", small, edge)
    natures = {kernel: _nature(waits[kernel]) for kernel in SWEPT} | WRITTEN
    cases = [(kernel, nature, alone, f"1 rank, {edge}^3 cells") for kernel, nature in natures.items()]
    cases += [(kernel, ("communication",), scaled, f"{SCALE} ranks, {each}^3 cells each") for kernel in TALKING]
    for kernel, nature, verdicts, where in cases:
        row = verdicts.loc[kernel]
        right += str(row["verdict"]).removesuffix("-bound") in nature
        shares = [f"{100 * row[name]:.0f}" for name in ("compute", "L2", "L3", "memory", "communication")]
        waited = f"{100 * waits[kernel]:.0f}" if kernel in SWEPT else "–"
        rows.append([kernel, where, waited, " or ".join(nature), row["verdict"], *shares])
    head = ["kernel", "at", "waits at least", "is", "verdict", "compute", "L2", "L3", "memory", "communication"]
    return (
        f"Kernels of the bundled program (`examples/heat.c`): {right} of {len(rows)} right. Counts simulated, time "
        f"sampled, on {small}^3 to {edge}^3 cells. What sweeps wait at least is measured: their cycles an instruction "
        f"with {small}^3 cells, which stay in the second cache, fall short of those with {edge}^3 by as much; from "
        f"{100 * WAITING:.0f} % on they are bound by a farther level, and between {100 * CALM_ENOUGH:.0f} and that by "
        "both. The rule was set when their figures were known; comments call all of them bound by memory. "
        "The others' nature is how they are written. What happens at scale is predicted from the runs of the "
        "table above without a planted trouble. Shares in percent.\n\n" + markdown(head, rows)
    )


def _waits(path: Path, small: int, large: int) -> dict[str, float]:
    """Part of its time at the large size that each kernel lost against the small one, for the same instructions."""
    import ranksight as rs

    experiment = rs.read(path)
    sizes = {run.id: run.configuration["size"] for run in experiment.runs}
    table = experiment.counters(metrics=["time", "instructions"])
    table = table.assign(size=table["run"].map(sizes))
    means = table.groupby(["kernel", "size"])[["time", "instructions"]].mean()
    pace = (means["time"] / means["instructions"]).unstack("size")
    found = 1 - pace[small] / pace[large]
    return {str(kernel): float(part) for kernel, part in found.items()}


def _nature(waits: float) -> tuple[str, ...]:
    if waits >= WAITING:
        return ("memory", "cache")
    return ("undecided",) if waits > CALM_ENOUGH else ("compute",)


def _named(found: Diagnosis) -> list[tuple[str, str]]:
    table = found.advice()
    table = table[table["kind"].isin(["growth", "imbalance", "serialisation", "late arrival"])]
    return [(str(kind), str(kernel)) for kind, kernel in zip(table["kind"], table["kernel"], strict=True)]


def _rajaperf(settings: Settings) -> str:
    from ranksight.analysis.diagnosis.topdown import LEVELS, SECOND, THIRD, bound

    try:
        table = rajaperf.kernels(settings)
    except Skipped as reason:
        return f"RAJAPerf: not read, {reason}."
    label = (table["memory_bound"] > table["core_bound"]).to_numpy()
    names = table.index.get_level_values("kernel").to_numpy()
    said = np.zeros(len(table), dtype=bool)
    for kernel in np.unique(names):
        held = names == kernel
        known = {name: table[name].to_numpy(dtype=float) for name in LEVELS}
        known |= {name: np.where(held, np.nan, known[name]) for name in SECOND}
        memory, core = (bound(known, name) for name in SECOND)
        said[held] = (memory > core)[held]
    right = said == label
    clear = (table["memory_bound"] - table["core_bound"]).abs().to_numpy() >= CLEAR
    wrong = ", ".join(sorted(set(names[~right]))) or "none"
    summed = table[list(THIRD)].clip(lower=0).sum(axis=1).to_numpy() > table["backend_bound"].to_numpy() / 2
    rows = [
        ["levels 1 and 3, leave one kernel out", 100 * right.mean(), 100 * right[clear].mean()],
        [
            "sum of level 3 over half of the backend",
            100 * (summed == label).mean(),
            100 * (summed == label)[clear].mean(),
        ],
        ["always memory", 100 * label.mean(), 100 * label[clear].mean()],
    ]
    return (
        f"RAJAPerf, {len(table)} kernels x flags on Broadwell. The label is the larger of memory and core bound (level "
        "2 of the top-down method); a verdict that reads level 2 agrees by definition, so it is withheld: levels 1 and "
        "3 must predict it, by a law learned from the other kernels (least squares, nothing to tune; both flag sets "
        "of a kernel are held out together). Bytes over time add nothing to these levels and are not used.\n\n"
        + markdown(["verdict from", "agreement, %", f"where the sides differ by {CLEAR:g} or more, %"], rows)
        + f"\n\nNot agreed: {wrong}."
    )


def _speed(settings: Settings) -> str:
    from ranksight.analysis.diagnosis import diagnosing
    from ranksight.analysis.diagnosis.ceilings import Ceilings
    from ranksight.model.application.bulk_synchronous import Application
    from ranksight.model.fit import model_of
    from ranksight.model.resource.blocking import fit_resources
    from ranksight.model.resource.equation import Machine
    from ranksight.platforms import load

    count = 50 if settings.quick else 500
    platform = load("icelake-8360y")
    series = _series(count, Machine.of(platform))
    resources = fit_resources(series, Machine.of(platform))
    assert resources is not None
    equation = Application().with_laws(resources=resources)
    observed = {"diagnosis": {"ceilings": Ceilings.of(platform).to_dict()}}
    start = time.process_time()
    model = replace(model_of(series, "made-up"), equation=equation, observed=observed)
    fitted = time.process_time() - start
    points = np.unique(np.geomspace(1, 4096, 200).round())[:100][:, None]
    model.breakdown(points[:1])
    start = time.process_time()
    evidence = diagnosing.gather(model, points)
    known = time.process_time() - start
    start = time.process_time()
    found = Diagnosis(model.application, evidence, diagnosing.causes_of(evidence), model, 0.9)
    found.verdicts()
    judged = time.process_time() - start
    line = found.line
    start = time.process_time()
    for name in ("scaling", "rankings", "crossovers", "efficiencies", "roofline", "pairs", "advice"):
        getattr(found, name)()
    rest = time.process_time() - start
    rows = [
        [f"fit of {count} kernels x 8 metrics", fitted],
        [f"forecast of all of them at {len(points)} configurations", known],
        [f"verdicts of {count} kernels at {len(points)} configurations, forecast given", judged],
        [
            f"scaling, ranking, crossovers, efficiencies, roofline, advice over {len(line.points)} rank counts, given",
            rest,
        ],
    ]
    return "CPU seconds of one process:\n\n" + markdown(["what", "s"], rows)


def _series(count: int, machine: object):  # type: ignore[no-untyped-def]
    """`count` kernels with eight metrics on five rank counts, times by the equation, one percent of scatter."""
    from ranksight.model.resource.equation import LEVELS
    from ranksight.model.series.reducing import Series

    rng = np.random.default_rng(1)
    ranks = np.array([1.0, 2, 4, 8, 16])
    power = rng.choice([-1, -0.5, 0, 0.5], count)[:, None]
    instructions = 10 ** rng.uniform(6, 9, count)[:, None] * ranks**power
    part = rng.dirichlet([20, 2, 1, 0.5], count)
    loads = [0.3 * instructions * part[:, level : level + 1] for level in range(4)]
    latency = np.array(machine.latencies)  # type: ignore[attr-defined]
    waiting = sum(load * cycles for load, cycles in zip(loads[1:], latency[1:], strict=True))
    cycles = instructions * rng.uniform(0.3, 1.5, count)[:, None] + rng.uniform(0.1, 0.9, count)[:, None] * waiting
    names = ("instructions", "loads", *LEVELS, "stores", "time")
    given = [instructions, 0.3 * instructions, *loads, 0.1 * instructions, cycles / machine.frequency]  # type: ignore[attr-defined]
    values = np.stack(given, axis=1).reshape(count * len(names), len(ranks))[:, :, None]
    values = values * (1 + 0.01 * rng.standard_normal((*values.shape[:2], 3)))
    kernels = tuple(f"k{at}" for at in range(count) for _ in names)
    return Series(("ranks",), ranks[:, None], values, kernels, names * count)
