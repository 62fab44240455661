"""The first page of RESULTS.md: one sentence for each table that says most, with the figures of the table itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

NUMBER = r"[^|]*?"
ROW = rf"\| ({NUMBER}) "
HEADLINES: dict[str, tuple[str, str]] = {
    "measured_series": (
        rf"\| \*\*all series\*\* {ROW * 5}\|",
        "{0} held-out values of real programs: median error of answers {2} %, {3} % inside the 90 % interval, {1} % "
        "not answered, {4} more than 50 % off and not warned of",
    ),
    "beyond_nodes": (
        rf"### 18 -> 72 ranks[\s\S]*?\| ranksight, times, platform {ROW * 2}[\s\S]*?\| ideal scaling {ROW * 2}",
        "SPEChpc by times alone and a platform, from one memory domain to four: {1} % off in the median, ideal scaling "
        "{3} %",
    ),
    "resource_model": (
        rf"\| 1\.\.18, counters, platform \| ({NUMBER}) \({NUMBER}\) \| ({NUMBER}) \({NUMBER}\) \| ({NUMBER}) \(",
        "The same with counters and a platform: clvleaf {0}, lbm {1}, tealeaf {2} % off",
    ),
    "known_laws": (
        rf"\| all but levels {ROW * 6}{ROW * 6}\|",
        "Programs with known laws, all terms varying at once: kernels {0} % off (median / 90 % below / largest), "
        "the program {6} %",
    ),
    "communication": (
        r"Wall time: error ([\d.e-]+) % in the median, ([\d.e-]+) % at most",
        "Programs with a known BF_comm: wall time {0} % off in the median, {1} % at most",
    ),
    "synthetic": (
        rf"\| 10%, Ranksight {ROW * 7}\|[\s\S]*?\| 10%, Extra-P {ROW * 7}\|",
        "PMNF functions with 10 % noise at 16 times the ranks: {4} % off in the median, Extra-P {11} %",
    ),
    "verdicts": (r": (\d+) of (\d+) right", "What bounds kernels of known nature: {0} of {1} right"),
    "real_programs": (
        rf"\| lammps \(C\+\+\) \| {NUMBER} {ROW * 4}",
        "LAMMPS of the distribution: {1} % of its instructions kept, counts of its kernels {2} % off in the median at "
        "larger runs",
    ),
}
"""Of a benchmark, where its figures are in its section, and the sentence that they stand in."""


def headlines(sections: Mapping[str, str]) -> list[str]:
    """The sentences of the sections that there are."""
    found = ((text, re.search(where, sections.get(name, ""))) for name, (where, text) in HEADLINES.items())
    return [f"- {text.format(*(part.strip() for part in match.groups()))}." for text, match in found if match]
