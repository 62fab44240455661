"""Commands where something around them goes wrong: no room, no rights, no home, low limits, tools that vanish, others
that write at once, names that a shell would run, files that would run when they are unpacked.

A command has to end by itself with an answer, or with a message of one line and nothing half-written; nothing that a
name or a file holds may run.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.hostile.campaign_kills import SBATCH
from benchmarks.hostile.programs import Program, Tally, complete, strangers
from benchmarks.hostile.samples import TABLE, experiment
from benchmarks.settings import ROOT, Skipped

PATIENCE = 60.0
"""Seconds of a command; 20 are too many, and the machine may be busy."""
MARK = "owned"
"""File that a name or content writes if it is run."""
COLUMNS = ("--parameter", "ranks", "--parameter", "size", "--kernel", "kernel", "--rank", "rank", "--metric", "time")
NAMES = (f"$(touch {MARK})", f"`touch {MARK}`", f"a;touch {MARK};", f"a\ntouch {MARK}\n", f"'\"; touch {MARK} #",
         f"%A;touch {MARK}", f"-n ; touch {MARK}", f"a && touch {MARK}", f"${{IFS}}$(touch${{IFS}}{MARK})")  # fmt: skip


@dataclass
class Surroundings:
    """Folders of one case, and what is found in it."""

    folder: Path
    found: list[str] = field(default_factory=list)
    done: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.place = self.folder / "place"
        self.place.mkdir()
        (self.folder / "table.csv").write_text(TABLE)
        self.source = experiment(self.folder / "source.exp", ("work",))
        self.model = self.folder / "known.json"
        self.command("fit", str(self.source), "-o", str(self.model), "--quiet")

    def lines(self) -> dict[str, tuple[list[str], Path | None]]:
        """Command lines by verb, and the file or folder that each makes in :attr:`place`."""
        model, page, made, text = (self.place / name for name in ("m.json", "p.html", "made.exp", "t.csv"))
        table = ["import", "csv", str(self.folder / "table.csv"), *COLUMNS, "--quiet", "--force"]
        return {
            "predict": (["predict", str(self.model), "--ranks", "64", "--size", "20"], None),
            "fit": (["fit", str(self.source), "-o", str(model), "--force", "--quiet"], model),
            "import": ([*table, "-o", str(made)], made),
            "export": (["export", "csv", str(self.source), "-o", str(text), "--force"], text),
            "report": (["report", str(self.model), "-o", str(page), "--force", "--quiet"], page),
        }

    def command(
        self,
        *words: str,
        before: tuple[str, ...] = (),
        environment: dict[str, str | None] | None = None,
        shell: str = "",
        stdout: str = "",
        folder: Path | None = None,
    ) -> int:
        """Run a command line and judge how it ends; its exit code, -1 where it does not end.

        Parameters
        ----------
        before : tuple of str
            What starts it, such as ``faketime``.
        environment : dict of str to str or None, optional
            Variables that differ; None removes one.
        shell : str
            What a shell does before.
        stdout : str
            File that standard output goes to.
        folder : Path, optional
            Where it is typed.
        """
        variables: dict[str, str | None] = {
            **os.environ, "PYTHONPATH": f"{ROOT.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **(environment or {}),
        }  # fmt: skip
        line = [*before, sys.executable, "-m", "ranksight", *words]
        if shell:
            line = ["bash", "-c", f'{shell}\nexec "$@"', "bash", *line]
        self.done += 1
        try:
            done = subprocess.run(
                line, env={name: text for name, text in variables.items() if text is not None}, timeout=PATIENCE,
                stdin=subprocess.DEVNULL, stdout=open(stdout, "w") if stdout else subprocess.PIPE,  # noqa: SIM115
                stderr=subprocess.PIPE, text=True, errors="replace", cwd=folder or self.folder,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self.found.append(f"{words[0]}: no end within {PATIENCE:g} s")
            return -1
        said = done.stderr
        if "Traceback" in said or "internal error" in said or done.returncode not in (0, 1, 2, 3, 4):
            self.found.append(f"{words[0]}: exit code {done.returncode}: {said[-300:]}")
        elif done.returncode in (1, 2) and not re.search("^ranksight: ", said, re.MULTILINE):
            self.found.append(f"{words[0]}: exit code {done.returncode} without a message: {said[-200:]}")
        return done.returncode

    def judge(self, verb: str, code: int, result: Path | None) -> None:
        """A command that failed leaves nothing, one that did not a whole result."""
        if result is not None and result.exists() is (code != 0):
            self.found.append(f"{verb} ends with {code} and {'leaves' if code else 'makes no'} {result.name}")
        if left := [
            name for name in strangers(self.place, {"m.json", "p.html", "made.exp", "t.csv"}) if name != "filler"
        ]:
            self.found.append(f"{verb} leaves {', '.join(left)}")
        for entry in self.place.iterdir():
            with contextlib.suppress(OSError):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def all(self, **how: object) -> None:
        """Every line in the same surroundings."""
        for verb, (words, result) in self.lines().items():
            self.judge(verb, self.command(*words, **how), result)  # type: ignore[arg-type]

    def nothing_ran(self, what: str) -> None:
        """Look for the file that hostile content writes."""
        for path in self.folder.rglob(f"*{MARK}*"):
            if path.name == MARK:
                self.found.append(f"{what}: what a name or a file holds was run")
                path.unlink()


# ---- what goes wrong ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _mounted(place: Path, options: str) -> Iterator[None]:
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(words, capture_output=True).returncode:
        raise Skipped("no file system can be mounted")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


def no_room(case: Surroundings) -> None:
    """A full disk, and standard output that takes nothing."""
    with _mounted(case.place, "size=16k"):
        with (case.place / "filler").open("wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, 12288)
        case.all()
    case.command(*case.lines()["predict"][0], stdout="/dev/full")
    case.command("export", "csv", str(case.source), stdout="/dev/full")


def no_rights(case: Surroundings) -> None:
    """A folder that nothing can be written to."""
    with _mounted(case.place, "size=16k,ro"):
        case.all()


def no_home(case: Surroundings) -> None:
    """No HOME, no TMPDIR, or ones that are not there."""
    case.all(environment={"HOME": None, "TMPDIR": None, "XDG_CACHE_HOME": None, "USER": None})
    case.all(environment={"HOME": "/nowhere", "TMPDIR": "/nowhere", "XDG_CACHE_HOME": "/nowhere", "MPLCONFIGDIR": None})


def other_locales(case: Surroundings) -> None:
    """Locales and encodings of terminals."""
    for locale in ("C", "de_DE.UTF-8", "tr_TR.UTF-8", "nowhere"):
        case.all(environment={"LC_ALL": locale, "LANG": locale, "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"})


def low_limits(case: Surroundings) -> None:
    """Few open files, small files, little memory, a small stack."""
    for limit in ("ulimit -n 20", "ulimit -f 4", "ulimit -s 512", "ulimit -u 1"):
        case.all(shell=limit)
    for megabytes in (250, 300, 400, 500, 600, 700, 800):
        case.all(shell=f"ulimit -v {megabytes * 1000}", environment={"OPENBLAS_NUM_THREADS": None})


def full_shared_memory(case: Surroundings) -> None:
    """No room in /dev/shm, for workers that read files."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        raise Skipped("no namespace of mounts can be made")
    own = ("unshare", "-m", "bash", "-c", 'mount -t tmpfs -o size=4k tmpfs /dev/shm; exec "$@"', "bash")
    case.all(before=own)
    words, result = case.lines()["import"]
    case.judge("import", case.command(*words, "--jobs", "2", before=own), result)


