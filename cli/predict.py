"""Predict configurations that were not measured, with prediction intervals."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ranksight.cli import _placing, _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import options, shell_line
from ranksight.cli._values import parse
from ranksight.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from ranksight.analysis.phases.cross_check import CrossCheck
    from ranksight.core.arrays import Array
    from ranksight.model.fitted_model import Model
    from ranksight.model.prediction import Prediction
    from ranksight.reports.terminal import Block

__all__ = ["parse", "run"]

DRAWN = (".svg", ".png", ".pdf")
"""Kinds of files that ``--plot`` writes."""


def run(args: argparse.Namespace) -> int:
    """Predict and print; 4 when nothing is predicted."""
    from ranksight.core.files import check_output
    from ranksight.model.fitted_model import Model
    from ranksight.reports import predictions
    from ranksight.reports.pasted import TABLES, pasted
    from ranksight.reports.terminal import Text, show

    if args.plot is not None:
        if args.plot.suffix not in DRAWN:
            raise UsageError(
                f"--plot {args.plot}: the kind of picture is unknown", f"end the name in {', '.join(DRAWN)}"
            )
        check_output(args.plot, args.force)
    # What is asked of the whole program, or stated of it, needs all kernels.
    few = not (args.plot or args.units or args.messages or args.terms or args.on) and args.kernel
    model = _placing.placed(Model.load(args.model, few or None), args).with_units(args.units)
    if args.messages is not None:
        from ranksight.cli._messages import print_messages

        if args.metric:
            raise UsageError("--messages and --metric exclude each other", "ask for one at a time")
        if args.format in TABLES:
            raise UsageError(f"--messages are not written as {args.format}", "give --format table, csv or json")
        return print_messages(model, args)
    if args.terms:
        return _terms_alone(model, args)
    metrics = args.metric or None
    also: list[str] = []
    if metrics is None and args.format in ("table", *TABLES) and "time" in model.fitted.metrics:
        metrics = ["time"]
        also = [name for name in (*dict.fromkeys(model.fitted.metrics), *model.metered) if name != "time"]
        machine = model.equation.machine
        also = [name for name in also if not machine or machine.answers(name, model.functions.locality.keys)]
    elif metrics == ["all"]:
        metrics = None
    points = model.combinations(args.asked)
    times = _times(model, points, args)
    if times is not None and metrics is None:
        metrics, also = list(model.metered), []
    prediction = model.predict_at(points, level=args.level, kernels=args.kernel or None, metrics=metrics, times=times)
    timed = (metrics is None or "time" in metrics) and not args.kernel
    phases, missing = _phases(model, points, args.level) if timed else ([], "")
    if args.format == "json":
        _json(prediction, phases)
    elif args.format == "csv":
        _csv(prediction)
    elif args.format in TABLES:
        sys.stdout.write(pasted(predictions.blocks(prediction, everything=bool(args.kernel)), args.format))
    else:
        show(*predictions.blocks(prediction, everything=bool(args.kernel)))
    if args.format == "table" and not args.quiet:
        more = [Text(f"also modelled: {', '.join(also)}; --metric NAME or --metric all", 0)] if also else []
        show(
            *predictions.terms(prediction),
            *predictions.evidence(prediction),
            *more,
            *predictions.phase_times(phases, missing),
            *_next(prediction, model, args),
        )
    if args.plot is not None:
        _plot(model, args)
    return 0 if prediction.answers.ok.any() else 4


def _times(model: Model, points: Array, args: argparse.Namespace) -> Array | None:
    """The seconds of ``--time``, one for each configuration; None where none is given."""
    import numpy as np

    if not args.time:
        return None
    if not model.metered:
        raise InputError(
            "--time is for energy and power, which the runs of this model did not meter",
            "measure energy: ranksight doctor says what can be read",
        )
    if other := [name for name in args.metric if name not in model.metered]:
        raise UsageError(f"--time changes energy and power, not {other[0]}", f"ask for {', '.join(model.metered)}")
    times = np.array(args.time, dtype=np.float64)
    if len(times) != len(points) or not ((times > 0) & np.isfinite(times)).all():
        raise UsageError(
            f"--time has {len(times)} values for {len(points)} configurations, or one that is no time",
            "give the seconds of each configuration, in their order",
        )
    return times


def _phases(model: Model, points: Array, level: float) -> tuple[list[CrossCheck], str]:
    """The times by phases and why there are none; neither for a model without phases, as most are."""
    if "phases" not in model.observed:
        return [], ""
    from ranksight.analysis.phases.cross_check import of_model

    return of_model(model, points, level)


def _plot(model: Model, args: argparse.Namespace) -> None:
    """Draw the program's time along the parameter that was asked at most values, up to the largest of these and of the
    measured ones."""
    import numpy as np

    from ranksight.cli._continuing import experiment_of
    from ranksight.reports.plots import plot_model, save_figure

    if "time" not in model.fitted.metrics:
        raise InputError("the model has no metric 'time' to draw", "fit runs that measured times")
    most = {name: max(values) for name, values in args.asked.items()}
    along = max(args.asked, key=lambda name: (len(set(args.asked[name])), name == "ranks"))
    held = {name: value for name, value in most.items() if name != along}
    # A curve that ended before the measurements do would show less than is known.
    measured = model.training[:, model.parameters.index(along)] if along in model.parameters else np.empty(0)
    to = float(measured.max(initial=most[along]))
    ax = plot_model(model, along=along, to=to, at=held, experiment=experiment_of(model, args.model))
    save_figure(ax.figure, args.plot)
    if args.format == "table" and not args.quiet:
        from ranksight.reports.terminal import Text, show

        show(Text(f"drawn in {args.plot}", hanging=0))


def _json(prediction: Prediction, phases: Sequence[CrossCheck]) -> None:
    content = prediction.to_dict()
    answers = content.pop("predictions")
    if phases:
        content["phases"] = [each.to_dict() for each in phases]
    print_document({**content, "predictions": answers})


def _csv(prediction: Prediction) -> None:
    import numpy as np

    from ranksight.core.units import whole
    from ranksight.model.answers import known

    columns = prediction.answers.columns
    # Parameters take few values, each in very many rows.
    short = {value: whole(value) for name in prediction.parameters for value in np.unique(columns[name]).tolist()}
    plain = [
        [short[value] for value in column.tolist()]
        if name in prediction.parameters
        else known(column)
        if column.dtype == float
        else column.tolist()
        for name, column in columns.items()
    ]
    _separated.write(columns, zip(*plain, strict=True))


def _terms_alone(model: Model, args: argparse.Namespace) -> int:
    """Print the terms of the equation of every kernel; 4 where no equation describes one and T_others is unknown."""
    from ranksight.model.application.breakdown import TERMS
    from ranksight.reports import equation_terms, predictions
    from ranksight.reports.pasted import TABLES, pasted
    from ranksight.reports.terminal import show

    if args.metric:
        raise UsageError("--terms and --metric exclude each other", "ask for one at a time")
    if "time" not in model.fitted.metrics:
        raise InputError("the model has no metric 'time'", "fit runs that measured times, or cycles with a platform")
    points = model.combinations(args.asked)
    prediction = model.predict_at(points, level=args.level, kernels=args.kernel or None, metrics=["time"])
    rows = prediction.terms.rows()
    if args.format == "json":
        print_document({"schema_version": 1, "level": args.level, "terms": rows})
    elif args.format == "csv":
        lines = ([*row["configuration"].values(), *(row[name] for name in TERMS[1:])] for row in rows)
        _separated.write([*prediction.parameters, *TERMS[1:]], lines)
    elif found := equation_terms.tables(rows, predictions.by_time(prediction), args.level, 0):
        if args.format in TABLES:
            sys.stdout.write(pasted(found, args.format))
            return 0
        show(*found[:1], *(block for table in found[1:] for block in ("", table)))
    else:
        show("no kernel is described by the equation: fit with --platform and counts of cycles and loads")
    return 0 if rows else 4


def _next(prediction: Prediction, model: Model, args: argparse.Namespace) -> list[Block]:
    """What to type: the runs that would give the answers that are missing, else what bounds the program there.

    A report where neither kernels nor ranks are known, as no diagnosis is possible then; nothing where no program runs.
    """
    from ranksight.cli._continuing import experiment_of, plan_line
    from ranksight.model.uncertainty.forecast import DOMAIN, OK
    from ranksight.reports.terminal import next_step

    answers = prediction.answers
    if (answers.said.status == DOMAIN).any():
        return []
    missing = answers.points[(answers.said.status != OK).any(axis=0)]
    verb, asked = "diagnose", args.asked
    if len(missing) and args.on is None:  # plans are of runs on the machine of the model
        columns = dict(zip(answers.parameters, missing.T, strict=True))
        wanted = {name: [x for x in values if x in columns[name]] for name, values in asked.items() if name in columns}
        if line := plan_line(model, args.model, wanted, experiment_of(model, args.model)):
            return ["", next_step(line)]
    if "ranks" not in answers.parameters and not answers.kernels.astype(bool).any():
        verb, asked = "report", {name: [max(values)] for name, values in asked.items()}
    return ["", next_step(shell_line("ranksight", verb, args.model, *options(asked), *_placing.where(args)))]
