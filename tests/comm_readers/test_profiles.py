"""Readers of MPI profiles: mpiP, IPM, and Score-P's CUBE."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.comm.readers import _score_p
from ranksight.core.errors import InputError
from ranksight.core.experiment import MESSAGE_COLUMNS, WHOLE
from ranksight.core.reading import READERS, Reading
from ranksight.core.testing import check_reader

DATA = Path(__file__).parent / "data"


def read(name: str, path: Path) -> Reading:
    assert READERS[name].recognises(path, path.read_bytes()[:4096])
    (reading,) = READERS[name].read(path)
    assert reading.messages is not None
    assert list(reading.messages.columns) == list(MESSAGE_COLUMNS)
    return reading


def row(reading: Reading, **keys: object) -> pd.Series:
    assert reading.messages is not None
    found = reading.messages
    for name, value in keys.items():
        found = found[found[name] == value]
    assert len(found) == 1
    return found.iloc[0]


def changed(folder: Path, name: str, old: str, new: str) -> Path:
    text = (DATA / name).read_text(encoding="utf-8")
    assert old in text
    path = folder / name
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def test_mpip_gives_calls_bytes_and_time_by_site_and_rank() -> None:
    reading = read("mpip", DATA / "ring.mpiP")
    assert reading.configuration == {"ranks": 2.0}
    assert reading.wall_time == 2.0
    assert reading.command == ("./ring", "--steps", "10")
    sent = row(reading, kernel="exchange", rank=0)
    assert (sent["operation"], sent["count"], sent["bytes"], sent["size_class"]) == ("Isend", 10, 60000, 8192)
    assert sent["seconds"] == pytest.approx(1e-3)
    norm = row(reading, kernel="norm", rank=1)
    assert (norm["comm_size"], norm["bytes"]) == (2, 80)
    assert norm["seconds"] == pytest.approx(0.2)
    waiting = row(reading, operation="Waitall")
    assert (waiting["kernel"], waiting["rank"], waiting["bytes"]) == ("MPI_Waitall", 1, 0)
    assert reading.counters is not None
    assert reading.counters["mpi_time"].dropna().tolist() == [0.5, 0.5]


def times(reading: Reading) -> dict[tuple[str, int], float]:
    assert reading.counters is not None
    timed = reading.counters[reading.counters["time"].notna()]
    return {(str(row.kernel), int(row.rank)): float(row.time) for row in timed.itertuples()}


def test_call_sites_are_kernels_and_so_is_what_is_outside_of_mpi() -> None:
    assert times(read("mpip", DATA / "ring.mpiP")) == {
        ("norm->MPI_Allreduce", 0): pytest.approx(0.2),
        ("norm->MPI_Allreduce", 1): pytest.approx(0.2),
        ("exchange->MPI_Isend", 0): pytest.approx(1e-3),
        ("exchange->MPI_Isend", 1): pytest.approx(1e-3),
        ("MPI_Waitall", 1): pytest.approx(0.29),
        ("(outside of MPI)", 0): 1.5,
        ("(outside of MPI)", 1): 1.25,
    }
    assert times(read("ipm", DATA / "job.ipm.xml")) == {
        ("solve->MPI_Isend", 0): pytest.approx(1.2e-3),
        ("ipm_global->MPI_Allreduce", 0): pytest.approx(0.2),
        ("ipm_global->MPI_Allreduce", 1): pytest.approx(0.3),
        ("(outside of MPI)", 0): 1.5,
        ("(outside of MPI)", 1): pytest.approx(1.5),
    }


def stencil(ranks: int) -> str:
    """A report of a program that waits for messages whose sends lie below the threshold of the report."""
    own, waits, sums = 48 / ranks + 1, 6 / ranks**0.5, 0.1 * np.log2(ranks)
    sites = (("Waitall", 1, 200, waits), ("Allreduce", 2, 50, sums))
    return "\n".join(
        [
            "@ mpiP",
            "@ Command : ./stencil",
            "@ Version : 3.5.0",
            "@--- MPI Time (seconds) -----",
            *(f"{rank} {own + waits + sums:.9g} {waits + sums:.9g} 1" for rank in range(ranks)),
            "@--- Callsites: 2 -----",
            "1 0 halo.c 5 swap Waitall",
            "2 0 norm.c 9 norm Allreduce",
            "@--- Callsite Time statistics (all, milliseconds): 2 -----",
            *(
                f"{name} {site} {rank} {count} 1 {1e3 * seconds / count:.9g} 1 1 1"
                for name, site, count, seconds in sites
                for rank in range(ranks)
            ),
            "@--- Callsite Message Sent statistics (all, sent bytes) -----",
            *(f"Allreduce 2 {rank} 50 8 8 8 400" for rank in range(ranks)),
            "@--- End of Report -----",
            "",
        ]
    )


def test_the_program_takes_what_its_calls_and_the_rest_take_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for ranks in (2, 4, 8, 16):
        (tmp_path / f"stencil.{ranks}.1.1.mpiP").write_text(stencil(ranks), encoding="utf-8")
    folder, model = str(tmp_path / "e"), str(tmp_path / "m.json")
    assert main(["import", "mpip", *map(str, sorted(tmp_path.glob("*.mpiP"))), "-o", folder, "--quiet"]) == 0
    assert main(["fit", folder, "-o", model, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["predict", model, "--ranks", "32", "--metric", "time,wall_time", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["predictions"]
    value = {(row["kernel"], row["metric"]): row["value"] for row in rows}
    assert value["(outside of MPI)", "time"] == pytest.approx(2.5, rel=0.03)
    assert value["swap->MPI_Waitall", "time"] == pytest.approx(6 / 32**0.5, rel=0.03)
    assert value["norm->MPI_Allreduce", "time"] == pytest.approx(0.5, rel=0.03)
    for metric in ("time", "wall_time"):
        assert value[None, metric] == pytest.approx(2.5 + 6 / 32**0.5 + 0.5, rel=0.05)
    assert main(["diagnose", model, "--ranks", "32"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "No time was measured" not in said
    assert "swap->MPI_Waitall" in said


def test_call_sites_of_mpip_without_symbols_are_the_same_in_every_run(tmp_path: Path) -> None:
    text = (DATA / "ring.mpiP").read_text(encoding="utf-8")
    plain = text.replace("ring.c                42 exchange", "0x55d2d30e7e10           [unknown]")
    again = plain.replace("0x55d2d30e7e10", "0x5601aa0b3e10").replace("0x4005f2", "0x5601aa0b35f2")
    # Isend is site 3 and Waitall site 1 in the other run
    rows = [f"{name:<20} {site}" for name, site in (("Isend", 1), ("Waitall", 3))]
    for row, new in zip(rows, ("Isend                3", "Waitall              1"), strict=True):
        assert row in again
        again = again.replace(row, new)
    again = (
        again.replace("  1   0 0x", "  9   0 0x")
        .replace("  3   0 0x", "  1   0 0x")
        .replace("  9   0 0x", "  3   0 0x")
    )
    found = []
    for name, content in (("a.mpiP", plain), ("b.mpiP", again)):
        (tmp_path / name).write_text(content, encoding="utf-8")
        reading = read("mpip", tmp_path / name)
        assert reading.messages is not None
        found.append(reading.messages.sort_values(["kernel", "rank"], ignore_index=True))
        assert any("2 call sites without a function" in note for note in reading.notes)
    assert set(found[0]["kernel"]) == {"MPI_Isend", "MPI_Waitall", "norm"}
    pd.testing.assert_frame_equal(*found)


def test_call_sites_of_one_operation_differ_in_the_end_of_their_address(tmp_path: Path) -> None:
    text = (
        (DATA / "ring.mpiP")
        .read_text(encoding="utf-8")
        .replace("norm                     Allreduce", "norm(int, bool)  Allreduce")
    )
    for base in (0x55D2D30E7000, 0x7F0000001000):
        path = tmp_path / "ring.mpiP"
        new = text.replace(
            "ring.c                42 exchange                 Isend", f"{base + 0xE10:#x} [unknown] Waitall"
        )
        path.write_text(new.replace("0x4005f2", f"{base + 0xF20:#x}").replace("Isend  ", "Waitall"), encoding="utf-8")
        reading = read("mpip", path)
        assert reading.messages is not None
        assert set(reading.messages["kernel"]) == {
            "MPI_Waitall (at ...e10)",
            "MPI_Waitall (at ...f20)",
            "norm(int, bool)",
        }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@--- End of Report", "@--- Something", "cut off"),
        ("@--- Callsite Time statistics (all, m", "@--- Callsite Time statistics (all callsites, m", "concise"),
        ("   1       1.75        0.5    28.57\n", "", "names rank 1 of 1"),
        ("   0          2        0.5    25.00\n", "", "lacks 1 of 2 ranks: 0"),
        (
            "Isend                1    1     10      0.2",
            "Isend                1    1     ten     0.2",
            r":40: the count is 'ten'",
        ),
        (
            "Isend                1    1     10      0.2      0.1",
            "Isend                1    1     10      0.2      nan",
            ":40: the mean",
        ),
        ("Isend                1    1     10      0.2      0.1    0.05   0.06   0.20", "Isend 1 1", ":40: 3 columns"),
    ],
)
def test_damaged_mpip_reports_are_refused_by_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = changed(tmp_path, "ring.mpiP", old, new)
    with pytest.raises(InputError, match=message):
        list(READERS["mpip"].read(path))


def test_ipm_gives_full_rows_where_there_are_and_sums_elsewhere() -> None:
    reading = read("ipm", DATA / "job.ipm.xml")
    assert reading.configuration == {"ranks": 2.0}
    assert reading.wall_time == 2.1
    assert reading.command == ("./ring", "10")
    sent = row(reading, kernel="solve", operation="Isend")
    assert (sent["count"], sent["bytes"], sent["peers"], sent["size_class"]) == (12, 9600, 2, 1024)
    assert sent["seconds"] == pytest.approx(1.2e-3)
    assert row(reading, operation="Allreduce", rank=0)["seconds"] == pytest.approx(0.2)
    terse = row(reading, operation="Allreduce", rank=1)
    assert (terse["kernel"], terse["count"], terse["bytes"], terse["comm_size"]) == ("ipm_global", 10, 80, 2)
    assert reading.messages is not None
    assert set(reading.messages["operation"]) == {"Isend", "Allreduce"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<ipm_job_profile>", '<!DOCTYPE x [<!ENTITY a "b">]><ipm_job_profile>', ":2: declares a document type"),
        ("</task>\n</ipm_job_profile>", "", "no well-formed XML"),
        ('mpi_rank="1"', 'mpi_rank="0"', "rank 0 appears twice"),
        ('mpi_rank="1"', 'mpi_rank="2"', "lacks 1 of 3 ranks: 1"),
        ('bytes="800" orank="1"', 'bytes="-800" orank="1"', ":15: bytes is '-800'"),
        (
            'count="10" tid="0" >1.0000e-03 1.0000e-05 2.0000e-04',
            'count="10" tid="0" >1.0000e-03',
            ":15: a call without",
        ),
        ('count="10"', 'count="many"', "count is 'many'"),
    ],
)
def test_damaged_ipm_profiles_are_refused_by_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = changed(tmp_path, "job.ipm.xml", old, new)
    with pytest.raises(InputError, match=message):
        list(READERS["ipm"].read(path))


def test_entities_are_never_expanded(tmp_path: Path) -> None:
    bomb = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "x" * 100}">' for i in range(12))
    path = tmp_path / "bomb.xml"
    path.write_text(f"<!DOCTYPE ipm [{bomb}]><ipm_job_profile>&e11;</ipm_job_profile>", encoding="utf-8")
    with pytest.raises(InputError, match="declares a document type"):
        list(READERS["ipm"].read(path))


def test_what_score_p_counts_for_all_is_divided() -> None:
    # 8 B on 4 ranks: one version counts the rank itself, the other does not.
    assert _score_p.counts_itself([("allreduce", 32.0, 32.0, 4), ("allgather", 64.0, 64.0, 4)])
    assert not _score_p.counts_itself([("allreduce", size, size, 4) for size in (24.0, 48.0, 96.0)])
    assert _score_p.counts_itself([("bcast", 16.0, 8.0, 2), ("bcast", 0.0, 8.0, 2)])
    assert not _score_p.counts_itself([("bcast", 8.0, 0.0, 2), ("bcast", 0.0, 8.0, 2)])
    for itself, others in ((True, 4), (False, 3)):
        assert _score_p.handed_over("allreduce", 8.0 * others, 8.0 * others, 4, itself) == 8.0
        assert _score_p.handed_over("bcast", 8.0 * others, 8.0 if itself else 0.0, 4, itself) == 8.0
        assert _score_p.handed_over("bcast", 0.0, 8.0, 4, itself) == 8.0
        assert _score_p.handed_over("gather", 8.0, 0.0, 4, itself) == 8.0
    assert _score_p.handed_over("scan", 16.0, 8.0, 4, False) == 8.0


def test_cube_of_four_ranks(shared: Path) -> None:
    pytest.importorskip("pycubexr")
    path = shared / "data" / "formats" / "cube" / "time.p4.n2000.x1.r0.cubex"
    check_reader(READERS["cube-mpi"], path, by_name=True)
    (reading,) = READERS["cube-mpi"].read(path)
    assert reading.messages is not None
    table = reading.messages
    # The program moves 1,000 doubles a call, 50 times: every rank contributes 400 kB to each collective.
    for operation in ("Bcast", "Allreduce", "Allgather", "Reduce", "Gather"):
        rows = table[table["operation"] == operation]
        assert set(rows["bytes"]) == {400_000}
        assert set(rows["count"]) == {50}
    scatter = table[table["operation"] == "Scatter"]
    assert set(scatter[scatter["rank"] == 0]["bytes"]) == {1_600_000}
    assert set(scatter[scatter["rank"] != 0]["bytes"]) == {400_000}
    assert WHOLE not in set(table[table["operation"] == "Bcast"]["kernel"])


def test_cube_of_ranks_that_do_not_count_themselves(shared: Path) -> None:
    pytest.importorskip("pycubexr")
    (reading,) = READERS["cube-mpi"].read(shared / "data" / "formats" / "cube" / "L3_DCA_negative.cubex")
    assert reading.messages is not None
    table = reading.messages
    once = table[(table["operation"] == "Allreduce") & (table["count"] == 1) & (table["bytes"] > 0)]
    assert set(once["bytes"]) == {8, 24}
    assert np.isclose(table["seconds"].min(), 0, atol=1e-2)


def test_a_cube_that_is_none_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("pycubexr")
    path = tmp_path / "profile.cubex"
    path.write_bytes(b"no archive at all" * 100)
    with pytest.raises(InputError, match=r"profile\.cubex"):
        list(READERS["cube-mpi"].read(path))


def test_an_archive_that_leads_out_of_itself_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bad.cubex"
    with tarfile.open(file, "w") as archive:
        for name in ("anchor.xml", "../escaped"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(InputError, match="leads out of it"):
        list(READERS["cube-mpi"].read(file))
