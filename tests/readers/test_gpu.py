"""GPU profilers' CSV: sums over launches, units, pages and versions, one file a rank, damaged files."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import read
from ranksight.core.reading import READERS

DATA = Path(__file__).parent / "data" / "gpu"
SUM = (DATA / "nsys_sum.csv").read_text()
TRACE = (DATA / "nsys_trace.csv").read_text()
DETAILS = (DATA / "ncu_details.csv").read_text()
RAW = (DATA / "ncu_raw.csv").read_text()
STATS = (DATA / "rocprof_stats.csv").read_text()
RESULTS = (DATA / "rocprof_results.csv").read_text()
V3 = (DATA / "rocprofv3_trace.csv").read_text()
COUNTERS = (DATA / "rocprofv3_counters.csv").read_text()


def table(place: Path, name: str, text: str) -> pd.DataFrame:
    """The counters of a file, by kernel."""
    file = place / f"{name}.csv"
    file.write_text(text)
    reader = READERS[name]
    assert reader.recognises(file, text.encode()[:4096])
    assert [other for other in ("nsys", "ncu", "rocprof") if READERS[other].recognises(file, text.encode())] == [name]
    (reading,) = reader.read(file)
    assert reading.counters is not None
    return reading.counters.set_index("kernel")


@pytest.mark.parametrize(
    ("name", "text", "times", "visits"),
    [
        ("nsys", SUM, [3e-3, 1e-3], [30, 10]),
        ("nsys", TRACE, [3e-3, 1e-3], [2, 1]),
        ("ncu", DETAILS, [3e-3, 1e-3], [2, 1]),
        ("ncu", RAW, [3e-3, 1e-3], [2, 1]),
        ("rocprof", STATS, [3e-3], [30]),
        ("rocprof", RESULTS, [3e-3], [2]),
        ("rocprof", V3, [3e-3], [2]),
        ("rocprof", COUNTERS, [3e-3], [2]),
    ],
)
def test_times_are_sums_over_launches(
    name: str, text: str, times: list[float], visits: list[float], tmp_path: Path
) -> None:
    found = table(tmp_path, name, text)
    assert found["time"].tolist() == pytest.approx(times)
    assert found["visits"].tolist() == visits
    assert found.index[0].startswith(("void stencil<double, 3>", "stencil"))


def test_counts_of_the_device_have_its_names(tmp_path: Path) -> None:
    for text in (DETAILS, RAW):
        assert table(tmp_path, "ncu", text)["gpu_bytes_read"].tolist() == pytest.approx([2.5e6, 7])
    assert table(tmp_path, "ncu", RAW)["gpu_instructions"].tolist() == [200, 40]
    results = table(tmp_path, "rocprof", RESULTS)
    assert results["gpu_bytes_read"].tolist() == [3 * 1024]
    assert results["SQ_INSTS_VALU"].tolist() == [200]
    assert "VALUUtilization" not in results
    assert table(tmp_path, "rocprof", COUNTERS)["SQ_WAVES"].tolist() == [128]


def test_a_file_a_rank_is_one_run(tmp_path: Path) -> None:
    for ranks in (1, 2, 4):
        for rank in range(ranks):
            place = tmp_path / "runs" / f"ranks-{ranks}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"report.rank{rank}.csv").write_text(SUM)
    words = [str(tmp_path / "runs" / f"ranks-{ranks}") for ranks in (1, 2, 4)]
    made = tmp_path / "e"
    assert main(["import", "nsys", *words, "--parameter", r"ranks=ranks-(\d+)", "-o", str(made), "-q"]) == 0
    counters = read(made).counters()
    assert sorted(counters["rank"].unique()) == [0, 1, 2, 3]
    assert main(["fit", str(made), "-o", str(tmp_path / "m.json"), "-q"]) == 0


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("nsys", SUM.replace("3000000,", "-3,"), r":4: Total Time \(ns\) is -3, which no counter"),
        ("nsys", SUM.replace("75.0,3000000,30,", "75.0,3000000,"), ":4 has 8 columns"),
        ("nsys", SUM.split("75.0")[0], "without rows"),
        ("nsys", "nothing here\n", "no report of GPU kernels"),
        ("nsys", TRACE.replace("64,1,1", ",,"), "no launch of a kernel"),
        ("ncu", RAW.replace('"us"', '"%"'), "no unit of time"),
        ("ncu", RAW.replace('"","","Mbyte","us","inst"\n', ""), "no row of units"),
        ("ncu", DETAILS.replace("Mbyte", "furlong"), "no unit of dram__bytes_read.sum"),
        ("ncu", DETAILS.replace('"stencil"', '""'), "without a name"),
        ("rocprof", V3.replace("1551874061246194000", "5"), "ends before it begins"),
        ("rocprof", V3.replace("KERNEL_DISPATCH", "MEMORY_COPY"), "no dispatch"),
        ("rocprof", STATS.replace("3000000", "many"), ":2: 'many' of TotalDurationNs is not a number"),
    ],
)
def test_damaged_files_name_their_line(name: str, text: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=expected):
        list(READERS[name].read(file))
