"""The command line that measures more runs of an experiment: its template found again in the commands it ran."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ranksight.cli._lines import options, shell_line
from ranksight.core.errors import InputError, RanksightError

if TYPE_CHECKING:
    from pathlib import Path

    from ranksight.core.experiment import Experiment, Run
    from ranksight.model.fitted_model import Model

FARTHER = (1, 2, 4, 8)
"""Times as many ranks for which runs are planned, where up to what was asked nothing is left to measure."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def experiment_of(model: Model, path: Path) -> Experiment | None:
    """The experiment that the model in the file `path` was made of, as ``fit`` names them; None where there is none.

    ``heat.exp.model.json`` is of the folder ``heat.exp``; in the folder of a demo ``heat.model.json`` is of
    ``experiment``.
    """
    from ranksight.core.experiment import read

    own = path.with_name(path.name.removesuffix(".model.json"))
    for folder in (own, path.with_name("experiment")):
        if folder == path or not (folder / "experiment.json").is_file():
            continue
        try:
            found = read(folder)
        except InputError:
            return None
        if found.parameters == model.parameters:
            return found
        if model.coordinates and set(found.parameters) == set(model.coordinates.given):
            return model.view(found)
    return None


def plan_line(model: Model, path: Path, asked: Mapping[str, Sequence[float]], experiment: Experiment | None) -> str:
    """The line that plans runs for the configurations `asked`; empty where none can be planned.

    Where all runs up to these were made, the next runs are those for more ranks (:data:`FARTHER`), or for larger values
    of a model without ranks. `path`: what the line names. `experiment`: that the model is of, where it is at hand.
    """
    import numpy as np

    from ranksight.analysis.planning.candidates import candidates, cores_of
    from ranksight.analysis.planning.cost import cost_of

    cores = None if experiment is None else cores_of(experiment)
    grows = ["ranks"] if "ranks" in asked else list(asked)
    for factor in FARTHER:
        there = {name: [x * factor if name in grows else x for x in values] for name, values in asked.items()}
        try:
            offered = candidates(model.parameters, model.training, model.combinations(there), held=cores)
            if offered.none_left:
                continue
            price = cost_of(model, experiment).of(offered.points, 1).core_hours
        except RanksightError:
            continue
        if np.isfinite(price).any():
            return shell_line("ranksight", "plan", path, *options(there))
    return ""


def template_of(experiment: Experiment) -> tuple[str, ...] | None:
    """The command with its parameters in braces; None where the runs do not show it.

    Runs state it where it differs by the number of ranks or needs preparation. A number in the command of others is a
    parameter's place when it had the parameter's value in every run.
    """
    runs = [run for run in experiment.runs if run.command]
    if (stated := _stated(runs, "template")) is not None:
        return stated
    found = _template([run.command for run in runs], runs, experiment.parameters)
    options = _preparation(experiment, runs)
    if found is None or options is None:
        return None
    for name in experiment.parameters:
        places = sum(word.count(f"{{{name}}}") for word in (*found, *options))
        # A parameter that took one value may share it with another number of the command.
        if not places or (places > 1 and len({run.configuration[name] for run in runs}) == 1):
            return None
    return found


def work_options(experiment: Experiment) -> list[str]:
    """The options that give runs of an experiment a work folder of their own, as it was measured with them."""
    runs = [run for run in experiment.runs if run.command]
    stated, prepare = _stated(runs, "options"), _preparation(experiment, runs)
    cases = {run.environment.get("workdir", "") for run in runs} - {""}
    words = ["--workdir", min(cases)] if cases else []
    if stated is not None:
        return [*words, *stated]
    from ranksight.campaign.launching import in_shell

    return [*words, "--prepare", in_shell(prepare)] if prepare else words


def _stated(runs: Sequence[Run], name: str) -> tuple[str, ...] | None:
    """Words of a fact that all runs state as the same; None where they do not."""
    texts = {run.environment.get(name, "") for run in runs}
    return tuple(shlex.split(texts.pop())) if len(texts) == 1 and "" not in texts else None


def _preparation(experiment: Experiment, runs: Sequence[Run]) -> tuple[str, ...] | None:
    """The command that prepared the runs with its parameters in braces; None where the runs do not show it."""
    lines = [run.environment.get("prepare", "") for run in runs]
    return _template([tuple(shlex.split(line)) for line in lines], runs, experiment.parameters) if any(lines) else ()


def _template(
    commands: Sequence[tuple[str, ...]], runs: Sequence[Run], parameters: Sequence[str]
) -> tuple[str, ...] | None:
    if len({len(command) for command in commands}) != 1:
        return None
    words = [_word([command[at] for command in commands], runs, parameters) for at in range(len(commands[0]))]
    found = tuple(word for word in words if word is not None)
    return found if len(found) == len(words) else None


def _word(texts: Sequence[str], runs: Sequence[Run], parameters: Sequence[str]) -> str | None:
    """One word of the template from those of the runs; None where they differ in other than parameters."""
    skeletons = {_NUMBER.sub("\0", text) for text in texts}
    if len(skeletons) != 1:
        return None
    pieces = skeletons.pop().split("\0")
    numbers = [_NUMBER.findall(text) for text in texts]
    found = pieces[0]
    for place, piece in enumerate(pieces[1:]):
        written = [each[place] for each in numbers]
        held = [(name, [run.configuration[name] for run in runs]) for name in parameters]
        names = [name for name, values in held if values == [float(text) for text in written]]
        if not names and len(set(written)) > 1:
            return None
        found += (f"{{{names[0]}}}" if names else written[0]) + piece
    return found


def measure_lines(
    configurations: Sequence[Mapping[str, float]],
    repetitions: int,
    folder: Path | None,
    template: Sequence[str] | None,
    more: Sequence[str] = (),
) -> list[str]:
    """Lines of ``ranksight measure`` for some configurations, those that differ in one parameter in one line.

    Where the program's command is not known, ``COMMAND`` stands for it; `more` are further options.
    """
    if not configurations:
        return []
    names = list(configurations[0])
    lines = []
    for group in _groups([dict(each) for each in configurations], names):
        values = shell_line(*options({name: sorted(set(group[name])) for name in names}))
        from ranksight.campaign.launching import in_shell

        command = in_shell(template) if template else "COMMAND"
        place = shlex.quote(str(folder)) if folder is not None else "FOLDER"
        reps = f" --reps {repetitions}" if repetitions > 1 else ""
        work = f" {shell_line(*more)}" if more else ""
        lines.append(f"ranksight measure {values}{reps}{work} -o {place} -- {command}")
    return lines


def _groups(left: list[dict[str, float]], names: Sequence[str]) -> list[dict[str, list[float]]]:
    """Configurations put together where they differ in one parameter only, in their order."""
    found: list[dict[str, list[float]]] = []
    while left:
        first = left[0]
        together = max(
            ([each for each in left if all(each[n] == first[n] for n in names if n != free)] for free in names), key=len
        )
        found.append({name: [each[name] for each in together] for name in names})
        left = [each for each in left if each not in together]
    return found
