"""Events of an OTF2 archive as plain tuples, by the library's own callbacks.

The otf2 package makes an object of every event and its attributes, in several calls of Python: most of the time that an
archive of 1,024 ranks takes. Here the C library calls a function that appends a tuple; definitions are the package's.

Source: OTF2 3.0, ``OTF2_GlobalEvtReaderCallbacks_Set*Callback``.
"""

from __future__ import annotations

import ctypes
import io
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

BATCH = 100_000
"""Events that are held at a time."""
ENTER, LEAVE, SEND, ISEND, COLLECTIVE, METRIC = range(6)
_U8, _U32, _U64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64
_ARGUMENTS: dict[int, tuple[str, tuple[Any, ...]]] = {
    ENTER: ("Enter", (_U32,)),  # region
    LEAVE: ("Leave", (_U32,)),
    SEND: ("MpiSend", (_U32, _U32, _U32, _U64)),  # receiver, communicator, tag, bytes
    ISEND: ("MpiIsend", (_U32, _U32, _U32, _U64, _U64)),  # and request
    COLLECTIVE: ("MpiCollectiveEnd", (_U8, _U32, _U32, _U64, _U64)),  # operation, communicator, root, sent, received
}
"""Of each kind its name and what its callback gets after location, time, user data and attributes."""

Event = tuple[int, int, int, tuple[Any, ...]]
"""Kind, number of the location, ticks, and arguments; a metric's are its object and its values."""


def events(trace: Any, most: float = math.inf) -> Iterator[Event]:
    """All events of the kinds above, in order of time.

    Raises ValueError when there are more: the library may read the same of a damaged archive again and again; or others
    than the definitions count, as where a file was cut off.

    `most`: how many events of any kind there can be.
    """
    import _otf2
    from otf2.events import Metric

    library = _otf2.Config.conf.lib
    handle = trace._get_global_evt_reader_handle(None)
    callbacks = _otf2.GlobalEvtReaderCallbacks_New()
    found: list[Event] = []
    kept = []  # the library holds no reference to what it calls
    for kind, (name, arguments) in _ARGUMENTS.items():
        made = ctypes.CFUNCTYPE(ctypes.c_int, _U64, _U64, ctypes.c_void_p, ctypes.c_void_p, *arguments)
        kept.append(made(_taking(kind, found)))
        declare = getattr(library, f"OTF2_GlobalEvtReaderCallbacks_Set{name}Callback")
        previous = declare.argtypes
        declare.argtypes = [ctypes.c_void_p, made]
        declare(callbacks, kept[-1])
        declare.argtypes = previous

    def metric(location: int, time: int, user: object, attributes: object, *rest: Any) -> None:
        event = Metric._construct(trace.definitions, time, *rest)
        found.append((METRIC, location, time, (event.metric, event.values)))

    _otf2.GlobalEvtReaderCallbacks_SetMetricCallback(callbacks, metric)
    _otf2.GlobalEvtReader_SetCallbacks(handle, callbacks, None)
    _otf2.GlobalEvtReaderCallbacks_Delete(callbacks)
    read = count = BATCH
    while count == BATCH:
        count = _otf2.GlobalEvtReader_ReadEvents(handle, BATCH)
        if read > most + BATCH:
            raise ValueError("it holds more events than fit into its files")
        read += count
        yield from found
        found.clear()
    counted = sum(int(location.number_of_events) for location in trace.definitions.locations)
    if counted and read - BATCH != counted:
        raise ValueError(f"it holds {read - BATCH} events where its definitions count {counted}")


@contextmanager
def silent() -> Iterator[None]:
    """Keep the C library, and the package's callbacks, from printing what they stumble over: errors say the same."""
    import _otf2

    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    # User data, file, line, function, code, format and arguments of a message.
    kind = ctypes.CFUNCTYPE(ctypes.c_int, pointer, text, _U64, text, ctypes.c_int, text, pointer)
    listener = kind(lambda user, file, line, function, code, form, arguments: int(code))
    register = _otf2.Config.conf.lib.OTF2_Error_RegisterCallback
    register.argtypes, register.restype = [pointer, pointer], pointer
    before = register(ctypes.cast(listener, pointer), None)
    try:
        with redirect_stderr(io.StringIO()):
            yield
    finally:
        register(before, None)


def _taking(kind: int, found: list[Event]) -> Callable[..., int]:
    append = found.append

    def take(location: int, time: int, user: object, attributes: object, *rest: Any) -> int:
        append((kind, location, time, rest))
        return 0

    return take
