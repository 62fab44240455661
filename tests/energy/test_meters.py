"""Meters of energy: what users have of them, and what this machine could read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd
import pytest

from ranksight.campaign.launching import Template
from ranksight.campaign.measuring import Plan, measure
from ranksight.core.errors import InputError, ToolError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.core.meaning import METERED
from ranksight.core.reading import READERS, Reading
from ranksight.core.testing import check_reader
from ranksight.counters.collectors.energy import Energy
from ranksight.counters.doctor import examine
from ranksight.counters.doctor.findings import Machine
from ranksight.model.energy.metered import metered

POWERMETER = """CPU type:\tIntel Icelake SP processor
----
Measure for this program: nothing
----
Runtime: 100.5 s
Measure for socket 0 on CPU 0
Domain PKG:
Energy consumed: 15000.5 Joules
Power consumed: 149.26 Watt
Domain PP0:
Energy consumed: 12.5 Joules
Power consumed: 0.12 Watt
Domain DRAM:
Energy consumed: 1500 Joules
Power consumed: 14.93 Watt

Measure for socket 1 on CPU 36
Domain PKG:
Energy consumed: 9000 Joules
Power consumed: 89.6 Watt
Domain PP0:
Energy consumed: 2.5 Joules
Power consumed: 0.02 Watt
Domain DRAM:
Energy consumed: 700 Joules
Power consumed: 6.97 Watt
"""
POWERMETER += "-" * 80 + "\n"
JOBS = """JobID|NTasks|NNodes|AllocCPUS|Elapsed|State|ConsumedEnergy
7.0|64|1|64|00:01:40|COMPLETED|42.5K
8.0|128|2|128|00:00:50|COMPLETED|1.25M
9.0|128|2|128|00:00:50|COMPLETED|0
"""


def joules(reading: Reading, name: str) -> float:
    assert reading.counters is not None
    return float(reading.counters[name].sum())


def test_likwid_powermeter(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text(POWERMETER)
    assert [name for name in READERS if READERS[name].recognises(path, POWERMETER[:4096].encode())] == [
        "likwid-powermeter"
    ]
    (found,) = READERS["likwid-powermeter"].read(path)
    assert joules(found, "energy_package") == 24000.5
    assert joules(found, "energy_dram") == 2200
    assert found.wall_time == 100.5
    assert found.environment[METERED] == "2"
    check_reader(READERS["likwid-powermeter"], path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("15000.5", "-15000.5", "no counter holds"),
        ("Runtime: 100.5 s", "", "no runtime"),
        ("Measure for socket 1", "Measure for socket 0", "a second time"),
        ("Energy consumed: 700 Joules\n", "", "breaks off"),
        ("15000.5 Joules", "many Joules", "energy of PKG"),
        ("9000 Joules", "0 Joules", "0 J of PKG in 100.5 s are not the 89.6 W of socket 1"),
        ("9000 Joules\nPower consumed: 89.6", "0 Joules\nPower consumed: 0", "socket 1 took 0 J"),
        ("9000 Joules", "27000 Joules", "not the 89.6 W"),
    ],
)
def test_a_damaged_powermeter_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = tmp_path / "out.txt"
    path.write_text(POWERMETER.replace(old, new))
    with pytest.raises(InputError, match=said):
        list(READERS["likwid-powermeter"].read(path))


def test_consumed_energy_of_slurm(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(JOBS)
    found = list(READERS["sacct"].read(path))
    assert [joules(each, "energy_node") for each in found[:2]] == [42500, 1.25e6]
    assert found[2].counters is not None
    assert "energy_node" not in found[2].counters  # 0 is how Slurm writes that it has no meter
    assert ["is 0 where Slurm read no meter" in " ".join(each.notes) for each in found] == [False, False, True]
    for none in ("16.00E", "18446744073709551614", "4294967294"):  # what Slurm writes for no value
        path.write_text(JOBS.replace("42.5K", none))
        assert "energy_node" not in str(next(iter(READERS["sacct"].read(path))).counters)
    for none in ("-5", "18446744073709551614", "16.00E"):
        path.write_text(JOBS.replace("42.5K", none))
        assert any(
            "the energy of these jobs is not known" in note for note in next(iter(READERS["sacct"].read(path))).notes
        )
    path.write_text(JOBS.replace("42.5K", "much"))
    with pytest.raises(InputError, match="'much' of ConsumedEnergy is not an energy"):
        list(READERS["sacct"].read(path))


@pytest.fixture
def zones(tmp_path: Path) -> Path:
    """Powercap's folders of a node of two packages, of which one has memory that is metered, near their wrap."""
    for zone, name in (("0", "package-0"), ("0:0", "dram"), ("0:1", "core"), ("1", "package-1")):
        folder = tmp_path / "sys" / "class" / "powercap" / f"intel-rapl:{zone}"
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "max_energy_range_uj").write_text("262143328850\n")
        (folder / "energy_uj").write_text("262143328000\n")
    return tmp_path / "sys" / "class" / "powercap"


