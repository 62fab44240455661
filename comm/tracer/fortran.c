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

static size_t trimmed(const char *text, size_t length)
{
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\0'))
        length--;
    return length;
}

/* The words of C as a list, and what rs_spawn_begin makes of them as strings of Fortran again. */
void rs_fortran_spawn_begin(rs_fortran_spawn *s, void *command, size_t command_length, void *arguments, size_t length,
                            void *info, void *root, void *comm)
{
    const char *text = arguments;
    size_t n = 0, i, longest = 1;
    char **all;
    MPI_Comm of = PMPI_Comm_f2c(*(MPI_Fint *)comm);
    int me = -1;
    *s = (rs_fortran_spawn){.command = command, .arguments = arguments, .command_length = command_length, .length = length};
    if (!rs_state.active || of == MPI_COMM_NULL || PMPI_Comm_rank(of, &me) != MPI_SUCCESS || me != *(MPI_Fint *)root)
        return; /* others need not have words */
    s->info = PMPI_Info_f2c(*(MPI_Fint *)info);
    while (length > 0 && trimmed(text + n * length, length) > 0)
        n++;
    s->words = calloc(n + 1, length + 1);
    s->list = calloc(n + 1, sizeof *s->list);
    s->name = strndup(command, trimmed(command, command_length));
    if (s->words == NULL || s->list == NULL || s->name == NULL)
        return;
    for (i = 0; i < n; i++) {
        s->list[i] = s->words + i * (length + 1);
        memcpy(s->list[i], text + i * length, trimmed(text + i * length, length));
    }
    rs_spawn_begin(&s->of, of, me, 1, &s->name, &s->list, &s->info);
    if (s->of.n == 0) /* as it was */
        return;
    all = s->of.arguments[0];
    for (n = 0; all[n] != NULL; n++)
        longest = strlen(all[n]) > longest ? strlen(all[n]) : longest;
    if ((s->block = malloc((n + 1) * longest)) == NULL)
        return;
    memset(s->block, ' ', (n + 1) * longest);
    for (i = 0; i < n; i++)
        memcpy(s->block + i * longest, all[i], strlen(all[i]));
    s->command = s->of.commands[0];
    s->command_length = strlen(s->of.commands[0]);
    s->arguments = s->block;
    s->length = longest;
}

void rs_fortran_spawn_end(rs_fortran_spawn *s, int result, void *others)
{
    MPI_Comm comm = result == MPI_SUCCESS ? PMPI_Comm_f2c(*(MPI_Fint *)others) : MPI_COMM_NULL;
    rs_spawn_end(&s->of, result, &comm);
    free(s->words);
    free(s->list);
    free(s->name);
    free(s->block);
}
