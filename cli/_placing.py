"""Where the ranks asked for will run: options of the verbs that ask a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from ranksight.model.model import Model


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--placement",
        choices=("compact", "scattered"),
        help="how ranks will be placed on the memory domains of a node (default: as they were measured)",
    )
    parser.add_argument("--ranks-per-node", type=int, metavar="N", help="ranks on a full node (default: as measured)")
    parser.add_argument(
        "--distribution",
        choices=("block", "cyclic"),
        help="how ranks will be dealt out to nodes: one node after the other, or in turn (default: block)",
    )


def placed(model: Model, args: argparse.Namespace) -> Model:
    """The model with its ranks where the options put them; InputError where it knows nothing of that."""
    return model.placed(args.placement, args.ranks_per_node, args.distribution)
