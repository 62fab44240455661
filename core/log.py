"""What long work says while it goes on: what it read and chose, and how far it is.

Both are records of :mod:`logging`, under the name ``ranksight``, so that notebooks and schedulers can listen too:
``logging.getLogger("ranksight").setLevel("INFO")``. Nothing is printed unless someone listens.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("ranksight")


def told(text: str, *values: object) -> None:
    """Say what was read, chosen or written, in the way of :meth:`logging.Logger.info`."""
    LOG.info(text, *values)


def progress(what: str, done: int, of: int) -> None:
    """Say how far `what` is; records of level DEBUG that carry ``what``, ``done`` and ``of``."""
    LOG.debug("%s: %d of %d", what, done, of, extra={"what": what, "done": done, "of": of})
