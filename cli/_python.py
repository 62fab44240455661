"""Verbs as functions of Python, of the same options."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ranksight.core.experiment import Experiment, read


def import_(
    *paths: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    format: str | None = None,
    parameters: Sequence[str] | Mapping[str, str] = (),
    metrics: Sequence[str] | Mapping[str, str] = (),
    **options: Any,
) -> Experiment:
    """An experiment of measurements that other tools made: what ``ranksight import`` makes of the same files.

    Raises InputError as the verb does: for a file of no known format, a missing column, cells that are no numbers,
    merged cells. Notes go to standard error.

    Parameters
    ----------
    paths
        Files or folders.
    output : path, optional
        Folder of the experiment; without it a temporary one, which is removed with the object.
    format : str, optional
        Format of the files where it is not to be recognised, such as ``csv`` or ``markdown``.
    parameters, metrics : sequence of str, or mapping of str to str
        Names, or each name with where it stands: a column, or a regular expression of the path.
    options
        Other options of the verb by their names: ``set={"size": 30}``, ``kernel="column"``, ``values="sum"``,
        ``strict=True``. Times are seconds where no unit is stated.

    Examples
    --------
    >>> from pathlib import Path
    >>> rows = ["| ranks | time |", "|---|---|", "| 1 | 1:23 |", "| 2 | 44.5 s |", "| 4 | 24 s |"]
    >>> place = Path("results.md")
    >>> place.write_text("\\n".join(rows)) > 0
    True
    >>> experiment = rs.import_(place, format="markdown", parameters=["ranks"], metrics=["time"])
    >>> len(experiment), experiment.parameters
    (3, ('ranks',))
    """
    from ranksight.cli import import_ as verb
    from ranksight.cli.main import verb_parser

    named: dict[str, Any] = {"parameter": parameters, "metric": metrics, "quiet": True, **options}
    folder = None if output is not None else Path(tempfile.mkdtemp(prefix="ranksight-"))
    place = Path(output) if folder is None else folder / "experiment"  # type: ignore[arg-type]
    words = [*([format] if format else []), *(os.fspath(path) for path in paths)]
    words += [word for name, value in named.items() for word in _words(f"--{name.replace('_', '-')}", value)]
    try:
        if folder is not None and "application" not in options and len(paths) > 0:
            words.append(f"--application={Path(paths[0]).resolve().stem}")
        verb.run(verb.parse(verb_parser("import"), [*words, f"--output={place}"]))
        experiment = read(place)
    except BaseException:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if folder is not None:
        weakref.finalize(experiment, shutil.rmtree, folder, True)
    return experiment


def _words(option: str, value: Any) -> list[str]:
    """An option of the command line: a flag, a value, or repeated for each value of several."""
    if value is None or isinstance(value, bool):
        return [option] if value else []
    if isinstance(value, Mapping):
        return [f"{option}={name}={text}" for name, text in value.items()]
    if isinstance(value, str | os.PathLike) or not isinstance(value, Sequence):
        return [f"{option}={value}"]
    return [f"{option}={each}" for each in value]
