"""Limits on what is read from files that others wrote: sizes, decompression, nesting and counts, in one place.

A file beyond one of them is refused with one line; none of our own and none that a tool writes in practice comes near.
Documented for users in ``docs/security.md``.
"""

from __future__ import annotations

OBJECT_FILE = 1 << 30
"""Bytes of a program, a library or a file of debugging information whose symbols are read."""
FUNCTIONS = 1 << 22
"""Functions in the table for unwinding of one object file."""
TRACE = 1 << 31
"""Bytes of one rank's trace."""
PROFILE_VALUES = 1 << 32
"""Bytes that the values of one metric of a CUBE, or of all of an HPCToolkit database, may take."""
CUBE_ANCHOR = 1 << 29
"""Bytes of a CUBE's anchor.xml, inflated."""
CUBE_ELEMENTS = 1 << 22
"""XML elements of a CUBE's anchor."""
VALUE = 2.0**63
"""Any measured value: counters have at most 64 bits, and no time is that long."""
PARAMETER = 1e100
"""A parameter's value in a model, and the inverse of the smallest above zero."""
UNPACKED = 1 << 30
"""Bytes that a text packed by gzip may come to."""
TABLE_ROWS = 20_000_000
"""Rows of one delimited table."""
