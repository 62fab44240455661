/* A ring of exchanges whose first rank, every few steps, goes through a list of what all ranks sent. */
#include <mpi.h>
#include <stdlib.h>

enum { PER_RANK = 2000, EVERY = 5 };

static void advance(double *to, const double *from, int cells)
{
    for (int i = 1; i <= cells; i++)
        to[i] = from[i] + 0.2 * (from[i - 1] - 2 * from[i] + from[i + 1]);
}

static void exchange(double *u, int cells, int left, int right)
{
    MPI_Sendrecv(&u[1], 1, MPI_DOUBLE, left, 0, &u[cells + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(&u[cells], 1, MPI_DOUBLE, right, 1, &u[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double summarise(const double *list, int ranks)
{
    double sum = 0;
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < PER_RANK; i++)
            sum = 0.5 * sum + list[r * PER_RANK + i] / (1 + sum * sum);
    return sum;
}

int main(int argc, char **argv)
{
    int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : 100;
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int cells = 400000 / ranks, left = rank ? rank - 1 : MPI_PROC_NULL;
    const int right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double *now = calloc((size_t)cells + 2, sizeof *now), *next = calloc((size_t)cells + 2, sizeof *next);
    double *list = calloc((size_t)ranks * PER_RANK, sizeof *list);
    for (int i = 1; i <= cells; i++)
        now[i] = i;
    for (int step = 0; step < steps; step++) {
        exchange(now, cells, left, right);
        advance(next, now, cells);
        double *swapped = now;
        now = next, next = swapped;
        if (step % EVERY == 0) {
            MPI_Gather(now + 1, PER_RANK, MPI_DOUBLE, list, PER_RANK, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            if (rank == 0)
                sum += summarise(list, ranks);
        }
    }
    MPI_Finalize();
    return sum < -1e300;
}
