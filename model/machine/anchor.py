"""A model on another machine, through runs there that say how it differs from what is assumed: a domain, a small size.

For each kernel k four numbers s_k are learned: logarithms of the seconds of a core, of a memory domain, and of laws
that say nothing of either, and the part of these laws' time that waits for memory; from T measured and predicted there,

    ln T_k(x) = ln f_k(x; s_k) + e,    s_k ~ N(mu, v/2),    mu ~ N(0, v/2),    e ~ N(0, q^2 + w^2)

with v the variance of what is assumed, so that kernels share what differs (mu), q the scatter between jobs and half
of what the law leaves unexplained on the machine of the runs, and w the excess of the instructions counted there. The
laws over ranks and sizes stay. The mode is Gauss-Newton's; derivatives are differences. Where runs and what is assumed
contradict each other, chi^2 over n runs is above 1, and variances are larger by that (Birge's ratio, as the Particle
Data Group scales errors of inconsistent measurements).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.metrics import Reduction
from ranksight.model.application.assumed import Assumed, same_instructions
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.moved import BOUND, CORE, MEMORY, RATIO, Moved
from ranksight.model.application.runs import Anchor, Runs
from ranksight.model.application.waiting import parted
from ranksight.model.energy.stored import fit_energy
from ranksight.model.fitted_model import Model
from ranksight.model.laws.stacking import places
from ranksight.model.machine.counts import FAR, doubts_of_counts, excess
from ranksight.model.machine.transfer import measured_platform, moved_to, shifted
from ranksight.model.priors import BETWEEN_JOBS
from ranksight.model.quantity import Quantity
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.uncertainty.rows import rows_of
from ranksight.platforms import Platform, load
from ranksight.platforms.writing import dumps

STEP = 0.02
"""Step of the differences, 1."""
ROUNDS = 50
ENOUGH = 1e-3
"""Change of a logarithm at which the rounds end, 1."""
LARGEST = 0.5
"""Largest change of a logarithm in a round, 1."""


def with_runs(model: Model, series: Series, platform: Platform) -> Model:
    """The model with times that were measured on another platform, which :func:`ranksight.model.machine.anchor.on`
    uses.

    Raises InputError where the runs have other parameters than the model, no times, or no kernel of the model.
    """
    if series.parameters != model.parameters:
        raise InputError(
            f"the runs on {platform.name} are over {', '.join(series.parameters)}, the model over "
            f"{', '.join(model.parameters)}",
            "give runs of the same program over the same parameters",
        )
    runs = Runs.of(series)
    if not runs.kernels:
        raise InputError(f"the runs on {platform.name} have no metric 'time'", "import times")
    if platform.name in {measured_platform(model).name, *(anchor.name for anchor in model.anchors)}:
        raise InputError(
            f"two experiments are named as of {platform.name}",
            "give what was measured on one machine as one experiment, and name the platform of each, in their order",
        )
    moved = moved_to(model, platform)  # raises here, where the runs are known
    timed = {kernel for kernel, name in model.fitted.keys if name == "time"}
    parts = timed - {WHOLE} or timed
    runs = _divided(moved, runs) if set(runs.kernels) == {WHOLE} and WHOLE not in parts else runs
    common = np.array([kernel in parts for kernel in runs.kernels], dtype=bool)
    if not (common[:, None] & np.isfinite(runs.logs)).any():
        raise InputError(f"the runs on {platform.name} have no kernel of the model", "give runs of the same program")
    kernels = tuple(kernel for kernel, yes in zip(runs.kernels, common.tolist(), strict=True) if yes)
    logs, errors, scatter = (table[common] for table in (runs.logs, runs.errors, runs.scatter))
    runs = replace(runs, kernels=kernels, logs=logs, errors=errors, scatter=scatter)
    doubts = doubts_of_counts(model, series, runs, platform) + _doubts_of_times(moved, runs, platform)
    same = same_instructions(measured_platform(model), platform)
    runs = replace(runs, excess=excess(model, series, runs, same_set=same))
    return replace(model, anchors=(*model.anchors, Anchor(platform.name, dumps(platform), runs, doubts)))


def measured_there(
    model: Model, experiment: Experiment, over_ranks: Reduction | Mapping[str, Reduction] | None = None
) -> Series:
    """Times and counts of an experiment on another machine, of the same kernels as the model's."""
    return series_from_experiment(parted(model.view(experiment)), None, over_ranks)


def _doubts_of_times(moved: Model, runs: Runs, platform: Platform) -> tuple[str, ...]:
    """That times differ from what the platforms give by more than machines do; nothing where they do not."""
    forecast = rows_of(moved.forecast(runs.points), _rows(moved, runs)).quantity()
    with np.errstate(invalid="ignore"):
        gap = (runs.logs - forecast.centre) / np.hypot(forecast.deviation, BETWEEN_JOBS)
    known = np.isfinite(gap)
    far = float(np.median(gap[known])) if known.any() else 0.0
    if abs(far) <= FAR:
        return ()
    factor = float(np.exp(np.median((runs.logs - forecast.centre)[known])))
    return (
        f"times on {platform.name} are {factor:.3g} times what the platforms give, {abs(far):.0f} standard deviations "
        "off: check the program and its size, the unit of times, and which platform is of which experiment",
    )


