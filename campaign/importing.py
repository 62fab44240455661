"""Build an experiment from readings: name the parameters, number the repetitions, store all runs or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ranksight.campaign.meanings import Entry, Meanings, Restated
from ranksight.campaign.naming import Naming, numbers_of
from ranksight.campaign.nested import Timers, inclusive
from ranksight.campaign.passes import passes, store_together, stored
from ranksight.campaign.plausible import Check, timed
from ranksight.campaign.units import Configuration, thousandfold
from ranksight.core.errors import InputError, writable
from ranksight.core.experiment import COUNTER_KEYS, WHOLE, Experiment, Run
from ranksight.core.files import Staging, recover, refuse_link, sync_tree
from ranksight.core.log import log
from ranksight.core.reading import Reading, validated
from ranksight.core.run import TOTAL
from ranksight.core.sampled import TABLE, sampling

if TYPE_CHECKING:
    import pandas as pd


SAME = 0.2
"""Relative difference of repetitions that differ in their unit alone."""
REPEATED = 20
"""Repetitions of a configuration whose times are compared with those that follow."""


def _shape(path: Path) -> str:
    return re.sub(r"\d+", "0", path.name)


_NEW = "experiment"


class _Checked(NamedTuple):
    """A reading as it is stored."""

    reading: Reading
    entry: Entry  # its totals as they were read
    found: tuple[str, ...]  # notes on its values
    formed: tuple[str, ...]  # notes on the metrics that were formed of its events, or not


TABLES = frozenset({"csv", "perf-stat"})
"""Readers whose format may not say what values are over ranks."""


class Import:
    """An experiment under construction, in a temporary folder until :meth:`finish`; removed if that is never called.

    Use it as a context manager. Raises InputError when something is at `place` and `force` is not given, or it is not
    an experiment.

    Parameters
    ----------
    place : Path
        Where the experiment will be.
    application : str
        Its name.
    naming : Naming
        What the user says about parameters and metrics.
    force : bool
        Replace an experiment that is there.
    complete : callable
        What every reading goes through once its parameters and metrics have the user's names: it may add metrics and
        notes (:func:`ranksight.counters.forming.formed`).
    check : Check, optional
        Of values of a rank (:class:`ranksight.counters.checking.Checks`).

    Attributes
    ----------
    kernels : set of str
        Kernels seen so far.
    timers : Timers
        What the readings say of timers that hold each other.
    meanings : Meanings
        What they say of what their values are over ranks.
    notes : dict of str to None
        What the readings imported so far note, each once, in order.
    left_out : list of str
        Those of them that say of a run why it was left out.
    thousandfold : tuple of Path or None
        Two files whose times of one configuration differ by a factor of a thousand, as seconds and milliseconds do.
    unlike : tuple of Path or None
        Two files that became repetitions of one configuration although their names differ in more than numbers.
    """

    def __init__(
        self,
        place: Path,
        application: str,
        naming: Naming,
        force: bool = False,
        complete: Callable[[Reading], Reading] = lambda reading: reading,
        check: Check | None = None,
    ) -> None:
        self.place, self.application, self.naming = place, application, naming
        recover(place)
        self._complete, self._check = complete, check or Check()
        refuse_link(place, "folder")
        if place.exists():
            empty = place.is_dir() and not any(place.iterdir())
            if not force and not empty:
                raise InputError(f"{place} exists already", "name another with -o, or give --force to replace it")
            if not empty and not (place / "experiment.json").is_file():
                raise InputError(f"{place} is not an experiment: it is not replaced", "name another folder with -o")
        with writable(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            self._staging = Staging(place)
        self._experiment: Experiment | None = None
        self._found: dict[str, tuple[str, ...]] = {}
        self._formed: dict[str, tuple[Mapping[str, str], tuple[str, ...]]] = {}
        self._origin = ""
        self._kinds: list[tuple[str, str, frozenset[str]]] = []
        self.kernels: set[str] = set()
        self._last: pd.Categorical[Any] | None = None
        self.timers = Timers()
        self.meanings = Meanings(naming.values, TABLES)
        self.notes: dict[str, None] = {}
        self.left_out: list[str] = []
        self.unlike: tuple[Path, Path] | None = None
        self.thousandfold: tuple[Path, Path] | None = None
        self._times: dict[tuple[tuple[str, float], ...], list[tuple[float, Path]]] = {}
        self._paths: dict[tuple[tuple[tuple[str, float], ...], str], dict[Path, None]] = {}
        self._taken: dict[tuple[tuple[tuple[str, float], ...], str], set[int]] = {}

    def __enter__(self) -> Import:
        return self

    def __exit__(self, *_: object) -> None:
        self._staging.__exit__()

    def add(
        self, readings: Iterable[Reading], reader: str, path: Path, watch: Callable[[int, int], None] | None = None
    ) -> int:
        """Store the readings of one file and return the number of runs; store none if one of them is wrong.

        A reading of a known configuration becomes a repetition of it. `watch` is called after every run with the number
        of runs stored and their total. Raises InputError when the file is damaged, lacks a parameter, or has others
        than the files before.
        """
        held: dict[str, None] = {}
        checked: list[_Checked] = []
        for reading in readings:
            validated(reading, str(path))
            if reading.counters is not None:
                held.update(dict.fromkeys(str(name) for name in reading.counters.columns if name not in COUNTER_KEYS))
            checked.append(self._checked(reading, reader, path))
        if not checked:
            raise InputError(f"{path} holds no measurement")
        judged = [(each, *timed(each.reading, path)) for each in checked]
        failed = [reason for *_, reason in judged if reason]
        checked = [each._replace(reading=kept) for each, kept, _ in judged if kept is not None]
        if not checked:
            raise InputError(failed[0], "measure again what failed")
        first = checked[0].reading
        checked[0] = checked[0]._replace(reading=replace(first, notes=(*first.notes, *failed)))
        self.left_out += failed
        for old in self.naming.metrics.values():
            if old not in held:
                raise InputError(f"{path} holds no metric {old!r}", f"it holds {', '.join(held) or 'none'}")
        names = self._experiment.parameters if self._experiment is not None else tuple(checked[0][0].configuration)
        for reading, *_ in checked:
            if set(reading.configuration) != set(names):
                raise InputError(
                    f"{path} has the parameters {', '.join(reading.configuration)}; "
                    f"{self._origin or 'its first run'} has {', '.join(names)}",
                    "give --set or --parameter for those that differ",
                )
        if self._experiment is None:
            self._origin = str(path)
            self._experiment = Experiment.create(self._staging.path / _NEW, self.application, names)
            self._experiment.synced = False
        for done, (reading, entry, found, formed) in enumerate(checked, 1):
            run = self._store(self._experiment, reading, reader, path)
            self._formed[run.id] = reading.names, formed
            self.meanings.add(entry, run)
            if found:
                self._found[run.id] = found
            self.notes.update(dict.fromkeys((*reading.notes, *reading.warnings)))
            if watch is not None:
                watch(done, len(checked))
        log("read %s as %s: %d runs", path, reader, len(checked))
        return len(checked)

    def _checked(self, reading: Reading, reader: str, path: Path) -> _Checked:
        """The reading once its parameters and metrics have the user's names, with the metrics of its events."""
        configuration = self.naming.configuration(reading, path)
        if not configuration:
            raise InputError(
                f"{path} states no parameter",
                r"give --set ranks=8, or --parameter ranks='regular expression with (\d+)'",
            )
        import pandas as pd

        counters = None if reading.counters is None else self.naming.counters(reading.counters, path)
        self.timers.add(counters, reading.exclusive)
        provenance = {self._new(name): text for name, text in reading.provenance.items()}
        tables = dict(reading.tables)
        if TABLE in tables:
            tables[TABLE] = tables[TABLE].assign(metric=tables[TABLE]["metric"].map(self._new))
        if counters is not None and self.naming.periods:
            known = set() if TABLE not in tables else set(tables[TABLE]["metric"])
            if absent := [name for name in self.naming.periods if name not in counters.columns]:
                raise InputError(f"{path} holds no metric {absent[0]!r} to have a period", "name one that it holds")
            fresh = {name: each for name, each in self.naming.periods.items() if name not in known}
            worth = sampling(counters, fresh)
            tables[TABLE] = pd.concat([tables[TABLE], worth], ignore_index=True) if TABLE in tables else worth
            for name in fresh:
                said = provenance.get(name, "measured")
                provenance[name] = (
                    said if said.startswith("sampled") else f"sampled, of period {fresh[name]:g} ({said})"
                )
        sources = {self._new(name): source for name, source in reading.names.items()}
        sources |= {new: reading.names.get(old, old) for new, old in self.naming.metrics.items()}
        named = replace(
            reading,
            configuration=configuration,
            counters=counters,
            provenance=provenance,
            tables=tables,
            names=sources,
            meanings={self._new(name): meaning for name, meaning in reading.meanings.items()},
        )
        if configuration != reading.configuration or self.naming.metrics:
            named.validate(str(path))  # what the user calls ranks or time must be that
        meant = self.meanings.apply(named)
        whole = self._complete(meant)
        single = whole.per_rank(str(path))
        kept = self._check(single)
        found, formed = kept.notes[len(single.notes) :], whole.notes[len(meant.notes) :]
        return _Checked(kept, Entry.of(whole, reader), found, formed)

    def _new(self, metric: str) -> str:
        return next((new for new, old in self.naming.metrics.items() if old == metric), metric)

    def _store(self, experiment: Experiment, reading: Reading, reader: str, path: Path) -> Run:
        collector = self._collector(reading, reader)
        key = tuple(sorted(reading.configuration.items())), collector
        paths = self._paths.setdefault(key, {path: None})
        paths[path] = None
        if self.unlike is None and _shape(first := next(iter(paths))) != _shape(path):
            self.unlike = (first, path)
        taken = self._taken.setdefault(key, set())
        repetition = reading.repetition
        if repetition is None or repetition in taken:
            repetition = max(taken, default=-1) + 1
        taken.add(repetition)
        run = Run(
            configuration=reading.configuration,
            repetition=repetition,
            collector=collector,
            command=reading.command,
            environment={**reading.environment, **({TOTAL: self.naming.total} if self.naming.total else {})},
            wall_time=reading.wall_time,
            provenance=reading.provenance,
            meanings=reading.meanings,
            notes=(*reading.notes, *reading.warnings),
            source=reading.source or (str(path),),
        )
        if reading.counters is not None:
            self._count(reading.counters["kernel"])
            self._compare(key[0], reading.counters, path)
        return experiment.add(run, reading.counters, reading.messages, reading.raw, reading.tables)

    def _compare(self, configuration: tuple[tuple[str, float], ...], table: pd.DataFrame, path: Path) -> None:
        """Look for repetitions of which one is in seconds and another in milliseconds."""
        if "time" not in table.columns or self.thousandfold is not None:
            return
        time = float(table["time"].max())
        known = self._times.setdefault(configuration, [])
        for other, source in known:
            if min(time, other) > 0 and abs(max(time, other) / min(time, other) / 1000 - 1) < SAME:
                self.thousandfold = (source, path)
        if time > 0 and len(known) < REPEATED:
            known.append((time, path))

    @property
    def odd_time(self) -> Configuration | None:
        """A configuration whose times seem to be in another unit than those of its neighbours."""
        return thousandfold({each: known[0][0] for each, known in self._times.items() if known})

    def _count(self, kernels: pd.Series[str]) -> None:
        """Count in the kernels of a run; most have those of the one before."""
        import pandas as pd

        new: pd.Categorical[Any] = pd.Categorical(kernels)
        old = self._last
        if old is None or not (np.array_equal(new.codes, old.codes) and new.categories.equals(old.categories)):
            self.kernels.update(map(str, new.unique()))
        self._last = new

    def _collector(self, reading: Reading, reader: str) -> str:
        """The reader's name, numbered for each further set of metrics: a pass with other counters is no repetition."""
        columns = () if reading.counters is None else map(str, reading.counters.columns)
        content = frozenset([*columns, *(["(messages)"] if reading.messages is not None else []), *reading.tables])
        for at, (name, collector, known) in enumerate(self._kinds):
            if name == reader and (content <= known or known <= content):
                self._kinds[at] = (name, collector, known | content)
                return collector
        others = sum(name == reader for name, _, _ in self._kinds)
        collector = reader if not others else f"{reader}-{others + 1}"
        self._kinds.append((reader, collector, content))
        return collector

    def mark_inclusive(self, total: str) -> None:
        """Note of all runs that the times of kernels contain those of others, and of `total` those of the program.

        That timer is the whole program and stays one of the kernels, which nothing adds up.
        """
        if self._experiment is not None:
            inclusive(self._experiment, total)
            self.kernels.update((WHOLE, total))

    def numbered(self) -> tuple[int, dict[str, str]]:
        """How many files became repetitions of one configuration, and patterns of what may distinguish them.

        As :func:`~ranksight.campaign.naming.numbers_of`, of the configuration with the most files.
        """
        every = ((len(paths), numbers_of(list(paths))) for paths in self._paths.values())
        return max((each for each in every if each[1]), key=lambda each: each[0], default=(0, {}))

    def settle(self) -> None:
        """Store values as the runs together show them to be; once, after all were added.

        Raises InputError where what was stated of values, or left open, cannot be used.
        """
        if (experiment := self._experiment) is None:
            return
        for restated in self.meanings.settle():
            for run in experiment.runs:
                if run.id in restated.runs:
                    self._restate(experiment, run, restated)

    def _restate(self, experiment: Experiment, run: Run, restated: Restated) -> None:
        """Write the tables of a run anew, of whose values another meaning became known."""
        counters = experiment.table(run, "counters")
        if counters is None:
            return
        samples = experiment.table(run, TABLE)
        tables = {} if samples is None else {TABLE: samples}
        names = {name: meaning for name, meaning in restated.meanings.items() if name in counters.columns}
        reading = Reading(run.configuration, counters, tables=tables, provenance=run.provenance, meanings=names)
        changed = reading.per_rank(run.id)
        outdated = self._check.forget(self._found.pop(run.id, ()))
        for note in outdated:
            self.notes.pop(note, None)
        checked = self._check(changed)
        assert checked.counters is not None
        notes = tuple(note for note in run.notes if note not in outdated)
        new = replace(
            run,
            provenance=changed.provenance,
            meanings={**run.meanings, **changed.meanings},
            notes=(*notes, *checked.notes),
        )
        experiment.replace(new, {"counters": checked.counters, **changed.tables})

    def merge(self, together: Callable[[Sequence[Reading]], Reading]) -> None:
        """Make one run of the passes of each configuration and repetition: runs of one reader with other metrics.

        After :meth:`settle`. `together`: one reading of those of the passes, of which the metrics are formed that no
        pass alone has the events of.
        """
        if (experiment := self._experiment) is None:
            return
        readers = {collector: name for name, collector, _ in self._kinds}
        for runs in passes(experiment, readers):
            lost = {note for run in runs for note in self._check.forget(self._found.pop(run.id, ()))}
            named = [self._formed[run.id] for run in runs]
            lost.update(note for _, notes in named for note in notes)
            whole = together(
                [stored(experiment, run, names, lost) for run, (names, _) in zip(runs, named, strict=True)]
            )
            checked = self._check(self._complete(whole))
            for note in lost:
                self.notes.pop(note, None)
            self.notes.update(dict.fromkeys(checked.notes[len(whole.notes) :]))
            store_together(experiment, runs, checked)

    def finish(self) -> Experiment:
        """Put the experiment in its place. Raises InputError when nothing was added."""
        if self._experiment is None:
            raise InputError("nothing was imported")
        with writable(self.place):
            sync_tree(self._staging.path / _NEW)
            self._staging.put(_NEW)
        return Experiment.read(self.place)
