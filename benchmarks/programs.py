"""Programs of other people, with the inputs that make them small: what each needs, how it is prepared and started.

Every input is written from here; nothing is downloaded, and nothing installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

MPIRUN = ("mpirun.openmpi", "--oversubscribe", "-n", "{ranks}")
FOAM = Path("/usr/share/openfoam")
COLLECTED = ("callgrind", "pmpi", "perf-clock")


@lru_cache(maxsize=8)
def interpreter(module: str) -> str | None:
    """Path of a Python that has `module`: this one, or one of the distribution; None where none has it."""
    for path in dict.fromkeys((sys.executable, shutil.which("python3") or "", "/usr/bin/python3")):
        if path and subprocess.run([path, "-c", f"import {module}"], capture_output=True).returncode == 0:
            return path
    return None


@dataclass(frozen=True)
class Program:
    """A program with a case.

    Attributes
    ----------
    name, language : str
    needs : tuple of str
        Executables; without one of them it is skipped.
    command : tuple of str
        What is run behind the launcher, with ``{size}``.
    sizes : tuple of int
        Those measured, and the larger one that is predicted, last.
    files : mapping of str to str
        The case: texts by path; executable where they begin with ``#!``.
    prepare : str
        Command of ``--prepare``.
    alone : str
        Command on one rank, where it differs.
    module : str
        Python module that it needs.
    environment : mapping of str to str
    known : str
        What of it is no smooth function of ranks and size.
    most : int
        Ranks beyond which the case is too small to run.
    """

    name: str
    language: str
    needs: tuple[str, ...]
    command: tuple[str, ...]
    sizes: tuple[int, ...]
    files: Mapping[str, str]
    prepare: str = ""
    alone: str = ""
    module: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    known: str = ""
    most: int = 32

    def missing(self) -> str:
        """What it needs and is not here; empty where all is."""
        found = [name for name in (MPIRUN[0], *self.needs) if shutil.which(name) is None]
        if self.module and interpreter(self.module) is None:
            found.append(f"Python's {self.module}")
        return ", ".join(found)

    def write(self, folder: Path) -> Path:
        """Write the case below `folder`, and return its path."""
        place = folder / f"{self.name}.case"
        for name, text in self.files.items():
            file = place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.is_file() or file.read_text(encoding="utf-8") != text:
                file.write_text(text, encoding="utf-8")
            if text.startswith("#!"):
                file.chmod(0o755)
        return place

    def measure(
        self,
        ranks: tuple[int, ...],
        sizes: tuple[int, ...],
        case: Path,
        output: Path,
        collected: tuple[str, ...] = COLLECTED,
    ) -> list[str]:
        """The words of ``ranksight measure``."""
        words = ["measure", "--ranks", ",".join(map(str, ranks)), "--size", ",".join(map(str, sizes))]
        collectors = [word for name in collected for word in ("--collector", name)]
        words += [*collectors, "--workdir", str(case)]
        if self.prepare:
            words += ["--prepare", self.prepare]
        if self.alone:
            words += ["--at", "1", self.alone]
        return [*words, "-o", str(output), "--quiet", "--", *MPIRUN, *self.command]


_LAMMPS = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 ${n} 0 ${n} 0 ${n}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 10 delay 0 check no
fix 1 all nve
thermo 10
run 40
"""

_GROMACS = """integrator = md
dt = 0.0001
nsteps = 20
nstlist = 10
cutoff-scheme = Verlet
rlist = 0.9
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
fourier-nx = 32
fourier-ny = 32
fourier-nz = 32
gen-vel = yes
gen-temp = 10
gen-seed = 7
"""
_WATER = """#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
water
[ molecules ]
"""
_PREPARE_GROMACS = """#!/bin/sh -e
edge=$(echo "$1" | sed 's/.$/.&/')
gmx solvate -cs spc216.gro -box "$edge" "$edge" "$edge" -p topol.top -o conf.gro
gmx grompp -f md.mdp -c conf.gro -p topol.top -o topol.tpr -maxwarn 5
"""

