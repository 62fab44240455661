"""Show the report of a model in a browser, and let its fields ask the model live."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from ranksight.cli import report
from ranksight.cli._parser import Parser


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the line; parameters of the target are given as for 'report'."""
    args = report.parse(parser, arguments)
    args.expectations, args.author = None, ""
    return args


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from ranksight.reports.serving import Server

    context = replace(report.context_of(args), live=True)
    with Server(context, args.port, args.title) as server:
        if not args.quiet:
            print(context.answer)
        print(server.url, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
