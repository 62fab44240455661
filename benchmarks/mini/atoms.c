/* Atoms of a lattice in a periodic box, as whole cells of a cut-off: halos along x, y and z in turn, sent on, to the
 * rank itself too where a side is not cut. */
#include "mini.h"

static MPI_Comm grid;
static int sides[3], at[3];
static double edge[3];

static int planes(double length) { return (int)(length * 1.37 + 1e-9) + 1; }
static int cells(double length) { return (int)(length / 1.8 + 1e-9) < 1 ? 1 : (int)(length / 1.8 + 1e-9); }

KERNEL void halo(void) {
  double wide[3] = {edge[0], edge[1], edge[2]};
  for (int d = 0; d < 3; d++) {
    int low, high, atoms = planes(edge[d] / cells(edge[d]));
    for (int o = 1; o < 3; o++)
      atoms *= planes(wide[(d + o) % 3]);
    MPI_Cart_shift(grid, d, 1, &low, &high);
    swap(high, low, 3 * atoms, 1, grid);
    swap(low, high, 3 * atoms, 2, grid);
    wide[d] += 2 * edge[d] / cells(edge[d]);
  }
}
KERNEL void forces(void) {
  long atoms = 1;
  for (int d = 0; d < 3; d++)
    atoms *= planes(edge[d]);
  work(20 * atoms);
}
KERNEL void energy(void) { MPI_Allreduce(out, in, 2, MPI_DOUBLE, MPI_SUM, WORLD); }

int main(int argc, char **argv) {
  int around[3] = {1, 1, 1};
  start(argc, argv);
  MPI_Dims_create(ranks, 3, sides);
  MPI_Cart_create(WORLD, 3, sides, around, 0, &grid);
  MPI_Cart_coords(grid, rank, 3, at);
  for (int d = 0; d < 3; d++)
    edge[d] = (double)size / sides[d];
  for (int i = 0; i < 4; i++) {
    halo();
    forces();
  }
  energy();
  MPI_Finalize();
  return 0;
}
