"""Whose code an object file holds, and how its functions are named as kernels.

A profile knows each function with the executable or library it lies in. That separates, exactly, what the application
computes from what the MPI library burns while it waits: busy-waiting alone can put as many instructions into MPI as the
application has, and they repeat in no two runs.

===============  =================================================================================================
``application``  the program: its functions are kernels
``library``      libraries that are none of the below: their functions are kernels as far as the application called them
``mpi``          the MPI library, its transports, its process managers: never part of an application kernel
``runtime``      libc, libm, language and threading run times: kernels of their own, ``memcpy [libc]``, as far as the
                 application called them
``system``       dynamic loader, the kernel's pages, the profiler itself: start-up, no kernel
===============  =================================================================================================

The names are listed in ``objects.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from functools import lru_cache
from importlib import resources
from typing import Literal

from ranksight.core.mpi import is_symbol
from ranksight.core.symbols import beginning, label, needed, unnamed

Owner = Literal["application", "library", "mpi", "runtime", "system"]

_TABLES = tomllib.loads(resources.files("ranksight.counters").joinpath("objects.toml").read_text(encoding="utf-8"))


def _any_of(table: str) -> str:
    return f"(?:{'|'.join(_TABLES[table])})"


_MPI, _RUNTIME, _SYSTEM = (re.compile(f"^{_any_of(owner)}$") for owner in ("mpi", "runtime", "system"))
_MPI_FOLDER = re.compile(rf"/{_any_of('mpi_folders')}/(?:[^/]*/)?[^/]*\.so")
_SYSTEM_PLACES = tuple(_TABLES["system_places"])
_START_UP = frozenset(_TABLES["start_up"])
_START_UP_OWN = frozenset(bar + name for name in _START_UP for bar in ("", "_", "__")) - {"start", "init", "fini"}
_CLONE = re.compile(
    r"(?:\.(?:constprop|isra|part|cold|lto_priv|llvm|localalias|clone|unlikely|hot|_omp_fn)(?:\.\d{1,20}){0,4}){1,8}$"
)
_CLONE_NOTE = re.compile(r"(?: \[clone [^\[\]]{0,99}\]){1,8}$")
_RECURSION = re.compile(r"(?<=.)'\d+$")
_SYMBOL_VERSION = re.compile(r"@{1,2}[A-Za-z_0-9.]+$")
_VARIANT = re.compile(f"_{_any_of('variants')}(?=_|$)")
_SAME = {name: ours for ours, names in _TABLES["same"].items() for name in names}
_INTERNAL = re.compile(r"^(?:GI|ieee754|libc)_+")
UNKNOWN = "???"
"""Object of code that callgrind finds in no file; where it begins changes from run to run."""
_ADDRESS = re.compile(r"^(?:0x)?[0-9a-fA-F]{6,}$|^\?+$|^\[unknown\]$|^$")


@lru_cache(maxsize=4096)
def owner(path: str) -> Owner:
    """Whose code the object file at `path` holds; an unnamed one is the application's (generated code).

    Code of an unknown file serves whoever calls it, as a library does: it may be stubs through which one library calls
    another, which valgrind finds in no section that it knows.
    """
    if path.startswith(_SYSTEM_PLACES):
        return "system"
    if path == UNKNOWN:
        return "library"
    name = label(path)
    if _SYSTEM.match(name):
        return "system"
    shared = ".so" in path.rsplit("/", 1)[-1]
    if shared and (_MPI.match(name) or _MPI_FOLDER.search(path)):
        return "mpi"
    if shared and _RUNTIME.match(name):
        return "runtime"
    return "library" if shared else "application"


@lru_cache(maxsize=65536)
def owner_of(function: str, path: str) -> Owner:
    """Whose code a function is: :func:`owner` of its object, save that an MPI linked statically shows by its names."""
    found = owner(path)
    return "mpi" if found in ("application", "library") and is_symbol(function) else found


def not_for_mpi(paths: Collection[str]) -> frozenset[str]:
    """Those of the libraries that a process has loaded that neither the MPI library nor its transports are linked with.

    A function of theirs works for the application, even where neither a symbol nor its callers are known. None are
    certain where a file of MPI's cannot be read, as in a profile of another machine.
    """
    by_name: dict[str, set[str]] = {}  # a file is named by its version, and linked with by the start of its name
    for path in paths:
        by_name.setdefault(label(path), set()).add(path)
    serving = {path for path in paths if owner(path) == "mpi"}
    todo = list(serving)
    while todo:
        names = needed(todo.pop())
        if names is None:
            return frozenset()
        new = set().union(*(by_name.get(label(name), ()) for name in names)) - serving
        serving |= new
        todo += new
    return frozenset(path for path in paths if owner(path) == "library" and path not in serving)


def is_address(function: str) -> bool:
    """Whether a function's name as a tool writes it says that it has no symbol: an address, ``???``, ``[unknown]``."""
    return _ADDRESS.match(_plain(function)) is not None


def _plain(function: str) -> str:
    """A function's name without what marks the compiler's copies of it and levels of a recursion."""
    return _CLONE.sub("", _CLONE_NOTE.sub("", _RECURSION.sub("", function.strip())))


@lru_cache(maxsize=65536)
def kernel_name(function: str, path: str) -> str:
    """Name of the kernel that a function belongs to, the same on every run, rank and processor.

    Copies that the compiler made of one function (``.constprop.0``, ``.isra.0``, ``.part.0``, ``.cold``) and levels of
    a recursion (``'2``) are the function; outlined OpenMP regions (``._omp_fn.0``) are their function too. Functions of
    a run-time library carry its name, without the instruction set that the loader chose
    (``__memmove_avx_unaligned_erms`` is ``memcpy [libc]``). A function without a symbol is named by where it begins,
    ``0x1430 [name]``, as the tracer names it (:mod:`ranksight.core.symbols`); those of a run-time library, and those
    whose address is not known, are one kernel per object, ``(no symbol) [name]``. Empty where the function belongs to
    the start-up of a process and to no kernel.
    """
    name = _plain(function)
    place = f" [{label(path)}]" if path else ""
    if owner(path) != "runtime":
        if name in _START_UP_OWN:
            return ""
        return unnamed(None if path == UNKNOWN else _start(name, path), path) if _ADDRESS.match(name) else name
    name = _VARIANT.sub("", _SYMBOL_VERSION.sub("", name)).lstrip("_")
    name = _INTERNAL.sub("", name).removesuffix("_finite")
    name = _SAME.get(name, name)
    if name in _START_UP:
        return ""
    return unnamed(None, path) if _ADDRESS.match(name) else f"{name}{place}"


def _start(name: str, path: str) -> int | None:
    """Where the function begins whose name is an address: as its file says, or the address, which a call led to."""
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,16}", name):
        return None
    address = int(name, 16)
    return beginning(path, address) or address
