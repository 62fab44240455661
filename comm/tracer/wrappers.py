"""C code of the wrappers, generated from the prototypes of ``mpi.h`` and the rules of :mod:`.operations`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ranksight.comm.tracer.operations import RULES, Rule
from ranksight.comm.tracer.prototypes import Prototype

_UNTRACED = re.compile(r"^MPI_T_|_(c2f|f2c|f082c|c2f08|f082f|f2f08|toint|fromint)$")
_SPAWNS = {
    "Comm_spawn": (
        "rs_spawn_begin(&s, a5, a4, 1, (char **)&a0, &a1, &a3);",
        "r = PMPI_Comm_spawn(s.commands[0], s.arguments[0], a2, a3, a4, a5, a6, a7);",
        "rs_spawn_end(&s, r, a6);",
    ),
    "Comm_spawn_multiple": (
        "rs_spawn_begin(&s, a6, a5, a0, a1, a2, a4);",
        "r = PMPI_Comm_spawn_multiple(a0, s.commands, s.arguments, a3, a4, a5, a6, a7, a8);",
        "rs_spawn_end(&s, r, a7);",
    ),
}
"""The calls of functions that start processes: their commands load the tracer, too."""
SMALL = "#define RS_SMALL"
"""Begins a source of wrappers that are built fast and run some nanoseconds slower."""


def operation_name(function: str) -> str:
    """Name under which a function is recorded: without ``MPI_`` and without the ``_c`` of large counts."""
    return re.sub(r"_c$", "", function.removeprefix("MPI_"))


def wrapped(prototypes: Mapping[str, Prototype]) -> list[Prototype]:
    """The functions that are wrapped: those that return an error code, but for the tools interface and conversions."""
    return [
        function for name, function in prototypes.items() if function.result == "int" and _UNTRACED.search(name) is None
    ]


def rule_of(function: Prototype) -> Rule:
    """The rule of a function; without one of its own it is timed, with the size of the communicator it names."""
    name = operation_name(function.name)
    if name in RULES:
        return RULES[name]
    hooks = {
        "MPI_Comm": ("o", "rs_on_comm(@, #%s, {%d});"),
        "MPI_Win": ("o", "rs_on_win(@, #%s, {%d});"),
        "MPI_File": ("i", "rs_on_file(@, #%s, {%d}, 0);"),
    }
    for index, parameter in enumerate(function.parameters):
        if parameter.bare in hooks:
            kind, hook = hooks[parameter.bare]
            return Rule(kind, hook % (name, index))
    return Rule("o", f"rs_plain(@, #{name});")


def operations(functions: list[Prototype]) -> dict[str, str]:
    """All operations that the functions are recorded as: name and kind, in the order of their numbers."""
    found: dict[str, str] = {}
    for function in functions:
        rule = rule_of(function)
        found.setdefault(operation_name(function.name), rule.kind)
        for name, kind in rule.also:
            found.setdefault(name, kind)
    return found


def fill(code: str, numbers: Mapping[str, int]) -> str:
    """A rule's code with the call, the numbers of operations and the arguments ``a0``, ``a1``, ... put in."""
    code = re.sub(r"#(\w+)", lambda match: str(numbers[match[1]]), code)
    return re.sub(r"\{(\d+)\}", r"a\1", code).replace("@", "&c")


def wrapper(function: Prototype, numbers: Mapping[str, int]) -> str:
    """The wrapper of one function for C."""
    rule, name = rule_of(function), operation_name(function.name)
    declared = ", ".join(parameter.declare(f"a{i}") for i, parameter in enumerate(function.parameters)) or "void"
    passed = ", ".join(f"a{i}" for i in range(len(function.parameters)))
    call = f"P{function.name}({passed})"
    if name in ("Init", "Init_thread"):
        lines = [
            "rs_call c = {.pc = RS_PC};",
            "int r, provided = 0;",
            "rs_before_init();",
            f"r = {call};",
            "if (r == MPI_SUCCESS) PMPI_Query_thread(&provided);",
            "rs_after_init(&c, r, provided);",
            "return r;",
        ]
    elif name == "Session_init":
        lines = [
            "rs_call c;",
            "MPI_Group world = MPI_GROUP_NULL;",
            "int r, first = rs_before_session();",
            "rs_enter(&c, RS_PC);",
            f"r = {call};",
            f"if (rs_leave(&c)) rs_plain(&c, {numbers[name]});",
            "c.pc = RS_PC;",
            'if (r == MPI_SUCCESS && PMPI_Group_from_session_pset(*a2, "mpi://WORLD", &world) != MPI_SUCCESS)',
            "    world = MPI_GROUP_NULL;",
            "rs_after_session(&c, first, world);",
            "return r;",
        ]
    elif name in _SPAWNS:
        lines = [
            "rs_call c;",
            "rs_spawn s;",
            "int r;",
            "rs_enter(&c, RS_PC);",
            *_SPAWNS[name],
            f"if (rs_leave(&c)) {{ if (r == MPI_SUCCESS) {{ {fill(rule.after, numbers)} }}",
            f"else rs_failed(&c, {numbers[name]}); }}",
            "return r;",
        ]
    else:
        lines = [
            "rs_call c;",
            "int r;",
            "rs_enter(&c, RS_PC);",
            fill(rule.before, numbers),
            f"r = {call};",
            "if (rs_leave(&c)) {",
            f"    if (RS_LIKELY(r == MPI_SUCCESS)) {{ {fill(rule.after, numbers)} }}",
            f"    else rs_failed(&c, {numbers[name]});",
            "}",
            fill(rule.always, numbers),
            "return r;",
        ]
    text = "".join(f"    {line}\n" for line in lines if line.strip())
    return f"RS_EXPORT int {function.name}({declared})\n{{\n{text}}}\n"


def generate(functions: list[Prototype], numbers: Mapping[str, int], kinds: Mapping[str, str], hot: bool = True) -> str:
    """The C source of the wrappers for C.

    Parameters
    ----------
    numbers : mapping of str to int
        Of all operations.
    kinds : mapping of str to str
        All operations and their kinds; with none the list of operations is left to another part of the source.
    hot : bool
        Whether inner loops call them: others call what the hot ones inline, as building takes time.
    """
    text = "".join(f"{name}\\t{kind}\\n" for name, kind in kinds.items())
    operations = [
        f'const char rs_operations[] = "{text}";',
        "const unsigned rs_operations_length = sizeof rs_operations - 1;",
        f"const unsigned rs_init_operation = {numbers['Init']};",
        f"const unsigned rs_session_operation = {numbers.get('Session_init', 0)};\n",
    ]
    parts = [
        *(() if hot else (SMALL,)),
        '#include "hooks.h"\n',
        *(operations if kinds else ()),
        *(wrapper(each, numbers) for each in functions),
    ]
    return "\n".join(parts)
