"""Limits on what is read from files that others wrote: sizes, decompression, nesting, counts and time, in one place.

A file beyond one of them is refused with one line; none of our own and none that a tool writes in practice comes near.
``docs/security.md`` lists them for users.
"""

from __future__ import annotations

# ---- sizes of files, in bytes ---------------------------------------------------------------------------------------

TEXT = 1 << 28
"""A text that is read at once; formats that can be longer are read line by line."""
DATABASE = 1 << 31
"""A file of an HPCToolkit database."""
XML = 1 << 31
"""A profile in XML, which is read a piece at a time."""
TRACE = 1 << 31
"""One rank's trace of the tracer."""
TIMINGS = 1 << 31
"""A table of timed messages."""
MODEL = 1 << 34
"""A model."""
MODEL_HEAD = 1 << 30
"""What of a model is text: names and what is not a column of numbers."""
JSON = 1 << 28
"""The head of an experiment or of a run."""
TOML = 1 << 20
"""A platform, or expectations."""
TOML_PARTS = 32
"""Parts of a dotted key."""
OBJECT_FILE = 1 << 30
"""A program, a library or a file of debugging information whose symbols are read."""

# ---- decompression, in bytes ----------------------------------------------------------------------------------------

UNPACKED = 1 << 30
"""A text that was packed by gzip."""
UNPACKED_GROWTH = 100
"""Times the size of its file that such a text takes, beyond:"""
UNPACKED_SMALL = 1 << 23
"""A text that was packed to any size."""
CUBE_ANCHOR = 1 << 29
"""A CUBE's anchor.xml."""
PROFILE_VALUES = 1 << 32
"""Values of one metric of a CUBE, or of all of an HPCToolkit database."""
PROFILE_TABLE = 1 << 29
"""Values of all metrics and call paths of a profile in text, which names few of them."""
TABLE_BYTES = 1 << 33
"""A table of a run."""
TABLE_GROWTH = 256
"""Times the size of its file that the numbers of a run's table take, beyond:"""
TABLE_SMALL = 1 << 26
"""A table of a run of any file."""

# ---- nesting and lengths --------------------------------------------------------------------------------------------

DEPTH = 10_000
"""Calls within each other in a call tree."""
NAMES = 1 << 27
"""Characters of the names of all call paths of a profile, each from the root on."""
LINE = 1 << 24
"""Bytes of a line of text, or of a tag of XML; those of an alltoallv of thousands of ranks are long."""
CALLGRIND_LINE = 1 << 20
"""Bytes of a line of a callgrind profile."""
XML_TEXT = 1 << 16
"""Characters of text in an element."""

# ---- counts ---------------------------------------------------------------------------------------------------------

MODEL_NUMBERS = 1 << 30
"""Numbers of a column of a model, and of its hypotheses once they are of equal length."""
CUBE_ELEMENTS = 1 << 21
"""XML elements of a CUBE's anchor."""
FUNCTIONS = 1 << 22
"""Functions in the table for unwinding of one object file."""
TABLE_COLUMNS = 1 << 18
"""Columns of a delimited table."""
TABLE_ROWS = 20_000_000
"""Rows of one delimited table."""
TABLE_RUNS = 1 << 17
"""Runs, of a configuration and repetition each, that a delimited table holds."""
TABLE_CELLS = 1 << 30
"""Rows times columns of a table of a run."""
RANKS = 1 << 24
"""Ranks of a run that was measured, not those of a prediction."""
CALLGRIND_NUMBERS = 1 << 24
"""Numbers that stand for names in a callgrind profile, and parts that it was dumped in."""
CALLGRIND_EVENTS = 512
"""Events that a callgrind profile counts: a simulation of all cache sizes has a hundred in each of its sums."""
CALLGRIND_SITES = 4_000_000
"""Places in functions of a callgrind profile, and jumps between them; of more, costs of places are not kept."""
PERF_RECORD = 1 << 20
"""Bytes of one sample of ``perf script``, with its call chain."""
PERF_FUNCTIONS = 1 << 20
"""Functions of all processes in the samples of ``perf script``."""
CALIPER_NODES = 1_000_000
"""Nodes that the records of a small Caliper stream name, with all above them; a larger one's as many as its bytes."""
EVENTS_PER_BYTE = 16
"""Events of an OTF2 archive for each byte of its files, which may be packed; one that is not takes some bytes."""
EVENTS = 50_000_000
"""Calls of a run's trace that are read in their order; they take some gigabytes."""
EVENTS_ORDERED = 4_000_000
"""Calls of a trace that a reader keeps in their order, and those whose waiting is matched; sums are of all calls."""
MESSAGE_ROWS = 5_000_000
"""Rows of a message table."""
MESSAGE_PEERS = 50_000_000
"""Peers of all rows of a message table."""

CORES = 1 << 16
"""Physical cores of a node that a platform describes; what cores share is worked out for each number of them."""

# ---- time, in seconds of a processor --------------------------------------------------------------------------------

READING = 60.0
"""Reading of one file or folder, and for each MiB of it:"""
READING_PER_MIB = 10.0

# ---- values ---------------------------------------------------------------------------------------------------------

VALUE = 2.0**63
"""Any measured value: counters have at most 64 bits, and no time is that long."""
PARAMETER = 1e100
"""A parameter's value in a model, and the inverse of the smallest above zero."""
FITTED = 1e150
"""Any number of a fitted function: sums of squares of such are finite."""
