"""Evidence and provenance: what was run where and when, every file, and what computed the report."""

from __future__ import annotations

import hashlib
import platform as system
import shlex
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ranksight import __version__
from ranksight.core.experiment import Experiment, Run
from ranksight.core.units import in_full
from ranksight.reports.html.context import Context
from ranksight.reports.html.writing import whole

MOST_RUNS = 400
MOST_FILES = 400
HASHED = 64 << 20  # bytes up to which files are read for their checksums
LIBRARIES = ("numpy", "scipy", "pandas", "pyarrow", "matplotlib", "jinja2")


def build(context: Context) -> dict[str, Any]:
    """What the template needs."""
    model = context.model
    budget = [HASHED]
    return {
        "experiments": [_experiment(experiment, budget) for experiment in context.experiments],
        "model": None if context.model_file is None else _file(context.model_file, context.model_file.name, budget),
        "provenance": _sources(model.provenance),
        "training": {
            "heads": list(model.parameters),
            "rows": [[in_full(x) for x in point] for point in model.training.tolist()][:MOST_RUNS],
            "count": len(model.training),
        },
        "versions": [("ranksight", __version__), ("Python", system.python_version()), *_libraries()],
        "space": model.fitted.space,
        "functions": len(model.fitted),
        "resources": _resources(context),
    }


def _sources(provenance: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Sources of numbers, with the metrics that come from each."""
    found: dict[str, list[str]] = {}
    for name, text in provenance.items():
        found.setdefault(whole(text), []).append(whole(name))
    return sorted(found.items())


def _libraries() -> list[tuple[str, str]]:
    found = []
    for name in LIBRARIES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:  # installed without its metadata, as some sites' modules are
            found.append((name, "version unknown"))
    return found


def _resources(context: Context) -> dict[str, Any] | None:
    resources = context.model.equation.resources
    if not resources:
        return None
    return {
        "count": len(resources.kernels),
        "scale": resources.scale,
        "evidence": Counter(resources.evidence).most_common(),
    }


def _experiment(experiment: Experiment, budget: list[int]) -> dict[str, Any]:
    runs = experiment.runs
    shared, varied = _environments(runs)
    files: list[dict[str, Any]] = []
    total, count = 0, 0
    for run in runs:
        for path in sorted((experiment.path / "runs" / run.id).rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            count += 1
            total += path.stat().st_size
            if len(files) < MOST_FILES:
                files.append(_file(path, str(path.relative_to(experiment.path)), budget))
    return {
        "path": whole(str(experiment.path)),
        "application": whole(experiment.application),
        "count": len(runs),
        "runs": [_run(experiment, run) for run in runs[:MOST_RUNS]],
        "more_runs": max(0, len(runs) - MOST_RUNS),
        "shared": [(whole(name), whole(text)) for name, text in shared],
        "varied": [(whole(name), [whole(text) for text in texts]) for name, texts in varied],
        "files": files,
        "more_files": max(0, count - len(files)),
        "bytes": total,
        "notes": [
            (whole(text), times) for text, times in Counter(n for run in runs for n in run.notes).most_common(40)
        ],
        "sources": [whole(text) for text in dict.fromkeys(s for run in runs for s in run.source)][:MOST_FILES],
    }


def _run(experiment: Experiment, run: Run) -> dict[str, Any]:
    return {
        "values": [f"{in_full(run.configuration[name])}" for name in experiment.parameters],
        "repetition": run.repetition,
        "collector": whole(run.collector),
        "state": whole(run.state) + ("" if run.exit_status in (None, 0) else f", exit status {run.exit_status}"),
        "ok": run.state == "complete",
        "wall": run.wall_time,
        "started": whole(run.started),
        "command": whole(shlex.join(run.command)) if run.command else "",
        "id": run.id,
    }


def _environments(runs: tuple[Run, ...]) -> tuple[list[tuple[str, str]], list[tuple[str, list[str]]]]:
    """Variables that all runs share, and those that differ with the values they took."""
    values: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, text in run.environment.items():
            values.setdefault(name, {})[str(text)] = None
    shared = [(name, next(iter(texts))) for name, texts in values.items() if len(texts) == 1]
    varied = [(name, list(texts)[:8]) for name, texts in values.items() if len(texts) > 1]
    return shared, varied


def _file(path: Path, name: str, budget: list[int]) -> dict[str, Any]:
    """Name, size and checksum of a file; no checksum where the files before it were large."""
    try:
        length = path.stat().st_size
        digest = ""
        if length <= budget[0]:
            budget[0] -= length
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        return {"name": whole(name), "bytes": 0, "digest": f"cannot be read: {error.strerror}"}
    return {"name": whole(name), "bytes": length, "digest": digest}
