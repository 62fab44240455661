"""Predict configurations that were not measured, with prediction intervals.

  ranksight predict heat.model.json --ranks 1024,2048 --size 256
  ranksight predict heat.model.json --ranks 1024 --size 256 --metric time --format json
  ranksight predict heat.model.json --ranks 1024 --size 256 --messages
  ranksight predict heat.model.json --ranks 256,512,1024 --size 256 --terms

Every parameter of the model is an option by its name; several values ask for all combinations. An answer for
which the data are insufficient is marked so, with the reason; exit code 4 when nothing is predicted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksight.cli import _placing, _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import options, shell_line
from ranksight.cli._values import WRITE, values
from ranksight.core.errors import InputError, UsageError, meant
from ranksight.core.files import check_output
from ranksight.core.metrics import metric
from ranksight.core.units import format_factor, in_full
from ranksight.reports.palette import NAMES
from ranksight.reports.terminal import Block, Cell, Column, Table, Text, next_step, show, sparkline

if TYPE_CHECKING:
    from ranksight.analysis.phases.cross_check import CrossCheck
    from ranksight.cli._parser import Parser
    from ranksight.model.answers import Answer
    from ranksight.model.fitted_model import Model
    from ranksight.model.prediction import Prediction

LIGHT = 0.005
"""Part of the largest value below which a table leaves a kernel out."""
FEW = 6
"""Rows that a table shows whatever they weigh."""
BOUND = 1e3
"""Times its value from which on an interval's end is no bound that anyone could use."""
LARGEST, PLACES = 4, 3
"""Kernels and configurations that the terms of the equation are shown for."""
CURVE = 3
"""Values of a parameter from which on a curve says more than its ends."""
DRAWN = (".svg", ".png", ".pdf")
"""Kinds of files that ``--plot`` writes."""
CURVES = 8
"""Curves that are drawn: those of the largest at the end."""


