/* Point-to-point forms of collectives at any number of ranks: a scan along binomial trees, recursive doubling with the
   ranks beyond the largest power of two folded, a special case at two ranks, lines of a process grid. */
#include <mpi.h>
#include <stdlib.h>

static int rank, ranks;
static char data[4096];

static void give(int to, int bytes) { MPI_Send(data, bytes, MPI_CHAR, to, 0, MPI_COMM_WORLD); }
static void get(int from) { MPI_Recv(data, sizeof data, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

/* Every rank sends to the one without each bit that is set in its number. */
__attribute__((noinline)) void every_tree(void) {
    for (int bit = 1; bit < ranks; bit <<= 1)
        if (rank & bit) MPI_Send(data, 100, MPI_CHAR, rank ^ bit, 1, MPI_COMM_WORLD);
    for (int bit = 1; bit < ranks; bit <<= 1)
        if (!(rank & bit) && (rank | bit) < ranks)
            MPI_Recv(data, sizeof data, MPI_CHAR, rank | bit, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) void doubling(void) {
    int among = 1;
    while (2 * among <= ranks) among *= 2;
    if (rank >= among) {
        give(rank - among, 200);
        get(rank - among);
        return;
    }
    if (rank + among < ranks) get(rank + among);
    for (int bit = 1; bit < among; bit <<= 1)
        MPI_Sendrecv(data, 200, MPI_CHAR, rank ^ bit, 2, data + 2048, 2048, MPI_CHAR, rank ^ bit, 2, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    if (rank + among < ranks) give(rank + among, 200);
}

/* Rounds of a ring, more of them where there are two ranks. */
__attribute__((noinline)) void rounds(void) {
    for (int k = 0; k < (ranks == 2 ? 17 : 6); k++)
        MPI_Sendrecv(data, 50, MPI_CHAR, (rank + 1) % ranks, 3, data + 2048, 2048, MPI_CHAR,
                     (rank + ranks - 1) % ranks, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The first of each row of a grid sends to all others of it. */
__attribute__((noinline)) void rows(void) {
    int sides[2] = {0, 0};
    MPI_Dims_create(ranks, 2, sides);
    int place = rank % sides[0], first = rank - place;
    if (place) get(first);
    else
        for (int to = 1; to < sides[0]; to++) give(first + to, 300);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    every_tree();
    MPI_Barrier(MPI_COMM_WORLD);
    doubling();
    rounds();
    MPI_Barrier(MPI_COMM_WORLD);
    rows();
    MPI_Finalize();
    return 0;
}
