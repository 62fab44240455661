"""Predict a program on many ranks, hold the prediction against runs there, and name what limits the program."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.cli._lines import options, shell_line
from ranksight.core.errors import InputError

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model
    from ranksight.platforms import Platform
    from ranksight.reports.demonstration import Proof

TARGET = {"ranks": 256.0, "size": 16.0}
"""The question; one of the configurations that were measured after the prediction."""
MODEL = "heat.model.json"


def run(chosen: argparse.Namespace) -> int:
    """Print question, answer, proof, limit and remedy."""
    from ranksight.core.experiment import read
    from ranksight.examples.measured import MENDED, unpack
    from ranksight.platforms import load
    from ranksight.reports.demonstration import prove, screen
    from ranksight.reports.terminal import Text, next_step, show

    folder = _folder(chosen)
    unpack(folder)
    platform = load("simulated")

    def proof(place: Path) -> Proof:
        return prove(_fitted(place, platform), read(place / "check"))

    faulty = proof(folder)
    mended = None if chosen.quick else proof(folder / MENDED)
    machine = f"SimGrid's SMPI, {platform.model}, platform '{platform.name}'"
    show(*screen(faulty, mended, TARGET, machine))
    made = folder / MODEL
    if not chosen.quick:
        made = _report(faulty.model, platform, folder)
    show(Text(f"Experiments, models and report are in {folder}: {made.name}"))
    show(next_step(shell_line("ranksight", "diagnose", folder / MODEL, *options(TARGET))))
    return 0


def _fitted(place: Path, platform: Platform) -> Model:
    from ranksight.core.experiment import read
    from ranksight.model.fit import assemble

    model, _ = assemble(read(place / "experiment"), platform=platform)
    model.save(place / MODEL)
    return model


def _report(model: Model, platform: Platform, folder: Path) -> Path:
    from ranksight.cli.report import commands, origin
    from ranksight.core.experiment import read
    from ranksight.reports.html.context import Context
    from ranksight.reports.html.page import render, write
    from ranksight.reports.sweep import sweep

    trained, checked = read(folder / "experiment"), read(folder / "check")
    asked = sweep(model, to=TARGET["ranks"], at={"size": TARGET["size"]})
    lines, author = commands((trained,)), origin((trained,))
    runs = (trained, checked)
    page = Context(model, asked, runs, platform, folder / MODEL, commands=lines, origin=author)
    write(render(page), folder / "heat.html", force=True)
    return folder / "heat.html"


def _folder(chosen: argparse.Namespace) -> Path:
    folder = Path(chosen.output or "ranksight-demo")
    try:
        if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
            ours = (folder / "experiment" / "experiment.json").is_file()
            if not (chosen.force and ours):
                remedy = "give --force to replace it" if ours else "name another folder with -o"
                raise InputError(f"{folder} exists already", remedy)
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}", "name another folder with -o") from error
    return folder
