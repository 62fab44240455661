/* Timings of messages between two ranks, for the parameters of a network.
 *
 *     mpirun -n 2 ./pingpong SECONDS LARGEST
 *
 * Rank 0 writes lines to standard output, each with a mark in front so that a launcher's own lines do not disturb:
 * "@op,bytes,seconds" for a measurement and "@#key value" for a fact. What is measured, and why in this way, stands in
 * loggp.py and calibration.py.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUND = 8, MOST = 320, SIZES = 128, SMALL_WINDOW = 16, LARGE_WINDOW = 128, TAG = 7 };

static int rank;
static char *out, *in;
static double clock_cost;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_for(double seconds) {
  double end = now() + seconds;
  while (now() < end) {
  }
}

static void token(int to) {
  if (to != rank)
    MPI_Send(NULL, 0, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
  else
    MPI_Recv(NULL, 0, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* One measurement of each kind: called on both ranks, the time counts on the rank that `measured_on` says. `unit` is
 * the number of round trips or calls timed together, so that reading the clock is negligible; `transfer` is an
 * estimate of the one-way time. */

static double pingpong(int bytes, int unit, double transfer) {
  (void)transfer;
  double start = now();
  for (int i = 0; i < unit; i++) {
    if (rank == 0) {
      MPI_Send(out, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
      MPI_Recv(in, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(out, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    }
  }
  return (now() - start - clock_cost) / (2.0 * unit);
}

static double isend(int bytes, int unit, double transfer) {
  (void)unit, (void)transfer;
  double spent = 0;
  if (rank == 0) {
    MPI_Request request;
    token(0); /* the receive is posted */
    double start = now();
    MPI_Isend(out, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
    spent = now() - start - clock_cost;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Request request;
    MPI_Irecv(in, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
    token(0);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return spent;
}

/* A blocking send whose receiver comes late: an eager one returns at once, a rendezvous waits. */
static double late_send(int bytes, int unit, double transfer) {
  (void)unit;
  double spent = 0;
  if (rank == 0) {
    token(0);
    double start = now();
    MPI_Send(out, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    spent = now() - start - clock_cost;
  } else {
    token(0);
    wait_for(4 * transfer + 20e-6);
    MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return spent;
}

/* A receive whose message has come before: rank 1 asks for it, and looks only when it must be there. */
static double late_recv(int bytes, int unit, double transfer) {
  (void)unit;
  double spent = 0;
  if (rank == 0) {
    token(0);
    MPI_Send(out, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
  } else {
    token(0);
    wait_for(4 * transfer + 20e-6);
    double start = now();
    MPI_Recv(in, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    spent = now() - start - clock_cost;
  }
  return spent;
}

static double window(int bytes, int messages) {
  MPI_Request request[LARGE_WINDOW];
  double start;
  if (rank == 0) {
    token(0);
    start = now();
    for (int i = 0; i < messages; i++)
      MPI_Isend(out, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request[i]);
    MPI_Waitall(messages, request, MPI_STATUSES_IGNORE);
    token(0);
    return now() - start;
  }
  for (int i = 0; i < messages; i++)
    MPI_Irecv(in, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request[i]); /* nobody reads what arrives */
  token(0);
  MPI_Waitall(messages, request, MPI_STATUSES_IGNORE);
  token(0);
  return 0;
}

/* The time a further message takes in a train: the difference of two windows has no latency in it. */
static double gap(int bytes, int unit, double transfer) {
  (void)unit, (void)transfer;
  int few = bytes <= 4096 ? SMALL_WINDOW : 2, many = bytes <= 4096 ? LARGE_WINDOW : 8;
  double small = window(bytes, few), large = window(bytes, many);
  return (large - small) / (many - few);
}

static double combine(int bytes, int unit, double transfer) {
  (void)transfer;
  if (rank != 0)
    return 0;
  double start = now();
  for (int i = 0; i < unit; i++)
    MPI_Reduce_local(out, in, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM);
  return (now() - start - clock_cost) / unit;
}

static int rising(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Whether the order statistics around the first quartile lie within 2 % of each other: half the 95 % bracket is
 * 1.96 sqrt(n q (1 - q)) ranks. */
static int settled(const double *sample, int count) {
  double sorted[MOST];
  memcpy(sorted, sample, (size_t)count * sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, rising);
  int half = 1;
  while (half * half < 3.84 * count * 0.1875)
    half++;
  int low = count / 4 - half, high = count / 4 + half;
  return low >= 0 && high < count && sorted[high] <= 1.02 * sorted[low];
}

typedef double (*Kind)(int, int, double);

static void measure(const char *name, Kind kind, int measured_on, int bytes, double transfer, double seconds) {
  double sample[MOST], once = 0;
  int unit = 1, count = 0, more = 1;
  for (int i = 0; i < 3; i++) /* warm-up: connections, page tables, registration caches */
    once = kind(bytes, 1, transfer);
  if (rank == 0 && (kind == pingpong || kind == combine))
    while (unit < 1000 && unit * once < 200 * clock_cost)
      unit *= 2;
  MPI_Bcast(&unit, 1, MPI_INT, 0, MPI_COMM_WORLD);
  double start = now();
  while (more) {
    for (int i = 0; i < ROUND; i++) {
      double spent = kind(bytes, unit, transfer);
      sample[count++] = spent > 1e-9 ? spent : 1e-9; /* below the clock's resolution */
    }
    if (rank == measured_on)
      more = count + ROUND <= MOST && now() - start < seconds && !settled(sample, count);
    MPI_Bcast(&more, 1, MPI_INT, measured_on, MPI_COMM_WORLD);
  }
  if (measured_on == 1) {
    if (rank == 1)
      MPI_Send(sample, count, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
    else
      MPI_Recv(sample, count, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int i = 0; rank == 0 && i < count; i++)
    printf("@%s,%d,%.9e\n", name, bytes, sample[i]);
}

static void facts(void) {
  char name[2][MPI_MAX_PROCESSOR_NAME] = {{0}}, version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_processor_name(name[rank], &length);
  if (rank == 1)
    MPI_Send(name[1], MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 0, TAG, MPI_COMM_WORLD);
  else {
    MPI_Recv(name[1], MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\r\n")] = 0;
    printf("@#host %s\n@#host %s\n@#mpi %s\n", name[0], name[1], version);
  }
}

static int divisor(int a, int b) {
  while (b) {
    int rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

int main(int argc, char **argv) {
  int ranks, sizes = 0, size[SIZES];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  double seconds = argc > 2 ? atof(argv[1]) : 20;
  int largest = argc > 2 ? atoi(argv[2]) : 1 << 22;
  if (rank == 0)
    printf("@#ranks %d\n", ranks);
  if (ranks != 2 || largest < 1) {
    fflush(stdout);
    MPI_Finalize();
    return 3;
  }
  size_t room = (size_t)largest;
  out = calloc(room, 1);
  in = calloc(room, 1);
  if (!out || !in)
    MPI_Abort(MPI_COMM_WORLD, 4);
  memset(out, 1, room); /* pages that were never written share one of zeros, and are read from cache */
  memset(in, 1, room);
  clock_cost = 1;
  for (int i = 0; i < 1000; i++) {
    double start = now(), spent = now() - start;
    clock_cost = spent < clock_cost ? spent : clock_cost;
  }
  facts();
  /* Three sizes to an octave. They are measured in scattered order and twice, so that a slow time of the machine does not
   * look like a slow size. */
  for (double s = 1; s <= 1.001 * largest && sizes < SIZES; s *= 1.259921049894873) {
    int bytes = (int)(s + 0.5);
    if (sizes == 0 || bytes > size[sizes - 1])
      size[sizes++] = bytes;
  }
  int stride = sizes * 5 / 8 + 1;
  while (divisor(stride, sizes) != 1) /* so that every size is visited */
    stride++;
  double begun = now();
  for (int pass = 0; pass < 2; pass++) {
    int again = now() - begun < 0.6 * seconds;
    MPI_Bcast(&again, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!again)
      break; /* a busy machine took the time of both for the first */
    for (int i = 0, at = 0; i < sizes; i++, at = (at + stride) % sizes) {
      int bytes = size[at];
      double share = seconds / (2 * sizes), transfer = pingpong(bytes, 4, 0);
      MPI_Bcast(&transfer, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      measure("pingpong", pingpong, 0, bytes, transfer, 0.4 * share);
      measure("isend", isend, 0, bytes, transfer, 0.15 * share);
      measure("send", late_send, 0, bytes, transfer, 0.1 * share);
      measure("recv", late_recv, 1, bytes, transfer, 0.2 * share);
      measure("gap", gap, 0, bytes, transfer, 0.1 * share);
      if (bytes % (int)sizeof(double) == 0 && bytes >= 4096)
        measure("reduce", combine, 0, bytes, transfer, 0.05 * share);
    }
  }
  if (rank == 0)
    printf("@#done\n");
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
