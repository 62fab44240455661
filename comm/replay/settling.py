"""When messages share links with which others: step after step, by when the ranks send them.

How long a message takes depends on those that are under way with it, and when these are sent depends on how long
earlier ones took. A step is replayed again until both agree, then the next one begins from there. Ranks that share a
link may come to use it by turns then, so that steps differ from each other though all ranks compute the same (Afzal,
Hager and Wellein, "Desynchronization and wave pattern formation in MPI-parallel and hybrid memory-bound programs", ISC
High Performance 2020). Source of the method: Lelarasmee, Ruehli and Sangiovanni-Vincentelli, "The waveform relaxation
method", IEEE Trans. CAD 1 (1982) 131, in windows of a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np

from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.replay.deliver import Exchange
from ranksight.comm.replay.machine import Machine
from ranksight.comm.replay.program import Program
from ranksight.comm.replay.rounds import Rounds
from ranksight.comm.replay.wires import Links, Wires, unshared
from ranksight.core.arrays import Array, Ints

MOST_TURNS = 4
"""How often a step is replayed again for when its messages are sent."""
FEWEST_STEPS, MOST_STEPS = 3, 20
"""Steps that are settled; later ones share links as the last of these."""
MOST_MESSAGES = 1 << 16
"""Messages of these steps together beyond which fewer are settled."""
SETTLED = 5e-4
"""Part of a step's time by which no rank ends it earlier or later when it is settled."""


class Settling(Machine):
    """A program that is replayed for the seconds of its messages' bytes."""

    def __init__(
        self,
        program: Program,
        fabric: Fabric,
        nodes: Ints,
        channels: Sequence[Exchange],
        collectives: Mapping[int, Rounds],
    ) -> None:
        super().__init__(program, list(channels), dict(collectives), False)
        each = [unshared(fabric, one.source, one.target, one.size, nodes) for one in program.channels]
        # Those of a step, and those of the step before that may be under way still.
        twice = {one.name: np.concatenate(2 * [getattr(costs, one.name) for costs in each]) for one in fields(Wires)}
        self.both = Wires(**twice)
        self.links = Links.of(fabric, self.both, nodes)
        self.bounds = np.cumsum([len(one.source) for one in each])[:-1]
        self.found: list[Array] = []  # (e,) of all channels, by step

    def settle(self) -> list[list[Array]]:
        """Seconds of the bytes of each channel's messages by step, (e,); all further steps are as the last."""
        calls, waiting = len(self.program.calls), {0: np.arange(self.program.ranks)}
        guess = np.concatenate([one.wire(0) for one in self.channels])
        most = int(np.clip(MOST_MESSAGES // len(guess), FEWEST_STEPS, MOST_STEPS))
        for step in range(min(self.program.steps, most)):
            begin, before = self._state(step), None
            self.found.append(guess)
            for turn in range(MOST_TURNS):
                self._take(self.found)
                after = self._until((step + 1) * calls, dict(waiting))
                took = float(self.now.max() - begin[0].max())
                if before is not None and np.abs(self.now - before).max() <= SETTLED * took:
                    break
                shared = self._shared(step)
                if np.array_equal(shared, self.found[step]) or turn == MOST_TURNS - 1:
                    break
                before = self.now.copy()
                self._restore(begin, step)
                # Half of further changes: all of them make messages come together and apart by turns.
                self.found[step] = shared if turn == 0 else (shared + self.found[step]) / 2
            waiting, guess = after, self.found[step]
            self.ended.append(self.now.copy())
            if self._alike(step):
                break
        return self._split()

    def _take(self, found: Sequence[Array]) -> None:
        """Let messages take so long."""
        parts = [np.split(each, self.bounds) for each in found]
        self.channels = [one.sharing([each[n] for each in parts]) for n, one in enumerate(self.channels)]

    def _split(self) -> list[list[Array]]:
        return [list(each) for each in zip(*(np.split(one, self.bounds) for one in self.found), strict=True)]

    def _alike(self, step: int) -> bool:
        """Whether all ranks end a step the same time later than the one before."""
        if not self.repeating or step < 2 + max(one.lag for one in self.program.channels):
            return False
        later = self.ended[-1] - self.ended[-2]
        return bool(np.ptp(later) <= SETTLED * later.max())

    def _state(self, step: int) -> tuple[Array, list[Array], list[Array], int]:
        first = max(step - 1 - max(one.lag for one in self.program.channels), 0)
        rows = slice(first, step + 1)
        return self.now.copy(), [one[rows].copy() for one in self.sent], [one[rows].copy() for one in self.asked], first

    def _restore(self, state: tuple[Array, list[Array], list[Array], int], step: int) -> None:
        now, sent, asked, first = state
        self.now = now.copy()
        for whole, rows in (*zip(self.sent, sent, strict=True), *zip(self.asked, asked, strict=True)):
            whole[first : step + 1] = rows

    def _shared(self, step: int) -> Array:
        """Seconds of the bytes of a step's messages as they are sent now, (e,)."""
        begin = np.concatenate([self._begin(step), self._begin(step - 1)])
        e = len(begin) // 2
        sent = np.isfinite(begin)
        if step and sent[:e].any():
            # Of the step before only those count that are under way when messages of this one are.
            sent[e:] &= begin[e:] + self.found[step - 1] > begin[:e][sent[:e]].min()
        longer = self.links.longer(np.where(sent, begin, 0.0), np.where(sent, self.links.volume, 0.0))
        return np.where(sent[:e], self.both.wire[:e] + longer[:e], self.found[step])

    def _begin(self, step: int) -> Array:
        """When the first byte of each message of a step arrives, (e,); infinite where it is not sent."""
        if step < 0:
            return np.full(len(self.both.source) // 2, np.inf)
        each = []
        for one, sent, asked in zip(self.channels, self.sent, self.asked, strict=True):
            ready = np.where(one.costs.waits, np.maximum(sent[step], asked[step]), sent[step])
            each.append(ready + one.costs.latency)
        return np.concatenate(each)
