"""Search spaces: which functions a fit may choose from, each registered by name.

A space is a function ``(m) -> Hypotheses`` of the number of parameters (see :mod:`ranksight.model.terms`); one family a file.
"""

from __future__ import annotations

from collections.abc import Callable

from ranksight.model.terms import Hypotheses
from ranksight.registry import Registry

Space = Callable[[int], Hypotheses]

SPACES: Registry[Space] = Registry("search space", packages=("ranksight.model.spaces",), group="ranksight.spaces")
