r"""What each function of MPI moves: the table from which the wrappers are generated.

Bytes are those that really move, as seen by the rank that calls. `n` is the number of ranks that the call addresses:
all of the communicator, or the remote group of an intercommunicator; `m` = count x size of the datatype.

====================================  ================================================================================
operation                             bytes of one call
====================================  ================================================================================
sends of all modes                    m at the sender, at the call (persistent and partitioned: at each start);
                                      none to ``MPI_PROC_NULL``, which is not a message
receives                              what arrived, from the status, counted at completion
Sendrecv                              m sent under ``Sendrecv``; what arrived under ``Sendrecv_recv``
Bcast                                 m on every rank: the message that each one receives or gives
Reduce, Allreduce, Scan, Exscan       m on every rank
Reduce_scatter(_block)                the whole vector: sum of recvcounts x size; n recvcount x size
Gather(v), Allgather(v)               the rank's own block; with ``MPI_IN_PLACE`` the block it stands for
Scatter(v)                            root: all blocks; others: the block they get
Alltoall(v,w)                         the blocks to all n ranks; with ``MPI_IN_PLACE`` those of the receive side
Neighbor_*                            one block to each outgoing neighbour that exists
Barrier                               0
intercommunicators                    ``MPI_PROC_NULL`` as root: 0; ``MPI_ROOT``: 0 where it only receives
Put, Accumulate and their relatives   m of the origin; Get: m, counted as received
File_read*, File_write*               what the status says; nonblocking and split ones: m asked for
all others                            0
====================================  ================================================================================

Nonblocking and persistent collectives follow their blocking form. A persistent operation appears under ``<name>_init``
(the set-up, no bytes) and ``<name>_start`` (each start, its bytes); time is with ``Start``, ``Startall`` and the
completions. Completions and other calls without a communicator have communicator size 0. An intercommunicator's size
is that of both groups together. Limits of the library remain: MPICH (4.0, 5.0) leaves the status of
MPI_Isendrecv unset, so the bytes of ``Isendrecv_recv`` are invalid there.

Each operation is of one kind: ``s`` send, ``r`` receive, ``c`` collective, ``p`` one-sided from the origin, ``g``
one-sided to the origin, ``i`` file, ``w`` completion and waiting, ``o`` other.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """How a function is recorded."""

    kind: str  # one letter, see above
    after: str
    """C statement after a successful call. ``{0}``, ``{1}``, ... are the arguments as C values, ``@`` is the call,
    ``#Name`` the number of an operation."""
    before: str = ""  # C declarations and statements before the call
    also: tuple[tuple[str, str], ...] = ()  # further operations of the function: name and kind
    always: str = ""  # C statements after the call, whether it succeeded or not


RULES: dict[str, Rule] = {}
"""Rules by the function's name without ``MPI_`` and without the ``_c`` of large counts."""

_IGNORED_STATUS = "MPI_Status rs_status; if (rs_recording(@) && {%d} == MPI_STATUS_IGNORE) {%d} = &rs_status;"


