"""The verb: exit codes, outputs, bad input, the status quo as expectation."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.reports.checks import command

Shape = Callable[[float], float]
GROWN: dict[str, Shape] = {
    "Barrier": lambda p: 2e-6 + 1e-6 * np.log2(p),
    "Reduce": lambda p: 3e-6 + 1e-6 * np.log2(p),
    "Allreduce": lambda p: 1e-6 + 2e-7 * p,
    "tree": lambda p: 4e-6 + 2e-6 * np.log2(p),
}
RANKS = tuple(2.0**i for i in range(1, 9))


def store(
    folder: Path, shapes: Mapping[str, Shape] = GROWN, ranks: tuple[float, ...] = RANKS, scatter: float = 0.01
) -> Path:
    rng = np.random.default_rng(7)
    experiment = Experiment.create(folder, "library", ["ranks"])
    for p in ranks:
        for repetition in range(3):
            time = [shape(p) * rng.lognormal(0, scatter) for shape in shapes.values()]
            counters = pd.DataFrame({"kernel": list(shapes), "rank": -1, "time": time, "visits": 1.0})
            run = Run({"ranks": p}, repetition, "csv", provenance={"time": "measured", "visits": "measured"})
            experiment.add(run, counters)
    return folder


def write(folder: Path, text: str) -> Path:
    path = folder / "expectations.toml"
    path.write_text(text)
    return path


MET = '[expect.time]\nBarrier = "O(log p)"\nReduce = "O(log p)"\n'
BROKEN = MET + 'Allreduce = "O(log p)"\n'


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["check", *map(str, words)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_met_expectations_exit_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, write(tmp_path, MET), store(tmp_path / "e"))
    assert code == 0
    assert "2 expectations: 2 met" in out
    assert out.splitlines()[-1].startswith("next: ranksight ")
    assert max(map(len, out.splitlines()[:-1])) <= 80


def test_a_violation_exits_with_3_and_says_what_it_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, write(tmp_path, BROKEN), store(tmp_path / "e"), "--ranks", "4096")
    assert code == 3
    row = next(line for line in out.splitlines() if line.startswith("Allreduce "))
    assert row.split() == ["Allreduce", "O(log", "p)", "O(p)", "1.00", "O(p/log", "p)", "violated"]
    assert "at ranks = 4096" in " ".join(out.split())
    assert "times the" in " ".join(out.split())
    assert max(map(len, out.splitlines()[:-1])) <= 80


def counted(folder: Path, shapes: Mapping[str, Shape]) -> Path:
    """Counts of some functions at 1 to 16 ranks."""
    experiment = Experiment.create(folder, "counted", ["ranks"])
    for p in (1, 2, 4, 8, 16):
        counts = [round(shape(p)) for shape in shapes.values()]
        table = pd.DataFrame({"kernel": list(shapes), "rank": -1, "instructions": counts})
        experiment.add(Run({"ranks": p}, collector="callgrind"), table)
    return folder


def test_a_rest_that_matters_nowhere_is_no_growth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shapes: dict[str, Shape] = {
        "rest": lambda p: 5e5 / p + 10,
        "serial": lambda p: 5e5 / p + 2e4,
        "steady": lambda p: 1e6,
        "rising": lambda p: 1e6 + 500 * p,
    }
    expected = 'rest = "O(1/p)"\nserial = "O(1/p)"\nsteady = "O(1)"\nrising = "O(1)"\n'
    study = write(tmp_path, f"[expect.instructions]\n{expected}")
    folder = counted(tmp_path / "e", shapes)

    def verdicts(*words: str) -> dict[str, str]:
        assert run(capsys, study, folder, *words, "--format", "csv")[0] == 3
        out = run(capsys, study, folder, *words, "--format", "csv")[1]
        return {row["function"]: row["match"] for row in csv.DictReader(io.StringIO(out))}

    assert verdicts() == {"rest": "total", "serial": "none", "steady": "total", "rising": "none"}
    # Ten of fifteen instructions at 100,000 ranks.
    assert verdicts("--ranks", "100000")["rest"] == "none"


def test_work_that_is_divided_keeps_to_an_upper_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file of 'ranksight init' on a program in strong scaling; growth next to what falls is found all the same."""
    shapes: dict[str, Shape] = {
        "divided": lambda p: 1.654e6 / p + 120,
        "surface": lambda p: 1e6 / np.sqrt(p) + 5e4,
        "serial": lambda p: 8e5 / p + 1e5,
        "search": lambda p: 1.654e6 / p + 3e4 * p,
    }
    study = write(tmp_path, '[expect.instructions]\n"*" = "O(log p)"\n[search]\nupper = true\nleast_settings = 3\n')
    code, out, _ = run(capsys, study, counted(tmp_path / "e", shapes), "--format", "csv")
    found = {row["function"]: row for row in csv.DictReader(io.StringIO(out))}
    assert code == 3
    status = {name: row["status"] for name, row in found.items()}
    assert status == {"divided": "slower", "surface": "slower", "serial": "slower", "search": "violated"}
    assert found["search"]["model"] == "O(ranks)"
    assert "nan" not in run(capsys, study, tmp_path / "e")[1]


