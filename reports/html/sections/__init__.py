"""The sections of the report, in their order; one a file, each with a template of its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ranksight.core.records import dataclass
from ranksight.reports.html.context import Context
from ranksight.reports.html.sections import (
    ask,
    breakdown,
    calltree,
    communication,
    efficiency,
    energy,
    evidence,
    expectations,
    front,
    kernels,
    network,
    not_predicted,
    pages,
    platform,
    ranking,
    roofline,
    terms,
)


@dataclass(frozen=True)
class Section:
    """One section of the page.

    `id` and `title`: its template is ``<id>.html``. `build`: gives what the template needs, or None where there is
    nothing to show; ``figures`` lists its figures. `tab_of`: id of the section on whose tab it is; its own when empty.
    """

    id: str
    title: str
    build: Callable[[Context], dict[str, Any] | None]
    tab_of: str = ""

    @property
    def tab(self) -> str:
        """Name of the tab that it is on."""
        return self.tab_of or self.id


SECTIONS = (
    Section("front", "Prediction", front.build),
    Section("ask", "Other configurations", ask.build, "front"),
    Section("breakdown", "Where the time goes", breakdown.build),
    Section("efficiency", "Efficiencies", efficiency.build, "breakdown"),
    Section("energy", "Energy and cost", energy.build, "breakdown"),
    Section("ranking", "Kernels over scale", ranking.build, "breakdown"),
    Section("kernels", "Verdicts", kernels.build),
    Section("calltree", "Call tree", calltree.build, "kernels"),
    Section("pages", "Kernel by kernel", pages.build, "kernels"),
    Section("terms", "Terms of the equation", terms.build),
    Section("roofline", "Roofline", roofline.build, "terms"),
    Section("platform", "Platform", platform.build, "terms"),
    Section("communication", "Communication", communication.build),
    Section("network", "Network", network.build, "communication"),
    Section("expectations", "Expectations", expectations.build),
    Section("unpredicted", "Not predicted", not_predicted.build),
    Section("evidence", "Evidence", evidence.build),
)
