"""C code of the wrappers for Fortran: ``mpif.h``, ``use mpi`` and ``use mpi_f08``.

Open MPI's Fortran bindings call ``PMPI_`` functions, so wrappers of C see nothing of a Fortran program; MPICH's call
the functions of C for most, and ``PMPI_`` for what has no buffer. The Fortran functions themselves are therefore
wrapped: all arguments are addresses, handles are integers, the error code comes last, then lengths of strings.
``mpi_f08`` has the same arguments under ``mpi_x_f08_``, its error code may be absent; MPICH's ``mpi_x_f08ts_`` pass
buffers by descriptor and call C, so these only note the call site.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ranksight.comm.tracer.prototypes import Parameter, Prototype
from ranksight.comm.tracer.wrappers import SMALL, fill, operation_name, rule_of

_HANDLES = {
    "MPI_Comm": "Comm",
    "MPI_Datatype": "Type",
    "MPI_Win": "Win",
    "MPI_File": "File",
    "MPI_Op": "Op",
    "MPI_Group": "Group",
    "MPI_Info": "Info",
    "MPI_Request": "Request",
    "MPI_Message": "Message",
    "MPI_Errhandler": "Errhandler",
}
_SPAWN = (
    "rs_fortran_spawn s;",
    "rs_fortran_spawn_begin(&s, f0, n0, f1, n1, f3, f4, f5);",
    "real(s.command, s.arguments, f2, f3, f4, f5, f6, f7, ierr, s.command_length, s.length);",
    "rs_fortran_spawn_end(&s, *ierr, f6);",
)
"""The call of MPI_Comm_spawn: its command loads the tracer, too."""
_NUMBERS = {"int", "MPI_Aint", "MPI_Count", "MPI_Offset"}


def _value(parameter: Parameter, index: int, code: str) -> str:
    """Declaration of ``a<index>``, the argument as C would have it, from the address ``f<index>``."""
    bare, name, address = parameter.bare, f"a{index}", f"f{index}"
    if bare in _HANDLES:
        return f"{bare} {name} = PMPI_{_HANDLES[bare]}_f2c(*(MPI_Fint *){address});"
    if bare in _NUMBERS:
        return f"{bare} {name} = *({bare} *){address};"
    if bare == "void*":
        return f"void *{name} = rs_fortran_buffer({address});"
    handle = bare.removesuffix("*")
    if handle in _HANDLES and f"*{{{index}}}" in code:
        return f"{handle} h{index} = PMPI_{_HANDLES[handle]}_f2c(*(MPI_Fint *){address}), *{name} = &h{index};"
    return f"{bare} {name} = ({bare}){address};"


def _used(code: str) -> set[int]:
    return {int(number) for number in re.findall(r"\{(\d+)\}", code)}


def body(function: Prototype, numbers: Mapping[str, int]) -> str:
    """What the wrappers of a function do; arguments are ``f0``, ``f1``, ... and ``ierr``."""
    rule, name = rule_of(function), operation_name(function.name)
    many = name in ("Waitall", "Testall", "Waitsome", "Testsome")
    count, ignored = ("a0", "MPI_STATUSES_IGNORE") if many else ("1", "MPI_STATUS_IGNORE")
    before, after = _used(rule.before), _used(rule.after)
    early, late, statuses = list[str](), list[str](), list[int]()
    for index in sorted(before | after):
        parameter = function.parameters[index]
        if parameter.bare == "MPI_Status*":
            statuses.append(index)
            early.append(f"rs_fstatus s{index};")
            ignores = f"rs_recording(&c) && rs_is_ignored(f{index})"
            early.append(f"MPI_Status *a{index} = {ignores} ? {ignored} : (MPI_Status *)f{index};")
        else:
            target = early if index in before else late
            target.append(_value(parameter, index, rule.before + rule.after))
    arguments = ", ".join([*(f"f{index}" for index in range(len(function.parameters))), "ierr"])
    lengths = ", ".join(f"n{index}" for index, p in enumerate(function.parameters) if p.bare.startswith("char"))
    passed = f"{arguments}, {lengths}" if lengths else arguments
    lines = [
        "rs_call c;",
        "MPI_Fint own_ierr = 0;",
        "if (ierr == NULL) ierr = &own_ierr;",
        "rs_enter(&c, pc);",
        *early,
        fill(rule.before, numbers),
        *(f"f{i} = rs_status_begin(&s{i}, f{i}, a{i}, {ignored}, {count});" for i in statuses),
        *(_SPAWN if name == "Comm_spawn" else (f"real({passed});",)),
        "if (rs_leave(&c)) {",
        "if (RS_LIKELY(*ierr == MPI_SUCCESS)) {",
        *late,
        *(f"a{i} = rs_status_end(&s{i}, f{i}, {ignored}, {count});" for i in statuses),
        fill(rule.after, numbers),
        f"}} else rs_failed(&c, {numbers[name]}); }}",
        *(f"rs_status_free(&s{i});" for i in statuses),
        fill(rule.always, numbers),
    ]
    return "".join(f"    {line}\n" for line in lines if line.strip())


def signature(function: Prototype, named: bool = True) -> str:
    """Parameters of the Fortran function: addresses, the error code, lengths of strings."""
    addresses = [f"void *{f'f{index}' if named else ''}" for index in range(len(function.parameters))]
    lengths = [
        f"size_t {f'n{index}' if named else ''}"
        for index, p in enumerate(function.parameters)
        if p.bare.startswith("char")
    ]
    return ", ".join([*addresses, f"MPI_Fint *{'ierr' if named else ''}", *lengths])


def _beginning(function: Prototype, name: str, real: str) -> str:
    """MPI_Init and MPI_Init_thread: Fortran's take no command line."""
    threads = function.name.endswith("_thread")
    declared = "void *f0, void *f1, MPI_Fint *ierr" if threads else "MPI_Fint *ierr"
    passed = "f0, f1, ierr" if threads else "ierr"
    return f"""RS_EXPORT void {name}({declared})
{{
    rs_call c = {{.pc = RS_PC}};
    int provided = 0;
    MPI_Fint own_ierr = 0;
    void (*real)({declared});
    *(void **)&real = rs_real("{real}");
    if (ierr == NULL) ierr = &own_ierr;
    rs_before_init();
    real({passed});
    if (*ierr == MPI_SUCCESS) PMPI_Query_thread(&provided);
    rs_after_init(&c, *ierr, provided);
}}
"""