def _point_to_point() -> None:
    for mode in ("Send", "Bsend", "Ssend", "Rsend"):
        for name in (mode, f"I{mode.lower()}"):
            RULES[name] = Rule("s", f"rs_send(@, #{name}, {{1}}, {{2}}, {{3}}, {{4}}, {{5}});")
        _persistent(mode, "s", "{3}, {4}", "rs_bytes({1}, {2})", 5, 6)
    _persistent("Psend", "s", "{4}, {5}", "rs_bytes((MPI_Count){1} * {2}, {3})", 6, 8)
    _persistent("Recv", "r", "{3}, {4}", "0", 5, 6)
    _persistent("Precv", "r", "{4}, {5}", "0", 6, 8)
    status = _IGNORED_STATUS
    RULES["Recv"] = Rule("r", "rs_recv(@, #Recv, rs_comm({5}), {6});", status.replace("%d", "6"))
    RULES["Irecv"] = Rule("r", "rs_irecv(@, #Irecv, {3}, {5}, RS_HANDLE(*{6}));")
    for name, last in (("Mprobe", 3), ("Improbe", 4)):
        found = "" if name == "Mprobe" else "if (*{3}) "
        message = last if name == "Improbe" else 3
        also = f" {found}rs_probed(@, *{{{message}}}, {{2}});"
        RULES[name] = Rule("w", f"rs_on_comm(@, #{name}, {{2}});{also}")
    RULES["Mrecv"] = Rule(
        "r", "rs_recv(@, #Mrecv, rs_on, {4});", status.replace("%d", "4") + " rs_group *rs_on = rs_probed_on(*{3});"
    )
    RULES["Imrecv"] = Rule(
        "r",
        "rs_add(@, #Imrecv, (uint32_t)rs_on->size, 0, 0); rs_await(@, #Imrecv, rs_on, rs_from, RS_HANDLE(*{4}));",
        "int rs_from = *{3} == MPI_MESSAGE_NO_PROC ? MPI_PROC_NULL : 0; rs_group *rs_on = rs_probed_on(*{3});",
    )
    RULES["Sendrecv"] = Rule(
        "s",
        "rs_send(@, #Sendrecv, {1}, {2}, {3}, {4}, {10}); rs_recv_half(@, #Sendrecv_recv, {10}, {11});",
        status.replace("%d", "11"),
        (("Sendrecv_recv", "r"),),
    )
    RULES["Sendrecv_replace"] = Rule(
        "s",
        "rs_send(@, #Sendrecv_replace, {1}, {2}, {3}, {4}, {7}); rs_recv_half(@, #Sendrecv_replace_recv, {7}, {8});",
        status.replace("%d", "8"),
        (("Sendrecv_replace_recv", "r"),),
    )
    RULES["Isendrecv"] = Rule(
        "s",
        "rs_send(@, #Isendrecv, {1}, {2}, {3}, {4}, {10}); "
        "rs_await(@, #Isendrecv_recv, rs_comm({10}), {8}, RS_HANDLE(*{11}));",
        "",
        (("Isendrecv_recv", "r"),),
    )
    RULES["Isendrecv_replace"] = Rule(
        "s",
        "rs_send(@, #Isendrecv_replace, {1}, {2}, {3}, {4}, {7}); "
        "rs_await(@, #Isendrecv_replace_recv, rs_comm({7}), {5}, RS_HANDLE(*{8}));",
        "",
        (("Isendrecv_replace_recv", "r"),),
    )
    RULES["Start"] = Rule("o", "rs_plain(@, #Start); rs_start(@, RS_HANDLE(*{0}));")
    RULES["Startall"] = Rule(
        "o",
        "rs_plain(@, #Startall); "
        "for (int rs_i = 0; rs_i < {0}; rs_i++) rs_start(@, RS_HANDLE(RS_REQUEST_AT({1}, rs_i)));",
    )


def _persistent(base: str, kind: str, rank: str, size: str, comm: int, request: int) -> None:
    RULES[f"{base}_init"] = Rule(
        "o",
        f"rs_on_comm(@, #{base}_init, {{{comm}}}); "
        f"rs_persist(@, #{base}_start, '{kind}', rs_comm({{{comm}}}), {rank}, {size}, RS_HANDLE(*{{{request}}}));",
        "",
        ((f"{base}_start", kind),),
    )


_COLLECTIVES = {
    "Barrier": ("0", 0),
    "Bcast": ("RS_BYTES_ROOTED(rs_g, {3}, {1}, {2})", 4),
    "Reduce": ("RS_BYTES_TO_ROOT(rs_g, {5}, {2}, {3})", 6),
    "Allreduce": ("rs_bytes({2}, {3})", 5),
    "Scan": ("rs_bytes({2}, {3})", 5),
    "Exscan": ("rs_bytes({2}, {3})", 5),
    "Reduce_scatter": ("RS_BYTES_REDUCE_SCATTER(rs_g, {2}, {3})", 5),
    "Reduce_scatter_block": ("(uint64_t)rs_g->local * rs_bytes({2}, {3})", 5),
    "Gather": ("RS_BYTES_GATHER(rs_g, {0}, {1}, {2}, {4}, {5}, {6})", 7),
    "Gatherv": ("RS_BYTES_GATHERV(rs_g, {0}, {1}, {2}, {4}, {6}, {7})", 8),
    "Scatter": ("RS_BYTES_SCATTER(rs_g, {1}, {2}, {3}, {4}, {5}, {6})", 7),
    "Scatterv": ("RS_BYTES_SCATTERV(rs_g, {1}, {3}, {4}, {5}, {6}, {7})", 8),
    "Allgather": ("RS_BYTES_ALLGATHER(rs_g, {0}, {1}, {2}, {4}, {5})", 6),
    "Allgatherv": ("RS_BYTES_ALLGATHERV(rs_g, {0}, {1}, {2}, {4}, {6})", 7),
    "Alltoall": ("RS_BYTES_ALLTOALL(rs_g, {0}, {1}, {2}, {4}, {5})", 6),
    "Alltoallv": ("RS_BYTES_ALLTOALLV(rs_g, {0}, {1}, {3}, {5}, {7})", 8),
    "Alltoallw": ("RS_BYTES_ALLTOALLW(rs_g, {0}, {1}, {3}, {5}, {7})", 8),
}
"""Bytes of a collective and the place of its communicator."""

