"""Run a program over configurations and repetitions, and collect counters, messages and time.

The command follows '--' and has its parameters in braces; every parameter is an option with a list of values:

  ranksight measure --ranks 1,2,4,8 --size 32,48 --reps 3 -o heat.exp \\
      -- mpirun -n {ranks} ./heat --n {size}

Each configuration is run once for every collector and repetition (a deterministic collector once). A campaign that was
cut off continues when the same command is given again. A collector that starts the program is inserted before it, at a
place found from the launcher's options; write {wrap} there if it is not found. A program that needs its process grid
as options takes it from {grid3.x} {grid3.y} {grid3.z} or {grid2.x} {grid2.y}, the ranks as MPI_Dims_create factors
them, the longest side first; {size*grid3.x} is a product:

  ranksight measure --ranks 1,2,4,8 -o md.exp \\
      -- mpirun -n {ranks} ./md -i {grid3.x} -j {grid3.y} -k {grid3.z}

--platform names the machine whose caches callgrind simulates and whose events perf counts: one that ships with the
project, or a file of 'ranksight calibrate'. --refine KERNEL splits a large kernel into its loops (by callgrind; perf's
samples are assigned to the same loops) or, without callgrind, into source lines; build with -g.

A case that has to be prepared, and a program that writes where it runs, get a folder of their own: --workdir CASE is
copied for each run, and --prepare COMMAND is run once per configuration in a copy, outside the measurement. --at RANKS
COMMAND gives the command for numbers of ranks at which it differs. All of them know the parameters:

  ranksight measure --ranks 1,2,4 --workdir cavity \\
      --prepare './prepare {ranks}' --at 1 icoFoam -o cavity.exp \\
      -- mpirun -n {ranks} icoFoam -parallel

A program that reads its standard input gets a file with '<' in quotation marks, whose name may have parameters:

  ranksight measure --ranks 1,2,4 --size 16,24 -o solver.exp \\
      -- mpirun -n {ranks} ./solver '<' input.{size}

callgrind runs the program once natively and simulates only as much as stands for the whole by what repeats between MPI
calls, weighted by how often it does; the notes of a run say which share. --sample N counts N occurrences of each
stretch between two calls, --sample off simulates everything. Programs that do not repeat are simulated in full.

--distant adds a smaller workload to an experiment of 'ranksight phases': it is run at growing numbers of ranks until
its cycles per instruction stop falling, and then represents the original workload on many ranks.

--emit slurm (pbs, flux) writes the campaign as job scripts: one job a number of ranks, one task a configuration, and a
last job that joins their parts. --submit slurm submits and follows them; the same line again measures what is missing.
"""

from ranksight.cli.options import grouped, of_jobs

USAGE = "ranksight measure --ranks LIST [--PARAMETER LIST ...] [options] -o FOLDER\n           -- COMMAND"
OPTIONS = {
    "--output": {"short": "-o", "type": "path", "metavar": "FOLDER", "help": "folder of the experiment"},
    "--reps": {
        "type": "int",
        "default": 1,
        "metavar": "N",
        "help": "repetitions of measurements that are not deterministic (default: 1)",
    },
    "--repetition": {
        "type": "int",
        "metavar": "N",
        "help": "make this repetition only, from 0, as a job of its own does; deterministic measurements belong to 0",
    },
    "--collector": {
        "repeat": "lists",
        "metavar": "NAME[,NAME]",
        "help": "collectors to use (default: all that work here)",
    },
    "--list-collectors": {
        "action": "store_true",
        "help": "list the collectors and why some do not work here, and exit",
    },
    "--platform": {
        "metavar": "NAME|FILE",
        "help": (
            "machine, by name or file: its caches are simulated, its events counted (default: generic caches, this "
            "processor's events)"
        ),
    },
    "--refine": {"repeat": "values", "metavar": "KERNEL", "help": "split this kernel into loops or source lines"},
    "--sample": {
        "type": "sample",
        "metavar": "auto|off|N",
        "help": (
            "simulate N occurrences of what repeats between MPI calls, as few as stand for the whole (auto, the "
            "default), or all (off)"
        ),
    },
    "--sample-ranks": {
        "choices": ("auto", "off"),
        "default": "off",
        "help": (
            "simulate two ranks of each class of ranks that make the same calls, for the others too (auto), or all "
            "(off, the default)"
        ),
    },
    "--workdir": {"type": "path", "metavar": "FOLDER", "help": "run each time in a fresh copy of this folder"},
    "--prepare": {
        "type": "command",
        "default": [],
        "metavar": "COMMAND",
        "help": "command that prepares a configuration, not measured, in a copy of --workdir or an empty folder",
    },
    "--at": {
        "action": "append",
        "nargs": 2,
        "default": [],
        "metavar": ("RANKS", "COMMAND"),
        "help": "run COMMAND instead at these numbers of ranks; may be repeated",
    },
    "--application": {"metavar": "NAME", "help": "name of the program in tables"},
    "--timeout": {"type": "float", "metavar": "S", "help": "end runs that take longer, in seconds"},
    "--distant": {
        "action": "store_true",
        "help": "run a smaller workload at growing numbers of ranks until its cycles per instruction stop falling",
    },
    "--quiet": {"action": "store_true", "help": "print no progress"},
    "--format": {"choices": ("table", "json"), "default": "table", "help": "format of the summary (default: table)"},
    "--emit": {
        "group": "batch systems",
        "metavar": "NAME",
        "help": "write job scripts for slurm, pbs or flux; nothing is run",
    },
    "--submit": {
        "group": "batch systems",
        "metavar": "NAME",
        "help": "write job scripts, submit them and follow the jobs (slurm)",
    },
    **grouped("batch systems", of_jobs.OPTIONS),
}
