"""Campaigns on a real program without MPI: complete, resumed, failing, timed out, cancelled."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pytest

from ranksight.campaign import measuring
from ranksight.campaign.collecting import COLLECTORS, Availability, Step
from ranksight.campaign.launching import Launch, Template
from ranksight.campaign.measuring import Plan, execute, measure
from ranksight.cli._outcome import report
from ranksight.cli.main import main
from ranksight.core.errors import ToolError
from ranksight.core.experiment import Experiment, Run, read
from ranksight.core.reading import Reading


class Words:
    """Counts the words that the program prints."""

    text = "words printed"
    deterministic = False
    default = False

    def available(self) -> Availability:
        return Availability(True)

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        return [Step(launch.wrap(["/usr/bin/env", "WORDS=1"]), {"ADDED": "yes"})]

    def collect(self, launch: Launch, folder: Path) -> Reading:
        words = (folder / "output-0.txt").read_text().split()
        if not words:
            raise ToolError("the program printed nothing")
        table = pd.DataFrame({"kernel": ["main"], "rank": [0], "visits": [float(len(words))]})
        return Reading(counters=table, provenance={"visits": "measured"})


@pytest.fixture
def collector() -> Iterator[str]:
    COLLECTORS.register("words")(Words())
    yield "words"
    del COLLECTORS._items["words"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Prints RANKS + SIZE words; fails, hangs or kills itself as files in its folder say."""
    file = tmp_path / "program"
    file.write_text(
        f"#!{sys.executable}\n"
        "import os, signal, sys, time\n"
        "ranks, size = map(int, sys.argv[1:3])\n"
        "here = os.path.dirname(os.path.abspath(__file__))\n"
        "assert os.environ['WORDS'] == '1' and os.environ['ADDED'] == 'yes'\n"
        "open(here + '/log', 'a').write(f'{ranks} {size}\\n')\n"
        "if os.path.exists(f'{here}/fail-{ranks}'):\n    print('the end is near')\n"
        "    print('-' * 74, 'mpirun: a process exited with non-zero status', *'ABCDEFGH', '-' * 74, sep='\\n')\n"
        "    sys.exit(7)\n"
        "if os.path.exists(f'{here}/die-{ranks}'):\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
        "if os.path.exists(f'{here}/hang-{ranks}'):\n    time.sleep(60)\n"
        "print('word ' * (ranks + size))\n"
    )
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def line(program: Path, folder: Path, *more: str) -> list[str]:
    return [
        *(
            "measure",
            "--ranks",
            "1,2,4",
            "--size",
            "10,20",
            "--reps",
            "2",
            "--collector",
            "words",
            "-o",
            str(folder),
            *more,
        ),
        *("--", str(program), "{ranks}", "{size}"),
    ]


def test_a_grid_is_measured(collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line(program, tmp_path / "e")) == 0
    experiment = read(tmp_path / "e")
    assert len(experiment) == 12
    visits = {run.key: experiment.table(run, "counters")["visits"][0] for run in experiment.runs}
    assert visits[((("ranks", 4.0), ("size", 20.0)), 1)] == 24
    run = experiment.runs[0]
    assert run.command == (str(program), "1", "10")
    assert run.state == "complete"
    assert run.wall_time is not None
    assert run.wall_time > 0
    assert run.environment["host"]
    assert (experiment.path / "runs" / run.id / "raw" / "output-0.txt").is_file()
    assert not [entry for entry in experiment.path.iterdir() if entry.name.startswith(".pass")]
    assert "next: ranksight fit" in capsys.readouterr().out


