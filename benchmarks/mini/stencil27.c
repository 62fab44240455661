/* Twenty-seven points on a domain that ends: faces, edges and corners at once, and what a solver sums. */
#include "mini.h"

static MPI_Comm grid;
static int sides[3], at[3], edge[3];

KERNEL void exchange(void) {
  MPI_Request request[52];
  int n = 0;
  for (int way = 0; way < 27; way++) {
    int step[3] = {way % 3 - 1, way / 3 % 3 - 1, way / 9 - 1}, there[3], near = way != 13, length = 1, other;
    for (int d = 0; d < 3; d++) {
      there[d] = at[d] + step[d];
      near &= there[d] >= 0 && there[d] < sides[d];
      length *= step[d] ? 1 : edge[d];
    }
    if (!near)
      continue;
    MPI_Cart_rank(grid, there, &other);
    MPI_Irecv(in, length, MPI_DOUBLE, other, 26 - way, grid, &request[n++]);
    MPI_Isend(out, length, MPI_DOUBLE, other, way, grid, &request[n++]);
  }
  MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
}
KERNEL void multiply(void) { work(3L * edge[0] * edge[1] * edge[2]); }
KERNEL void dot(void) { MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, WORLD); }

int main(int argc, char **argv) {
  int ends[3] = {0, 0, 0};
  start(argc, argv);
  MPI_Dims_create(ranks, 3, sides);
  MPI_Cart_create(WORLD, 3, sides, ends, 0, &grid);
  MPI_Cart_coords(grid, rank, 3, at);
  for (int d = 0; d < 3; d++)
    edge[d] = part(size, at[d], sides[d]);
  for (int i = 0; i < 5; i++) {
    exchange();
    multiply();
    dot();
    dot();
  }
  MPI_Finalize();
  return 0;
}
