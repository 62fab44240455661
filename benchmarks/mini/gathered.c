/* What grows with the ranks: a histogram of them summed, tables gathered, keys sent to whom they belong. */
#include "mini.h"

KERNEL void histogram(void) { MPI_Allreduce(out, in, 1 + 2 * ranks, MPI_DOUBLE, MPI_SUM, WORLD); }
KERNEL void table(void) { MPI_Allgather(out, 3, MPI_DOUBLE, in, 3, MPI_DOUBLE, WORLD); work(40L * ranks); }
KERNEL void keys(void) {
  int sent[1024], received[1024], places[1024] = {0};
  for (int i = 0; i < ranks; i++)
    sent[i] = part(part(size * size * size, rank, ranks), i, ranks);
  MPI_Alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, WORLD);
  MPI_Alltoallv(out, sent, places, MPI_DOUBLE, in, received, places, MPI_DOUBLE, WORLD);
}
KERNEL void sort(void) { work(9L * part(size * size * size, rank, ranks)); }
KERNEL void report(void) { MPI_Reduce(out, in, 5, MPI_DOUBLE, MPI_SUM, 0, WORLD); }

int main(int argc, char **argv) {
  start(argc, argv);
  for (int i = 0; i < 3; i++) {
    histogram();
    table();
    keys();
    sort();
  }
  report();
  MPI_Finalize();
  return 0;
}
