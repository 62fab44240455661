/* Conjugate gradients in blocks of a cube until a tolerance is met: how often they turn differs from run to run. */
#include "mini.h"

static int sides[3], at[3], block[3], turns;
static MPI_Comm grid, plane;

/* As many turns as a solver took that had blocks like these: a few more on more ranks, and on finer grids. */
static void converge(void) {
  unsigned jitter = 2654435761u * (unsigned)(size + 31 * ranks) >> 30;
  turns = (int)(size * 4 / 5) + (ranks > 1) + (int)jitter;
}
KERNEL void exchange(void) {
  for (int d = 0; d < 3; d++) {
    int low, high, face = block[0] * block[1] * block[2] / block[d];
    MPI_Cart_shift(grid, d, 1, &low, &high);
    swap(high, low, face, 2 * d, grid);
    swap(low, high, face, 2 * d + 1, grid);
  }
}
KERNEL void multiply(void) { exchange(); work(7L * block[0] * block[1] * block[2]); }
KERNEL void dot(void) { MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, WORLD); }
KERNEL void update(void) { work(3L * block[0] * block[1] * block[2]); }
KERNEL void average(void) { MPI_Allreduce(out, in, size, MPI_DOUBLE, MPI_SUM, plane); }

int main(int argc, char **argv) {
  int ends[3] = {0, 0, 0};
  start(argc, argv);
  MPI_Dims_create(ranks, 3, sides);
  MPI_Cart_create(WORLD, 3, sides, ends, 0, &grid);
  MPI_Cart_coords(grid, rank, 3, at);
  MPI_Comm_split(WORLD, at[0], rank, &plane);
  for (int d = 0; d < 3; d++)
    block[d] = part(size, at[d], sides[d]);
  converge();
  dot();
  for (int i = 0; i < turns; i++) {
    multiply();
    dot();
    update();
    dot();
    if (i % 5 == 4)
      average();
  }
  MPI_Finalize();
  return 0;
}
