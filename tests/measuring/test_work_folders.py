"""Cases that are copied for each run and prepared once per configuration, and commands that differ by ranks."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pytest

from ranksight.campaign.collecting import COLLECTORS, Availability, Step
from ranksight.campaign.launching import Launch, Template
from ranksight.cli._continuing import measure_lines, template_of, work_options
from ranksight.cli.main import main
from ranksight.core.experiment import read
from ranksight.core.reading import Reading
from ranksight.model.structure.neighbourfit import dimensions_of


class Sizes:
    """Counts what the program found in its folder; each run is two executions."""

    text, deterministic, default = "", False, False

    def available(self) -> Availability:
        return Availability(True)

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        return [Step(launch.command)] * 2

    def collect(self, launch: Launch, folder: Path) -> Reading:
        found = [(folder / f"output-{index}.txt").read_text().split() for index in (0, 1)]
        assert found[0] == found[1]
        table = pd.DataFrame({"kernel": found[0], "rank": 0, "visits": 1.0})
        return Reading(counters=table, provenance={"visits": "measured"})


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    COLLECTORS.register("sizes")(Sizes())
    yield
    del COLLECTORS._items["sizes"]


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a case, a program that lists it and leaves a file in it, and a program that prepares it."""
    folder = tmp_path / "case of mine"
    (folder / "constant").mkdir(parents=True)
    (folder / "constant" / "mesh").write_text("m")
    (tmp_path / "outside").write_text("o")
    (folder / "inner").symlink_to("constant/mesh")
    (folder / "outer").symlink_to("../outside")
    scripts = {
        "solve": "ls; cat inner outer >/dev/null && echo $1 && touch result",
        "prepare": "test ! -e prepared || exit 4; echo preparing; touch prepared$1; echo x >> $2",
    }
    for name, text in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return folder


def line(*words: str, command: Sequence[str] = ("./solve", "{ranks}"), ranks: str = "1,2") -> list[str]:
    options = ["--ranks", ranks, "--reps", "2", "--collector", "sizes", "--quiet", "-o", "e"]
    return ["measure", *options, *words, "--", *command]


def kernels(ranks: float) -> set[str]:
    experiment = read("e")
    runs = [run for run in experiment.runs if run.configuration["ranks"] == ranks]
    assert len(runs) == 2
    return set(experiment.counters(runs=runs)["kernel"])


def test_a_case_is_copied_for_each_execution_and_prepared_once(case: Path, tmp_path: Path) -> None:
    before = sorted(os.listdir(case))
    prepare = f"./prepare {{ranks}} {shlex.quote(str(tmp_path / 'log'))}"
    assert main(line("--workdir", str(case), "--prepare", prepare)) == 0
    assert kernels(1) == {"constant", "inner", "outer", "prepared1", "1"}
    assert kernels(2) == {"constant", "inner", "outer", "prepared2", "2"}
    assert (tmp_path / "log").read_text() == "x\nx\n"
    assert sorted(os.listdir(case)) == before
    assert not list((tmp_path / "e").glob(".pass-*"))
    run = read("e").runs[0]
    assert run.environment["workdir"] == str(case.resolve())
    assert shlex.split(run.environment["prepare"]) == [str(tmp_path / "prepare"), "1", str(tmp_path / "log")]
    assert run.command == (str(tmp_path / "solve"), "1")


def test_without_a_case_the_folder_is_empty_but_for_what_prepares_it(case: Path) -> None:
    assert main(line("--prepare", "touch n{size}", "--size", "7", command=("ls", "-d", "{ranks}", "."), ranks="1")) == 1
    assert main(line("--prepare", "touch n{size} {ranks}", "--size", "7", command=("ls", "{ranks}"), ranks="1")) == 0
    assert kernels(1) == {"1"}
    assert read("e").parameters == ("ranks", "size")


def test_another_command_at_some_ranks(case: Path) -> None:
    more = ("--at", "1,4", "./solve serial", "--workdir", str(case))
    assert main(line(*more, ranks="1,2,4")) == 0
    assert [kernels(ranks) & {"serial", "2"} for ranks in (1, 2, 4)] == [{"serial"}, {"2"}, {"serial"}]
    template = Template(("a", "{ranks}"), {1: ("b", "{depth}")}, ("c", "{size}"))
    assert template.parameters == ("ranks", "depth", "size")


