/* Blocks of a square, finer in its middle, dealt out in the order of a curve; partners follow from where they are. */
#include "mini.h"

#define MOST 4096
static int count, x[MOST], y[MOST], width[MOST];

static void divide(int a, int b, int w) {
  int centre = size / 2, near = abs(a + w / 2 - centre) + abs(b + w / 2 - centre) < size / 4 + w / 2;
  if (w > 4 || (near && w > 2)) {
    for (int i = 0; i < 4; i++)
      divide(a + (i & 1) * w / 2, b + (i >> 1) * w / 2, w / 2);
  } else if (count < MOST) {
    x[count] = a;
    y[count] = b;
    width[count++] = w;
  }
}
static int owner(int block) { return (int)((long)block * ranks / count); }
static int touch(int a, int b) {
  return x[a] <= x[b] + width[b] && x[b] <= x[a] + width[a] && y[a] <= y[b] + width[b] && y[b] <= y[a] + width[a];
}

KERNEL void exchange(void) {
  static int lengths[1024];
  MPI_Request request[2048];
  int n = 0;
  memset(lengths, 0, sizeof lengths);
  for (int a = 0; a < count; a++)
    for (int b = 0; owner(a) == rank && b < count; b++)
      if (owner(b) != rank && touch(a, b))
        lengths[owner(b)] += 8;
  for (int other = 0; other < ranks; other++)
    if (lengths[other]) {
      MPI_Irecv(in, lengths[other], MPI_DOUBLE, other, 1, WORLD, &request[n++]);
      MPI_Isend(out, lengths[other], MPI_DOUBLE, other, 1, WORLD, &request[n++]);
    }
  MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
}
KERNEL void advance(void) {
  for (int a = 0; a < count; a++)
    if (owner(a) == rank)
      work(16);
}
KERNEL void balance(void) { MPI_Allgather(&count, 1, MPI_INT, in, 1, MPI_INT, WORLD); }

int main(int argc, char **argv) {
  start(argc, argv);
  divide(0, 0, size);
  for (int i = 0; i < 3; i++) {
    exchange();
    advance();
  }
  balance();
  MPI_Finalize();
  return 0;
}
