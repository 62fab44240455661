"""``compare MODEL --on A,B,C``: the same job on several machines."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ranksight.cli import _placing, _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import options, shell_line
from ranksight.core.errors import UsageError
from ranksight.core.files import check_output

if TYPE_CHECKING:
    from ranksight.core.arrays import Array
    from ranksight.model.energy.prices import Prices
    from ranksight.model.fitted_model import Model

LEVEL = 0.9
"""Probability of the intervals, that of predictions, where none is asked for."""


def which_machine(args: argparse.Namespace) -> int:
    """Predict the job on every machine and print a table; 4 when it is predicted on none."""
    from ranksight.analysis.comparison.machines import offers
    from ranksight.model.fitted_model import Model
    from ranksight.platforms import load
    from ranksight.reports.machines import blocks, rows
    from ranksight.reports.pasted import pasted
    from ranksight.reports.terminal import next_step, show

    if not args.on:
        raise UsageError("one thing is named, nothing to compare it with", "give AFTER, or machines as --on A,B")
    if args.after is not None or args.before.is_dir():
        raise UsageError("--on compares machines for one model", "write: ranksight compare MODEL --on A,B --ranks N")
    if args.threshold is not None or args.metric or args.kernel or args.rename:
        raise UsageError(
            "--on compares machines by the program's time", "leave --threshold, --metric, --kernel, --rename"
        )
    if args.output is not None:
        check_output(args.output, args.force)
    model = Model.load(args.before)
    found = offers(
        model,
        args.on,
        _points(model, args),
        level=args.level or LEVEL,
        instructions=args.instructions,
        placement=args.placement,
        ranks_per_node=args.ranks_per_node,
        power=_stated("power", args.power),
        price=_priced(args.price, args.on),
    )
    if args.output is not None:
        from ranksight.reports.html.page import write
        from ranksight.reports.machines import page

        write(page(model.application, found), args.output, force=args.force)
    if args.format == "json":
        print_document(
            {"schema_version": 1, "application": model.application, "machines": [f.to_dict() for f in found]}
        )
    elif args.format == "csv":
        columns, lines = rows(found)
        _separated.write(columns, lines)
    elif args.format != "table":
        sys.stdout.write(pasted(blocks(found), args.format))
    else:
        show(*blocks(found))
        best = next((each for each in found if each.status == "ok"), None)
        if best is not None and not args.quiet:
            stated = {load(name).name: name for name in args.on}[best.machine]
            placed = _placing.where(argparse.Namespace(**{**vars(args), "on": stated}))
            line = shell_line("ranksight", "diagnose", args.before, *options(best.configuration), *placed)
            show("", next_step(line))
    return 0 if any(each.status == "ok" for each in found) else 4


def _points(model: Model, args: argparse.Namespace) -> Array:
    """The configurations asked for; those of the largest measured values where none are."""
    if args.asked:
        return model.combinations(args.asked)
    largest: Array = model.training.max(axis=0)
    return largest[None]


def _stated(what: str, given: list[str]) -> dict[str, float]:
    """Numbers by platform."""
    found: dict[str, float] = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = float("nan")
        if not equals or not name or not 0 <= value < 1e12:
            raise UsageError(f"--{what} {text[:80]!r} is not PLATFORM=NUMBER", f"such as --{what} grace=650")
        found[name] = value
    return found


def _priced(stated: list[str], machines: list[str]) -> dict[str, Prices]:
    """Prices by platform; several of one platform add up, and one without a platform is that of all that have no other
    price of the same thing."""
    from ranksight.cli._saying import warn
    from ranksight.model.energy.prices import Prices
    from ranksight.platforms import load

    common = [text for text in stated if "=" not in text]
    texts: dict[str, list[str]] = {load(name).name: [] for name in machines} if common else {}
    for text in stated:
        name, equals, price = text.partition("=")
        if equals and not name:
            raise UsageError(
                f"--price {text[:80]!r} is not PLATFORM=PRICE", "such as --price 'grace=1.5 EUR/node-hour'"
            )
        if equals:
            texts.setdefault(name, []).append(price)
    others = Prices.read(common, "--price")
    prices = {name: Prices.read(each, f"--price {name}", others) for name, each in texts.items()}
    priced = {name: each for name, each in prices.items() if each is not None}
    for text in dict.fromkeys(each.remark for each in priced.values()):
        warn(text)
    return priced
