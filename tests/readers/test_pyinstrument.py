"""Python's pyinstrument, as JSON and in the format of pstats."""

from __future__ import annotations

import json
import marshal
from pathlib import Path

import pytest

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS
from ranksight.core.sampled import TABLE

SAMPLE = Path(__file__).parent / "data" / "pyinstrument" / "heat.json"


def test_own_times_are_those_of_functions() -> None:
    (found,) = READERS["pyinstrument"].read(SAMPLE)
    assert found.counters is not None
    assert found.counters.set_index("kernel")["time"].to_dict() == {
        "<module> (heat.py:1)": 0,
        "main (heat.py:60)": 0.25,
        "solve (heat.py:24)": 1.5,
        "exchange (heat.py:40)": 0.25,
        "MPI_Allreduce": 0.75,
        "MPI_Sendrecv": 0.5,
        "sleep": 0.25,
    }
    assert found.wall_time == 3.6
    assert found.provenance["time"].startswith("sampled")
    assert found.tables[TABLE]["worth"].unique().tolist() == [1e-3]


def test_a_folder_of_ranks(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"heat.rank{rank}.json").write_bytes(SAMPLE.read_bytes())
    assert READERS["pyinstrument"].recognises(tmp_path, b"")
    (found,) = READERS["pyinstrument"].read(tmp_path)
    assert found.configuration == {"ranks": 3}
    assert found.counters is not None
    assert sorted(found.counters["rank"].unique()) == [0, 1, 2]


def test_callees_that_take_longer_than_their_caller_are_damage(tmp_path: Path) -> None:
    content = json.loads(SAMPLE.read_text())
    content["root_frame"]["children"][0]["children"][0]["time"] = 3.0
    path = tmp_path / "heat.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"what main \(heat\.py:60\) calls takes 0\.5 s longer than it does"):
        list(READERS["pyinstrument"].read(path))


def test_no_samples(tmp_path: Path) -> None:
    path = tmp_path / "heat.json"
    path.write_text('{"start_time": 1.0, "duration": 0.1, "sample_count": 0, "root_frame": null}')
    with pytest.raises(InputError, match="holds no samples of pyinstrument"):
        list(READERS["pyinstrument"].read(path))


@pytest.mark.parametrize("duration", [1e-300, 5e-324])
def test_more_samples_than_can_be_are_damage(tmp_path: Path, duration: float) -> None:
    content = json.loads(SAMPLE.read_text()) | {"duration": duration, "sample_count": 10**6}
    path = tmp_path / "heat.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="no sampler takes so many samples"):
        list(READERS["pyinstrument"].read(path))


def test_calls_that_were_not_counted_are_left_out(tmp_path: Path) -> None:
    """``pyinstrument -r pstats`` writes -1 calls of every function."""
    path = tmp_path / "heat.pstats"
    path.write_bytes(marshal.dumps({("heat.py", 24, "solve"): (-1, -1, 1.25, 2.5, {})}))
    (found,) = READERS["cprofile"].read(path)
    assert found.counters is not None
    assert "visits" not in found.counters.columns
    assert found.counters["time"].tolist() == [1.25]
    assert any("calls of 1 functions are -1" in note for note in found.notes)
