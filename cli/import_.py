"""Read measurements that other tools made, and make an experiment of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.cli._document import print_document
from ranksight.cli._doubting import bound_notes, doubts, holder_of, refuse_wholes
from ranksight.cli._lines import shell_line
from ranksight.cli._progress import Files
from ranksight.cli._reading import log_reader, names_given, of_runs, readings, table_reader
from ranksight.cli._saying import SHOWN, say, say_first, warn
from ranksight.core.errors import InputError, UsageError, meant
from ranksight.core.units import counted, in_full, some_of
from ranksight.reports.terminal import Table, next_step, show

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.campaign.naming import Naming
    from ranksight.campaign.recognising import Found
    from ranksight.cli._reading import Read
    from ranksight.core.experiment import Experiment, Run
    from ranksight.core.reading import Reading

TABLE = "csv"  # name of the format whose columns the user names
MARKDOWN = "markdown"  # the same, of pipe tables
LOG = "log"  # name of the format whose lines the user describes
JOINED = "experiment"  # name of the format of our own folders
ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")  # how tables in a folder are called
ANY_TIMES = (TABLE, MARKDOWN, "extrap")
"""Formats whose kernels may be timers of any kind; others say whether times hold those of callees."""
OF_TABLES = ("kernel", "repetition", "rank", "where", "melt", "pivot", "delimiter", "decimal")
"""Options that speak of columns."""


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the line; paths may stand before, between and behind options."""
    return parser.parse_intermixed_args(list(arguments))


def run(chosen: argparse.Namespace) -> int:
    """Carry the verb out."""
    from ranksight.campaign.merging import is_experiment
    from ranksight.campaign.recognising import Found
    from ranksight.core.reading import READERS

    if chosen.jobs < 1:
        raise UsageError(f"ranksight import: --jobs {chosen.jobs}", "give at least 1")
    if chosen.list_formats:
        _list_formats()
        return 0
    words = list(chosen.paths)
    named = None
    formats = (TABLE, MARKDOWN, LOG, *READERS)
    if words and words[0] in formats and (len(words) > 1 or not Path(words[0]).exists()):
        named = words.pop(0)
    if words and words[0] == JOINED and not Path(words[0]).exists():
        return _join([Path(word) for word in words[1:]], chosen)
    if not words:
        raise UsageError("ranksight import: no file is given", "--list-formats lists what can be read")
    if named is None and len(words) > 1 and not Path(words[0]).exists():
        near = meant(words[0], (TABLE, MARKDOWN, LOG, JOINED, *READERS))
        raise InputError(f"{words[0]} is neither a format nor a file", near or "--list-formats lists the formats")
    paths = [Path(word) for word in words]
    if named is None and all(is_experiment(path) for path in paths):
        return _join(paths, chosen)
    if named is None and all(_is_table(path) for path in paths):
        named = TABLE
    if chosen.time and named != LOG:
        raise UsageError("ranksight import: --time is for logs", f"write import log {words[0]} --time ...")
    if named not in (TABLE, MARKDOWN) and (options := [name for name in OF_TABLES if getattr(chosen, name)]):
        raise UsageError(f"ranksight import: --{options[0]} is for tables", f"write import csv {words[0]} ...")
    if named == LOG:
        return _import(Found([(path, LOG) for path in _logs(paths)]), log_reader(chosen), paths[0], chosen)
    if named == MARKDOWN:
        return _import(Found([(path, MARKDOWN) for path in paths]), table_reader(chosen), paths[0], chosen)
    if named == TABLE:
        return _import(Found([(path, TABLE) for path in _tables(paths)]), table_reader(chosen), paths[0], chosen)
    found = _recognised(words, named, chosen)
    found.todo, read = of_runs(found.todo)
    return _import(found, (names_given(chosen), read), paths[0], chosen)


