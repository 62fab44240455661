"""The doctor on described machines, and on this one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ranksight.cli.main import main
from ranksight.counters.doctor import examine
from ranksight.counters.doctor.findings import Machine, say, version
from ranksight.counters.doctor.mpi import flavour

NODE = {
    "proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: fpu avx512f pdpe1gb\n\n",
    "proc/sys/kernel/perf_event_paranoid": "-1",
    "proc/sys/kernel/nmi_watchdog": "0",
    "sys/bus/event_source/devices/cpu/type": "4",
    "sys/class/dmi/id/sys_vendor": "Dell Inc.",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
    "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet",
    "sys/devices/system/cpu/online": "0-1",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance",
    "sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0",
    "sys/devices/system/cpu/cpu1/topology/thread_siblings_list": "1",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id": "0",
    "sys/devices/system/cpu/cpu1/topology/physical_package_id": "0",
    "proc/loadavg": "0.00 0.01 0.05 1/100 1000",
}


LAST_CACHE = {
    f"sys__devices__system__cpu__cpu0__cache__index3__{name}": text
    for name, text in {"type": "Unified", "level": "3", "size": "491520K", "shared_cpu_list": "0-1"}.items()
}


def machine(folder: Path, **changes: str | None) -> Machine:
    content = {**NODE, **{key.replace("__", "/").replace("·", "."): value for key, value in changes.items()}}
    for name, text in content.items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text + "\n")
    (folder / "sys/bus/event_source/devices").mkdir(parents=True, exist_ok=True)
    return Machine(folder, folder)


def by_topic(findings):
    return {finding.topic: finding for finding in findings}


@pytest.fixture(autouse=True)
def a_user(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


def test_a_node_in_order(tmp_path):
    found = by_topic(examine(machine(tmp_path)))
    for topic in (
        "virtual machine",
        "PMU",
        "perf_event_paranoid",
        "clock source",
        "frequency governor",
        "cores",
        "load",
    ):
        assert found[topic].level == "ok", found[topic]
    assert "NMI watchdog" not in found
    assert "SMT" not in found
    assert "last cache" not in by_topic(examine(machine(tmp_path / "real", **LAST_CACHE)))


@pytest.mark.parametrize(
    ("change", "topic", "level", "remedy"),
    [
        ({"proc__sys__kernel__perf_event_paranoid": "4"}, "perf_event_paranoid", "missing", "sysctl -w kernel.perf_event_paranoid=1"),
        ({"proc__sys__kernel__perf_event_paranoid": "2"}, "perf_event_paranoid", "note", "sysctl -w kernel.perf_event_paranoid=0"),
        ({"proc__sys__kernel__perf_event_paranoid": None}, "perf_event_paranoid", "missing", ""),
        ({"sys__bus__event_source__devices__cpu__type": None}, "PMU", "missing", "virtual PMU"),
        ({"sys__class__dmi__id__sys_vendor": "QEMU"}, "virtual machine", "warning", "real node"),
        ({"proc__cpuinfo": "processor : 0\nflags : fpu hypervisor\n"}, "virtual machine", "warning", "real node"),
        ({"proc__cpuinfo": "processor : 0\nflags : fpu hypervisor\n", **LAST_CACHE}, "last cache", "note", "calibrate"),
        ({"proc__sys__kernel__nmi_watchdog": "1"}, "NMI watchdog", "warning", "nmi_watchdog=0"),
        (
            {"sys__devices__system__clocksource__clocksource0__current_clocksource": "hpet"},
            "clock source", "warning", "tsc",
        ),
        ({"sys__devices__system__cpu__cpu1__cpufreq__scaling_governor": "powersave"}, "frequency governor", "warning", "cpupower"),
        ({"sys__devices__system__cpu__cpufreq__boost": "1"}, "turbo", "note", "boost"),
        ({"sys__devices__system__cpu__cpu0__topology__thread_siblings_list": "0-1",
          "sys__devices__system__cpu__cpu1__topology__thread_siblings_list": "0-1"}, "SMT", "note", "--bind-to core"),
        ({"proc__loadavg": "512.0 1 1 1/1 1"}, "load", "warning", "node of your own"),
    ],
)  # fmt: skip
def test_what_is_amiss_is_found_and_mended(tmp_path, change, topic, level, remedy):
    finding = by_topic(examine(machine(tmp_path, **change)))[topic]
    assert finding.level == level
    assert remedy in finding.remedy


def test_missing_tools_come_with_the_line_that_installs_them(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = by_topic(examine(machine(tmp_path / "root")))
    for topic in ("perf", "valgrind", "MPI launcher", "mpicc"):
        assert found[topic].level == "missing"
        assert "install" in found[topic].remedy


def test_a_tool_that_hangs_or_is_none_says_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("ranksight.counters.doctor.findings._PATIENCE", 0.2)
    assert say(("sleep", "30")) is None
    assert say(("no-such-tool-anywhere",)) is None


def test_flavours_and_versions():
    assert flavour("mpirun (Open MPI) 5.0.11") == "Open MPI"
    assert flavour("HYDRA build details:\n Version: 4.0.2") == "MPICH"
    assert flavour("Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307") == "Intel MPI"
    assert flavour("slurm 22.05.8") == "Slurm"
    assert version("valgrind-3.19.0") == "3.19.0"
    assert version("perf version 6.1.187") == "6.1.187"
    assert version("no version") == ""


def test_the_verb_ends_well_and_its_json_is_whole(capsys):
    assert main(["doctor", "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {"topic", "level", "found", "means", "remedy"} == set(content["findings"][0])
    assert {"callgrind", "perf", "perf-clock"} <= {collector["name"] for collector in content["collectors"]}
    assert all(item["remedy"] for item in content["collectors"] if not item["available"])


def test_the_verb_prints_no_blanks_at_line_ends(capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("perf_event_paranoid" in line for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_optional_packages_are_reported_with_what_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util
    import tomllib

    from ranksight.counters.doctor.packages import EXAMINATIONS, PACKAGES

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, (extra, _) in PACKAGES.items():
        assert any(line.startswith(f"{name}>=") for line in project["optional-dependencies"][extra])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    found = [each for examination in EXAMINATIONS for each in examination(Machine())]
    assert [each.remedy for each in found] == [f"pip install 'ranksight[{extra}]'" for extra, _ in PACKAGES.values()]
    assert all(each.level == "note" and each.means for each in found)


def test_a_package_that_cannot_be_imported_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from ranksight.counters.doctor import packages

    (tmp_path / "brokenprofile.py").write_text("raise RuntimeError('built for\\nanother numpy')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(packages, "PACKAGES", {"brokenprofile": ("cube", "profiles cannot be read")})
    monkeypatch.setattr(packages, "version", lambda name: "1.2")
    (found,) = (each for examination in packages.EXAMINATIONS for each in examination(Machine()))
    assert found.level == "warning"
    assert found.found == "brokenprofile 1.2 cannot be imported: RuntimeError: built for another numpy"
    assert (found.means, found.remedy) == ("profiles cannot be read", "pip install --force-reinstall 'ranksight[cube]'")
