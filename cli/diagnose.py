"""Show what bounds each kernel, how it scales, which becomes the largest and where, and what would help."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.cli import _placing, _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import options, shell_line
from ranksight.cli._values import parse
from ranksight.core.errors import UsageError

if TYPE_CHECKING:
    from ranksight.analysis.diagnosis.diagnosing import Diagnosis
    from ranksight.core.arrays import Array
    from ranksight.model.fitted_model import Model

__all__ = ["parse", "run"]

BEYOND = 16  # ranks over the most measured where none are asked for


def run(args: argparse.Namespace) -> int:
    """Diagnose and print; 4 when nothing is decided."""
    from ranksight.analysis.diagnosis.diagnosing import diagnose
    from ranksight.analysis.diagnosis.sent import sent_only
    from ranksight.model.fitted_model import Model

    if args.top < 1:
        raise UsageError(f"--top {args.top}", "give 1 or more")
    model = _placing.placed(Model.load(args.model), args)
    asked = _asked(model, args.asked)
    points = model.combinations(asked)
    if args.network:
        return _network(model, points, args)
    if args.places is not None:
        raise UsageError("--places needs --network", "add --network")
    if sent_only(model):
        return _sent(model, points, args)
    found = diagnose(model, points, level=args.level, kernels=args.kernel or None, of_runs=model.of_runs(asked))
    if args.format == "json":
        print_document(found.to_dict())
    elif args.format == "csv":
        from ranksight.reports.diagnosis import frame_of

        _separated.write_frame(frame_of(found, args.table))
    elif args.format != "table":
        from ranksight.reports.diagnosis import blocks_of
        from ranksight.reports.pasted import pasted

        sys.stdout.write(pasted(blocks_of(found, args.table, args.top), args.format))
    else:
        _print(found, args)
    return 0 if (found.verdicts()["verdict"] != "undecided").any() else 4


def _sent(model: Model, points: Array, args: argparse.Namespace) -> int:
    """Print what operations send, of a model of messages alone; 4 when nothing is decided."""
    from ranksight.analysis.diagnosis.sent import sent_table
    from ranksight.model.plaindata import plain
    from ranksight.model.structure.coordinates import known, whole_ranks
    from ranksight.reports.pasted import pasted
    from ranksight.reports.sent import blocks_of_sent
    from ranksight.reports.terminal import show

    whole_ranks(model.parameters, points, "{} is not a number of ranks", "ranks are whole numbers from 1")
    table = sent_table(model, points, args.level)
    if args.kernel:
        known("kernel", args.kernel, tuple(table["kernel"].unique()))
        table = table[table["kernel"].isin(args.kernel)]
    if args.format == "json":
        print_document({"sent": [plain(row) for row in table.to_dict("records")]})
    elif args.format == "csv":
        _separated.write_frame(table)
    elif args.format != "table":
        sys.stdout.write(pasted(blocks_of_sent(table, model.parameters, args.level, args.top), args.format))
    else:
        show(*blocks_of_sent(table, model.parameters, args.level, args.top))
    return 0 if (table["verdict"] != "undecided").any() else 4


def _network(model: Model, points: Array, args: argparse.Namespace) -> int:
    """Replay the messages at every configuration with several ranks."""
    from ranksight.analysis.diagnosis.network import diagnose_network
    from ranksight.comm.topology.places import read_places
    from ranksight.reports.terminal import show

    if args.format not in ("table", "json"):
        raise UsageError(f"--network is not printed as {args.format}", "use --format table or json")
    places = None if args.places is None else read_places(args.places)
    found = [diagnose_network(model, point, places) for point in points]
    if args.format == "json":
        print_document({"network": [one.to_dict() for one in found]})
    else:
        for one in found:
            show(*one.sentences(), "")
    return 0


def _asked(model: Model, asked: dict[str, list[float]]) -> dict[str, list[float]]:
    """What was asked for; else the largest values measured, and ranks also far beyond."""
    names, seen = model.parameters, model.training
    if model.coordinates and not set(asked) & set(model.coordinates.formulas):
        names, seen = model.coordinates.given, model.coordinates.seen
    most = dict(zip(names, seen.max(axis=0).tolist(), strict=True))
    given: dict[str, list[float]] = {name: [value] for name, value in most.items() if name not in model.followers}
    if "ranks" in most:
        given["ranks"] = [most["ranks"], BEYOND * most["ranks"]]
    return given | asked


def _print(found: Diagnosis, args: argparse.Namespace) -> None:
    from ranksight.reports.diagnosis import blocks
    from ranksight.reports.terminal import next_step, show

    show(*blocks(found, args.top))
    if not args.quiet:
        show("", next_step(_next(found, args.model, _placing.where(args))))


def _next(found: Diagnosis, model: Path, placed: tuple[str, ...]) -> str:
    """What to type: counters or a description of the machine where they decide more, runs where the evidence ends, or
    a forecast."""
    from ranksight.analysis.diagnosis.ceilings import NAMES
    from ranksight.analysis.diagnosis.verdicts import REST_UNKNOWN

    rows = found.verdicts()
    heavy = rows[rows["share"] >= 0.05]
    at = options(dict(zip(found.model.parameters, found.target.tolist(), strict=True)))
    names, moved = found.model.parameters, bool(found.model.equation.machine)
    if not moved and "ranks" in names and len(set(found.model.training[:, names.index("ranks")].tolist())) == 1:
        return _plan(found, model, placed)
    if (heavy["verdict"] == "undecided").any():
        ceilings = found.evidence.ceilings
        blind = (heavy["unknown"] > 0.5) | heavy["reason"].str.contains(REST_UNKNOWN, regex=False)
        if blind.any():
            return "ranksight doctor  # loads by cache level or stalls show what bounds a kernel"
        contested = " ".join(heavy.loc[heavy["verdict"] == "undecided", "reason"])
        if ceilings is not None and any(
            name in contested for name, known in zip(NAMES, ceilings.certain, strict=True) if not known
        ):
            return "ranksight calibrate -o this-node.toml  # on such a node; then fit with --platform this-node.toml"
        if not moved:
            return _plan(found, model, placed)
    return shell_line("ranksight", "predict", model, *at, "--metric", "time", *placed)


def _plan(found: Diagnosis, model: Path, placed: tuple[str, ...]) -> str:
    """The line that plans runs; where none can be planned, the one that predicts."""
    from ranksight.cli._continuing import experiment_of, plan_line

    target = dict(zip(found.model.parameters, found.target.tolist(), strict=True))
    asked = {name: [value] for name, value in target.items()}
    line = plan_line(found.model, model, asked, experiment_of(found.model, model))
    return line or shell_line("ranksight", "predict", model, *options(target), *placed)