def test_times_are_judged_by_what_predicts_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Work that is divided, and what grows with the ranks: the least of the time lies within the runs."""
    ranks = (24.0, 48.0, 96.0, 192.0, 384.0)
    shapes: dict[str, Shape] = {
        "solver": lambda p: 150 / p + 0.04 * np.sqrt(p),
        "exchange": lambda p: 30 / p + 0.08 * np.log2(p),
        "loop": lambda p: 80 / p + 0.003 * p,
    }
    study = write(tmp_path, '[expect.time]\nsolver = "O(p^0.5)"\nexchange = "O(log p)"\nloop = "O(1)"\n')
    code, out, _ = run(capsys, study, store(tmp_path / "e", shapes, ranks), "--format", "json")
    found = {each["function"]: each for each in json.loads(out)["functions"]}
    assert [found[name]["match"] for name in shapes] == ["total", "total", "none"]
    assert (code, found["loop"]["model"]) == (3, "O(ranks)")
    # Asked for what check says that they cost, predict says the same.
    assert main(["fit", str(tmp_path / "e"), "-o", str(tmp_path / "m.json"), "--quiet"]) == 0
    asked = ["--ranks", "3072", "--kernel", "loop", "--metric", "time", "--format", "json"]
    assert main(["predict", str(tmp_path / "m.json"), *asked]) == 0
    (predicted,) = json.loads(capsys.readouterr().out)["predictions"]
    cost = found["loop"]["costs"][0]
    assert cost["configuration"] == {"ranks": 3072.0}
    assert cost["value"] == pytest.approx(predicted["value"], rel=1e-3)


def test_what_begins_late_and_then_grows_is_no_constant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shapes: dict[str, Shape] = {"queue": lambda p: 4e-3 * max(p - 6, 0.0) ** 1.5}
    study = write(tmp_path, '[expect.time]\nqueue = "O(log p)"\n')
    folder = store(tmp_path / "e", shapes, (3.0, 6.0, 12.0, 24.0, 48.0, 96.0), scatter=0.15)
    code, out, _ = run(capsys, study, folder, "--format", "json")
    (queue,) = json.loads(out)["functions"]
    assert (code, queue["match"]) == (3, "none")
    assert "O(1)" not in queue["model"]


def test_logarithms_that_scatter_violate_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Small powers, and growth that levels off, look like a logarithm over few ranks, and are more usual."""
    rng = np.random.default_rng(11)
    shapes: dict[str, Shape] = {
        f"tree{at}": lambda p, a=a, b=b: a + b * np.log2(p) for at, (a, b) in enumerate(rng.uniform(0.2, 5, (12, 2)))
    }
    study = write(tmp_path, '[expect.time]\n"tree*" = "O(log p)"\n')
    for scatter, least in ((0.02, 11), (0.1, 6)):
        folder = store(tmp_path / f"e{scatter}", shapes, tuple(2.0**i for i in range(1, 7)), scatter)
        code, out, _ = run(capsys, study, folder, "--format", "csv")
        found = [row["status"] for row in csv.DictReader(io.StringIO(out))]
        assert code != 3
        assert "violated" not in found
        assert sum(status == "ok" for status in found) >= least