_HEAD = "FoamFile { version 2.0; format ascii; class dictionary; object x; }\n"
_FOAM = {
    "system/blockMeshDict": _HEAD
    + """scale 0.1;
vertices ((0 0 0) (1 0 0) (1 1 0) (0 1 0) (0 0 0.1) (1 0 0.1) (1 1 0.1) (0 1 0.1));
blocks (hex (0 1 2 3 4 5 6 7) (SIZE SIZE 1) simpleGrading (1 1 1));
edges ();
boundary
(
    movingWall { type wall; faces ((3 7 6 2)); }
    fixedWalls { type wall; faces ((0 4 7 3) (2 6 5 1) (1 5 4 0)); }
    frontAndBack { type empty; faces ((0 3 2 1) (4 5 6 7)); }
);
""",
    "system/decomposeParDict": _HEAD
    + "numberOfSubdomains RANKS;\nmethod simple;\nsimpleCoeffs { n GRID; delta 0.001; }\n",
    "system/controlDict": _HEAD
    + """application icoFoam;
startFrom startTime; startTime 0; stopAt endTime; endTime 0.005; deltaT 0.001;
writeControl timeStep; writeInterval 1000; writeFormat ascii; runTimeModifiable false;
""",
    "system/fvSchemes": _HEAD
    + """ddtSchemes { default Euler; }
gradSchemes { default Gauss linear; }
divSchemes { default none; div(phi,U) Gauss linear; }
laplacianSchemes { default Gauss linear orthogonal; }
interpolationSchemes { default linear; }
snGradSchemes { default orthogonal; }
""",
    "system/fvSolution": _HEAD
    + """solvers
{
    p { solver PCG; preconditioner DIC; tolerance 0; relTol 0; minIter 20; maxIter 20; }
    pFinal { $p; }
    U { solver smoothSolver; smoother symGaussSeidel; tolerance 0; relTol 0; nSweeps 1; minIter 4; maxIter 4; }
}
PISO { nCorrectors 2; nNonOrthogonalCorrectors 0; pRefCell 0; pRefValue 0; }
""",
    "constant/transportProperties": _HEAD + "nu 0.01;\n",
    "0/p": _HEAD.replace("dictionary", "volScalarField")
    + """dimensions [0 2 -2 0 0 0 0];
internalField uniform 0;
boundaryField
{
    movingWall { type zeroGradient; }
    fixedWalls { type zeroGradient; }
    frontAndBack { type empty; }
}
""",
    "0/U": _HEAD.replace("dictionary", "volVectorField")
    + """dimensions [0 1 -1 0 0 0 0];
internalField uniform (0 0 0);
boundaryField
{
    movingWall { type fixedValue; value uniform (1 0 0); }
    fixedWalls { type noSlip; }
    frontAndBack { type empty; }
}
""",
    "prepare": """#!/bin/sh -e
sed -i "s/SIZE/$2/g" system/blockMeshDict
sed -i "s/RANKS/$1/; s/GRID/($3 $4 1)/" system/decomposeParDict
blockMesh
if [ "$1" -gt 1 ]; then decomposePar; fi
""",
}

_SILICON = """&input
 title='Si', zed=14., rel=0, config='[Ne] 3s2 3p2 3d-2', iswitch=3, dft='PZ'
/
&inputp
 pseudotype=1, tm=.true., lloc=2, file_pseudopw='Si.UPF', author='benchmark'
/
3
3S 1 0 2.00 0.00 1.8 1.8
3P 2 1 2.00 0.00 1.8 1.8
3D 3 2 -2.00 0.15 1.8 1.8
"""
_PW = """&control
 calculation='scf', prefix='si', pseudo_dir='.', outdir='./out', disk_io='none', verbosity='low'
/
&system
 ibrav=2, celldm(1)=10.26, nat=2, ntyp=1, ecutwfc=SIZE
/
&electrons
 electron_maxstep=3, scf_must_converge=.false., diagonalization='cg'
/
ATOMIC_SPECIES
 Si 28.086 Si.UPF
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.25 0.25 0.25
K_POINTS gamma
"""

