/* MPI calls on one rank, to be run with and without the tracer: the time of a call, the least of many rounds; or, with the
 * name of a kind and a number as arguments, that many calls of the kind alone for whoever counts instructions. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, flag;
static char out[64], in[64];
static double x = 1, y;
static MPI_Request r[2];

#define KIND(name, ...) static __attribute__((noinline, noclone)) void name(int times) \
    { \
        for (int i = 0; i < times; i++) { \
            __VA_ARGS__; \
        } \
    }

#if defined(__x86_64__)
#include <x86intrin.h>
static volatile unsigned long long ticks;
KIND(Clock, ticks = __rdtsc()) /* one read: what times a call takes two */
#else
#include <time.h>
static struct timespec ticks;
KIND(Clock, clock_gettime(CLOCK_MONOTONIC, &ticks))
#endif
KIND(Comm_rank, MPI_Comm_rank(MPI_COMM_SELF, &rank))
KIND(Iprobe, MPI_Iprobe(0, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE))
KIND(Barrier, MPI_Barrier(MPI_COMM_SELF))
KIND(Allreduce, MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF))
KIND(Isend_Recv_Wait, MPI_Isend(out, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, r);
     MPI_Recv(in, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE); MPI_Wait(r, MPI_STATUS_IGNORE))
KIND(Irecv_Isend_Waitall, MPI_Irecv(in, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, &r[0]);
     MPI_Isend(out, 8, MPI_CHAR, 0, 1, MPI_COMM_SELF, &r[1]); MPI_Waitall(2, r, MPI_STATUSES_IGNORE))

static const struct {
    const char *name;
    int calls, times;
    void (*run)(int);
} kinds[] = {
    {"Clock", 1, 20000, Clock},
    {"Comm_rank", 1, 20000, Comm_rank}, {"Iprobe", 1, 10000, Iprobe},
    {"Barrier", 1, 20000, Barrier},     {"Allreduce", 1, 10000, Allreduce},
    {"Isend_Recv_Wait", 3, 5000, Isend_Recv_Wait}, {"Irecv_Isend_Waitall", 3, 5000, Irecv_Isend_Waitall},
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double best = 1;
        if (argc > 2) {
            if (!strcmp(argv[1], kinds[k].name)) {
                kinds[k].run(100); /* first calls find their places */
                kinds[k].run(atoi(argv[2]));
            }
            continue;
        }
        for (int round = 0; round < 60; round++) {
            double begin = MPI_Wtime(), time;
            kinds[k].run(kinds[k].times);
            time = (MPI_Wtime() - begin) / kinds[k].times / kinds[k].calls;
            if (time < best)
                best = time;
        }
        printf("%s %d %.2f\n", kinds[k].name, kinds[k].calls, best * 1e9);
    }
    MPI_Finalize();
    return 0;
}
