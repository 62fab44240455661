"""Nothing lost, nothing let in: kills, hostile inputs, faults under the tracer, and the report in a browser.

``--kills``, ``--inputs`` and ``--seed`` of the command line say how much is done, and which. Many inputs take hours:
with ``--keep FOLDER`` a run that was stopped goes on, and one that found something reads only that again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.hostile.campaign_kills import at_any_time
from benchmarks.hostile.page import NAMES, show
from benchmarks.hostile.programs import Tally
from benchmarks.hostile.reading import CPU, Came, read_inputs
from benchmarks.hostile.samples import make
from benchmarks.hostile.surroundings import CASES, surround
from benchmarks.hostile.tracer import cases, run_cases
from benchmarks.settings import ROOT, Settings, Skipped
from benchmarks.table import markdown

TITLE = "Nothing lost, nothing let in"
AT_ONCE = 10
"""Kills of campaigns that a run that was stopped loses at most."""


def kills(folder: Path, count: int, seed: str, keep: Path | None = None) -> dict[str, Tally]:
    """Kills of commands: a half at operations on files, as far as there are so many; the others, of campaigns, at any
    time. Those that `keep` holds from an earlier run are not done again, unless something was found."""

    def kept(kill: Callable[[Path, int, str], dict[str, Tally]], wanted: int, at_once: int) -> dict[str, Tally]:
        name = kill.__name__.strip("_")
        tallies: dict[str, Tally] = {}
        for start in range(0, wanted, at_once):
            part, number = f"{seed}-{name}-{wanted}-{start}", min(at_once, wanted - start)
            done = _kept(keep, part, lambda part=part, number=number: kill(folder / part, number, part))  # type: ignore[misc]
            for of, tally in done.items():
                tallies.setdefault(of, Tally()).join(tally)
        return tallies

    tallies = kept(_operations, count // 2, max(1, count // 2))
    left = count - sum(tally.kills for tally in tallies.values())
    return {**tallies, **kept(_campaigns, left - left // 3, AT_ONCE), **kept(_tasks, left // 3, AT_ONCE)}


def _kept(keep: Path | None, name: str, made: Callable[[], dict[str, Tally]]) -> dict[str, Tally]:
    """Tallies from a file in `keep`; made, and written there, where it is missing or something was found."""
    file = None if keep is None else keep / f"{name}.json"
    if file is not None and file.exists():
        tallies = {of: Tally(**held) for of, held in json.loads(file.read_text(encoding="utf-8")).items()}
        if not any(tally.found for tally in tallies.values()):
            return tallies
    tallies = made()
    if file is not None:
        held = {of: vars(tally) for of, tally in tallies.items()}
        file.write_text(json.dumps(held, indent=1), encoding="utf-8")
    return tallies


def _campaigns(folder: Path, count: int, seed: str) -> dict[str, Tally]:
    return {"measure, at any time": at_any_time(folder, count, seed)}


def _tasks(folder: Path, count: int, seed: str) -> dict[str, Tally]:
    return {"tasks of a batch system, at any time": at_any_time(folder, count, seed, batch=True)}


def _operations(folder: Path, count: int, seed: str) -> dict[str, Tally]:
    """Kills at operations on files, by a process without threads."""
    paths = f"{ROOT.parent}{os.pathsep}{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "benchmarks.hostile.kills", str(folder), str(count), seed]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, cwd=ROOT)
    return {f"{name}, at operations on files": Tally(**of) for name, of in json.loads(done.stdout).items()}


def run(settings: Settings) -> str:
    """Tables of kills, of inputs by kind, and of the rest; what was found below them."""
    count, inputs = (scale // 10 if settings.quick else scale for scale in (settings.kills, settings.inputs))
    with tempfile.TemporaryDirectory(prefix="ranksight-safety-") as name:
        folder = Path(name)
        samples = folder / "samples"
        samples.mkdir()
        make(samples, settings.data if settings.data.is_dir() else None)  # anew: models of another day are refused
        tallies = kills(folder, count, settings.seed, settings.keep)
        came = read_inputs(samples, range(inputs), settings.seed, settings.jobs, settings.keep)
        others, found = _others(folder, settings)
    found += [what for tally in tallies.values() for what in tally.found]
    found += [
        f"input {number} of seed {settings.seed}, {kind}/{sample}: {what}" for number, kind, sample, what in came.found
    ]
    rows = [[name, tally.kills, tally.lost, tally.orphans, tally.left] for name, tally in tallies.items()]
    parts = [
        "Every run that was there is read again after each kill and compared with what its program computes; processes "
        "of the program may not outlive it, and nothing may lie around once the same line was given again.",
        markdown(["killed", "kills", "runs or files lost", "processes left", "files left"], rows),
        f"Inputs are made from sound ones by changes in terms of their format, and read by processes of at most "
        f"1 GiB more than they start with, in at most {CPU:g} CPU s per MB read or written, where a row of "
        f"a table counts as 2 kB, since it may be a run of its own (seed {settings.seed}; the largest process took "
        f"{came.peak / 1e6:.0f} MB). Whatever comes of an input but an answer or a message of one line is a fault. "
        + ("Inputs and kills that were kept from an earlier run met the program of that day. " if settings.keep else "")
        + (f"{came.again} inputs that came to a fault were read again once it was mended. " if came.again else "")
        + "A staging folder that is empty is removed by the first start a minute later; it is aged before what is left "
        "is counted.",
        _inputs(came),
        markdown(["what", "figure"], others),
    ]
    if found:
        parts.append("Found:\n\n" + "\n".join(f"- {' '.join(what.split())[:300]}" for what in found[:50]))
    return "\n\n".join(parts)


def _inputs(came: Came) -> str:
    rows = [
        [kind.removeprefix("reader-"), of.total(), of["read"], of["refused"], of["found"]]
        for kind, of in sorted(came.counts.items())
    ]
    rows.append(["all", came.total(), came.total("read"), came.total("refused"), came.total("found")])
    return markdown(["read as", "inputs", "read", "refused", "faults"], rows)


def _others(folder: Path, settings: Settings) -> tuple[list[list[object]], list[str]]:
    """Figures of the tracer and of the report; dashes where they cannot be had here."""
    rows: list[list[object]] = []
    found: list[str] = []
    try:
        done, skipped, differ = run_cases(folder / "tracer", 10 if settings.quick else 1)
        found += differ
        rows += [
            ["faults under the tracer", done],
            ["of these with another exit code or output than alone", len(differ)],
        ]
        if skipped:
            rows.append(["faults that cannot be made here", skipped])
    except Skipped:
        rows.append(["faults under the tracer", f"none of {len(cases())}: no MPI"])
    ran, missing, differ = surround(folder / "surroundings", CASES[::4] if settings.quick else CASES)
    found += differ
    rows += [["commands where something around them goes wrong", ran], ["of these that end wrongly", len(differ)]]
    if missing:
        rows.append(["surroundings that cannot be made here", "; ".join(missing)])
    try:
        ran, requests, seen = show(folder / "page", NAMES[::10] if settings.quick else NAMES)
        found += seen
        rows += [["hostile names in the report", len(NAMES)], ["scripts that ran", ran], ["requests", requests]]
    except Skipped:
        rows.append(["hostile names in the report", "none: no Chromium"])
    return rows, found
