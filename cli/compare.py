"""Compare two experiments or models: per kernel what changed, why, and at which scale it matters."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.cli import _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import options, shell_line
from ranksight.cli._values import parse
from ranksight.core.errors import InputError, UsageError
from ranksight.core.files import check_output
from ranksight.core.units import in_words

if TYPE_CHECKING:
    from ranksight.analysis.comparison.comparing import Comparison, Subject

__all__ = ["parse", "run"]

LEVEL = 0.95
"""Probability of the intervals of changes, where none is asked for."""


def run(args: argparse.Namespace) -> int:
    """Compare and print; 3 when the threshold is passed, 4 when the program's time cannot be compared."""
    if args.on or args.after is None:
        from ranksight.cli._machines import which_machine

        return which_machine(args)
    if alone := [
        name for name in ("instructions", "placement", "ranks_per_node", "price", "power") if getattr(args, name)
    ]:
        raise UsageError(f"--{alone[0].replace('_', '-')} is of machines", "name them with --on, and one model")
    if args.output is not None:
        check_output(args.output, args.force)

    names: dict[str, str] = {}
    for text in args.rename:
        old, equals, new = text.partition("=")
        if not (old and equals and new):
            raise UsageError(f"--rename {text[:80]} names no two kernels", "write --rename OLD=NEW")
        names[old] = new

    from ranksight.analysis.comparison.change import CHANGED, UNKNOWN, UNSURE
    from ranksight.analysis.comparison.comparing import compare
    from ranksight.core.experiment import WHOLE
    from ranksight.model.structure.coordinates import above_zero

    sides = ((args.before, args.before_platform), (args.after, args.after_platform))
    if not args.asked:
        _check_common([path for path, _ in sides])
    kept = _kept([path for path, _ in sides], names)
    first, second = (_open(path, platform, kept) for path, platform in sides)
    if first.name == second.name:
        first, second = _apart(first, args.before), _apart(second, args.after)
    points = first.model.combinations(args.asked) if args.asked else None
    if points is not None:
        above_zero(first.model.parameters, first.model.training, points)
    limit = {} if args.threshold is None else {"large": args.threshold / 100}
    found = compare(first, second, points, scatter=args.scatter / 100, level=args.level or LEVEL, names=names, **limit)
    for kernel in args.kernel:
        if not any(each == kernel for each, _ in found.changes.keys):
            raise InputError(f"neither has a kernel {kernel!r}", "the kernels are those of 'ranksight fit'")
    found.gated(args.metric)
    slower, unknown = (
        [] if args.threshold is None else found.grown(args.threshold, args.share / 100, args.metric, verdict)
        for verdict in (CHANGED, UNKNOWN)
    )
    if args.output is not None:
        from ranksight.reports.html.comparison import render
        from ranksight.reports.html.page import write

        write(render(found, len(found.points) - 1), args.output, force=args.force)
    _print(found, second, slower, unknown, args)
    if slower:
        return 3
    if unknown:
        return 4
    row = found.changes.rows.get((WHOLE, found.timer))
    if args.threshold is not None and args.metric and found.timer not in args.metric:
        return 0
    return 4 if not found.timer or (row is not None and (found.changes.verdict[row] == UNSURE).all()) else 0


def _check_common(paths: Sequence[Path]) -> None:
    """Raise InputError, before anything is fitted, where experiments of the same parameters share no configuration."""
    from ranksight.analysis.comparison.comparing import nothing_in_common
    from ranksight.core.experiment import read

    held = [read(path) for path in paths if path.is_dir()]
    if len({each.parameters for each in held}) != 1 or len(held) < 2:
        return
    names = held[0].parameters
    places = [{run.point(names) for run in each.runs} for each in held]
    if not set.intersection(*places):
        raise nothing_in_common(_name(paths[0]), _name(paths[1]), names)


def _name(path: Path) -> str:
    """What a subject is called."""
    return path.name.removesuffix(".model.json").removesuffix(".exp") or str(path)


def _kept(paths: Sequence[Path], names: dict[str, str]) -> set[str]:
    """Kernels that matter on one of the sides, and so are compared on both."""
    from ranksight.core.experiment import read
    from ranksight.model.fitted_model import Model
    from ranksight.model.series.folding import significant

    found: set[str] = set()
    for path in paths:
        found.update(significant(read(path)) if path.is_dir() else Model.load(path).fitted.kernels)
    return found.union(*(pair for pair in names.items() if found.intersection(pair)))