def clock_set_back(case: Surroundings) -> None:
    """A clock that was set back by more than a year."""
    if shutil.which("faketime") is None:
        raise Skipped("no faketime is installed")
    for words, _ in case.lines().values():
        case.command(*words)
    for verb, (words, result) in case.lines().items():
        code = case.command(*words, before=("faketime", "-f", "-400d"))
        if code != 0 or (result is not None and not result.exists()):
            case.found.append(f"{verb} ends with {code} when the clock was set back")


def writers_at_once(case: Surroundings) -> None:
    """Several commands that make the same result, and campaigns of one experiment."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    program = Program(case.folder, 0.01)
    place = case.folder / "measured.exp"
    lines = [words for verb, (words, _) in case.lines().items() if verb in ("fit", "import")]
    for words in [*lines, program.measure(place)]:
        every = [
            subprocess.Popen([sys.executable, "-m", "ranksight", *words], env=environment, text=True, cwd=case.folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for _ in range(3)
        ]  # fmt: skip
        for process in every:
            said = process.communicate(timeout=PATIENCE)[1]
            case.done += 1
            if process.returncode not in (0, 1) or "Traceback" in said or "internal error" in said:
                case.found.append(f"{words[0]} among others: exit code {process.returncode}: {said[-300:]}")
    for verb in ("fit", "import"):
        words, result = case.lines()[verb]
        if result is None or not result.exists():
            case.found.append(f"no {verb} of several at once makes its result")
    case.command(*program.measure(place))
    try:
        if len(complete(place)) != 8:
            case.found.append(f"{8 - len(complete(place))} runs are missing after campaigns at once")
    except Exception as error:
        case.found.append(f"campaigns at once: {error}")
    program.ended(tally := Tally())
    case.found += tally.found


def vanishing_tools(case: Surroundings) -> None:
    """A program, and the folder it is run in, that are gone after the first run."""
    for gone in ('rm -- "$0"', 'rm -r -- "$(dirname "$0")"'):
        tools = case.folder / "tools"
        tools.mkdir(exist_ok=True)
        program = tools / "program"
        program.write_text(f'#!/bin/sh\nprintf "kernel,rank,time\\nwork,0,1.5\\n" >"$RANKSIGHT_TABLE"\n{gone}\n')
        program.chmod(0o755)
        place = case.place / "made.exp"
        words = ["measure", "--ranks", "1", "--size", "1,2,3", "--collector", "table", "--quiet", "-o", str(place)]
        code = case.command(*words, "--", str(program), "{ranks}", "{size}")
        if code != 1 or not (place / "experiment.json").is_file():
            case.found.append(f"measure ends with {code} where its program vanished, and keeps no run")
        shutil.rmtree(place, ignore_errors=True)


def names_for_shells(case: Surroundings) -> None:
    """Names and options that a shell or batch system would run: scripts are run by a stand-in."""
    tools = case.folder / "bin"
    tools.mkdir()
    (tools / "sbatch").write_text(SBATCH)
    (tools / "sbatch").chmod(0o755)
    environment = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    for number, name in enumerate(NAMES):
        folder = case.folder / f"n{number}"
        place = folder / (name.replace("/", "").replace("\n", " ") + ".exp")
        folder.mkdir()
        words = [
            "measure",
            "--ranks",
            "1",
            "--size",
            "1",
            "--collector",
            "table",
            "--quiet",
            "-o",
            str(place),
            "--emit",
        ]
        words += ["slurm", "--application", name, "--job-option", f"--comment={name}"]
        case.command(*words, "--", "true", "{ranks}", "{size}", name, environment=environment, folder=folder)
        for script in folder.rglob("*.sh"):
            done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True)
            if done.returncode:
                case.found.append(f"{script.name} is no script where a name is {name!r}: {done.stderr[:200]}")
        for script in folder.rglob("submit.sh"):
            subprocess.run(["sh", str(script)], env={**os.environ, **environment}, cwd=folder, timeout=PATIENCE,
                           capture_output=True, stdin=subprocess.DEVNULL)  # fmt: skip
        case.nothing_ran(f"a name of {name!r}")


class _Touches:
    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (self.path, "w")


def files_that_run(case: Surroundings) -> None:
    """Pickles under names of every format, and archives that lead out of their folder."""
    load = pickle.dumps(_Touches(case.folder / MARK))
    array = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117)
        + b"\n"
        + load
    )
    made = case.folder / "made.exp"
    for name in (
        "a.npy",
        "a.pkl",
        "a.prof",
        "a.json",
        "a.csv",
        "a.cali",
        "a.extra-p",
        "a.cubex",
        "a.parquet",
        "a.model.json",
    ):
        for content in (load, array):
            path = case.folder / name
            path.write_bytes(content)
            case.command("import", str(path), "--set", "ranks=2", "-o", str(made), "--force")
            case.command("predict", str(path), "--ranks", "8")
            path.unlink()
    inside = case.folder / "content"
    inside.write_bytes(load)
    for name, ending in (("a.extra-p", "zip"), ("a.model.json", "zip"), ("a.cubex", "tar")):
        for target in (f"../{MARK}", f"/{case.folder}/{MARK}", f"x/../../{MARK}", "experiment.json", "anchor.xml"):
            path = case.folder / name
            if ending == "zip":
                with zipfile.ZipFile(path, "w") as archive:
                    archive.write(inside, target)
            else:
                with tarfile.open(path, "w") as packed:
                    packed.add(inside, target)
            case.command("import", str(path), "--set", "ranks=2", "-o", str(made), "--force")
            path.unlink()
    case.nothing_ran("a file")


CASES: tuple[Callable[[Surroundings], None], ...] = (
    no_room, no_rights, no_home, other_locales, low_limits, full_shared_memory, clock_set_back, writers_at_once,
    vanishing_tools, names_for_shells, files_that_run,
)  # fmt: skip


def surround(
    folder: Path, cases: tuple[Callable[[Surroundings], None], ...] = CASES
) -> tuple[int, list[str], list[str]]:
    """How many commands were run, the cases that cannot be made here, and what was found."""
    done, skipped, found = 0, [], []
    for each in cases:
        name = each.__name__.replace("_", " ")
        case = Surroundings(folder / each.__name__)
        try:
            each(case)
        except Skipped as why:
            skipped.append(f"{name}: {why}")
        done += case.done
        found += [f"{name}: {what}" for what in case.found]
    return done, skipped, found


if __name__ == "__main__":
    chosen = tuple(each for each in CASES if each.__name__ in sys.argv[2:]) or CASES
    print(*surround(Path(sys.argv[1]), chosen), sep="\n")
