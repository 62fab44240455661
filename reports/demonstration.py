"""What the demonstration prints: question, answer, proof, limit and remedy, and the next command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ranksight.core.experiment import Experiment
from ranksight.core.records import dataclass
from ranksight.core.units import format_si
from ranksight.model.fitted_model import Model
from ranksight.model.uncertainty.forecast import OK
from ranksight.reports.terminal import Block, Cell, Table, Text


@dataclass(frozen=True)
class Proof:
    """Wall time of a program, predicted and measured.

    `table`: a row a configuration that was measured: the parameters, ``predicted``, ``lower``, ``upper``, ``measured``
    (s, communication included), ``error`` (relative), ``inside`` (the interval holds the measured time) and ``ok``
    (the data suffice for the prediction).
    """

    model: Model
    table: pd.DataFrame

    def at(self, configuration: Mapping[str, float]) -> pd.Series:
        """The row of a configuration."""
        rows = self.table
        return rows[np.logical_and.reduce([rows[name] == value for name, value in configuration.items()])].iloc[0]


def prove(model: Model, check: Experiment, level: float = 0.9) -> Proof:
    """Hold the predicted time of the whole program against the wall time of the runs of `check`."""
    walls: dict[tuple[float, ...], list[float]] = {}
    for run in check.runs:
        if run.wall_time is not None and run.state == "complete":
            walls.setdefault(run.point(model.parameters), []).append(run.wall_time)
    points = np.array(list(walls), dtype=np.float64).reshape(-1, len(model.parameters))
    total = model.whole_time(*model.ask(points, level))
    measured = np.array([np.median(times) for times in walls.values()])
    predicted, lower, upper = total.value[0], total.lower[0], total.upper[0]
    columns = dict(zip(model.parameters, points.T, strict=True))
    columns |= {"predicted": predicted, "lower": lower, "upper": upper, "measured": measured}
    columns |= {"error": predicted / measured - 1, "inside": (lower <= measured) & (measured <= upper)}
    return Proof(model, pd.DataFrame(columns | {"ok": total.status[0] == OK}))


def screen(faulty: Proof, mended: Proof | None, target: Mapping[str, float], machine: str) -> list[Block]:
    """The whole of what the demonstration answers, on one screen of a terminal.

    Parameters
    ----------
    faulty, mended : Proof
        Of the program as it is, and of its second version without what limits it.
    target : mapping of str to float
        The configuration of the question, which is one of those measured.
    machine : str
        What the times were measured on.
    """
    row, trained = faulty.at(target), faulty.model.training[:, faulty.model.parameters.index("ranks")]
    most, asked = trained.max(), target["ranks"]
    said: list[Block] = [
        Text(f"How long does a heat solver take on {asked:g} ranks, by runs on {most:g} and fewer?", style="bold"),
        Text(f"Times are simulated: {machine}."),
        "",
        Text(f"Answer at {_place(target)}: {_seconds(row['predicted'])}, 90% interval {_interval(row)}", style="bold"),
        Text("Proof, wall time with communication, of runs that were not used for the fit:"),
        *_compared(faulty),
    ]
    return [*said, *_limit(faulty, mended, target)]


def _compared(proof: Proof) -> list[Block]:
    """Predicted next to measured."""
    table, names = proof.table, proof.model.parameters
    rows: list[list[str | Cell]] = []
    for row in table.to_dict("records"):
        mark = "insufficient" if not row["ok"] else "" if row["inside"] else "outside"
        cells = [_seconds(row["predicted"]), _interval(row), _seconds(row["measured"]), f"{row['error']:+.1%}"]
        rows.append([*(f"{row[name]:g}" for name in names), *cells, Cell(mark, "yellow")])
    heads = [*names, "predicted", "90% interval:word", "measured", "error", ":word"]
    held = int(table["inside"].sum())
    return [Table(heads, rows, 2), Text(f"{held} of {len(table)} measured times are inside their interval.", 2)]


def _limit(faulty: Proof, mended: Proof | None, target: Mapping[str, float]) -> list[Block]:
    """What limits the program at the target, what to do, and what that gave."""
    model = faulty.model
    advice = model.diagnose(**target).advice()
    growing = advice[advice["kind"] == "growth"]
    if growing.empty:
        return [f"Limit: no kernel grows faster than log(ranks) up to {target['ranks']:g} ranks."]
    worst = growing.iloc[0]  # saves most
    kernel, counted = str(worst["kernel"]), model.functions.rows.get((str(worst["kernel"]), "instructions"))
    formula = f" ({model.functions.formula(counted)} instructions per rank)" if counted is not None else ""
    said: list[Block] = [
        Text(f"Limit: {kernel} {worst['text']}.", style="bold"),
        Text(f"Do: make the work of {kernel} independent of the ranks{formula}: saves {worst['saves']:.0%}."),
    ]
    if mended is not None:
        row, before = mended.at(target), faulty.at(target)["measured"]
        said.append(
            Text(
                f"Mended and measured again at {target['ranks']:g} ranks: {_seconds(row['measured'])} "
                f"({row['measured'] / before - 1:+.0%}); predicted {_seconds(row['predicted'])}, {_interval(row)}; "
                f"{int(mended.table['inside'].sum())} of {len(mended.table)} times inside."
            )
        )
    return said


def _place(target: Mapping[str, float]) -> str:
    return ", ".join(f"{value:g} ranks" if name == "ranks" else f"{name} {value:g}" for name, value in target.items())


def _seconds(value: float) -> str:
    return format_si(float(value), "s")


def _interval(row: Mapping[Any, Any] | pd.Series) -> str:
    return f"{_seconds(row['lower'])} .. {_seconds(row['upper'])}"
