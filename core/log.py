"""Log records of long work: what was read and chosen, and the progress.

All are records of :mod:`logging` under the name ``ranksight``, so notebooks and schedulers can listen too:
``logging.getLogger("ranksight").setLevel("INFO")``. Nothing is printed without a handler.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

LOG = logging.getLogger("ranksight")


def log(text: str, *values: object) -> None:
    """Log what was read, chosen or written, as :meth:`logging.Logger.info`."""
    LOG.info(text, *values)


def heard() -> bool:
    """Whether somebody has what :func:`log` is given, for texts that take time to write."""
    return LOG.isEnabledFor(logging.INFO)


@contextmanager
def listening(handler: logging.Handler) -> Iterator[None]:
    """Let `handler` have the records of its level and above."""
    before = LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(handler.level)
    try:
        yield
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(before)


def progress(what: str, done: int, of: int) -> None:
    """Log the progress of `what`: records of level DEBUG that carry ``what``, ``done`` and ``of``."""
    LOG.debug("%s: %d of %d", what, done, of, extra={"what": what, "done": done, "of": of})
