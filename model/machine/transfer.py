"""A fitted model on another platform: the counts of its program, the laws of that machine.

Work, bytes and the loads of a kernel belong to the program; cores' cycles and clock, caches, latencies, bandwidth of
domains and the network to the machine. Each law of a kernel's time is given the other machine's: shared bandwidth its
domains, the counted equation its latencies and the capacities that its composition of loads is asked at, constant CPI
its cycles. What no run shows is assumed, listed and part of the interval (:mod:`ranksight.model.application.assumed`).
"""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np

from ranksight.comm.network import NetworkParameters
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model.application.assumed import (
    Assumed,
    bandwidth,
    core_factors,
    core_seconds,
    cycles_there,
)
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.moved import CORE, MEMORY, MIXED, Moved
from ranksight.model.application.network import Network
from ranksight.model.application.node import NODES, Node
from ranksight.model.application.runs import NO_RUNS
from ranksight.model.fitted_model import Model
from ranksight.model.kernel_time.composition import NO_CACHES, Caches
from ranksight.model.kernel_time.counted import BEYOND_L1, WAITING, Counted
from ranksight.model.kernel_time.perwork import PerWork
from ranksight.model.laws.law import BANDWIDTH
from ranksight.model.laws.stacking import places
from ranksight.model.laws.view import Fits
from ranksight.model.priors import UNDIVIDED
from ranksight.model.resource.equation import Machine
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.series.reduction import median
from ranksight.model.sharing.caches import NO_CACHE
from ranksight.model.sharing.shared import Sharing
from ranksight.model.structure.functions import Functions
from ranksight.platforms import Platform, load, simulated_caches
from ranksight.platforms.assumptions import assumptions, spread
from ranksight.platforms.cores import Factor, instructions_per_cycle
from ranksight.platforms.files import parse

UNNAMED = "fit it with --platform NAME: 'ranksight platforms' lists the machines described"

SIZES = np.array([8.0, 65536.0])
"""Bytes of a short and of a long message, at which networks are compared."""
PARTS = frozenset({"bytes_mem", "bytes_mem_read", "loads_mem", "stall_cycles"})
"""Metrics of which one says whether a kernel computes or waits for memory."""


def measured_platform(model: Model) -> Platform:
    """The machine that the runs of a model were on; InputError where it does not say."""
    if not model.platform:
        raise InputError("the model does not know on which machine its runs were", UNNAMED)
    return parse(model.platform.encode(), "the model's platform")


def moved_to(model: Model, target: Platform, instructions: float | None = None) -> Model:
    """The same model for another machine, by what is described of both; itself where its runs were on that machine.

    Raises InputError where the model does not know its own machine, where two machines have one name, or where a ratio
    is not above zero. `instructions`: those that the program needs there over those here, where the instruction sets or
    compilers differ.
    """
    origin = measured_platform(model)
    if origin == target:
        return model
    if origin.name == target.name:
        raise InputError(
            f"two machines are named {origin.name}: that of the runs, and the one asked for, which differs",
            "give one of them another name",
        )
    if instructions is not None and not 0 < instructions < np.inf:
        raise InputError(f"the instructions there are {instructions:g} times those here", "give a ratio above 0")
    application = _moved(model, origin, target, instructions)
    return replace(model, equation=application, functions=_in_caches(model.functions, target))


def _in_caches(functions: Functions, target: Platform) -> Functions:
    """The functions with loads by level in the other machine's caches, where misses were counted by cache size."""
    if not functions.locality.kernels:
        return functions
    levels = simulated_caches(target)
    sizes = [float(levels[min(at, len(levels) - 1)].size) for at in (0, 1, -1)]
    return replace(functions, locality=functions.locality.on(np.array(sizes), levels[0].line))


