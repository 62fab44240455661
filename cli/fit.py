"""Learn how every metric of every kernel of an experiment grows with its parameters.

  ranksight fit heat.exp -o heat.model.json
  ranksight fit heat.exp --metric time --verify largest

Each function is chosen out of sample, with a constant among the candidates, and carries its uncertainty; what the
measurements cannot carry is marked insufficient. The next step is 'ranksight predict MODEL --ranks N'.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksight._files import check_output
from ranksight.errors import UsageError
from ranksight.experiment import WHOLE
from ranksight.reports.terminal import Block, Cell, Column, Table, Text, next_step, show
from ranksight.units import counted, in_full

if TYPE_CHECKING:
    from ranksight.experiment import Experiment
    from ranksight.model.model import Model
    from ranksight.model.series.series import Series

REPETITIONS = ("auto", "mean", "median", "min", "max", "q1", "gmean")
SHOWN = 40
"""Functions that a table shows."""
FIRST = ("time", "cycles", "instructions", "messages", "bytes_sent", "loads", "bytes_mem")
"""Metrics that a table begins with."""
LIGHT = 0.005
"""Share of a metric below which a table leaves a kernel out."""
FEW = 6
"""Kernels of a metric that a table shows where all are light."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "experiment", type=Path, nargs="?", metavar="EXPERIMENT", help="folder made by 'measure' or 'import'"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="MODEL", help="the model's file (default: EXPERIMENT with .model.json)"
    )
    parser.add_argument(
        "--metric", action="append", default=[], metavar="NAME[,NAME]", help="only these metrics; may be repeated"
    )
    parser.add_argument(
        "--reduce",
        choices=REPETITIONS,
        default="auto",
        help="how repetitions become one value (default: what suits their scatter)",
    )
    parser.add_argument(
        "--ranks-reduce",
        action="append",
        default=[],
        metavar="[METRIC=]HOW",
        help="how ranks become one value: mean, max, sum, min, median, q1, gmean (default: each metric's own)",
    )
    parser.add_argument(
        "--space", default="default", metavar="NAME", help="search space (default: default); 'list' names them"
    )
    parser.add_argument(
        "--verify", choices=("largest",), help="keep the largest configuration back and tell the error there"
    )
    parser.add_argument(
        "--platform",
        metavar="NAME",
        help="machine that was measured, by name or file: gives latencies to the resource equation and a network to "
        "the messages (default: generic, where loads by cache level were counted)",
    )
    parser.add_argument(
        "--placement",
        choices=("compact", "scattered"),
        default="compact",
        help="how ranks were placed on the memory domains of a node (default: compact, one domain after the other)",
    )
    parser.add_argument(
        "--ranks-per-node", type=int, metavar="N", help="ranks on a full node (default: one on every core)"
    )
    parser.add_argument(
        "--cores-per-domain",
        type=int,
        metavar="N",
        help="cores that share a memory interface, where no platform tells; its bandwidth is then read off the curve",
    )
    parser.add_argument(
        "--units",
        metavar="NAME=FORMULA",
        help="whole units that the work comes in, such as 'elements=6*size^2': the fullest rank has ceil(units/ranks)",
    )
    parser.add_argument(
        "--derive",
        action="append",
        default=[],
        metavar="NAME=FORMULA",
        help="a parameter computed from those of the runs, such as 'x=size^3/ranks', in place of those that its "
        "formula names, ranks apart; may be repeated",
    )
    parser.add_argument(
        "--iterations",
        metavar="PARAMETER",
        help="the parameter that counts iterations: a run is a set-up and as much again with each, and few tell many",
    )
    parser.add_argument(
        "--volume",
        action="append",
        default=[],
        metavar="KERNEL=FORMULA",
        help="how what a kernel sends grows beyond what was measured, such as 'halo=size^2'; may be repeated",
    )
    parser.add_argument(
        "--equation",
        choices=("closed", "literal"),
        default="closed",
        help="of kernels' times: closed meets every measured time (default); literal is the paper's, which counts "
        "stalls twice, to compare",
    )
    parser.add_argument("--no-guide", action="store_true", help="do not let requirements guide the form of times")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes for very many series (default: 1)")
    parser.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler in place of processes: tcp://node1:8786")
    parser.add_argument(
        "--format", choices=("table", "json", "csv"), default="table", help="how to print (default: table)"
    )
    parser.add_argument("--force", action="store_true", help="replace the output file")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def run(args: argparse.Namespace) -> int:
    """Fit, store, print; 4 when no series carries an answer."""
    from ranksight.model.spaces import SPACES

    if args.space == "list":
        print("\n".join(SPACES))
        return 0
    if args.experiment is None:
        raise UsageError("ranksight fit: no EXPERIMENT is given", "name the folder that 'measure' or 'import' made")
    if args.jobs < 1:
        raise UsageError(f"--jobs is {args.jobs}", "give at least 1")
    output = args.output or args.experiment.with_name(args.experiment.name + ".model.json")
    check_output(output, args.force)
    if args.space not in SPACES:
        SPACES[args.space]  # raises with the nearest names

    from ranksight.cli._progress import fitting
    from ranksight.experiment import read
    from ranksight.model.assembly import assemble, assumed_platform, domains_of
    from ranksight.model.structure.coordinates import Coordinates
    from ranksight.model.structure.wholeunits import WholeUnits
    from ranksight.platforms import load

    experiment = read(args.experiment)
    metrics = [name for given in args.metric for name in given.split(",") if name] or None
    platform = assumed_platform(experiment) if args.platform is None else load(args.platform)
    settings = {"space": args.space, "over_repetitions": args.reduce, "guide": not args.no_guide}
    if args.iterations is not None:
        settings["iterations"] = args.iterations
    named = None if args.platform is None else platform
    domains = domains_of(named, args.placement, args.ranks_per_node, args.cores_per_domain)
    coordinates = Coordinates.of(experiment, args.derive)
    over = experiment.parameters if coordinates is None else coordinates.parameters
    units = None if args.units is None else WholeUnits.read(args.units, over)
    with fitting(args.quiet):
        model, series = assemble(
            experiment,
            metrics,
            platform=platform,
            domains=domains,
            equation=args.equation,
            units=units,
            coordinates=coordinates,
            volumes=args.volume,
            over_ranks=_over_ranks(args.ranks_reduce),
            jobs=args.jobs,
            dask=args.dask,
            **settings,
        )
    model.save(output, force=args.force)
    if not args.quiet:
        checked = _verified(series, settings) if args.verify else None
        machine = "" if args.platform is not None or args.cores_per_domain is not None else _machine(experiment)
        _print(model, series, args, output, checked, machine)
    return 0 if (model.fitted.status == 0).any() else 4


