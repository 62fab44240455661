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
    anchor = next((each for each in model.anchors if each.name == target.name), None)
    if moved is model or anchor is None:
        return moved
    return anchored_by(replace(moved, energy=moved.energy.on(target.name)), anchor)
