/*
 * Clock of busy cores: additions that wait for one another take one cycle each.
 *
 *   clock CPUS SECONDS SAMPLES
 *
 * Reports, for a warm-up and then SAMPLES times, the additions of one thread and the processor time of the slowest one.
 * Register is added to register: some cores fold additions of small constants away.
 */
#define _GNU_SOURCE
#include "timing.h"
#include <pthread.h>
#include <stdint.h>

enum { THREADS = 4096, UNROLLED = 64 };

typedef struct {
    pthread_t thread;
    int cpu;
    double seconds;
} Worker;

static Worker workers[THREADS];
static int count, finished;
static uint64_t rounds = 1024;
static pthread_barrier_t gate;

static uint64_t add(uint64_t x, uint64_t y, uint64_t times) {
    for (uint64_t r = 0; r < times; r++) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 64
#else
#pragma unroll
#endif
        for (int i = 0; i < UNROLLED; i++) {
            x += y;
            __asm__ volatile("" : "+r"(x), "+r"(y)); /* the sum is not computed at compile time */
        }
    }
    return x;
}

static void *work(void *argument) {
    Worker *me = argument;
    volatile uint64_t sink = 1;
    pin(me->cpu);
    while (pthread_barrier_wait(&gate), !finished) {
        const double start = processor_time();
        sink = add(sink, 3, rounds);
        me->seconds = processor_time() - start;
        pthread_barrier_wait(&gate);
    }
    return NULL;
}

static double sample(void) {
    double slowest = 0;
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
    for (int t = 0; t < count; t++)
        if (workers[t].seconds > slowest) slowest = workers[t].seconds;
    return slowest;
}

int main(int argc, char **argv) {
    if (argc != 4) stop("usage: clock CPUS SECONDS SAMPLES");
    for (char *cpu = strtok(argv[1], ","); cpu != NULL && count < THREADS; cpu = strtok(NULL, ","))
        workers[count++].cpu = (int)number(cpu, -1);
    if (count == 0) stop("no processor is named");
    const double least = number(argv[2], 0);
    const int samples = (int)number(argv[3], 1);
    if (pthread_barrier_init(&gate, NULL, (unsigned)count + 1) != 0) stop("cannot make a barrier");
    for (int t = 0; t < count; t++)
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0) stop("cannot start a thread");
    double seconds = sample();
    while (seconds < least && rounds < UINT64_C(1) << 40) rounds *= 2, seconds = sample();
    report((double)rounds * UNROLLED, seconds, 1);
    for (int s = 0; s < samples; s++) report((double)rounds * UNROLLED, sample(), 1);
    finished = 1;
    pthread_barrier_wait(&gate);
    for (int t = 0; t < count; t++) pthread_join(workers[t].thread, NULL);
    return 0;
}
