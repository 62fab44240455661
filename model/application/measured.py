"""Communication times as measured, of the runs whose ranks had a core each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from ranksight.comm.waiting import shares_cores
from ranksight.core.arrays import Array, Index, ratio
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.core.records import dataclass
from ranksight.core.units import format_si, in_full
from ranksight.model.application.comm_blocking import Taken, costs_time, kind_of
from ranksight.model.priors import KERNELS_EXCESS

if TYPE_CHECKING:
    import pandas as pd


ALL = ""
"""Name of all kinds together, where they were not timed one by one."""
SENSIBLE = 20.0
"""BF_comm beyond which measurements contradict each other."""


@dataclass(frozen=True)
class Measured:
    """What communication took in one run."""

    point: tuple[float, ...]  # configuration
    seconds: Mapping[str, float]
    """Mean over ranks of each kind; of all together under :data:`ALL` where the kinds were not timed."""
    least: float  # seconds of the rank with least of all kinds, over the mean
    wall: float  # wall time of the program in the same run, s; NaN where it was not measured
    of_least: Mapping[str, float] = field(default_factory=dict)
    """Seconds of each kind on the rank with least of all, which waits least."""


def measured(experiment: Experiment) -> Iterator[Measured]:
    """Communication times of the runs with several ranks, each of which had a core of its own."""
    for run in experiment.runs:
        counters = experiment.table(run, "counters")
        if run.configuration.get("ranks", 1) < 2 or shares_cores(run, counters):
            continue
        seconds, each, wall, of_least = dict[str, float](), np.zeros(1), np.nan, dict[str, float]()
        for _, messages in experiment.tables("messages", runs=[run]):
            table = _by_kind(run, messages)
            seconds = {str(kind): float(column.mean()) for kind, column in table.items()}
            each = table.sum(axis=1).to_numpy(dtype=float)
            of_least = {} if table.empty else {str(kind): float(x) for kind, x in table.iloc[each.argmin()].items()}
        if counters is not None:
            whole = counters[counters["kernel"] == WHOLE]
            wall = float(whole["wall_time"].max()) if "wall_time" in whole else np.nan
            if not any(seconds.values()) and "mpi_time" in whole and whole["mpi_time"].notna().any():
                each = whole["mpi_time"].dropna().to_numpy(dtype=float)
                seconds = {ALL: float(each.mean())}
        if seconds:
            least = float(ratio(each.min(), each.mean(), 1.0))
            yield Measured(run.point(experiment.parameters), seconds, least, wall, of_least)


def _by_kind(run: Run, messages: pd.DataFrame) -> pd.DataFrame:
    """Seconds by rank and kind; empty where operations were not timed."""
    if "seconds" not in messages or not messages["seconds"].notna().all():
        return messages.iloc[:0, :0]
    kinds = messages["operation"].astype(str).map(kind_of)
    table = messages.assign(kind=kinds)[kinds.to_numpy() != ""]
    if table.empty:
        return messages.iloc[:0, :0]
    ranks = np.arange(int(run.configuration["ranks"])) if (table["rank"] >= 0).all() else table["rank"].unique()
    sums: pd.DataFrame = table.pivot_table("seconds", "rank", "kind", "sum", observed=True).reindex(ranks).fillna(0.0)
    return sums


def calls(experiment: Experiment) -> dict[str, tuple[Array, Array, Array]]:
    """Ranks, bytes a call and seconds a call of each kind of operations, one value a run, means over ranks.

    Calls are those that move something; seconds are of all operations of the kind, with those that complete messages.
    """
    rows_of: dict[str, list[tuple[float, float, float]]] = {}
    for run, table in experiment.tables("messages"):
        ranks = float(run.configuration.get("ranks", 1))
        if ranks < 2 or shares_cores(run, experiment.table(run, "counters")):
            continue
        seconds = _by_kind(run, table).mean()
        moving = table[np.array([costs_time(str(name)) for name in table["operation"]], dtype=bool)]
        sums = (
            moving.assign(kind=moving["operation"].astype(str).map(kind_of)).groupby("kind")[["count", "bytes"]].sum()
        )
        for kind, count, volume in sums.itertuples():
            if count > 0 and seconds.get(kind, 0.0) > 0:
                rows_of.setdefault(kind, []).append((ranks, volume / count, seconds[kind] * ranks / count))
    return {kind: tuple(np.array(rows, dtype=np.float64).T) for kind, rows in rows_of.items()}


def seconds_of(
    runs: list[Measured], waiting: Mapping[tuple[float, ...], float], prices: Mapping[str, Array]
) -> dict[str, Array]:
    """Seconds (n,) of each kind in each of n runs, without what the mean rank waits for the slowest.

    The rank that spends least waits least: T_imbalance is taken off the kinds in which the mean rank has more, in
    proportion to how much, and no more than that rank has less in all.

    `waiting` (mapping of configuration to float): t_imbalance there. `prices` (mapping of kind to (n,)): modelled
    seconds of the runs.
    """
    each: dict[str, list[float]] = {kind: [] for kind in prices}
    for at, one in enumerate(runs):
        mean = sum(one.seconds.values())
        waited = min(waiting.get(one.point, 0.0), mean * (1 - one.least))
        whole = max(sum(float(price[at]) for price in prices.values()), 1e-300)
        # Where kinds were not timed, each has the factor of all.
        timed = ALL not in one.seconds
        took = {
            kind: one.seconds.get(kind, 0.0) if timed else one.seconds[ALL] * float(price[at]) / whole
            for kind, price in prices.items()
        }
        more = {
            kind: max(seconds - (one.of_least.get(kind, 0.0) if timed else one.least * seconds), 0.0)
            for kind, seconds in took.items()
        }
        every = sum(more.values())
        for kind, seconds in took.items():
            each[kind].append(seconds - waited * float(ratio(more[kind], every, 0.0)))
    return {kind: np.array(values) for kind, values in each.items()}


def averaged(runs: list[Measured], seconds: Mapping[str, Array]) -> Taken:
    """What communication took at each configuration of n `runs`, over repetitions; `seconds`: of :func:`seconds_of`."""
    points = configurations(runs)
    places = placed(runs)
    means, errors = np.full((len(seconds), len(points)), np.nan), np.zeros((len(seconds), len(points)))
    for row, took in enumerate(seconds.values()):
        for at in np.unique(places[took > 0]).tolist():
            several = np.log(took[(places == at) & (took > 0)])
            means[row, at] = np.mean(several)
            if len(several) > 1:
                errors[row, at] = np.std(several, ddof=1) / np.sqrt(len(several))
    return Taken(tuple(seconds), points, means, errors)


def placed(runs: list[Measured]) -> Index:
    """The configuration of each of n runs, (n,), by its number in :func:`configurations`."""
    numbers = {point: at for at, point in enumerate(dict.fromkeys(one.point for one in runs))}
    return np.array([numbers[one.point] for one in runs], dtype=np.intp)


def configurations(runs: list[Measured]) -> Array:
    """The configurations of `runs`, each once, (n, m)."""
    return np.array(list(dict.fromkeys(one.point for one in runs)), dtype=np.float64)


def apart(runs: list[Measured], computed: Mapping[tuple[float, ...], float], names: Sequence[str]) -> bool:
    """Whether kernels' times do not hold the communication: with it they take no longer than the program did.

    `computed` (mapping of configuration to float): seconds that the slowest rank computes. `names`: kernels that have a
    time; MPI functions among them hold it.
    """
    if any(name.rpartition("/")[2].lower().removeprefix("p").startswith("mpi_") for name in names):
        return False
    sums = [(computed.get(one.point, 0.0) + one.least * sum(one.seconds.values()), one.wall) for one in runs]
    return bool(sums) and all(took <= (1 + KERNELS_EXCESS) * wall for took, wall in sums)


def contradiction(
    parameters: tuple[str, ...],
    runs: list[Measured],
    computed: Mapping[tuple[float, ...], float],
    modelled: Mapping[tuple[float, ...], float],
) -> str:
    """What contradicts what where BF_comm is below 0 or above :data:`SENSIBLE`; empty where it is not.

    `computed` (mapping of configuration to float): seconds that the slowest rank computes. `modelled` (mapping of
    configuration to float): seconds that its messages take on the network.
    """
    for one in runs:
        where = ", ".join(f"{in_full(x)} {name}" if name == "ranks" else f"{name} {in_full(x)}"
                          for name, x in zip(parameters, one.point, strict=True))  # fmt: skip
        kernels, network = computed.get(one.point, 0.0), modelled.get(one.point, 0.0)
        took = sum(one.seconds.values())
        if kernels > (1 + KERNELS_EXCESS) * one.wall:
            return (
                f"BF_comm is below 0 at {where}: the kernels' times add up to {format_si(kernels, 's')}, the program's "
                f"wall time is {format_si(one.wall, 's')}; times of nested kernels, or of other runs, do not add up"
            )
        if network > 0 and took > SENSIBLE * network:
            return (
                f"BF_comm is {took / network:.0f} at {where}: MPI took {format_si(took, 's')} as measured, its "
                f"messages take {format_si(network, 's')} on the described network; check the units of [network], "
                "otherwise ranks wait for each other"
            )
    return ""
