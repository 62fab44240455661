"""Show how a program changed over many experiments: commits, dates, compilers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.cli import _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import options, shell_line
from ranksight.cli._values import parse
from ranksight.core.errors import InputError, UsageError, meant
from ranksight.core.files import check_output

if TYPE_CHECKING:
    from ranksight.analysis.history.following import History
    from ranksight.core.experiment import Experiment

__all__ = ["parse", "run"]


def run(args: argparse.Namespace) -> int:
    """Follow the experiments and print; 3 when the threshold is passed."""
    if args.top < 1:
        raise UsageError(f"--top {args.top} prints nothing", "give a number from 1")
    if args.output is not None:
        check_output(args.output, args.force)
    from ranksight.analysis.history.following import history, started
    from ranksight.core.experiment import read

    opened = [(name, read(path)) for name, path in _names(args.experiments)]
    if args.order == "date" and all(started(experiment) for _, experiment in opened):
        opened.sort(key=lambda pair: started(pair[1]))
    target = _target(args, opened[0][1])
    predict = None if target is None else _predictor(target, args.platform)
    found = history(opened, scatter=args.scatter / 100, level=args.level, predict=predict, target=target)
    found = _chosen(found, args)
    slower = [] if args.threshold is None else found.slower(args.threshold, args.share / 100, args.metric)
    if args.output is not None:
        from ranksight.reports.html.history import render
        from ranksight.reports.html.page import write

        write(render(found), args.output, force=args.force)
    _print(found, slower, args)
    return 3 if slower else 0


def _names(paths: Sequence[Path]) -> list[tuple[str, Path]]:
    """Each folder and what it is called: its name without ``.exp``, or the path where that is not unique.

    Raises InputError when a folder is named twice.
    """
    twice = next((path for at, path in enumerate(paths) if path in paths[:at]), None)
    if twice is not None:
        raise InputError(f"{twice} is named twice", "name each experiment once")
    short = [path.name.removesuffix(".exp") or str(path) for path in paths]
    return [(name if short.count(name) == 1 else str(path), path) for name, path in zip(short, paths, strict=True)]


def _target(args: argparse.Namespace, experiment: Experiment) -> dict[str, float] | None:
    """The configuration that is predicted; None where no parameter is given.

    Raises UsageError when a parameter is unknown, missing or has several values.
    """
    if not args.asked:
        return None
    for name, values in args.asked.items():
        if name not in experiment.parameters:
            known = [f"--{each}" for each in experiment.parameters]
            raise UsageError(
                f"ranksight history: unrecognized arguments: --{name}",
                f"{meant(f'--{name}', known)} the experiments vary {', '.join(experiment.parameters)}".strip(),
            )
        if len(values) != 1:
            raise UsageError(f"--{name} has {len(values)} values", "a history predicts one configuration")
    if missing := [name for name in experiment.parameters if name not in args.asked]:
        raise UsageError(f"--{missing[0]} is not given", f"a prediction needs {', '.join(experiment.parameters)}")
    return {name: float(args.asked[name][0]) for name in experiment.parameters}


def _predictor(
    target: dict[str, float], platform: str | None
) -> Callable[[Experiment], tuple[float, float, float, str]]:
    """What fits an experiment and predicts the program's time at `target`."""
    import numpy as np

    from ranksight.model.fit import assemble
    from ranksight.model.stages.measuring import assumed_platform
    from ranksight.platforms import load

    given = load(platform) if platform else None

    def predict(experiment: Experiment) -> tuple[float, float, float, str]:
        model, _ = assemble(experiment, platform=given or assumed_platform(experiment))
        if "time" not in model.fitted.metrics:
            return float("nan"), float("nan"), float("nan"), "no time was measured"
        answers = model.predict_at(np.array([[target[name] for name in model.parameters]]), metrics=["time"]).answers
        whole = next((answer for answer in answers if answer.kernel is None), None)
        if whole is None:
            return float("nan"), float("nan"), float("nan"), "the program's time was not measured"
        return whole.value, whole.lower, whole.upper, "" if whole.ok else str(whole.reason)

    return predict


def _chosen(found: History, args: argparse.Namespace) -> History:
    """The history with the kernels and metrics that were asked for.

    Raises InputError when none has a name that was given.
    """
    from dataclasses import replace

    for position, asked in enumerate((args.kernel, args.metric)):
        known = {key[position] for key in found.keys}
        for name in asked:
            if name not in known:
                what = ("kernel", "metric")[position]
                raise InputError(f"no experiment has the {what} {name!r}", meant(name, sorted(known)))
    keep = [
        at
        for at, (kernel, metric) in enumerate(found.keys)
        if (not args.kernel or kernel in args.kernel) and (not args.metric or metric in args.metric)
    ]
    arrays = {name: getattr(found, name)[keep] for name in ("value", "error", "begins", "level_of")}
    return replace(found, keys=tuple(found.keys[at] for at in keep), **arrays)


def _print(found: History, slower: list, args: argparse.Namespace) -> None:  # type: ignore[type-arg]
    from ranksight.reports.histories import COLUMNS, blocks, rows, slower_lines, to_dict
    from ranksight.reports.terminal import next_step, show

    if args.format == "json":
        print_document(to_dict(found, slower))
        return
    if args.format == "csv":
        columns = [*found.parameters, *COLUMNS]
        _separated.write(columns, ([row[name] for name in columns] for row in rows(found)))
        return
    if not args.quiet:
        show(*blocks(found, args.top))
    if args.threshold is not None:
        show(*slower_lines(found, slower, args.threshold, not args.quiet))
    if args.quiet:
        return
    if args.output is not None:
        show("", next_step(shell_line("xdg-open", args.output)))
    elif len(args.experiments) > 1:
        asked = options({name: values[0] for name, values in args.asked.items()})
        folders = args.experiments if len(args.experiments) <= 4 else [*args.experiments[:2], "..."]
        show("", next_step(shell_line("ranksight", "history", *folders, *asked, "-o", "history.html")))
