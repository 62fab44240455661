"""Prices of machine time and electricity, as ``0.02 EUR/core-hour``, ``1.5 EUR/node-hour`` and ``0.3 EUR/kWh``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.core.units import HOUR

CORE_HOUR, NODE_HOUR, KWH = "core-hour", "node-hour", "kWh"
JOULES = 1000 * HOUR
"""Joules of a kilowatt-hour."""
_UNITS: Mapping[str, tuple[str, float]] = {
    "core-hour": (CORE_HOUR, 1.0),
    "core-h": (CORE_HOUR, 1.0),
    "node-hour": (NODE_HOUR, 1.0),
    "node-h": (NODE_HOUR, 1.0),
    "kwh": (KWH, 1.0),
    "mwh": (KWH, 1e-3),
}
_PRICE = re.compile(
    r"(?P<value>\d{1,12}(?:\.\d{1,12})?(?:e-?\d{1,2})?) *(?P<currency>[^\W\d]{1,8}|[$€£¥]) */ *(?P<unit>[\w-]{1,12})"
)
WRITE = "write '0.02 EUR/core-hour', '1.5 EUR/node-hour' or '0.3 EUR/kWh'"


@dataclass(frozen=True)
class Prices:
    """Prices in one currency of a core-hour, a node-hour and a kilowatt-hour; 0 where one is not charged."""

    currency: str
    core_hour: float = 0.0
    node_hour: float = 0.0
    kwh: float = 0.0

    @classmethod
    def read(cls, texts: Sequence[str], where: str = "price", others: Prices | None = None) -> Prices | None:
        """The prices that texts state, with those of `others` that they do not; None of none. Raises InputError, which
        begins with `where`, where one has no unit, two are of the same thing, or currencies differ."""
        amounts: dict[str, float] = {}
        currencies: dict[str, None] = {}
        for text in texts:
            match = _PRICE.fullmatch(text.strip())
            known = _UNITS.get(match["unit"].lower()) if match else None
            if not match or not known:
                what = "has no unit" if re.fullmatch(r"[\d.e+-]*|[\d.]+ *\S{0,3}", text.strip()) else "is not a price"
                raise InputError(f"{where} {text!r:.40} {what}", WRITE)
            of, factor = known
            if of in amounts:
                raise InputError(f"{where}: two prices of a {of}", "state one")
            amounts[of] = float(match["value"]) * factor
            currencies.setdefault(match["currency"])
        if not amounts:
            return others
        if others is not None:
            amounts = {**others.amounts, **amounts}
            currencies.setdefault(others.currency)
        if len(currencies) > 1:
            raise InputError(f"{where}: prices in {' and '.join(currencies)}", "state them in one currency")
        return cls(next(iter(currencies)), *(amounts.get(of, 0.0) for of in (CORE_HOUR, NODE_HOUR, KWH)))

    @property
    def amounts(self) -> dict[str, float]:
        """Prices by what they are of, of what is charged."""
        stated = {CORE_HOUR: self.core_hour, NODE_HOUR: self.node_hour, KWH: self.kwh}
        return {of: amount for of, amount in stated.items() if amount}

    @property
    def remark(self) -> str:
        """That machine time is charged twice; else empty."""
        twice = self.core_hour and self.node_hour
        return "Machine time is charged by core-hours and by node-hours: the cost has both" if twice else ""

    def machine(self, seconds: Array, cores: Array, nodes: Array) -> Array:
        """What the machine costs for so many seconds; InputError where prices are of node-hours and nodes unknown."""
        if self.node_hour and np.isnan(nodes).any():
            raise InputError(
                "a price of a node-hour needs the nodes of a run, which the model does not know",
                "fit with --platform NAME, or state a price of a core-hour",
            )
        return np.asarray(seconds / HOUR * (cores * self.core_hour + np.nan_to_num(nodes) * self.node_hour))