_HPCC = """HPLinpack benchmark input file
written by the benchmark
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
SIZE         Ns
1            # of NBs
16           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
ROWS         Ps
COLUMNS      Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""

_PYTHON = '''"""Jacobi sweeps over strips of a square, with halos and a sum; in plain Python and mpi4py."""

import sys

from mpi4py import MPI


def sweep(rows):
    """One sweep over the inner rows; the largest change."""
    new, change = [rows[0]], 0.0
    for above, row, below in zip(rows, rows[1:], rows[2:]):
        values = [row[0]]
        for at in range(1, len(row) - 1):
            values.append(0.25 * (above[at] + below[at] + row[at - 1] + row[at + 1]))
            change = max(change, abs(values[-1] - row[at]))
        new.append(values + [row[-1]])
    return [*new, rows[-1]], change


def exchange(world, rows):
    """Halo rows of both neighbours."""
    up = world.rank - 1 if world.rank else MPI.PROC_NULL
    down = world.rank + 1 if world.rank + 1 < world.size else MPI.PROC_NULL
    first = world.sendrecv(rows[1], dest=up, source=down)
    last = world.sendrecv(rows[-2], dest=down, source=up)
    return [rows[0] if last is None else last, *rows[1:-1], rows[-1] if first is None else first]


def main():
    """Ten sweeps."""
    world, size = MPI.COMM_WORLD, int(sys.argv[1])
    mine = size // world.size + (world.rank < size % world.size)
    rows = [[float(world.rank == 0)] * size, *([0.0] * size for _ in range(mine)), [0.0] * size]
    for _ in range(10):
        rows, change = sweep(exchange(world, rows))
        change = world.allreduce(change, MPI.MAX)
    if world.rank == 0:
        print(change)


main()
'''

PROGRAMS = (
    Program("lammps", "C++", ("lmp",), ("lmp", "-in", "in.melt", "-log", "none", "-var", "n", "{size}"), (6, 8, 10, 14),
            {"in.melt": _LAMMPS}, known="how many atoms change their rank (`exchange`) follows from chaotic motion"),
    Program("openfoam", "C++", ("icoFoam", "blockMesh", "decomposePar"), ("icoFoam", "-parallel"), (16, 24, 32, 48),
            _FOAM, "./prepare {ranks} {size} {grid2.x} {grid2.y}", "icoFoam",
            environment={"WM_PROJECT_DIR": os.environ.get("WM_PROJECT_DIR", str(FOAM))}),
    Program("quantum-espresso", "Fortran", ("pw.x", "ld1.x"), ("pw.x", "-ndiag", "1", "-in", "pw.in"), (10, 14, 18, 26),
            {"ld1.in": _SILICON, "pw.in": _PW,
             "prepare": "#!/bin/sh -e\nld1.x < ld1.in > ld1.out\nsed -i \"s/SIZE/$1/\" pw.in\n"}, "./prepare {size}",
            known="grids of the Fourier transform take sizes of small primes, whose codelets differ from size to size; "
            "its case is too small for 32 ranks", most=16),
    Program("hpcc", "C", ("hpcc",), ("hpcc",), (32, 48, 64, 96),
            {"hpccinf.txt": _HPCC,
             "prepare": "#!/bin/sh -e\nsed -i \"s/SIZE/$1/; s/ROWS/$3/; s/COLUMNS/$2/\" hpccinf.txt\n"},
            "./prepare {size} {grid2.x} {grid2.y}",
            known="FFT and RandomAccess take the largest power of two that fits and draw partners at random, the "
            "latency test repeats by the clock, and Linpack has two to six blocks in a row"),
    Program("mpi4py", "Python", (), (interpreter("mpi4py") or sys.executable, "heat.py", "{size}"), (32, 48, 64, 96),
            {"heat.py": _PYTHON}, module="mpi4py", environment={"PYTHONHASHSEED": "0"},
            known="mpi4py sends its reductions of objects along binomial trees, which numbers of ranks that are no "
            "powers of two show"),
    Program("gromacs", "C++", ("gmx", "gmx_mpi"),
            ("gmx_mpi", "mdrun", "-s", "topol.tpr", "-ntomp", "1", "-npme", "0", "-dlb", "no", "-notunepme",
             "-noconfout", "-nb", "cpu", "-pin", "off"), (24, 27, 30, 36),
            {"md.mdp": _GROMACS, "topol.top": _WATER, "prepare": _PREPARE_GROMACS}, "./prepare {size}",
            environment={"GMX_MAXBACKUP": "-1"},
            known="up to 8 ranks it cuts the box in slabs, beyond along two sides, so that the transform, the "
            "redistribution of charges and the exchanges change their kind at 16"),
)  # fmt: skip
"""All of them; the last of the sizes is not measured before it is predicted."""
