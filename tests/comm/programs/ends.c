/* Ways in which a program ends, chosen by the first argument; every rank first sends ten messages around. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rank, size;

static __attribute__((noinline, noclone)) void rounds(void)
{
    double out = 1, in;
    for (int i = 0; i < 10; i++)
        MPI_Sendrecv(&out, 1, MPI_DOUBLE, (rank + 1) % size, 0, &in, 1, MPI_DOUBLE, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static volatile sig_atomic_t seen;
static void survive(int number) { seen = number; }

static __attribute__((noinline)) int deep(int n)
{
    volatile char room[4096];
    room[0] = (char)n;
    return deep(n + 1) + room[0];
}

int main(int argc, char **argv)
{
    const char *way = argv[1];
    if (!strcmp(way, "handler"))
        signal(SIGTERM, survive);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rounds();
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(way, "exit"))
        exit(0);
    if (!strcmp(way, "_exit"))
        _exit(0);
    if (!strcmp(way, "status")) {
        MPI_Finalize();
        return 41;
    }
    if (!strcmp(way, "fork")) {
        pid_t child = fork();
        if (child == 0)
            exit(0);
        waitpid(child, NULL, 0);
    }
    if (!strcmp(way, "failed")) { /* a call that MPI refuses, then others */
        int word = 0;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (MPI_Send(&word, 1, MPI_INT, size + 7, 0, MPI_COMM_WORLD) == MPI_SUCCESS)
            return 3;
        rounds();
    }
    if (!strcmp(way, "freed")) { /* past the tracer, as libraries free what they made; the handle is used again */
        for (int i = 0; i < 8; i++) {
            MPI_Comm copy;
            MPI_Comm_dup(i % 2 ? MPI_COMM_WORLD : MPI_COMM_SELF, &copy);
            MPI_Barrier(copy);
            PMPI_Comm_free(&copy);
        }
    }
    if (!strcmp(way, "many")) /* as many calls more as asked for */
        for (int i = atoi(argv[2]); i > 0; i--)
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(way, "outstanding")) { /* freed, past the tracer, while a receive is under way */
        for (int i = 0; i < 4; i++) {
            MPI_Comm copy, again;
            MPI_Request request;
            double in, out = 1;
            MPI_Comm_dup(MPI_COMM_WORLD, &copy);
            MPI_Irecv(&in, 1, MPI_DOUBLE, (rank + 1) % size, 5, copy, &request);
            MPI_Send(&out, 1, MPI_DOUBLE, (rank + size - 1) % size, 5, copy);
            PMPI_Comm_free(&copy);
            MPI_Comm_dup(MPI_COMM_SELF, &again);
            MPI_Barrier(again);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Comm_free(&again);
        }
    }
    if (!strcmp(way, "handler")) {
        raise(SIGTERM);
        if (seen != SIGTERM)
            return 4;
        rounds();
    }
    if (!strcmp(way, "uncompleted")) {
        double in;
        MPI_Request request;
        MPI_Irecv(&in, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 77, MPI_COMM_SELF, &request);
        MPI_Request_free(&request);
        MPI_Send(&in, 1, MPI_DOUBLE, 0, 77, MPI_COMM_SELF);
    }
    if (rank == size - 1) {
        if (!strcmp(way, "abort"))
            abort();
        if (!strcmp(way, "segv"))
            *(volatile int *)(argc - argc) = 1;
        if (!strcmp(way, "stack"))
            return deep(0);
        if (!strcmp(way, "MPI_Abort"))
            MPI_Abort(MPI_COMM_WORLD, argc > 2 && !strcmp(argv[2], "0") ? 0 : 7);
        if (!strcmp(way, "kill"))
            raise(SIGKILL);
        if (!strcmp(way, "term"))
            raise(SIGTERM);
    }
    if (!strcmp(way, "late")) { /* one rank reaches MPI_Finalize long after the others */
        if (rank == atoi(argv[2]))
            sleep(1);
    } else if (argc > 2 && !strcmp(argv[2], "slowly"))
        sleep(1); /* time for the launcher to end the others */
    if (!strcmp(way, "buffered")) { /* what a rank has sent goes on its way while it finalizes */
        static double data[1 << 18];
        if (rank == 0) {
            int bytes = sizeof data + MPI_BSEND_OVERHEAD;
            MPI_Buffer_attach(malloc(bytes), bytes);
            MPI_Bsend(data, 1 << 18, MPI_DOUBLE, 1, 9, MPI_COMM_WORLD);
        } else if (rank == 1) {
            sleep(1);
            MPI_Recv(data, 1 << 18, MPI_DOUBLE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    MPI_Finalize();
    puts("done");
    return 0;
}
