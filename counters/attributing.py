"""Whose a sample is: the application's, MPI's or nobody's, by the frames of its call chain."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from ranksight.core import leftout
from ranksight.core.symbols import label
from ranksight.counters.objects import Owner, is_address, kernel_name, owner, owner_of

Group = Literal["application", "mpi", "other"]

NOBODYS = ("[unknown]", "")
_SERVES_APPLICATION = re.compile(
    r"^(?:mem(?:cpy|set|cmp)|qsort|msort|bsearch|rand|random|srand|drand48|lrand48|erand48|strto|ato[fil]|malloc|free|calloc|"
    r"realloc|aligned_alloc|posix_memalign|v?f?s?n?printf|v?f?s?scanf|fwrite|fread|operator new|operator delete)\b"
)


class Frame(NamedTuple):
    """One place in a call chain."""

    symbol: str
    object: str


def resolve(frames: Iterable[Frame], ours: Collection[str] = ()) -> tuple[Group, str, bool]:
    """Say whom a sample belongs to, from its call chain, innermost frame first.

    The first frame that is the application's or MPI's decides. Of run-time functions above it the outermost is the
    kernel, the one that the application entered; time in the operating system belongs to what entered it. A chain that
    shows only run-time functions is decided by name: mathematics, memory, strings and sorting serve the application;
    waiting, polling and loading do not. A library's code without a symbol is nobody's unless a frame of the application
    says so, or the library is one of `ours`, which serve the application alone.

    Returns
    -------
    group, kernel, by_name
        In place of the kernel, the object file of what is left out.
    """
    frames = list(frames)
    seat = frames[0].object if frames else ""
    entered: Frame | None = None
    library: Frame | None = None
    for frame in frames:
        if frame.object in NOBODYS:
            continue
        whose: Owner = owner_of(frame.symbol, frame.object)
        if whose == "mpi":
            return "mpi", frame.object, False
        if whose == "runtime" and library is None:
            entered = frame
        elif whose == "application":
            return _application(entered or library or frame, seat)
        elif whose == "library" and library is None:
            library = frame
    if library is not None and (library.object in ours or not is_address(library.symbol)):
        return _application(entered or library, seat)
    if entered is None:
        return "other", seat if library is None else library.object, False
    name = kernel_name(*entered)
    file = entered.object.rsplit("/", 1)[-1]
    if name and file.startswith(("libm.", "libm-", "libmvec", "libsvml", "libimf", "libquadmath")):
        return "application", name, False
    if _SERVES_APPLICATION.match(name):
        return "application", name, True
    return "other", (library or entered).object, False


def by_object(samples: pd.DataFrame, metric: str) -> pd.DataFrame:
    """What of `samples` became no kernel (:mod:`ranksight.core.leftout`).

    `samples`: ``group`` and ``kernel`` as :attr:`Samples.table` has them, ``rank`` and ``value``. `metric`: what the
    values are of.
    """
    kept = (samples["group"] == "application").to_numpy()
    paths = np.where(kept, "", samples["kernel"].astype(object).replace("", "[unknown]"))
    unseen = [owner(path) in ("runtime", "system") for path in paths]
    group = np.where((samples["group"] == "other").to_numpy() & unseen, "system", samples["group"].astype(object))
    return leftout.by_object(
        samples.assign(group=group, object=[label(path) if path else "" for path in paths]), metric
    )


def _application(frame: Frame, seat: str) -> tuple[Group, str, bool]:
    name = kernel_name(*frame)
    return ("application", name, False) if name else ("other", seat, False)