def configure(parser: Parser) -> None:
    """Declare the options that do not depend on the model; see :func:`parse` for its parameters."""
    parser.usage = "ranksight predict MODEL --PARAMETER VALUE[,VALUE] [--PARAMETER ...] [options]"
    parser.add_argument("model", type=Path, metavar="MODEL", help="file made by 'ranksight fit'")
    parser.add_argument(
        "--kernel", action="append", default=[], metavar="NAME", help="only this kernel; may be repeated"
    )
    parser.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="NAME[,NAME]",
        help="only these metrics, or 'all'; may be repeated (default: in a table the time where modelled, else all)",
    )
    parser.add_argument(
        "--messages",
        nargs="?",
        const="class",
        choices=("class", "rank", "links"),
        metavar="BY",
        help="the table of messages instead: by 'class' of ranks that do the same (default), by 'rank', or by 'links', "
        "the communication pattern",
    )
    parser.add_argument(
        "--terms",
        action="store_true",
        help="the terms of the resource equation instead: CPI_exec, BF_mem and clock of every kernel, and T_others",
    )
    parser.add_level()
    parser.add_format()
    _placing.configure(parser)
    parser.add_argument(
        "--units",
        metavar="NAME=FORMULA",
        help="whole units that the work comes in, such as 'elements=6*size^2' (default: as fitted)",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="also draw the program's time up to the largest value asked, with measured times: .svg, .png or .pdf",
    )
    parser.add_argument("--force", action="store_true", help="replace the file of --plot")
    parser.add_argument("--quiet", action="store_true", help="print nothing but the answers")


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the line; every other option ``--NAME VALUE[,VALUE]`` sets a parameter of the model.

    Raises
    ------
    UsageError
        When an option lacks its value or the value is not a list of numbers.
    """
    args, rest = parser.parse_known_args(list(arguments))
    asked: dict[str, list[float]] = {}
    at = 0
    while at < len(rest):
        word = rest[at]
        if not word.startswith("--") or len(word) < 3:
            raise UsageError(
                f"{parser.prog}: {word!r} is not understood", f"'{parser.prog} --help' lists what it takes"
            )
        name, equals, text = word[2:].partition("=")
        if not equals:
            if at + 1 >= len(rest):
                raise UsageError(
                    f"{parser.prog}: --{name} needs a value",
                    meant(f"--{name}", parser.options()) or f"such as --{name} 1024 or --{name} 1024,2048",
                )
            at += 1
            text = rest[at]
        if name in asked:
            raise UsageError(f"{parser.prog}: --{name} is given twice", f"give several values as --{name} A,B")
        asked[name] = _numbers(parser.prog, name, text, parser.options())
        at += 1
    args.asked = asked
    return args


def _numbers(prog: str, name: str, text: str, known: Iterable[str]) -> list[float]:
    try:
        numbers = values(text)
    except ValueError as error:
        if name == "platform":  # the most natural place to look for it, and no parameter has a name for its value
            raise UsageError(
                f"{prog}: --platform is given to fit; the model then knows the machine",
                shell_line("ranksight", "fit", "EXPERIMENT", "--platform", text),
            ) from None
        if name in ("ranks", "size"):
            raise UsageError(f"{prog}: --{name} {text!r} is not a list of numbers: {error}", WRITE) from None
        raise UsageError(
            f"{prog}: --{name} is not an option, and for a parameter {text!r} is not a list of numbers",
            f"{meant(f'--{name}', known)} '{prog} --help' lists the options; {WRITE}",
        ) from None
    if not all(number - number == 0 for number in numbers):
        raise UsageError(f"{prog}: --{name} {text!r} is not finite", f"write --{name} 1024 or --{name} 1024,2048")
    return numbers


def run(args: argparse.Namespace) -> int:
    """Predict and print; 4 when nothing is predicted."""
    from ranksight.analysis.phases.cross_check import of_model
    from ranksight.model.fitted_model import Model

    if not 0 < args.level < 1:
        raise UsageError(f"--level {args.level:g} is not a probability", "give a number between 0 and 1, such as 0.9")
    if args.plot is not None:
        if args.plot.suffix not in DRAWN:
            raise UsageError(
                f"--plot {args.plot}: the kind of picture is unknown", f"end the name in {', '.join(DRAWN)}"
            )
        check_output(args.plot, args.force)
    model = _placing.placed(Model.load(args.model), args).with_units(args.units)
    if args.messages is not None:
        from ranksight.cli._messages import print_messages

        if args.metric:
            raise UsageError("--messages and --metric exclude each other", "ask for one at a time")
        return print_messages(model, args)
    if args.terms:
        return _terms_alone(model, args)
    metrics = [name for given in args.metric for name in given.split(",") if name] or None
    also: list[str] = []
    if metrics is None and args.format == "table" and "time" in model.fitted.metrics:
        metrics, also = ["time"], [name for name in dict.fromkeys(model.fitted.metrics) if name != "time"]
    elif metrics == ["all"]:
        metrics = None
    points = model.combinations(args.asked)
    prediction = model.predict_at(points, level=args.level, kernels=args.kernel or None, metrics=metrics)
    timed = (metrics is None or "time" in metrics) and not args.kernel
    phases, missing = of_model(model, points, args.level) if timed else ([], "")
    if args.format == "json":
        _json(prediction, phases)
    elif args.format == "csv":
        _csv(prediction)
    else:
        _table(prediction, everything=bool(args.kernel))
    if args.format == "table" and not args.quiet:
        more = [Text(f"also modelled: {', '.join(also)}; --metric NAME or --metric all", 0)] if also else []
        show(*_terms(prediction), *_evidence(prediction), *more, *_phases(phases, missing), *_next(prediction, args))
    if args.plot is not None:
        _plot(model, args)
    return 0 if prediction.answers.ok.any() else 4


def _plot(model: Model, args: argparse.Namespace) -> None:
    """Draw the program's time along the parameter that was asked at most values, up to the largest."""
    from ranksight.cli._continuing import experiment_of
    from ranksight.reports.plots import plot_model, save_figure

    if "time" not in model.fitted.metrics:
        raise InputError("the model has no metric 'time' to draw", "fit runs that measured times")
    most = {name: max(values) for name, values in args.asked.items()}
    along = max(args.asked, key=lambda name: (len(set(args.asked[name])), name == "ranks"))
    held = {name: value for name, value in most.items() if name != along}
    ax = plot_model(model, along=along, to=most[along], at=held, experiment=experiment_of(model, args.model))
    save_figure(ax.figure, args.plot)
    if args.format == "table" and not args.quiet:
        show(Text(f"drawn in {args.plot}", hanging=0))


