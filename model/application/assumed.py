"""What is assumed of a machine that no run shows: factors with their spread and source."""

from __future__ import annotations

from math import exp, hypot, log, sqrt

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored
from ranksight.platforms import Platform
from ranksight.platforms.assumptions import spread
from ranksight.platforms.cores import Factor, instruction_set, instructions_per_cycle, is_stated


@dataclass(frozen=True)
class Assumed(Stored):
    """A factor that holds there over here, and where it comes from."""

    what: str
    value: float
    spread: float  # standard deviation of its logarithm
    source: str
    of_kernels: bool = False  # whether runs there learn it with the kernels' times
    learned: bool = False  # from runs there

    def __str__(self) -> str:
        off = f" +- {self.value * self.spread:.2g}" if self.spread else ""
        if self.spread > 1:
            off = f", within a factor of {exp(self.spread):.2g},"
        return f"{'learned' if self.learned else 'assumed'}: {self.value:.3g}{off} {self.what} ({self.source})"


def core_factors(origin: Platform, target: Platform, clock: float, instructions: float | None) -> tuple[Assumed, ...]:
    """Instructions, instructions per cycle and clock of a core there over those here.

    `clock`: Hz that the runs had, NaN where they show none. `instructions`: the ratio as the user states it.
    """
    factors = []
    one, other = instruction_set(origin), instruction_set(target)
    if instructions is not None:
        factors.append(Assumed(f"instructions against {origin.name}", instructions, 0.0, "as stated"))
    elif not same_instructions(origin, target):
        sets = f"{other} against {one}" if one and other else "an instruction set is not known"
        source = f"{sets}, no factor is stated: --instructions RATIO states it"
        factors.append(Assumed(f"instructions against {origin.name}", 1.0, spread("sets"), source, True))
    ipc = instructions_per_cycle(origin, target)
    name = origin.architecture or origin.name
    factors.append(Assumed(f"instructions per cycle against {name}", ipc.value, ipc.spread, ipc.source, True))
    return (*factors, _clock(origin, target, clock))


def same_instructions(origin: Platform, target: Platform) -> bool:
    """Whether cores of two machines are known to have one instruction set."""
    one, other = instruction_set(origin), instruction_set(target)
    return origin.architecture == target.architecture or (one == other and bool(one))


def core_seconds(factors: tuple[Assumed, ...]) -> tuple[float, float]:
    """Logarithm of the seconds of the same work in a core there over here, and its standard deviation."""
    value = sum(log(each.value) * (1 if each.what.startswith("instructions against") else -1) for each in factors)
    return value, hypot(*(each.spread for each in factors))


def cycles_there(cpi: Array, factor: Factor) -> tuple[Array, Array]:
    """Logarithms of kernels' cycles there over here, none of which wait for memory, and their standard deviations.

    Of `cpi` cycles an instruction here a part issues it, 1/W with W the issue width, and the rest waits for operands
    and units. A published factor r changes both, and the widths the first part alone:

        CPI_there = max(CPI / r, 1/W_there),    or without such a factor    CPI - 1/W_here + 1/W_there

    This is the division of top-down analysis (Yasin, ISPASS 2014): an instruction retired takes a slot, of which a
    cycle has W. Fused instructions share one, so that the first part is no more than `cpi`; NaN where CPI is not known,
    which takes the factor as it is.
    """
    known = np.isfinite(cpi)
    usual = np.full(cpi.shape, -log(factor.value))
    if factor.widths is None:
        return usual, np.full(cpi.shape, factor.spread)
    width, other_width = factor.widths
    cpi = np.where(known, cpi, 1.0)
    issuing = np.minimum(1 / width, cpi)
    least = issuing * width / other_width
    value = np.maximum(cpi / factor.value, least) if factor.published else cpi - issuing + least
    deviation = factor.spread if factor.published else spread("width")
    return np.where(known, np.log(value / cpi), usual), np.where(known, deviation, factor.spread)


def _clock(origin: Platform, target: Platform, clock: float) -> Assumed:
    """The clock there over that of the runs."""
    hertz = clock if clock > 0 else origin.frequency
    if target.clock.measured is not None:
        source = "measured under load there"
        return Assumed(f"clock against {origin.name}", target.clock.measured / hertz, 0.01, source, True)
    base, top = target.clock.base, target.clock.single
    if top is None or origin.clock.single is None or origin.clock.single <= origin.clock.base or top <= base:
        value = base * min(hertz / origin.frequency, 1.0)
        source = f"{origin.name} ran at {hertz / origin.frequency:.0%} of its nominal clock, and so does {target.name}"
        return Assumed(f"clock against {origin.name}", value / hertz, spread("clock"), source, True)
    share = (hertz - origin.clock.base) / (origin.clock.single - origin.clock.base)
    value = base + share * (top - base) if share > 0 else base * hertz / origin.clock.base
    deviation = spread("turbo") * (top - base) / value
    source = f"{origin.name} ran at {max(share, 0):.0%} of its turbo range, and so does {target.name}"
    return Assumed(f"clock against {origin.name}", value / hertz, deviation, source, True)


def bandwidth(origin: Platform, target: Platform) -> Assumed:
    """What kernels get of the described bandwidth there over the same here, and how large both are.

    An estimate of either machine is as uncertain as one of the other: what a kernel had of it here is then as well.
    """
    texts = []
    for platform in (target, origin):
        size = f"{platform.memory.bandwidth_domain * platform.domains / 1e9:.3g} GB/s"
        texts.append(f"{size} estimated" if _is_estimated(platform) else size)
    source = f"{texts[0]} a node against {texts[1]} on {origin.name}"
    what = "times the bandwidth of memory that its description gives"
    if not (is_stated(origin) and is_stated(target)):
        return Assumed(what, 1.0, spread("unknown"), source, True)
    least, guessed = spread("bandwidth_measured"), sum(map(_is_estimated, (origin, target)))
    variance = least**2 + guessed * (spread("bandwidth_estimated") ** 2 - least**2)
    return Assumed(what, 1.0, sqrt(variance), source, True)


def _is_estimated(platform: Platform) -> bool:
    """Whether a bandwidth of memory is an estimate."""
    sources = map(platform.source, ("memory.bandwidth_domain", "memory.scaling.update"))
    return any(each is not None and each.estimate for each in sources)
