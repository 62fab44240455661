"""Requirements that follow the number of neighbours on a Cartesian process grid.

What a rank does for its halo is done once for each neighbour: with n_d neighbours in direction d, a kernel's count on a
rank is ``a + sum_d n_d b_d``, a and b_d functions of the other parameters alone (that a rank's partners and volumes are
equations of its number is Panadero et al.'s general communication). The coefficients come from all ranks of all runs by
least squares, exact for a deterministic count; the grid at any number of ranks is known
(:mod:`ranksight.comm.patterns.grid`), and with it mean and maximum over ranks. Bytes, and the work of packing them, go
with the faces of a block as well: ``a + sum_d n_d f_d b_d``, where a block on a grid of x by y by z ranks has 1 / (y z)
of the domain's face in x. Where the law does not hold to a fraction of a percent, or the neighbours do not vary
enough to tell the directions apart, nothing is claimed. Nor is it where some rank's count would be below zero, as that
of a rank without neighbours where `a` is: no such law holds there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ranksight.comm.patterns.grid import Cartesian, cartesian_of
from ranksight.errors import InputError
from ranksight.experiment import ALL_RANKS, Experiment, Run
from ranksight.metrics import metric
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.fitting import fit_series
from ranksight.model.plaindata import reading
from ranksight.model.series.series import Series
from ranksight.model.structure.levels import COUNTS, Levels, fit_levels
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
CLOSE = 5e-3
"""Largest error of the law, relative to the kernel's mean: that of counts, with what alignment changes in them."""
NEAR = 0.15
"""The same for the root mean square error of loads by cache level, which depend on addresses as well."""
LEADING = frozenset({"visits", "instructions", "messages", "bytes_sent"})
"""Metrics that tell how often a kernel works; its others follow the grid if one of these does."""
ALIKE = 1.3
"""Largest ratio of the costs of two directions where nothing else tells the law from growth with the ranks."""