def _json(prediction: Prediction, phases: Sequence[CrossCheck]) -> None:
    content = prediction.to_dict()
    answers = content.pop("predictions")
    if phases:
        content["phases"] = [each.to_dict() for each in phases]
    print_document({**content, "predictions": answers})


def _csv(prediction: Prediction) -> None:
    import numpy as np

    from ranksight.model.answers import known, number

    columns = prediction.answers.columns
    # Parameters take few values, each in very many rows.
    whole = {value: number(value) for name in prediction.parameters for value in np.unique(columns[name]).tolist()}
    plain = [
        [whole[value] for value in column.tolist()]
        if name in prediction.parameters
        else known(column)
        if column.dtype == float
        else column.tolist()
        for name, column in columns.items()
    ]
    _separated.write(columns, zip(*plain, strict=True))


def _table(prediction: Prediction, everything: bool) -> None:
    """A table for each configuration and metric: the whole program, its communication, imbalance and T_others, then the
    kernels by size.

    Kernels without weight are left to the other formats, unless `everything` is asked for.
    """
    blocks: list[Block] = []
    for answers in _grouped(prediction, lambda answer: (*answer.configuration.items(), answer.metric)):
        first = answers[0]
        where = ", ".join(f"{name} {in_full(value)}" for name, value in first.configuration.items())
        columns = [
            Column("kernel", "name"),
            Column("value"),
            Column(f"{first.level:.0%} interval", "word", 1),
            Column("", "word"),
        ]
        ordered = sorted(answers, key=_largest_first)
        sizes = [abs(answer.value) for answer in ordered if answer.value == answer.value]
        least = 0.0 if everything else LIGHT * max(sizes, default=0.0)
        every = len(ordered)
        ordered = [answer for at, answer in enumerate(ordered) if at < FEW or not abs(answer.value) < least]
        rows = list(map(_row, ordered))
        if first.metric == "time" and prediction.parts and not everything:
            rows[1:1] = _parts(prediction, answers, max(least, 1e-12))
        blocks += [Text(f"{where}: {first.metric}", style="bold"), Table(columns, rows, 2)]
        if light := every - len(ordered):
            kernels = "kernel" if light == 1 else "kernels"
            blocks.append(Text(f"and {light} {kernels} of less than {LIGHT:.1%}; --format csv lists all", 2))
        reasons: dict[str, list[str]] = {}
        for answer in ordered:
            if not answer.ok:
                reasons.setdefault(answer.reason, []).append(_named(answer))
        blocks += [
            Text(f"insufficient: {', '.join(who)}: {reason}", 2, style="yellow") for reason, who in reasons.items()
        ]
        blocks.append("")
    show(*blocks[:-1], *_over(prediction))


def _parts(prediction: Prediction, answers: Sequence[Answer], least: float) -> list[list[str | Cell]]:
    """Rows of communication, imbalance, T_others and BF_comm at the configuration of `answers`."""
    import numpy as np

    at = int(np.flatnonzero((prediction.answers.points == list(answers[0].configuration.values())).all(axis=1))[0])
    held = {name: float(part[at]) for name, part in prediction.parts.items()}
    own = sum(answer.value for answer in answers if answer.kernel is not None and answer.value == answer.value)
    # A kernel that one rank has alone holds what the others wait for it: it is not listed again.
    rest = sum(held.values()) - held["communication"] - held["others"] - own
    seconds = {"communication": held["communication"], "imbalance": min(held["imbalance"], rest)}
    unit = metric("time")
    rows: list[list[str | Cell]] = [
        [f"({name})", unit.format(value), "", ""] for name, value in seconds.items() if value >= least
    ]
    others = None if prediction.terms is None else prediction.terms.others
    if others is not None and held["others"] >= least:
        low, high = (unit.format(max(float(end[0, at]), 0.0)) for end in (others.lower, others.upper))
        rows.append([f"({NAMES['others']})", unit.format(held["others"]), f"{low} .. {high}", ""])
    for row in _exchanged(prediction):
        if row["configuration"] == answers[0].configuration:
            ends = f"{format_factor(row['lower'])} .. {format_factor(row['upper'])}"
            rows.append(["(BF_comm)", format_factor(row["factor"]), ends, str(row["meaning"])])
    return rows


