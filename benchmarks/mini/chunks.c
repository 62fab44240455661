/* A square cut into the chunks of the best shape: a prime number of ranks lies along x, others have their longer side
 * along y. Left and right, bottom and top are exchanged apart, packed with margins; steps follow the size. */
#include "mini.h"

static int px, py, nx, ny, left, right, bottom, top;

static void decompose(void) {
  for (py = 1; ranks % py || ranks / py > py; py++)
    ;
  px = ranks / py;
  if (py == ranks) {
    px = ranks;
    py = 1;
  }
  int x = rank % px, y = rank / px;
  nx = part(size, x, px);
  ny = part(size, y, py);
  left = x ? rank - 1 : MPI_PROC_NULL;
  right = x < px - 1 ? rank + 1 : MPI_PROC_NULL;
  bottom = y ? rank - px : MPI_PROC_NULL;
  top = y < py - 1 ? rank + px : MPI_PROC_NULL;
}
KERNEL void pack_left(int depth) { work(5L * depth * (ny + depth)); }
KERNEL void pack_right(int depth) { work(5L * depth * (ny + depth)); }
KERNEL void pack_bottom(int depth) { work(5L * depth * (nx + depth)); }
KERNEL void pack_top(int depth) { work(5L * depth * (nx + depth)); }

INLINE void pass(int low, int high, int doubles, int tag) {
  MPI_Request requests[4];
  int n = 0;
  for (int way = 0; way < 2; way++)
    if ((way ? high : low) != MPI_PROC_NULL) {
      MPI_Isend(out, doubles, MPI_DOUBLE, way ? high : low, tag + way, WORLD, &requests[n++]);
      MPI_Irecv(in, doubles, MPI_DOUBLE, way ? high : low, tag + !way, WORLD, &requests[n++]);
    }
  MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}
KERNEL void left_right(int depth) { pass(left, right, 4 * depth * (ny + depth), 1); }
KERNEL void bottom_top(int depth) { pass(bottom, top, 4 * depth * (nx + depth), 3); }
KERNEL void halo(int depth) {
  if (left != MPI_PROC_NULL)
    pack_left(depth);
  if (right != MPI_PROC_NULL)
    pack_right(depth);
  if (px > 1)
    left_right(depth);
  if (bottom != MPI_PROC_NULL)
    pack_bottom(depth);
  if (top != MPI_PROC_NULL)
    pack_top(depth);
  if (py > 1)
    bottom_top(depth);
}
KERNEL void advance(void) { work((long)nx * ny); }
KERNEL void summary(void) { MPI_Reduce(out, in, 5, MPI_DOUBLE, MPI_SUM, 0, WORLD); }

int main(int argc, char **argv) {
  start(argc, argv);
  decompose();
  for (int i = 0; i <= size / 4; i++) {
    halo(1);
    advance();
    halo(2);
    MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_DOUBLE, MPI_MIN, WORLD);
    if (i % 4 == 0)
      summary();
  }
  MPI_Finalize();
  return 0;
}
