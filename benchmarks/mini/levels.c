/* Several grids on lines of ranks: each level has half of the points, the coarsest is gathered on one rank. */
#include "mini.h"

KERNEL void smooth(int stride, int points) {
  int low = rank - stride, high = rank + stride;
  if (rank % stride == 0) {
    swap(high < ranks ? high : MPI_PROC_NULL, low >= 0 ? low : MPI_PROC_NULL, points, 1, WORLD);
    swap(low >= 0 ? low : MPI_PROC_NULL, high < ranks ? high : MPI_PROC_NULL, points, 2, WORLD);
    work(4L * points);
  }
}
KERNEL void restrict_to(int stride, int points) {
  if (rank % (2 * stride) == stride)
    MPI_Send(out, points, MPI_DOUBLE, rank - stride, 3, WORLD);
  else if (rank % (2 * stride) == 0 && rank + stride < ranks)
    MPI_Recv(in, points, MPI_DOUBLE, rank + stride, 3, WORLD, IGNORE);
}
KERNEL void coarsest(void) { MPI_Gather(out, 4, MPI_DOUBLE, in, 4, MPI_DOUBLE, 0, WORLD); }
KERNEL void set_up(void) {
  int counts[1024];
  counts[0] = size;
  MPI_Allgather(counts, 1, MPI_INT, counts + 1, 1, MPI_INT, WORLD);
  work((long)size * size * size / ranks);
}

int main(int argc, char **argv) {
  start(argc, argv);
  set_up();
  for (int i = 0; i < 4; i++) {
    int points = size * size;
    for (int stride = 1; stride < ranks; stride *= 2, points /= 2) {
      smooth(stride, points);
      restrict_to(stride, points / 2);
    }
    coarsest();
  }
  MPI_Finalize();
  return 0;
}