@pytest.mark.parametrize("power", [-2 / 3, -3 / 4, -1.25])
def test_surfaces_and_other_powers_within_the_limit_violate_nothing(tmp_path: Path, power: float) -> None:
    experiment = Experiment.create(tmp_path / "e", "halos", ["ranks"])
    rng = np.random.default_rng(3)
    for p in (1, 2, 4, 8, 16, 32):
        for repetition in range(3):
            table = pd.DataFrame({"kernel": ["halo"], "rank": -1, "time": [0.5 * p**power * rng.normal(1, 0.005)]})
            experiment.add(Run({"ranks": p}, repetition, "csv", provenance={"time": "measured"}), table)
    assert main(["check", str(write(tmp_path, '[expect.time]\nhalo = "O(1/p)"\n')), str(experiment.path)]) == 0


def test_a_term_that_may_as_well_be_zero_violates_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steady: Shape = lambda p: 1.0  # noqa: E731
    for seed in range(4):
        rng = np.random.default_rng(seed)
        experiment = Experiment.create(tmp_path / f"e{seed}", "steady", ["ranks"])
        for p in RANKS:
            for repetition in range(3):
                table = pd.DataFrame({"kernel": ["f"], "rank": -1, "time": [steady(p) * rng.lognormal(0, 0.03)]})
                experiment.add(Run({"ranks": p}, repetition, "csv", provenance={"time": "measured"}), table)
        code, _, _ = run(capsys, write(tmp_path, '[expect.time]\nf = "O(1)"\n'), experiment.path)
        assert code != 3


def test_too_few_settings_exit_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, write(tmp_path, MET), store(tmp_path / "e", ranks=RANKS[:4]))
    assert code == 4
    assert "4 values of ranks measured, a verdict needs 5" in " ".join(out.split())


def test_a_violation_outweighs_missing_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shapes = {**GROWN, "noise": lambda p: 1e-6 * p**0.4 * (1 + 0.9 * np.sin(17 * p))}
    code, out, _ = run(capsys, write(tmp_path, BROKEN + 'noise = "O(1)"\n'), store(tmp_path / "e", shapes))
    assert code == 3
    assert "1 without verdict" in out


def test_json_holds_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = write(tmp_path, BROKEN + '[rules]\ntime = ["Allreduce <= Reduce + Barrier"]\n')
    code, out, _ = run(capsys, study, store(tmp_path / "e"), "--format", "json", "--ranks", "1024")
    content = json.loads(out)
    assert content["exit_code"] == code == 3
    found = {each["function"]: each for each in content["functions"]}
    assert found["Allreduce"]["model"] == "O(ranks)"
    assert found["Allreduce"]["divergence"] == "O(ranks/log ranks)"
    assert found["Allreduce"]["place"].endswith("expectations.toml:4:14")
    cost = found["Allreduce"]["costs"][0]
    assert cost["configuration"] == {"ranks": 1024.0}
    assert cost["value"] == pytest.approx(1e-6 + 2e-7 * 1024, rel=0.05)
    assert cost["ratio"] == pytest.approx(cost["value"] / cost["expected"])
    (rule,) = content["rules"]
    assert rule["in_the_limit"] == "violated"
    assert rule["begins"] == 256.0
    # 1e-6 + 2e-7 p > 5e-6 + 2e-6 log2 p from p = 116 on: measured at 128 and 256.
    assert [each["configuration"]["ranks"] for each in rule["violated_at"]] == [128.0, 256.0]


def test_csv_has_a_row_a_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, write(tmp_path, BROKEN), store(tmp_path / "e"), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["match"] for row in rows] == ["total", "total", "none"]
    assert rows[2]["status"] == "violated"


