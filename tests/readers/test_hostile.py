"""All readers against what they are not made for: rubbish, mutilated files, each other's files.

Whatever a file holds, a reader either gives a sound table or raises an error that names the file; nothing else.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.core.reading import READERS
from ranksight.core.testing import check_reader, read_or_error
from ranksight.counters.readers._delimited import columns_of

DATA = Path(__file__).parent / "data"
SAMPLES = {
    "caliper": [
        "caliper/two_ranks.cali",
        "caliper/split.json",
        "caliper/records.json",
        "caliper/reduced.cali",
        "caliper/report.json",
    ],
    "cachegrind": ["valgrind/cachegrind.out.7"],
    "callgrind": ["valgrind/callgrind.out.100"],
    "gprof": ["gprof/flat.txt"],
    "gptl": ["gptl/timing.000000", "gptl/timing.summary", "gptl/timing_stats"],
    "hpctoolkit": ["hpctoolkit/experiment.xml"],
    "likwid": ["likwid/regions.txt", "likwid/mpirun.csv", "likwid/groups.csv", "likwid/whole.txt"],
    "ncu": ["gpu/ncu_details.csv", "gpu/ncu_raw.csv"],
    "nsys": ["gpu/nsys_sum.csv", "gpu/nsys_trace.csv"],
    "papi": ["papi/rank_000000.json", "papi/old_hl.json"],
    "perf-report": ["perf/report.txt"],
    "perf-script": ["perf/script.txt", "perf/script_flat.txt"],
    "perf-stat": ["perf/stat.txt", "perf/stat.csv", "perf/stat.json", "perf/interval.txt", "perf/tagged.txt"],
    "pyinstrument": ["pyinstrument/heat.json"],
    "reframe": ["reframe/one.log"],
    "rocprof": [
        f"gpu/{name}.csv" for name in ("rocprof_stats", "rocprof_results", "rocprofv3_trace", "rocprofv3_counters")
    ],
    "tau": ["tau/MULTI__TIME/profile.0.0.0"],
    "thicket": ["thicket/two_ranks.json", "thicket/reduced.json", "thicket/hatchet.json"],
    "vtune": ["vtune/hw_events.csv", "vtune/hotspots.csv"],
}
OURS = (*SAMPLES, "cube")
CASES = [(reader, name) for reader, names in SAMPLES.items() for name in names]
NASTY = (b"1e300", b"-5", b"nan", b"inf", b"1e999", b"99999999999999999999999", b"\x00", b"\xff\xfe", b'"', b",", b"\n",
         b"|", b"->", b"\\", b"\xc3\xa9", b"../../x", b"0x10", b"1_000", b"[" * 200, b"{", b"%", b"\r\n", b"\t")  # fmt: skip


@pytest.fixture(autouse=True)
def _no_optional(request: pytest.FixtureRequest) -> None:
    pytest.importorskip("caliperreader")


def attempt(reader: str, path: Path) -> str:
    """Read `path`; the error's text, or empty where the reading was sound."""
    return read_or_error(READERS[reader], path)


OTHERS = [
    ("tau", "tau"),
    *(("ncu", f"gpu/ncu_{kind}.csv") for kind in ("details", "raw")),
    *(("nsys", f"gpu/nsys_{kind}.csv") for kind in ("sum", "trace")),
    *(("rocprof", f"gpu/rocprof{kind}.csv") for kind in ("_stats", "_results", "v3_trace", "v3_counters")),
    ("reframe", "reframe/one.log"),
]


@pytest.mark.parametrize(("reader", "name"), [*CASES, *OTHERS])
def test_the_contract_is_kept(reader: str, name: str) -> None:
    check_reader(READERS[reader], DATA / name)


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_samples_can_be_stored(tmp_path: Path, reader: str, name: str) -> None:
    (reading,) = READERS[reader].read(DATA / name)
    assert reading.counters is not None
    experiment = Experiment.create(tmp_path / "e", "a", ["ranks"])
    run = Run({"ranks": 2.0}, provenance=reading.provenance, notes=reading.notes, environment=reading.environment)
    experiment.add(run, reading.counters, tables=reading.tables)
    stored = Experiment.read(tmp_path / "e").counters()
    assert len(stored) == len(reading.counters)
    assert set(stored["kernel"].astype(str)) == set(reading.counters["kernel"])


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_recognised_by_its_reader_alone(reader: str, name: str) -> None:
    path = DATA / name
    head = path.read_bytes()[:4096]
    assert [other for other in READERS if READERS[other].recognises(path, head)] == [reader]