def test_a_program_reads_a_file(
    collector: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for size in (10, 20):
        Path(f"input.{size}").write_text("word " * size, encoding="utf-8")
    reader = Path("reader.sh")
    reader.write_text("#!/bin/sh\ncat\n", encoding="utf-8")
    reader.chmod(0o755)
    words = ["measure", "--ranks", "1,2", "--size", "10,20", "--collector", "words", "-o", "e", "--"]
    words += [f"./{reader}", "{ranks}", "<", "input.{size}"]
    assert main(words) == 0
    experiment = read(Path("e"))
    visits = {run.configuration["size"]: experiment.table(run, "counters")["visits"][0] for run in experiment.runs}
    assert visits == {10: 10, 20: 20}
    words[words.index("10,20")] = "30"
    capsys.readouterr()
    assert main(words) == 1
    assert "reads input.30, which is not a file" in capsys.readouterr().err


def test_what_came_of_it_for_machines(
    collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program.parent / "fail-2").touch()
    printed = []
    for code in (1, 0):
        assert main(line(program, tmp_path / "e", "--reps", "1", "--format", "json")) == code
        printed.append(json.loads(capsys.readouterr().out))
        (program.parent / "fail-2").unlink(missing_ok=True)
    first, second = printed
    assert (first["runs"], first["measured"], first["kept"], first["stopped"]) == (4, 4, 0, False)
    assert {failed["run"] for failed in first["failed"]} == {"ranks2-size10-words-r0", "ranks2-size20-words-r0"}
    assert "exited with status 7" in first["failed"][0]["what"]
    assert (second["runs"], second["measured"], second["kept"], second["failed"]) == (6, 2, 4, [])
    assert main(line(program, tmp_path / "e", "--format", "json", "--emit", "slurm")) == 2


def test_output_that_finds_no_room_ends_no_campaign(
    collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program.parent / "fail-2").touch()
    Experiment.create(tmp_path / "e", "program", ["ranks", "size"])
    (tmp_path / "e" / "failed").touch()  # a file, where a folder cannot be made
    assert main(line(program, tmp_path / "e", "--reps", "1")) == 1
    error = capsys.readouterr().err
    assert error.count("exited with status 7") == 2
    assert error.count("there was no room to keep its output") == 2
    assert "kept in" not in error
    assert len(read(tmp_path / "e")) == 4


def test_a_failed_run_is_reported_and_the_rest_kept(
    collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program.parent / "fail-2").touch()
    assert main(line(program, tmp_path / "e", "--reps", "1")) == 1
    error = capsys.readouterr().err
    assert "exited with status 7" in error
    assert f"{program} 2 10" in error
    assert "| the end is near" in error
    assert "mpirun" not in error
    assert "Traceback" not in error
    assert {run.configuration["ranks"] for run in read(tmp_path / "e").runs} == {1, 4}
    before = (program.parent / "log").read_text().count("\n")
    (program.parent / "fail-2").unlink()
    assert main(line(program, tmp_path / "e", "--reps", "1")) == 0
    assert (program.parent / "log").read_text().count("\n") == before + 2
    assert len(read(tmp_path / "e")) == 6
    assert not list((tmp_path / "e" / "failed").iterdir())


def test_a_launcher_that_refuses_gets_its_remedy_and_a_cause_is_shown_once(
    collector: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusing = tmp_path / "refusing"
    refusing.write_text(
        "#!/bin/sh\necho 'There are not enough slots available in the system to satisfy the 4'\n"
        "echo 'slots that were requested'\nexit 1\n"
    )
    refusing.chmod(0o755)
    assert main(line(refusing, tmp_path / "e", "--reps", "1")) == 1
    error = capsys.readouterr().err
    assert "mpirun --oversubscribe" in error
    assert error.count("| slots that were requested") == 1
    assert error.count("(the same as before)") == measuring.FAILURES_IN_A_ROW - 1


def test_a_crash_by_signal_is_reported(
    collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program.parent / "die-4").touch()
    assert main(line(program, tmp_path / "e")) == 1
    assert "SIGSEGV" in capsys.readouterr().err


def test_failures_in_a_row_stop_the_campaign(
    collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for ranks in (1, 2, 4):
        (program.parent / f"fail-{ranks}").touch()
    assert main(line(program, tmp_path / "e")) == 1
    assert (program.parent / "log").read_text().count("\n") == measuring.FAILURES_IN_A_ROW
    assert "stopped" in capsys.readouterr().err


def test_a_collector_that_never_works_is_left_out_and_its_cause_reported_once(
    collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Never(Words):
        asked = 0

        def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
            self.asked += 1
            raise ToolError("it stands before a script")

    never = Never()
    plan = Plan(
        Template((str(program), "{ranks}", "{size}")),
        {"ranks": (1, 2, 4), "size": (10, 20)},
        1,
        {"never": never, "words": Words()},
    )
    experiment = Experiment.create(tmp_path / "e", "x", ("ranks", "size"))
    outcome = measure(experiment, plan)
    assert never.asked == len(outcome.failures) == measuring.FAILURES_IN_A_ROW
    assert outcome.measured == len(experiment) == 6
    assert report(experiment, outcome, quiet=True) == 1
    error = capsys.readouterr().err
    assert error.count("it stands before a script") == 1
    assert "left out after 3 failures one after another: never" in error


def test_a_run_that_hangs_is_ended(
    collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (program.parent / "hang-1").touch()
    assert main(line(program, tmp_path / "e", "--timeout", "3", "--reps", "1")) == 1
    assert "ran longer than 3 s" in capsys.readouterr().err
    assert len(read(tmp_path / "e")) == 4


def test_a_cancelled_campaign_goes_on(
    collector: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = measuring.execute
    calls = []

    def cancel(step: Step, output: Path, timeout: float | None) -> float:
        calls.append(step)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(step, output, timeout)

    monkeypatch.setattr(measuring, "execute", cancel)
    assert main(line(program, tmp_path / "e")) == 130
    assert len(read(tmp_path / "e")) == 3
    monkeypatch.undo()
    assert main(line(program, tmp_path / "e")) == 0
    assert len(read(tmp_path / "e")) == 12


def test_two_campaigns_keep_apart(
    collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line(program, tmp_path / "e", "--reps", "1")) == 0
    with measuring.alone(tmp_path / "e"):
        assert main(line(program, tmp_path / "e")) == 1
    assert "another campaign is measuring" in capsys.readouterr().err
    assert main(line(program, tmp_path / "e")) == 0
    assert len(read(tmp_path / "e")) == 12


def test_another_command_is_not_mixed_in(
    collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line(program, tmp_path / "e")) == 0
    words = line(program, tmp_path / "e")
    assert main([*words, "--extra"]) == 1
    assert "was measured with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--ranks", "1,x"], 2, "'x' in '1,x' is not a number"),
        (["--ranks", "1", "--size", "big"], 2, "is not a number"),
        (["--ranks", "1"], 2, "{size} has no values"),
        (["--ranks", "0", "--size", "1"], 1, "not a number of ranks"),
        (["--ranks", "1.5", "--size", "1"], 1, "not a number of ranks"),
        (["--ranks", "1", "--size", "nan"], 2, "not finite"),
        (["--ranks", "1", "--size", "1", "--collector", "magic"], 1, "no collector is named 'magic'"),
        (["--ranks", "1", "--size", "1", "--depth", "3"], 2, "--depth"),
        (["--ranks", "1", "--size", "1", "--reps", "0"], 2, "--reps 0"),
    ],
)
def test_bad_lines(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str
) -> None:
    assert main(["measure", "-o", str(tmp_path / "e"), *words, "--", str(program), "{ranks}", "{size}"]) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "e").exists()


def test_templates_that_cannot_be_used(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "-o", str(tmp_path / "e"), "--ranks", "1", "--", str(program)]) == 2
    assert main(["measure", "-o", str(tmp_path / "e")]) == 2
    assert main(["measure", "--ranks", "1", "--", str(program), "{ranks}"]) == 2
    assert main(["measure", "-o", str(tmp_path / "e"), "--ranks", "1", "--", "./no-such", "{ranks}"]) == 1
    error = capsys.readouterr().err
    assert "the command has no {ranks}" in error
    assert "no command is given" in error
    assert "-o FOLDER" in error
    assert "no-such is not a program" in error


