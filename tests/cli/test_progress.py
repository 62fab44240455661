"""Progress on terminals and in logs."""

from __future__ import annotations

import sys

import pytest

from ranksight.campaign.collecting import COLLECTORS
from ranksight.campaign.launching import Template
from ranksight.campaign.measuring import Plan
from ranksight.cli import _progress
from ranksight.cli._progress import Files, Runs, fitting
from ranksight.core.experiment import Run


def run(ranks: float) -> Run:
    return Run({"ranks": ranks}, 0, "clock")


def test_a_log_has_a_line_a_run_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    slow, quick = run(2), Run({"ranks": 2}, 0, "callgrind")
    with Runs([slow, slow, slow, slow, quick, quick], quiet=False) as progress:
        progress(slow, "kept")
        for each, what, seconds in ((slow, "done", 100), (quick, "failed", 14), (slow, "done", 140)):
            progress(each, "start")
            now[0] += seconds
            progress(each, what)
    assert capsys.readouterr().err.splitlines() == [
        "[2/6] ranks=2 clock repetition 0: done, about 7 min left",  # four more, each like the only one so far
        "[3/6] ranks=2 callgrind repetition 0: failed, about 4 min left",  # two of 100 s, one of 14 s
        "[4/6] ranks=2 clock repetition 0: done, about 2 min left",  # one of 120 s, one of 14 s
    ]


@pytest.mark.parametrize("scaling", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("start_up", "law"), [(0.0, 1.0), (0.5, 3.0), (1.0, 2.0)])
def test_time_left_is_true_at_a_quarter_of_a_campaign(start_up: float, law: float, scaling: float) -> None:
    grid = {"ranks": (1.0, 2.0, 4.0, 8.0), "size": (16.0, 24.0, 32.0)}
    collectors = {name: COLLECTORS[name] for name in ("pmpi", "callgrind")}
    runs = [run for run, _, _ in Plan(Template(("true",)), grid, 1, collectors).runs()]

    def seconds(run: Run) -> float:
        ranks = run.configuration["ranks"]
        work = {"pmpi": 1.0, "callgrind": 15.0}[run.collector] * (run.configuration["size"] / 16) ** law
        waiting = 1.3 if ranks > 1 else 1.0
        return (start_up + work * ranks**-scaling) * waiting * max(1.0, ranks / 2)

    quarter = len(runs) // 4
    ahead = _progress.seconds_of([(run, seconds(run)) for run in runs[:quarter]], runs[quarter:], 2)
    assert sum(map(seconds, runs[quarter:])) / 1.4 < sum(ahead) < 1.4 * sum(map(seconds, runs[quarter:]))


def test_quiet_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with Runs([run(1)], quiet=True) as progress:
        progress(run(1), "failed")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_its_cursor_back(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")

    def cancelled() -> None:
        with Runs([run(1), run(2)], quiet=False) as progress:
            progress(run(1), "done")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cancelled()
    said = capsys.readouterr().err
    assert "1/2" in said
    assert said.rfind("\x1b[?25h") >= said.rfind("\x1b[?25l")


def test_an_import_shows_files_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    with Files(4, quiet=False) as files:
        for begin in files.over((0.0, 100.0)):
            now[0] = begin + 5.0
            files(1, 2)
            now[0] = begin + 100.0
    assert capsys.readouterr().err.splitlines() == [
        "[1/4] file 1 of 4, about 5 min left",
        "[2/4] file 2 of 4, about 3 min left",
    ]


def test_the_time_that_reading_took_is_not_taken_for_that_of_storing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    with Files(1, quiet=False) as files:
        for _ in files.over((0,)):
            for run in range(1, 202):
                now[0] = 60.0 + run  # a minute of reading, then a run a second
                files(run, 401)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "[0/1] file 1 of 1: 1 of 401 runs stored"
    assert last.endswith("about 3 min left")


def test_a_fit_shows_how_far_it_is_and_listens_no_longer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ranksight.core.log import LOG, progress

    clock = iter([0.0, 1.0, 30.0])
    monkeypatch.setattr(_progress.time, "monotonic", lambda: next(clock))
    before = (LOG.level, list(LOG.handlers))
    with fitting(quiet=False):
        progress("functions", 10, 100)
        progress("functions", 20, 100)
    progress("functions", 30, 100)
    assert capsys.readouterr().err == "[20/100] functions, about 2 min left\n"
    assert (LOG.level, LOG.handlers) == before