def with_energy(model: Model, experiment: Experiment, platform: Platform) -> Model:
    """The model with the energy that runs on another platform metered; itself where they metered none."""
    metered = fit_energy(model.view(experiment), platform)
    return replace(model, energy=model.energy.also(metered, platform.name)) if metered.laws else model


def _divided(moved: Model, runs: Runs) -> Runs:
    """Times of the kernels from those of the program alone: all of them miss what is predicted by one factor."""
    kernels = tuple(kernel for kernel, name in moved.fitted.keys if name == "time" and kernel != WHOLE)
    rows = np.array([moved.functions.rows[kernel, "time"] for kernel in kernels], dtype=np.intp)
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = np.log(rows_of(moved.forecast(runs.points), rows).value)
        program = np.log(moved.programs(runs.points, ["time"])["time"].value)
    errors, scatter = (np.repeat(table, len(kernels), axis=0) for table in (runs.errors, runs.scatter))
    return replace(runs, kernels=kernels, logs=parts + runs.logs - program, errors=errors, scatter=scatter)


def anchored_by(moved: Model, anchor: Anchor) -> Model:
    """A model that was moved to another machine, with its laws through the runs on that machine."""
    runs = anchor.runs
    if runs.points.shape[1:] != (len(moved.parameters),):
        raise InputError("the runs of another machine are damaged", "fit the model again")
    equation = moved.equation
    if not set(runs.kernels) <= set(equation.machine.kernels):
        raise InputError("the runs of another machine have kernels that the model lacks", "fit the model again")
    shift, spread, left, scatter_there = _learned(moved, equation, runs)
    machine = equation.machine
    measured = np.isfinite(runs.logs).any(axis=1)
    many = f"{len(runs.points)} {'configuration' if len(runs.points) == 1 else 'configurations'} measured there"
    note = Assumed(
        "times what the platforms give",
        float(np.exp(np.median(_gap(moved, runs)[measured]))),
        float(np.median(spread[:, :BOUND].min(axis=1))),
        many,
        learned=True,
    )
    shifted_laws = _with(equation, shift)
    assumed = (*[each for each in machine.assumed if not each.of_kernels], note)
    anchored = replace(shifted_laws.machine, spread=spread, seen=runs.points, left=left, assumed=assumed,
                       doubts=anchor.doubts)  # fmt: skip
    # What the law assumes of a machine is no scatter of its runs.
    repeated = np.isfinite(runs.errors)
    errors, scatter = (np.where(repeated, table, scatter_there) for table in (runs.errors, runs.scatter))
    shifted_laws = replace(shifted_laws, machine=anchored, runs=replace(runs, errors=errors, scatter=scatter))
    return replace(moved, equation=shifted_laws)


def _gap(moved: Model, runs: Runs) -> Array:
    """Mean over configurations of ln measured over ln predicted before anything is learned, (K,)."""
    forecast = rows_of(moved.forecast(runs.points), _rows(moved, runs))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            np.nanmean(np.where(np.isfinite(runs.logs), runs.logs - np.log(forecast.value), np.nan), axis=1)
        )


def _rows(model: Model, runs: Runs) -> Index:
    return np.array([model.functions.rows[kernel, "time"] for kernel in runs.kernels], dtype=np.intp)