_NEIGHBOURS = {
    "Neighbor_allgather": ("rs_bytes({1}, {2})", 6),
    "Neighbor_allgatherv": ("rs_bytes({1}, {2})", 7),
    "Neighbor_alltoall": ("rs_bytes({1}, {2})", 6),
    "Neighbor_alltoallv": ("rs_bytes({1}[rs_i], {3})", 8),
    "Neighbor_alltoallw": ("rs_bytes({1}[rs_i], RS_TYPE_AT({3}, rs_i))", 8),
}


def _collectives() -> None:
    for base, (size, at) in _COLLECTIVES.items():
        comm = f"{{{at}}}"
        for name in (base, f"I{base.lower()}"):
            RULES[name] = Rule("c", f"rs_group *rs_g = rs_comm({comm}); rs_coll(@, #{name}, rs_g, {size});")
        RULES[f"{base}_init"] = Rule(
            "o",
            f"rs_group *rs_g = rs_comm({comm}); rs_on_comm(@, #{base}_init, {comm}); "
            f"rs_persist(@, #{base}_start, 'c', rs_g, 0, RS_NO_TAG, {size}, RS_HANDLE(*{{{at + 2}}}));",
            "",
            ((f"{base}_start", "c"),),
        )
    for base, (block, at) in _NEIGHBOURS.items():
        for name in (base, f"I{base.lower()}"):
            RULES[name] = Rule("c", f"RS_NEIGHBOURS(@, #{name}, {{{at}}}, {block});")
        RULES[f"{base}_init"] = Rule(
            "o",
            f"rs_on_comm(@, #{base}_init, {{{at}}}); "
            f"RS_NEIGHBOURS_INIT(@, #{base}_start, {{{at}}}, RS_HANDLE(*{{{at + 2}}}), {block});",
            "",
            ((f"{base}_start", "c"),),
        )


_ONE = "rs_request *rs_r = rs_recording(@) ? rs_request_find(RS_HANDLE(*{0})) : NULL; "
_MANY = (
    "rs_request *rs_few[RS_FEW], **rs_r = rs_recording(@) ? RS_FIND_ALL(rs_few, {0}, {1}) : NULL; "
    "int rs_n = {0}; (void)rs_n; "
)
_STATUS = "MPI_Status rs_status; if (rs_r != NULL && {%d} == MPI_STATUS_IGNORE) {%d} = &rs_status;"
_STATUSES = (
    "MPI_Status rs_some[RS_FEW], *rs_own = NULL; "
    "if (rs_r != NULL && {%d} == MPI_STATUSES_IGNORE && (rs_own = rs_statuses(rs_some, {0})) != NULL) {%d} = rs_own;"
)
_FREE = "if (rs_r != NULL && rs_r != rs_few) free(rs_r);"
_FREE_BOTH = _FREE + " if (rs_own != NULL && rs_own != rs_some) free(rs_own);"


