/* A transform over pencils: all to all within rows, then within columns, of a grid of ranks. */
#include "mini.h"

static MPI_Comm row, column;
static int sides[2];

INLINE void within(MPI_Comm comm, int of) {
  int block = size * size * size / ranks / of;
  MPI_Alltoall(out, block, MPI_DOUBLE, in, block, MPI_DOUBLE, comm);
}
KERNEL void rows(void) { within(row, sides[1]); work((long)size * size * size / ranks); }
KERNEL void columns(void) { within(column, sides[0]); work((long)size * size * size / ranks); }
KERNEL void transform(void) {
  int steps = 0;
  while (1 << steps < size)
    steps++;
  work((long)size * size * size / ranks * steps);
}

int main(int argc, char **argv) {
  start(argc, argv);
  MPI_Dims_create(ranks, 2, sides);
  MPI_Comm_split(WORLD, rank / sides[1], rank, &row);
  MPI_Comm_split(WORLD, rank % sides[1], rank, &column);
  for (int i = 0; i < 3; i++) {
    transform();
    rows();
    transform();
    columns();
  }
  MPI_Bcast(out, 8, MPI_DOUBLE, 0, WORLD);
  MPI_Finalize();
  return 0;
}