@dataclass(frozen=True)
class Neighbours:
    """The law of the kernels that follow it.

    Attributes
    ----------
    parameters : tuple of str
        Of the model.
    grid : Cartesian
    kernels, metrics, over_ranks : tuple of str
        Of the s series that follow the law, and how each reduces over ranks.
    coefficients : Fitted, Levels or (s * (1 + d),) values
        The coefficients as functions of the other parameters, a before b_1 ... b_d of each series; plain values where
        no other parameter varied.
    residual : (s,)
        Root mean square error of the law over ranks, relative to the mean; 0 for counts.
    faces : (s,) bool
        Whether the costs go with the faces of a block towards the neighbours.
    """

    parameters: tuple[str, ...]
    grid: Cartesian
    kernels: tuple[str, ...]
    metrics: tuple[str, ...]
    over_ranks: tuple[str, ...]
    others: tuple[str, ...]
    coefficients: Fitted | Levels | Array
    residual: Array
    faces: NDArray[np.bool_]

    def predict(self, points: Array, level: float = 0.9) -> Forecast:
        """Forecast the s series at `points` (k, m)."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        s, k, terms = len(self.kernels), len(points), 1 + self.grid.dimensions
        ranks = points[:, self.parameters.index("ranks")]
        status = np.full((s, k), forecast.OK, dtype=np.intp)
        reason = np.full((s, k), "", dtype=object)
        if isinstance(self.coefficients, np.ndarray):
            ends = [np.broadcast_to(self.coefficients.reshape(s, terms, 1), (s, terms, k))] * 3
        else:
            columns = [self.parameters.index(name) for name in self.others]
            part = self.coefficients.predict(points[:, columns], level)
            zero = (part.value == 0) & (part.lower == 0) & (part.upper == 0)
            bad = ((part.status != forecast.OK) & ~zero).reshape(s, terms, k)
            first = bad.argmax(axis=1)[:, None]
            status = np.where(
                bad.any(axis=1), np.take_along_axis(part.status.reshape(s, terms, k), first, 1)[:, 0], status
            )
            reason = np.where(
                bad.any(axis=1), np.take_along_axis(part.reason.reshape(s, terms, k), first, 1)[:, 0], reason
            )
            ends = [x.reshape(s, terms, k) for x in (part.value, part.lower, part.upper)]
        value, lower, upper = (np.full((s, k), np.nan) for _ in range(3))
        broken = np.zeros((s, k), dtype=bool)
        for at, count in enumerate(ranks):
            if count < 1 or not float(count).is_integer():
                status[:, at], reason[:, at] = forecast.DOMAIN, f"{count:g} ranks cannot be placed on a grid"
                continue
            rows, times = self.grid.classes(int(count))
            basis = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
            scale = np.where(self.faces[:, None], self.grid.faces(int(count)), 1.0)
            for target, end in zip((value, lower, upper), ends, strict=True):
                end = np.concatenate([end[:, :1, at], end[:, 1:, at] * scale], axis=1)
                each = np.einsum("st,ct->sc", end, basis)
                if target is value:
                    broken[:, at] = each.min(axis=1) < -CLOSE * np.abs(end @ np.abs(basis).max(axis=0))
                each = np.maximum(each, 0.0)
                target[:, at] = [_reduce(row, times, how) for row, how in zip(each, self.over_ranks, strict=True)]
        value, lower, upper = (np.where(broken, np.nan, end) for end in (value, lower, upper))
        status = np.where(broken, forecast.NOT_POSITIVE, status)
        reason = np.where(broken, forecast.REASONS[forecast.NOT_POSITIVE], reason)
        form = np.ones((s, k))
        reach = float(ndtri((1 + level) / 2)) * self.residual[:, None] * np.abs(value)
        down, up = np.minimum(lower, upper) - reach, np.maximum(lower, upper) + reach
        return Forecast(value, np.maximum(down, 0.0), up, status, reason, form, 1 - form, level)

    def formula(self, i: int) -> str:
        """The law of series `i`, as people read it."""
        terms = 1 + self.grid.dimensions
        if isinstance(self.coefficients, np.ndarray):
            written = [f"{x:.4g}" for x in self.coefficients[i * terms : (i + 1) * terms]]
        else:
            written = [self.coefficients.formula(i * terms + t) for t in range(terms)]
        each = "neighbours_{0} * face_{0}" if self.faces[i] else "neighbours_{0}"
        return " + ".join(
            [f"({written[0]})", *(f"{each.format(d + 1)} * ({text})" for d, text in enumerate(written[1:]))]
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        given = self.coefficients
        return {
            "parameters": list(self.parameters),
            "dimensions": self.grid.dimensions,
            "periodic": list(self.grid.periodic),
            "rising": self.grid.rising,
            "kernels": list(self.kernels),
            "metrics": list(self.metrics),
            "over_ranks": list(self.over_ranks),
            "others": list(self.others),
            "kind": "values" if isinstance(given, np.ndarray) else "levels" if isinstance(given, Levels) else "fitted",
            "residual": self.residual.tolist(),
            "faces": self.faces.tolist(),
            "coefficients": given.tolist() if isinstance(given, np.ndarray) else given.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Neighbours:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'neighbours'"):
            names = {
                key: tuple(map(str, content[key]))
                for key in ("parameters", "kernels", "metrics", "over_ranks", "others")
            }
            ring = tuple(bool(x) for x in content["periodic"])
            grid = Cartesian(int(content["dimensions"]), ring, bool(content.get("rising", False)))
            kind, given = content["kind"], content["coefficients"]
            residual = np.array(content["residual"], dtype=np.float64)
            faces = np.array(content.get("faces", [False] * len(residual)), dtype=bool)
            coefficients: Fitted | Levels | Array
            if kind == "values":
                coefficients = np.array(given, dtype=np.float64)
            else:
                coefficients = (Levels if kind == "levels" else Fitted).from_dict(given)
        size = len(names["kernels"])
        held = len(coefficients) if isinstance(coefficients, np.ndarray) else len(coefficients.kernels)
        lengths = (
            len(names["metrics"]),
            len(names["over_ranks"]),
            len(residual),
            len(faces),
            held / (1 + grid.dimensions),
        )
        if any(length != size for length in lengths):
            raise InputError("'neighbours' does not fit together", "fit the model again")
        return cls(grid=grid, coefficients=coefficients, residual=residual, faces=faces, **names)


def _reduce(values: Array, times: NDArray[np.int64], how: str) -> float:
    if how == "max":
        return float(values.max())
    if how == "min":
        return float(values.min())
    total = float((values * times).sum())
    return total if how == "sum" else total / float(times.sum())


def grid_of(experiment: Experiment) -> Cartesian | None:
    """The process grid behind who sends to whom in all runs, by their table ``peers``; None where there is none.

    Its columns are ``rank``, ``operation`` and ``peer``, ranks of the whole program. One operation whose pairs
    are those of a grid is enough: a program may send other messages by other operations.
    """
    talks: dict[int, dict[str, set[tuple[int, int]]]] = {}
    for run in experiment.runs:
        ranks = int(run.configuration["ranks"])
        if ranks in talks or (table := experiment.table(run, "peers")) is None:
            continue
        talks[ranks] = {
            str(operation): set(zip(part["rank"].tolist(), part["peer"].tolist(), strict=True))
            for operation, part in table.groupby("operation", observed=True)
        }
    # An operation that a run lacks was not used there: one rank has nobody to send to.
    operations = set().union(*talks.values())
    found = {cartesian_of([(ranks, said.get(name, set())) for ranks, said in talks.items()]) for name in operations}
    found.discard(None)
    return found.pop() if len(found) == 1 else None


Tables = Callable[[Run], "pd.DataFrame | None"]


def fit_neighbours(
    experiment: Experiment,
    names: Collection[tuple[str, str]],
    tables: Tables,
    everywhere: bool = False,
    **settings: Any,
) -> Neighbours | None:
    """Find the requirements that follow the number of neighbours; None where the program has no grid, or none does.

    Parameters
    ----------
    experiment : Experiment
    names : collection of (kernel, metric)
        Series to look at; requirements only.
    tables : callable
        Gives each run's table ``kernel``, ``rank`` and one column a metric, or None.
    everywhere : bool
        Whether means are over the ranks that have a kernel (counters) and not over all (messages): the law, which tells
        all ranks, then says nothing of what some ranks of a run lack.
    **settings
        Of :func:`ranksight.model.fitting.fitting.fit_series`, for the coefficients.
    """
    grid = grid_of(experiment) if "ranks" in experiment.parameters else None
    wanted = {key for key in names if metric(key[1]).kind == "requirement" and metric(key[1]).over_ranks in _ADDED}
    if grid is None or not wanted:
        return None
    others = tuple(name for name in experiment.parameters if name != "ranks")
    groups = _gather(experiment, wanted, tables, others, grid, everywhere)
    if not groups:
        return None
    shared = sorted(set.intersection(*(set(held) for held, *_ in groups.values())))
    if not shared:
        return None
    terms = 1 + grid.dimensions
    counts = np.array([name in COUNTS for _, name in shared])
    plain, faced = (_solved(groups, shared, counts, grid, faces) for faces in (False, True))
    if plain is None:
        return None
    # Where how often a kernel works does not follow the grid, a likeness in its loads or cache misses is chance.
    leading = plain.follows & plain.alike & np.array([name in LEADING for _, name in shared])
    lawful = {kernel for (kernel, _), yes in zip(shared, leading, strict=True) if yes}
    allowed = np.array([kernel in lawful for kernel, _ in shared])
    follows, faces = plain.follows & allowed, np.zeros(len(shared), dtype=bool)
    solved, residual = plain.solved, plain.residual
    if faced is not None:
        faces = faced.follows & faced.alike & allowed & counts & ~follows
        follows |= faces
        solved = np.where(faces[:, None, None], faced.solved, solved)
    if not follows.any():
        return None
    kept = [key for key, yes in zip(shared, follows, strict=True) if yes]
    points = np.array(list(groups), dtype=np.float64).reshape(len(groups), len(others))
    flat = solved[follows].reshape(-1, len(groups))
    kernels, found = tuple(kernel for kernel, _ in kept), tuple(name for _, name in kept)
    coefficients: Fitted | Levels | Array = flat[:, 0]
    if len(groups) > 1:
        each = [key for key in kept for _ in range(terms)]
        series = Series(others, points, flat[:, :, None], tuple(k for k, _ in each), tuple(m for _, m in each))
        coefficients = fit_levels(series, **settings) or fit_series(series, **settings)
    reduced = tuple(metric(name).over_ranks for name in found)
    parameters = experiment.parameters
    return Neighbours(
        parameters, grid, kernels, found, reduced, others, coefficients, residual[follows], faces[follows]
    )


@dataclass(frozen=True)
class _Law:
    """One law of all series: its coefficients (s, 1 + d, groups), its error, and whether it holds and is no chance."""

    solved: Array
    residual: Array
    follows: NDArray[np.bool_]
    alike: NDArray[np.bool_]


def _solved(
    groups: Mapping[tuple[float, ...], Group],
    shared: list[tuple[str, str]],
    counts: NDArray[np.bool_],
    grid: Cartesian,
    faces: bool,
) -> _Law | None:
    """The law with or without faces, solved; None where the neighbours do not tell the directions apart."""
    terms, d = 1 + grid.dimensions, grid.dimensions
    solved = np.empty((len(shared), terms, len(groups)))
    follows, alike = np.ones((2, len(shared)), dtype=bool)
    residual = np.zeros(len(shared))
    for at, (held, basis, values, faced) in enumerate(groups.values()):
        basis = faced if faces else basis
        # Lower and upper faces differ a little (alignment); a direction has as many of the one as of the other.
        if np.linalg.matrix_rank(basis) < basis.shape[1]:
            return None
        rows = values[[held.index(name) for name in shared]]
        sides = np.linalg.lstsq(basis, rows.T, rcond=None)[0].T
        solution = np.concatenate([sides[:, :1], (sides[:, 1 : d + 1] + sides[:, d + 1 :]) / 2], axis=1)
        scale = np.abs(rows).mean(axis=1, keepdims=True)
        solution = np.where(np.abs(solution) < 1e-6 * scale, 0.0, solution)
        error = np.abs(sides @ basis.T - rows).max(axis=1)
        scatter = np.sqrt(((sides @ basis.T - rows) ** 2).mean(axis=1)) / np.where(scale > 0, scale, 1.0)[:, 0]
        follows &= np.where(counts, error <= CLOSE * scale[:, 0], scatter <= NEAR)
        follows &= (np.abs(solution[:, 1:]) > np.maximum(CLOSE, 2 * scatter[:, None]) * scale).any(axis=1)
        if len(np.unique(basis[:, 1 : d + 1] + basis[:, d + 1 :], axis=0)) <= terms:
            alike &= _alike(solution[:, 1:])
        residual = np.maximum(residual, np.where(counts, 0.0, scatter))
        solved[:, :, at] = solution
    return _Law(solved, residual, follows, alike)


def _alike(costs: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether the directions of each row cost about the same.

    Up to eight ranks all ranks of a run have the same neighbours, and the law has as many coefficients as there are
    runs: it fits whatever depends on the number of ranks alone. A halo's faces cost about the same in every direction;
    work that grows with the ranks would have to double its cost from one direction to the next.
    """
    return np.asarray((costs.min(axis=1) > 0) & (costs.max(axis=1) <= ALIKE * costs.min(axis=1)))


