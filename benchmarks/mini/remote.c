/* One-sided: each rank puts its ends into its neighbours' windows, and all add to a counter of the first rank. */
#include "mini.h"

static MPI_Win window;

KERNEL void put(void) {
  MPI_Win_fence(0, window);
  if (rank > 0)
    MPI_Put(out, size, MPI_DOUBLE, rank - 1, size, size, MPI_DOUBLE, window);
  if (rank + 1 < ranks)
    MPI_Put(out, size, MPI_DOUBLE, rank + 1, 0, size, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);
}
KERNEL void count_up(void) {
  MPI_Accumulate(out, 1, MPI_DOUBLE, 0, 2 * size, 1, MPI_DOUBLE, MPI_SUM, window);
  MPI_Win_fence(0, window);
}
KERNEL void sweep(void) { work((long)size * size / ranks); }

int main(int argc, char **argv) {
  start(argc, argv);
  MPI_Win_create(in, sizeof in, sizeof(double), MPI_INFO_NULL, WORLD, &window);
  for (int i = 0; i < 4; i++) {
    put();
    sweep();
    count_up();
  }
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
