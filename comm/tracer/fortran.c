/* Names and constants of Fortran bindings, looked up when a Fortran program makes its first call. */
#define _GNU_SOURCE
#include "fortran.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Fortran compilers write mpi_send as mpi_send_, mpi_send__, mpi_send or MPI_SEND; libraries mostly hold all of them. */
void *rs_real(const char *lower)
{
    char name[128];
    void *found = dlsym(RTLD_NEXT, lower);
    size_t n = strlen(lower), i;
    if (found != NULL || n + 2 > sizeof name)
        return found;
    snprintf(name, sizeof name, "%s_", lower); /* mpi_send__ */
    if ((found = dlsym(RTLD_NEXT, name)) != NULL)
        return found;
    name[n - 1] = '\0'; /* mpi_send */
    if ((found = dlsym(RTLD_NEXT, name)) != NULL)
        return found;
    for (i = 0; name[i] != '\0'; i++)
        name[i] = (char)toupper((unsigned char)name[i]);
    return dlsym(RTLD_NEXT, name);
}

static const void *in_place[8], *ignored[16];
static volatile int looked_up;

static void look_up(void)
{
    static const char *const places[] = {"mpi_fortran_in_place_", "mpi_fortran_in_place", "mpi_fortran_in_place__",
                                         "MPI_FORTRAN_IN_PLACE", "MPIR_F08_MPI_IN_PLACE"};
    static const char *const statuses[] = {
        "mpi_fortran_status_ignore_", "mpi_fortran_status_ignore", "mpi_fortran_status_ignore__", "MPI_FORTRAN_STATUS_IGNORE",
        "mpi_fortran_statuses_ignore_", "mpi_fortran_statuses_ignore", "mpi_fortran_statuses_ignore__",
        "MPI_FORTRAN_STATUSES_IGNORE", "MPIR_F08_MPI_STATUS_IGNORE_OBJ", "MPIR_F08_MPI_STATUSES_IGNORE_OBJ"};
    static const char *const variables[] = {"MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE"};
    unsigned i, n = 0;
    void **variable;
    for (i = 0; i < sizeof places / sizeof *places; i++)
        if ((in_place[n] = dlsym(RTLD_DEFAULT, places[i])) != NULL)
            n++;
    variable = dlsym(RTLD_DEFAULT, "MPIR_F_MPI_IN_PLACE");
    if (variable != NULL && *variable != NULL)
        in_place[n++] = *variable;
    in_place[n] = NULL;
    for (i = n = 0; i < sizeof statuses / sizeof *statuses; i++)
        if ((ignored[n] = dlsym(RTLD_DEFAULT, statuses[i])) != NULL)
            n++;
    for (i = 0; i < sizeof variables / sizeof *variables; i++)
        if ((variable = dlsym(RTLD_DEFAULT, variables[i])) != NULL && *variable != NULL)
            ignored[n++] = *variable;
    ignored[n] = NULL;
    looked_up = 1;
}

static int among(const void *const *list, const void *address)
{
    if (!looked_up)
        look_up();
    for (; *list != NULL; list++)
        if (*list == address)
            return 1;
    return 0;
}

void *rs_fortran_buffer(void *address) { return among(in_place, address) ? MPI_IN_PLACE : address; }

int rs_is_ignored(const void *status) { return among(ignored, status); }

/* ---- the first index of mpi_f08 ---------------------------------------------------------------------------------- */

/* Indices of requests count from 1 in Fortran, but mpi_f08 of MPICH 4.0 counts them from 0: asked once, with a request of our own. */
int rs_f08_base(void)
{
    static volatile int base = -1;
    void (*waitany)(int *, MPI_Fint *, MPI_Fint *, MPI_Fint *, MPI_Fint *);
    int one = 1;
    MPI_Fint fortran, index = 1, status[RS_STATUS_WORDS], ierr = 0;
    MPI_Request request;
    if (base >= 0 || !rs_state.active)
        return base < 0 ? 1 : base;
    base = 1;
    *(void **)&waitany = rs_real("mpi_waitany_f08_");
    if (waitany == NULL || rs_idle_request(&request) != MPI_SUCCESS)
        return 1;
    PMPI_Grequest_complete(request);
    fortran = PMPI_Request_c2f(request);
    waitany(&one, &fortran, &index, status, &ierr);
    if (ierr == MPI_SUCCESS && index == 0)
        base = 0;
    return base;
}