def test_junit_report_is_what_build_servers_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shapes = {**GROWN, 'f<a, "b">&\x07': GROWN["Barrier"]}
    patterns = BROKEN + '"f<*" = "O(p^2)"\n[rules]\ntime = ["Allreduce <= Reduce"]\n'
    report = tmp_path / "report.xml"
    code, out, _ = run(capsys, write(tmp_path, patterns), store(tmp_path / "e", shapes), "--junit", report, "--quiet")
    assert (code, out) == (3, "")
    root = ET.fromstring(report.read_bytes())
    assert root.tag == "testsuites"
    assert (root.get("tests"), root.get("failures")) == ("5", "3")
    failed = {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None}
    assert failed == {"Allreduce", "Allreduce <= Reduce", 'f<a, "b">&\ufffd'}
    assert run(capsys, tmp_path / "expectations.toml", tmp_path / "e", "--junit", report)[0] == 1
    assert run(capsys, tmp_path / "expectations.toml", tmp_path / "e", "--junit", report, "--force", "--quiet")[0] == 3


def test_a_check_that_fails_still_writes_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.xml"
    code, out, err = run(capsys, write(tmp_path, MET), tmp_path / "none", "--junit", report, "--github")
    assert code == 1
    root = ET.fromstring(report.read_bytes())
    assert (root.get("tests"), root.get("errors"), root.get("failures")) == ("1", "1", "0")
    error = next(root.iter("error"))
    assert str(error.get("message")) in err
    assert out.startswith("::error title=ranksight check::")


def test_violations_annotate_the_line_that_expects_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BROKEN + '[rules]\ntime = ["Allreduce <= Reduce"]\n'
    file = write(tmp_path, text)
    code, out, _ = run(capsys, file, store(tmp_path / "e"), "--github", "--quiet")
    assert code == 3
    lines = out.splitlines()
    assert all(re.fullmatch(r"::(error|warning) ([a-z]+=[^,:]*,)*title=[^,:]*::.+", line) for line in lines)
    at = text.splitlines().index('Allreduce = "O(log p)"') + 1
    assert sum(line.startswith(f"::error file={file},line={at}") for line in lines) == 1
    assert any("title=Allreduce <= Reduce" in line for line in lines)
    assert command("error", "a:b,c", "50 %\nmore") == "::error title=a%3Ab%2Cc::50 %25%0Amore"


def test_missing_evidence_is_skipped_in_junit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.xml"
    run(capsys, write(tmp_path, MET), store(tmp_path / "e", ranks=RANKS[:4]), "--junit", report, "--quiet")
    root = ET.fromstring(report.read_bytes())
    assert (root.get("failures"), root.get("skipped")) == ("0", "2")
    assert "a verdict needs 5" in (next(root.iter("skipped")).get("message") or "")


def test_the_litmus_test_shows_implementation_from_architecture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BROKEN + 'tree = "O(log p)"\n[litmus]\ntime = "tree"\n'
    _, out, _ = run(capsys, write(tmp_path, text), store(tmp_path / "e"))
    assert "suspected: the implementation, as tree grows as expected here" in " ".join(out.split())
    slow = {**GROWN, "tree": lambda p: 4e-6 + 2e-6 * p}
    _, out, _ = run(capsys, tmp_path / "expectations.toml", store(tmp_path / "slow", slow))
    assert "suspected: the architecture, as tree diverges by O(p/log p) too" in " ".join(out.split())
    half = {**GROWN, "tree": lambda p: 4e-6 + 2e-6 * np.sqrt(p)}
    _, out, _ = run(capsys, tmp_path / "expectations.toml", store(tmp_path / "half", half))
    assert "architecture and implementation" in " ".join(out.split())


# ---- the status quo -------------------------------------------------------------------------------------------------


def test_what_did_not_change_meets_its_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, now = store(tmp_path / "before"), store(tmp_path / "now", scatter=0.02)
    code, out, _ = run(capsys, now, "--baseline", before, "--metric", "time")
    assert code == 0
    assert "4 expectations: 4 met" in out


