/* A square cut along two sides, its longer one along y: left, right, bottom and top apart, packed, by persistent
 * requests; then neighbourhood collectives. */
#include "mini.h"

static MPI_Comm grid;
static int sides[2], at[2], edge[2], west, east, south, north;

INLINE void pass(int to, int from, int doubles, int tag) {
  MPI_Request request[2];
  MPI_Send_init(out, doubles, MPI_DOUBLE, to, tag, grid, &request[0]);
  MPI_Recv_init(in, doubles, MPI_DOUBLE, from, tag, grid, &request[1]);
  for (int i = 0; i < 3; i++) {
    MPI_Startall(2, request);
    MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
  }
  MPI_Request_free(&request[0]);
  MPI_Request_free(&request[1]);
}
KERNEL void pack_left(void) { if (west != MPI_PROC_NULL) work(6L * (edge[1] + 4)); }
KERNEL void pack_top(void) { if (north != MPI_PROC_NULL) work(6L * (edge[0] + 4)); }
KERNEL void left(void) { pack_left(); pass(west, east, 2 * (edge[1] + 4), 1); }
KERNEL void right(void) { pass(east, west, 2 * (edge[1] + 4), 2); }
KERNEL void bottom(void) { pass(south, north, 2 * (edge[0] + 4), 3); }
KERNEL void top(void) { pack_top(); pass(north, south, 2 * (edge[0] + 4), 4); }
KERNEL void neighbours(void) { MPI_Neighbor_allgather(out, 6, MPI_DOUBLE, in, 6, MPI_DOUBLE, grid); }
KERNEL void advance(void) { work((long)(edge[0] + 4) * (edge[1] + 4)); }
KERNEL void step(void) { MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_MIN, WORLD); }

int main(int argc, char **argv) {
  int ends[2] = {0, 0};
  start(argc, argv);
  MPI_Dims_create(ranks, 2, sides);
  int longer = sides[0];
  sides[0] = sides[1];
  sides[1] = longer;
  MPI_Cart_create(WORLD, 2, sides, ends, 0, &grid);
  MPI_Cart_coords(grid, rank, 2, at);
  MPI_Cart_shift(grid, 0, 1, &west, &east);
  MPI_Cart_shift(grid, 1, 1, &south, &north);
  for (int d = 0; d < 2; d++)
    edge[d] = part(size, at[d], sides[d]);
  for (int i = 0; i < 2; i++) {
    left();
    right();
    bottom();
    top();
    neighbours();
    advance();
    step();
  }
  MPI_Finalize();
  return 0;
}
