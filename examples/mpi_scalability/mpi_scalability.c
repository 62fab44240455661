/*
 * How an MPI library scales: times of collective operations, memory of communicators, windows and the library.
 *
 * After Shudler, Calotoiu, Hoefler, Strube and Wolf 2015 (ICS15), section 3.2.
 *
 * Time: all ranks start a repetition at the same moment of rank 0's clock (windows; offsets of clocks from ping-pongs,
 * the one of the shortest round trip).  A repetition takes as long as its slowest rank; repetitions that some rank
 * started late are dropped, and windows grow until most are kept.  Of the repetitions the first quartile is reported.
 * Bcast_tree is a broadcast along a binary tree by point-to-point messages, whose behaviour is known: a litmus test.
 *
 * Memory: malloc and its kin are wrapped, so that what a call keeps is counted to the byte; the largest over ranks,
 * then the first quartile.  What the library holds as a whole is the proportional set size of /proc/self/smaps before
 * MPI_Finalize, less the one before MPI_Init and less the program's own buffers.
 *
 * The result is a table (CSV), kernel,time,memory_allocated,memory_pss, in the file that RANKSIGHT_TABLE names or on
 * the output.  With --repetitions 0 memory alone is weighed.  Under SMPI time is simulated, and memory is left out, as
 * it would be the simulator's.
 *
 *   mpicc -O2 mpi_scalability.c -o mpi_scalability && mpirun -n 8 ./mpi_scalability --bytes 256 --repetitions 100
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <errno.h>
#ifndef SMPI_H
#include <malloc.h> /* malloc_usable_size; SMPI puts macros in place of its functions */
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef SMPI_H
enum { PINGS = 2, TRIALS = 1 }; /* simulated time repeats exactly */
#else
enum { PINGS = 20, TRIALS = 3 };
#endif
enum { GROWTHS = 3, TAG = 77, WEIGHINGS = 5, FILLINGS = 8 };

/* ---- memory: what the heap holds ---- */

#if defined(__GLIBC__) && !defined(SMPI_H)
#define COUNTS_MEMORY 1
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
static long held; /* bytes on the heap of this process */

