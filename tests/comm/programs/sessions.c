/* MPI without MPI_Init: a session with another inside it; with an argument once more after the last one has ended, which not
 * every library survives. */
#include <mpi.h>
#include <stdio.h>

static __attribute__((noinline, noclone)) void ring(MPI_Comm comm, int n)
{
    double out[16] = {0}, in[16];
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Sendrecv(out, n, MPI_DOUBLE, (rank + 1) % size, 0, in, 16, MPI_DOUBLE, (rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE);
}

static void with_session(int n, int inner)
{
    MPI_Session session, other;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    if (inner)
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &other);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "a tag", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    if (inner)
        MPI_Session_finalize(&other);
    ring(comm, n);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    with_session(5, 1);
    if (argc > 1)
        with_session(7, 0);
    puts("done");
    return 0;
}