def _terms_alone(model: Model, args: argparse.Namespace) -> int:
    """Print the terms of the equation of every kernel; 4 where no equation describes one and T_others is unknown."""
    from ranksight.model.application.equation_terms import TERMS
    from ranksight.reports import equation_terms

    if args.metric:
        raise UsageError("--terms and --metric exclude each other", "ask for one at a time")
    if "time" not in model.fitted.metrics:
        raise InputError("the model has no metric 'time'", "fit runs that measured times, or cycles with a platform")
    points = model.combinations(args.asked)
    prediction = model.predict_at(points, level=args.level, kernels=args.kernel or None, metrics=["time"])
    rows = [] if prediction.terms is None else prediction.terms.rows()
    if args.format == "json":
        print(json.dumps({"schema_version": 1, "level": args.level, "terms": rows}, indent=1, allow_nan=False))
    elif args.format == "csv":
        lines = ([*row["configuration"].values(), *(row[name] for name in TERMS[1:])] for row in rows)
        _separated.write([*prediction.parameters, *TERMS[1:]], lines)
    elif found := equation_terms.tables(rows, _by_time(prediction), args.level, 0):
        show(*found[:1], *(block for table in found[1:] for block in ("", table)))
    else:
        show("no kernel is described by the equation: fit with --platform and counts of cycles and loads")
    return 0 if rows else 4


def _by_time(prediction: Prediction) -> list[str]:
    """Kernels by their largest time, the largest first."""
    most: dict[str, float] = {}
    for answer in prediction.answers:
        if answer.kernel is not None and answer.metric == "time" and answer.value == answer.value:
            most[answer.kernel] = max(most.get(answer.kernel, 0.0), answer.value)
    return sorted(most, key=lambda kernel: -most[kernel])


def _terms(prediction: Prediction) -> list[Block]:
    """CPI_exec and BF_mem of the largest kernels, clock and T_others, at the ends and between."""
    from ranksight.reports import equation_terms

    if prediction.terms is None or not (rows := prediction.terms.rows()):
        return []
    places = list({tuple(row["configuration"].items()): None for row in rows})
    kept = {places[at] for at in equation_terms.spread_over(len(places), PLACES)}
    described = {row["kernel"] for row in rows}
    largest = [kernel for kernel in _by_time(prediction) if kernel in described][:LARGEST]
    found = equation_terms.tables(
        [row for row in rows if tuple(row["configuration"].items()) in kept],
        largest,
        prediction.answers.said.level,
    )
    return ["", Text("terms of the equation; --terms lists all", style="bold"), *found]


def _exchanged(prediction: Prediction) -> list[Mapping[str, Any]]:
    """BF_comm over configurations, where communication was measured in some run."""
    return [row for row in prediction.communication if row["method"] != "assumed"]


def _grouped(prediction: Prediction, key: Callable[[Answer], tuple[object, ...]]) -> Iterable[list[Answer]]:
    found: dict[tuple[object, ...], list[Answer]] = {}
    for answer in prediction.answers:
        found.setdefault(key(answer), []).append(answer)
    return found.values()


def _named(answer: Answer) -> str:
    return "(whole program)" if answer.kernel is None else answer.kernel


def _row(answer: Answer) -> list[str | Cell]:
    unit = metric(answer.metric)
    known = answer.value == answer.value
    interval = f"{unit.format(answer.lower)} .. {unit.format(answer.upper)}" if known else ""
    if answer.upper > BOUND * abs(answer.value):
        interval = f"{unit.format(answer.lower)} .. no bound"
    style = "bold" if answer.kernel is None else ""
    value = unit.format(answer.value) if known else "-"
    return [Cell(_named(answer), style), Cell(value, style), interval, Cell("" if answer.ok else "?", "yellow")]


