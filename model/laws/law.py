"""What a law of kernels' times is, and the registry of laws.

A law learns from the measurements what it needs (:meth:`Law.fit`), and predicts from that the times of kernels at any
configuration (:meth:`Law.at`), as a distribution, with the parts that they are made of. Which law a kernel goes by is
decided by what each predicts of held-out configurations (:mod:`ranksight.model.laws.stacking`). Laws are one a file in
this folder; other packages register theirs by the entry point group ``ranksight.laws``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import ContractError, RanksightError
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import LEVELS
from ranksight.core.records import dataclass
from ranksight.core.registry import Registry
from ranksight.core.units import some_of
from ranksight.model.plaindata import listed
from ranksight.model.quantity import Quantity

if TYPE_CHECKING:
    from ranksight.model.laws.view import Asked, View

FUNCTION, COST, COUNTED, CONSTANT_CPI = "function of time", "cost per work", "counted equation", "constant CPI"
BANDWIDTH, CACHE, MESSAGES, FITTED = "shared bandwidth", "shared cache", "messages", "fitted equation"
"""Names of the laws of this package, for code that asks for what one of them learned."""
MACHINE, PLACES = "a machine", "memory domains"
"""What is known besides metrics: the machine that was measured, and which of its ranks share memory."""
PARTS = ("execution", *LEVELS, "contention", "direct")
"""What a law may take times to be made of."""
SWITCHED_OFF: frozenset[str] = frozenset()
"""Laws that are left out, as benchmarks do to see what each is worth."""


class Learned(Protocol):
    """What a law learned of some kernels; a model's file holds it as plain data (see
    :class:`ranksight.model.plaindata.Stored`)."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels whose times follow from it."""
        ...

    def to_dict(self) -> Any:
        """Plain data that JSON can hold, from which ``from_dict`` of the same class makes an equal one."""
        ...


@dataclass(frozen=True)
class LawTimes:
    """What a law predicts of K kernels at k configurations."""

    kernels: tuple[str, ...]
    time: Quantity  # logarithms of seconds, (K, k)
    answers: Mask  # (K, k): where the law applies
    method: tuple[str, ...]  # what each kernel's times come from; empty where the law's name says it
    parts: Mapping[str, Array] = field(default_factory=dict)
    """mapping of some of :data:`PARTS` to (K, k): seconds that the times are made of; empty where the law does not
    know."""
    quantities: Mapping[str, Array] = field(default_factory=dict)
    """mapping of quantity to (K, k): what the law takes a kernel to do: metrics, and those of
    :mod:`ranksight.model.laws.together`."""
    undetermined: Mask | None = None  # (K, k): where the measurements do not determine the time, whatever the law
    reason: str = ""  # of :attr:`undetermined`
    imputed: frozenset[str] = frozenset()  # kernels of which no other law knows anything


class Law:
    """A law of kernels' times; what a derived class states of itself is below."""

    prior: ClassVar[float]
    """Weight before anything was held out, relative to the other laws that apply: above 0, at most 1."""
    needs: ClassVar[str]  # what has to be measured, in words
    formula: ClassVar[str]
    source: ClassVar[str]  # who published it, or where it is explained
    kind: ClassVar[Any] = None
    """Class of what :meth:`fit` returns, with ``from_dict``; None for a law that learns nothing of its own."""
    part: ClassVar[str] = ""
    """Name under which a model keeps what was learned, the law's own when empty: laws of one part share it."""
    asks: ClassVar[tuple[str, ...]] = ()  # metrics whose functions it asks for
    learns_from: ClassVar[tuple[str, ...]] = ()
    """What of which anything has to be known before it is fitted: metrics, :data:`MACHINE` or :data:`PLACES`."""
    counts: ClassVar[bool] = False  # whether it predicts by what was counted of a kernel
    shares: ClassVar[bool] = False  # whether it knows what ranks of a memory domain take from each other
    divides: ClassVar[bool] = False  # whether its parts also divide times of laws that have none
    gives_way: ClassVar[bool] = False  # whether it is left out where the user states how times grow

    def fit(self, view: View) -> Any:
        """What the measurements in `view` say, of the class :attr:`kind`; None where the law does not apply."""
        return None

    def at(self, learned: Any, asked: Asked) -> LawTimes | None:
        """The times at the configurations of `asked`, by what was `learned`; None where the law does not apply."""
        raise NotImplementedError


LAWS: Registry[Law] = Registry("law", packages=("ranksight.model.laws",), group="ranksight.laws")
"""All laws by name."""
_TEXTS = ("needs", "formula", "source")


def registered() -> dict[str, Law]:
    """The laws that are not :data:`SWITCHED_OFF`, by rising prior; ContractError names one that does not keep the
    protocol."""
    return {name: law for name, law in installed().items() if name not in SWITCHED_OFF}


