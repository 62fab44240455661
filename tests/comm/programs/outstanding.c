/* Receives that are all outstanding at once, completed together from the last to the first. */
#include <mpi.h>
#include <stdlib.h>

enum { N = 300000 };

int main(int argc, char **argv)
{
    static MPI_Request requests[N];
    static char from[16], to[N];
    int i, me;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    for (i = 0; i < N; i++)
        MPI_Irecv(to + i, 1, MPI_CHAR, me, 1, MPI_COMM_WORLD, &requests[N - 1 - i]);
    for (i = 0; i < N; i++)
        MPI_Send(from, i % 2, MPI_CHAR, me, 1, MPI_COMM_WORLD);
    MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
    MPI_Finalize();
    return 0;
}
