/* Computes between calls, and prints the processor time that it took by its own clock. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double work(int n)
{
    volatile double x = 1;
    for (int i = 0; i < n; i++)
        x = x * 1.0000001 + 1e-9;
    return x;
}

int main(int argc, char **argv)
{
    int rank;
    double total = 0, x = 0, y;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 40; i++) {
        double begin = cpu();
        x += work(100000 * (1 + rank) + 1000 * i);
        total += cpu() - begin;
        MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    printf("%d %.6f\n", rank, total);
    MPI_Finalize();
    return 0;
}
