"""A model on another machine, through the runs there where it has any."""

from __future__ import annotations

from dataclasses import replace

from ranksight.model.fitted_model import Model
from ranksight.model.machine.anchor import anchored_by
from ranksight.model.machine.transfer import moved_to
from ranksight.platforms import Platform, load


def on(model: Model, platform: Platform | str, *, instructions: float | None = None) -> Model:
    """The model for a machine that its runs were not on; itself for the one that they were on.

    Raises InputError as :func:`ranksight.model.machine.transfer.moved_to`.

    Parameters
    ----------
    platform : Platform or str
        The machine, by itself, its name or its file. Runs there that the model was fitted with (``fit --also``) are
        gone through.
    instructions : float, optional
        Instructions that the program needs there over those here.
    """
    target = load(platform) if isinstance(platform, str) else platform
    moved = moved_to(model, target, instructions)
    for anchor in model.anchors:
        if anchor.name == target.name and moved is not model:
            return anchored_by(replace(moved, energy=moved.energy.on(target.name)), anchor)
    return moved
