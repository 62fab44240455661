/* Four threads a rank that call MPI at once, each on a communicator of its own. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 100 };
static int rank, size;
static MPI_Comm comms[THREADS];

static __attribute__((noinline, noclone)) void chatter(MPI_Comm comm, int extra)
{
    double out[64], in[64];
    MPI_Request r[2];
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Irecv(in, 64, MPI_DOUBLE, (rank + size - 1) % size, 0, comm, &r[0]);
        MPI_Isend(out, 1 + extra, MPI_DOUBLE, (rank + 1) % size, 0, comm, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        if (i % 20 == 0) {
            MPI_Comm copy;
            MPI_Comm_dup(comm, &copy);
            MPI_Barrier(copy);
            MPI_Comm_free(&copy);
        }
    }
}

static void *work(void *number)
{
    long n = (long)number;
    chatter(comms[n], (int)n);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided != MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return 77;
    }
    for (long i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Finalize();
    return 0;
}
