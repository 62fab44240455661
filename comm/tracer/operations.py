r"""What each function of MPI moves: the rules of ``operations.toml``, from which the wrappers are generated.

An entry ``[[rule]]`` holds for the functions `names`; its code is C, with ``{0}``, ``{1}``, ... for the arguments as C
values, ``@`` for the call, ``#`` for the number of the operation itself and ``#Name`` for that of another.

Nonblocking and persistent collectives follow their blocking form. A persistent operation appears under ``<name>_init``
(the set-up, no bytes) and ``<name>_start`` (each start, its bytes); time is with ``Start``, ``Startall`` and the
completions. Completions and other calls without a communicator have communicator size 0. An intercommunicator's size
is that of both groups together. Limits of the library remain: MPICH (4.0, 5.0) leaves the status of
MPI_Isendrecv unset, so the bytes of ``Isendrecv_recv`` are invalid there.

Each operation is of one kind: ``s`` send, ``r`` receive, ``c`` collective, ``p`` one-sided from the origin, ``g``
one-sided to the origin, ``i`` file, ``w`` completion and waiting, ``o`` other.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from ranksight.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """How a function is recorded."""

    kind: str  # one letter, see above
    after: str  # statements after a successful call
    before: str = ""  # declarations and statements before the call
    also: tuple[tuple[str, str], ...] = ()  # further operations of the function: name and kind
    always: str = ""  # statements after the call, whether it succeeded or not


_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
HOT = frozenset(_TABLE["hot"].split())
"""Operations that inner loops call."""
RULES: dict[str, Rule] = {}
"""Rules by the function's name without ``MPI_`` and without the ``_c`` of large counts."""


def _own(code: str, name: str) -> str:
    return re.sub(r"#(?!\w)", f"#{name}", code)


def _persistent(base: str, kind: str, target: str, size: str, comm: int, request: int) -> Rule:
    """The rule of ``<base>_init``; `target`: rank and tag of a message."""
    declared = f"rs_group *rs_g = rs_comm({{{comm}}}); rs_on_comm(@, #{base}_init, {{{comm}}});"
    start = f"rs_persist(@, #{base}_start, '{kind}', rs_g, {target}, {size}, RS_HANDLE(*{{{request}}}));"
    return Rule("o", f"{declared} {start}", also=((f"{base}_start", kind),))


for _base, (_kind, _target, _size, _comm, _request) in _TABLE["persistent"].items():
    RULES[f"{_base}_init"] = _persistent(_base, _kind, _target, _size, _comm, _request)
for _base, (_size, _comm) in _TABLE["collectives"].items():
    for _name in (_base, f"I{_base.lower()}"):
        _code = f"rs_group *rs_g = rs_comm({{{_comm}}}); rs_add(@, #{_name}, (uint32_t)rs_g->size, 1, {_size});"
        RULES[_name] = Rule("c", _code)
    RULES[f"{_base}_init"] = _persistent(_base, "c", "0, RS_NO_TAG", _size, _comm, _comm + 2)
for _base, (_block, _comm) in _TABLE["neighbours"].items():
    for _name in (_base, f"I{_base.lower()}"):
        RULES[_name] = Rule("c", f"RS_NEIGHBOURS(@, #{_name}, {{{_comm}}}, {_block});")
    _size = f"RS_NEIGHBOUR_BYTES(rs_g, {{{_comm}}}, {_block})"
    RULES[f"{_base}_init"] = _persistent(_base, "c", "0, RS_NO_TAG", _size, _comm, _comm + 2)
for _entry in _TABLE["rule"]:
    for _name in _entry["names"].split():
        _before, _after, _always = (_own(_entry.get(part, ""), _name) for part in ("before", "after", "always"))
        RULES[_name] = Rule(_entry["kind"], _after, _before, tuple(_entry.get("also", {}).items()), _always)
