/* Jacobi sweeps on a strip of rows per rank, rows divided among the threads of a team. */
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static double *a, *b;
static int n, rows;

__attribute__((noinline)) void sweep(double *restrict to, const double *restrict from)
{
#pragma omp parallel for schedule(static)
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j < n - 1; j++)
            to[i * n + j] = 0.25 * (from[(i - 1) * n + j] + from[(i + 1) * n + j] + from[i * n + j - 1] + from[i * n + j + 1]);
}

__attribute__((noinline)) void halo(double *of, int rank, int size)
{
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(of + n, n, MPI_DOUBLE, up, 0, of + (rows + 1) * n, n, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(of + rows * n, n, MPI_DOUBLE, down, 1, of, n, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, size, steps = argc > 2 ? atoi(argv[2]) : 20;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &rank);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    n = argc > 1 ? atoi(argv[1]) : 240;
    rows = n / size;
    a = calloc((size_t)(rows + 2) * n, sizeof *a);
    b = calloc((size_t)(rows + 2) * n, sizeof *b);
    for (int i = 0; i < n; i++) a[i] = 1;
    for (int s = 0; s < steps; s++) {
        sweep(b, a);
        halo(b, rank, size);
        double *c = a; a = b; b = c;
    }
    if (!rank) printf("%d ranks, %d threads: %g\n", size, omp_get_max_threads(), a[n + n / 2]);
    MPI_Finalize();
    return 0;
}
