/* Jacobi until the change is small: how many turns that takes only the data say; every 25th is followed by an estimate. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define KERNEL __attribute__((noinline)) static

KERNEL void relax(double *next, const double *now, int rows, int n) {
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j < n - 1; j++)
            next[i * n + j] = 0.25 * (now[(i - 1) * n + j] + now[(i + 1) * n + j] + now[i * n + j - 1] + now[i * n + j + 1]);
}

KERNEL double change(const double *next, const double *now, int rows, int n) {
    double sum = 0;
    for (int i = n; i < (rows + 1) * n; i++) sum += (next[i] - now[i]) * (next[i] - now[i]);
    return sum;
}

KERNEL double estimate(const double *now, int rows, int n) {
    double sum = 0;
    for (int turn = 0; turn < 5; turn++)
        for (int i = n; i < (rows + 1) * n; i++) sum += sqrt(fabs(now[i]) + turn);
    return sum;
}

int main(int argc, char **argv) {
    int rank, ranks, n = argc > 1 ? atoi(argv[1]) : 300, turn = 0;
    double limit = argc > 2 ? atof(argv[2]) : 1e-3, local, sum, total = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int rows = n / ranks, up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double *now = calloc((size_t)(rows + 2) * n, sizeof *now), *next = calloc((size_t)(rows + 2) * n, sizeof *next);
    for (int j = 0; j < n && rank == 0; j++) now[j] = next[j] = 1;
    while (total > limit) {
        MPI_Sendrecv(now + n, n, MPI_DOUBLE, up, 0, now + (rows + 1) * n, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 0)
            for (int j = 0; j < n; j++) now[j] = 1;
        double *above = rank ? now : next;
        MPI_Sendrecv(now + rows * n, n, MPI_DOUBLE, down, 1, above, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        relax(next, now, rows, n);
        local = change(next, now, rows, n);
        MPI_Allreduce(&local, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (++turn % 25 == 0) {
            local = estimate(now, rows, n);
            MPI_Allreduce(&local, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        }
        double *other = now;
        now = next, next = other;
    }
    if (rank == 0) printf("%d turns\n", turn);
    MPI_Finalize();
    return 0;
}