def measured(zones: Path, folder: Path, program: str) -> Reading:
    collector = Energy(zones=zones)
    script = folder / "program"
    script.write_text(f"#!/bin/sh\n{program}\n")
    script.chmod(0o755)
    launch = Template((str(script),)).fill({"ranks": 1})
    out = folder / "out"
    out.mkdir()
    (step,) = collector.steps(launch, out)
    assert subprocess.run(step.command, check=False).returncode == 3
    return collector.collect(launch, out)


def test_meters_are_read_around_the_program_and_wraps_undone(zones: Path, tmp_path: Path) -> None:
    found = measured(zones, tmp_path, f"for z in {zones}/*; do echo 5000000 > $z/energy_uj; done; exit 3")
    wrapped = 5.0 + (262143328850 - 262143328000) * 1e-6
    assert joules(found, "energy_package") == pytest.approx(2 * wrapped)
    assert joules(found, "energy_dram") == pytest.approx(wrapped)
    assert found.environment[METERED] == "2"
    found.validate("here")


def test_a_run_keeps_how_many_packages_were_metered(zones: Path, tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e.exp", "e", ["ranks"])
    outcome = measure(experiment, Plan(Template(("sleep", "0.{ranks}")), {"ranks": [1]}, 1, {"energy": Energy(zones)}))
    assert not outcome.failures
    (run,) = experiment.runs
    assert run.environment[METERED] == "2"
    assert run.environment["NNodes"] == "1"


def test_a_package_that_two_drivers_show_counts_once(zones: Path, tmp_path: Path) -> None:
    """Linux shows a package's meter a second time where the chip has it in memory-mapped registers."""
    for place in "01":
        twin = zones / f"intel-rapl-mmio:{place}"
        twin.mkdir()
        for file in (zones / f"intel-rapl:{place}").iterdir():
            (twin / file.name).write_text(file.read_text())
    found = measured(zones, tmp_path, f"for z in {zones}/*; do echo 262143328840 > $z/energy_uj; done; exit 3")
    assert joules(found, "energy_package") == pytest.approx(2 * 840e-6)
    assert found.environment[METERED] == "2"


def test_a_meter_without_a_range_cannot_run_backwards(zones: Path, tmp_path: Path) -> None:
    for file in zones.glob("*/max_energy_range_uj"):
        file.write_text("0\n")
    with pytest.raises(ToolError, match="ran backwards"):
        measured(zones, tmp_path, f"for z in {zones}/*; do echo 5 > $z/energy_uj; done; exit 3")


def test_perf_adds_up_the_packages_of_a_node(tmp_path: Path) -> None:
    launch = Template(("true",)).fill({"ranks": 1})
    for node in ("a", "b"):
        place = tmp_path / f"energy.{node}"
        place.mkdir()
        (place / "packages").write_text("2\n")
        (place / "perf").write_text(
            "# started\n\n1500,5;Joules;power/energy-pkg/;100;100,00;;\n"
            "120,25;Joules;power/energy-ram/;100;100,00;;\n10000000000;ns;duration_time;1;100,00;;\n"
        )
    found = Energy().collect(launch, tmp_path)
    assert joules(found, "energy_package") == 3001
    assert joules(found, "energy_dram") == 240.5
    assert found.environment[METERED] == "4"


def test_energy_is_measured_where_it_is_asked_for() -> None:
    assert not Energy.default


def test_the_doctor_says_which_meters_can_be_read(zones: Path, tmp_path: Path) -> None:
    (found,) = (each for each in examine(Machine(tmp_path, tmp_path)) if each.topic == "energy")
    assert found.level == "ok"
    assert "dram, package-0, package-1" in found.found
    (none,) = (each for each in examine(Machine(zones, tmp_path)) if each.topic == "energy")
    assert none.level == "note"
    assert "no meters" in none.found
    assert none.remedy


def test_a_run_whose_table_has_no_row_says_nothing_of_energy(tmp_path: Path) -> None:
    """A meter's file of no rank; fit ended with an internal error."""
    experiment = Experiment.create(tmp_path / "e.exp", "e", ["ranks"])
    for ranks in (1, 2, 4):
        rows = {"kernel": [WHOLE], "rank": [0], "time": [8.0 / ranks], "energy_package": [800.0]}
        table = pd.DataFrame(rows)
        experiment.add(Run({"ranks": ranks}), table[: 0 if ranks == 2 else 1])
    rows_of_runs = metered(experiment, "package", None)
    assert rows_of_runs is not None
    assert len(rows_of_runs.joules) == 2
