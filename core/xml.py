"""XML that others wrote, parsed a piece at a time: its time grows with its size alone, whatever the markup."""

from __future__ import annotations

from collections.abc import Callable
from xml.parsers import expat

from ranksight.core import limits
from ranksight.core.errors import InputError

_PIECE = 1 << 18


def parse(parser: expat.XMLParserType, read: Callable[[int], bytes], where: str, most: int) -> None:
    """Feed `parser` what a file holds.

    Raises InputError when it holds more, or an element's markup is longer than :data:`ranksight.core.limits.LINE`:
    expat begins a tag, a comment or an instruction again with every piece until it ends; xml.parsers.expat.ExpatError
    when it is not well-formed.

    `read`: gives the next bytes, at most so many; none at the end. `where`: the file, for messages. `most`: bytes that
    it may hold.
    """
    fed = 0
    while piece := read(min(_PIECE, most - fed + 1)):
        fed += len(piece)
        if fed > most:
            raise InputError(f"{where} is longer than {most >> 20} MiB", "is it this tool's output?")
        parser.Parse(piece, False)
        if fed - parser.CurrentByteIndex > limits.LINE:
            raise InputError(
                f"{where}:{parser.CurrentLineNumber}: markup is longer than {limits.LINE >> 20} MiB", "it is damaged"
            )
    parser.Parse(b"", True)
