"""Where the ranks asked for will run, on which machine, and how collectives are done: options of the verbs that ask a
model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.core.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from ranksight.model.fitted_model import Model


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
    topology = None
    if args.topology is not None:
        from ranksight.comm.topology.described import load

        topology = load(args.topology)
    args.asked.update(varied(model, args))
    here = args.placement, args.ranks_per_node, args.distribution
    return on_machine(model, args).with_algorithms(algorithms).placed(*here, topology)


def varied(model: Model, args: argparse.Namespace) -> dict[str, list[float]]:
    """What ``--ranks-per-node`` gives to a parameter of that name, which the runs varied: it is no option then."""
    named = next((name for name in model.parameters if name.replace("-", "_") == "ranks_per_node"), None)
    if named is None or args.ranks_per_node is None:
        return {}
    if named in args.asked:
        raise UsageError(f"--ranks-per-node and --{named} are one parameter", "give one of them")
    given, args.ranks_per_node = float(args.ranks_per_node), None
    return {named: [given]}


def where(args: argparse.Namespace) -> tuple[str, ...]:
    """The words of a line that say on which machine its ranks are, and how they are placed."""
    named = {"--on": args.on, "--instructions": args.instructions, "--placement": args.placement,
             "--ranks-per-node": args.ranks_per_node}  # fmt: skip
    return tuple(str(word) for name, value in named.items() if value is not None for word in (name, value))


def on_machine(model: Model, args: argparse.Namespace) -> Model:
    """The model on the machine that the options name."""
    if args.on is None:
        if args.instructions is not None:
            raise UsageError("--instructions is of another machine", "name it with --on PLATFORM")
        return model
    if "," in args.on and not Path(args.on).is_file():
        raise UsageError("--on names several machines", f"compare them: ranksight compare MODEL --on {args.on[:80]}")
    from ranksight.analysis.comparison.machines import on

    return on(model, args.on, instructions=args.instructions)