@pytest.mark.parametrize("reader", OURS)
def test_no_regular_file(tmp_path: Path, reader: str) -> None:
    """A pipe would wait for ever."""
    if reader == "cube":
        pytest.importorskip("pycubexr")
    path = tmp_path / "pipe.xml"
    os.mkfifo(path)
    with pytest.raises(InputError, match=r"pipe\.xml"):
        list(READERS[reader].read(path))


LONG = (b"1,," + b"a" * 4090, b"a-1" * 1365, b"1,,a" + b"," * 2040, b" " * 4096, b"1 " * 2048, b"| Event " * 512,
        b"a 1 " * 1024, b"1/1 " * 1024, b"TABLE,Region " + b",Group 1 Raw" * 370, b'[{' + b'"path"' * 600)  # fmt: skip


@pytest.mark.timeout(60)
@pytest.mark.parametrize("reader", OURS)
def test_long_lines_take_no_long_time(tmp_path: Path, reader: str) -> None:
    """Patterns must not go through all ways to divide a line: this ends, or the time limit ends it."""
    if reader == "cube":
        pytest.importorskip("pycubexr")
    path = tmp_path / "long.txt"
    for line in LONG:
        path.write_bytes(line + b"\n" + line * 20 + b"\n")
        assert not READERS[reader].recognises(path, line) or reader in ("likwid", "caliper")
        assert attempt(reader, path)


@pytest.mark.timeout(60)
def test_many_columns_take_no_long_time(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"c{at}" for at in range(200_000)))
    assert len(columns_of(path)) == 200_000


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_every_truncation(tmp_path: Path, reader: str, name: str) -> None:
    content = (DATA / name).read_bytes()
    path = tmp_path / Path(name).name
    step = max(1, len(content) // 40)
    refused = 0
    for end in range(0, len(content), step):
        path.write_bytes(content[:end])
        refused += bool(attempt(reader, path))
    assert refused > 5


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_mutilated_files(tmp_path: Path, reader: str, name: str) -> None:
    """Bytes replaced, cut out, doubled, nasty pieces put in: sound or refused, and recognising never fails."""
    content = (DATA / name).read_bytes()
    path = tmp_path / Path(name).name
    dice = random.Random(f"{reader} {name}")
    for _ in range(40):
        piece = bytearray(content)
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(piece))
            kind = dice.randrange(5)
            if kind == 0:
                piece[at] = dice.randrange(256)
            elif kind == 1:
                del piece[at : at + dice.randint(1, 40)]
            elif kind == 2:
                piece[at:at] = piece[at : at + dice.randint(1, 200)]
            elif kind == 3:
                piece[at:at] = dice.choice(NASTY)
            else:
                digits = [place for place, byte in enumerate(piece) if 48 <= byte <= 57]
                if digits:
                    start = dice.choice(digits)
                    piece[start : start + 1] = dice.choice(NASTY[:6])
            if not piece:
                break
        path.write_bytes(bytes(piece))
        READERS[reader].recognises(path, bytes(piece[:4096]))
        attempt(reader, path)


def lines_of(name: str) -> st.SearchStrategy[bytes]:
    """The lines of a sample in any order."""
    return st.permutations((DATA / name).read_bytes().splitlines(keepends=True)[:40]).map(b"".join)


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_lines_in_any_order(tmp_path: Path, reader: str, name: str) -> None:
    path = tmp_path / Path(name).name

    @settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(lines_of(name))
    def shuffled(content: bytes) -> None:
        path.write_bytes(content)
        READERS[reader].recognises(path, content[:4096])
        attempt(reader, path)

    shuffled()


@pytest.mark.parametrize("reader", OURS)
def test_any_bytes(tmp_path: Path, reader: str) -> None:
    if reader == "cube":
        pytest.importorskip("pycubexr")
    path = tmp_path / "any"

    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
    @given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace"))))
    def anything(content: bytes) -> None:
        path.write_bytes(content)
        READERS[reader].recognises(path, content[:4096])
        attempt(reader, path)

    anything()
