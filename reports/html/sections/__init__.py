"""The sections of the report, in their order; one a file, each with a template of its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ranksight.reports.html.context import Context
from ranksight.reports.html.sections import (
    ask,
    breakdown,
    calltree,
    communication,
    efficiency,
    evidence,
    expectations,
    front,
    kernels,
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

    `id` and `title`: its template is ``<id>.html``. `tab`: sections of one are shown together. `build`: gives
    what the template needs, or None where there is nothing to show; ``figures`` lists its figures.
    """

    id: str
    title: str
    tab: str
    build: Callable[[Context], dict[str, Any] | None]


SECTIONS = (
    Section("front", "Prediction", "front", front.build),
    Section("ask", "Other configurations", "front", ask.build),
    Section("breakdown", "Where the time goes", "scale", breakdown.build),
    Section("efficiency", "Efficiencies", "scale", efficiency.build),
    Section("ranking", "Kernels over scale", "scale", ranking.build),
    Section("kernels", "Verdicts", "kernels", kernels.build),
    Section("calltree", "Call tree", "kernels", calltree.build),
    Section("pages", "Kernel by kernel", "kernels", pages.build),
    Section("terms", "Terms of the equation", "machine", terms.build),
    Section("roofline", "Roofline", "machine", roofline.build),
    Section("platform", "Platform", "machine", platform.build),
    Section("communication", "Communication", "communication", communication.build),
    Section("expectations", "Expectations", "expectations", expectations.build),
    Section("unpredicted", "Not predicted", "unpredicted", not_predicted.build),
    Section("evidence", "Evidence", "evidence", evidence.build),
)