def _open(path: Path, platform: str | None, keep: set[str]) -> Subject:
    from ranksight.analysis.comparison.comparing import Subject
    from ranksight.core.experiment import read
    from ranksight.model.fit import assemble
    from ranksight.model.fitted_model import Model
    from ranksight.model.stages.measuring import assumed_platform
    from ranksight.platforms import load

    name = _name(path)
    if not path.is_dir():
        return Subject(name, Model.load(path))
    experiment = read(path)
    given = load(platform) if platform else assumed_platform(experiment)
    model, series = assemble(experiment, platform=given, keep=keep)
    return Subject(name, model, series, experiment.runs)


def _apart(subject: Subject, path: Path) -> Subject:
    """Return `subject` with its path as the name, for two subjects of the same name."""
    from dataclasses import replace

    return replace(subject, name=str(path))


Grown = list[tuple[str, str, int, float]]


def _print(found: Comparison, after: Subject, slower: Grown, unknown: Grown, args: argparse.Namespace) -> None:
    from ranksight.reports.comparisons import COLUMNS, because, blocks, hints, one_sided, origins, rows, scales, to_dict
    from ranksight.reports.pasted import pasted
    from ranksight.reports.terminal import Text, next_step, show

    if args.format == "json":
        print_document(to_dict(found, slower, unknown))
        return
    if args.format == "csv":
        columns, lines = [*found.parameters, *COLUMNS], list[list[object]]()
        for number, row in enumerate(rows(found)):
            at = number // len(found.changes.keys)
            timed = row["metric"] == found.timer
            row["causes"] = because(found.causes.get((row["kernel"], at), [])) if timed else ""
            lines.append([row[name] for name in columns])
        _separated.write(columns, lines)
        return
    if args.format != "table":
        places = range(len(found.points)) if args.asked else [len(found.points) - 1]
        pages = [block for at in places for block in blocks(found, at, args.kernel or None)]
        sys.stdout.write(pasted([*origins(found), *pages], args.format))
        return
    where = range(len(found.points)) if args.asked else [len(found.points) - 1]
    if slower or unknown or not args.quiet:
        show(*origins(found))
    if _is_one(args) and not args.quiet:
        show(Text(f"note: before and after are both {args.before}", 0, 2, "yellow"))
    if not args.quiet:
        for at in where:
            show(*blocks(found, at, args.kernel or None), "")
        rest = len(found.points) - len(where)
        if rest:
            show(f"{rest} smaller configurations were compared as well; --format csv prints them")
        show(*scales(found), *one_sided(found), *hints(found))
    if args.threshold is not None:
        if not args.quiet:
            show("", f"grew by more than {args.threshold:g} %: {len(slower)}")
        _each(found, slower, "", "red")
        if unknown and not args.quiet:
            show(f"may have grown by more than {args.threshold:g} %, insufficient data: {len(unknown)}")
        _each(found, unknown, "up to ", "yellow")
    if not args.quiet:
        show("", next_step(_next(found, after, args)))


def _each(found: Comparison, grown: Grown, to: str, style: str) -> None:
    """Print the kernels that grew, or may have, a line each."""
    from ranksight.reports.terminal import Text, show

    for kernel, name, at, growth in grown:
        place = in_words(dict(zip(found.parameters, found.points[at], strict=True)))
        what = "" if name == found.timer else f"{name} "
        show(Text(f"{kernel}: {what}{to}{growth:+.3g} % at {place}", 2, 2, style))


def _is_one(args: argparse.Namespace) -> bool:
    """Whether a subject is compared with itself, on one machine."""
    same = args.before.resolve() == args.after.resolve()
    return same and args.before_platform == args.after_platform and not args.rename


def _next(found: Comparison, after: Subject, args: argparse.Namespace) -> str:
    """What to type next: open the page, measure what would narrow the later side, or look farther out."""
    if args.output is not None:
        return shell_line("xdg-open", args.output)
    if _is_one(args):
        return shell_line("ranksight", "fit" if args.before.is_dir() else "diagnose", args.before)
    largest = dict(zip(found.parameters, found.points[-1], strict=True))
    if args.asked and not found.measured and (line := _plan(after, args.after, largest)):
        return line
    farther = {name: value * (8 if name == "ranks" else 1) for name, value in largest.items()}
    if "ranks" not in farther:
        return shell_line("ranksight", "fit" if args.after.is_dir() else "report", args.after)
    return shell_line("ranksight", "compare", args.before, args.after, *options(farther))


def _plan(after: Subject, path: Path, at: dict[str, float]) -> str:
    """The line that plans runs of the later side; empty where none can be planned."""
    from ranksight.cli._continuing import experiment_of, plan_line
    from ranksight.core.experiment import read

    experiment = read(path) if path.is_dir() else experiment_of(after.model, path)
    return plan_line(after.model, path, {name: [value] for name, value in at.items()}, experiment)
