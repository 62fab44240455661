"""List the machines that are described, show one with its sources, or compare two."""

from __future__ import annotations

import argparse

from ranksight.cli._document import print_document
from ranksight.cli._lines import shell_line
from ranksight.core.errors import InputError, UsageError
from ranksight.reports.terminal import next_step, show


def run(args: argparse.Namespace) -> int:
    """Print what is described."""
    from ranksight.platforms import load, names
    from ranksight.platforms.writing import dumps
    from ranksight.reports.platforms import compared, comparison, listed, listing

    given = list(args.platforms)
    if len(given) > 2:
        raise UsageError(f"{len(given)} platforms are named", "name none, one or two")
    if len(given) == 1:
        platform = load(given[0])
        print_document({"schema_version": 1, **listed(platform)}) if args.format == "json" else print(
            dumps(platform), end=""
        )
        return 0
    if len(given) == 2:
        one, other = load(given[0]), load(given[1])
        if one.name == other.name and one != other:
            raise InputError(f"two machines are named {one.name}, and differ", "give one of them another name")
        if args.format == "json":
            print_document({"schema_version": 1, "platforms": [one.name, other.name], "ratios": compared(one, other)})
            return 0
        show(*comparison(one, other))
        if not args.quiet:
            show("", next_step(f"ranksight predict MODEL --ranks N --on {other.name}"))
        return 0
    machines = [load(name) for name in names()]
    if args.format == "json":
        print_document({"schema_version": 1, "platforms": [listed(each) for each in machines]})
        return 0
    show(*listing(machines))
    if not args.quiet:
        show("", next_step(shell_line("ranksight", "platforms", machines[0].name)))
    return 0
