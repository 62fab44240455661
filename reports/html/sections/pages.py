"""Kernel by kernel: each metric's points and model, formula and residuals, and what the resource equation says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksight.analysis.diagnosis.causes import CAUSES
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.model.uncertainty.forecast import OK
from ranksight.reports.html.context import Context
from ranksight.reports.html.encoding import pack
from ranksight.reports.html.writing import in_one_unit, percent, value
from ranksight.reports.palette import NAMES, PARTS

PLAIN = 1200
"""Series in the document itself; those of smaller kernels are compressed, and the script adds them."""
MOST_NUMBERS = 220_000
"""Numbers that the page's small plots hold; with more, they show fewer values of the other parameters."""
MOST_POINTS = 60
EMPTY: Mapping[str, Any] = {"parts": [], "time": "–", "resource": None, "verdict": None, "roof": []}
ORDER = ("time", "instructions", "cycles", "stall_cycles", "loads", "stores")


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where the model is empty."""
    fitted = context.model.fitted
    if not len(fitted):
        return None
    by_kernel: dict[str, list[int]] = {}
    for row, kernel in enumerate(fitted.kernels):
        by_kernel.setdefault(kernel, []).append(row)
    shown = list(context.numbers)
    before = np.cumsum([len(by_kernel.get(kernel, ())) for kernel in shown])
    plain = max(1, int(np.searchsorted(before, PLAIN, "right")))
    for rows in by_kernel.values():
        rows.sort(key=lambda row: _place(fitted.metrics[row]))
    order = [row for kernel in shown for row in by_kernel.get(kernel, [])]
    index = {row: at for at, row in enumerate(order)}
    extra = _equation(context)
    said = context.sweep.shown
    places = {kernel: at for at, kernel in enumerate(k for k in shown if k in set(context.sweep.breakdown.kernels))}
    pages = []
    for kernel in shown:
        rows = by_kernel.get(kernel, [])
        pages.append(
            {
                "kernel": kernel,
                "whole": kernel == WHOLE,
                "rows": [_row(context, row, index[row]) for row in rows],
                "sufficient": sum(said.status[row, -1] == OK for row in rows),
                "extra": extra.get(kernel),
                "defined": context.places.get(kernel, ""),
                "place": places.get(kernel, -1),
            }
        )
    return {
        "pages": pages[:plain],
        "packed": pages[plain:],
        "left": len(context.kernels) - len(shown),
        "data": {**_data(context, np.array(order, dtype=np.intp)), **_parts(context, list(places))},
        "target": context.sweep.places()[-1],
        "given": context.measured is not None,
    }


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def _row(context: Context, row: int, index: int) -> dict[str, Any]:
    """One metric of one kernel."""
    fitted, said = context.model.fitted, context.sweep.shown
    name = fitted.metrics[row]
    ok = said.status[row, -1] == OK
    number, low, high = (float(getattr(said, end)[row, -1]) for end in ("value", "lower", "upper"))
    press, fit = float(fitted.press[row]), float(fitted.adjusted_r2[row])
    return {
        "index": index,
        "metric": name,
        "text": metric(name).text,
        "value": value(number, name),
        "interval": f"{value(low, name)} to {value(high, name)}" if np.isfinite(low) else "–",
        "ok": bool(ok),
        "reason": str(said.reason[row, -1]),
        "formula": context.model.formula(row),
        "error": percent(press) if np.isfinite(press) else "–",
        "fit": f"{fit:.3f}" if np.isfinite(fit) else "–",
        "points": int(fitted.count[row]),
    }


def _equation(context: Context) -> Mapping[str, Mapping[str, Any]]:
    """Parts of the time at the target, and the constants of the resource equation, by kernel."""
    broken = context.sweep.breakdown
    found: dict[str, dict[str, Any]] = {}
    each = context.sweep.each if broken.kernels else {}
    totals = np.nansum([values[:, -1] for values in each.values()], axis=0).tolist() if each else []
    unit, texts = in_one_unit(totals, "time")
    for place, (kernel, total, text) in enumerate(zip(broken.kernels, totals, texts, strict=True)):
        parts = [
            (NAMES[name], name, float(values[place, -1]) / total)
            for name, values in context.sweep.each.items()
            if total > 0 and np.nan_to_num(values[place, -1]) > 1e-3 * total
        ]
        found[kernel] = {**EMPTY, "parts": parts, "time": f"{text} {unit}"}
    _verdicts(context, found)
    terms = broken.terms
    for at, kernel in enumerate(terms.kernels):
        cpi, factor = terms.cpi, terms.shown_blocking
        found.setdefault(kernel, dict(EMPTY))["resource"] = {
            "cpi": f"{cpi.value[at, -1]:.3g}",
            "factor": f"{factor.value[at, -1]:.3g}",
            "interval": f"{factor.lower[at, -1]:.3g} to {factor.upper[at, -1]:.3g}",
            "clock": f"{terms.clock.value[at, -1] / 1e9:.3g} GHz",
            "evidence": terms.method[at],
        }
    return found


def _verdicts(context: Context, found: dict[str, dict[str, Any]]) -> None:
    """Add to each kernel's parts its verdict with figures, and its position under the roofs."""
    diagnosis = context.sweep.diagnosis
    if diagnosis is None:
        return
    for row in diagnosis.verdicts().to_dict("records"):
        shares = [
            f"{name} {percent(row[name])} ({percent(row[f'{name}_low'])} to {percent(row[f'{name}_high'])})"
            for name in sorted(CAUSES, key=lambda cause: -row[cause])
            if row[name] >= 0.005
        ]
        sure = (
            f", {percent(row['chance'])} sure" if row["verdict"] != "undecided" and np.isfinite(row["chance"]) else ""
        )
        found.setdefault(str(row["kernel"]), dict(EMPTY))["verdict"] = {
            "text": f"{row['verdict']}{sure}{': ' if row['reason'] else ''}{row['reason']}",
            "shares": ", ".join(shares),
            "cpi": f"{row['cpi']:.3g}" if np.isfinite(row["cpi"]) else "",
            "flight": f"{row['in_flight']:.2g}" if np.isfinite(row["in_flight"]) else "",
        }
    for row in diagnosis.roofline().to_dict("records"):
        if str(row["kernel"]) in found and row["intensity"] < 1e6:
            text = f"{row['level']}: {percent(row['fraction'])} at {row['intensity']:.3g} {row['operations']} a byte"
            found[str(row["kernel"])]["roof"] = [*found[str(row["kernel"])]["roof"], text]


