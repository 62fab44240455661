"""Printing of predicted message tables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from ranksight.cli import _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import options, shell_line
from ranksight.core.names import short_names
from ranksight.core.units import in_words
from ranksight.reports.terminal import Block, Cell, Column, Table, Text, next_step, show

if TYPE_CHECKING:
    import argparse

    import pandas as pd

    from ranksight.model.fitted_model import Model
    from ranksight.model.messages.table import MessageTable

SCHEMA_VERSION = 1
UNEVEN = 0.01  # smallest relative difference of single ranks from their rule that is reported
NAME = 40  # columns of a kernel's name in running text
LONGEST = 400  # lines of a table for people


def print_messages(model: Model, args: argparse.Namespace) -> int:
    """Predict and print message tables; 4 when no row is predicted."""
    import pandas as pd

    tables = model.messages(level=args.level, **args.asked)
    frames = [_frame(table, args.messages, args.kernel) for table in tables]
    if args.format == "json":
        content = [
            {"configuration": dict(table.configuration), "rows": frame.to_dict("records")}
            for table, frame in zip(tables, frames, strict=True)
        ]
        print_document({"schema_version": SCHEMA_VERSION, "by": args.messages, "messages": content})
    elif args.format == "csv":
        whole = [
            frame.assign(**table.configuration)[[*table.configuration, *frame.columns]]
            for table, frame in zip(tables, frames, strict=True)
        ]
        _separated.write_frame(pd.concat(whole, ignore_index=True))
    else:
        for table, frame in zip(tables, frames, strict=True):
            _print(table, frame, args)
        if not args.quiet:
            words = [args.model, *options(args.asked), "--metric", "time"]
            show("", next_step(shell_line("ranksight", "predict", *words)))
    return 0 if any(table.ok for table in tables) else 4


def _frame(table: MessageTable, by: str, kernels: list[str]) -> pd.DataFrame:
    frame = {"class": table.by_class, "rank": table.per_rank, "links": table.partners}[by]()
    return frame[frame["kernel"].isin(kernels)].reset_index(drop=True) if kernels else frame


def _print(table: MessageTable, frame: pd.DataFrame, args: argparse.Namespace) -> None:
    import pandas as pd

    at = in_words(table.configuration)
    blocks: list[Block] = [Text(f"{at}: messages of a rank, by {args.messages}", style="bold")]
    if args.messages != "class":
        rows = [[_cell(value) for value in row] for row in frame.head(LONGEST).itertuples(index=False)]
        numeric = pd.api.types.is_numeric_dtype
        heads = [Column(str(name), "number" if numeric(frame[name]) else "name") for name in frame.columns]
        more = [f"... and {len(frame) - LONGEST} more; --format csv prints all"] if len(frame) > LONGEST else []
        show(*blocks, Table(heads, rows), *more)
        return
    moving = frame[(frame["bytes"] > 0) | (frame["peers"] > 0) | frame["operation"].isin(["Barrier", "Ibarrier"])]
    tagged = bool((moving["tags"] != "").any())
    columns = ["kernel:name", "operation:word", *(["tags:name/3"] if tagged else []), "ranks:name/3"]
    columns += ["comm/4", "calls", "bytes", "size <=/5", "peers/2", ":word"]
    blocks.append(Table(columns, [_row(row, tagged) for row in moving.to_dict("records")]))
    names = short_names(map(str, frame["kernel"].unique()), NAME)
    for name, part in moving[moving["to"] != ""].groupby(["kernel", "operation", "tags"], observed=True, sort=False):
        blocks.append(Text(f"{_named(names, *name)}: {part['to'].iloc[0]}"))
    uneven = moving[moving["spread"] > UNEVEN]
    for name, part in uneven.groupby(["kernel", "operation", "tags"], observed=True, sort=False):
        off = f"{part['spread'].max():.0%}"
        blocks.append(Text(f"{_named(names, *name)}: a mean; single ranks were up to {off} off in the traces"))
    for reason, part in frame[frame["reason"] != ""].groupby("reason", sort=False):
        who = ", ".join(dict.fromkeys(_named(names, *row) for row in part[["kernel", "operation"]].to_numpy()))
        blocks.append(Text(f"insufficient (?): {who}: {reason}", style="yellow"))
    if len(moving) < len(frame) and not args.quiet:
        blocks.append(f"{len(frame) - len(moving)} rows of calls that move nothing are in --format csv")
    show(*blocks)


def _named(names: Mapping[str, str], kernel: object, operation: object, tags: object = "") -> str:
    return f"{names[str(kernel)]} {operation}{f' tag {tags}' if tags else ''}"


def _cell(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _row(row: Mapping[Hashable, Any], tagged: bool) -> list[str | Cell]:
    return [
        *(str(row["kernel"]), str(row["operation"]), *([str(row["tags"])] if tagged else [])),
        f"{row['class']} x{row['class_ranks']}",
        *(str(row["comm_size"] or "-"), f"{row['count']:.6g}", f"{row['bytes']:.7g}"),
        *(str(row["size_class"] or "-"), str(row["peers"] or "-")),
        Cell("" if row["status"] == "ok" else "?", "yellow"),
    ]
