"""What laws learned, as a model keeps it: by the names of the laws' parts, and what laws that are not installed
learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ranksight.core.arrays import Array
from ranksight.core.log import log
from ranksight.core.units import some_of
from ranksight.model.laws.law import LAWS, answerable, installed, part_of
from ranksight.model.plaindata import Part, plain, reading


@dataclass(frozen=True)
class Fits(Part):
    """What laws learned."""

    learned: Mapping[str, Any] = field(default_factory=dict)  # by part (:attr:`ranksight.model.laws.law.Law.part`)
    missing: Mapping[str, Any] = field(default_factory=dict)  # the content of parts whose law is not installed

    def get(self, part: str) -> Any:
        """What is kept under a name; None where nothing is."""
        return self.learned.get(part)

    def by(self, name: str) -> Any:
        """What the law `name` learned; None where it learned nothing, or is not installed."""
        return self.learned.get(part_of(name, LAWS[name])) if name in LAWS else None

    def having(self, **learned: Any) -> Fits:
        """The same with another content of some parts; None drops one."""
        parts = {**self.learned, **learned}
        return Fits({part: each for part, each in parts.items() if each is not None}, self.missing)

    def placed(self, placement: str | None, ranks_per_node: int | None) -> Fits:
        """The same with ranks placed in another way, of the laws that know of places."""
        result = {
            part: each.placed(placement, ranks_per_node) if hasattr(each, "placed") else each
            for part, each in self.learned.items()
        }
        return Fits(result, self.missing)

    def remarks(self, points: Array) -> tuple[str, ...]:
        """See :meth:`remark`."""
        return (self.remark(),)

    def remark(self) -> str:
        """What is to be known of laws that are not installed; empty where all are."""
        if not self.missing:
            return ""
        one = len(self.missing) == 1
        others = some_of([name for name, law in installed().items() if part_of(name, law) in self.learned])
        rest = f"{others} and the functions of time" if others else "the functions of time"
        return (
            f"{'law' if one else 'laws'} {some_of(sorted(self.missing))} of this model {'is' if one else 'are'} not "
            f"installed: kernels' times come from {rest}; install the package that registers {'it' if one else 'them'}"
        )

    def present(self) -> dict[str, Any]:
        """The content by part."""
        return {**self.learned, **self.missing}

    def to_dict(self) -> dict[str, Any]:
        """Plain data by part; that of laws that are not installed as it was read."""
        return {part: plain(each) for part, each in self.learned.items()} | dict(self.missing)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        laws = {part_of(name, law): (name, law) for name, law in installed().items() if law.kind is not None}
        learned, missing = {}, {}
        with reading("'laws'"):
            for part, each in content.items():
                if part in laws:
                    name, law = laws[part]
                    with answerable(name, law, f"{law.kind.__name__}.from_dict"):
                        learned[part] = law.kind.from_dict(each)
                else:
                    missing[str(part)] = each
        result = cls(learned, missing)
        if missing:
            log("%s", result.remark())
        return result

    def __bool__(self) -> bool:
        return bool(self.learned or self.missing)

    def _fits(self) -> bool:
        return True
