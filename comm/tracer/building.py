"""Building the tracer for the site's MPI, once, into a cache.

The library lies in ``$XDG_CACHE_HOME/ranksight/tracer/<key>/`` (``~/.cache`` by default). The key is a hash of the
compiler wrapper's path and version, of ``mpi.h`` as it preprocesses, of the tracer's sources and of the flags: another
MPI, another compiler or another version of the tracer makes another library. It is compiled in parts, at the same time
in a folder of its own; parts that are done are kept when a build is interrupted. Builds wait for each other.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from pathlib import Path

from ranksight.comm.tracer import fortran, wrappers
from ranksight.comm.tracer.operations import HOT
from ranksight.comm.tracer.prototypes import Prototype, parse
from ranksight.core.errors import ToolError
from ranksight.core.files import new_folder
from ranksight.core.log import progress
from ranksight.core.records import dataclass

LIBRARY = "libranksight-pmpi.so"
FLAGS = ("-std=gnu11", "-fPIC", "-shared", "-fvisibility=hidden", "-w", "-pthread")
INSTALL = "load the site's MPI module, or: pip install 'ranksight[mpi]'"
LEVELS = {
    "wrappers_fortran_hot": "-O1",
    "wrappers_fortran": "-O0",
    "wrappers_others": "-O0",
    "wrappers": "-O1",
    "": "-O2",
}
"""How much each source is optimised, by the first of these that its name begins with. Compiling takes most of the time
of a first measurement, and nearly all of it wrappers that a program never calls, or not where it matters. A call takes
1 or 2 ns more than with -O2 throughout."""
_FORTRAN = "wrappers_fortran"
_PARTS = 2
"""Sources for each kind of wrappers that are many, to be compiled at the same time."""
_SOURCES = Path(__file__).resolve().parent
_PROBE = """#include <mpi.h>
#ifdef OMPI_MAJOR_VERSION
RANKSIGHT_PROBE "Open MPI" OMPI_MAJOR_VERSION OMPI_MINOR_VERSION
#elif defined(I_MPI_VERSION)
RANKSIGHT_PROBE "Intel MPI" I_MPI_VERSION
#elif defined(MVAPICH2_VERSION)
RANKSIGHT_PROBE "MVAPICH2" MVAPICH2_VERSION
#elif defined(MVAPICH_VERSION)
RANKSIGHT_PROBE "MVAPICH" MVAPICH_VERSION
#elif defined(MPICH_VERSION)
RANKSIGHT_PROBE "MPICH" MPICH_VERSION
#elif defined(MPI_ABI_VERSION)
RANKSIGHT_PROBE "MPI ABI" MPI_ABI_VERSION
#endif
"""


@dataclass(frozen=True, slots=True)
class Compiler:
    """The site's MPI compiler wrapper and what it says of itself."""

    path: str
    version: str  # first line of ``mpicc --version``
    header: str  # ``mpi.h`` as it preprocesses
    family: str  # the MPI that ``mpi.h`` belongs to: ``Open MPI``, ``MPICH``, ``Intel MPI``, ...; empty when unknown
    release: str  # its version as far as ``mpi.h`` says