def _moved(model: Model, origin: Platform, target: Platform, instructions: float | None) -> Application:
    """The application's equation on the other machine, a rank on each of its cores."""
    equation = model.equation
    clock = _clock(equation)
    factors = core_factors(origin, target, clock, instructions)
    core, core_spread = core_seconds(factors)
    ipc = instructions_per_cycle(origin, target)
    executing = _Executing(ipc, core + log(factors[-1].value) + log(ipc.value))
    share = bandwidth(origin, target)
    shared = equation.sharing.measured if equation.sharing else NOT_DESCRIBED
    first = shared if shared.limited else Domains.of(origin, shared.placement)
    second = Domains.of(target, shared.placement)
    timed = tuple(dict.fromkeys(kernel for kernel, name in model.fitted.keys if name == "time"))
    either = float(np.hypot(np.hypot(core_spread, share.spread) / 2, spread("otherwise")))
    spreads = _spreads(equation, timed, ipc, np.array([core_spread, share.spread, either, MIXED]))
    network, messages, notes = _network(equation, origin, target)
    notes = (*notes, *_threads(origin, target))
    if NODES in model.parameters and not equation.resources and not equation.sharing:
        notes = (*notes, *_of_times_alone())
    moved = Moved(
        name=target.name,
        kernels=timed,
        core=core,
        ratio_spread=either,
        shift=np.zeros(spreads.shape),
        spread=spreads,
        nodes=(origin.cores, target.cores),
        assumed=(*factors, share, *notes),
        origin=first,
        target=second,
        messages=messages,
        runs=equation.runs,
    )
    if not {name for _, name in model.fitted.keys} & PARTS:
        unknown = moved.undecided(model.training.max(axis=0)[None], model.parameters)
        moved = replace(moved, assumed=(*moved.assumed, unknown))
    resources = equation.resources
    if resources:
        other = Machine.of(target).at(resources.machine.frequency * factors[-1].value)
        resources = replace(resources, machine=other, cpi=resources.cpi * executing.factor(resources.cpi))
    nowhere = np.zeros((0, len(model.parameters)))
    node = equation.node and Node.of(target, target.cores, nowhere, model.parameters)
    sharing = equation.sharing and _sharing(equation.sharing, second, core, factors[-1].value)
    counted = equation.counted and _counted(equation.counted, target, second, executing, clock, factors)
    exchange = equation.laws.get("exchange")
    return replace(
        equation,
        # What the other laws learned is of the machine measured.
        laws=Fits().having(exchange=exchange, resources=resources or None, sharing=sharing, counted=counted or None),
        cache=NO_CACHE,
        network=network,
        node=node,
        runs=NO_RUNS,
        machine=moved,
    )


def _spreads(equation: Application, timed: tuple[str, ...], ipc: Factor, usual: Array) -> Array:
    """Standard deviations (K, 4) of what is assumed of the kernels `timed`, of which `usual` (4,) are those without
    more known."""
    spreads = np.tile(usual, (len(timed), 1))
    if not equation.counted:
        return spreads
    # How much of waits for single loads a core hides is as uncertain as its instructions per cycle.
    waiting = set(equation.counted.kernels) - set(equation.laws.kernels(BANDWIDTH))
    spreads[[kernel in waiting for kernel in timed], MEMORY] = np.hypot(usual[MEMORY], ipc.spread)
    known = places(equation.counted.kernels, timed)
    cpi = np.where(known >= 0, _cpi(equation.counted)[known], np.nan)
    spreads[:, CORE] = np.sqrt(usual[CORE] ** 2 - ipc.spread**2 + cycles_there(cpi, ipc)[1] ** 2)
    return spreads


@dataclass(frozen=True)
class _Executing:
    """How cycles of the same work that do not wait for memory change."""

    ipc: Factor
    work: float  # logarithm of instructions there over here

    def factor(self, cpi: Array) -> Array:
        """Cycles there over here, of kernels that need `cpi` cycles an instruction here."""
        return np.asarray(np.exp(self.work + cycles_there(cpi, self.ipc)[0]))


def _cpi(law: Counted) -> Array:
    """CPI_exec (K,) of the runs; NaN where stalls were not counted."""
    if not law.execution:
        return np.full(len(law.kernels), np.nan)
    rates = law.execution.rates[law.execution.names.index("instructions")].values
    return np.asarray(np.exp(median(rates, axis=1)))


def _threads(origin: Platform, target: Platform) -> tuple[Assumed, ...]:
    """That a rank has a core, where cores there have another number of hardware threads."""
    ours, theirs = (each.layout.threads_per_core for each in (origin, target))
    if ours == theirs:
        return ()
    return (Assumed("rank a core", 1.0, 0.0, f"{theirs} hardware threads a core there, {ours} on {origin.name}"),)


def _of_times_alone() -> tuple[Assumed, ...]:
    """What a ratio of machines is taken to do to what more nodes do not divide, and another network."""
    return (
        Assumed(
            "power of the ratio of machines in what more nodes do not divide", UNDIVIDED,
            spread("undivided") / UNDIVIDED, assumptions()["undivided"].source,
        ),
        Assumed(
            "times as long what more nodes do not divide, by another network", 1.0, spread("network"),
            "neither network is in times alone", True,
        ),
    )  # fmt: skip