def _machine(experiment: Experiment) -> str:
    """What names the description of the machine that was measured; empty where none is, or runs are of several."""
    from ranksight.platforms.recognition import measured_on

    told = {tuple(run.environment.get(key, "") for key in ("processor", "cores")) for run in experiment.runs}
    if len(told) != 1:
        return ""
    known = measured_on(dict(zip(("processor", "cores"), told.pop(), strict=True)))
    return f"measured on {known.title}: --platform {known.name} tells its caches and memory domains" if known else ""


def _over_ranks(given: list[str]) -> Any:
    if not given:
        return None
    named = dict(text.split("=", 1) for text in given if "=" in text)
    plain = [text for text in given if "=" not in text]
    if plain and (named or len(plain) > 1):
        raise UsageError("--ranks-reduce names one reduction for all metrics, or METRIC=HOW for each")
    return plain[0] if plain else named


def _verified(series: Series, settings: dict[str, Any]) -> dict[str, Any]:
    """What functions without the largest configuration say there: overall, and the error of each series in order."""
    import numpy as np

    from ranksight.model.fitting.verify import verify_largest

    checked = verify_largest(series, **settings)
    known = np.isfinite(checked.error)
    errors = np.where(known.any(axis=1), np.where(known, checked.error, -np.inf).max(axis=1), np.nan)
    found = checked.error[known]
    return {
        "parameter": checked.parameter,
        "value": float(checked.points[:, series.parameters.index(checked.parameter)].max()),
        "median_error": float(np.median(found)) if len(found) else float("nan"),
        "largest_error": float(found.max()) if len(found) else float("nan"),
        "covered": float(checked.covered[known].mean()) if len(found) else float("nan"),
        "errors": errors.tolist(),
    }


def _rows(model: Model) -> list[dict[str, Any]]:
    from ranksight.model.fitting.composition import contradictions
    from ranksight.model.search.basis import AHEAD
    from ranksight.model.uncertainty.forecast import REASONS

    fitted = model.fitted
    remarks = fitted.remarks()
    for i, text in contradictions(fitted, model.along_ties(AHEAD * model.training.max(axis=0)[None])[0]).items():
        remarks[i] = "; ".join(filter(None, (remarks.get(i), text)))
    rows = []
    for i, (kernel, metric) in enumerate(zip(fitted.kernels, fitted.metrics, strict=True)):
        reason = REASONS[fitted.status[i]].format(points=fitted.count[i], parameters=len(fitted.parameters))
        rows.append(
            {
                "kernel": kernel,
                "metric": metric,
                "formula": model.functions.formula(i),
                "weight": float(fitted.weight[i, 0]),
                "coefficients": [{"term": t, "value": c, "standard_error": e} for t, c, e in fitted.coefficients(i)],
                "adjusted_r2": fitted.adjusted_r2[i].item(),
                "out_of_sample_error": fitted.press[i].item(),
                "scatter": float(fitted.within[i]),
                "repetitions_needed": float(fitted.repetitions[i]),
                "points": int(fitted.count[i]),
                "remark": remarks.get(i, ""),
                "share": float(model.shares[i]),
                "status": "insufficient" if fitted.status[i] else "ok",
                "reason": reason,
            }
        )
    return rows


