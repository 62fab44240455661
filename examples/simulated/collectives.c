/* Times of messages and collectives, one line a measurement, for cluster.py and benchmarks/collectives.py.
 *
 *     collectives trips                       pingpong, send, recv and gap of ranks 0 and 1
 *     collectives pairs SIZE                  B/s that the first half of the ranks sends to the second, together
 *     collectives OPERATION SIZE...           one call of each size: the last rank's end less the common start
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

/* All ranks leave at the same time: barriers end rank by rank. */
static double start(void) {
  double now = MPI_Wtime(), last;
  PMPI_Allreduce(&now, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  last += 1.0;
  usleep((useconds_t)((last - MPI_Wtime()) * 1e6));
  return MPI_Wtime();
}

static void call(const char *operation, int bytes, char *in, char *out) {
  int doubles = bytes / 8;
  if (!strcmp(operation, "barrier"))
    MPI_Barrier(MPI_COMM_WORLD);
  else if (!strcmp(operation, "bcast"))
    MPI_Bcast(out, doubles, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  else if (!strcmp(operation, "reduce"))
    MPI_Reduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  else if (!strcmp(operation, "allreduce"))
    MPI_Allreduce(out, in, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  else if (!strcmp(operation, "allgather"))
    MPI_Allgather(out, doubles, MPI_DOUBLE, in, doubles, MPI_DOUBLE, MPI_COMM_WORLD);
  else if (!strcmp(operation, "alltoall"))
    MPI_Alltoall(out, doubles, MPI_DOUBLE, in, doubles, MPI_DOUBLE, MPI_COMM_WORLD);
  else if (!strcmp(operation, "gather"))
    MPI_Gather(out, doubles, MPI_DOUBLE, in, doubles, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  else if (!strcmp(operation, "scatter"))
    MPI_Scatter(out, doubles, MPI_DOUBLE, in, doubles, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  else if (!strcmp(operation, "reduce_scatter_block"))
    MPI_Reduce_scatter_block(out, in, doubles, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  else
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void trips(char *in, char *out) {
  for (int i = 0; i <= 60; i++) {
    int bytes = 1, messages = 16;
    double scale = 1;
    for (int k = 0; k < i; k++)
      scale *= 1.2599210498948732;
    bytes = (int)(scale + 0.5);
    MPI_Request request[64];
    double begin = start();
    if (rank == 0) {
      MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(in, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      printf("@pingpong,%d,%.9e\n", bytes, (MPI_Wtime() - begin) / 2);
    } else if (rank == 1) {
      MPI_Recv(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
    begin = start();
    if (rank == 0) {
      MPI_Isend(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, request);
      printf("@isend,%d,%.9e\n", bytes, MPI_Wtime() - begin);
      MPI_Wait(request, MPI_STATUS_IGNORE);
    } else if (rank == 1)
      MPI_Recv(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double spent[2] = {0, 0};
    for (int half = 0; half < 2; half++) {
      int count = half ? 2 * messages : messages;
      begin = start();
      if (rank == 0)
        for (int m = 0; m < count; m++)
          MPI_Isend(out, bytes, MPI_BYTE, 1, m, MPI_COMM_WORLD, &request[m]);
      else if (rank == 1)
        for (int m = 0; m < count; m++)
          MPI_Irecv(in, bytes, MPI_BYTE, 0, m, MPI_COMM_WORLD, &request[m]);
      if (rank < 2)
        MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
      double mine = rank < 2 ? MPI_Wtime() - begin : 0;
      PMPI_Allreduce(&mine, &spent[half], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    if (rank == 0)
      printf("@gap,%d,%.9e\n", bytes, (spent[1] - spent[0]) / messages);
  }
}

/* Every rank of the first half streams to its partner in the second; all are done when the last one is. */
static void pairs(int bytes, char *in, char *out) {
  enum { MESSAGES = 32 };
  MPI_Request request[MESSAGES];
  double spent[2] = {0, 0};
  for (int half = 0; half < 2; half++) {
    int count = half ? MESSAGES : MESSAGES / 2;
    double begin = start();
    for (int m = 0; m < count; m++)
      if (rank < ranks / 2)
        MPI_Isend(out, bytes, MPI_BYTE, rank + ranks / 2, m, MPI_COMM_WORLD, &request[m]);
      else
        MPI_Irecv(in, bytes, MPI_BYTE, rank - ranks / 2, m, MPI_COMM_WORLD, &request[m]);
    MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
    double mine = MPI_Wtime() - begin;
    PMPI_Allreduce(&mine, &spent[half], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  if (rank == 0)
    printf("@pairs,%d,%.9e\n", bytes, ranks / 2 * (MESSAGES / 2) * (double)bytes / (spent[1] - spent[0]));
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  size_t most = 1 << 20;
  for (int i = 2; i < argc; i++)
    most = (size_t)atol(argv[i]) > most ? (size_t)atol(argv[i]) : most;
  most *= argc > 2 ? (size_t)ranks : 1;
  char *in = calloc(most, 1), *out = calloc(most, 1);
  if (!in || !out || argc < 2)
    MPI_Abort(MPI_COMM_WORLD, 2);
  if (!strcmp(argv[1], "trips"))
    trips(in, out);
  for (int i = 2; i < argc; i++) {
    if (!strcmp(argv[1], "pairs")) {
      pairs(atoi(argv[i]), in, out);
      continue;
    }
    double begin = start(), last;
    call(argv[1], atoi(argv[i]), in, out);
    double spent = MPI_Wtime() - begin;
    PMPI_Allreduce(&spent, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
      printf("@%s,%d,%.9e\n", argv[1], atoi(argv[i]), last);
  }
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
