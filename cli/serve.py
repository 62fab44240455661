"""Show the report of a model in a browser, and let its fields ask the model live.

  ranksight serve heat.model.json
  ranksight serve heat.model.json --experiment heat.exp --ranks 4096 --size 256 --port 8123

The page is that of 'ranksight report', at the printed address. Other users of the machine need the token in the
address; nothing listens on the network. From a cluster, forward the port: ssh -L 8123:127.0.0.1:8123 cluster. Ctrl-C
ends it.
"""

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