def test_a_regression_is_found_without_any_expectation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = store(tmp_path / "before")
    worse = {**GROWN, "Barrier": lambda p: 2e-6 + 2e-8 * p * p}
    code, out, _ = run(capsys, store(tmp_path / "now", worse), "--baseline", before)
    assert code == 3
    (row,) = [line for line in out.splitlines() if line.endswith("  violated")]
    assert row.startswith("Barrier")


def test_stated_expectations_come_before_the_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = store(tmp_path / "before")
    study = write(tmp_path, '[expect.time]\nAllreduce = "O(log p)"\n')
    code, out, _ = run(capsys, study, before, "--baseline", before, "--metric", "time")
    assert code == 3
    assert [line.split()[0] for line in out.splitlines() if line.endswith("  violated")] == ["Allreduce"]
    assert "4 expectations" in out


def test_a_baseline_over_other_parameters_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Experiment.create(tmp_path / "other", "library", ["size"])
    for size in RANKS:
        table = pd.DataFrame({"kernel": ["Barrier"], "rank": [-1], "time": [size]})
        other.add(Run({"size": size}, 0, "csv"), table)
    code, _, err = run(capsys, store(tmp_path / "e"), "--baseline", other.path, "--metric", "time")
    assert code == 1
    assert "varies size" in err


# ---- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('[expect.time]\nBarrier = "O(log q q)"\n', ("parameter 'q'", "2:12", "known: ranks")),
        ('[expect.time]\nBarrier = "O(log p"\n', (":2:19", "expected ')'")),
        ('[expect.time]\n\nBarrier = { growth = "O(p)", deviation = "O(p ^)" }\n', (":3:48", "found ')'")),
        ('[expect.time]\nBarier = "O(log p)"\n', ("'Barier'", "nearest: Barrier", ":2:11")),
        ('[expect.tme]\nBarrier = "O(log p)"\n', ("'tme'", "nearest: time")),
        ('[expect.time]\nBarrier = "O(log p)"\nBarrier = "O(p)"\n', ("line 3",)),
        ("[expect.time]\nBarrier = 3\n", (":2", "3 is not an expectation")),
        ('[expect.time]\nBarrier = "O(1)\n', ("line 2, column",)),
        ('[expects.time]\nBarrier = "O(1)"\n', ("'expects'", "nearest: expect")),
        ("", ("states no expectation",)),
        ('[expect.time]\n"*" = "O(1)"\n"B*" = "O(p)"\n', ("Barrier is expected to be O(ranks)", ":3:9")),
        ('[expect.time]\n"X*" = "O(1)"\n', ("no function matches 'X*'",)),
        ('[rules]\ntime = ["Alreduce <= Reduce"]\n', ("'Alreduce'", "nearest: Allreduce", ":2:10")),
        ('[rules]\ntime = [\n  "Reduce <= Barrier",\n  "Reduce << Barrier"]\n', (":4:11", "expected <= or >=")),
        ('[rules]\ntime = ["Reduce <= Reduce"]\n', ("contradicts itself",)),
        (MET + '[litmus]\ntime = "tree"\n', ("'tree' has no expectation",)),
        (MET + '[search]\ndeviation = "O(1/p)"\n', ("falls", ":5:14")),
        (MET + "[search]\ndepth = 99\n", (":5", "depth is 99")),
        (MET + "[search]\ndepth = " + "9" * 5000 + "\n", ("a number of too many digits",)),
        ("a = " + "[" * 100_000, ("nested too deeply",)),
        (MET + '[search.terms.p]\npowers = ["a"]\n', (":5", "not a list of exponents")),
        (MET + '[measurement]\nrepetitions = "best"\n', ("'best'", "known: auto")),
        (MET + "[hold]\nsize = 3\n", ("no parameter 'size' to hold",)),
        (MET + "[hold]\np = 3\n", ("ranks = 3 was not measured", "2, 4, 8")),
    ],
)
def test_bad_expectations_are_one_line_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, parts: tuple[str, ...]
) -> None:
    code, out, err = run(capsys, write(tmp_path, text), store(tmp_path / "e", ranks=RANKS[:5]))
    assert (code, out) == (1, "")
    assert len(err.strip().splitlines()) == 1
    for part in parts:
        assert part in err


