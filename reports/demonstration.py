"""The tables that the demonstration prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ranksight.analysis.diagnosis.diagnosing import diagnose
from ranksight.core.arrays import Array
from ranksight.core.units import format_si
from ranksight.model.fitted_model import Model
from ranksight.reports.terminal import Block, Cell, Table, Text
from ranksight.reports.validation import Validation

NOTABLE = 0.1  # relative errors above this are explained


def validation_blocks(validation: Validation, cores: int) -> list[Block]:
    """Predicted and measured counts, cache levels and computing time of each configuration, and a reason per miss.

    `cores`: of the machine that the runs were made on: more ranks share them.
    """
    said: list[Block] = ["", "Predicted against measured, at configurations that were not trained on"]
    counts, levels, timed = validation.requirements(), validation.cache_levels(), validation.compute()
    levels = levels[levels["measured"] > 0]
    said += ["", Text("counts per rank: instructions, loads, stores, messages, bytes, calls", style="bold")]
    said += _counted(counts, "the configuration is outside of those measured, and the function is extrapolated")
    if len(levels):
        said += ["", Text("loads served by each cache level and memory", style="bold")]
        said += _counted(levels, "data that nearly fill a cache stay in it or leave it, in steps")
    if len(timed):
        said += ["", Text("compute time per rank", style="bold"), *_computed(timed, cores)]
    return said


def _counted(rows: pd.DataFrame, cause: str) -> list[Block]:
    """A line for each configuration: how many values, how far off; each large error with its values and `cause`.

    The worst value is the one that moves the most of its metric: 100 % of a thousandth of the loads is no news.
    """
    if not len(rows):
        return ["  none measured"]
    lines: list[list[str | Cell]] = []
    notes = []
    for (ranks, size), here in rows.groupby(["ranks", "size"], sort=False):
        ok = here[here["status"] == "ok"]
        line: list[str | Cell] = [f"{ranks:g}", f"{size:g}", f"{len(ok)} of {len(here)}"]
        if len(ok):
            error = ok["error"].abs()
            worst = ok.iloc[int((error * ok["share"]).to_numpy().argmax())]
            line += [f"{error.median():.2%}", f"{worst['error']:+.1%}", f"{ok['inside'].mean():.0%}"]
            if abs(worst["error"]) > NOTABLE:
                notes.append(
                    f"{worst['error']:+.1%} at {ranks:g} ranks, size {size:g}: {worst['metric']} of "
                    f"{worst['kernel']}, {_amount(worst['predicted'])} predicted, {_amount(worst['measured'])} "
                    f"measured; {cause}"
                )
        lines.append(line + [""] * (6 - len(line)))
    heads = ("ranks", "size", "predicted", "median error", "largest", "inside 90% interval")
    return [Table(heads, lines, 2), *(Text(note, 2) for note in notes)]


def _computed(rows: pd.DataFrame, cores: int) -> list[Block]:
    """The compute time of each configuration, and why some are outside of their interval or have none."""
    lines: list[list[str | Cell]] = []
    for row in rows.to_dict("records"):
        ok = row["status"] == "ok"
        mark = "insufficient" if not ok else "" if row["inside"] else "outside"
        predicted, measured = (format_si(float(row[name]), "s") for name in ("predicted", "measured"))
        place = [f"{row['ranks']:g}", f"{row['size']:g}"]
        ends = _ends(row["lower"], row["upper"], ok)
        lines.append([*place, predicted, ends, measured, f"{row['error']:+.1%}", Cell(mark, "yellow")])
    heads = ["ranks", "size", "predicted", "90% interval:word", "measured", "error", ":word"]
    said: list[Block] = [Table(heads, lines, 2)]
    known = rows["status"] == "ok"
    missed = rows[known & ~rows["inside"]]
    if len(missed):
        said.append(Text(_missed(missed, len(rows), cores), 2))
    for row in rows[~known].to_dict("records"):
        said.append(Text(f"insufficient at {row['ranks']:g} ranks, size {row['size']:g}: {row['reason']}", 2))
    return said


def _ends(lower: float, upper: float, ok: bool) -> str:
    """An interval; of one that is too wide to be used only how wide it is."""
    if ok:
        return f"{format_si(float(lower), 's')} .. {format_si(float(upper), 's')}"
    wide = np.inf if not lower > 0 else float(upper) / float(lower)
    return f"a factor of {wide:.2g}" if np.isfinite(wide) and wide < 1e6 else "unbounded"


def _missed(rows: pd.DataFrame, count: int, cores: int) -> str:
    """What to say of measured times outside of their interval."""
    crowded = int((rows["ranks"] > cores).sum())
    why = (
        f"; in {crowded} of these, more ranks than the {cores} cores took turns on them and on their caches, which no "
        "prediction for a core a rank includes"
        if crowded
        else ""
    )
    return f"{len(rows)} of {count} measured times are outside of the interval, 1 in 10 is expected{why}"


def _amount(value: float) -> str:
    return format_si(float(value)) if value else "none"


def wall_time_blocks(
    model: Model, ranks: Sequence[int], size: Mapping[str, float], platform: str, cores: int
) -> list[Block]:
    """The wall time that the model predicts, and why it is not compared with a run."""
    if not any(name == "time" for name in model.fitted.metrics):
        return ["", "No time per function was measured here (perf is missing), so no wall time is predicted."]
    points = _points(model, ranks, size)
    said_of, broken = model.ask(points)
    network = model.equation.network is not None
    sizes = "".join(f", {name} {value:g}" for name, value in size.items() if name in model.parameters)
    said: list[Block] = [
        "",
        f"The machine measured on has {cores} cores: more ranks share them, so their wall time is not compared.",
        f"Predicted for as many cores as ranks{sizes}, on the network of platform {platform}"
        if network
        else f"Predicted computation for as many cores as ranks{sizes} (platform {platform} describes no network)",
    ]
    rows: list[list[str | Cell]] = []
    total = model.whole_time(said_of, broken)
    for at, p in enumerate(ranks):
        messages = format_si(float(broken.parts["communication"][at]), "s") if network else ""
        ok = not total.status[0, at]
        ends = _ends(total.lower[0, at], total.upper[0, at], ok)
        mark = Cell("" if ok else "insufficient", "yellow")
        rows.append([f"{p}", format_si(float(total.value[0, at]), "s"), ends, messages, mark])
    said.append(Table(["ranks", "time", "90% interval:word", "communication", ":word"], rows, 2))
    if total.status[0].any():
        first = int(np.flatnonzero(total.status[0])[0])
        said.append(
            Text(
                f"insufficient at {ranks[first]} ranks: {total.reason[0, first]}. Short runs on a shared machine bound "
                "time loosely; longer runs on a quiet one reach further.",
                2,
            )
        )
    return said


def _points(model: Model, ranks: Sequence[int], size: Mapping[str, float]) -> Array:
    """The configurations (k, m) of these ranks and one size."""
    return np.array([[p if name == "ranks" else size[name] for name in model.parameters] for p in ranks], dtype=float)


def supported(model: Model, ranks: Sequence[int], size: Mapping[str, float]) -> int:
    """The largest of `ranks` (ascending) whose time the data suffice to predict; the smallest when none is."""
    points = _points(model, ranks, size)
    known = np.flatnonzero(model.whole_time(*model.ask(points)).status[0] == 0)
    return ranks[known[-1] if len(known) else 0]


def largest_blocks(model: Model, ranks: int, size: Mapping[str, float]) -> list[Block]:
    """The largest kernels at a scale and what bounds them; none where no time was measured."""
    if not any(name == "time" for name in model.fitted.metrics):
        return []
    found = diagnose(model, _points(model, [ranks], size))
    table = found.verdicts()
    known = dict(zip(found.evidence.kernels, found.evidence.ok[:, -1].tolist(), strict=True))
    kept = table[np.array([known[kernel] for kernel in table["kernel"]], dtype=bool)]
    head = f"Largest kernels at {ranks} ranks, size {', '.join(f'{value:g}' for value in size.values())}"
    rows = []
    for row in kept.head(5).to_dict("records"):
        why = row["verdict"] if row["verdict"] != "undecided" else f"undecided: {row['reason']}"
        rows.append([row["kernel"], format_si(row["time"], "s"), f"{row['share']:.0%}", why])
    columns = ["kernel:name", "wall time", "share", "verdict:text"]
    said: list[Block] = ["", Text(head, style="bold"), Table(columns, rows, 2)]
    if left := sorted(set(table["kernel"]) - set(kept["kernel"])):
        said.append(f"Insufficient data for the time of: {', '.join(left)}")
    return said


def growth_blocks(model: Model, ranks: int, size: Mapping[str, float]) -> list[Block]:
    """The kernels that grow with the ranks up to `ranks`, by the time added; none where no time was measured."""
    if not any(name == "time" for name in model.fitted.metrics):
        return []
    found = diagnose(model, _points(model, [ranks], size))
    said: list[Block] = []
    scaling = found.scaling()
    table = found.verdicts()
    bound = dict(zip(table["kernel"], table["verdict"], strict=True))
    growing = scaling[scaling["named"]]
    growing = growing.assign(added=growing["last"] * (1 - 1 / growing["growth"]))
    for row in growing.sort_values("added", ascending=False).to_dict("records"):
        counted = model.functions.rows.get((row["kernel"], "instructions"))
        if bound[row["kernel"]] == "communication-bound" or counted is None:
            why = f" ({bound[row['kernel']]})"
        else:
            why = f"; instructions per rank {model.functions.formula(counted)}"
        said.append(
            f"Grows with the number of ranks: {row['kernel']}, from {row['at']:.0f} ranks on, {row['growth']:.0f} "
            f"times as long at {ranks}{why}"
        )
    if growing.empty:
        said.append("No kernel grows with the number of ranks faster than their logarithm.")
    return said