def _completions() -> None:
    for name, status, done in (("Wait", 1, ""), ("Test", 2, " && *{1}")):
        RULES[name] = Rule(
            "w",
            f"rs_plain(@, #{name}); if (rs_r != NULL{done}) rs_done(@, rs_r, {{{status}}});",
            _ONE + _STATUS.replace("%d", str(status)),
        )
    for name, status, done in (("Waitall", 2, ""), ("Testall", 3, " && *{2}")):
        RULES[name] = Rule(
            "w",
            f"rs_plain(@, #{name}); if (rs_r != NULL{done} && {{{status}}} != MPI_STATUSES_IGNORE) "
            f"for (int rs_i = 0; rs_i < rs_n; rs_i++) if (rs_r[rs_i]) rs_done(@, rs_r[rs_i], &{{{status}}}[rs_i]);",
            _MANY + _STATUSES.replace("%d", str(status)),
            always=_FREE_BOTH,
        )
    for name, status, done in (("Waitany", 3, ""), ("Testany", 4, " && *{3}")):
        RULES[name] = Rule(
            "w",
            f"rs_plain(@, #{name}); if (rs_r != NULL{done} && *{{2}} >= RS_BASE && rs_r[*{{2}} - RS_BASE]) "
            f"rs_done(@, rs_r[*{{2}} - RS_BASE], {{{status}}});",
            _MANY + _STATUS.replace("%d", str(status)),
            always=_FREE,
        )
    for name in ("Waitsome", "Testsome"):
        RULES[name] = Rule(
            "w",
            f"rs_plain(@, #{name}); if (rs_r != NULL && {{4}} != MPI_STATUSES_IGNORE) "
            "for (int rs_i = 0; rs_i < *{2}; rs_i++) if (rs_r[{3}[rs_i] - RS_BASE]) "
            "rs_done(@, rs_r[{3}[rs_i] - RS_BASE], &{4}[rs_i]);",
            _MANY + _STATUSES.replace("%d", "4"),
            always=_FREE_BOTH,
        )
    RULES["Cancel"] = Rule("o", "rs_plain(@, #Cancel);", "rs_cancelled = 1;")
    RULES["Request_free"] = Rule("o", "rs_plain(@, #Request_free); if (rs_r != NULL) rs_forget_request(rs_r);", _ONE)
    for name in ("Probe", "Iprobe"):
        RULES[name] = Rule("w", f"rs_on_comm(@, #{name}, {{2}});")
    for name in ("Finalize", "Session_finalize"):  # the last is recorded when it begins: everything is written then
        RULES[name] = Rule("o", f"if (!rs_state.ended) rs_plain(@, #{name});")


def _one_sided() -> None:
    for base, kind, at in (("Put", "p", 7), ("Accumulate", "p", 8), ("Get", "g", 7)):
        for name in (base, f"R{base.lower()}"):
            RULES[name] = Rule(kind, f"rs_rma(@, #{name}, {{1}}, {{2}}, {{3}}, {{{at}}});")
    for name in ("Get_accumulate", "Rget_accumulate"):
        RULES[name] = Rule("p", f"rs_rma(@, #{name}, {{1}}, {{2}}, {{6}}, {{11}});")
    RULES["Fetch_and_op"] = Rule("p", "rs_rma(@, #Fetch_and_op, 1, {2}, {3}, {6});")
    RULES["Compare_and_swap"] = Rule("p", "rs_rma(@, #Compare_and_swap, 1, {3}, {4}, {6});")


def _files() -> None:
    status = _IGNORED_STATUS
    for way in ("read", "write"):
        for suffix, at in (("", 1), ("_all", 1), ("_shared", 1), ("_ordered", 1), ("_at", 2), ("_at_all", 2)):
            name = f"File_{way}{suffix}"
            RULES[name] = Rule(
                "i", f"rs_on_file(@, #{name}, {{0}}, rs_status_bytes({{{at + 3}}}));", status.replace("%d", str(at + 3))
            )
            if suffix != "_ordered":
                name = f"File_i{way}{suffix}"
                RULES[name] = Rule("i", f"rs_on_file(@, #{name}, {{0}}, rs_bytes({{{at + 1}}}, {{{at + 2}}}));")
            if suffix in ("_all", "_ordered", "_at_all"):
                name = f"File_{way}{suffix}_begin"
                RULES[name] = Rule("i", f"rs_on_file(@, #{name}, {{0}}, rs_bytes({{{at + 1}}}, {{{at + 2}}}));")
    RULES["File_close"] = Rule("i", "rs_plain(@, #File_close);", "rs_group_forget(RS_HANDLE(*{0}), 'f');")


_point_to_point()
_collectives()
_completions()
_one_sided()
_files()
