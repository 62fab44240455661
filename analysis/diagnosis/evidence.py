"""What a model knows of its kernels at some configurations, as a diagnosis needs it: one array a quantity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranksight.analysis.diagnosis import outside
from ranksight.analysis.diagnosis.ceilings import Ceilings
from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.mpi import handles_files
from ranksight.core.records import dataclass
from ranksight.model.application.breakdown import Breakdown
from ranksight.model.application.imbalances import settled
from ranksight.model.series.computation import cores

FARTHEST = 100.0
"""Ratio of the ends of an interval up to which it can still be compared with another."""


@dataclass(frozen=True)
class Evidence:
    """K kernels at k configurations; NaN where something is not known."""

    kernels: tuple[str, ...]
    parameters: tuple[str, ...]
    points: Array  # (k, m)
    broken: Breakdown  # its parts as those of the ranks that have a kernel
    computing: Array  # (K, k)
    imbalance: Array  # (K, k)
    communication: Array  # (K, k)
    """Seconds a rank; `computing` is the mean of the ranks that have the kernel, as are counts."""
    having: Array  # (K, k): part of all ranks that have the kernel
    shared: Array  # (3, K, k)
    """Seconds of `computing` that a rank's counted bytes take at the bandwidth of a cache (L2, L3) or memory that cores
    were measured to share; 0 where that is unknown (:mod:`ranksight.model.sharing`)."""
    low: Array  # (K, k)
    high: Array  # (K, k)
    """90 % interval of `computing`; of kernels of MPI, what their time may be less or more."""
    ok: Mask  # (K, k): whether the data are sufficient to predict the kernel's time
    reason: NDArray[np.object_]  # (K, k)
    sufficient: Mask  # (K, k)
    """Whether the interval of the kernel's time is usable: there are enough runs, of the parameters asked for, or runs
    of the very configuration."""
    counted_ok: Mask  # (K, k): whether the data suffice for the kernel's count of instructions
    instructions: Array  # (K, k): a rank
    flops: Array  # (K, k)
    fetched: Array  # (3, K, k): bytes that a rank reads from L2, L3 and memory, at least, by counters of their traffic
    loads: Array  # (4, K, k): served by the first, second and third cache level and memory
    stores: Array  # (3, K, k): stores that the second, the third level and memory served; 0 where they were not counted
    stalled: Array  # (K, k): part of the slots bound by memory, by the top-down method
    cpi: Array  # (K, k): CPI without the stalls of the equation, at each configuration
    minimum_wait: Array  # (K,): cycles that loads may wait, per instruction, where memory asked least
    factor: Array  # (K, k): BF_mem
    factor_error: Array  # (K, k): its standard error
    counted: Mask  # (K,): whether stalls were counted
    source: tuple[str, ...]  # what each kernel's parts were inferred from
    ceilings: Ceilings | None
    memory: Array | None = None  # (3, k)
    """Bytes that a rank holds, and the ends of their interval; None where it was not measured."""
    together: float = 1.0
    """Part of what slowest ranks take beyond the mean that is in `imbalance`; the rest others wait inside of
    kernels."""
    ratio: Array | None = None  # (K, k): work of the busiest rank of a kernel over the mean of all; NaN of even kernels
    balanced: Mask | None = None
    """Whether the part of its time that is imbalance has an answer, (K, k); None where no imbalance was measured."""
    slowest: tuple[str, ...] = ()  # the class of ranks that the program waits for, (k,); empty where it is not known
    imputed: Mask | None = None  # (K, k): whether no sample fell on a kernel, so that its time is assumed
    samples: Array | None = None  # (K, k)
    """The fewest samples behind the kernel's time and counts, those of the level that it waits for most among them;
    infinite where nothing of it was sampled, None where nothing of any kernel was."""
    message_ends: Array | None = None  # (2, K, k)
    """How much less and more than `communication` messages may take, seconds, the first not positive; None where it is
    not known."""
    running: Array | None = None
    """Part of its time (K, k) that each kernel has cycles, see :func:`ranksight.analysis.diagnosis.outside.running`."""
    least_instructions: Array | None = None  # (K, k)
    """Lower end of the interval of `instructions`; None where it is not known."""
    drawn: tuple[Evidence, ...] = ()
    """The same, drawn again and again as samples may have fallen; none where nothing was sampled."""

    @property
    def ranks(self) -> Array:
        """Number of ranks at each configuration, (k,); 1 where the model has no such parameter."""
        if "ranks" not in self.parameters:
            return np.ones(len(self.points))
        return np.asarray(self.points[:, self.parameters.index("ranks")], dtype=np.float64)

    @property
    def cores(self) -> Array:
        """Cores at work at each configuration, (k,): ranks times threads."""
        return cores(self.points, self.parameters)

    @property
    def frequency(self) -> float:
        """Clock in Hz; NaN where no machine is known."""
        return float("nan") if self.ceilings is None else self.ceilings.frequency

    @property
    def blocking(self) -> Array:
        """BF_mem as people read it, (K, k): what brings the equation to a shorter time is no share of latencies."""
        return np.maximum(self.factor, 0.0)

    @property
    def mean(self) -> Array:
        """Seconds of computing of the mean of all ranks, (K, k)."""
        return self.computing * self.having

    @property
    def lost(self) -> Array:
        """Seconds that the busiest rank computes beyond the mean of all ranks, (K, k)."""
        return self.imbalance + self.computing * (1 - self.having)

    @property
    def whole(self) -> Array:
        """Seconds of each kernel on the wall with all its parts, (K, k)."""
        return self.computing + self.imbalance + self.communication

    @property
    def whole_ends(self) -> tuple[Array, Array]:
        """90 % interval of :attr:`whole`, (K, k) each."""
        waited, ends = self.imbalance + self.communication, self.message_ends
        less, more = (0.0, 0.0) if ends is None else ends
        return self.low + waited + less, self.high + waited + more

    @property
    def separate(self) -> Mask:
        """The kernels that are not the whole program's, unless that is the only one, (K,)."""
        return np.array([kernel != WHOLE or len(self.kernels) == 1 for kernel in self.kernels])

    @property
    def others(self) -> Array:
        """Seconds of the program outside of its kernels and messages, (k,); 0 where they are unknown."""
        return np.asarray(np.zeros(len(self.points)) + np.nan_to_num(self.broken.others.value).sum(axis=0))

    @property
    def total(self) -> Array:
        """Seconds of the program: of all kernels and of what is outside of them, (k,)."""
        return np.asarray(self.whole.sum(axis=0) + self.others)

    @property
    def settled(self) -> Mask:
        """Whether what ranks compute is separated from what they wait, (k,), see
        :func:`ranksight.model.application.imbalances.settled`."""
        if self.balanced is None:
            return np.ones(len(self.points), dtype=bool)
        return settled(self.balanced, self.whole, self.total)

    @property
    def bounded(self) -> Mask:
        """Whether a kernel's time is predicted, or lies between two ends that can be compared, (K, k)."""
        low, high = (end + np.where(self.calls, self.communication, 0.0) for end in (self.low, self.high))
        return np.asarray(self.ok | ((low > 0) & (high <= FARTHEST * low)))

    @property
    def calls(self) -> Mask:
        """Kernels that only communicate, whose measured time is that of messages, (K, k)."""
        return (self.computing <= 0) & (self.communication > 0)

    @property
    def files(self) -> Mask:
        """Kernels that are MPI's functions of files, (K, 1)."""
        return np.array([[handles_files(kernel)] for kernel in self.kernels], dtype=bool)

    @property
    def halted(self) -> Mask:
        """Kernels whose time is neither computing nor memory, as cores were halted, (K, k)."""
        if self.running is None:
            return np.zeros(self.computing.shape, dtype=bool)
        return np.asarray(outside.CLOCKS * self.running < 1) & ~self.calls

    @property
    def waiting(self) -> Array:
        """Seconds that what L2, L3 and memory serve would wait one after another, (3, K, k)."""
        if self.ceilings is None:
            return np.full((3, *self.computing.shape), np.nan)
        return (self.loads[1:] + self.stores) * self.ceilings.latency[1:, None, None] / self.frequency

    @property
    def longest(self) -> Array:
        """The most that a kernel may wait for its loads and stores, seconds (K, k); infinite where none were counted.

        Idle latencies are exceeded where translations miss too and where others use the level
        (:attr:`ranksight.analysis.diagnosis.ceilings.Ceilings.longest`).
        """
        waiting = self.waiting
        if self.ceilings is None:
            return np.full(self.computing.shape, np.inf)
        most = np.nansum(waiting * self.ceilings.longest[:, None, None], axis=0)
        return np.where(np.isfinite(waiting).any(axis=0), most, np.inf)

    @property
    def traffic(self) -> Array:
        """Bytes that each rank reads from L2, L3 and memory, (3, K, k): lines that a level or one behind it serves."""
        line = 64.0 if self.ceilings is None else float(self.ceilings.line)
        # Stores read their line first, unless a processor sees that all of it is overwritten. Where it is not known
        # what a level behind serves, the bytes are at least those of the levels that are.
        served = self.loads[1:] + self.stores
        behind = np.cumsum(np.nan_to_num(served)[::-1], axis=0)[::-1] * line
        behind = np.where(np.isfinite(served), behind, np.nan)
        return np.asarray(np.fmax(behind, self.fetched))