def _import(found: Found, how: tuple[Naming, Read], first: Path, chosen: argparse.Namespace) -> int:
    """Make an experiment of the files found; without a name for it, it is called as the `first` path."""
    from ranksight.campaign.importing import Import
    from ranksight.core.leftout import warning
    from ranksight.counters import merging
    from ranksight.counters.checking import Checks
    from ranksight.counters.forming import formed, load_once
    from ranksight.platforms import load

    todo, (naming, read) = found.todo, how
    place = chosen.output or Path(first.resolve().stem + ".experiment")
    skips = Skips(chosen.strict or len(todo) == 1, found.refused)
    runs = 0
    platform = None if chosen.platform is None else load(chosen.platform)
    table = load_once(platform.events) if platform is not None and platform.events else None
    checks = Checks(platform)

    merged: list[pd.DataFrame] = []

    def complete(reading: Reading) -> Reading:
        return formed(reading, table)

    def together(passes: Sequence[Reading]) -> Reading:
        reading = merging.together(passes)
        merged.append(reading.tables[merging.TABLE])
        return reading

    with Import(place, chosen.application or place.stem, naming, chosen.force, complete, checks) as work:
        with Files(len(todo), chosen.quiet) as progress:
            for path, name, given in progress.over(readings(todo, read, chosen)):
                with skips.passing():
                    runs += work.add(given(), name, path, watch=progress)
        skipped = skips.end()
        if not runs:
            raise InputError(f"none of {len(todo)} files could be imported", "the messages above say why")
        refuse_wholes(work, chosen, any(name in ANY_TIMES for _, name in todo))
        work.settle()
        work.merge(together)
        if (total := holder_of(work, chosen)) is not None:
            work.mark_inclusive(total)
        experiment = work.finish()
    warn(warning(experiment))
    say_first("warning", checks.warnings(), "warnings")
    # What was lost and what only the user can know first: of many notes some are not printed.
    notes = [*work.meanings.notes, *work.left_out, *doubts(work, experiment, chosen), *merging.notes_of(merged)]
    notes += work.notes
    say_first("note", [note for note in dict.fromkeys(notes) if note not in checks.texts], "notes")
    if found.unknown and not chosen.quiet:
        say(f"not recognised: {some_of(found.unknown)}")
    _summary(experiment, work.kernels, len(todo) + len(found.refused) - skipped, skipped, chosen)
    return 0


def _list_formats() -> None:
    """Print what can be read."""
    from ranksight.core.reading import READERS

    rows = [[name, READERS[name].text] for name in READERS]
    rows.append([TABLE, "any table with a header, its columns named by --parameter, --metric, --kernel"])
    rows.append([MARKDOWN, "tables of Markdown, named in the same way; cells such as 10.5 s, 1:23 and 95 %"])
    rows.append([LOG, "plain logs of jobs: the time and parameters by patterns, --time 'Elapsed: {time}'"])
    rows.append([JOINED, "folders of 'ranksight measure' or 'import', joined into one experiment"])
    show(Table([":word", ":text"], rows, head=False))


def _recognised(words: list[str], named: str | None, chosen: argparse.Namespace) -> Found:
    """The files that are no tables, by their format: the one that was `named`, or that which each is found to have."""
    from ranksight.campaign.recognising import find

    found = find([Path(word) for word in words], named)
    if found.refused and (chosen.strict or not found.todo):
        raise found.refused[0]
    if not found.todo:
        what = named or "any format that is known"
        markdown = Path(words[0]).suffix.lower() in (".md", ".markdown")
        reading = ("markdown", words[0]) if markdown else ("csv", words[0])
        raise InputError(
            f"{words[0]} {'is' if len(words) == 1 else 'and the others are'} not of {what}",
            f"a table is read by '{shell_line('ranksight', 'import', *reading)} --parameter ... --metric ...'; "
            "--list-formats lists the other formats",
        )
    return found


def _is_table(path: Path) -> bool:
    """Whether a file is called as a table, and is of no other format."""
    from ranksight.campaign.recognising import recognise

    return path.name.lower().endswith(ENDINGS) and path.is_file() and recognise(path) is None


