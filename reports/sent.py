"""What a model of messages alone shows, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranksight.core.metrics import metric
from ranksight.core.units import in_words
from ranksight.reports.terminal import Block, Table, Text

if TYPE_CHECKING:
    import pandas as pd

LEAST = 0.005
"""Share of what is sent from which on an operation is listed."""
HEADS = ("kernel:name", "operation:word", "a rank", "90% interval:word/2", "share", "growth/1", "verdict:word")


def blocks_of_sent(table: pd.DataFrame, parameters: tuple[str, ...], level: float, top: int) -> list[Block]:
    """Tables of what operations send at each configuration, the largest first; `table` from
    :func:`ranksight.analysis.diagnosis.sent.sent_table`."""
    blocks: list[Block] = []
    heads = [head.replace("90%", f"{level:.0%}") for head in HEADS]
    for _, part in table.groupby(["metric", *parameters], sort=False):
        first = part.iloc[0]
        name, where = str(first["metric"]), {each: float(first[each]) for each in parameters}
        unit = metric(name).format
        listed = part[(part["share"] >= LEAST) | (part["verdict"] != "scales")].head(top)
        rows = [
            [
                row["kernel"],
                row["operation"],
                unit(row["value"]),
                f"{unit(row['lower'])} .. {unit(row['upper'])}",
                f"{row['share']:.0%}",
                f"{row['growth']:.3g}x",
                row["verdict"],
            ]
            for row in listed.to_dict("records")
        ]
        blocks += [Text(f"{in_words(where)}: {name}", style="bold")]
        blocks += [Table(heads, rows, indent=2)]
        if len(listed) < len(part):
            blocks.append(Text(f"{len(part) - len(listed)} more; --format csv lists all", 2))
        blocks.append("")
    grown = table[table["verdict"] == "grows"]
    named = ", ".join(dict.fromkeys(f"{row['kernel']} {row['operation']}".strip() for row in grown.to_dict("records")))
    blocks.append(
        f"grows faster than log(ranks): {named}" if named else "No operation is known to grow faster than log(ranks)."
    )
    blocks.append("No time was measured: what bounds a kernel is not known. Measure with perf-clock, or import times.")
    return blocks
