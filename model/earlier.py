"""Contents of model files of earlier schema versions, as this version has them.

Versions 2 (one JSON object) and 3 named some entries otherwise. Up to version 4 entries lay elsewhere, and some that
are there now were not. What a part of a model was is seen by the entries it has. Up to version 5 what the laws of
kernels' times learned stood among the parts of the application.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ranksight.model.kernel_time.sums import values_of
from ranksight.model.plaindata import reading
from ranksight.model.priors import FULL_NODE

LEARNED = ("counted", "resources", "sharing", "cached", "exchange")
"""What laws learned, by the names that it has in the application of any version."""
JSON_VERSION = 2
"""The first version that is read, the last whose files are one JSON object."""
RENAMED = {
    ("remarks",): "notes",
    ("application", "resources", "unrest"): "run_to_run",
    ("application", "sharing", "alike"): "same_active",
    ("units", "fullest"): "busiest",
    ("diagnosis", "calm"): "minimum_wait",
    ("diagnosis", "balance", "kernels", "*", "fullest"): "busiest",
}
"""What entries of ``extras`` are called that had another name up to version 3, by their path; ``*`` is any name."""


def upgraded(content: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The content of a model's file of an earlier `version` in this one's layout; damaged content raises InputError."""
    extras = content.get("extras", {})
    if version < 4:
        for place, name in RENAMED.items():
            extras = _renamed(extras, place, name)
    with reading("a model of an earlier version"):
        if version < 5:
            content = {**content, "fitted": _moved(content.get("fitted"))}
            extras = _moved(extras)
        return {**content, "extras": _laws(extras)}


def _laws(extras: Any) -> Any:
    """The extras with what laws of kernels' times learned among the application's laws."""
    application = extras.get("application") if isinstance(extras, dict) else None
    if not isinstance(application, dict):
        return extras
    laws = {part: application[part] for part in LEARNED if part in application}
    rest = {name: part for name, part in application.items() if name not in LEARNED}
    return {**extras, "application": {**rest, "laws": laws} if laws else rest}


def _renamed(content: Any, place: tuple[str, ...], name: str) -> Any:
    """The content with the entry at `place` under another name, where it is there."""
    if not isinstance(content, dict):
        return content
    if len(place) == 1:
        return {name if key == place[0] else key: value for key, value in content.items()}
    return {
        key: _renamed(value, place[1:], name) if place[0] in ("*", key) else value for key, value in content.items()
    }


def _moved(content: Any) -> Any:
    """Plain data with the entries of each part where they are now."""
    if isinstance(content, list):
        return [_moved(each) for each in content] if any(isinstance(each, dict | list) for each in content) else content
    if not isinstance(content, dict):
        return content
    moved = {name: _moved(value) for name, value in content.items()}
    for entries, change in PARTS:
        if entries <= moved.keys():
            moved = change(moved)
    return moved


def _functions(content: dict[str, Any]) -> dict[str, Any]:
    """Fitted functions: what they are was not kept for all of them."""
    count = len(content["kernels"])
    before = {"space": "own", "pace": [1.0] * count, "turned": [0.0] * count, "seen": [[0.0, 0.0]] * count}
    return before | content


def _kind(content: dict[str, Any]) -> dict[str, Any]:
    """Laws of the ranks: the kind of their coefficients stood next to them."""
    return {**content, "coefficients": {"kind": content["kind"], "content": content["coefficients"]}}


def _grid(content: dict[str, Any]) -> dict[str, Any]:
    """Grids of neighbours: they had as many dimensions as may be periodic."""
    return {"dimensions": len(content["periodic"]), **content}


def _communication(content: dict[str, Any]) -> dict[str, Any]:
    """Communication: the entries of its functions stood among its own."""
    return {**content, "functions": content}


def _levels(content: dict[str, Any]) -> dict[str, Any]:
    """Terms at each size: the steepest growth was not kept."""
    return {"steepest": [0.0] * len(content["kernels"]), **content}


def _counted(content: dict[str, Any]) -> dict[str, Any]:
    """The counted equation: its coordinates stood among its own entries, and whether runs filled a domain was known, in
    place of how probably."""
    single, unknown = content["alone"] is True, content["domains"] is None
    where = {"full": FULL_NODE * (single and unknown), **content, "alone": single and not unknown}
    where["parameters"] = content["work"]["parameters"]
    return {**content, "where": where}


def _sums(content: dict[str, Any]) -> dict[str, Any]:
    """Sums of terms: they held coefficients in place of what was measured, which stand for it."""
    names = ("terms", "points", "coefficient", "covariance", "weight")
    terms, points, coefficient, covariance, weight = (np.array(content[name], dtype=np.float64) for name in names)
    members = np.array(content["members"], dtype=np.intp)
    if coefficient.shape != (len(weight), *members.shape) or weight.shape != coefficient.shape[:2]:
        raise ValueError("its coefficients are not those of its terms")
    design = values_of(terms, members, points)
    centre = np.einsum("hqn,Khq->Khn", design, coefficient)
    spread = np.einsum("hqn,Khqr,hrn->Khn", design, covariance, design)
    mean = np.einsum("Kh,Khn->Kn", weight, centre)
    square = np.einsum("Kh,Khn->Kn", weight, (centre - mean[:, None]) ** 2 + spread)
    return {**content, "prior": np.zeros(len(members)), "measured": mean, "error": np.sqrt(square)}


PARTS: tuple[tuple[frozenset[str], Callable[[dict[str, Any]], dict[str, Any]]], ...] = (
    (frozenset({"kernels", "terms", "forms", "members", "root"}), _functions),
    (frozenset({"kind", "coefficients"}), _kind),
    (frozenset({"periodic", "ring"}), _grid),
    (frozenset({"fitted", "minor"}), _communication),
    (frozenset({"levels", "others", "fitted", "constants"}), _levels),
    (frozenset({"work", "alone", "domains", "clock", "total"}), _counted),
    (frozenset({"terms", "members", "coefficient", "covariance"}), _sums),
)
"""Entries by which parts of a model are known, and what brings them into the present layout."""
