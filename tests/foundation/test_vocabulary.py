"""Registries, metrics, units, errors."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.cli.main import VERBS, main
from ranksight.core.errors import InputError, InsufficientError, RanksightError, UsageError
from ranksight.core.metrics import METRICS, REDUCTIONS, metric
from ranksight.core.registry import Registry
from ranksight.core.units import format_factor, format_si, in_full, parse_size
from ranksight.model.structure.functions import WHOLES


@pytest.mark.parametrize(
    ("value", "text"),
    [(8, "8"), (1048576.0, "1048576"), (0.5, "0.5"), (1 / 3, "0.333333"), (-3.0, "-3"), (1e30, "1e+30")],
)
def test_whole_parameters_are_written_in_full(value: float, text: str) -> None:
    assert in_full(value) == text


def test_a_registry_refuses_a_name_twice_and_offers_the_nearest() -> None:
    registry: Registry[int] = Registry("thing")
    registry.register("first")(1)
    with pytest.raises(InputError, match="twice"):
        registry.register("first")(2)
    with pytest.raises(InputError, match="nearest: first"):
        registry["frist"]
    assert list(registry) == ["first"]
    assert "first" in registry
    assert len(registry) == 1


def test_metrics_are_described() -> None:
    assert metric("time").unit == "s"
    assert metric("instructions").kind == "requirement"
    # what no count can be below is no interval's end
    assert {metric(name).kind for name in (*WHOLES, *WHOLES.values())} == {"requirement"}
    assert metric("L2_LINES_IN_ALL").kind == "other"
    assert all(METRICS[name].name == name and METRICS[name].over_ranks in REDUCTIONS for name in METRICS)
    assert metric("bytes_sent").format(2_500_000.0) == "2.5 MB"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "s", "0 s"),
        (1234.0, "B", "1.23 kB"),
        (0.00123, "s", "1.23 ms"),
        (-4.2e-7, "s", "-420 ns"),
        (999.9, "", "1 k"),
        (0.25, "", "0.25"),
        (0.02, "B", "0.02 B"),
        (5e-23, "B", "5e-23 B"),
        (float("nan"), "s", "nan s"),
        (2.4e9, "Hz", "2.4 GHz"),
        (4321.0, "s", "4,320 s"),
        (4.8312e13, "s", "4.83e+13 s"),
        (999.4, "s", "999 s"),
        (4e-26, "s", "0 s"),
        (2e-15, "s", "0.002 ps"),
    ],
)
def test_numbers_are_written_with_prefixes(value: float, unit: str, text: str) -> None:
    assert format_si(value, unit) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_can_be_written(value: float) -> None:
    assert format_si(value, "s").endswith("s")


def test_sizes_are_read() -> None:
    assert [parse_size(text) for text in ("4096", "32Ki", "1.5M", "2 MiB")] == [4096, 32768, 1_500_000, 2 << 20]
    for text in ("", "x", "-1", "1e3", "3 parsecs"):
        with pytest.raises(InputError):
            parse_size(text)


def test_errors_carry_exit_codes_and_stay_on_one_line() -> None:
    assert [kind.exit_code for kind in (InputError, UsageError, InsufficientError)] == [1, 2, 4]
    assert str(RanksightError("what\n happened", "do\nthis")) == "what happened; do this"


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["-h"], ["--version"]):
        assert main(words) == 0
    text = capsys.readouterr().out
    assert all(verb in text for verb in VERBS)
    assert text.endswith("ranksight 0.1.0\n")


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    assert f"ranksight {verb}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["frobnicate"], ["--frobnicate"], ["measure", "--frobnicate"]])
def test_usage_errors_are_one_line_and_exit_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("ranksight: ")
    assert "ranksight: ranksight" not in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("words", [["--help"], *([verb, "--help"] for verb in VERBS)], ids=" ".join)
def test_import_and_help_load_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys, ranksight\n"
        "before = {'argparse', 're', 'typing', 'dataclasses', 'signal'} & set(sys.modules)\n"
        "from ranksight.cli.main import main\n"
        f"main({words!r})\n"
        "heavy = {'numpy', 'pandas', 'scipy', 'matplotlib', 'pyarrow', 'rich', 'lmfit', 'argparse', 're', 'typing',\n"
        "         'dataclasses', 'signal'} & set(sys.modules) - before\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_end_of_a_command_runs_what_is_registered_for_it_and_keeps_the_exit_code() -> None:
    code = (
        "import atexit\n"
        "from ranksight.cli.main import leave\n"
        "atexit.register(print, 'registered')\n"
        "print('written', end=' ')\n"
        "leave(3)\n"
        "print('not reached')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "written registered\n")


def test_a_command_whose_threads_still_run_ends_as_python_does() -> None:
    code = (
        "import sys, threading\n"
        "from ranksight.cli.main import leave\n"
        "late = threading.Timer(0.2, print, ['late'])\n"
        "late.start()\n"
        "sys.exit(leave(4))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (4, "late\n")


def test_a_fault_of_ours_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from ranksight.cli import doctor

    def fail(_: object) -> int:
        raise KeyError("lost")

    monkeypatch.setattr(doctor, "run", fail)
    assert main(["doctor"]) == 1
    error = capsys.readouterr().err
    assert "internal error: KeyError" in error
    assert error.count("\n") == 1
    monkeypatch.setenv("RANKSIGHT_DEBUG", "1")
    with pytest.raises(KeyError):
        main(["doctor"])


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(1.984, 3, "1.98"), (999.6, 3, "1,000"), (1984.0, 3, "1,980"), (374.0, 2, "370"), (99.6, 2, "100"), (4.26, 2, "4.3"),
     (4.5e7, 2, "4.5e+07")],
)  # fmt: skip
def test_factors_are_written_out(value: float, digits: int, text: str) -> None:
    assert format_factor(value, digits) == text
