/* What the mini-programs share: start, ranks, a size, buffers, and work that a compiler cannot drop. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL __attribute__((noinline)) static
#define INLINE __attribute__((always_inline)) static inline
#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE
#define ROOM (1 << 19)

static int rank, ranks, size;
static double out[ROOM], in[ROOM];
static volatile double sink;

static void start(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &ranks);
  size = argc > 1 ? atoi(argv[1]) : 16;
}

/* The part of n that rank `at` of `of` has. */
static int part(int n, int at, int of) { return (int)((long)n * (at + 1) / of - (long)n * at / of); }

INLINE void work(long times) {
  double sum = 0;
  for (long i = 0; i < times; i++)
    sum += out[i & (ROOM - 1)] * 1.5;
  sink = sum;
}

INLINE void swap(int to, int from, int doubles, int tag, MPI_Comm comm) {
  MPI_Sendrecv(out, doubles, MPI_DOUBLE, to, tag, in, doubles, MPI_DOUBLE, from, tag, comm, IGNORE);
}
