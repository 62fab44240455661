"""What a program measures itself: a benchmark writes its table, and the campaign stores it as any other counters.

The program finds the file in the variable ``RANKSIGHT_TABLE`` and writes a tidy table there (from one rank): a header,
``kernel``, metrics by their names in SI units, and ``rank`` where it tells ranks apart; one row a kernel (and rank). It
reduces its own repetitions; those of the campaign are runs of the program.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from ranksight.campaign.collecting import COLLECTORS, Availability, Step
from ranksight.campaign.launching import Launch
from ranksight.core.errors import InputError, ToolError
from ranksight.core.experiment import COUNTER_KEYS
from ranksight.core.reading import Reading
from ranksight.counters.readers.csv_table import Columns, read_table

VARIABLE = "RANKSIGHT_TABLE"
FILE = "table.csv"


class Table:
    """Takes over the table that the program writes."""

    text = f"what the program itself measures: the table that it writes to the file that {VARIABLE} names"
    deterministic = False
    default = False

    def available(self) -> Availability:
        """Always: the program does the work."""
        return Availability(True)

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run, told the file by ``env``, so that launchers need not pass variables on."""
        return [Step(launch.wrap(("env", f"{VARIABLE}={(folder / FILE).resolve()}")))]

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """The table as counters; ToolError where the program wrote none, InputError where it is no such table."""
        path = folder / FILE
        if not path.is_file():
            raise ToolError(
                "the program wrote no table", f"it writes one to the file that the variable {VARIABLE} names"
            )
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            names = [name.strip() for name in next(csv.reader([file.readline(1 << 16)]), [])]
        metrics = {name: name for name in names if name and name not in COUNTER_KEYS}
        if "kernel" not in names or not metrics:
            raise InputError(
                f"the program's table has the columns {', '.join(names) or 'none'}",
                "it needs 'kernel' and a column a metric, such as time",
            )
        columns = Columns({}, metrics, kernel="kernel", rank="rank" if "rank" in names else None)
        readings = list(read_table(path, columns, strict=True, outside=True))
        if len(readings) != 1:
            raise InputError(
                "the program's table names a kernel twice", "write one row a kernel, or tell ranks apart by 'rank'"
            )
        return Reading(
            configuration=dict(launch.configuration),
            counters=readings[0].counters,
            provenance=dict.fromkeys(metrics, "measured by the program"),
            notes=readings[0].notes,
            raw=(path,),
        )


COLLECTORS.register("table")(Table())
