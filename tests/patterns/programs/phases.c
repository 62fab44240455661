/* Phases with patterns of their own that all go through one helper with one call site: only the tags distinguish them.
 * A halo on a grid with open ends (a rank at the border exchanges with MPI_PROC_NULL), a transposition, a ring. */
#include <mpi.h>

#define KERNEL __attribute__((noinline, noclone, used))

enum { HALO = 10, TRANSPOSE = 20, RING = 30 };
static int rank, ranks;
static char out[1 << 16], in[1 << 16];

KERNEL void exchange(int to, int from, int bytes, int tag)
{
    MPI_Sendrecv(out, bytes, MPI_BYTE, to, tag, in, bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    __asm__ volatile("");
}

static void halo(int steps)
{
    int dims[2] = {0, 0}, periods[2] = {0, 0}, from, to;
    MPI_Comm grid;
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    for (int step = 0; step < steps; step++)
        for (int d = 0; d < 2; d++)
            for (int way = -1; way < 2; way += 2) {
                MPI_Cart_shift(grid, d, way, &from, &to);
                exchange(to, from, 7200 / dims[1 - d], HALO);
            }
    MPI_Comm_free(&grid);
}

static void transpose(int steps)
{
    int q = 1;
    while (q * q < ranks)
        q++;
    if (q * q != ranks)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const int partner = rank % q * q + rank / q;
    for (int step = 0; step < steps; step++)
        exchange(partner, partner, 57600 / ranks, TRANSPOSE);
}

static void ring(int steps)
{
    for (int step = 0; step < steps; step++)
        exchange((rank + 1) % ranks, (rank + ranks - 1) % ranks, 256, RING);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int turn = 0; turn < 2; turn++) {
        halo(5);
        transpose(3);
        ring(4);
    }
    MPI_Finalize();
    return 0;
}