def _join(paths: list[Path], chosen: argparse.Namespace) -> int:
    """Join experiments; the output may be one that exists already, which the runs are added to."""
    from ranksight.campaign.merging import check_alike, check_tables, is_experiment, merge
    from ranksight.core.experiment import Experiment
    from ranksight.core.leftout import warning

    of_files = ("total", "parameter", "set", "metric", "period", "platform", "values")
    given = [name for name in (*OF_TABLES, *of_files) if getattr(chosen, name)]
    if given:
        raise UsageError(f"ranksight import: --{given[0]} is not for experiments", "they name their parameters")
    if not paths:
        raise UsageError("ranksight import: no experiment is given")
    if chosen.output is None:
        raise UsageError("ranksight import: no folder to join the experiments in", "name one with -o FOLDER")
    skips = Skips(chosen.strict or len(paths) == 1)
    sources = []
    for path in paths:
        with skips.passing():
            source = Experiment.read(path)
            check_tables(source)
            sources.append(source)
    skipped = skips.end()
    if not sources:
        raise InputError(f"none of {len(paths)} folders is an experiment", "the messages above say why")
    place: Path = chosen.output
    if is_experiment(place):
        target = Experiment.read(place)
    else:
        check_alike(sources[0], sources[1:])
        target = Experiment.create(place, chosen.application or sources[0].application, sources[0].parameters)
    merge(target, sources)
    warn(warning(target))
    say_first("note", bound_notes(target), "notes")
    names = {str(kernel) for run in target.runs for kernel in _kernels(target, run)}
    _summary(target, names, len(sources), skipped, chosen)
    return 0


def _kernels(experiment: Experiment, run: Run) -> Iterable[str]:
    table = experiment.table(run, "counters", ["kernel"])
    return () if table is None else table["kernel"].unique()


def _tables(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        inside = sorted(item for item in path.iterdir() if item.name.endswith(ENDINGS)) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"{path} holds no .csv and no .tsv file", "name the tables themselves")
        found += inside
    return found


def _logs(paths: list[Path]) -> list[Path]:
    """The files that are named, and all regular files of folders that are."""
    from ranksight.counters.readers._files import inside

    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        found += inside(path) if path.is_dir() else [path]
    return found


def _summary(experiment: Experiment, names: set[str], read: int, skipped: int, chosen: argparse.Namespace) -> None:
    from ranksight.core.experiment import WHOLE
    from ranksight.core.leftout import warning

    kernels = len(names - {WHOLE})

    ranges = {name: sorted({run.configuration[name] for run in experiment.runs}) for name in experiment.parameters}
    configurations = len({tuple(sorted(run.configuration.items())) for run in experiment.runs})
    if chosen.format == "json":
        content = {
            "schema_version": 1,
            "experiment": str(experiment.path),
            "application": experiment.application,
            "runs": len(experiment),
            "configurations": configurations,
            "parameters": ranges,
            "kernels": kernels,
            "metrics": list(experiment.metrics()),
            "files_read": read,
            "files_skipped": skipped,
            "warnings": list(filter(None, [warning(experiment)])),
        }
        print_document(content)
        return
    if chosen.quiet:
        return
    rows = [
        ["experiment", f"{experiment.path} ({experiment.application})"],
        ["files", f"{read} read, {skipped} skipped"],
        ["runs", f"{len(experiment)} of {counted(configurations, 'configuration')}"],
        *([f"  {name}", _listed(values)] for name, values in ranges.items()),
        ["kernels", str(kernels) if kernels else "none, the whole program"],
        ["metrics", ", ".join(experiment.metrics())],
    ]
    show(
        Table([":word", ":text"], rows, head=False),
        next_step(shell_line("ranksight", "fit", experiment.path)),
    )


def _listed(values: list[float]) -> str:
    if len(values) > 12:
        return f"{in_full(values[0])} .. {in_full(values[-1])}, {len(values)} values"
    return ", ".join(map(in_full, values))


class Skips:
    """Passes over what cannot be read and says so at once; with `strict` the first error ends the import.

    `refused`: what was passed over before.
    """

    def __init__(self, strict: bool, refused: Iterable[InputError] = ()) -> None:
        self.strict = strict
        self.count = 0
        for error in refused:
            self._skip(error)

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Around the reading of one file."""
        try:
            yield
        except InputError as error:
            if self.strict:
                raise
            self._skip(error)

    def _skip(self, error: InputError) -> None:
        self.count += 1
        if self.count <= SHOWN:
            say(f"skipped: {error}")

    def end(self) -> int:
        """How many were passed over; those that were not named are counted in a line."""
        if self.count > SHOWN:
            say(f"{self.count - SHOWN} more skipped")
        return self.count