def _print(
    model: Model,
    series: Series,
    args: argparse.Namespace,
    output: Path,
    checked: dict[str, Any] | None,
    machine: str,
) -> None:
    rows = _rows(model)
    if checked is not None:
        for row, error in zip(rows, checked.pop("errors"), strict=True):
            row["error_at_largest"] = error
    if args.format == "json":
        content = {
            "schema_version": 1,
            "model": str(output),
            "parameters": list(model.parameters),
            "functions": _plain(rows),
            **({} if checked is None else {"verification": _plain(checked)}),
        }
        json.dump(content, sys.stdout, indent=1, allow_nan=False)
        print()
        return
    columns = (
        "kernel",
        "metric",
        "formula",
        "adjusted_r2",
        "out_of_sample_error",
        "share",
        "scatter",
        "repetitions_needed",
        "points",
        "remark",
        "status",
        "reason",
        *(() if checked is None else ("error_at_largest",)),
    )
    if args.format == "csv":
        import csv

        writer = csv.DictWriter(sys.stdout, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: "" if isinstance(v, float) and v != v else v for k, v in row.items()} for row in rows)
        return
    _table(rows, checked)
    asked = " ".join(
        f"--{name} {in_full(value)}"
        for name, value in zip(model.parameters, model.along_ties(2 * model.training.max(axis=0)[None])[0], strict=True)
    )
    said = f"{counted(len(rows), 'function')} of {counted(len(series.points), 'configuration')} in {output}"
    known = [Text(machine, hanging=0)] if machine else []
    show("", Text(said, hanging=0), *known, next_step(f"ranksight predict {output} {asked}"))


def _order(row: dict[str, Any]) -> tuple[int, str, float]:
    """Metrics that are asked for most first, then the largest kernels."""
    name = row["metric"]
    return (FIRST.index(name) if name in FIRST else len(FIRST), name, -row["share"])


def _table(rows: list[dict[str, Any]], checked: dict[str, Any] | None) -> None:
    """A table for each metric, the largest kernels first; what is refused stands below, by its reason.

    Kernels without weight in a metric are left to the other formats.
    """
    shown: list[dict[str, Any]] = []
    for _, group in itertools.groupby(sorted(rows, key=_order), key=lambda row: row["metric"]):
        mine = list(group)
        shown += [row for row in mine if row["share"] >= LIGHT or row["kernel"] == WHOLE] or mine[:FEW]
    shown = shown[:SHOWN]
    blocks: list[Block] = []
    for metric in dict.fromkeys(row["metric"] for row in shown):
        here = [row for row in shown if row["metric"] == metric]
        reasons: dict[str, list[str]] = {}
        lines: list[list[str | Cell]] = []
        for row in here:
            error = f"{row['out_of_sample_error']:.1%}" if row["out_of_sample_error"] < 10 else "-"
            text = row["formula"] + (f"  ({row['remark']})" if row["remark"] else "")
            function = Cell(text) if row["status"] == "ok" else Cell("insufficient", "yellow")
            if row["status"] != "ok":
                reasons.setdefault(row["reason"], []).append(str(row["kernel"]))
            share = "" if row["kernel"] == WHOLE else f"{row['share']:.1%}"
            lines.append([str(row["kernel"]), share, error, function])
        columns = [
            Column("kernel", "name"),
            Column("share", spare=2),
            Column("error", spare=1),
            Column("function", "text"),
        ]
        blocks += [Text(metric, style="bold"), Table(columns, lines, 2)]
        blocks += [
            Text(f"insufficient: {', '.join(who)}: {reason}", 2, style="yellow") for reason, who in reasons.items()
        ]
        blocks.append("")
    if len(rows) > len(shown):
        blocks += [f"... and {len(rows) - len(shown)} more; --format csv prints all", ""]
    if checked is not None:
        told = (
            f"without {checked['parameter']} = {in_full(checked['value'])}: predicted there with a median error of "
            f"{checked['median_error']:.1f} %, largest {checked['largest_error']:.1f} %; "
            f"{checked['covered']:.0%} of the values lie in their 90 % intervals"
        )
        blocks += [told, ""]
    show(*blocks[:-1])


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value - value != 0:
        return None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
