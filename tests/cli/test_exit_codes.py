"""Exit codes are those that the documents state, for every verb."""

from __future__ import annotations

import shlex
from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli.main import VERBS, main, verb_parser
from ranksight.core.experiment import Experiment
from ranksight.core.run import Run

WITHOUT_INPUT = {
    "init": "init --nothing",
    "doctor": "doctor --nothing",
    "completion": "completion cmd",
    "demo": "demo --nothing",
    "check": "check --nothing",
    "predict": "predict {good_model} --ranks 8 --nothing",
    "diagnose": "diagnose {good_model} --ranks 8 --nothing",
    "plan": "plan {good_model} --ranks 8 --nothing",
    "report": "report {good_model} -o {new} --nothing",
    "compare": "compare {good} {slow} --nothing",
    "history": "history {good} {slow} --nothing=1",
}
BAD_INPUT = {
    "measure": "measure --ranks 1 --collector table -o {new} --quiet -- /nowhere/program {{ranks}}",
    "import": "import {absent} -o {new}",
    "calibrate": "calibrate --timings {absent} -o {new}.toml",
    "fit": "fit {absent}",
    "predict": "predict {absent} --ranks 8",
    "diagnose": "diagnose {absent} --ranks 8",
    "check": "check {absent}.toml {good}",
    "plan": "plan {absent} --ranks 8",
    "compare": "compare {good} {absent}",
    "history": "history {good} {absent}",
    "report": "report {absent} -o {new}",
    "export": "export csv {absent}",
    "phases": "phases {absent}",
}
CODES = [
    (0, "fit {good} -o {new}"),
    (0, "fit {one} -o {new}"),
    (0, "predict {good_model} --ranks 32"),
    (0, "predict {part_model} --ranks 32"),
    (4, "predict {one_model} --ranks 64"),
    (4, "diagnose {good_model} --ranks 32"),
    (0, "plan {good_model} --ranks 128 --max-ranks 64"),
    (4, "plan {one_model} --ranks 64 --budget 1e-9"),
    (0, "report {good_model} -o {new}"),
    (4, "report {one_model} --ranks 64 -o {new}"),
    (0, "compare {good} {good}"),
    (0, "compare {good} {slow}"),
    (3, "compare {good} {slow} --threshold 5"),
    (0, "compare {slow} {good} --threshold 5"),
    (4, "compare {one} {one} --ranks 64"),
    (0, "history {good} {good2} {slow}"),
    (3, "history {good} {good2} {slow} --threshold 5"),
    (0, "history {good} {good2} --threshold 5"),
    (0, "check {met} {good}"),
    (3, "check {violated} {good}"),
    (4, "check {met} {one}"),
    (4, "phases {good}"),
    (0, "export csv {good}"),
]


COUNTS = (1, 2, 4, 8, 16)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("codes")
    found = {"absent": folder / "absent"}
    for name, counts, factor in (
        ("good", COUNTS, 1),
        ("good2", COUNTS, 1),
        ("slow", COUNTS, 2),
        ("one", (4,), 1),
        ("part", COUNTS, 1),
    ):
        made = Experiment.create(folder / name, "app", ["ranks"])
        for ranks in counts:
            for repetition in range(2):
                rows = {"solve": factor * (8 / ranks) * (1 + 0.002 * repetition)}
                if name == "part" and ranks == 16:
                    rows["late"] = 0.25
                table = pd.DataFrame({"kernel": list(rows), "rank": -1, "time": list(rows.values())})
                made.add(Run({"ranks": ranks}, repetition=repetition), table)
        found[name] = made.path
    for name in ("good", "one", "part"):
        found[f"{name}_model"] = folder / f"{name}.json"
        main(["fit", str(found[name]), "-o", str(found[f"{name}_model"]), "--quiet"])
    for name, growth in (("met", "1/p"), ("violated", "p")):
        found[name] = folder / f"{name}.toml"
        found[name].write_text(f'[expect.time]\nsolve = "O({growth})"\n')
    return found


def run(words: str, places: dict[str, Path], new: Path) -> int:
    try:
        return main(shlex.split(words.format(new=new, **places)))
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize(("code", "words"), CODES, ids=[words for _, words in CODES])
def test_codes_of_answers(places: dict[str, Path], tmp_path: Path, code: int, words: str) -> None:
    assert run(words, places, tmp_path / "new") == code
    if code in (3, 4):
        assert f"code {code}" in stated(words.split()[0]) or f"it is {code}" in stated(words.split()[0])


def stated(verb: str) -> str:
    text = " ".join(verb_parser(verb).format_help().split())
    return text.replace("code is", "code").replace("otherwise 4", "exit code 4")


@pytest.mark.parametrize("verb", VERBS)
def test_options_that_are_not_known_are_usage(
    places: dict[str, Path], tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = WITHOUT_INPUT.get(verb, f"{BAD_INPUT.get(verb, verb)} --nothing=1".replace(" -- ", " --nothing=1 -- "))
    assert run(words.replace("{absent}", "{good}"), places, tmp_path / "new") == 2
    assert "ranksight: " in capsys.readouterr().err


@pytest.mark.parametrize("verb", BAD_INPUT)
def test_bad_input(places: dict[str, Path], tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(BAD_INPUT[verb], places, tmp_path / "new") == 1
    assert "ranksight: " in capsys.readouterr().err
