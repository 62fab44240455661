"""A widget for notebooks: a slider for every parameter, and the model's answer as it moves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import RanksightError, ToolError
from ranksight.core.names import printable
from ranksight.core.units import finite
from ranksight.model.structure.coordinates import whole_ranks
from ranksight.reports.grid import BEYOND, answers_at
from ranksight.reports.palette import NAMES, PARTS
from ranksight.reports.sweep import RANKS

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model

SCRIPT = Path(__file__).with_name("widget.js")
LARGEST = 8  # kernels that are listed


def widget(model: Model, *, level: float = 0.9) -> Any:
    """Return sliders for the parameters of a model, with its predicted time, interval, parts and largest kernels.

    In a notebook the last line of a cell shows it. ``asked`` is the configuration of the sliders, and may be set;
    ``answer`` is what the model predicts there: ``time``, ``low`` and ``high`` (seconds; None where the data are
    insufficient), ``reason``, ``parts`` and ``kernels`` (seconds by name). Raises ToolError where anywidget is not
    installed (extra ``widget``), InputError where the model has no times.

    Parameters
    ----------
    model : Model
    level : float
        Probability that the interval holds.

    Examples
    --------
    >>> sliders = rs.widget(rs.load("heat.model.json"))
    >>> sliders.asked = {"ranks": 64, "size": 48}
    >>> sliders.answer["reason"], round(sliders.answer["parts"]["unknown"], 5)
    ('', 0.00369)
    """
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ToolError("anywidget is not installed", "pip install 'ranksight[widget]'") from error

    class Sliders(anywidget.AnyWidget):  # type: ignore[misc, unused-ignore]
        """A model's parameters as sliders; see :func:`widget`."""

        _esm = SCRIPT.read_text(encoding="utf-8")
        fields: Any = traitlets.List().tag(sync=True)
        parts: Any = traitlets.List().tag(sync=True)
        title = traitlets.Unicode().tag(sync=True)
        asked = traitlets.Dict().tag(sync=True)
        answer = traitlets.Dict().tag(sync=True)

        @traitlets.observe("asked")  # type: ignore[untyped-decorator, unused-ignore]
        def _ask(self, _: Any) -> None:
            try:
                self.answer = answer(model, self.asked, level)
            except RanksightError as error:
                self.answer = {"time": None, "reason": str(error)}

    fields = fields_of(model)
    answer(model, {field["name"]: field["value"] for field in fields}, level)
    return Sliders(
        title=printable(model.application),
        fields=fields,
        parts=[[NAMES[name], PARTS[name]] for name in NAMES],
        asked={field["name"]: field["value"] for field in fields},
    )


def fields_of(model: Model) -> list[dict[str, Any]]:
    """Name, range and first value of each parameter: the largest measured one, and some times it as the end."""
    fields = []
    for name, column in zip(model.parameters, model.training.T, strict=True):
        low, high = float(column.min()), float(column.max())
        whole = name == RANKS or bool((column % 1 == 0).all())
        end = high * BEYOND[name == RANKS] if high > 0 else high + 1
        fields.append({"name": name, "low": low, "high": end, "value": high, "whole": whole})
    return fields


def answer(model: Model, asked: dict[str, Any], level: float) -> dict[str, Any]:
    """What the model predicts at one configuration, as plain data.

    Raises InputError where a value is missing or the model cannot be asked there.
    """
    points: Array = model.combinations(asked)
    whole_ranks(model.parameters, points, "ranks are asked at {}", "give whole numbers of ranks, 1 or more")
    found = answers_at(model, points[:1], level)
    names = model.breakdown(points[:1], level).kernels
    order = np.argsort(-np.nan_to_num(found.kernels[:, 0]), kind="stable")[:LARGEST]
    return {
        **{name: finite(float(getattr(found, name)[0])) for name in ("time", "low", "high")},
        "level": level,
        "reason": found.reason[0],
        "parts": {NAMES[name]: finite(float(values[0])) for name, values in found.parts.items()},
        "kernels": {printable(names[at]): finite(float(found.kernels[at, 0])) for at in order.tolist()},
    }
