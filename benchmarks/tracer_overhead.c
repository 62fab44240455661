/* Time of single MPI calls on one rank, the least of many rounds: run with and without the tracer. */
#include <mpi.h>
#include <stdio.h>

#define MEASURE(name, calls, n, ...) do { \
    double best = 1; \
    for (int round = 0; round < 60; round++) { \
        double begin = MPI_Wtime(), time; \
        for (int i = 0; i < (n); i++) { \
            __VA_ARGS__; \
        } \
        time = (MPI_Wtime() - begin) / (n) / (calls); \
        if (time < best) \
            best = time; \
    } \
    printf("%s %.2f\n", name, best * 1e9); \
} while (0)

int main(int argc, char **argv)
{
    int rank, flag;
    char out[64] = "", in[64];
    double x = 1, y;
    MPI_Request r[2];
    MPI_Comm self = MPI_COMM_SELF;
    MPI_Init(&argc, &argv);
    MEASURE("Comm_rank", 1, 20000, MPI_Comm_rank(self, &rank));
    MEASURE("Iprobe", 1, 10000, MPI_Iprobe(0, 99, self, &flag, MPI_STATUS_IGNORE));
    MEASURE("Barrier", 1, 20000, MPI_Barrier(self));
    MEASURE("Allreduce", 1, 10000, MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, self));
    MEASURE("Isend+Recv+Wait", 3, 5000, MPI_Isend(out, 8, MPI_CHAR, 0, 1, self, r);
            MPI_Recv(in, 8, MPI_CHAR, 0, 1, self, MPI_STATUS_IGNORE); MPI_Wait(r, MPI_STATUS_IGNORE));
    MEASURE("Irecv+Isend+Waitall", 3, 5000, MPI_Irecv(in, 8, MPI_CHAR, 0, 1, self, &r[0]);
            MPI_Isend(out, 8, MPI_CHAR, 0, 1, self, &r[1]); MPI_Waitall(2, r, MPI_STATUSES_IGNORE));
    MPI_Finalize();
    return 0;
}
