"""What a section is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ranksight.reports.html.context import Context


@dataclass(frozen=True)
class Section:
    """One section of the page.

    Attributes
    ----------
    id, title : str
        Its template is ``<id>.html``.
    build : callable
        Gives what the template needs, or None where there is nothing to show; ``figures`` lists its figures.
    """

    id: str
    title: str
    build: Callable[[Context], dict[str, Any] | None]
