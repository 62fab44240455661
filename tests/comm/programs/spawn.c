/* Starts two processes of itself, unless its argument is "alone", and meets them at a barrier. */
#include <mpi.h>
#include <string.h>

static void meet(MPI_Comm other) {
    MPI_Barrier(other);
    MPI_Comm_disconnect(&other);
}

int main(int count, char **words) {
    MPI_Comm other;
    MPI_Init(&count, &words);
    MPI_Comm_get_parent(&other);
    if (other == MPI_COMM_NULL && strcmp(words[1], "alone") != 0)
        MPI_Comm_spawn(words[0], words + 1, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    if (other != MPI_COMM_NULL) meet(other);
    MPI_Finalize();
    return 0;
}
