"""Compare an experiment with expectations of how its functions scale."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.cli import _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import shell_line
from ranksight.core.errors import RanksightError, UsageError
from ranksight.core.files import check_output, write_output

if TYPE_CHECKING:
    from ranksight.analysis.expectations.checking import Result
    from ranksight.cli._parser import Parser


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the line; every other option sets values of a parameter.

    Raises UsageError when there is no experiment, nothing is expected, or a parameter has no number.
    """
    from ranksight.cli._values import parse as with_parameters

    chosen = with_parameters(parser, arguments)
    chosen.paths.sort(key=Path.is_dir)  # an experiment is a folder; either may be named first
    folders = sum(map(Path.is_dir, chosen.paths))
    if folders > 1 or len(chosen.paths) > 2 or (len(chosen.paths) == 1 and chosen.baseline is None):
        what = "nothing is expected" if len(chosen.paths) == 1 else f"{len(chosen.paths)} paths are given"
        what = f"{folders} experiments are given" if folders > 1 else what
        raise UsageError(
            f"ranksight check: {what}",
            "write ranksight check EXPECTATIONS.toml EXPERIMENT, or EXPERIMENT --baseline EARLIER",
        )
    return chosen


def run(args: argparse.Namespace) -> int:
    """Check, print, write the report; 3 on a violation, 4 where evidence is insufficient."""
    from ranksight.reports.checks import command, commands
    from ranksight.reports.junit import junit, not_checked

    if args.junit is not None:
        check_output(args.junit, args.force)
    try:
        result = _checked(args)
    except RanksightError as error:
        # A build server that shows the report shows why there is none.
        if args.junit is not None:
            write_output(args.junit, not_checked(str(error)))
        if args.github:
            print(command("error", "ranksight check", str(error)))
        raise
    if args.junit is not None:
        write_output(args.junit, junit(result))
    if args.github:
        print("".join(f"{line}\n" for line in commands(result)), end="")
    if not args.quiet:
        _print(result, args)
    return result.exit_code


def _checked(args: argparse.Namespace) -> Result:
    """What came of the check."""
    from ranksight.analysis.expectations.checking import check
    from ranksight.analysis.expectations.document import Study, read_study
    from ranksight.core.experiment import read

    study = read_study(args.paths[0]) if len(args.paths) == 2 else Study(())
    if args.upper:
        study = replace(study, upper=True)
    metrics = args.metric or None
    return check(
        study,
        read(args.paths[-1]),
        targets=args.asked or None,
        baseline=None if args.baseline is None else read(args.baseline),
        metrics=metrics,
    )


def _print(result: Result, args: argparse.Namespace) -> None:
    from ranksight.reports.checks import COLUMNS, blocks, rows, to_dict
    from ranksight.reports.terminal import next_step, show

    if args.format == "json":
        print_document(to_dict(result))
    elif args.format == "csv":
        _separated.write(COLUMNS, ([row[name] for name in COLUMNS] for row in rows(result)))
    else:
        show(*blocks(result), "", next_step(_next(result, args)))


def _next(result: Result, args: argparse.Namespace) -> str:
    experiment = args.paths[-1]
    metric = next((each.metric for each in result.findings if each.verdict != "total"), "")
    if result.exit_code:
        return shell_line("ranksight", "fit", experiment, *(["--metric", metric] if metric else []))
    return shell_line("ranksight", "fit", experiment)
