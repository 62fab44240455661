"""Fit every metric of every kernel of an experiment as a function of its parameters."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksight.cli import _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import options, shell_line
from ranksight.cli._saying import warn
from ranksight.core.errors import UsageError
from ranksight.core.units import counted, parse_frequency

if TYPE_CHECKING:
    from ranksight.core.experiment import Experiment
    from ranksight.model.fitted_model import Model
    from ranksight.model.series.reducing import Series


def run(args: argparse.Namespace) -> int:
    """Fit, store, print; 4 when no series is predicted anywhere, not even where it was measured."""
    from ranksight.core.files import check_output, with_name
    from ranksight.model.modelfile import ours
    from ranksight.model.spaces import SPACES

    if args.space == "list":
        print("\n".join(SPACES))
        return 0
    if args.experiment is None:
        raise UsageError("ranksight fit: no EXPERIMENT is given", "name the folder that 'measure' or 'import' made")
    if args.jobs < 1:
        raise UsageError(f"--jobs is {args.jobs}", "give at least 1")
    output = args.output or (place := with_name(args.experiment)).with_name(place.name + ".model.json")
    # The name that fit itself gives holds what it wrote before: fitting again is to bring it up to date.
    args.force = args.force or (args.output is None and ours(output))
    check_output(output, args.force)
    if args.space not in SPACES:
        SPACES[args.space]  # raises with the nearest names

    if args.dask is not None:
        from ranksight.core.executing import reached

        reached(args.dask)
    from ranksight.core.experiment import read

    args.platform, elsewhere = _machines(args)
    experiment = _measured_here(read(args.experiment), args.platform, elsewhere)
    settings = {"space": args.space, "over_repetitions": args.reduce}
    if args.iterations is not None:
        settings["iterations"] = args.iterations
    model, series = _assembled(experiment, settings, args)
    model = _anchored(model, elsewhere, args)
    model.save(output, force=args.force)
    if not args.quiet:
        warn(model.remarks.left_out)
        checked = _verified(series, settings) if args.verify else None
        machine = "" if args.platform is not None or args.cores_per_domain is not None else _machine(experiment, model)
        _print(model, series, args, output, checked, machine)
    fitted = model.fitted
    return 0 if (fitted.status == 0).any() or fitted.measured_alone(model.training).any() else 4


def _machines(args: argparse.Namespace) -> tuple[str | None, list[tuple[Path, str]]]:
    """The platform of the experiment, and the experiments of other machines with theirs."""
    given = list(args.platform)
    if len(given) > 1 or args.also:
        if len(given) < 1 + len(args.also):
            raise UsageError(
                f"{counted(len(args.also), 'experiment')} by --also and {counted(len(given), 'platform')}",
                "name the machine of EXPERIMENT and of each --also, in their order: --platform ONE --platform OTHER",
            )
        of_others = [*args.also, *[args.experiment] * (len(given) - 1 - len(args.also))]
        return given[0], list(zip(of_others, given[1:], strict=True))
    return (given[0] if given else None), []


def _measured_here(experiment: Experiment, platform: str | None, elsewhere: list[tuple[Path, str]]) -> Experiment:
    """The runs on the first machine, where the experiment has those of several."""
    from ranksight.model.machine.mixed import check_one_machine, misnamed, runs_on
    from ranksight.platforms import load

    if platform is not None and any(path == experiment.path for path, _ in elsewhere):
        return runs_on(experiment, load(platform))
    check_one_machine(experiment)
    if platform is not None:
        warn(misnamed(experiment, load(platform)))
    return experiment


def _anchored(model: Model, elsewhere: list[tuple[Path, str]], args: argparse.Namespace) -> Model:
    """The model with the runs on other machines, which predictions there go through."""
    if not elsewhere:
        return model
    from ranksight.core.experiment import read
    from ranksight.model.machine.anchor import measured_there, with_energy, with_runs
    from ranksight.model.machine.mixed import check_one_machine, misnamed, runs_on
    from ranksight.platforms import load

    for path, name in elsewhere:
        platform, experiment = load(name), read(path)
        if path == args.experiment:
            experiment = runs_on(experiment, platform)
        else:
            check_one_machine(experiment)
            warn(misnamed(experiment, platform))
        model = with_runs(model, measured_there(model, experiment, _over_ranks(args.ranks_reduce)), platform)
        model = with_energy(model, experiment, platform)
        for doubt in model.anchors[-1].doubts:
            warn(doubt)
    return model


def _assembled(experiment: Experiment, settings: dict[str, Any], args: argparse.Namespace) -> tuple[Model, Series]:
    """The model of an experiment and the series that it was fitted to."""
    from ranksight.cli._progress import fitting
    from ranksight.cli._saying import say_first
    from ranksight.model.fit import assemble
    from ranksight.model.stages.measuring import assumed_platform, domains_of, stated_of
    from ranksight.platforms import load

    metrics = args.metric or None
    platform = assumed_platform(experiment) if args.platform is None else load(args.platform)
    named = None if args.platform is None else platform
    domains = domains_of(named, args.placement, args.ranks_per_node, args.cores_per_domain)
    coordinates, units = stated_of(experiment, args.derive, args.work, args.units)
    if named is not None:
        from ranksight.counters.checking import unnoted

        say_first("warning", unnoted(experiment, named), "warnings")
    with fitting(args.quiet):
        return assemble(
            experiment,
            metrics,
            platform=platform,
            domains=domains,
            clock=None if args.clock is None else parse_frequency(args.clock),
            units=units,
            coordinates=coordinates,
            volumes=args.volume,
            over_ranks=_over_ranks(args.ranks_reduce),
            all_kernels=args.all_kernels,
            scaling=args.scaling,
            jobs=args.jobs,
            dask=args.dask,
            **settings,
        )


def _machine(experiment: Experiment, model: Model) -> str:
    """Name the platform that was measured, or the options that state which cores share memory.

    Empty where runs are of several machines, or nothing asks for one.
    """
    from ranksight.model.notes import TRAFFIC
    from ranksight.platforms.recognition import measured_on, named

    machines = {
        tuple(run.environment.get(key, "") for key in ("processor", "cores", "CPU name")) for run in experiment.runs
    }
    if len(machines) != 1:
        return ""
    processor, cores, elsewhere = machines.pop()
    known = measured_on({"processor": processor, "cores": cores})
    if known is None and elsewhere and len(found := named(elsewhere)) == 1:  # other tools name it without its cores
        known = found[0]
    if known is not None:
        return f"measured on {known.title}: --platform {known.name} describes its caches and memory domains"
    if "ranks" not in model.parameters or not TRAFFIC.intersection(model.fitted.metrics):
        return ""
    return (
        "memory traffic was counted, and how many cores share memory is not known: --cores-per-domain N with "
        "--ranks-per-node N (lscpu shows both), or --platform, states it for predictions on further domains and nodes"
    )


def _over_ranks(given: list[str]) -> Any:
    if not given:
        return None
    named = dict(text.split("=", 1) for text in given if "=" in text)
    plain = [text for text in given if "=" not in text]
    if plain and (named or len(plain) > 1):
        raise UsageError("--ranks-reduce names one reduction for all metrics, or METRIC=HOW for each")
    return plain[0] if plain else named


def _verified(series: Series, settings: dict[str, Any]) -> dict[str, Any]:
    """What functions without the largest configuration say there: overall, and the error of each series in order."""
    import numpy as np

    from ranksight.model.fitting.verify import verify_largest

    checked = verify_largest(series, **settings)
    known = np.isfinite(checked.error)
    errors = np.where(known.any(axis=1), np.where(known, checked.error, -np.inf).max(axis=1), np.nan)
    found = checked.error[known]
    return {
        "parameter": checked.parameter,
        "value": float(checked.points[:, series.parameters.index(checked.parameter)].max()),
        "median_error": float(np.median(found)) if len(found) else float("nan"),
        "largest_error": float(found.max()) if len(found) else float("nan"),
        "covered": float(checked.covered[known].mean()) if len(found) else float("nan"),
        "errors": errors.tolist(),
    }


def _print(
    model: Model, series: Series, args: argparse.Namespace, output: Path, checked: dict[str, Any] | None, machine: str
) -> None:
    import numpy as np

    from ranksight.model.notes import partners
    from ranksight.reports.functions import COLUMNS, blocks, functions, left_out, listing, unlike

    errors = [] if checked is None else checked.pop("errors")
    rows = [] if args.format == "table" and args.formulas is None else functions(model)
    for row, error in zip(rows, errors, strict=False):
        row["error_at_largest"] = error
    if args.formulas is not None:
        print(listing(rows, args.formulas, model.parameters))
        return
    if args.format == "json":
        content = {
            "schema_version": 1,
            "model": str(output),
            "warnings": [text for text in [model.remarks.left_out] if text],
            "parameters": list(model.parameters),
            **({"folded": model.selection.to_dict()} if model.selection.kernels else {}),
            "functions": rows,
            **({} if checked is None else {"verification": checked}),
        }
        print_document(content)
        return
    if args.format == "csv":
        columns = COLUMNS if checked is None else (*COLUMNS, "error_at_largest")
        known = ([None if (value := row.get(name)) != value else value for name in columns] for row in rows)
        _separated.write(columns, known)
        return
    from ranksight.core.valuerules import next_value
    from ranksight.model.process.solve import dividing
    from ranksight.reports.terminal import Text, next_step, show

    show(*blocks(model, checked))
    # A parameter that shows no growth is asked for at a value that was measured: times have none from two values.
    twice = np.where([len(np.unique(column)) > 2 for column in model.training.T], 2.0, 1.0)
    least, most = model.training.min(axis=0), model.training.max(axis=0)
    finer = dividing(model.training)  # mesh widths and tolerances
    ahead = np.where(finer, least / twice, most * twice)[None]
    if "ranks" in model.parameters:
        at = model.parameters.index("ranks")
        further = next_value(model.training[:, at], ahead[0, at])
        ahead[0, at] = further if np.isfinite(further) else ahead[0, at]
    ahead = model.along_ties(ahead)
    if (~finer & (ahead < np.minimum(least, 1.0))).any():  # less than one thread to a rank
        ahead = model.training[[model.training[:, 0].argmax()]]
    # 12 digits: a power that ties a parameter to others leaves the last ones off.
    asked = options({name: float(f"{value:.12g}") for name, value in zip(model.parameters, ahead[0], strict=True)})
    said = f"{counted(len(model.fitted), 'function')} of {counted(len(series.points), 'configuration')} in {output}"
    outliers = left_out(series) if args.reduce == "auto" else ""
    folded = model.selection.remark()
    said_of = (folded, outliers, unlike(model, series), partners(model, ahead), _clock(model), machine)
    notes = [Text(note, hanging=0) for note in said_of if note]
    show("", Text(said, hanging=0), *notes, next_step(shell_line("ranksight", "predict", output, *asked)))


def _clock(model: Model) -> str:
    """What to say of times that are made of cycles, or cannot be for want of a clock; empty where neither is so."""
    from ranksight.model.structure.coordinates import NO_CLOCK

    if model.clock:
        return model.clock.remark()
    if "cycles" not in model.fitted.metrics or "time" in model.fitted.metrics:
        return ""
    return f"cycles were counted and no time was measured: {NO_CLOCK}"