_ADDED = ("mean", "max", "sum", "min")
Group = tuple[list[tuple[str, str]], Array, Array, Array]


def _gather(
    experiment: Experiment,
    wanted: Collection[tuple[str, str]],
    tables: Tables,
    others: tuple[str, ...],
    grid: Cartesian,
    everywhere: bool,
) -> dict[tuple[float, ...], Group]:
    """For each combination of the other parameters: names of the series, basis (rows, 1 + 2 d), values (series, rows),
    and the basis with the faces of the blocks.

    A row is a rank of a run; only the first run of a configuration and metric is taken, since counts repeat.
    """
    columns = {name for _, name in wanted}
    partial: set[tuple[str, str]] = set()
    parts: dict[tuple[float, ...], dict[int, dict[tuple[str, str], Array]]] = {}
    for run in experiment.runs:
        ranks = int(run.configuration["ranks"])
        table = tables(run)
        if table is None or (table["rank"] == ALL_RANKS).any():
            continue
        place = tuple(float(run.configuration[name]) for name in others)
        here = parts.setdefault(place, {}).setdefault(ranks, {})
        for name in columns.intersection(table.columns):
            if run.sampled(name):
                continue  # of some ranks and not of others by chance
            wide = table.pivot(index="kernel", columns="rank", values=name).reindex(columns=range(ranks))
            wide = wide.dropna(how="all")
            if everywhere and metric(name).over_ranks in ("mean", "min"):
                partial |= {(str(kernel), name) for kernel in wide.index[wide.isna().any(axis=1)]}
            wide = wide.fillna(0.0)
            for kernel, row in zip(wide.index, wide.to_numpy(dtype=np.float64), strict=True):
                if (str(kernel), name) in wanted:
                    here.setdefault((str(kernel), name), row)
    groups: dict[tuple[float, ...], Group] = {}
    for place, runs in sorted(parts.items()):
        names = sorted(set().union(*runs.values()) - partial)
        basis = [np.concatenate([np.ones((ranks, 1)), grid.sides(ranks)], axis=1) for ranks in runs]
        # A kernel that a run does not have did nothing there: pack is not called where nobody is near.
        values = [np.stack([row.get(name, np.zeros(ranks)) for name in names]) for ranks, row in runs.items() if names]
        if values:
            faces = [np.append(1.0, np.tile(grid.faces(ranks), 2)) for ranks in runs]
            faced = np.concatenate([each * face for each, face in zip(basis, faces, strict=True)])
            groups[place] = (names, np.concatenate(basis), np.concatenate(values, axis=1), faced)
    return groups
