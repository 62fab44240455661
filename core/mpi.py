"""Which functions are MPI's: their time is communication, in every profile and table.

MPI's standard reserves the prefixes ``MPI_`` and ``PMPI_`` (MPI 4.1, section 2.6.2). Fortran compilers fold names to
lower case, so that ``mpi_bcast_`` is a call as well, and ``mpi_smooth`` a function of somebody's.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ranksight.core.leftout import MPI
from ranksight.core.names import call_path

_RESERVED = r"P?MPI(?:X|_T)?_[A-Z]\w*"
_INTERNAL = (
    r"(?:ompi|opal|orte|prte|prrte|mca|pmix|PMIx|MPIR|MPID|MPIDI|MPIDU|MPIU|MPL|MPIDIG|MPII|psm2|ucp|uct|ucs|ucm|ibv)"
    r"_\w+"
)
"""Functions of MPI libraries and of what carries their messages."""
_SYMBOL = rf"(?:{_RESERVED}|p?mpi_[a-z_]+_|{_INTERNAL})"
_FOLDED = (
    r"p?mpi_(?:i?(?:neighbor_)?(?:barrier|bcast|(?:all)?gatherv?|scatterv?|alltoall[vw]?|(?:all)?reduce|"
    r"reduce_scatter(?:_block)?|scan|exscan)|i?[bsr]?send|i?m?recv|i?sendrecv(?:_replace)?|i?m?probe|wait(?:all|any|some)?|"
    r"test(?:all|any|some)?|start(?:all)?|r?put|r?get|r?(?:get_)?accumulate|init(?:_thread)?|finalize|pack|unpack|"
    r"(?:comm|cart|graph|win|file|type|group|request|op)_\w+)"
)
_ARGUMENTS = r"(?:\(.*\))?"
_CALL = re.compile(rf"{_RESERVED}\s*{_ARGUMENTS}|{_FOLDED}_{{0,2}}\s*{_ARGUMENTS}", re.DOTALL)
_FILES = re.compile("P?MPI_File_|p?mpi_file_")
_TOTAL = re.compile(r"MPI(?:[ _-](?:time|total|library|calls|communication))?", re.IGNORECASE)
RANK_COUNTS = frozenset({"p", "np", "nproc", "nprocs", "nranks", "num_ranks", "mpi_ranks", "mpi", "procs", "processes",
                         "processors", "tasks", "ntasks"})  # fmt: skip
"""What programs and people call the number of ranks."""
LABEL = " [MPI]"
"""What readers add to the name of a function that its source calls MPI's."""


def is_symbol(function: str) -> bool:
    """Whether a function of a program or library, by its symbol, is the MPI library's."""
    return re.fullmatch(_SYMBOL, function) is not None


@lru_cache(maxsize=65536)
def is_call(kernel: str) -> bool:
    """Whether a kernel, by the last region of its call path, is one function of MPI.

    >>> [is_call(name) for name in ("MPI_Wait()", "main->mpi_bcast_", "mpi_smooth", "(MPI library)")]
    [True, True, False, False]
    """
    return _is_call(call_path(kernel)[-1])


@lru_cache(maxsize=65536)
def communicates(kernel: str) -> bool:
    """Whether the time of a kernel is communication: a function of MPI or what one called, or all of them together.

    >>> [communicates(name) for name in ("(MPI library)", "main->MPI_Send->memcpy", "exchange", "halo [MPI]")]
    [True, True, False, True]
    """
    return kernel == MPI or _TOTAL.fullmatch(kernel) is not None or any(map(_is_call, call_path(kernel)))


@lru_cache(maxsize=65536)
def handles_files(kernel: str) -> bool:
    """Whether a kernel is a function of MPI that handles files, or what one called.

    >>> [handles_files(name) for name in ("MPI_File_open", "main->mpi_file_write_all_", "MPI_Send", "mpi_files")]
    [True, True, False, False]
    """
    return any(_is_call(region) and _FILES.match(region) for region in call_path(kernel))


@lru_cache(maxsize=65536)
def operation_of(kernel: str) -> str:
    """The function of MPI that a kernel is, or was called by; empty where its name does not say which.

    >>> [operation_of(name) for name in ("exchange->MPI_Waitall", "mpi_bcast_", "(MPI library)")]
    ['MPI_Waitall', 'mpi_bcast', '']
    """
    calls = (_CALL.fullmatch(region) for region in call_path(kernel))
    return next((call[0].partition("(")[0].rstrip("_ ") for call in calls if call is not None), "")


def _is_call(region: str) -> bool:
    return _CALL.fullmatch(region) is not None or region.endswith(LABEL) or re.fullmatch(_INTERNAL, region) is not None
