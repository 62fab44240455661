"""The messages of phases on a described network, where their time in MPI was not measured truthfully.

Counts and bytes of each phase's operations are modelled as those of kernels are, over all configurations traced, and
put on the network in the same way: see :mod:`ranksight.model.application.communication`.

Source: Panadero et al. 2015, section 2.2.1, models data volumes by regression; its physical trace is run, not computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ranksight.core.arrays import Array
from ranksight.model.application.communication import Communication
from ranksight.model.application.network import Network
from ranksight.model.plaindata import Stored
from ranksight.model.structure.stated import BETWEEN


@dataclass(frozen=True)
class Messages(Stored):
    """Messages of all phases, and the network they go over."""

    platform: str  # name of the network's platform
    parameters: tuple[str, ...]  # of the experiment
    communication: Communication  # its rows are named ``number: operation``
    network: Network

    def times(self, ranks: Array, workload: Mapping[str, float], level: float) -> dict[int, Array]:
        """Seconds of each phase's messages in the whole run, by its number, at k rank counts."""
        points = np.array([[p if name == "ranks" else workload[name] for name in self.parameters] for p in ranks])
        said = self.communication.times(points, self.network.fabric(), level, self.network.choice())
        found: dict[int, Array] = {}
        for at, name in enumerate(self.communication.names):
            number = int(name.partition(BETWEEN)[0])
            found[number] = found.get(number, np.zeros(len(points))) + said.value[at]
        return found

    def _fits(self) -> bool:
        numbers = [name.partition(BETWEEN)[0] for name in self.communication.names]
        return all(number.isdecimal() for number in numbers)
