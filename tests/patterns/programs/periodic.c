/* A halo exchange on a periodic grid of three dimensions, which sends nothing along a dimension of one rank. */
#include <mpi.h>
#include <stdlib.h>

enum { SIDE = 48, STEPS = 10 };
static double sent[SIDE * SIDE], received[2][SIDE * SIDE];

__attribute__((noinline)) static void exchange(MPI_Comm grid, const int *extents)
{
    for (int d = 0; d < 3; d++) {
        int lower, upper, face = 1;
        MPI_Request requests[4];
        if (extents[d] == 1)
            continue;
        for (int e = 0; e < 3; e++)
            face *= e == d ? 1 : SIDE / extents[e];
        MPI_Cart_shift(grid, d, 1, &lower, &upper);
        MPI_Irecv(received[0], face, MPI_DOUBLE, lower, d, grid, &requests[0]);
        MPI_Irecv(received[1], face, MPI_DOUBLE, upper, d, grid, &requests[1]);
        MPI_Isend(sent, face, MPI_DOUBLE, upper, d, grid, &requests[2]);
        MPI_Isend(sent, face, MPI_DOUBLE, lower, d, grid, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int ranks, extents[3] = {0, 0, 0}, periodic[3] = {1, 1, 1};
    MPI_Comm grid;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 3, extents);
    MPI_Cart_create(MPI_COMM_WORLD, 3, extents, periodic, 0, &grid);
    for (int step = 0; step < STEPS; step++)
        exchange(grid, extents);
    MPI_Finalize();
    return 0;
}
