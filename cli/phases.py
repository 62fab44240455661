"""Find the phases that a program repeats, their weights, and its time as the sum of phase time x weight."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ranksight.cli import _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import options, shell_line
from ranksight.cli._values import WRITE, values
from ranksight.core.errors import UsageError
from ranksight.core.units import finite, format_si, in_full, in_words
from ranksight.reports.terminal import Block, Table, Text, next_step, show

CALLS = 216  # characters of a phase's calls that are shown

if TYPE_CHECKING:
    from ranksight.analysis.phases.analysis import Analysis
    from ranksight.analysis.phases.pet import Times


def _ranks(text: str) -> tuple[float, ...]:
    try:
        ranks = tuple(values(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; {WRITE}") from None
    if not all(1 <= value < 1e9 and value.is_integer() for value in ranks):
        raise argparse.ArgumentTypeError(f"{text!r}: ranks are whole numbers from 1")
    return ranks


def _setting(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a NAME=VALUE with a number") from None


TYPES = {"ranks": _ranks, "setting": _setting}


def run(args: argparse.Namespace) -> int:
    """Analyse and print; insufficient evidence ends with its own exit code."""
    from ranksight.analysis.phases.weights import RULES

    if args.admissible == "list":
        print("\n".join(RULES))
        return 0
    if args.admissible is not None and args.admissible not in RULES:
        raise UsageError(f"--admissible {args.admissible!r} is not a rule", f"known: {', '.join(RULES)}")

    from ranksight.analysis.phases.analysis import analyse
    from ranksight.core.experiment import read
    from ranksight.platforms import load

    analysis = analyse(
        read(args.experiment),
        load(args.platform),
        workload=dict(args.workload) or None,
        clock=args.time,
        rule=args.admissible,
    )
    times = analysis.pet.at(args.ranks, args.level) if args.ranks else None
    if args.format == "json":
        print_document(_content(analysis, times, args))
    elif args.format == "csv":
        _csv(analysis, times)
    else:
        _table(analysis, times, args)
    return 0


def _content(analysis: Analysis, times: Times | None, args: argparse.Namespace) -> dict[str, Any]:
    content: dict[str, Any] = {
        "schema_version": 1,
        "workload": dict(analysis.workload),
        "smaller_workload": dict(analysis.small),
        "ranks": list(analysis.ranks),
        "time": analysis.clock,
        "coverage": analysis.coverage,
        "unrelated": analysis.unrelated,
        "notes": list(analysis.notes),
        "phases": [_phase(phase) for phase in analysis.phases],
    }
    if times is not None:
        content["predictions"] = [
            {
                "ranks": float(times.ranks[k]),
                "time": float(times.total[k]),
                "interval": [finite(times.lower[k]), finite(times.upper[k])],
                "level": args.level,
                "computation": float(times.computation[:, k].sum()),
                "communication": finite(times.communication[:, k].sum()),
            }
            for k in range(len(times.ranks))
        ]
    if args.instructions:
        content["instructions"] = [
            {"phase": number, "group": group, **row} for number, group, row in _instruction_rows(analysis, args.ranks)
        ]
    return content


def _phase(phase: Any) -> dict[str, Any]:
    groups = []
    for group in phase.groups:
        point = group.distant
        groups.append(
            {
                "factor": group.power.factor,
                "exponent": group.power.exponent,
                "plain_exponent": group.plain.exponent,
                "spread_of_instructions": None if group.table is None else finite(group.table.spread),
                "constant": group.constant,
                "distant": None
                if point is None
                else {name: getattr(point, name) for name in point.__dataclass_fields__},
                "reason": group.reason,
            }
        )
    return {
        "phase": phase.number,
        "calls": phase.label,
        "share": phase.share,
        "weight": phase.weight.to_dict(),
        "groups": groups,
        "communication": [finite(value) for value in phase.communication],
        "notes": list(phase.notes),
    }


def _csv(analysis: Analysis, times: Times | None) -> None:
    import numpy as np

    head = ["phase", "calls", "share", "weight", "factor", "exponent", "distant_ranks"]
    ranks = () if times is None else times.ranks
    lines: list[list[object]] = []
    for at, phase in enumerate(analysis.phases):
        group = phase.groups[0]
        seconds = [] if times is None else times.computation[at] + np.nan_to_num(times.communication[at])
        point = "" if group.distant is None else group.distant.ranks
        power = [group.power.factor, group.power.exponent]
        lines.append([phase.number, phase.label, phase.share, phase.weight.formula, *power, point, *seconds])
    _separated.write([*head, *(f"seconds_at_{in_full(p)}" for p in ranks)], lines)


def _table(analysis: Analysis, times: Times | None, args: argparse.Namespace) -> None:
    workload = in_words(analysis.workload)
    traced = ", ".join(map(in_full, analysis.ranks))
    clock = "measured" if analysis.clock == "measured" else f"simulated on {analysis.machine.name}"
    blocks: list[Block] = []
    if not args.quiet:
        head = f"{workload + '; ' if workload else ''}traced at {traced} ranks; time of computation is {clock}"
        blocks += [Text(head, style="bold"), ""]
    calls = [[str(phase.number), _cut(phase.label, CALLS)] for phase in analysis.phases]
    blocks += [Table(["phase", "calls of MPI:text"], calls), ""]
    rows = []
    for phase in analysis.phases:
        group = phase.groups[0]
        power = f"{format_si(group.power.factor, 's')} p^{group.power.exponent:.3f}"
        point = f"{in_full(group.distant.ranks)} ranks" if group.distant is not None else "-"
        rows.append([str(phase.number), f"{phase.share:.1%}", phase.weight.formula, power, point])
    columns = ["phase", "share", "weight:text", "computation of one:word/1", "distant point:word/2"]
    blocks += [Table(columns, rows), "", f"coverage: {analysis.coverage:.1%} of the run lies in phases that repeat"]
    if analysis.unrelated > 0:
        blocks.append(
            Text(f"unrelated: {analysis.unrelated:.1%} of the run lies in calls of no phase at other rank counts")
        )
    if not args.quiet:
        blocks += _explained(analysis)
    if args.instructions:
        blocks += _instructions(analysis, args.ranks)
    if times is not None:
        blocks += _times(times, args.level, analysis.pet.network)
    if not args.quiet:
        blocks += ["", next_step(_next(analysis, args))]
    show(*blocks)


def _cut(text: str, most: int) -> str:
    """The beginning of a list of calls."""
    return text if len(text) <= most else f"{text[: text.rfind(' ', 0, most)]} ..."


def _explained(analysis: Analysis) -> list[Block]:
    reasons: dict[str, list[str]] = {}
    said: list[Block] = []
    for phase in analysis.phases:
        for group in phase.groups:
            if group.distant is not None:
                point = group.distant
                workload = in_words(analysis.small)
                text = (
                    f"phase {phase.number}: {workload} on {point.measured_ranks} ranks ({point.instructions:.7g} "
                    f"instructions, {format_si(point.time, 's', 4)}, CPI {point.cpi:.3f}) "
                    f"stands for {in_full(point.ranks)} ranks ({point.difference:.2%} off)"
                )
                said.append(Text(text, 0, 2))
            elif group.reason:
                reasons.setdefault(group.reason, []).append(str(phase.number))
    lines = [
        f"no distant point for phase {', '.join(dict.fromkeys(numbers))}: {reason}"
        for reason, numbers in reasons.items()
    ]
    lines += [f"phase {phase.number}: {note}" for phase in analysis.phases for note in phase.notes]
    lines += [f"note: {note}" for note in analysis.notes]
    return [*said, *(Text(line, 0, 2) for line in lines)]


def _instruction_rows(analysis: Analysis, ranks: Sequence[float]) -> list[tuple[int, int, dict[str, Any]]]:
    rows = []
    for phase in analysis.phases:
        for number, group in enumerate(phase.groups, 1):
            if group.table is None:
                continue
            for row in group.table.frame(ranks or analysis.ranks).to_dict("records"):
                rows.append((phase.number, number, {str(name): value for name, value in row.items()}))
    return rows


def _instructions(analysis: Analysis, ranks: Sequence[float]) -> list[Block]:
    rows = []
    for phase, group, row in _instruction_rows(analysis, ranks):
        counted = [str(row["part"]), f"{row['instructions']:.0f}", f"{row['ranks']:g}", f"{row['weight']:g}"]
        rows.append([str(phase), str(group), *counted, f"{row['displacement']:g}", f"{row['total']:.0f}"])
    columns = ["phase", "group/2", ":word", "instructions", "ranks", "weight", "disp./1", "total"]
    return ["", Table(columns, rows)]


def _times(times: Times, level: float, network: str) -> list[Block]:
    rows = []
    for k, p in enumerate(times.ranks):
        low, high = times.lower[k], times.upper[k]
        interval = f"{format_si(low, 's')} .. {format_si(high, 's')}" if low == low else "none: two points"
        inside = times.communication[:, k].sum()
        said = format_si(inside, "s") if inside == inside else "unknown"
        computed = format_si(times.computation[:, k].sum(), "s")
        rows.append([in_full(p), format_si(times.total[k], "s"), interval, computed, said])
    columns = ["ranks", "PET", f"{level:.0%} interval:word", "computation/2", "in MPI/1"]
    blocks: list[Block] = ["", Table(columns, rows)]
    if not network:
        blocks.append("the time in MPI is not known and not in the sum")
    elif network != "measured":
        blocks.append(f"the time in MPI is that of the messages on the network of platform {network}")
    return blocks


def _next(analysis: Analysis, args: argparse.Namespace) -> str:
    if any(group.constant and group.distant is None for phase in analysis.phases for group in phase.groups) and (
        not analysis.small and analysis.workload
    ):
        name, value = next(iter(analysis.workload.items()))
        smaller = max(value // 4, 1)
        words = ["--distant", *options({name: smaller}), "--ranks", "LIST", "-o", args.experiment]
        return shell_line("ranksight", "measure", *words, "--", "COMMAND")
    if not args.ranks:
        return shell_line("ranksight", "phases", args.experiment, *options({"ranks": 8 * analysis.ranks[-1]}))
    return shell_line("ranksight", "fit", args.experiment)