def test_a_folder_that_is_no_experiment(
    collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("data")
    assert main(line(program, tmp_path / "full")) == 1
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "full" / "precious").read_text() == "data"


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write anywhere")
def test_an_unwritable_folder(
    collector: str, program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    assert main(line(program, tmp_path / "closed" / "e")) == 1
    assert "cannot write" in capsys.readouterr().err


def test_a_deterministic_collector_runs_once(program: Path, tmp_path: Path) -> None:
    words = Words()
    words.deterministic = True
    plan = Plan(Template((str(program), "{ranks}", "{size}")), {"ranks": (1,), "size": (2,)}, 5, {"words": words})
    outcome = measure(Experiment.create(tmp_path / "e", "x", ["ranks", "size"]), plan)
    assert (outcome.measured, outcome.kept, outcome.failures) == (1, 0, ())


@pytest.mark.parametrize(
    "line",
    [
        "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
        "[1,3]<stderr>: MPI_ABORT was invoked on rank 3 in communicator MPI COMMUNICATOR 3 DUP FROM 0",
        "application called MPI_Abort(MPI_COMM_WORLD, 0) - process 3",
        "[3] application called MPI_Abort(MPI_COMM_WORLD, 0) - process 3",
        "Abort(0) on node 3 (rank 3 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 0) - process 3",
    ],
)
def test_a_program_that_gives_up_has_failed_whatever_its_status(tmp_path: Path, line: str) -> None:
    output = tmp_path / "output-0.txt"
    with pytest.raises(ToolError, match="called MPI_Abort"):
        execute(Step(("printf", "%s\n", "step 1", line, "with errorcode 0.")), output, None)
    assert execute(Step(("printf", "%s\n", "checks that MPI_ABORT was invoked on rank 0: no")), output, None) > 0


def test_the_largest_configuration_is_the_second() -> None:
    grid = {"ranks": (1.0, 4.0, 2.0), "size": (10.0, 20.0)}
    plan = Plan(Template(("true",)), grid, 1, {"perf-clock": COLLECTORS["perf-clock"]})
    order = [tuple(run.configuration.values()) for run, _, _ in plan.runs()]
    assert order == [(1, 10), (4, 20), (1, 20), (4, 10), (2, 10), (2, 20)]


def test_failures_of_the_largest_configuration_alone_stop_nothing() -> None:
    def runs(*ranks: float) -> list[Run]:
        return [Run({"ranks": each}, 0, "pmpi") for each in ranks]

    assert not measuring._Failing(runs(8, 8, 8), proved=True).hopeless
    assert measuring._Failing(runs(8, 8, 8)).hopeless
    assert measuring._Failing(runs(8, 8, 2), proved=True).hopeless
