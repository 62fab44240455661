"""Parameters of a network in the LogGP family, as plain data.

The time of a message is kept as a whole, ``T(s) = alpha(s) + beta(s) * s``, piecewise over the message size ``s``,
because that is what a ping-pong measures; its split into latency and overheads is kept as well, where
the measurements determine it.

Sources: Culler et al., "LogP", PPoPP 1993; Alexandrov et al., "LogGP", SPAA 1995 (G); Ino et al., "LogGPS", PPoPP 2001
(size-dependent overheads and the rendezvous switch); Hockney, Parallel Computing 20 (1994) 389 (alpha and beta).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranksight.core.arrays import Array, Index
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Piecewise:
    """A piecewise linear function of the message size; it may jump where one piece ends and the next begins.

    ``f(s) = alpha[i] + beta[i] * s`` for ``first[i] <= s < first[i + 1]``.
    """

    first: tuple[int, ...]  # first size of each piece in bytes, rising from 0
    alpha: tuple[float, ...]
    """Intercepts in seconds. That of a later piece may be negative; the function is not, where it applies."""
    beta: tuple[float, ...]  # slopes in seconds per byte, none negative

    def __post_init__(self) -> None:
        if not self.first or not len(self.first) == len(self.alpha) == len(self.beta):
            raise InputError("from, alpha and beta of a function of message size differ in length", "give one of each")
        if self.first[0] != 0 or any(b <= a for a, b in zip(self.first, self.first[1:], strict=False)):
            raise InputError(f"pieces of a function of message size begin at {list(self.first)}", "rise from 0")
        if not all(map(math.isfinite, (*self.alpha, *self.beta))):
            raise InputError("a function of message size has a coefficient that is not a finite number")
        for start, alpha, beta in zip(self.first, self.alpha, self.beta, strict=True):
            # Rounding of a file's decimals must not make a piece that starts at zero time invalid.
            if beta < 0 or alpha + beta * start < -1e-12:
                raise InputError(
                    f"the piece from {start} B, {alpha:g} s + {beta:g} s/B, falls or is negative",
                    "times of messages are positive and do not fall with size; calibrate again",
                )

    def piece(self, size: ArrayLike) -> Index:
        """Index of the piece that holds each size; shape of `size`."""
        return np.maximum(np.searchsorted(self.first, np.asarray(size, dtype=float), side="right") - 1, 0)

    def __call__(self, size: ArrayLike) -> Array:
        """Value at each size (B) in seconds; shape of `size`."""
        size = np.asarray(size, dtype=float)
        at = self.piece(size)
        return np.asarray(np.maximum(np.asarray(self.alpha)[at] + np.asarray(self.beta)[at] * size, 0.0))

    def slope(self, size: ArrayLike) -> Array:
        """Slope at each size in seconds per byte; shape of `size`."""
        return np.asarray(self.beta, dtype=float)[self.piece(size)]

    def to_dict(self) -> dict[str, Any]:
        """As plain data: ``from`` (B), ``alpha`` (s) and ``beta`` (s/B), lists of one length."""
        return {"from": list(self.first), "alpha": list(self.alpha), "beta": list(self.beta)}

    @classmethod
    def from_dict(cls, content: object, where: str) -> Piecewise:
        """From plain data; a bare number is a constant. InputError names `where`."""
        if isinstance(content, (int, float)) and not isinstance(content, bool):
            return cls((0,), (float(content),), (0.0,))
        if not isinstance(content, Mapping) or set(content) != {"from", "alpha", "beta"}:
            raise InputError(f"{where} is not a function of message size", "give a number, or from, alpha and beta")
        lists = {name: _numbers(content[name], f"{where}.{name}") for name in ("from", "alpha", "beta")}
        if any(not value.is_integer() for value in lists["from"]):
            raise InputError(f"{where}.from holds a size that is not a whole number of bytes")
        try:
            return cls(tuple(int(value) for value in lists["from"]), lists["alpha"], lists["beta"])
        except InputError as error:
            raise InputError(f"{where}: {error.what}", error.remedy) from error


@dataclass(frozen=True, slots=True)
class NetworkParameters:
    """What one kind of link (inside a node, or between nodes) costs."""

    transfer: Piecewise  # one-way time ``T(s) = o_s + L + o_r + s G``, half a ping-pong's round trip, in seconds
    send_overhead: Piecewise | None = None
    receive_overhead: Piecewise | None = None
    """``o_s(s)`` and ``o_r(s)``: time the processor is busy; None where not measured."""
    latency: float | None = None  # ``L`` in seconds; None where it is not identifiable
    gap: Piecewise | None = None
    """``g(s)``: seconds a further message takes in a train from one sender, ``g`` at 0 B and bound by the link's
    bandwidth at large sizes; None where not measured."""
    reduction: float = 0.0  # seconds to combine one byte of two operands; 0 counts no combining
    contention: float = 1.0
    """Part of the link that one pair's stream takes, 0 to 1: with `k` pairs at once each message occupies the link
    ``max(1, contention * k)`` times as long. Stands where `node_bandwidth` is not known."""
    node_bandwidth: float | None = None
    """``B``: bytes a second that all messages of one node have together, each way, over all its adapters. The part that
    one stream takes is then ``1 / (B G)``, `G` that of large messages in a train."""
    message_rate: float | None = None  # messages a second of all ranks of a node together, each way
    opposite: float = 0.0
    """Part of a link that a byte takes in the other direction, as acknowledgements do: how much longer an exchange of
    large messages takes than one of them; 0 where both directions are free of each other, 1 for half duplex."""
    eager_limit: int | None = None  # first size that waits for its receiver (rendezvous), where it was detected
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Confidence interval of each parameter by name: ``latency``, ``gap``, ``alpha[0]``, ``G[0]``, ..."""
    notes: tuple[str, ...] = ()  # what a reader of the numbers must know, such as why a parameter is not identifiable
    library: str = ""  # the MPI library that was measured, and how
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("latency", "reduction"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise InputError(f"{name} is {value!r}", "it is in seconds, not negative; leave out what is unknown")
        for name in ("contention", "opposite"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)!r}", "it is a number from 0 to 1")
        if self.node_bandwidth is not None and not 0 < self.node_bandwidth < math.inf:
            raise InputError(f"node_bandwidth is {self.node_bandwidth!r}", "it is in B/s; leave it out where unknown")
        if self.message_rate is not None and not 0 < self.message_rate < math.inf:
            raise InputError(f"message_rate is {self.message_rate!r}", "it is in messages a second, above 0")

    @classmethod
    def linear(cls, alpha: float, beta: float, **others: Any) -> NetworkParameters:
        """Hockney's model: ``T(s) = alpha + beta * s`` at all sizes."""
        return cls(Piecewise((0,), (alpha,), (beta,)), **others)

    def transfer_time(self, size: ArrayLike, pairs: ArrayLike = 1) -> Array:
        """One-way time of a message of `size` bytes while `pairs` pairs share the link; broadcast shape, seconds."""
        size = np.asarray(size, dtype=float)
        occupied = self.occupied(size)
        alone = np.maximum(occupied, self.transfer.slope(size) * size)
        return np.asarray(self.transfer(size) + np.maximum(self._slower(pairs) * occupied - alone, 0.0))

    def spacing(self, size: ArrayLike, pairs: ArrayLike = 1) -> Array:
        """Time from one send to the next of one sender, in seconds, broadcast shape.

        ``max(o_s(s), g(s) + w)`` after LogGP, ``w`` what sharing the link adds; where no train was measured, ``s G``
        stands for ``g(s)``. A node sends no more messages than its adapters can: ``pairs / message_rate``. Without a
        measured gap and overhead the messages are taken one after the other, ``T(s)``: an upper bound.
        """
        size = np.asarray(size, dtype=float)
        whole = self.transfer_time(size, pairs)
        rate = 0.0 if self.message_rate is None else np.asarray(pairs, dtype=float) / self.message_rate
        if self.gap is None and self.send_overhead is None:
            return np.asarray(np.maximum(whole, rate))
        wire = self.gap(size) if self.gap is not None else self.transfer.slope(size) * size
        wire = wire + (self._slower(pairs) - 1.0) * self.occupied(size)
        busy = self.send_overhead(size) if self.send_overhead is not None else np.zeros(())
        return np.asarray(np.maximum(np.minimum(np.maximum(busy, wire), whole), rate))

    def occupied(self, size: Array) -> Array:
        """Seconds that a message keeps the link from others: of its gap what its bytes make, or ``s G``."""
        return self.transfer.slope(size) * size if self.gap is None else np.maximum(self.gap(size) - self.gap(0.0), 0.0)

    def _slower(self, pairs: ArrayLike) -> Array:
        """How many times as long a message keeps a link that `pairs` pairs share."""
        return np.asarray(np.maximum(np.asarray(pairs, dtype=float) * self.part, 1.0))

    @property
    def part(self) -> float:
        """Part of the link that one pair's stream of large messages takes, 0 to 1."""
        if self.node_bandwidth is None:
            return self.contention
        stream = self.transfer if self.gap is None else self.gap
        return min(1.0, 1.0 / max(self.node_bandwidth * stream.beta[-1], 1e-300))

    def to_dict(self) -> dict[str, Any]:
        """As plain data for a TOML table; what is unknown is left out."""
        content: dict[str, Any] = {"transfer": self.transfer.to_dict()}
        for name in ("send_overhead", "receive_overhead", "gap"):
            function = getattr(self, name)
            if function is not None:
                content[name] = function.to_dict()
        for name in ("latency", "node_bandwidth", "message_rate", "eager_limit"):
            if getattr(self, name) is not None:
                content[name] = getattr(self, name)
        content |= {"reduction": self.reduction, "contention": self.contention}
        if self.opposite:
            content["opposite"] = self.opposite
        content |= {name: text for name in ("library", "source") if (text := getattr(self, name))}
        if self.notes:
            content["notes"] = list(self.notes)
        if self.intervals:
            content["intervals"] = {name: list(bounds) for name, bounds in self.intervals.items()}
        return content

    @classmethod
    def from_dict(cls, content: object, where: str = "network") -> NetworkParameters:
        """From plain data, as :meth:`to_dict` writes it.

        `content`: a table of a platform file. `where`: file and table, for messages. Raises InputError when an entry is
        missing, unknown, or no sensible value; it names `where`.
        """
        if not isinstance(content, Mapping) or "transfer" not in content:
            raise InputError(f"{where} has no entry transfer", "calibrate, or write transfer = {from, alpha, beta}")
        unknown = sorted(set(content) - set(cls.__dataclass_fields__))
        if unknown:
            known = ", ".join(cls.__dataclass_fields__)
            raise InputError(f"{where} has the unknown entry {unknown[0]}", f"known: {known}")
        values: dict[str, Any] = {}
        for name, value in content.items():
            place = f"{where}.{name}"
            if name in ("transfer", "send_overhead", "receive_overhead", "gap"):
                values[name] = Piecewise.from_dict(value, place)
            elif name == "intervals":
                if not isinstance(value, Mapping):
                    raise InputError(f"{place} is not a table")
                values[name] = {key: _pair(bounds, f"{place}.{key}") for key, bounds in value.items()}
            elif name in ("library", "source"):
                if not isinstance(value, str):
                    raise InputError(f"{place} is not text")
                values[name] = value
            elif name == "notes":
                if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
                    raise InputError(f"{place} is not a list of texts")
                values[name] = tuple(value)
            else:
                (number,) = _numbers([value], place)
                values[name] = int(number) if name == "eager_limit" else number
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(f"{where}: {error.what}", error.remedy) from error


def _numbers(content: object, where: str) -> tuple[float, ...]:
    if not isinstance(content, Sequence) or isinstance(content, str):
        raise InputError(f"{where} is not a list of numbers")
    for value in content:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise InputError(f"{where} holds {value!r}", "write a finite number")
    return tuple(float(value) for value in content)


def _pair(content: object, where: str) -> tuple[float, float]:
    numbers = _numbers(content, where)
    if len(numbers) != 2 or numbers[0] > numbers[1]:
        raise InputError(f"{where} is not an interval", "write [lower, upper]")
    return numbers[0], numbers[1]
