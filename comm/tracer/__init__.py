"""The tracer: a library of PMPI wrappers, built for the site's MPI on first use and preloaded into the program.

The wrappers are generated from the prototypes of the installed ``mpi.h`` (:mod:`.prototypes`, :mod:`.operations`,
:mod:`.wrappers`), compiled together with the C sources of this folder by the site's ``mpicc`` into a cache
(:mod:`.building`), and leave one file for a group of ranks (:mod:`.rawfile`), which :mod:`.tables` turns into tables
with the help of the symbol tables of the program's files (:mod:`.symbols`).
"""
