"""Numbers that no counter or clock can hold are refused where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS

PERF = """# Samples: 10  of event 'cycles'
# Event count (approx.): {count}
#
# Overhead  Symbol
# ........  ......
#
    60.00%  [.] main
    40.00%  [.] work
"""
GPROF = """Flat profile:

Each sample counts as {interval} seconds.
  %   cumulative   self              self     total
 time   seconds   seconds    calls  ms/call  ms/call  name
 60.00      0.60     0.60       10     1.00     1.00  work
"""


@pytest.mark.parametrize(
    ("reader", "text", "sound", "wrong", "message"),
    [
        ("perf-report", PERF, "1000", "9" * 400, "events"),
        ("gprof", GPROF, "0.01", "1e-320", "a sample of"),
    ],
)
def test_what_divides_or_scales_a_profile_is_bounded(
    tmp_path: Path, reader: str, text: str, sound: str, wrong: str, message: str
) -> None:
    file = tmp_path / "profile.txt"
    name = "count" if reader == "perf-report" else "interval"
    file.write_text(text.format(**{name: sound}))
    assert list(READERS[reader].read(file))
    file.write_text(text.format(**{name: wrong}))
    with pytest.raises(InputError, match=message):
        list(READERS[reader].read(file))
