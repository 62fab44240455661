"""What is assumed of a machine that no run shows: factors with their spread and source."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, log

from ranksight.model.plaindata import Stored
from ranksight.model.priors import ELSEWHERE
from ranksight.platforms import Platform
from ranksight.platforms.cores import SETS, UNKNOWN, instruction_set, instructions_per_cycle, is_stated


@dataclass(frozen=True)
class Assumed(Stored):
    """A factor that holds there over here, and where it comes from."""

    what: str
    value: float
    spread: float  # standard deviation of its logarithm
    source: str

    def __str__(self) -> str:
        return f"assumed: {self.value:.3g} +- {self.value * self.spread:.2g} {self.what} ({self.source})"


def core_factors(here: Platform, there: Platform, clock: float, instructions: float | None) -> tuple[Assumed, ...]:
    """Instructions, instructions per cycle and clock of a core there over those here.

    `clock`: Hz that the runs had, NaN where they show none. `instructions`: the ratio as the user states it.
    """
    factors = []
    one, other = instruction_set(here), instruction_set(there)
    if instructions is not None:
        factors.append(Assumed(f"instructions against {here.name}", instructions, 0.0, "as stated"))
    elif one and other and one != other:
        source = f"{other} against {one}, no factor is stated: --instructions RATIO states it"
        factors.append(Assumed(f"instructions against {here.name}", 1.0, SETS, source))
    ipc = instructions_per_cycle(here, there)
    name = here.architecture or here.name
    factors.append(Assumed(f"instructions per cycle against {name}", ipc.value, ipc.spread, ipc.source))
    return (*factors, _clock(here, there, clock))


def core_seconds(factors: tuple[Assumed, ...]) -> tuple[float, float]:
    """Logarithm of the seconds of the same work in a core there over here, and its standard deviation."""
    value = sum(log(each.value) * (1 if each.what.startswith("instructions against") else -1) for each in factors)
    return value, hypot(*(each.spread for each in factors))


def _clock(here: Platform, there: Platform, clock: float) -> Assumed:
    """The clock there over that of the runs."""
    measured = clock if clock > 0 else here.frequency
    if there.clock.measured is not None:
        return Assumed(f"clock against {here.name}", there.clock.measured / measured, 0.01, "measured under load there")
    base, top = there.clock.base, there.clock.single
    if top is None or here.clock.single is None or here.clock.single <= here.clock.base or top <= base:
        share, value, spread = 0.0, base * min(measured / here.frequency, 1.0), ELSEWHERE["clock"]
        source = f"{here.name} ran at {measured / here.frequency:.0%} of its nominal clock, and so does {there.name}"
        return Assumed(f"clock against {here.name}", value / measured, spread, source)
    share = (measured - here.clock.base) / (here.clock.single - here.clock.base)
    value = base + share * (top - base) if share > 0 else base * measured / here.clock.base
    spread = ELSEWHERE["turbo"] * (top - base) / value
    source = f"{here.name} ran at {max(share, 0):.0%} of its turbo range, and so does {there.name}"
    return Assumed(f"clock against {here.name}", value / measured, spread, source)


def bandwidth(here: Platform, there: Platform) -> Assumed:
    """A kernel's share of the described bandwidth of a domain, there over here, and how large both are."""
    keys = ("memory.bandwidth_domain", "memory.scaling.update")
    guessed = [key for key in keys if (origin := there.source(key)) is not None and origin.estimate]
    bandwidth_here, other = (platform.memory.bandwidth_domain * platform.domains for platform in (here, there))
    source = (
        f"{'estimated' if guessed else 'described'} {other / 1e9:.3g} GB/s a node against {bandwidth_here / 1e9:.3g}"
    )
    what = f"share of the described bandwidth against {here.name}"
    known = ELSEWHERE["bandwidth estimated" if guessed else "bandwidth measured"]
    spread = known if is_stated(here) and is_stated(there) else UNKNOWN
    return Assumed(what, 1.0, spread, source)