def test_bad_command_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = store(tmp_path / "e", ranks=RANKS[:5])
    assert run(capsys, folder)[0] == 2
    assert run(capsys, "a", "b", "c")[0] == 2
    assert main(["check", str(folder), str(folder)]) == 2
    said = capsys.readouterr().err
    assert "2 experiments are given; write ranksight check" in said
    assert "EXPERIMENT --baseline EARLIER" in said
    assert run(capsys, write(tmp_path, MET), folder, "--ranks", "many")[0] == 2
    code, _, err = run(capsys, tmp_path / "expectations.toml", folder, "--size", "3")
    assert (code, "they are: ranks" in err) == (1, True)
    assert run(capsys, tmp_path / "absent.toml", folder)[0] == 1
    assert run(capsys, tmp_path / "expectations.toml", tmp_path / "absent")[0] == 1
    assert run(capsys, tmp_path / "expectations.toml", folder, "--metric", "visits")[0] == 1


def test_a_parameter_that_nobody_speaks_of_has_to_be_held(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = Experiment.create(tmp_path / "e", "library", ["ranks", "size"])
    for p in RANKS:
        for size in (16.0, 32.0, 64.0, 128.0, 256.0):
            table = pd.DataFrame({"kernel": ["Barrier", "solve"], "rank": -1, "time": [np.log2(p), size**3 / p]})
            experiment.add(Run({"ranks": p, "size": size}, 0, "csv"), table)
    study = write(tmp_path, '[expect.time]\nBarrier = "O(log p)"\n')
    code, _, err = run(capsys, study, tmp_path / "e")
    assert code == 1
    assert "size was measured at 16, 32, 64, 128, 256, and no expectation names it" in err
    assert run(capsys, write(tmp_path, study.read_text() + "[hold]\nsize = 32\n"), tmp_path / "e", "--quiet")[0] == 0
    # Where one expectation names both, the others say that they do not grow with the second.
    both = '[parameters]\nn = "size"\n[expect.time]\nBarrier = "O(log p)"\nsolve = "O(n^3 / p)"\n'
    code, out, _ = run(capsys, write(tmp_path, both), tmp_path / "e")
    assert code == 0
    assert "2 met" in out
    assert run(capsys, write(tmp_path, both.replace("n^3", "n^1.5")), tmp_path / "e", "--quiet")[0] == 3
    assert run(capsys, write(tmp_path, both.replace("n^3 / p", "n^3 / p^3")), tmp_path / "e", "--quiet")[0] == 3


def test_noise_above_the_signal_gives_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Every repetition scatters by a factor of three either way: the growth that is fitted is chance.
    code, out, _ = run(capsys, write(tmp_path, MET), store(tmp_path / "e", ranks=RANKS[:6], scatter=1.2))
    assert code == 4
    assert not [line for line in out.splitlines() if line.endswith("  violated")]


def test_functions_without_verdict_for_the_same_reason_are_reported_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, write(tmp_path, MET), store(tmp_path / "e", ranks=RANKS[:4]))
    assert "Barrier, Reduce (time): no verdict: 4 values of ranks" in out


