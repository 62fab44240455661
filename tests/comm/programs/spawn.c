/* A manager and the processes that it starts. `how`: "alone" starts none; "one" three workers; "several" one and two by
 * MPI_Comm_spawn_multiple; "chain" one that starts another; "untraced" by a command that only the library can find; in
 * "abort" the second worker calls MPI_Abort with code 0. Each worker of a world passes 800 B on in a ring as often as the
 * second argument says, and sends 80 B to the manager's rank 0. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void start(const char *how, char **words, MPI_Comm *workers) {
    char *given[] = {words[1], words[2], NULL};
    MPI_Info info;
    if (strcmp(how, "several") == 0) {
        char *commands[] = {words[0], words[0]}, **lists[] = {given, given};
        int counts[] = {1, 2};
        MPI_Info none[] = {MPI_INFO_NULL, MPI_INFO_NULL};
        MPI_Comm_spawn_multiple(2, commands, lists, counts, none, 0, MPI_COMM_WORLD, workers, MPI_ERRCODES_IGNORE);
        return;
    }
    MPI_Info_create(&info);
    if (strcmp(how, "untraced") == 0) {
        char folder[4096], *name = strrchr(words[0], '/');
        sprintf(folder, "%.*s", (int)(name - words[0]), words[0]);
        MPI_Info_set(info, "wdir", folder);
        MPI_Comm_spawn(name + 1, given, 3, info, 0, MPI_COMM_WORLD, workers, MPI_ERRCODES_IGNORE);
    } else
        MPI_Comm_spawn(words[0], given, strcmp(how, "chain") == 0 ? 1 : 3, info, 0, MPI_COMM_WORLD, workers,
                       MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
}

static void collect(MPI_Comm workers) {
    double in[10];
    int rank, size, i;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_remote_size(workers, &size);
    for (i = 0; rank == 0 && i < size; i++)
        MPI_Recv(in, 10, MPI_DOUBLE, i, 1, workers, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&workers);
}

static void work(MPI_Comm manager, int rounds) {
    double out[100] = {0};
    int rank, size, i;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (i = 0; i < rounds; i++)
        MPI_Sendrecv_replace(out, 100, MPI_DOUBLE, (rank + 1) % size, 0, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
    MPI_Send(out, 10, MPI_DOUBLE, 0, 1, manager);
}

int main(int count, char **words) {
    MPI_Comm manager, workers;
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&manager);
    if (manager != MPI_COMM_NULL) {
        work(manager, atoi(words[2]));
        if (strcmp(words[1], "abort") == 0 && rank == 1)
            MPI_Abort(MPI_COMM_WORLD, 0);
        if (strcmp(words[1], "chain") == 0) {
            words[1] = "end";
            start("chain", words, &workers);
            collect(workers);
        }
        MPI_Comm_disconnect(&manager);
    } else if (strcmp(words[1], "alone") != 0) {
        start(words[1], words, &workers);
        collect(workers);
    }
    MPI_Finalize();
    return 0;
}