def _run(command: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            list(command), input=text, capture_output=True, text=True, errors="replace", timeout=300, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{command[0]} cannot be run: {error}", INSTALL) from error


def compiler(name: str | None = None) -> Compiler:
    """Ask the compiler wrapper what it is.

    `name`: its path or name; by default the environment variable ``RANKSIGHT_MPICC``, else ``mpicc``. Raises ToolError
    when there is none, or it compiles nothing.
    """
    name = name or os.environ.get("RANKSIGHT_MPICC") or "mpicc"
    path = shutil.which(name)
    if path is None:
        raise ToolError(f"no {name} is found, the tracer is built with it", INSTALL)
    version = _run([path, "--version"]).stdout.split("\n", 1)[0]
    done = _run([path, "-E", "-x", "c", "-"], _PROBE)
    if done.returncode != 0:
        raise ToolError(f"{path} cannot preprocess mpi.h: {_last_line(done.stderr)}", "check the MPI installation")
    header, _, probe = done.stdout.rpartition("RANKSIGHT_PROBE")
    if not header:
        header, probe = done.stdout, ""
    match = re.match(r'\s*"([^"]+)"\s*(.*)', probe)
    family, release = (match[1], ".".join(re.findall(r"\d+", match[2])[:2])) if match else ("", "")
    return Compiler(path, version, header, family, release)


def _last_line(text: str) -> str:
    """The line that says most of a compiler's complaint: the first with 'error', else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "no message")[:300]


def build(using: Compiler, fallback: Path | None = None) -> Path:
    """Path of the tracer for this MPI, built if need be.

    `fallback`: where to build when the cache cannot be written; a temporary directory by default. Raises ToolError when
    it does not compile, or there is no place for it.
    """
    generated = _generate(using)
    ready = _place(using, generated)
    if ready.is_file():
        return ready
    root = ready.parent.parent
    objects = root / f".{ready.parent.name}.objects"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _alone(root):
            if ready.is_file():  # another build was faster
                return ready
            objects.mkdir(exist_ok=True)
            built = _compile(using, generated, objects)
            place = new_folder(root, ".new-")
            os.replace(built, place / LIBRARY)
            place.rename(ready.parent)
    except OSError:
        if not ready.is_file():
            return _compile(using, generated, fallback or Path(tempfile.mkdtemp(prefix="ranksight-tracer-")))
    except ToolError:
        if not ready.is_file():
            shutil.rmtree(objects, ignore_errors=True)
            raise
    shutil.rmtree(objects, ignore_errors=True)
    return ready


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other builds waiting; where the file system has no locks they work side by side, and the first is taken."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def sample(using: Compiler) -> Path:
    """Something that the compiler wrapper linked, to see with which libraries: the tracer or, before that, a probe.

    Raises ToolError when not even that links.
    """
    ready = _place(using, _generate(using))
    if ready.is_file():
        return ready
    place = Path(tempfile.mkdtemp(prefix="ranksight-probe-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    source, probe = place / "probe.c", place / "probe.so"
    source.write_text("#include <mpi.h>\nint ranksight_probe(void) { return MPI_Init(0, 0); }\n")
    done = _run([using.path, "-shared", "-fPIC", "-w", "-o", str(probe), str(source)])
    if done.returncode != 0:
        raise ToolError(
            f"{using.path} links no shared library with MPI: {_last_line(done.stderr)}",
            "the tracer is preloaded: MPI must be there as a shared library",
        )
    return probe


def _place(using: Compiler, generated: Mapping[str, str]) -> Path:
    """Where the tracer for this MPI lies when it is built."""
    sources = sorted(path for path in _SOURCES.iterdir() if path.suffix in (".c", ".h"))
    texts = (path.read_text() for path in sources)
    digest = hashlib.sha256()
    for part in (using.path, using.version, using.header, *generated.values(), *FLAGS, repr(LEVELS), *texts):
        digest.update(part.encode("utf-8", "replace") + b"\0")
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return root / "ranksight" / "tracer" / digest.hexdigest()[:24] / LIBRARY


def _generate(using: Compiler) -> dict[str, str]:
    """The generated sources by file name, in parts that take about as long to compile as each other."""
    functions = wrappers.wrapped(parse(using.header))
    kinds = wrappers.operations(functions)
    numbers = {name: number for number, name in enumerate(kinds)}
    hot, moving, others = ([each for each in functions if _kind(each) == kind] for kind in ("hot", "moving", "other"))
    found = {
        "wrappers_hot.c": wrappers.generate(hot, numbers, {}),
        "wrappers_others.c": wrappers.generate(others, numbers, {}, hot=False),
        f"{_FORTRAN}_hot.c": fortran.generate(hot, numbers),
    }
    for part in range(_PARTS):
        found[f"wrappers_{part}.c"] = wrappers.generate(moving[part::_PARTS], numbers, {} if part else kinds, hot=False)
        found[f"{_FORTRAN}_{part}.c"] = fortran.generate(moving[part::_PARTS], numbers)
        found[f"{_FORTRAN}_others_{part}.c"] = fortran.generate(others[part::_PARTS], numbers)
    return found


def _kind(function: Prototype) -> str:
    """How often a function is called: ``hot`` in inner loops, ``moving`` data otherwise, or ``other``."""
    if function.name.removeprefix("MPI_") in HOT:
        return "hot"
    return "other" if wrappers.rule_of(function).kind == "o" else "moving"


def _compile(using: Compiler, generated: Mapping[str, str], place: Path) -> Path:
    """Compile all of it, or all but Fortran where that alone fails: an mpi.h may lack what converts its handles.

    Parts that are in `place` from a build that was interrupted are taken as they are.
    """
    try:
        for name, text in generated.items():
            (place / name).write_text(text)
    except OSError as error:
        raise ToolError(f"the tracer cannot be built in {place}: {error.strerror}", "free some space") from error
    sources = [*(place / name for name in generated), *sorted(_SOURCES.glob("*.c"))]
    complaints = dict(zip(sources, _objects(using, sources, place), strict=True))
    of_fortran = {source for source in sources if source.stem == "fortran" or source.name.startswith(_FORTRAN)}
    failed = [text for source, text in complaints.items() if text and source not in of_fortran]
    complete = [] if any(complaints.values()) else [sources]
    output = place / LIBRARY
    for chosen in (*complete, [source for source in sources if source not in of_fortran]) if not failed else ():
        objects = [str(place / f"{source.stem}.o") for source in chosen]
        done = _run([using.path, *FLAGS, "-o", str(output), *objects, "-ldl"])
        if done.returncode == 0 and output.is_file():
            return output
        failed.append(_last_line(done.stderr))
    raise ToolError(
        f"{using.path} does not compile the tracer: {failed[0]}",
        "check that it compiles an MPI program, or name another with RANKSIGHT_MPICC",
    )


def _objects(using: Compiler, sources: Sequence[Path], place: Path) -> list[str]:
    """Compile each source into `place`, as many at a time as there are cores; what the compiler complained, else ""."""
    what = f"building the tracer for {using.family or 'MPI'} {using.release}".rstrip() + ", once"
    flags = [flag for flag in FLAGS if flag != "-shared"]

    def compiled(source: Path) -> str:
        target = place / f"{source.stem}.o"
        if target.is_file():
            return ""
        part = target.with_suffix(f".{os.getpid()}.part")
        level = next(each for name, each in LEVELS.items() if source.stem.startswith(name))
        done = _run([using.path, level, *flags, f"-I{_SOURCES}", "-c", "-o", str(part), str(source)])
        if done.returncode != 0:
            return _last_line(done.stderr)
        os.replace(part, target)
        return ""

    progress(what, 0, len(sources))
    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    try:
        waiting = [pool.submit(compiled, source) for source in sources]
        for count, _ in enumerate(as_completed(waiting), 1):
            progress(what, count, len(sources))
        return [future.result() for future in waiting]
    finally:
        pool.shutdown(cancel_futures=True)
