"""Search spaces: which functions a fit may choose from, each registered by name; one family a file.

A space is a function ``(m) -> Offer`` of the number of parameters (see :mod:`ranksight.model.search.offer`).
"""

from __future__ import annotations

from collections.abc import Callable

from ranksight.core.registry import Registry
from ranksight.model.search.offer import Offer

Space = Callable[[int], Offer]

SPACES: Registry[Space] = Registry("search space", packages=("ranksight.model.spaces",), group="ranksight.spaces")
