"""A process that reads mutated inputs one after another, bounded in memory and time.

``python -m benchmarks.hostile.worker SAMPLES SEED FIRST LAST`` reads the inputs of these numbers;
:mod:`benchmarks.hostile.samples` makes SAMPLES. It writes a line of JSON before each input, so that who waits for it
knows which one ended it, one of what it came to, and a last one of the memory. The same numbers are the same inputs:
``... SAMPLES SEED 17 18`` shows what number 17 comes to, and leaves it at ``--keep FOLDER``. ``... SAMPLES KIND`` reads
the samples of a kind as they are: what is refused then tests nothing.
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import io
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.hostile.mutating import LARGEST, Dice, mutated
from benchmarks.hostile.reading import CPU

# Address space that an allocator reserves is no memory that an input takes.
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
os.environ["RANKSIGHT_DEBUG"] = ""
MEMORY = 1 << 30
"""Bytes that a process may take beyond what it takes before the first input."""
PLACE = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where inputs are written: in memory, if there is such a place, since making and removing folders takes as long as
reading one does."""
RUN = 2000
"""Bytes that a row of a table counts as, since it may be a run of its own."""
WEIGHTS = {
    "expectations": 0.2, "experiment": 0.08, "line": 0.2, "model": 0.6, "platform": 0.5, "project": 0.2,
    "reader-extrap": 0.3, "reader-otf2": 0.5,
    "reader-perf-report": 0.5, "reader-perf-script": 0.4, "table": 0.4,
}  # fmt: skip
"""How often a kind is drawn; those that take long are drawn less often. 1 of what is not named."""
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that steer a terminal."""


class Late(BaseException):
    """The time of an input is over; nothing that catches errors catches it."""


# ---- what is done with an input -------------------------------------------------------------------------------------


def _read(reader: str, path: Path) -> str:
    """Read a file as ``import`` does."""
    from ranksight.core.errors import InputError
    from ranksight.core.reading import READERS, in_time, validated

    try:
        if path.is_file():
            with path.open("rb") as stream:
                READERS[reader].recognises(path, stream.read(4096))
        else:
            READERS[reader].recognises(path, b"")
        for reading in in_time(path, READERS[reader].read(path)):
            validated(reading, str(path))
        return "read"
    except InputError as error:
        return "refused" if "\n" not in str(error) else f"a message of several lines: {error}"


def _command(words: tuple[str, ...]) -> str:
    """Run a command line in this process, and judge its exit code and what it prints."""
    from ranksight.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as ended:
            code = int(ended.code or 0)
    said, shown = err.getvalue(), out.getvalue()
    for sign in ("internal error", "Traceback", "out of memory"):
        if sign in said:
            return said[said.index(sign) :][:300]
    if code not in (0, 1, 2, 3, 4):
        return f"exit code {code}"
    if code in (1, 2) and not re.search("^ranksight: ", said, re.MULTILINE):  # progress may come before
        return f"exit code {code} without a message of ours: {said[:200]!r}"
    if found := STEERING.search(said + shown):
        return f"prints {found[0]!r}"
    if code in (0, 4) and re.search(r"\bnan\b", shown):
        return "prints nan"
    return "refused" if code in (1, 2) else "read"


def _table(path: Path, dice: Dice) -> str:
    more = dice.choice(((), ("--strict",), ("--where", "kernel=solve"), ("--total", "solve")))
    named = ("--parameter", "ranks", "--parameter", "size", "--metric", "time", "--metric", "flops", "--rank", "rank")
    place = path.parent / "made.exp"
    words = ("import", "csv", str(path), *named, "--kernel", "kernel", "--quiet", "--force", "-o", str(place))
    return _command((*words, *more))


def _model(path: Path, dice: Dice) -> str:
    point = ("--ranks", dice.choice(("64", "3", "1e9", "2,512")), *dice.choice(((), ("--size", "20"))))
    style = ("--format", dice.choice(("table", "json", "csv")))
    verbs = (("predict", str(path), *point, *style), ("diagnose", str(path), *point, *style[:1], "json"),
             ("predict", str(path), *point, "--messages"), ("predict", str(path), *point, "--terms"),
             ("plan", str(path), *point), ("compare", str(path), str(path)),
             ("report", str(path), "-o", str(path.parent / "made.html")),
             ("export", "openmetrics", str(path), "-o", str(path.parent / "made.txt")))  # fmt: skip
    return _command(dice.choice(verbs))


def _experiment(path: Path, dice: Dice) -> str:
    model = str(path.parent / "made.model.json")
    verbs = (("fit", str(path), "-o", model, "--force"), ("compare", str(path), str(path)),
             ("import", "experiment", str(path), "--quiet", "-o", str(path.parent / "joined.exp")))  # fmt: skip
    return _command(dice.choice(verbs))


def _attempt(kind: str, path: Path, sound: Path, dice: Dice) -> str:
    """Read an input in the way of its kind."""
    if kind.startswith("reader-"):
        return _read(kind.removeprefix("reader-"), path)
    if kind == "platform":
        return _platform(path, sound, dice)
    if kind == "expectations":
        return _command(("check", str(path), str(sound / "experiment" / "e.exp")))
    if kind == "project":
        return _project(path, sound, dice)
    if kind == "line":
        return _line(path, sound)
    ways: dict[str, Callable[[Path, Dice], str]] = {"table": _table, "model": _model, "experiment": _experiment}
    return ways[kind](path, dice)


def _project(path: Path, sound: Path, dice: Dice) -> str:
    """Type verbs that a project file completes in its folder."""
    for name in ("e.exp", "f.exp"):  # a history needs two
        shutil.copytree(sound / "experiment" / "e.exp", path.parent / name)
    shutil.copyfile(sound / "model" / "e.model.json", path.parent / "e.exp.model.json")
    shutil.copyfile(sound / "expectations" / "own.toml", path.parent / "own.toml")
    verbs = ("predict", "diagnose", "plan", "check", "compare", "history", "fit --force", "report --force")
    return _command(tuple(dice.choice(verbs).split()))


def _line(path: Path, sound: Path) -> str:
    """Type the line of words that a file holds, with its verb."""
    text = path.read_bytes().decode("utf-8", "replace").replace("\0", "")  # no system passes this on
    try:
        words = shlex.split(text)[1:400]
    except ValueError:
        words = text.split()[1:400]
    known = {
        "{e}": str(sound / "experiment" / "e.exp"),
        "{m}": str(sound / "model" / "e.model.json"),
        "{t}": str(sound / "table" / "table.csv"),
        "{f}": "f.exp",
    }
    if "{f}" in words:  # a history needs two
        shutil.copytree(known["{e}"], "f.exp")
    return _command((path.stem, *(known.get(word, word) for word in words)))


def attempt(kind: str, path: Path, sound: Path, dice: Dice) -> str:
    """What an input comes to: ``read``, ``refused``, or what should not happen."""

    def allowed() -> float:
        files = [file for file in path.parent.rglob("*") if file.is_file() and not file.is_symlink()]
        row = RUN if kind == "table" else 0
        return CPU * max(1.0, sum(_size(file, row) for file in files) / 1e6)

    given = allowed()

    def late(number: int, frame: FrameType | None) -> None:
        nonlocal given
        if (more := allowed()) <= given:
            raise Late
        signal.setitimer(signal.ITIMER_VIRTUAL, more - given)
        given = more

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, given)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            came = _attempt(kind, path, sound, dice)
        return f"warns: {warned[0].message}"[:200] if warned else came
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        place = traceback.extract_tb(error.__traceback__)[-2 if isinstance(error, Late) else -1]
        return f"{type(error).__name__} {error}"[:200] + f" at {place.filename}:{place.lineno}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _size(file: Path, row: int = 0) -> int:
    """Bytes of a file, unpacked where it is packed by gzip, and `row` more for each line of a table."""
    if file.suffix not in (".gz", ".csv") or file.stat().st_size > LARGEST:
        return file.stat().st_size
    content = file.read_bytes()
    if file.suffix == ".gz":
        with contextlib.suppress(OSError, EOFError, zlib.error), gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            content = stream.read(64 * LARGEST)
    return len(content) + row * content.count(b"\n")


def _platform(path: Path, sound: Path, dice: Dice) -> str:
    """Read a platform; one in five of those that can be read is fitted with, and what came of it asked."""
    from ranksight.core.errors import InputError
    from ranksight.platforms import load

    try:
        load(str(path))
    except InputError as error:
        return "refused" if "\n" not in str(error) else f"a message of several lines: {error}"
    if dice.random() < 0.8:
        return "read"
    model = path.parent / "made.model.json"
    words = ("fit", str(sound / "experiment" / "e.exp"), "-o", str(model), "--quiet", "--platform", f"./{path.name}")
    came = _command(words)
    return came if came != "read" else _model(model, dice)


# ---- inputs ---------------------------------------------------------------------------------------------------------


def spoiled(sample: Path, place: Path, dice: Dice) -> None:
    """Write a mutated copy of a sample: of a folder one file changes, or is there no more, or is something else."""
    if sample.is_file():
        place.write_bytes(mutated(sample.read_bytes(), dice))
        return
    shutil.copytree(sample, place)
    files = sorted(file for file in place.rglob("*") if file.is_file())
    file = dice.choice(files)
    way = dice.randrange(12)
    if way > 4:
        file.write_bytes(mutated(file.read_bytes(), dice))
        return
    content = file.read_bytes()
    file.unlink()
    if way == 1:
        file.mkdir()
    elif way == 2:
        file.symlink_to(dice.choice(("/etc/passwd", "/dev/zero", file.name, "/", ".", "/proc/self/mem")))
    elif way == 3:
        os.mkfifo(file)
    elif way == 4:
        dice.choice(files).write_bytes(content)


def inputs(samples: Path, seed: str, numbers: range) -> Iterator[tuple[int, str, Path, Dice]]:
    """Number, kind, sample and dice of each input."""
    every = [(kind.name, item) for kind in sorted(samples.iterdir()) for item in sorted(kind.iterdir())]
    counts = {kind: sum(name == kind for name, _ in every) for kind, _ in every}
    weights = [WEIGHTS.get(kind, 1.0) / counts[kind] ** 0.5 for kind, _ in every]
    for number in numbers:
        dice = random.Random(f"{seed} {number}")
        ((kind, sample),) = dice.choices(every, weights)
        yield number, kind, sample, dice


def as_they_are(samples: Path, kind: str) -> None:
    """Read the samples of a kind without a change."""
    for sample in sorted((samples / kind).iterdir()):
        with tempfile.TemporaryDirectory(prefix="ranksight-hostile-", dir=PLACE) as box:
            path = Path(box) / sample.name
            (shutil.copytree if sample.is_dir() else shutil.copyfile)(sample, path)
            os.chdir(box)
            print(json.dumps({"sample": sample.name, "came": attempt(kind, path, samples, random.Random(kind))}))
            os.chdir(samples)


def main(samples: Path, seed: str, numbers: range, keep: Path | None = None) -> None:
    """Make and read inputs."""
    import ranksight.cli.import_
    import ranksight.model.fit  # noqa: F401 - what is loaded counts against no limit
    from ranksight.core.reading import READERS

    list(READERS)
    gc.freeze()  # what is loaded lasts, and is not searched again and again for what does not
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    for number, kind, sample, dice in inputs(samples, seed, numbers):
        print(json.dumps({"number": number, "kind": kind, "sample": sample.name}), flush=True)
        with tempfile.TemporaryDirectory(prefix="ranksight-hostile-", dir=PLACE) as box:
            place = Path(box) / "in" / "it"
            place.mkdir(parents=True)
            path = place / sample.name
            spoiled(sample, path, dice)
            if keep is not None:
                shutil.copytree(place, keep / str(number), symlinks=True, ignore=lambda folder, names: [
                    name for name in names if (Path(folder) / name).is_fifo()])  # fmt: skip
            before = os.getcwd()
            os.chdir(place)
            came = attempt(kind, path, samples, dice)
            os.chdir(before)
            if kind == "line":  # a line's own words name what it writes
                pass
            elif os.listdir(box) != ["in"] or os.listdir(Path(box) / "in") != ["it"]:
                came = "writes where it should not"
        print(json.dumps({"came": came}), flush=True)
    peak = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1])  # type: ignore[index]
    print(json.dumps({"peak": peak * 1024}), flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    if len(given) == 2:
        as_they_are(Path(given[0]).resolve(), given[1])
        sys.exit()
    kept = Path(given[given.index("--keep") + 1]) if "--keep" in given else None
    main(Path(given[0]), given[1], range(int(given[2]), int(given[3])), kept)
