"""Printing of predicted message tables."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    import pandas as pd

    from ranksight.model.messages.table import MessageTable
    from ranksight.model.model import Model

SCHEMA_VERSION = 1
UNEVEN = 0.01
"""Difference of single ranks from their rule that is told."""
LONGEST = 400
"""Lines of a table for people."""


def print_messages(model: Model, args: argparse.Namespace) -> int:
    """Predict and print message tables; 4 when no row is carried."""
    import pandas as pd

    tables = model.messages(level=args.level, **args.asked)
    frames = [_frame(table, args.messages, args.kernel) for table in tables]
    if args.format == "json":
        content = [
            {"configuration": dict(table.configuration), "rows": frame.to_dict("records")}
            for table, frame in zip(tables, frames, strict=True)
        ]
        json.dump({"schema_version": SCHEMA_VERSION, "by": args.messages, "messages": content}, sys.stdout, indent=1)
        print()
    elif args.format == "csv":
        whole = [
            frame.assign(**table.configuration)[[*table.configuration, *frame.columns]]
            for table, frame in zip(tables, frames, strict=True)
        ]
        pd.concat(whole, ignore_index=True).to_csv(sys.stdout, index=False)
    else:
        for table, frame in zip(tables, frames, strict=True):
            _print(table, frame, args)
    return 0 if any(table.ok for table in tables) else 4


def _frame(table: MessageTable, by: str, kernels: list[str]) -> pd.DataFrame:
    frame = {"class": table.by_class, "rank": table.per_rank, "links": table.partners}[by]()
    return frame[frame["kernel"].isin(kernels)].reset_index(drop=True) if kernels else frame


def _print(table: MessageTable, frame: pd.DataFrame, args: argparse.Namespace) -> None:
    at = ", ".join(f"{name} {value:g}" for name, value in table.configuration.items())
    print(f"{at}: messages of a rank, by {args.messages}")
    if args.messages != "class":
        text = frame.head(LONGEST).to_string(index=False, float_format="{:g}".format)
        more = f"\n... and {len(frame) - LONGEST} more; --format csv prints all" if len(frame) > LONGEST else ""
        print(text + more)
        return
    moving = frame[(frame["bytes"] > 0) | (frame["peers"] > 0) | frame["operation"].isin(["Barrier", "Ibarrier"])]
    numbers = f"{'comm':>6}{'calls':>8}{'bytes':>10}{'size <=':>8}{'peers':>6}"
    print(f"{'kernel':<14} {'operation':<9} {'ranks':<15}{numbers}")
    for row in moving.to_dict("records"):
        print(_line({str(name): value for name, value in row.items()}))
    for name, part in moving[moving["to"] != ""].groupby(["kernel", "operation"], observed=True, sort=False):
        print(f"{name[0]} {name[1]}: {part['to'].iloc[0]}")
    uneven = moving[moving["spread"] > UNEVEN]
    for name, part in uneven.groupby(["kernel", "operation"], observed=True, sort=False):
        print(f"{name[0]} {name[1]}: a mean; single ranks were up to {part['spread'].max():.0%} off in the traces")
    for reason, part in frame[frame["reason"] != ""].groupby("reason", sort=False):
        who = ", ".join(dict.fromkeys((part["kernel"] + " " + part["operation"]).tolist()))
        print(f"insufficient (?): {who}: {reason}")
    if len(moving) < len(frame) and not args.quiet:
        print(f"{len(frame) - len(moving)} rows of calls that move nothing are in --format csv")


def _line(row: dict[str, Any]) -> str:
    kernel, operation = _short(str(row["kernel"])), str(row["operation"])[:9]
    who = str(row["class"])[: 13 - len(str(row["class_ranks"]))] + f" x{row['class_ranks']}"
    mark = "" if row["status"] == "ok" else " ?"
    return (
        f"{kernel:<14} {operation:<9} {who:<15}{row['comm_size'] or '-':>6}{row['count']:>8.6g}{row['bytes']:>10.7g}"
        f"{row['size_class'] or '-':>8}{row['peers'] or '-':>6}{mark}"
    )


def _short(name: str) -> str:
    """The end of a qualified name, without its arguments, where the whole is too long."""
    return name if len(name) <= 14 else name.partition("(")[0].rpartition("::")[2][:14]
