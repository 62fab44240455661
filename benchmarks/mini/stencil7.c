/* Seven points on a domain that ends, cut along three sides; a kernel for each side, and a sum. */
#include "mini.h"

static MPI_Comm grid;
static int sides[3], at[3], edge[3];

INLINE void along(int d) {
  int low, high, face = edge[(d + 1) % 3] * edge[(d + 2) % 3];
  MPI_Cart_shift(grid, d, 1, &low, &high);
  swap(high, low, face, 1, grid);
  swap(low, high, face, 2, grid);
}
KERNEL void along_x(void) { along(0); work(2L * edge[1] * edge[2]); }
KERNEL void along_y(void) { along(1); work(2L * edge[0] * edge[2]); }
KERNEL void along_z(void) { along(2); work(2L * edge[0] * edge[1]); }
KERNEL void sweep(void) { work((long)edge[0] * edge[1] * edge[2]); }
KERNEL void residual(void) {
  work((long)edge[0] * edge[1] * edge[2] / 2);
  MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, WORLD);
}

int main(int argc, char **argv) {
  int ends[3] = {0, 0, 0};
  start(argc, argv);
  MPI_Dims_create(ranks, 3, sides);
  MPI_Cart_create(WORLD, 3, sides, ends, 0, &grid);
  MPI_Cart_coords(grid, rank, 3, at);
  for (int d = 0; d < 3; d++)
    edge[d] = part(size, at[d], sides[d]);
  for (int i = 0; i < 4; i++) {
    along_x();
    along_y();
    along_z();
    sweep();
    residual();
  }
  MPI_Finalize();
  return 0;
}
