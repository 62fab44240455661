"""Requests to end, which are taken as Ctrl-C is."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def ended_as_cancelled(asked: list[int]) -> Iterator[None]:
    """A request to end is taken as Ctrl-C is: ranks end, what is complete is kept.

    Such requests are SIGTERM (``kill``, a time limit) and SIGHUP (a lost connection); one that is ignored from outside,
    as SIGHUP by ``nohup``, stays ignored. All are noted in `asked`, since a library that is interrupted while it loads
    may raise an error of its own.
    """

    def end(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        raise KeyboardInterrupt

    before = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
        before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