def _parts(context: Context, kernels: Sequence[str]) -> dict[str, Any]:
    """Seconds of each part of the kernels' times along the sweep."""
    sweep = context.sweep
    if not kernels:
        return {"parts": []}
    index = {kernel: at for at, kernel in enumerate(sweep.breakdown.kernels)}
    rows = np.array([index[kernel] for kernel in kernels], dtype=np.intp)
    known = [name for name, values in sweep.each.items() if np.nan_to_num(values).any()]
    if not known:
        return {"parts": []}
    packed = pack(np.concatenate([sweep.each[name][rows] for name in known], axis=1))
    parts = [[NAMES[name], PARTS[name][1:].lower()] for name in known]
    return {"parts": parts, "part_codes": packed.codes, "part_scale": packed.scale}


def _data(context: Context, rows: Index) -> dict[str, Any]:
    """The numbers that the script draws: curves at the values of the other parameters, points, and residuals."""
    sweep, model, found = context.sweep, context.model, context.measured
    measured = np.empty((len(rows), 0))
    points = np.empty((0, len(model.parameters)))
    spread = [measured, measured]
    trained = np.empty(0, dtype=bool)
    if found is not None:
        keep = _kept(found.points, found.trained)
        points, trained = found.points[keep], found.trained[keep]
        measured, *spread = (part[rows][:, keep] for part in (found.value, found.low, found.high))
    others = _others(context, points, len(rows))
    grids = [sweep.points]
    at = model.parameters.index(sweep.along)
    for held in others[1:]:
        grid = np.array([held] * len(sweep.values), dtype=np.float64)
        grid[:, at] = sweep.values
        grids.append(grid)
    every = np.concatenate([*grids[1:], points])
    said = model.forecast(every, sweep.level) if len(every) else None
    curves = []
    for number in range(len(grids)):
        part = sweep.shown if number == 0 else said
        assert part is not None
        here = slice(None) if number == 0 else slice((number - 1) * len(sweep.values), number * len(sweep.values))
        ok = part.status[rows][:, here] == OK
        curves += [part.value[rows][:, here]]
        curves += [np.where(ok, end[rows][:, here], np.nan) for end in (part.lower, part.upper)]
    fit = np.empty((len(rows), 0)) if said is None else said.value[rows][:, (len(grids) - 1) * len(sweep.values) :]
    repeated = bool(found is not None and (found.repetitions > 1).any())
    columns = [*curves, measured, *(spread if repeated else []), fit]
    packed = pack(np.concatenate(columns, axis=1)) if len(rows) else pack(np.empty((0, 1)))
    combination = [_nearest(others, point, at) for point in points]
    return {
        "along": sweep.along,
        "x": [float(x) for x in sweep.values],
        "trained": list(sweep.trained),
        "level": sweep.level,
        "others": [_words(context, held, at) for held in others],
        "points": [
            [float(point[at]), which, int(known)]
            for point, which, known in zip(points, combination, trained, strict=True)
        ],
        "repeated": repeated,
        "units": [metric(model.fitted.metrics[row]).unit for row in rows],
        "names": [model.fitted.metrics[row] for row in rows],
        "codes": packed.codes,
        "scale": packed.scale,
    }


def _kept(points: Array, trained: Mask) -> Index:
    """At most :data:`MOST_POINTS` configurations, those of checks among them, the rest evenly."""
    if len(points) <= MOST_POINTS:
        return np.arange(len(points))
    fresh = np.flatnonzero(~trained)[: MOST_POINTS // 2]
    rest = np.setdiff1d(np.arange(len(points)), fresh)
    even = rest[np.unique(np.linspace(0, len(rest) - 1, MOST_POINTS - len(fresh)).astype(int))]
    return np.sort(np.concatenate([fresh, even]))


def _others(context: Context, points: Array, series: int) -> list[Array]:
    """Values of the other parameters that curves are drawn at: the sweep's own, then those measured."""
    sweep = context.sweep
    at = context.model.parameters.index(sweep.along)
    first = sweep.points[0].copy()
    first[at] = 0.0
    seen = context.model.training.copy()
    seen[:, at] = 0.0
    rest = [row for row in np.unique(seen, axis=0)[::-1] if not np.allclose(row, first)]
    room = MOST_NUMBERS // max(series, 1) - 4 * len(points)
    return [first, *rest[: max(0, min(3, room // (3 * len(sweep.values)) - 1))]]


def _nearest(others: list[Array], point: Array, at: int) -> int:
    """Which of the drawn values a configuration has; -1 where none."""
    own = point.copy()
    own[at] = 0.0
    for number, held in enumerate(others):
        if np.allclose(own, held):
            return number
    return -1


def _words(context: Context, held: Array, at: int) -> str:
    return ", ".join(f"{name} {held[i]:g}" for i, name in enumerate(context.model.parameters) if i != at)
