"""Campaigns as job scripts: written, run by a stand-in for a batch system, and by a real Slurm where one is up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ranksight.campaign.scheduling import following
from ranksight.campaign.scheduling.jobs import COMPLETE, Request, jobs_of, write_scripts
from ranksight.campaign.scheduling.schedulers import SCHEDULERS
from ranksight.cli.main import main
from ranksight.core.errors import InputError, ToolError
from ranksight.core.experiment import read

STAND_IN = """#!/bin/sh
# Runs all tasks of a script at once, in order, and prints an id.
script=
for word in "$@"; do script=$word; done
for index in 0 1 2 3; do
    if [ "$index" = 0 ] || grep -q "^$index)" "$script"; then
        SLURM_ARRAY_TASK_ID=$index PBS_ARRAY_INDEX=$index bash "$script" >"$script.$index.out" 2>&1 || true
    fi
done
echo "$$"
"""
SOURCE = """
#include <stdlib.h>
#include <unistd.h>
const char stands_for[] = "MPI_Init"; /* as a program with an MPI of its own holds it */
/* Fails at size 13 unless it is mended; works long enough for some samples. */
int main(int count, char **words) {
    if (count > 1 && atoi(words[1]) == 13 && access(MENDED, F_OK)) return 3;
    volatile double sum = 0;
    for (int i = 0; i < 10000000; i++) sum += i;
    return 0;
}
"""


LAUNCHER = """#!/bin/sh
# mpirun -n RANKS PROGRAM...: so many processes that know their rank.
ranks=$2; shift 2; rank=0; status=0; started=
while [ $rank -lt $ranks ]; do OMPI_COMM_WORLD_RANK=$rank "$@" & started="$started $!"; rank=$((rank+1)); done
for one in $started; do wait $one || status=$?; done
exit $status
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    (tmp_path / "program.c").write_text(SOURCE)
    words = ["gcc", f'-DMENDED="{tmp_path}/mended"', "-o", str(tmp_path / "program"), str(tmp_path / "program.c")]
    subprocess.run(words, check=True)
    (tmp_path / "launch").mkdir()
    (tmp_path / "launch" / "mpirun").write_text(LAUNCHER)
    (tmp_path / "launch" / "mpirun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'launch'}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "program"


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sbatch", "qsub", "flux"):
        (folder / name).write_text(STAND_IN)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def emit(tmp_path: Path, program: Path, system: str, *more: str, sizes: str = "8,12") -> int:
    words = ["measure", "--ranks", "1,2", "--size", sizes, "--collector", "perf-clock", "-o", str(tmp_path / "e.exp")]
    return main([*words, "--emit", system, *more, "--", "mpirun", "-n", "{ranks}", str(program), "{size}"])


@pytest.mark.parametrize("system", list(SCHEDULERS))
def test_a_task_measures_one_configuration(tmp_path: Path, program: Path, system: str) -> None:
    more = ("--job-ranks-per-node", "1", "--job-option=--account=ab c", "--job-setup", "export PLACE='a b'")
    assert emit(tmp_path, program, system, *more, "--job-time", "90") == 0
    folder = tmp_path / "e.exp.jobs"
    scripts = sorted(file.name for file in folder.glob("ranks-*.sh"))
    arrays = SCHEDULERS[system].arrays
    assert scripts == (
        ["ranks-1.sh", "ranks-2.sh"] if arrays else ["ranks-1-0.sh", "ranks-1-1.sh", "ranks-2-0.sh", "ranks-2-1.sh"]
    )
    text = (folder / scripts[-1]).read_text()
    assert "--account=ab c" in text
    assert "export PLACE='a b'" in text
    assert {"slurm": "#SBATCH --nodes=2", "pbs": "select=2:ncpus=1", "flux": "# flux: --nodes=2"}[system] in text
    assert {"slurm": "--time=90", "pbs": "walltime=01:30:00", "flux": "--time-limit=90m"}[system] in text
    assert {"slurm": "--ntasks=2", "pbs": "mpiprocs=1", "flux": "# flux: --nslots=2"}[system] in text
    assert text.count("--size 8 ") == (1 if arrays else 0)
    for script in folder.glob("*.sh"):
        assert subprocess.run(["bash", "-n", str(script)]).returncode == 0
    submission = (folder / "submit.sh").read_text()
    assert submission.count("=$(") == len(scripts)
    assert "afterany" in submission.splitlines()[-1]


@pytest.mark.perf
@pytest.mark.parametrize(
    "system", ["slurm", pytest.param("pbs", marks=pytest.mark.slow), pytest.param("flux", marks=pytest.mark.slow)]
)
def test_the_parts_of_all_jobs_become_one_experiment(
    tmp_path: Path, program: Path, stand_in: Path, system: str
) -> None:
    assert emit(tmp_path, program, system, sizes="8,13") == 0
    folder = tmp_path / "e.exp.jobs"
    subprocess.run(["sh", str(folder / "submit.sh")], check=True)
    # Size 13 fails in every job, and what is complete is joined nevertheless.
    assert {run.configuration["size"] for run in read(tmp_path / "e.exp").runs} == {8}
    assert len(read(tmp_path / "e.exp")) == 2
    assert {mark.parent.name for mark in folder.glob(f"parts/*/{COMPLETE}")} == {"ranks1-size8", "ranks2-size8"}
    (tmp_path / "mended").touch()
    assert emit(tmp_path, program, system, sizes="8,13") == 0
    text = "".join(file.read_text() for file in folder.glob("ranks-*.sh"))
    assert "--size 13" in text
    assert "--size 8 " not in (folder / "ranks-1.sh").read_text() if SCHEDULERS[system].arrays else True
    subprocess.run(["sh", str(folder / "submit.sh")], check=True)
    assert len(read(tmp_path / "e.exp")) == 4


@pytest.mark.perf
@pytest.mark.parametrize("system", list(SCHEDULERS))
def test_repetitions_can_be_tasks_of_their_own(tmp_path: Path, program: Path, stand_in: Path, system: str) -> None:
    each = ("--reps", "2", "--job-each-repetition")
    assert emit(tmp_path, program, system, *each, sizes="8") == 0
    folder = tmp_path / "e.exp.jobs"
    subprocess.run(["sh", str(folder / "submit.sh")], check=True)
    runs = read(tmp_path / "e.exp").runs
    assert sorted((run.configuration["ranks"], run.repetition) for run in runs) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    part = folder / "parts" / "ranks1-size8-repetition1"
    assert [run.repetition for run in read(part).runs] == [1]
    (part / COMPLETE).unlink()
    for script in folder.glob("ranks-*.sh"):
        script.unlink()
    assert emit(tmp_path, program, system, *each, sizes="8") == 0
    text = "".join(script.read_text() for script in folder.glob("ranks-*.sh"))
    assert text.count("--repetition 1") == 1
    assert "--repetition 0" not in text


def test_what_cannot_be_a_job_is_refused(tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert emit(tmp_path, program, "slrum") == 1
    assert "slurm" in capsys.readouterr().err
    assert emit(tmp_path, program, "slurm", "--job-time", "0") == 1
    assert "one minute" in capsys.readouterr().err
    assert emit(tmp_path, program, "slurm", "--job-option", "account=abc") == 1
    assert "not an option of a job" in capsys.readouterr().err
    assert emit(tmp_path, program, "slurm", "--job-option=--a\n#SBATCH --uid=0") == 1
    assert emit(tmp_path, program, "slurm", "--submit", "slurm") == 2
    capsys.readouterr()
    words = ["measure", "--ranks", "1", "-o", str(tmp_path / "x"), "--submit", "pbs", "--", str(program), "{ranks}"]
    assert main(words) == 1
    assert "--emit pbs" in capsys.readouterr().err
    blank = tmp_path / "a b"
    blank.mkdir()
    assert emit(blank, program, "slurm") == 1
    assert "without blanks" in capsys.readouterr().err


@pytest.mark.parametrize("system", list(SCHEDULERS))
def test_jobs_have_nodes_alone_and_names_of_their_campaign(
    tmp_path: Path, program: Path, system: str, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = {"slurm": "#SBATCH --exclusive\n", "pbs": "#PBS -l place=excl\n", "flux": "# flux: --exclusive\n"}[system]
    name = {"slurm": "--job-name=e-ranks-2", "pbs": "-N e-ranks-2", "flux": "--job-name=e-ranks-2-0"}[system]
    folder = tmp_path / "e.exp.jobs"
    script = folder / ("ranks-2.sh" if SCHEDULERS[system].arrays else "ranks-2-0.sh")
    assert emit(tmp_path, program, system, "--job-ranks-per-node", "36", "--job-at-once", "1") == 0
    text = script.read_text()
    assert alone in text
    assert name in text
    assert alone not in (folder / "gather.sh").read_text()
    # No more ranks are asked for on a node than there are.
    assert "=36" not in text
    if SCHEDULERS[system].arrays:
        assert "0-1%1" in text
    assert "disturb times" not in capsys.readouterr().err
    assert emit(tmp_path, program, system, "--job-ranks-per-node", "36", "--job-shared") == 0
    assert alone not in script.read_text()
    assert "disturb times" in capsys.readouterr().err
    assert emit(tmp_path, program, system, "--job-ranks-per-node", "36", "--job-option=--exclusive=user") == 0
    assert alone not in script.read_text()
    assert "--exclusive=user" in script.read_text()


def test_a_setup_that_fails_ends_the_job(tmp_path: Path, program: Path) -> None:
    assert emit(tmp_path, program, "slurm", "--job-setup", "false | cat", "--job-setup", "touch on") == 0
    done = subprocess.run(["bash", str(tmp_path / "e.exp.jobs" / "ranks-1.sh")], cwd=tmp_path, capture_output=True)
    assert done.returncode != 0
    assert not list(tmp_path.rglob("on"))
    assert not (tmp_path / "e.exp.jobs" / "parts" / "ranks1-size8").exists()


def test_a_refusal_leaves_no_folder(tmp_path: Path, program: Path) -> None:
    blank = tmp_path / "a b"
    blank.mkdir()
    assert emit(blank, program, "slurm") == 1
    assert emit(tmp_path, program, "slurm", "--job-at-once", "0") == 1
    assert not list(blank.iterdir())
    assert not (tmp_path / "e.exp.jobs").exists()


def test_a_pending_task_shows_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "7|0|PENDING|Resources\n7|1|RUNNING|None\n8|N/A|PENDING|None\n"
    (tmp_path / "squeue").write_text(f"#!/bin/sh\nprintf '{lines}'\n".replace("\n7", "\\n7").replace("\n8", "\\n8"))
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    states = SCHEDULERS["slurm"].states
    assert states is not None
    assert states(["7", "8"]) == {("7", 0): "PENDING (Resources)", ("7", 1): "RUNNING", ("8", 0): "PENDING"}


def test_words_of_the_command_stay_words(tmp_path: Path) -> None:
    nasty = ("./it's", "{size}", "$(touch hacked)", "; rm -rf .", "a\nb")
    request = Request(5)
    jobs = jobs_of({"ranks": [1], "size": [2]}, ("printf", "%s|"), nasty, tmp_path, request, SCHEDULERS["slurm"])
    (script,) = write_scripts(jobs, ("true",), tmp_path, tmp_path, request, SCHEDULERS["slurm"])
    (tmp_path / "parts" / "ranks1-size2").mkdir()
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split("|")[-len(nasty) - 1 : -1] == list(nasty)
    assert not (tmp_path / "hacked").exists()


def test_following_ends_when_the_jobs_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([{("7", 0): "PENDING", ("7", 1): "RUNNING"}, {("7", 0): "TIMEOUT", ("7", 1): "COMPLETED"}])
    system = following.Scheduler("", "", True, ("sbatch",), lambda ids: (), lambda ids: next(answers))
    taken = [following.Submitted("ranks-1", "7", ("a", "b"))]
    (tmp_path / "parts" / "b").mkdir(parents=True)
    (tmp_path / "parts" / "b" / COMPLETE).touch()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "ranks-1-0.7.out").write_text("one\n\nDUE TO TIME LIMIT\n")
    states_seen: list[dict[str, int]] = []
    states = following.follow(taken, system, states_seen.append, pause=0)
    assert states_seen == [{"PENDING": 1, "RUNNING": 1}, {"TIMEOUT": 1, "COMPLETED": 1}]
    (fate,) = following.missing(tmp_path, taken, states)
    assert (fate.part, fate.state) == ("a", "TIMEOUT")
    assert fate.last_lines[-1] == "DUE TO TIME LIMIT"


def test_a_batch_system_that_is_silent_is_named(tmp_path: Path) -> None:
    def silent(ids: object) -> dict[tuple[str, int], str]:
        raise ToolError("squeue does not answer")

    system = following.Scheduler("", "", True, ("sbatch",), lambda ids: (), silent)
    with pytest.raises(ToolError, match="does not answer"):
        following.follow([following.Submitted("a", "1", ())], system, lambda counts: None, pause=0)


def test_the_record_is_of_one_system(tmp_path: Path) -> None:
    (tmp_path / "jobs.json").write_text('{"scheduler": "slurm", "jobs": [{"name": "a", "id": "1", "parts": ["x"]}]}')
    assert following.recorded(tmp_path, "slurm") == [following.Submitted("a", "1", ("x",))]
    with pytest.raises(InputError, match="of slurm"):
        following.recorded(tmp_path, "flux")
    (tmp_path / "jobs.json").write_text('{"scheduler": "slurm", "jobs": [1]}')
    with pytest.raises(InputError, match="damaged"):
        following.recorded(tmp_path, "slurm")


def test_a_job_whose_id_was_never_known_is_not_submitted_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = iter(["7", KeyboardInterrupt()])

    def ask(words: object) -> str:
        answer = next(ids)
        if isinstance(answer, KeyboardInterrupt):
            raise answer
        return answer

    monkeypatch.setattr(following, "ask", ask)
    jobs = [following.Job(f"ranks-{ranks}", ranks, None, ()) for ranks in (1, 2)]
    with pytest.raises(KeyboardInterrupt):
        following.submit(tmp_path, jobs, "slurm", SCHEDULERS["slurm"])
    with pytest.raises(InputError, match=r"submitted ranks-2\.sh.*cancel it and 7 "):
        following.recorded(tmp_path, "slurm")


def test_a_job_that_is_refused_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[list[str]] = []

    def ask(command: tuple[str, ...]) -> str:
        words.append([Path(word).name for word in command])
        if command[-1].endswith("gather.sh"):
            raise ToolError("sbatch failed")
        return f"{len(words)};cluster"

    monkeypatch.setattr(following, "ask", ask)
    job = following.Job("ranks-1", 1, None, ())
    with pytest.raises(ToolError, match="sbatch failed"):
        following.submit(tmp_path, [job], "slurm", SCHEDULERS["slurm"])
    assert words == [
        ["sbatch", "--parsable", "ranks-1.sh"],
        ["sbatch", "--parsable", "--dependency=afterany:1", "gather.sh"],
    ]
    assert following.recorded(tmp_path, "slurm") == [following.Submitted("ranks-1", "1", ())]


def test_parts_that_were_measured_but_not_joined_are_joined_by_the_same_line(tmp_path: Path, stand_in: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nprintf 'kernel,rank,time\\nwork,0,1.5\\n' >\"$RANKSIGHT_TABLE\"\n")
    program.chmod(0o755)
    line = ["measure", "--ranks", "1", "--size", "3", "--collector", "table", "--quiet", "-o", str(tmp_path / "e.exp")]
    line += ["--emit", "slurm", "--", str(program), "{ranks}", "{size}"]
    submit = ["sh", str(tmp_path / "e.exp.jobs" / "submit.sh")]
    for _ in range(2):
        assert main(line) == 0
        subprocess.run(submit, check=True)
        assert len(read(tmp_path / "e.exp")) == 1
        shutil.rmtree(tmp_path / "e.exp")  # as if the last job had been killed


@pytest.mark.slow
@pytest.mark.perf
def test_a_real_slurm(tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("sinfo") is None or subprocess.run(["sinfo"], capture_output=True).returncode:
        pytest.skip("no Slurm is up")
    words = ["measure", "--ranks", "1,2", "--size", "8,13", "--collector", "perf-clock", "-o", str(tmp_path / "e.exp")]
    line = [*words, "--submit", "slurm", "--job-time", "2", "--", "mpirun", "-n", "{ranks}", str(program), "{size}"]
    assert main(line) == 1
    said = capsys.readouterr()
    assert "ranks1-size13 is not complete, its job's state is failed" in said.err
    assert len(read(tmp_path / "e.exp")) == 2
    (tmp_path / "mended").touch()
    assert main(line) == 0
    assert len(read(tmp_path / "e.exp")) == 4
    assert sys.executable in (tmp_path / "e.exp.jobs" / "gather.sh").read_text()
