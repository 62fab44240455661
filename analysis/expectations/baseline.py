"""The status quo as expectation: what functions did in an earlier experiment, they should go on doing.

For regression testing, where nobody has stated a complexity (Shudler et al. 2015, sections 1 and 2.1). Both experiments
are searched in the same space, so that an unchanged function finds the same term again; the deviation limit is the
default one, but at least one step of that space, which noise alone may make up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from ranksight.analysis.expectations.document import Expectation, Study
from ranksight.analysis.expectations.judging import judge
from ranksight.analysis.expectations.match import limit_of
from ranksight.analysis.expectations.measured import measured
from ranksight.analysis.expectations.models import Key, Model, fit_models
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.model.search.growth import Growth, Order
from ranksight.model.series.reducing import Series
from ranksight.model.spaces.rulers import Ruler

STEP = Fraction(1, 4)
QUARTERS = tuple(Fraction(n, 4) for n in range(-8, 13))
"""Powers from 1/x^2 to x^3."""
FEW = tuple(Fraction(n, 2) for n in range(-4, 7))


def status_quo_rulers(parameters: tuple[str, ...]) -> dict[str, Ruler]:
    """The space in which an experiment without expectations is searched: powers by quarters, with and without log.

    With several parameters powers by halves, so that their products stay few.
    """
    powers = QUARTERS if len(parameters) == 1 else FEW
    logs = (Fraction(0), Fraction(1)) if len(parameters) < 3 else (Fraction(0),)
    return {name: Ruler(powers, logs) for name in parameters}


def status_quo(
    study: Study, earlier: Experiment, now: Series, stated: Mapping[Key, Expectation], ahead: Array
) -> tuple[dict[Key, Expectation], dict[Key, str]]:
    """Expectations from an earlier experiment by (function, metric), and why others could not be had.

    Raises InputError when the experiments share no function, or vary other parameters.

    `study`: what is held and how values are reduced. `now`: what is checked. `stated`: expectations that the study
    states, which come first. `ahead` (k, m): configurations that are asked for.
    """
    names = [name for name in dict.fromkeys(now.metrics) if name in earlier.metrics()]
    if not names:
        raise InputError(
            f"{earlier.path} holds none of the metrics {', '.join(dict.fromkeys(now.metrics))}",
            f"it holds {', '.join(earlier.metrics()) or 'none'}",
        )
    before = measured(earlier, replace(study, expectations=(), rules=()), names)
    if before.parameters != now.parameters:
        raise InputError(
            f"{earlier.path} varies {', '.join(before.parameters)}, the experiment checked {', '.join(now.parameters)}",
            "hold the others in a file of expectations, under [hold]",
        )
    measured_keys = set(now.keys)
    keys = [key for key in before.keys if key in measured_keys and key not in stated]
    if not keys and not stated:
        raise InputError(f"{earlier.path} shares no function and metric with the experiment checked")
    around = dict.fromkeys(keys, Growth())
    models = fit_models(before, around, study, ahead, status_quo_rulers(now.parameters))
    expectations: dict[Key, Expectation] = {}
    missing: dict[Key, str] = {}
    for key, model in models.items():
        expectation = _expected(key, model, str(earlier.path))
        finding = judge(*key, expectation, model, study)
        if finding.status == "ok":
            expectations[key] = expectation
        else:
            missing[key] = f"the baseline has no model: {finding.reason}"
    return expectations, missing


def _expected(key: Key, model: Model, place: str) -> Expectation:
    growth = Growth() if model.empty else model.growth
    usual = limit_of(growth)
    step = Order(power=STEP)
    limit = Growth.of((name, max(usual[name], step)) for name in model.fitted.parameters)
    return Expectation(key[0], key[1], growth, limit, place)
