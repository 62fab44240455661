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
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import Literal

from ranksight.core.symbols import beginning, label, needed, unnamed

Owner = Literal["application", "library", "mpi", "runtime", "system"]

_MPI = re.compile(
    r"""^(?:
    lib(?:mpi|mpich|mpicxx|mpifort|mpichf90|mpichcxx|mpl|opa|pmpi|mvapich|psmpi|mpich_gnu)(?:_?[a-z0-9_]*)? |
    lib(?:open-pal|open-rte|prrte|pmix|pmi|pmi2|ucp|uct|ucs|ucm|uct_[a-z0-9]+|ucs_[a-z0-9]+|ucx[a-z0-9_]*|ucc) |
    lib(?:hcoll|sharp\w*|hwloc|nccl|rccl|tcmpi\w*) |
    lib(?:fabric|psm\w*|ibverbs|ibumad|rdmacm|mlx\d*|efa|cxi|xpmem|portals|ugni|knem|dmapp|opa_?\w*) |
    lib(?:event|event_core|event_pthreads|ev|munge|slurm\w*|torque|lsf|pals|alps\w*|flux-core) |
    lib(?:dat|dapl|ofi|mpi_\w+|oshmem|shmem|scif|cray-mpich|sci_\w*mpi\w*) |
    mca_\w+ | libmca_\w+ | pmix_mca_\w+ | prte_mca_\w+ | libranksight\w* | between_init_and_finalize
    )$""",
    re.VERBOSE,
)
_MPI_FOLDER = re.compile(r"/(?:openmpi|ucx|pmix|prte|mpich|libfabric|mca|hcoll)/(?:[^/]*/)?[^/]*\.so")
_RUNTIME = re.compile(
    r"""^(?:
    lib(?:c|m|mvec|pthread|rt|dl|util|resolv|crypt|gcc_s|stdc\+\+|c\+\+|c\+\+abi|atomic|unwind) |
    lib(?:gfortran|quadmath|gomp|omp|iomp5|flang\w*|pgf90\w*|nvf|nvomp|nvc|pgmath|imf|svml|irc|intlc) |
    lib(?:tcmalloc\w*|ifcore\w*|ifport\w*|irng|jemalloc|amdlibm|sleef|xlf90\w*|xlsmp|craymath|craymp|fi|f|u)
    )$""",
    re.VERBOSE,
)
_SYSTEM = re.compile(r"^(?:ld-linux\S*|ld|ld64|ld-musl\S*|libld\S*|vgpreload_\S+|callgrind-\S+|linux-vdso|linux-gate)$")
_SYSTEM_PLACES = (
    *("[kernel", "[guest", "[vdso", "[vsyscall", "[hypervisor"),
    *("[heap", "[stack", "[uprobes", "[bpf", "bpf_prog_"),
)
_START_UP = frozenset(
    (
        *("(below main)", "start", "init", "fini", "frame_dummy", "call_weak_fn", "do_global_dtors_aux"),
        *("libc_start_main", "libc_start_main_impl", "libc_start_call_main", "libc_csu_init", "libc_csu_fini"),
        *("register_tm_clones", "deregister_tm_clones", "dl_relocate_static_pie", "dl_runtime_resolve"),
    )
)
_START_UP_OWN = frozenset(bar + name for name in _START_UP for bar in ("", "_", "__")) - {"start", "init", "fini"}
_MPI_FUNCTION = re.compile(
    r"^(?:P?MPI(?:X|_T)?_[A-Z]\w*|p?mpi_[a-z_]+_|(?:ompi|opal|orte|prte|prrte|mca|pmix|PMIx|MPIR|MPID|MPIDI|MPIDU|MPIU|MPL|"
    r"MPIDIG|MPII|psm2|ucp|uct|ucs|ucm|ibv)_\w+)$"
)
_CLONE = re.compile(
    r"(?:\.(?:constprop|isra|part|cold|lto_priv|llvm|localalias|clone|unlikely|hot|_omp_fn)(?:\.\d+)*)+$"
)
_CLONE_NOTE = re.compile(r"(?: \[clone [^\]]*\])+$")
_RECURSION = re.compile(r"(?<=.)'\d+$")
_SYMBOL_VERSION = re.compile(r"@{1,2}[A-Za-z_0-9.]+$")
_VARIANT = re.compile(
    r"_(?:sse\d*(?:_\d)?|ssse3|avx\d*(?:_\w+?)?|evex\d*|fma\d?|erms|unaligned|rtm|generic|sve|neon|asimd"
    r"|power\d+|vsx|thunderx\w*|falkor)(?=_|$)"
)
_SAME = {
    **dict.fromkeys(("memmove", "mempcpy", "memcpy_chk", "memmove_chk"), "memcpy"),
    **dict.fromkeys(("int_malloc", "sysmalloc", "malloc_hook_ini"), "malloc"),
    **dict.fromkeys(("int_free", "cfree", "malloc_consolidate", "unlink_chunk", "systrim"), "free"),
    "int_realloc": "realloc",
    "bzero": "memset",
}
"""Functions that are one piece of code, or the inside of another, and which name is seen depends on the tool."""
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
    return "mpi" if found in ("application", "library") and _MPI_FUNCTION.match(function) else found


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
