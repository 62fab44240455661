/* What the wrappers of Fortran need in addition to those of C: the real functions, Fortran's constants, statuses.
 *
 * The wrapper calls the library's own Fortran function with the program's own arguments and converts handles only to look at
 * them, so that nothing depends on how a library treats its Fortran constants. */
#ifndef RANKSIGHT_FORTRAN_H
#define RANKSIGHT_FORTRAN_H

#include "hooks.h"

/* The standard ABI leaves Fortran to libraries above it: handles are the integers that C gives for them, and a status is
 * the same eight integers in both languages. */
#ifdef MPI_ABI_VERSION
typedef int MPI_Fint;
#define PMPI_Comm_f2c PMPI_Comm_fromint
#define PMPI_Type_f2c PMPI_Type_fromint
#define PMPI_Win_f2c PMPI_Win_fromint
#define PMPI_File_f2c PMPI_File_fromint
#define PMPI_Op_f2c PMPI_Op_fromint
#define PMPI_Group_f2c PMPI_Group_fromint
#define PMPI_Info_f2c PMPI_Info_fromint
#define PMPI_Request_f2c PMPI_Request_fromint
#define PMPI_Request_c2f PMPI_Request_toint
#define PMPI_Message_f2c PMPI_Message_fromint
#define PMPI_Errhandler_f2c PMPI_Errhandler_fromint
#define PMPI_Status_f2c(from, to) (*(to) = *(const MPI_Status *)(from))
#endif

/* Ranks, indices and arrays as Fortran has them. */
#undef RS_BASE
#define RS_BASE base /* a parameter of every wrapper */
#undef RS_TYPE_AT
#define RS_TYPE_AT(types, i) PMPI_Type_f2c(((const MPI_Fint *)(types))[i])
#undef RS_REQUEST_AT
#define RS_REQUEST_AT(requests, i) PMPI_Request_f2c(((const MPI_Fint *)(requests))[i])

enum { RS_STATUS_WORDS = sizeof(MPI_Status) / sizeof(MPI_Fint) };

/* The function that the preloaded one hides, under whichever of its names the library has. */
RS_HIDDEN void *rs_real(const char *lower);
RS_HIDDEN void *rs_fortran_buffer(void *address);
RS_HIDDEN int rs_is_ignored(const void *status);
RS_HIDDEN int rs_f08_base(void);

/* Statuses of one call: room for those that the program ignores but the tracer wants, and their form in C. */
typedef struct {
    MPI_Fint few[RS_FEW * RS_STATUS_WORDS], *own;
    MPI_Status few_c[RS_FEW], *own_c;
} rs_fstatus;

/* Before the call: `wanted` differs from `ignored` where the tracer has put a place of its own. */
static __attribute__((noinline, unused)) void *rs_status_begin(rs_fstatus *s, void *status, const MPI_Status *wanted, const MPI_Status *ignored, int n)
{
    s->own = s->few;
    s->own_c = s->few_c;
    if (wanted == ignored || !rs_is_ignored(status))
        return status;
    if (n > RS_FEW && (s->own = malloc(sizeof *s->own * RS_STATUS_WORDS * (size_t)n)) == NULL) {
        s->own = s->few;
        return status;
    }
    return s->own;
}

/* After the call: the statuses in C. */
static __attribute__((noinline, unused)) MPI_Status *rs_status_end(rs_fstatus *s, const void *status, const MPI_Status *ignored, int n)
{
    if (rs_is_ignored(status))
        return (MPI_Status *)ignored;
    if (n > RS_FEW && (s->own_c = malloc(sizeof *s->own_c * (size_t)n)) == NULL) {
        s->own_c = s->few_c;
        return (MPI_Status *)ignored;
    }
    for (int i = 0; i < n; i++)
        PMPI_Status_f2c((const MPI_Fint *)status + i * RS_STATUS_WORDS, &s->own_c[i]);
    return s->own_c;
}

static __attribute__((noinline, unused)) void rs_status_free(rs_fstatus *s)
{
    if (s->own != s->few)
        free(s->own);
    if (s->own_c != s->few_c)
        free(s->own_c);
}

/* MPI_Comm_spawn with what is to be passed on: strings are padded with blanks, a blank one ends the words of a command. */
typedef struct {
    rs_spawn of;
    void *command, *arguments;
    size_t command_length, length;
    MPI_Info info;
    char *words, **list, *name, *block;
} rs_fortran_spawn;
RS_HIDDEN void rs_fortran_spawn_begin(rs_fortran_spawn *s, void *command, size_t command_length, void *arguments,
                                      size_t length, void *info, void *root, void *comm);
RS_HIDDEN void rs_fortran_spawn_end(rs_fortran_spawn *s, int result, void *others);

#endif