def _forward(function: Prototype, name: str) -> str:
    """One name of a function: finds what it hides, and does what all its names do."""
    arguments = [f"f{index}" for index in range(len(function.parameters))]
    lengths = [f"n{index}" for index, p in enumerate(function.parameters) if p.bare.startswith("char")]
    base = "rs_f08_base()" if name.endswith("_f08_") and "RS_BASE" in rule_of(function).after else "1"
    return f"""RS_EXPORT void {name}({signature(function)})
{{
    static void (*real)({signature(function, named=False)});
    if (RS_UNLIKELY(real == NULL)) *(void **)&real = rs_real("{name}");
    {_common(function)}(real, RS_PC, {base}, {", ".join([*arguments, "ierr", *lengths])});
}}
"""


def wrapper(function: Prototype, numbers: Mapping[str, int]) -> str:
    """The wrappers of one function for the three Fortran interfaces."""
    lower, name = function.name.lower(), function.name
    names = (f"{lower}_", f"{lower}_f08_")
    if operation_name(name) in ("Init", "Init_thread"):
        declared = "MPI_Fint *ierr" if name == "MPI_Init" else "void *f0, void *f1, MPI_Fint *ierr"
        parts = [_beginning(function, each, each) for each in names]
    else:
        declared = signature(function)
        head = f"void (*real)({signature(function, named=False)}), uint64_t pc, int base, {declared}"
        parts = [
            f"static __attribute__((noinline)) void {_common(function)}({head})\n{{\n{body(function, numbers)}}}\n"
        ]
        parts += [_forward(function, each) for each in names]
    for alias in (lower, f"{lower}__", lower.upper()):
        parts.append(f'RS_EXPORT void {alias}({declared}) __attribute__((alias("{lower}_")));\n')
    if any(parameter.bare == "void*" for parameter in function.parameters):
        parts += [_by_descriptor(function, f"{lower}_f08ts{suffix}_") for suffix in ("", "_large")]
    return "".join(parts)


def _common(function: Prototype) -> str:
    """What all names of a function call; not a name of the standard, whatever it may add."""
    return f"rs_any_{operation_name(function.name)}"


def _by_descriptor(function: Prototype, name: str) -> str:
    passed = ", ".join([*(f"f{index}" for index in range(len(function.parameters))), "ierr"])
    declared = ", ".join([*(f"void *f{index}" for index in range(len(function.parameters))), "void *ierr"])
    return f"""RS_EXPORT void {name}({declared})
{{
    static void (*real)({declared});
    rs_thread *t = rs_self;
    if (RS_UNLIKELY(real == NULL)) *(void **)&real = rs_real("{name}");
    if (t != NULL && t->depth == 0) t->outer = RS_PC;
    real({passed});
    if (t != NULL) t->outer = rs_state.outer;
}}
"""


def generate(functions: list[Prototype], numbers: Mapping[str, int]) -> str:
    """The C source of the wrappers for Fortran; functions of large counts have no name of their own there.

    They are twice the code of C for calls that do more anyway: nothing is inlined, as building is what takes time here.
    """
    chosen = [function for function in functions if not function.name.endswith("_c")]
    return f'{SMALL}\n#include "fortran.h"\n\n' + "\n".join(wrapper(function, numbers) for function in chosen)
