/*
 * Bandwidth of streaming kernels on one or more cores, each with arrays of its own that it wrote first.
 *
 *   bandwidth KERNEL BYTES CPUS SECONDS SAMPLES
 *
 * KERNEL is read (s += a), write (a = s), update (a = s a), copy (a = b) or triad (a = b + s c); BYTES is the working
 * set of one thread over all its arrays; CPUS is a list such as 0,2,4, one thread each.  Reports the bytes that all
 * threads moved, and the time from the first start to the last end (the processor time, of one thread).  A sample in
 * which a thread had to give its processor away is taken again, up to four times SAMPLES in all.  Bytes are those of
 * the program's loads and stores. Stores are ordinary ones: a cache that allocates on writes reads each written line
 * first, which is traffic on top (write: twice, copy: 3/2, triad: 4/3 of the bytes counted), unless the processor
 * evades it.
 */
#define _GNU_SOURCE
#include "timing.h"
#include <pthread.h>

#if defined(__clang__)
#define KERNEL __attribute__((noinline, no_builtin("memcpy", "memset")))
#else
#define KERNEL __attribute__((noinline, optimize("no-tree-loop-distribute-patterns")))
#endif

#if defined(__AVX512F__)
enum { REGISTER = 64 };
#elif defined(__AVX__)
enum { REGISTER = 32 };
#else
enum { REGISTER = 16 };
#endif
enum { THREADS = 4096, WIDE = 8 };
typedef double Vector __attribute__((vector_size(REGISTER)));

typedef struct {
    pthread_t thread;
    int cpu;
    double started, ended, used;
    double sink; /* what was read must be used */
} Worker;

static const char *const names[] = {"read", "write", "update", "copy", "triad"};
static const int arrays_of[] = {1, 1, 1, 2, 3}, streams_of[] = {1, 1, 2, 2, 3}; /* streams: loads and stores */
enum { KERNELS = sizeof names / sizeof *names };

static Worker workers[THREADS];
static int count;
static size_t vectors;
static long sweeps = 1;
static int kernel, finished;
static volatile double unit = 1; /* values stay as they are however often they are updated; compilers must not know */
static pthread_barrier_t gate;

/* Eight sums at a time, so that the latency of additions does not bound the loads. */
KERNEL static double read_all(const Vector *a, size_t n) {
    Vector sum[WIDE] = {{0}};
    for (size_t i = 0; i + WIDE <= n; i += WIDE)
        for (int k = 0; k < WIDE; k++) sum[k] += a[i + (size_t)k];
    for (int k = 1; k < WIDE; k++) sum[0] += sum[k];
    return sum[0][0] + sum[0][1];
}

KERNEL static void write_all(Vector *restrict a, size_t n, double value) {
    const Vector s = (Vector){0} + value;
    for (size_t i = 0; i < n; i++) a[i] = s;
}

KERNEL static void update_all(Vector *restrict a, size_t n, double value) {
    const Vector s = (Vector){0} + value;
    for (size_t i = 0; i < n; i++) a[i] *= s;
}

KERNEL static void copy_all(Vector *restrict a, const Vector *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i];
}

KERNEL static void triad_all(Vector *restrict a, const Vector *restrict b, const Vector *restrict c, size_t n,
                             double value) {
    const Vector s = (Vector){0} + value;
    for (size_t i = 0; i < n; i++) a[i] = b[i] + s * c[i];
}

static void *work(void *argument) {
    Worker *me = argument;
    pin(me->cpu);
    const int arrays = arrays_of[kernel];
    const size_t n = vectors / (size_t)arrays / WIDE * WIDE;
    const double one = unit;
    const Vector start = (Vector){0} + one;
    Vector *array[3] = {NULL, NULL, NULL};
    for (int i = 0; i < arrays; i++) {
        array[i] = lines_of(n * sizeof(Vector) + 64);
        for (size_t k = 0; k < n; k++) array[i][k] = start;
    }
    while (pthread_barrier_wait(&gate), !finished) {
        const double before = processor_time();
        me->started = wall_time();
        for (long sweep = 0; sweep < sweeps; sweep++) {
            switch (kernel) {
            case 0: me->sink += read_all(array[0], n); break;
            case 1: write_all(array[0], n, one); break;
            case 2: update_all(array[0], n, one); break;
            case 3: copy_all(array[0], array[1], n); break;
            default: triad_all(array[0], array[1], array[2], n, one);
            }
            __asm__ volatile("" ::: "memory"); /* every sweep is done */
        }
        me->ended = wall_time();
        me->used = processor_time() - before;
        pthread_barrier_wait(&gate);
    }
    for (int i = 0; i < arrays; i++) free(array[i]);
    return NULL;
}

/* One sample: its time, and the least share of a processor that a thread had. */
static double sample(double *share) {
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    double first = workers[0].started, last = workers[0].ended;
    *share = 1;
    if (count == 1) return workers[0].used;
    for (int t = 0; t < count; t++) {
        const double had = workers[t].used / (workers[t].ended - workers[t].started);
        if (had < *share) *share = had;
        if (workers[t].started < first) first = workers[t].started;
        if (workers[t].ended > last) last = workers[t].ended;
    }
    return last - first;
}

int main(int argc, char **argv) {
    if (argc != 6) stop("usage: bandwidth KERNEL BYTES CPUS SECONDS SAMPLES");
    while (kernel < KERNELS && strcmp(argv[1], names[kernel]) != 0) kernel++;
    if (kernel == KERNELS) stop("the kernel is none of read, write, update, copy, triad");
    vectors = (size_t)number(argv[2], 3 * WIDE * sizeof(Vector)) / sizeof(Vector);
    for (char *cpu = strtok(argv[3], ","); cpu != NULL && count < THREADS; cpu = strtok(NULL, ","))
        workers[count++].cpu = (int)number(cpu, -1);
    if (count == 0) stop("no processor is named");
    const double least = number(argv[4], 0);
    const int samples = (int)number(argv[5], 1);
    if (pthread_barrier_init(&gate, NULL, (unsigned)count + 1) != 0) stop("cannot make a barrier");
    for (int t = 0; t < count; t++)
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0) stop("cannot start a thread");

    const size_t length = vectors / (size_t)arrays_of[kernel] / WIDE * WIDE;
    const double swept = (double)length * streams_of[kernel] * sizeof(Vector) * count;
    double share, seconds = sample(&share);
    while (seconds < least && sweeps < 1L << 40) sweeps *= 2, seconds = sample(&share);
    report(swept * (double)sweeps, seconds, share);
    for (int taken = 0, whole = 0; whole < samples && taken < 4 * samples; taken++) {
        seconds = sample(&share);
        report(swept * (double)sweeps, seconds, share);
        whole += share > 0.98;
    }
    finished = 1;
    pthread_barrier_wait(&gate);
    for (int t = 0; t < count; t++) pthread_join(workers[t].thread, NULL);
    return 0;
}