def test_a_preparation_that_fails_is_shown_once_and_not_repeated(
    case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = f"sh -c 'echo no such mesh; echo x >> {tmp_path}/tries; exit 4'"
    assert main(line("--prepare", failing)) == 1
    said = capsys.readouterr().err
    assert "ended with status 4" in said
    assert "| no such mesh" in said
    assert (tmp_path / "tries").read_text() == "x\n"
    (kept,) = {file.read_text() for file in (tmp_path / "e" / "failed").glob("*/output-prepare.txt")}
    assert kept == "no such mesh\n"


def test_a_campaign_goes_on_with_the_same_preparation_only(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line("--workdir", str(case), ranks="1")) == 0
    assert main(line("--workdir", str(case), "--prepare", "touch a")) == 1
    assert "was measured without --prepare; give the same" in capsys.readouterr().err
    assert main(line("--prepare", "true", ranks="1")) == 1
    assert f"was measured with --workdir {case}" in capsys.readouterr().err
    assert main(line("--workdir", str(case))) == 0
    assert len(read("e")) == 4


def test_lines_that_measure_more_prepare_as_well(case: Path) -> None:
    prepare = "touch 'n {size}' {ranks}"
    assert main(line("--workdir", str(case), "--prepare", prepare, "--size", "7,9", command=("ls", "{ranks}"))) == 0
    experiment = read("e")
    template = template_of(experiment)
    assert template == ("ls", "{ranks}")
    (shown,) = measure_lines([{"ranks": 4.0, "size": 7.0}], 1, Path("e"), template, work_options(experiment))
    words = shlex.split(shown)
    assert words[words.index("--workdir") + 1] == str(case)
    assert shlex.split(words[words.index("--prepare") + 1]) == ["touch", "n {size}", "{ranks}"]


def test_a_command_with_sides_of_a_grid_or_products_is_found_again(case: Path) -> None:
    given = ("ls", "-I", "{grid2.x}-{grid2.y}", "-I", "{size*grid2.x}")
    assert main(line("--workdir", str(case), "--size", "7,9", command=given)) == 0
    experiment = read("e")
    assert template_of(experiment) == given
    assert dimensions_of(experiment) == {2: 1.0}
    assert work_options(experiment) == ["--workdir", str(case)]


def test_lines_that_measure_more_have_grids_and_commands_of_a_few_ranks(case: Path) -> None:
    words = (
        "--workdir",
        str(case),
        "--prepare",
        "touch {grid2.x} {size}",
        "--at",
        "1",
        "ls inner -I '*'",
        "--size",
        "7,9",
    )
    assert main(line(*words, command=("ls", "{ranks}"))) == 0
    experiment = read("e")
    template = template_of(experiment)
    assert template == ("ls", "{ranks}")
    (shown,) = measure_lines([{"ranks": 4.0, "size": 7.0}], 1, Path("e"), template, work_options(experiment))
    again = shlex.split(shown)
    assert again[again.index("--prepare") + 1] == "touch {grid2.x} {size}"
    assert again[again.index("--at") + 1 :][:2] == ["1", "ls inner -I '*'"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--workdir", "none"), 1, "none is not a folder"),
        (("--workdir", "."), 1, "is inside ., which is copied for each run"),
        (("--prepare", "a 'b"), 2, "is not a command: No closing quotation"),
        (("--prepare", ""), 2, "no command is given"),
        (("--prepare", "a {depth}"), 2, "{depth} has no values"),
        (("--at", "one", "x"), 2, "argument --at: 'one' is not a number"),
        (("--at", "1"), 2, "--at"),
        (("--prepare", "a {workdir}"), 2, "{workdir} cannot be a parameter"),
    ],
)
def test_bad_lines(
    case: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, message: str
) -> None:
    assert main(line(*words)) == code
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_tasks_of_a_batch_system_prepare_as_well(case: Path, tmp_path: Path) -> None:
    more = ("--workdir", str(case), "--prepare", "touch 'a b' {ranks}", "--at", "1", "./solve 'x y'", "--emit", "slurm")
    assert main(line(*more)) == 0
    text = (tmp_path / "e.jobs" / "ranks-1.sh").read_text()
    (task,) = (text_line for text_line in text.splitlines() if "ranksight measure" in text_line)
    words = shlex.split(task)
    assert words[words.index("--workdir") + 1] == str(case)
    assert shlex.split(words[words.index("--prepare") + 1]) == ["touch", "a b", "{ranks}"]
    assert words[words.index("--at") + 1 :][:2] == ["1", "./solve 'x y'"]
