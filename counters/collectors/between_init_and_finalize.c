/*
 * Preloaded under callgrind: simulates from the return of MPI_Init to the call of MPI_Finalize only.
 *
 * Starting an MPI library executes some hundred million instructions once, most of them in code that runs but once, which
 * a simulator translates at great cost; none of it belongs to a kernel of the application. The prototypes need no
 * mpi.h: C's MPI_Init, MPI_Init_thread and MPI_Finalize take ints and pointers alone, Fortran's pointers alone.
 *
 * A program that was started by itself may never initialise MPI, as solvers that run serially on one rank. With
 * RANKSIGHT_FROM_START it is simulated from when its libraries are loaded; if it does initialise MPI, what came before is
 * forgotten.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

typedef void (*function)(void);

/* The library of MPI may be known to the extension of an interpreter alone that called: it is then looked up from there. */
static function next_for(const char *name, void *caller) {
    function found = (function)dlsym(RTLD_NEXT, name);
    Dl_info from;
    if (found == NULL && dladdr(caller, &from) != 0) {
        void *library = dlopen(from.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        found = library == NULL ? NULL : (function)dlsym(library, name);
    }
    if (found == NULL) {
        fprintf(stderr, "ranksight: the MPI library has no %s\n", name);
        abort();
    }
    return found;
}

#define next(name) next_for(name, __builtin_return_address(0))

/* What else is in the same library may need to know (signature.c). */
__attribute__((weak, visibility("hidden"))) void ranksight_begins(void);
__attribute__((weak, visibility("hidden"))) void ranksight_ends(void);

/* A Fortran binding may call C's: the count nests. */
static int depth;

static int from_start;

__attribute__((constructor)) static void load(void) {
    from_start = getenv("RANKSIGHT_FROM_START") != NULL;
    if (from_start) CALLGRIND_START_INSTRUMENTATION;
}

static void begin(void) {
    if (depth++ == 0 && from_start) {
        CALLGRIND_STOP_INSTRUMENTATION;
        CALLGRIND_ZERO_STATS;
    }
}

static void end(void) {
    if (--depth != 0) return;
    if (ranksight_begins) ranksight_begins();
    CALLGRIND_START_INSTRUMENTATION;
}

static void stop(void) {
    if (ranksight_ends) ranksight_ends();
    CALLGRIND_STOP_INSTRUMENTATION;
}

/* Who calls it at the exit of an interpreter is not the extension: it is kept from the beginning. */
static int (*finalize)(void);

int MPI_Init(int *argc, char ***argv) {
    int (*real)(int *, char ***) = (int (*)(int *, char ***))next("PMPI_Init");
    begin();
    int status = real(argc, argv);
    finalize = (int (*)(void))next("PMPI_Finalize");
    end();
    return status;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int (*real)(int *, char ***, int, int *) = (int (*)(int *, char ***, int, int *))next("PMPI_Init_thread");
    begin();
    int status = real(argc, argv, required, provided);
    finalize = (int (*)(void))next("PMPI_Finalize");
    end();
    return status;
}

int MPI_Finalize(void) {
    int (*real)(void) = finalize != NULL ? finalize : (int (*)(void))next("PMPI_Finalize");
    stop();
    return real();
}

#define FORTRAN_INIT(name)                                   \
    void name(void *status) {                                \
        void (*real)(void *) = (void (*)(void *))next(#name); \
        begin();                                             \
        real(status);                                        \
        end();                                               \
    }
#define FORTRAN_INIT_THREAD(name)                                                     \
    void name(void *required, void *provided, void *status) {                         \
        void (*real)(void *, void *, void *) = (void (*)(void *, void *, void *))next(#name); \
        begin();                                                                      \
        real(required, provided, status);                                             \
        end();                                                                        \
    }
#define FORTRAN_FINALIZE(name)                               \
    void name(void *status) {                                \
        void (*real)(void *) = (void (*)(void *))next(#name); \
        stop();                                              \
        real(status);                                        \
    }

FORTRAN_INIT(mpi_init)
FORTRAN_INIT(mpi_init_)
FORTRAN_INIT(mpi_init__)
FORTRAN_INIT(MPI_INIT)
FORTRAN_INIT(mpi_init_f08_)
FORTRAN_INIT_THREAD(mpi_init_thread)
FORTRAN_INIT_THREAD(mpi_init_thread_)
FORTRAN_INIT_THREAD(mpi_init_thread__)
FORTRAN_INIT_THREAD(MPI_INIT_THREAD)
FORTRAN_INIT_THREAD(mpi_init_thread_f08_)
FORTRAN_FINALIZE(mpi_finalize)
FORTRAN_FINALIZE(mpi_finalize_)
FORTRAN_FINALIZE(mpi_finalize__)
FORTRAN_FINALIZE(MPI_FINALIZE)
FORTRAN_FINALIZE(mpi_finalize_f08_)
