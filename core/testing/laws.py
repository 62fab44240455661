"""The kit of laws of kernels' times: what a law says of itself, what it learns, keeps in a file, and predicts."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError, RanksightError
from ranksight.core.experiment import Experiment, read
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.laws.law import LAWS, Law, LawTimes, checked, claims, installed, part_of
from ranksight.model.laws.view import Asked, Fits, View
from ranksight.model.stages.measuring import domains_of
from ranksight.model.structure.functions import Functions
from ranksight.platforms import Platform, load

FARTHER = (1.0, 2.0, 16.0)
"""How many times the measured ranks, or the first parameter without ranks, a law is asked for."""
SAME = 1e-6
"""Relative difference up to which times are the same."""


def check_law(
    name: str, sample: Experiment | str | os.PathLike[str], platform: Platform | str | None = None
) -> LawTimes:
    """Check that a registered law keeps the contract of :class:`ranksight.model.laws.law.Law`; what it predicts of the
    sample is returned.

    Parameters
    ----------
    sample : Experiment or path
        Runs that the law applies to.
    platform : Platform, name or path, optional
        The machine that was measured, with a rank on every core.

    Raises
    ------
    AssertionError
        - it is registered, with a prior above 0 and up to 1, and lines that say what it needs, its formula and source;
        - it learns something of the sample, the same twice, of kernels that were measured;
        - what it learned is the same after a model's file, and a file without one of its entries is an InputError;
        - of fewer configurations, of one kernel, and without a metric it learns something or returns None;
        - its times have the shapes they should, are finite where it answers, and the same asked one by one;
        - its parts are not negative and add up to its times.
    """
    assert name in LAWS, f"no law is registered under {name!r}"
    try:
        law = installed()[name]
    except InputError as error:
        raise AssertionError(str(error)) from error
    experiment = sample if isinstance(sample, Experiment) else read(sample)
    machine = load(platform) if isinstance(platform, str) else platform
    view = View.of(experiment, machine, domains_of(machine, "compact", None, None))
    learned = _fit(law, view)
    if law.kind is not None:
        assert learned is not None, "the law does not apply to the sample: give one that has what it needs"
        _check_learned(name, law, view, learned)
    _check_other_views(name, law, view)
    points = np.unique(np.concatenate([_farther(view, factor) for factor in FARTHER]), axis=0)
    result = _at(name, law, view, learned, points)
    assert result is not None, "the law predicts nothing of the sample"
    _check_times(name, law, view, learned, points, result)
    return result


def _fit(law: Law, view: View) -> Any:
    try:
        return law.fit(view)
    except RanksightError as error:
        raise AssertionError(f"fit() refuses the sample: {error}") from error


def _check_learned(name: str, law: Law, view: View, learned: Any) -> None:
    assert isinstance(learned, law.kind), f"fit() returns no {law.kind.__name__}, which is the law's kind"
    try:
        claims(name, learned, view.kernels)
    except InputError as error:
        raise AssertionError(str(error)) from error
    content = json.loads(json.dumps(learned.to_dict()))
    second = json.loads(json.dumps(_fit(law, view).to_dict()))
    assert _same(content, second), "fit() learns something else the second time"
    again = law.kind.from_dict(content)
    kept = _same(json.loads(json.dumps(again.to_dict())), content)
    assert kept, "what was learned is another one after a model's file"
    for entry in content if isinstance(content, dict) else ():
        try:
            law.kind.from_dict({key: value for key, value in content.items() if key != entry})
        except InputError:
            continue
        except Exception as error:
            raise AssertionError(f"a file without {entry!r} raises {type(error).__name__}, not InputError") from error


def _same(one: Any, other: Any) -> bool:
    """Whether plain data are the same, but for the rounding of numbers."""
    if isinstance(one, float | int) and isinstance(other, float | int):
        return bool(np.isclose(one, other, rtol=SAME, atol=0))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _check_other_views(name: str, law: Law, view: View) -> None:
    """Fewer configurations, one kernel, and no value of a metric: a law does not apply there, or does."""
    count, names = len(view.series.points), np.array(view.series.metrics, dtype=object)
    views = {f"of {few} configurations": view.among(np.arange(count) < few, view.timed) for few in (1, 2, count - 1)}
    views["of one kernel"] = view.among(np.ones(count, dtype=bool), view.timed[:1])
    for metric in dict.fromkeys(view.series.metrics):
        kept = view.series.select(np.flatnonzero(names != metric))
        if len(kept):
            views[f"without {metric}"] = View(
                view.readings, type(view.sampled)(kept, {}), view.platform, view.machine, view.domains
            )
    for text, other in views.items():
        try:
            law.fit(other)
        except RanksightError as error:
            raise AssertionError(f"fit() of runs {text} refuses them: {error}") from error
        except Exception as error:
            raise AssertionError(f"fit() of runs {text} raises {type(error).__name__}: {error}") from error


def _farther(view: View, factor: float) -> Array:
    names = view.series.parameters
    points = view.series.points.copy()
    points[:, names.index("ranks") if "ranks" in names else 0] *= factor
    return points


def _at(name: str, law: Law, view: View, learned: Any, points: Array) -> LawTimes | None:
    functions = Functions(fit_varied(view.series))
    said = functions.predict(points)
    fits = Fits({**view.fits().learned, **({} if learned is None else {part_of(name, law): learned})})
    asked = Asked(view.series.parameters, points, functions.rows, said, said, points, fits)
    try:
        result = law.at(learned, asked)
        return None if result is None else checked(name, result, {*asked.timed, *view.kernels}, len(points))
    except RanksightError as error:
        raise AssertionError(str(error)) from error
    except Exception as error:
        raise AssertionError(f"at() raises {type(error).__name__}: {error}") from error


def _check_times(name: str, law: Law, view: View, learned: Any, points: Array, result: LawTimes) -> None:
    assert np.asarray(result.answers).any(), "the law answers nothing of the sample"
    single = _at(name, law, view, learned, points[-1:])
    assert single is not None, "asked for one configuration, at() returns None"
    one, all_ = single.time.centre[:, 0], result.time.centre[:, -1]
    same = np.isclose(one, all_, rtol=0, atol=SAME, equal_nan=True) | ~result.answers[:, -1]
    assert same.all(), "asked for one configuration alone, the law predicts another time"
    for part, seconds in result.parts.items():
        assert not (seconds[result.answers] < -SAME).any(), f"part {part} is negative"
    if result.parts:
        total = np.sum([np.nan_to_num(part) for part in result.parts.values()], axis=0)[result.answers]
        off = np.abs(np.log(np.maximum(total, 1e-300)) - result.time.centre[result.answers])
        assert (off < 100 * SAME).all(), f"parts do not add up to the time: they are {off.max():.1%} off"
