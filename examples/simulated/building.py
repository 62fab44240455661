"""A program with the tracer linked in, for SimGrid's SMPI: ranks are simulated, and times are the simulator's.

SMPI (``smpicc``, ``smpirun``) runs all ranks of a program in one process on a described platform, 1,000 and more.
Nothing can be preloaded there, so the tracer becomes part of the program; what it leaves is read as any other trace
(``ranksight import pmpi FOLDER``). Run with ``--cfg=smpi/keep-temps:yes`` where kernels are to have names, since SMPI
runs copies of the program that it deletes.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ranksight.comm.tracer import wrappers
from ranksight.comm.tracer.building import compiler
from ranksight.comm.tracer.prototypes import parse
from ranksight.core.errors import ToolError

ELSEWHERE = ("fortran", "loading")
"""Sources of the tracer for programs that the simulator does not run: in Fortran, and with an MPI loaded late."""
FLAGS = ("-std=gnu11", "-w", "-DRS_SIMULATED", "-Wl,-Bsymbolic")
"""The last binds the program's calls to the tracer's functions, which then call the simulator's."""


def build_simulated(
    sources: Sequence[Path], output: Path, flags: Sequence[str] = ("-O2", "-g"), smpicc: str = "smpicc"
) -> Path:
    """Compile a C program for SMPI with the tracer in it.

    Parameters
    ----------
    sources : sequence of Path
        The program's.
    output : Path
    flags : sequence of str
        The program's options, such as ``-lm`` and ``-include FILE``.
    smpicc : str
        SMPI's compiler wrapper.

    Raises
    ------
    ToolError
        When there is no such wrapper, or it does not compile the program.
    """
    using = compiler(smpicc)
    functions = wrappers.wrapped(parse(using.header))
    kinds = wrappers.operations(functions)
    numbers = {name: number for number, name in enumerate(kinds)}
    here = Path(wrappers.__file__).parent
    with tempfile.TemporaryDirectory(prefix="ranksight-simulated-") as folder:
        objects = []
        generated = Path(folder) / "wrappers.c"
        generated.write_text(wrappers.generate(functions, numbers, kinds))
        # Apart from the program: its options, an -include among them, are not the tracer's.
        for source in (generated, *(path for path in sorted(here.glob("*.c")) if path.stem not in ELSEWHERE)):
            objects.append(str(Path(folder) / f"{source.stem}.o"))
            _run([using.path, "-O2", *FLAGS[:-1], f"-I{here}", "-c", "-o", objects[-1], str(source)])
        _run([using.path, *FLAGS[-1:], "-o", str(output), *map(str, sources), *objects, *flags])
    return output


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()[-1:]
        raise ToolError(f"{command[0]} does not compile the traced program: {' | '.join(lines[:2])[:300]}")