def test_what_a_baseline_has_no_model_of_is_said_once_for_all_metrics(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counters have tens of metrics: a table and a sentence for each hid the others."""
    for name in ("old", "new"):
        experiment = Experiment.create(tmp_path / name, "library", ["ranks"])
        for p in RANKS[:4]:
            counts = {"instructions": [3.0 * p, 9.0], "loads": [2.0 * p, 4.0]}
            experiment.add(Run({"ranks": p}, 0, "csv"), pd.DataFrame({"kernel": ["a", "b"], "rank": -1, **counts}))
    code, out, _ = run(capsys, tmp_path / "new", "--baseline", tmp_path / "old")
    assert code == 4
    assert out.count("no verdict") == 1
    assert "a, b (instructions, loads): no verdict: the baseline has no model: 4 values" in out
    assert "expected" not in out


def test_p_is_ranks_unless_it_is_a_parameter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = Experiment.create(tmp_path / "own", "library", ["ranks", "p"])
    for p in RANKS:
        table = pd.DataFrame({"kernel": ["Barrier"], "rank": -1, "time": [p]})
        experiment.add(Run({"ranks": 4.0, "p": p}, 0, "csv"), table)
    study = write(tmp_path, '[expect.time]\nBarrier = "O(p)"\n')
    code, out, _ = run(capsys, study, tmp_path / "own", "--format", "json")
    assert code == 0
    assert json.loads(out)["functions"][0]["model"] == "O(p)"
    assert json.loads(out)["parameters"] == ["p"]


def test_a_baseline_of_many_functions_raises_no_false_alarm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    powers = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 1.5], 40)
    shapes = {f"f{i}": (lambda p, power=power: 3 + p**power) for i, power in enumerate(powers)}
    before, now = store(tmp_path / "before", shapes, scatter=0.02), store(tmp_path / "now", shapes, scatter=0.03)
    shapes["f7"] = lambda p: 3 + p**2.5
    after = store(tmp_path / "after", shapes, scatter=0.02)
    assert run(capsys, now, "--baseline", before, "--metric", "time", "--quiet")[0] in (0, 4)
    code, out, _ = run(capsys, after, "--baseline", before, "--metric", "time", "--format", "csv")
    assert code == 3
    broken = [row["function"] for row in csv.DictReader(io.StringIO(out)) if row["status"] == "violated"]
    assert broken == ["f7"]


def test_a_sum_of_two_terms_is_taken_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Latency of a tree and a linear volume: the volume leads, though the latency is what small scales show.
    shapes = {"Gather": lambda p: 4e-6 * np.log2(p) + 6e-8 * p, "Allgather": lambda p: 1e-6 + 4e-6 * np.log2(p)}
    study = write(tmp_path, '[expect.time]\nGather = "O(p)"\nAllgather = "O(p)"\n')
    ranks = tuple(2.0**i for i in range(1, 11))
    _, out, _ = run(capsys, study, store(tmp_path / "e", shapes, ranks, scatter=0.002), "--format", "json")
    gather, allgather = json.loads(out)["functions"]
    assert gather["status"] == "ok"
    assert gather["match"] in ("total", "approximate")
    assert allgather["model"] == "O(log ranks)"
    assert allgather["status"] == "violated"


def test_slower_growth_is_accepted_where_expectations_are_upper_bounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = write(tmp_path, '[expect.time]\nBarrier = "O(p)"\n')
    folder = store(tmp_path / "e")
    assert run(capsys, study, folder)[0] == 3
    code, out, _ = run(capsys, study, folder, "--upper")
    assert code == 0
    assert "1 growing slower" in out
    study.write_text(study.read_text() + "[search]\nupper = true\n")
    assert run(capsys, study, folder, "--quiet")[0] == 0
    study.write_text(BROKEN + "[search]\nupper = true\n")
    assert run(capsys, study, folder, "--quiet")[0] == 3


def test_a_mark_before_the_text_and_the_order_of_the_paths_do_not_matter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, folder = write(tmp_path, MET), store(tmp_path / "e")
    expected = run(capsys, study, folder)
    study.write_bytes(b"\xef\xbb\xbf" + study.read_bytes().replace(b"\n", b"\r\n"))
    assert run(capsys, study, folder) == expected
    assert run(capsys, folder, study) == expected


def test_hypotheses_that_an_upper_bound_accepts_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Noise leaves several slow growths open; all of them are below the bound, some within its limit and some below it.
    study = write(tmp_path, '[expect.time]\nBarrier = "O(log p)"\n')
    folder = store(tmp_path / "e", {"Barrier": lambda p: 1e-3 + 4e-5 * np.log2(p) ** 0.5}, scatter=0.01)
    code, out, _ = run(capsys, study, folder)
    assert code == 4
    assert re.search(r"(in|out)side and", out)
    assert run(capsys, study, folder, "--upper")[0] == 0