def _clock(equation: Application) -> float:
    """Hz that the runs had; NaN where they did not count cycles."""
    if equation.resources:
        return equation.resources.machine.frequency
    if equation.sharing is not None and np.isfinite(equation.sharing.clock).any():
        return float(np.nanmedian(equation.sharing.clock))
    return float("nan")


def _network(
    equation: Application, origin: Platform, target: Platform
) -> tuple[Network, tuple[float, float], tuple[Assumed, ...]]:
    """The network of the other machine, else that of the runs; how far the times of its messages inside of a node and
    between nodes are off, and what is assumed.

    What of the runs' network is not described inside of a node is a usual server's. Between nodes another network may
    differ from that of the runs by as much as a usual one does.
    """
    notes, known = [], (0.0, 0.0)
    network = equation.network
    if equation.others is not None:
        notes.append(
            Assumed("T_others", 1.0, spread("outside"), "time outside of kernels and messages is that of the runs")
        )
    if not equation.communication and not equation.laws.get("exchange"):
        return network, known, tuple(notes)
    if target.network and equation.communication:
        table = dict(target.network)
        return Network(table, target.cores if "inter" in table else 1 << 30), known, tuple(notes)
    inside = between = spread("network")
    usual, described = load("generic").network, network.table
    what, missing = "times the time of messages", f"no [network] in {target.name}: that of {origin.name}"
    if "inter" in described:
        network = Network({"intra": usual["intra"], **described}, target.cores, network.distribution)
        links = [NetworkParameters.from_dict(table["inter"]).transfer_time(SIZES) for table in (described, usual)]
        farthest = max(np.log(links[0] / links[1]).tolist(), key=abs)
        between = max(between, abs(farthest))
        source = f"{missing}, {np.exp(farthest):.2g} times that of a usual one"
        notes.append(Assumed(f"{what} between nodes", 1.0, between, source))
        missing = missing if "intra" in described else f"no [network] in {target.name}: that of a usual server"
    notes.append(Assumed(f"{what} inside of a node", 1.0, inside, missing))
    return network, (inside, between), tuple(notes)


def _sharing(law: Sharing, domains: Domains, core: float, clock: float) -> Sharing | None:
    """The law of shared bandwidth with the other machine's domains; None where the bandwidth here is not known."""
    if not law.measured.limited:
        return None
    mode = law.mode.copy()
    mode[:, [0, 3]] += core
    return replace(law, domains=domains, mode=mode, clock=law.clock * clock)


def _counted(
    law: Counted, target: Platform, domains: Domains, executing: _Executing, clock: float, factors: tuple[Assumed, ...]
) -> Counted:
    """The counted equation at the other machine's latencies, caches and clock."""
    frequency = clock * factors[-1].value if clock > 0 else target.frequency
    latencies = np.array(Machine.of(target).at(frequency).latencies)
    rates = replace(law.clock, values=law.clock.values + log(factors[-1].value))
    where = replace(law.where, domains=domains) if law.where.domains else law.where
    caches, composed = Caches.of(target, latencies) if law.caches else NO_CACHES, law.composed
    return replace(
        law,
        where=where,
        clock=rates,
        latencies=latencies,
        frequency=frequency,
        execution=law.execution and shifted(law.execution, np.log(executing.factor(_cpi(law)))),
        stall=law.stall and _waiting_alone(law.stall),
        composed=composed and replace(composed, execution=composed.execution * executing.factor(composed.execution)),
        caches=replace(caches, doubt=spread("capacity")) if caches else NO_CACHES,
        line=float(target.line),
    )


def shifted(law: PerWork, by: float | Array) -> PerWork:
    """The same quantity with rates times exp(`by`), one number or one a kernel."""
    return replace(law, rates=tuple(replace(rate, values=rate.values + np.reshape(by, (-1, 1))) for rate in law.rates))


def _waiting_alone(law: PerWork) -> PerWork:
    """Stalls by the cycles that loads wait, where those are known: other work says nothing of other latencies."""
    waiting = np.isin(law.names, (WAITING, BEYOND_L1))
    known = np.isfinite(law.prior) & waiting[:, None]
    return replace(law, prior=np.where(known.any(axis=0) & ~waiting[:, None], np.nan, law.prior))
