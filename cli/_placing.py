"""Where the ranks asked for will run, and how collectives are done: options of the verbs that ask a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranksight.cli._parser import several
from ranksight.core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from ranksight.model.fitted_model import Model


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--placement",
        choices=("compact", "scattered"),
        help="placement of ranks on the memory domains of a node (default: as measured)",
    )
    parser.add_argument("--ranks-per-node", type=int, metavar="N", help="ranks on each node (default: as measured)")
    parser.add_argument(
        "--distribution",
        choices=("block", "cyclic"),
        help="distribution of ranks over nodes: one node after the other, or in turn (default: block)",
    )
    several(
        parser,
        "--algorithm",
        "OPERATION=NAME",
        "algorithm of a collective operation, such as 'allreduce=ring' (default: that of the "
        "platform's [network], otherwise inferred from measured times)",
    )


def placed(model: Model, args: argparse.Namespace) -> Model:
    """The model with its ranks where the options put them, and the algorithms that they state; InputError where it
    knows nothing of that."""
    algorithms: dict[str, str] = {}
    for given in args.algorithm:
        operation, equals, name = given.partition("=")
        if not equals or not operation or not name:
            raise UsageError(f"--algorithm {given!r} is not an OPERATION=NAME", "such as --algorithm allreduce=ring")
        if operation in algorithms:
            raise UsageError(f"--algorithm states {operation} twice", "state it once")
        algorithms[operation] = name
    return model.with_algorithms(algorithms).placed(args.placement, args.ranks_per_node, args.distribution)
