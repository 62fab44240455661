"""What kernels share as plain data that JSON can hold, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ranksight.core.errors import InputError
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import from_gaps, reading, with_gaps
from ranksight.model.resource.equation import LEVELS
from ranksight.model.sharing.beyond import Beyond
from ranksight.model.sharing.demand import loads_of
from ranksight.model.sharing.domains import Domains
from ranksight.model.sharing.seen import Seen
from ranksight.model.sharing.shared import Sharing
from ranksight.model.uncertainty.departure import Departure

_WHOLE = ("mode", "covariance", "scatter", "count", "floor", "alone", "effect", "belief", "trained")
_GAPS = ("residual", "clock")


def sharing_to_dict(sharing: Sharing) -> dict[str, Any]:
    """The law of shared bandwidth as plain data; see :func:`sharing_from_dict`."""
    return {
        **{name: getattr(sharing, name).to_dict() for name in ("measured", "domains", "counts", "departure")},
        **{name: getattr(sharing, name).tolist() for name in _WHOLE},
        **{name: with_gaps(getattr(sharing, name)) for name in _GAPS},
        **{name: list(getattr(sharing, name)) for name in ("kernels", "varied", "evidence")},
        "same_active": sharing.same_active,
        "beyond": None if sharing.beyond is None else sharing.beyond.to_dict(),
        "resource": sharing.resource,
        "seen": None if sharing.seen is None else sharing.seen.to_dict(),
    }


def sharing_from_dict(content: Mapping[str, Any]) -> Sharing:
    """Rebuild from :func:`sharing_to_dict`; damaged content raises InputError."""
    with reading("'sharing'"):
        kernels, evidence = tuple(map(str, content["kernels"])), tuple(map(str, content["evidence"]))
        given = {name: np.array(content[name], dtype=np.float64) for name in _WHOLE}
        residual, clock = (from_gaps(content[name]) for name in _GAPS)
        count = given.pop("count")
        if not np.isfinite(count).all():
            raise ValueError("count holds a value that is not a number")
        sharing = Sharing(
            measured=Domains.from_dict(content["measured"]),
            domains=Domains.from_dict(content["domains"]),
            kernels=kernels,
            counts=Fitted.from_dict(content["counts"]),
            residual=residual,
            clock=clock,
            count=count.astype(np.intp),
            departure=Departure.from_dict(content["departure"]),
            varied=tuple(int(x) for x in content["varied"]),
            same_active=bool(content["same_active"]),
            evidence=evidence,
            beyond=None if content.get("beyond") is None else Beyond.from_dict(content["beyond"], kernels),
            resource=str(content["resource"]),
            seen=None if content.get("seen") is None else Seen.from_dict(content["seen"], len(kernels)),
            **given,
        )
    if not _sound(sharing):
        raise InputError("'sharing' does not fit together", "fit the model again")
    return sharing


def _sound(sharing: Sharing) -> bool:
    """Whether the parts are of one number of kernels and parameters, and their numbers are some."""
    k, parameters = len(sharing.kernels), sharing.counts.parameters
    shapes = {
        "mode": (k, 4), "covariance": (k, 4, 4), "scatter": (k,), "count": (k,), "floor": (k,), "alone": (k,),
        "effect": (k, 2), "belief": (k,), "trained": (len(parameters), 2),
    }  # fmt: skip
    arrays = {name: getattr(sharing, name) for name in _WHOLE}
    return (
        all(arrays[name].shape == shape and np.isfinite(arrays[name]).all() for name, shape in shapes.items())
        and sharing.clock.shape == (k,)
        and sharing.residual.ndim == 2
        and bool((np.isfinite(sharing.residual).sum(axis=1) == sharing.count).all())
        and bool((sharing.count >= 1).all())
        and len(sharing.evidence) == k
        and "ranks" in parameters
        and all(0 <= at < len(parameters) for at in sharing.varied)
        and sharing.departure.inputs.shape[1] == len(sharing.varied) + (not sharing.same_active)
        and len(sharing.departure.values) == k
        and set(sharing.counts.kernels) <= set(sharing.kernels)
        and loads_of(sharing.resource) in LEVELS
    )
