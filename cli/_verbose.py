"""--verbose: what is read, chosen and written, on standard error, with the time since the start."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ranksight.core.names import printable


@contextmanager
def aloud() -> Iterator[None]:
    """Print what :func:`ranksight.core.log.log` says."""
    from ranksight.core.log import listening, log

    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.INFO)
    handler.setFormatter(_Since(time.monotonic()))
    begin = time.process_time()
    with listening(handler):
        yield
        log("done, %.2f s of processor time in this process", time.process_time() - begin)


class _Since(logging.Formatter):
    """One printable line with the seconds since the start."""

    def __init__(self, begin: float) -> None:
        super().__init__()
        self.begin = begin

    def format(self, record: logging.LogRecord) -> str:
        return f"{time.monotonic() - self.begin:8.2f} s  {printable(record.getMessage())}"
