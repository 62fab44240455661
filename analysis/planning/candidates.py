"""The runs that could be made: configurations that follow the rules, within limits, not measured yet."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ranksight.analysis.planning.values import Rule, infer, thin
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.limits import RANKS
from ranksight.core.records import dataclass
from ranksight.core.units import in_full
from ranksight.model.structure.coordinates import above_zero

MOST = 600
"""Configurations that are weighed against each other; axes with more values are thinned."""
LEAST_VALUES = 6
SMALLEST_STEP = 1e-9
MANY_RANKS = {"ranks": float(RANKS)}
"""More ranks than any node has cores."""


@dataclass(frozen=True)
class Candidates:
    """Configurations that could be measured."""

    points: Array  # (k, m)
    rules: Mapping[str, Rule]  # the rule of each parameter
    limits: Mapping[str, tuple[float, float]]  # smallest and largest value considered of each parameter
    thinned: tuple[str, ...]  # parameters of whose values only some were considered
    barred: str = ""  # the rule or limit given that forbids to run a target itself; empty where none does
    held: float | None = None  # largest number of ranks considered, where the cores of the machine are why
    none_left: str = ""  # why there are no points, and what to do; empty where there are


def cores_of(experiment: Experiment) -> float | None:
    """Cores of the one machine that all runs were made on; None where that is not known, as of jobs on many nodes."""
    known = {
        run.environment.get("cores", "") if replace(run, configuration=MANY_RANKS).crowded else ""
        for run in experiment.runs
    }
    cores = known.pop() if len(known) == 1 else ""
    return float(cores) if cores else None


def candidates(
    parameters: tuple[str, ...],
    measured: Array,
    targets: Array,
    rules: Mapping[str, Rule] | None = None,
    limits: Mapping[str, tuple[float | None, float | None]] | None = None,
    held: float | None = None,
) -> Candidates:
    """All configurations under the rules, without those at or beyond all targets; and each target inside of the range
    measured, as one run shows it best.

    Where nothing is left to measure there are no points. Raises InputError when a rule or limit names no parameter.

    `measured` (n, m), `targets` (t, m). `rules`: for parameters without one it is inferred from the values measured.
    `limits`: smallest and largest value by parameter; None leaves an end to the default: the smallest value measured;
    and of ranks half the largest target (or the largest measured, if that is more), of others the larger of target and
    measured. `held`: ranks that the machine holds; none above it, nor above the largest measured, are considered unless
    `limits` names a largest, or runs above it were made and no other is left.
    """
    rules, limits = dict(rules or {}), dict(limits or {})
    for name in (*rules, *limits):
        if name not in parameters:
            raise InputError(f"there is no parameter {name}", f"the parameters are {', '.join(parameters)}")
    if "ranks" in parameters:
        ranks = targets[:, list(parameters).index("ranks")]
        if len(bad := ranks[(ranks < 1) | (ranks % 1 != 0)]):
            raise InputError(f"ranks are asked at {bad[0]:g}", "give whole numbers of ranks, 1 or more")
        if ranks.max() > RANKS:
            raise InputError(f"ranks are asked at {in_full(ranks.max())}", f"a run has {in_full(RANKS)} at most")
    above_zero(parameters, measured, targets)
    axes = [
        _axis(
            name,
            measured[:, at],
            targets[:, at],
            rules.get(name),
            limits.get(name, (None, None)),
            held if name == "ranks" else None,
        )
        for at, name in enumerate(parameters)
    ]
    few = _share([axis.values for axis in axes])
    points = _open(few, measured, targets)
    if not len(points) and any(axis.held is not None and held is not None and axis.held > held for axis in axes):
        return candidates(parameters, measured, targets, rules, limits)
    return Candidates(
        points,
        {axis.name: axis.rule for axis in axes},
        {axis.name: axis.ends for axis in axes},
        tuple(axis.name for axis, left in zip(axes, few, strict=True) if len(axis.values) > len(left)),
        ", ".join(text for axis in axes for text in axis.barred),
        next((axis.held for axis in axes if axis.held is not None), None),
        "" if len(points) else _none_left(axes, measured, targets),
    )


@dataclass(frozen=True)
class _Axis:
    """What one parameter may be: the values of its rule between two ends, and what of that bars a target."""

    name: str
    rule: Rule
    ends: tuple[float, float]
    values: Array
    barred: list[str]
    held: float | None


def _axis(
    name: str,
    column: Array,
    goals: Array,
    rule: Rule | None,
    limits: tuple[float | None, float | None],
    held: float | None,
) -> _Axis:
    """The axis of a parameter that was measured at `column` (n,) and is asked at `goals` (t,), `held` at most."""
    low = float(column.min()) if limits[0] is None else float(limits[0])
    goal = float(goals.max())
    usual = max(float(column.max()), goal / 2 if name == "ranks" else goal)
    most = usual if held is None else max(held, float(column.max()))
    high = min(usual, most) if limits[1] is None else limits[1]
    if not low <= high:
        top = f"the largest, {high:g}" if limits[1] is None else f"--max-{name} {high:g}"
        raise InputError(f"--min-{name} {low:g} is above {top}", f"give a smaller minimum, or --max-{name}")
    whole = name == "ranks" or bool((column == np.round(column)).all() and (goals % 1 == 0).all())
    barred = _barring(name, goals, limits, rule, whole)
    rule = infer(column, whole) if rule is None else rule
    values = rule.values(low, high, whole)
    if name == "ranks":
        values = values[values >= 1]
    if not len(values):
        raise InputError(
            f"the rule '{rule.text}' of {name} has no value from {low:g} to {high:g}",
            f"give another --{name}-rule, or --min-{name} and --max-{name}",
        )
    return _Axis(name, rule, (low, high), values, barred, most if limits[1] is None and most < usual else None)


def _open(axes: list[Array], measured: Array, targets: Array) -> Array:
    """Combinations (k, m) of the values that are left to measure.

    None at or beyond all targets, but each target inside of the range measured; none that was measured.
    """
    points = np.array(list(itertools.product(*axes)), dtype=np.float64).reshape(-1, len(axes))
    beyond = np.all(points[:, None, :] >= targets[None] * (1 - SMALLEST_STEP), axis=(1, 2))
    inside = np.all((targets >= measured.min(axis=0)) & (targets <= measured.max(axis=0)), axis=1)
    points = np.unique(np.concatenate([points[~beyond], targets[inside]]), axis=0)
    seen = set(map(tuple, measured.tolist()))
    return points[[tuple(point) not in seen for point in points.tolist()]]


def _none_left(axes: list[_Axis], measured: Array, targets: Array) -> str:
    """Why there is no candidate, and what to do."""
    seen = set(map(tuple, measured.tolist()))
    if all(tuple(target) in seen for target in targets.tolist()):
        return "the target was measured: repeat it, or ask about another target"
    if (targets <= measured.min(axis=0)).all():
        return "the target is smaller than all that was measured: measure the target itself"
    held = next((axis.held for axis in axes if axis.held is not None), None)
    if held is not None:
        return (
            f"every configuration of up to {in_full(held)} ranks was measured, and the machine has no cores for more: "
            "--max-ranks allows them, for a machine with more cores"
        )
    ends = ", ".join(f"{axis.name} {in_full(axis.ends[1])}" for axis in axes)
    rules = " or ".join(f"--{axis.name}-rule" for axis in axes)
    return (
        f"every configuration under the rules was measured, up to {ends}: give other values with {rules}, or measure "
        "the target itself"
    )


def _barring(
    name: str, targets: Array, limits: tuple[float | None, float | None], rule: Rule | None, whole: bool
) -> list[str]:
    """What was given of a parameter that targets (t,) do not keep to."""
    least, most = limits
    options = []
    if least is not None and (targets < least).any():
        options.append(f"--min-{name} {in_full(least)}")
    if most is not None and (targets > most).any():
        options.append(f"--max-{name} {in_full(most)}")
    if rule is not None and not all(len(rule.values(each, each, whole)) for each in targets.tolist()):
        options.append(f"--{name}-rule {rule.text}")
    return options


def _share(axes: list[Array]) -> list[Array]:
    """The axes, the longest thinned until their combinations are few enough."""
    few = list(axes)
    while np.prod([float(len(axis)) for axis in few]) > MOST:
        longest = int(np.argmax([len(axis) for axis in few]))
        if len(few[longest]) <= LEAST_VALUES:
            break
        few[longest] = thin(few[longest], max(LEAST_VALUES, int(0.7 * len(few[longest]))))
    return few