def _over(prediction: Prediction) -> list[Block]:
    """How values run along the parameter that was given several values, where no other was: a line for each."""
    points = [answer.configuration for answer in prediction.answers]
    varied = [name for name in prediction.parameters if len({point[name] for point in points}) > 1]
    if len(varied) != 1 or len({point[varied[0]] for point in points}) < CURVE:
        return []
    rows: list[list[str | Cell]] = []
    lines = [
        sorted(answers, key=lambda answer: answer.configuration[varied[0]])
        for answers in _grouped(prediction, lambda answer: (answer.metric, answer.kernel))
    ]
    for line in sorted(lines, key=lambda line: _largest_first(line[-1]))[:CURVES]:
        ends = [metric(line[0].metric).format(each.value) for each in (line[0], line[-1])]
        curve = sparkline((answer.value for answer in line), low=0.0)
        rows.append([_named(line[0]), line[0].metric, ends[0], Cell(curve, "cyan"), ends[1]])
    if len(factors := sorted(_exchanged(prediction), key=lambda row: row["configuration"][varied[0]])) >= CURVE:
        numbers = [float(row["factor"]) for row in factors]
        ends = [format_factor(numbers[0]), format_factor(numbers[-1])]
        curve = sparkline(numbers, low=0.0)
        rows.append(["(communication)", "BF_comm", ends[0], Cell(curve, "cyan"), ends[1]])
    first, last = (f"{in_full(end(point[varied[0]] for point in points))}" for end in (min, max))
    columns = [
        Column("kernel", "name"),
        Column("metric", "word", 1),
        Column(first),
        Column(f"over {varied[0]}", "word"),
        Column(last),
    ]
    return ["", Table(columns, rows, 2)]


def _largest_first(answer: Answer) -> tuple[bool, bool, float]:
    return answer.kernel is not None, answer.value != answer.value, -answer.value


def _evidence(prediction: Prediction) -> list[Block]:
    """The methods of the answers, each once with the number of its answers."""
    from collections import Counter

    from ranksight.model.application.communication import MEANINGS

    methods = Counter(prediction.answers.columns["evidence"].tolist())
    blocks: list[Block] = ["", *(Text(f"note: {note}") for note in prediction.notes)]
    if factors := _exchanged(prediction):
        last = factors[-1]
        text = f"{', '.join(f'{in_full(x)} {name}' for name, x in last['configuration'].items())}: "
        text += f"BF_comm is {format_factor(last['factor'])}, {MEANINGS[last['meaning']]}"
        blocks.append(Text(text))
    blocks += [
        Text(f"{count} {'value' if count == 1 else 'values'} by {text}", style="dim")
        for text, count in methods.most_common(8)
    ]
    if len(methods) > 8:
        blocks.append(f"and {len(methods) - 8} more; --format csv has the evidence of each")
    return blocks


def _phases(phases: Sequence[CrossCheck], missing: str) -> list[Block]:
    """The time by phases and the sum over kernels, and why they differ."""
    unit = metric("time")
    blocks: list[Block] = ["", Text(f"no time by phases: {missing}")] if missing else []
    for at, each in enumerate(phases):
        where = " ".join(f"{name}={in_full(value)}" for name, value in each.configuration.items())
        interval = ""
        if each.lower == each.lower:
            interval = f" ({unit.format(each.lower)} .. {unit.format(each.upper)})"
        said = "they agree" if each.agree else f"they disagree: {each.why}"
        text = f"{where}: by phases {unit.format(each.value)}{interval}"
        text += f", by kernels {unit.format(each.sum)}; {said}" if each.sum == each.sum else f"; {each.why}"
        blocks += [*([] if at else [""]), Text(text)]
    return blocks


def _next(prediction: Prediction, args: argparse.Namespace) -> list[Block]:
    """What to type: the runs that would give an answer where there is none, else what bounds the program there.

    Nothing where no program runs.
    """
    from ranksight.model.uncertainty.forecast import DOMAIN

    if any(answer.status == DOMAIN for answer in prediction.answers):
        return []
    verb = "diagnose" if all(answer.ok for answer in prediction.answers) else "plan"
    return ["", next_step(shell_line("ranksight", verb, args.model, *options(args.asked)))]