def _learned(model: Model, equation: Application, runs: Runs) -> tuple[Array, Array, Array, Array]:
    """Shifts (K, 4) of all kernels and their standard deviations; what these leave (K, n) of the runs there, and the
    scatter (K, n) of the kernels that were measured."""
    machine = equation.machine
    at = places(machine.kernels, runs.kernels)
    predicted, law_spread = _predictor(model, equation, runs)
    known = np.isfinite(runs.logs)
    noise = np.sqrt(BETWEEN_JOBS**2 + (law_spread / 2) ** 2)
    unusual = runs.excess if len(runs.excess) else np.zeros(noise.shape)
    variance = np.square(machine.spread)[at]
    variance[:, :BOUND] += np.nanmean(np.where(known, law_spread, np.nan), axis=1)[:, None] ** 2
    # Where runs miss a ratio of machines by more than is assumed, it is uncertain by as much as they miss it.
    gap = np.nan_to_num(_gap(model, runs))
    variance[:, RATIO] = np.maximum(variance[:, RATIO], gap**2)
    count = variance.shape[1]
    shift, mean, doubt = np.zeros(variance.shape), np.zeros(count), variance.mean(axis=0) / 2
    logs = predicted(shift)
    covariance, slope = np.zeros((len(at), count, count)), np.zeros((len(at), len(runs.points), count))
    for _ in range(ROUNDS):
        logs = predicted(shift)
        for column in range(count):
            moved = shift.copy()
            moved[:, column] += STEP
            slope[..., column] = (predicted(moved) - logs) / STEP
        weight = np.where(known & np.isfinite(logs), 1 / (noise**2 + unusual**2), 0.0)
        gap = np.where(weight > 0, runs.logs - logs, 0.0)
        slope = np.where(weight[..., None] > 0, slope, 0.0)
        precision = 2 / variance
        normal = np.einsum("kni,kn,knj->kij", slope, weight, slope) + np.eye(count) * precision[:, None]
        covariance = np.asarray(np.linalg.inv(normal), dtype=np.float64)
        pull = np.einsum("kni,kn->ki", slope, weight * gap) + precision * (mean - shift)
        step = np.clip(np.einsum("kij,kj->ki", covariance, pull), -LARGEST, LARGEST)
        shift = shift + step
        # What the kernels have in common, by what each says beyond its own prior.
        gained = np.maximum(1 / np.diagonal(covariance, axis1=1, axis2=2) - precision, 0.0)
        each = gained * precision / (gained + precision)
        doubt = 1 / (2 / variance.mean(axis=0) + each.sum(axis=0))
        kernel_mean = np.where(
            gained > 0, mean + (shift - mean) * (gained + precision) / np.maximum(gained, 1e-12), 0.0
        )
        before, mean = mean, doubt * (each * kernel_mean).sum(axis=0)
        if max(np.abs(step).max(), np.abs(mean - before).max()) < ENOUGH:
            break
    remains = np.where(known, runs.logs - predicted(shift), np.nan)
    chi2 = np.nansum(weight * remains**2, axis=1) + (precision * (shift - mean) ** 2).sum(axis=1)
    chi2 += (mean**2 / (variance.mean(axis=0) / 2)).sum()
    larger = np.maximum(chi2 / np.maximum((weight > 0).sum(axis=1), 1), 1.0)
    covariance, doubt = covariance * larger[:, None, None], doubt * larger.mean()
    everyone = np.tile(mean, (len(machine.kernels), 1))
    spread = np.sqrt(np.square(machine.spread) / 2 + doubt)
    everyone[at] = shift
    spread[at] = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    left = np.full((len(machine.kernels), len(runs.points)), np.nan)
    left[at] = remains
    return everyone, spread, left, _scatter(remains, noise)


def _scatter(remains: Array, noise: Array) -> Array:
    """Standard deviations (K, n) of runs: no more than the law leaves (K, n) of them, beyond two numbers a kernel."""
    freedom = np.isfinite(remains).sum(axis=1, keepdims=True) - 2
    most = np.sqrt(np.nansum(remains**2, axis=1, keepdims=True) / np.maximum(freedom, 1))
    return np.where(freedom > 0, np.clip(most, BETWEEN_JOBS, noise), noise)


def _predictor(model: Model, equation: Application, runs: Runs) -> tuple[Callable[[Array], Array], Array]:
    """ln T (K, n) as a function of the shifts (K, 4), and the laws' own standard deviations (K, n)."""
    machine = equation.machine
    functions, rows, at = model.functions, _rows(model, runs), places(machine.kernels, runs.kernels)
    counts = functions.predict(runs.points)
    share = model.staircase.share(functions, runs.points, counts)
    zero = replace(equation, machine=replace(machine, spread=np.zeros(machine.spread.shape)))

    def asked(shift: Array) -> Quantity:
        every = np.zeros(machine.shift.shape)
        every[at] = shift
        refined = _with(zero, every).refine(counts, functions, runs.points, share)
        return rows_of(refined.said, rows).quantity()

    first = asked(np.zeros((len(at), machine.shift.shape[1])))
    return lambda shift: asked(shift).centre, np.nan_to_num((first.down + first.up) / 2, nan=1.0)


def _with(equation: Application, shift: Array) -> Application:
    """The equation with its laws shifted by numbers (K, 4) of the machine's kernels."""
    machine = equation.machine
    sharing, counted, resources = equation.sharing, equation.counted, equation.resources
    if sharing is not None:
        rows = shift[places(machine.kernels, sharing.kernels)]
        mode = sharing.mode.copy()
        mode[:, [0, 3]] += rows[:, CORE, None]
        mode[:, 1] -= rows[:, MEMORY]
        sharing = replace(sharing, mode=mode)
    if counted:
        rows = shift[places(machine.kernels, counted.kernels)]
        execution, stall = (
            part and shifted(part, rows[:, column])
            for part, column in ((counted.execution, CORE), (counted.stall, MEMORY))
        )
        counted = replace(counted, execution=execution, stall=stall)
    if resources:
        rows = shift[places(machine.kernels, resources.kernels)]
        core, memory = np.exp(rows[:, CORE]), np.exp(rows[:, MEMORY])
        resources = replace(resources, cpi=resources.cpi * core, factor=resources.factor * memory)
    moved: Moved = replace(machine, shift=machine.shift + shift)
    laws = equation.with_laws(sharing=sharing, counted=counted or None, resources=resources or None)
    return replace(laws, machine=moved)


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