static void *counted(void *memory) {
    if (memory != NULL) __atomic_add_fetch(&held, (long)malloc_usable_size(memory), __ATOMIC_RELAXED);
    return memory;
}
void *malloc(size_t size) { return counted(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }
void *memalign(size_t boundary, size_t size) { return counted(__libc_memalign(boundary, size)); }
void *aligned_alloc(size_t boundary, size_t size) { return counted(__libc_memalign(boundary, size)); }
int posix_memalign(void **memory, size_t boundary, size_t size) {
    *memory = counted(__libc_memalign(boundary, size));
    return *memory == NULL ? ENOMEM : 0;
}
void free(void *memory) {
    if (memory != NULL) __atomic_sub_fetch(&held, (long)malloc_usable_size(memory), __ATOMIC_RELAXED);
    __libc_free(memory);
}
void *realloc(void *memory, size_t size) {
    long before = memory == NULL ? 0 : (long)malloc_usable_size(memory);
    void *moved = __libc_realloc(memory, size);
    if (moved == NULL && size != 0) return NULL;
    __atomic_add_fetch(&held, (moved == NULL ? 0 : (long)malloc_usable_size(moved)) - before, __ATOMIC_RELAXED);
    return moved;
}
static double heap(void) { return (double)__atomic_load_n(&held, __ATOMIC_RELAXED); }
#else
#define COUNTS_MEMORY 0
static double heap(void) { return 0.0; }
#endif

/* Proportional set size of this process in bytes, -1 where the system does not report it. */
static double proportional_set(void) {
    char line[512];
    double total = 0.0, part;
    FILE *file = fopen("/proc/self/smaps", "r");
    if (file == NULL) return -1.0;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Pss: %lf kB", &part) == 1) total += 1024.0 * part;
    fclose(file);
    return total;
}

/* ---- the study ---- */

typedef struct {
    int rank, ranks, repetitions, warmups;
    size_t bytes;
    char *send, *receive; /* bytes for every rank */
    size_t own;           /* bytes of buffers that are the program's, not the library's */
    double offset;        /* this rank's clock less that of rank 0 */
} Study;

static void fail(const char *what) {
    fprintf(stderr, "mpi_scalability: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *allocate(size_t size) {
    void *memory = calloc(size ? size : 1, 1);
    if (memory == NULL) fail("no memory");
    return memory;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* First quartile of n values, interpolated; the values are sorted. */
static double first_quartile(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, ascending);
    double at = 0.25 * (n - 1);
    int low = (int)at;
    return low + 1 < n ? values[low] + (at - low) * (values[low + 1] - values[low]) : values[low];
}

/* Offset of every rank's clock to that of rank 0: of PINGS round trips the shortest one gives the best estimate. */
static void synchronise(Study *s) {
    double reply, best = 1e30;
    s->offset = 0.0;
    for (int peer = 1; peer < s->ranks; peer++) {
        if (s->rank == 0)
            for (int i = 0; i < PINGS; i++) {
                double mine;
                MPI_Recv(&mine, 1, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                mine = MPI_Wtime();
                MPI_Send(&mine, 1, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD);
            }
        if (s->rank == peer)
            for (int i = 0; i < PINGS; i++) {
                double sent = MPI_Wtime();
                MPI_Send(&sent, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
                MPI_Recv(&reply, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                double arrived = MPI_Wtime();
                if (arrived - sent < best) {
                    best = arrived - sent;
                    s->offset = (sent + arrived) / 2 - reply;
                }
            }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static double now(const Study *s) { return MPI_Wtime() - s->offset; }

/* Wait until `moment` of rank 0's clock; 1 when it had passed already. */
static int wait_until(const Study *s, double moment) {
    double left = moment - now(s);
    if (left < 0) return 1;
#ifdef SMPI_H
    struct timespec rest = {(time_t)left, (long)(1e9 * (left - (double)(time_t)left))};
    nanosleep(&rest, NULL); /* simulated time does not pass by looking at the clock */
#else
    while (now(s) < moment) sched_yield();
#endif
    return 0;
}

/* ---- what is timed ---- */

static void run_barrier(Study *s) { (void)s, MPI_Barrier(MPI_COMM_WORLD); }
static void run_bcast(Study *s) { MPI_Bcast(s->send, (int)s->bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
static void run_reduce(Study *s) {
    MPI_Reduce(s->send, s->receive, (int)(s->bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}
static void run_allreduce(Study *s) {
    MPI_Allreduce(s->send, s->receive, (int)(s->bytes / sizeof(double)), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void run_gather(Study *s) {
    MPI_Gather(s->send, (int)s->bytes, MPI_BYTE, s->receive, (int)s->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}
static void run_allgather(Study *s) {
    MPI_Allgather(s->send, (int)s->bytes, MPI_BYTE, s->receive, (int)s->bytes, MPI_BYTE, MPI_COMM_WORLD);
}
static void run_alltoall(Study *s) {
    MPI_Alltoall(s->send, (int)s->bytes, MPI_BYTE, s->receive, (int)s->bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* Rank r has the children 2r + 1 and 2r + 2: ceil(log2(p + 1)) - 1 levels, at most two messages a level. */
static void run_bcast_tree(Study *s) {
    if (s->rank > 0)
        MPI_Recv(s->send, (int)s->bytes, MPI_BYTE, (s->rank - 1) / 2, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int child = 2 * s->rank + 1; child <= 2 * s->rank + 2 && child < s->ranks; child++)
        MPI_Send(s->send, (int)s->bytes, MPI_BYTE, child, TAG, MPI_COMM_WORLD);
}

typedef struct {
    const char *name;
    void (*run)(Study *);
} Timed;

static const Timed TIMED[] = {
    {"Barrier", run_barrier}, {"Bcast", run_bcast},         {"Reduce", run_reduce},     {"Allreduce", run_allreduce},
    {"Gather", run_gather},   {"Allgather", run_allgather}, {"Alltoall", run_alltoall}, {"Bcast_tree", run_bcast_tree},
};

/* Longest of TRIALS runs on any rank, for the width of windows. */
static double trial(Study *s, void (*run)(Study *)) {
    double longest = 0.0, all;
    for (int i = 0; i < s->warmups + TRIALS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        run(s);
        double taken = MPI_Wtime() - begin;
        if (i >= s->warmups && taken > longest) longest = taken;
    }
    MPI_Allreduce(&longest, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* First quartile of the repetitions' times in seconds (on rank 0), and how many of them some rank started late. */
static double timed(Study *s, void (*run)(Study *), int *late) {
    double window = 2 * trial(s, run) + 1e-5, result = 0.0;
    size_t many = (size_t)s->repetitions;
    double *begin = allocate(many * sizeof *begin), *first = allocate(many * sizeof *first);
    double *end = allocate(many * sizeof *end), *last = allocate(many * sizeof *last);
    int *missed = allocate(many * sizeof *missed), *any = allocate(many * sizeof *any);
    for (int attempt = 0; attempt < GROWTHS; attempt++, window *= 2) {
        double start = now(s) + window;
        MPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        start += 2 * window; /* the broadcast has to arrive everywhere first */
        for (int i = 0; i < s->repetitions; i++) {
            double moment = start + i * window;
            missed[i] = wait_until(s, moment);
            begin[i] = missed[i] ? now(s) : moment;
            run(s);
            end[i] = now(s);
        }
        MPI_Allreduce(missed, any, s->repetitions, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        MPI_Reduce(begin, first, s->repetitions, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
        MPI_Reduce(end, last, s->repetitions, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        *late = 0;
        for (int i = 0; i < s->repetitions; i++) *late += any[i];
        if (2 * *late < s->repetitions) break;
    }
    if (s->rank == 0) {
        /* Where most were late the start cannot be synchronised here: all are taken, from the first rank's start to the
         * last one's end, and their number is reported. */
        int kept = 0, all = 2 * *late >= s->repetitions;
        for (int i = 0; i < s->repetitions; i++)
            if (all || !any[i]) last[kept++] = last[i] - first[i];
        result = first_quartile(last, kept);
    }
    free(begin), free(first), free(end), free(last), free(missed), free(any);
    return result;
}

/* ---- what is weighed ---- */

static MPI_Comm comm_create(Study *s) {
    MPI_Group all;
    MPI_Comm made;
    (void)s;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_create(MPI_COMM_WORLD, all, &made);
    MPI_Group_free(&all);
    return made;
}
static MPI_Comm comm_dup(Study *s) {
    MPI_Comm made;
    (void)s;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    return made;
}
static MPI_Comm cart_create(Study *s) {
    int dims[2] = {0, 0}, periodic[2] = {1, 1};
    MPI_Comm made;
    MPI_Dims_create(s->ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periodic, 0, &made);
    return made;
}

/* Bytes that a new communicator, or a window if make is NULL, keeps on the heap: of the rank where they are most. */
static double weighed(Study *s, MPI_Comm (*make)(Study *)) {
    double values[WEIGHINGS];
    for (int i = -FILLINGS; i < WEIGHINGS; i++) { /* the first ones fill what the library keeps for good */
        MPI_Comm made = MPI_COMM_NULL;
        MPI_Win window = MPI_WIN_NULL;
        MPI_Barrier(MPI_COMM_WORLD);
        double before = heap(), kept, all = 0.0;
        if (make != NULL)
            made = make(s);
        else
            MPI_Win_create(s->send, (MPI_Aint)s->bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        kept = heap() - before;
        if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
        if (window != MPI_WIN_NULL) MPI_Win_free(&window);
        MPI_Reduce(&kept, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (i >= 0) values[i] = all;
    }
    return first_quartile(values, WEIGHINGS);
}

static long number(const char *option, const char *text, long least) {
    char *end;
    long value = text == NULL ? 0 : strtol(text, &end, 10);
    if (text == NULL || *end != '\0' || value < least || value > 100000000) {
        fprintf(stderr, "mpi_scalability: %s needs a number\n", option);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    Study s = {.repetitions = 100, .warmups = 5, .bytes = 256};
    double before = proportional_set();
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--bytes") == 0)
            s.bytes = (size_t)number(argv[i], argv[i + 1], 1);
        else if (strcmp(argv[i], "--repetitions") == 0)
            s.repetitions = (int)number(argv[i], argv[i + 1], 0);
        else if (strcmp(argv[i], "--warmups") == 0)
            s.warmups = (int)number(argv[i], argv[i + 1], 0);
        else {
            fprintf(stderr, "usage: mpi_scalability [--bytes N] [--repetitions N] [--warmups N]\n");
            return 2;
        }
    }
    if (s.bytes < sizeof(double)) s.bytes = sizeof(double);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &s.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
    s.own = 2 * s.bytes * (size_t)s.ranks;
    s.send = allocate(s.bytes * (size_t)s.ranks);
    s.receive = allocate(s.bytes * (size_t)s.ranks);
    FILE *out = stdout;
    if (s.rank == 0) {
        const char *name = getenv("RANKSIGHT_TABLE");
        if (name != NULL && (out = fopen(name, "w")) == NULL) fail("the table cannot be written");
        fprintf(out, "kernel,time,memory_allocated,memory_pss\n");
    }
    if (s.repetitions > 0) synchronise(&s);
    for (size_t i = 0; s.repetitions > 0 && i < sizeof TIMED / sizeof *TIMED; i++) {
        int late = 0;
        double seconds = timed(&s, TIMED[i].run, &late);
        if (s.rank != 0) continue;
        fprintf(out, "%s,%.9g,,\n", TIMED[i].name, seconds);
        if (late) fprintf(stderr, "%s: %d of %d repetitions started late\n", TIMED[i].name, late, s.repetitions);
    }
    if (COUNTS_MEMORY) {
        static MPI_Comm (*const MAKE[])(Study *) = {comm_create, comm_dup, cart_create, NULL};
        static const char *const MADE[] = {"Comm_create", "Comm_dup", "Cart_create", "Win_create"};
        for (int i = 0; i < 4; i++) {
            double bytes = weighed(&s, MAKE[i]);
            if (s.rank == 0) fprintf(out, "%s,,%.0f,\n", MADE[i], bytes);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        double grown = proportional_set() - before - (double)s.own, most;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Reduce(&grown, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (s.rank == 0 && before >= 0) fprintf(out, "MPI_memory,,,%.0f\n", most);
    }
    if (s.rank == 0 && out != stdout && fclose(out) != 0) fail("the table cannot be written");
    free(s.send), free(s.receive);
    MPI_Finalize();
    return 0;
}
