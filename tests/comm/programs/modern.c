/* What MPI 4 brought, as far as the library has it (macros are set by the test): prints what it could do. */
#include <mpi.h>
#include <stdio.h>

#define KERNEL static __attribute__((noinline, noclone)) void

static int rank, size, left, right;
static double out[256], in[256];
static MPI_Comm world;

KERNEL partitioned(void)
{
    MPI_Request r[2];
    int i, p;
    MPI_Precv_init(in, 4, 8, MPI_DOUBLE, left, 1, world, MPI_INFO_NULL, &r[0]);
    MPI_Psend_init(out, 4, 8, MPI_DOUBLE, right, 1, world, MPI_INFO_NULL, &r[1]);
    for (i = 0; i < 3; i++) {
        MPI_Startall(2, r);
        for (p = 0; p < 4; p++)
            MPI_Pready(p, r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

KERNEL persistent_collectives(void)
{
    MPI_Request r[3];
    int i;
    MPI_Allreduce_init(out, in, 5, MPI_DOUBLE, MPI_SUM, world, MPI_INFO_NULL, &r[0]);
    MPI_Bcast_init(out + 64, 6, MPI_DOUBLE, 0, world, MPI_INFO_NULL, &r[1]);
    MPI_Barrier_init(world, MPI_INFO_NULL, &r[2]);
    for (i = 0; i < 4; i++) {
        MPI_Start(&r[0]);
        MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        MPI_Startall(2, r + 1);
        MPI_Waitall(2, r + 1, MPI_STATUSES_IGNORE);
    }
    for (i = 0; i < 3; i++)
        MPI_Request_free(&r[i]);
}

KERNEL both_ways(void)
{
    MPI_Request r;
    MPI_Isendrecv(out, 9, MPI_DOUBLE, right, 2, in, 100, MPI_DOUBLE, left, 2, world, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

KERNEL asked_for(void)
{
    MPI_Win win;
    MPI_Request r[2];
    double *base, got[3];
    MPI_Win_allocate(64 * sizeof(double), sizeof(double), MPI_INFO_NULL, world, &base, &win);
    MPI_Win_lock_all(0, win);
    MPI_Rput(out, 3, MPI_DOUBLE, right, 0, 3, MPI_DOUBLE, win, &r[0]);
    MPI_Rget(got, 2, MPI_DOUBLE, left, 8, 2, MPI_DOUBLE, win, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

#if MPI_VERSION >= 4
KERNEL large(void)
{
    MPI_Count counts[64];
    MPI_Aint places[64];
    MPI_Sendrecv_c(out, (MPI_Count)7, MPI_DOUBLE, right, 1, in, (MPI_Count)50, MPI_DOUBLE, left, 1, world, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++)
        counts[i] = i + 1, places[i] = 8 * i;
    MPI_Allgatherv_c(out, (MPI_Count)rank + 1, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, world);
    MPI_Reduce_scatter_c(out, in, counts, MPI_DOUBLE, MPI_SUM, world);
}
#endif

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world = MPI_COMM_WORLD, &rank);
    MPI_Comm_size(world, &size);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    partitioned();
    persistent_collectives();
    both_ways();
    asked_for();
#if MPI_VERSION >= 4
    large();
    if (rank == 0)
        puts("large");
#endif
    MPI_Finalize();
    return 0;
}