def installed() -> dict[str, Law]:
    """All laws, by rising prior; see :func:`registered`."""
    laws = {name: LAWS[name] for name in LAWS}
    for name, law in laws.items():
        if reason := _fault(name, law, laws):
            raise refused(name, reason)
    return dict(sorted(laws.items(), key=lambda item: (item[1].prior, item[1].kind is not None, item[0])))


def part_of(name: str, law: Law) -> str:
    """Name under which a model keeps what a law learned."""
    return law.part or name


def _fault(name: str, law: Law, laws: Mapping[str, Law]) -> str:
    """What is wrong with what a law says of itself; empty where nothing is."""
    if not isinstance(law, Law):
        return "it is not derived from ranksight.model.laws.law.Law"
    prior = getattr(law, "prior", None)
    if isinstance(prior, bool) or not isinstance(prior, int | float) or not 0 < prior <= 1:
        return f"its prior is {prior!r}, and not a number above 0 and up to 1"
    for each in _TEXTS:
        text = getattr(law, each, None)
        if not isinstance(text, str) or not text.strip() or "\n" in text:
            return f"its {each} is not a line of text"
    if type(law).at is Law.at:
        return "it has no method 'at'"
    part = part_of(name, law)
    others = {other: each for other, each in laws.items() if isinstance(each, Law)}
    shared = [other for other, each in others.items() if part_of(other, each) == part and each.kind is not law.kind]
    if shared:
        return f"{shared[0]} keeps what it learns under the same name, {part!r}"
    return ""


def refused(name: str, reason: str) -> ContractError:
    """The error of a law that cannot be used."""
    law = LAWS[name]
    place = type(law).__module__
    return ContractError(f"law {name!r} of {place} is refused: {reason}", "update its package, or uninstall it")


@contextmanager
def answerable(name: str, law: Law, what: str) -> Iterator[None]:
    """Call a law from outside: what it raises is its own fault and gets one line, with its name."""
    try:
        yield
    except RanksightError:
        raise
    except Exception as error:
        if type(law).__module__.startswith("ranksight."):
            raise
        raise refused(name, f"{what} raises {type(error).__name__}: {error}") from error


def checked(name: str, times: Any, timed: Collection[str], count: int) -> LawTimes:
    """What a law predicts at `count` configurations; ContractError where it cannot be a prediction of kernels in
    `timed`."""
    for test in (_shapes, _numbers, _parts):
        reason = test(times, timed, count)
        if reason:
            raise refused(name, reason)
    result: LawTimes = times
    return result


def claims(name: str, learned: Any, kernels: Collection[str]) -> None:
    """ContractError where a law learned of kernels that are not among `kernels`, which have a time."""
    claimed = getattr(learned, "kernels", None)
    if not isinstance(claimed, tuple):
        raise refused(name, "what it learned has no tuple of kernels")
    if unknown := sorted(map(str, set(claimed) - set(kernels) - {WHOLE})):
        raise refused(name, f"it claims kernels that were not measured: {some_of(unknown)}")


def storable(name: str, law: Law, learned: Any) -> None:
    """ContractError where what a law of another package learned cannot be kept in a model's file."""
    if type(law).__module__.startswith("ranksight."):
        return
    with answerable(name, law, "to_dict"):
        content = listed(learned.to_dict())
    try:
        json.dumps(content, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise refused(name, f"what it learned cannot be kept in a file: {error}") from error


def _shapes(times: Any, timed: Collection[str], count: int) -> str:
    if not isinstance(times, LawTimes) or not isinstance(times.time, Quantity):
        return "'at' returns no LawTimes"
    if unknown := sorted(set(times.kernels) - set(timed)):
        return f"it claims kernels that have no time: {some_of(unknown)}"
    shape = (len(times.kernels), count)
    arrays = (times.time.centre, times.time.down, times.time.up, times.answers)
    if any(np.shape(array) != shape for array in arrays) or len(times.method) != len(times.kernels):
        return f"what it predicts is not of {shape[0]} kernels at {count} configurations"
    return "" if np.asarray(times.answers).dtype == bool else "its answers have to be truth values"


def _numbers(times: LawTimes, timed: Collection[str], count: int) -> str:
    for name in ("centre", "down", "up"):
        values = np.asarray(getattr(times.time, name))[times.answers]
        if not np.isfinite(values).all():
            return "times that it answers are not finite"
        if name != "centre" and (values < 0).any():
            return "standard deviations of its times are below zero"
    return ""


def _parts(times: LawTimes, timed: Collection[str], count: int) -> str:
    if unknown := sorted(set(times.parts) - set(PARTS)):
        return f"its parts {', '.join(unknown)} are none of {', '.join(PARTS)}"
    shape = (len(times.kernels), count)
    if any(np.shape(part) != shape for part in (*times.parts.values(), *times.quantities.values())):
        return "its parts have another shape than its times"
    return ""


def code_of(name: str) -> str:
    """The code of a law in the column ``method`` of answers."""
    return "function" if name == FUNCTION else name.replace(" ", "-")
