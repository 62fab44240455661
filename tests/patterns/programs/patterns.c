/* One function a pattern of communication: every function's partners and sizes follow one rule of rank and ranks. */
#include <mpi.h>
#include <stdlib.h>

#define KERNEL __attribute__((noinline, noclone, used))

static int rank, ranks;
static char out[1 << 16], in[1 << 16];

static void swap(int to, int from, int bytes)
{
    MPI_Sendrecv(out, bytes, MPI_BYTE, to, 0, in, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

KERNEL void ring(void)
{
    for (int i = 0; i < 3; i++)
        swap((rank + 1) % ranks, (rank + ranks - 1) % ranks, 100);
    __asm__ volatile("");
}

KERNEL void doubling(void) /* recursive doubling of an allgather: 2^k blocks in round k */
{
    MPI_Request request;
    for (int k = 1; k < ranks; k *= 2)
        if ((rank ^ k) < ranks) {
            MPI_Irecv(in, 8 * k, MPI_BYTE, rank ^ k, 1, MPI_COMM_WORLD, &request);
            MPI_Send(out, 8 * k, MPI_BYTE, rank ^ k, 1, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    __asm__ volatile("");
}

KERNEL void transpose(int q)
{
    int to = rank % q * q + rank / q;
    if (to != rank)
        swap(to, to, 40000 / ranks);
    __asm__ volatile("");
}

KERNEL void collect(void)
{
    if (rank > 0)
        MPI_Send(out, 5, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    else
        for (int i = 1; i < ranks; i++)
            MPI_Recv(in, 5, MPI_BYTE, i, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    __asm__ volatile("");
}

KERNEL void tree(void) /* a binary tree, leaves first */
{
    for (int child = 2 * rank + 1; child <= 2 * rank + 2; child++)
        if (child < ranks)
            MPI_Recv(in, 24, MPI_BYTE, child, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank > 0)
        MPI_Send(out, 24, MPI_BYTE, (rank - 1) / 2, 3, MPI_COMM_WORLD);
    __asm__ volatile("");
}

KERNEL void everyone(void)
{
    for (int i = 1; i < ranks; i++)
        swap((rank + i) % ranks, (rank + ranks - i) % ranks, 16);
    __asm__ volatile("");
}

KERNEL void pipeline(void)
{
    if (rank > 0)
        MPI_Recv(in, 64, MPI_BYTE, rank - 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank + 1 < ranks)
        MPI_Send(out, 64, MPI_BYTE, rank + 1, 4, MPI_COMM_WORLD);
    __asm__ volatile("");
}

KERNEL void torus(void) /* both directions along both dimensions, periodic; faces of a square domain */
{
    int dims[2] = {0, 0}, periods[2] = {1, 1}, from, to;
    MPI_Comm grid;
    MPI_Dims_create(ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    for (int d = 0; d < 2; d++)
        for (int way = -1; way < 2; way += 2) {
            MPI_Cart_shift(grid, d, way, &from, &to);
            MPI_Sendrecv(out, 3600 / dims[1 - d], MPI_BYTE, to, 5, in, 3600 / dims[1 - d], MPI_BYTE, from, 5, grid,
                         MPI_STATUS_IGNORE);
        }
    MPI_Comm_free(&grid);
}

KERNEL void lines(void) /* transposes within rows of a grid, and what a root hands out */
{
    int dims[2] = {0, 0};
    MPI_Comm row;
    MPI_Dims_create(ranks, 2, dims);
    MPI_Comm_split(MPI_COMM_WORLD, rank / dims[1], 0, &row);
    MPI_Alltoall(out, 10, MPI_BYTE, in, 10, MPI_BYTE, row);
    MPI_Comm_free(&row);
    MPI_Scatter(out, 7, MPI_BYTE, in, 7, MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int q = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    while (q * q < ranks)
        q++;
    if (q * q != ranks)
        MPI_Abort(MPI_COMM_WORLD, 2);
    ring();
    doubling();
    transpose(q);
    collect();
    tree();
    everyone();
    pipeline();
    torus();
    lines();
    MPI_Finalize();
    return 0;
}
