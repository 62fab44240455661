/* Small programs whose time depends on the network between nodes, for benchmarks/network.py.
 *
 *     network PROGRAM STEPS MICROSECONDS BYTES
 *
 * halo: six neighbours on a 3-d grid; imbalance: the same, where ranks compute up to 10 % more than others; alltoall;
 * allreduce; ring: a token around all ranks; wavefront: from the first corner of a 2-d grid to the last; transpose:
 * all-to-all along the rows and then the columns of a 2-d grid; rooted: a broadcast, and a gather back; unequal: a
 * periodic 2-d grid with eight times as many bytes along one dimension; pipeline: three messages in flight around the
 * ring; workers: rank 0 hands work to each other rank and collects what these return. Computation is charged to the
 * simulator. Every rank prints "@rank,seconds,computing" of its steps. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL __attribute__((noinline))

static int rank, ranks, bytes;
static double seconds, computed;
static char *in, *out;

static void compute(double factor) {
  smpi_execute_flops(seconds * factor * 1e9);
  computed += seconds * factor;
}

/* Between -0.1 and 0.1, the same in every step: what the rank owns. */
static double uneven(void) { return 0.2 * ((rank * 2654435761u) % 1024) / 1023.0 - 0.1; }

KERNEL static void halo(double share) {
  MPI_Request requests[12];
  int extents[3] = {0, 0, 0}, place[3], count = 0, d, way, n = 0;
  MPI_Dims_create(ranks, 3, extents);
  place[0] = rank / (extents[1] * extents[2]);
  place[1] = rank / extents[2] % extents[1];
  place[2] = rank % extents[2];
  compute(1.0 + share);
  int stride[3] = {extents[1] * extents[2], extents[2], 1};
  int to[6];
  for (d = 0; d < 3; d++)
    for (way = -1; way <= 1; way += 2)
      if (place[d] + way >= 0 && place[d] + way < extents[d])
        to[n++] = rank + way * stride[d];
  for (d = 0; d < n; d++)
    MPI_Irecv(in + (size_t)d * bytes, bytes, MPI_CHAR, to[d], 0, MPI_COMM_WORLD, &requests[count++]);
  for (d = 0; d < n; d++)
    MPI_Isend(out, bytes, MPI_CHAR, to[d], 0, MPI_COMM_WORLD, &requests[count++]);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

KERNEL static void alltoall(void) {
  compute(1.0);
  MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

KERNEL static void allreduce(void) {
  compute(1.0);
  MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

KERNEL static void ring(void) {
  int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
  compute(1.0);
  if (rank > 0)
    MPI_Recv(in, bytes, MPI_CHAR, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(out, bytes, MPI_CHAR, after, 0, MPI_COMM_WORLD);
  if (rank == 0)
    MPI_Recv(in, bytes, MPI_CHAR, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

KERNEL static void wavefront(void) {
  int extents[2] = {0, 0};
  MPI_Dims_create(ranks, 2, extents);
  int y = rank / extents[1], x = rank % extents[1];
  if (y > 0)
    MPI_Recv(in, bytes, MPI_CHAR, rank - extents[1], 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (x > 0)
    MPI_Recv(in, bytes, MPI_CHAR, rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  compute(1.0);
  if (y + 1 < extents[0])
    MPI_Send(out, bytes, MPI_CHAR, rank + extents[1], 1, MPI_COMM_WORLD);
  if (x + 1 < extents[1])
    MPI_Send(out, bytes, MPI_CHAR, rank + 1, 2, MPI_COMM_WORLD);
}

KERNEL static void transpose(MPI_Comm rows, MPI_Comm columns) {
  compute(0.5);
  MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, rows);
  compute(0.5);
  MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, columns);
}

KERNEL static void rooted(void) {
  MPI_Bcast(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  compute(1.0);
  MPI_Gather(out, bytes / 8, MPI_CHAR, in, bytes / 8, MPI_CHAR, 0, MPI_COMM_WORLD);
}

KERNEL static void unequal(void) {
  MPI_Request requests[8];
  int extents[2] = {0, 0}, n;
  MPI_Dims_create(ranks, 2, extents);
  int y = rank / extents[1], x = rank % extents[1];
  int to[4] = {(y + extents[0] - 1) % extents[0] * extents[1] + x, (y + 1) % extents[0] * extents[1] + x,
               y * extents[1] + (x + extents[1] - 1) % extents[1], y * extents[1] + (x + 1) % extents[1]};
  for (n = 0; n < 4; n++)
    MPI_Irecv(in + (size_t)n * bytes, n < 2 ? bytes : bytes / 8, MPI_CHAR, to[n], n, MPI_COMM_WORLD, &requests[n]);
  for (n = 0; n < 4; n++)
    MPI_Isend(out, n < 2 ? bytes : bytes / 8, MPI_CHAR, to[n], n ^ 1, MPI_COMM_WORLD, &requests[4 + n]);
  compute(1.0);
  MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
}

KERNEL static void pipeline(void) {
  MPI_Request requests[6];
  int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks, n;
  compute(1.0);
  for (n = 0; n < 3; n++)
    MPI_Irecv(in + (size_t)n * bytes, bytes, MPI_CHAR, before, n, MPI_COMM_WORLD, &requests[n]);
  for (n = 0; n < 3; n++)
    MPI_Isend(out, bytes, MPI_CHAR, after, n, MPI_COMM_WORLD, &requests[3 + n]);
  MPI_Waitall(6, requests, MPI_STATUSES_IGNORE);
}

KERNEL static void workers(void) {
  int n;
  if (rank > 0) {
    MPI_Recv(in, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute(1.0);
    MPI_Send(out, bytes / 4, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    return;
  }
  for (n = 1; n < ranks; n++)
    MPI_Send(out, bytes, MPI_CHAR, n, 0, MPI_COMM_WORLD);
  for (n = 1; n < ranks; n++)
    MPI_Recv(in, bytes / 4, MPI_CHAR, n, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 5)
    MPI_Abort(MPI_COMM_WORLD, 2);
  const char *program = argv[1];
  int steps = atoi(argv[2]);
  seconds = atof(argv[3]) * 1e-6;
  bytes = atoi(argv[4]);
  size_t room = (size_t)bytes * (ranks > 6 ? ranks : 6) + 8;
  in = calloc(room, 1);
  out = calloc(room, 1);
  MPI_Comm rows = MPI_COMM_NULL, columns = MPI_COMM_NULL;
  if (!strcmp(program, "transpose")) {
    int extents[2] = {0, 0};
    MPI_Dims_create(ranks, 2, extents);
    MPI_Comm_split(MPI_COMM_WORLD, rank / extents[1], rank, &rows);
    MPI_Comm_split(MPI_COMM_WORLD, rank % extents[1], rank, &columns);
  }
  /* What traces hold of communication is in the time as well. */
  double begin = MPI_Wtime();
  if (!strcmp(program, "rooted")) /* the first call also sets up what the communicator needs */
    MPI_Bcast(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (!strcmp(program, "rooted") || !strcmp(program, "transpose"))
    MPI_Barrier(MPI_COMM_WORLD);
  for (int step = 0; step < steps; step++) {
    if (!strcmp(program, "halo"))
      halo(0.0);
    else if (!strcmp(program, "imbalance"))
      halo(uneven());
    else if (!strcmp(program, "alltoall"))
      alltoall();
    else if (!strcmp(program, "allreduce"))
      allreduce();
    else if (!strcmp(program, "ring"))
      ring();
    else if (!strcmp(program, "wavefront"))
      wavefront();
    else if (!strcmp(program, "transpose"))
      transpose(rows, columns);
    else if (!strcmp(program, "rooted"))
      rooted();
    else if (!strcmp(program, "unequal"))
      unequal();
    else if (!strcmp(program, "pipeline"))
      pipeline();
    else
      workers();
  }
  printf("@%d,%.9e,%.9e\n", rank, MPI_Wtime() - begin, computed);
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
