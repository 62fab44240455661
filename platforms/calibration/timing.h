/*
 * What the measuring programs share: clocks, pinning, numbers from the command line.
 *
 * Every program prints lines "WORK SECONDS SHARE", the first of a warm-up: work done, time taken, and the share of its
 * processor that a thread had at least while it was timed by the wall; 1 where processor time is what was taken, which
 * other programs do not prolong.
 */
#ifndef RANKSIGHT_TIMING_H
#define RANKSIGHT_TIMING_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before all headers: pinning needs it"
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double read_clock(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double wall_time(void) { return read_clock(CLOCK_MONOTONIC); }
static inline double processor_time(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

static inline void report(double work, double seconds, double share) {
    printf("%.0f %.9e %.6f\n", work, seconds, share);
}

static inline void stop(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* Binds the calling thread to one processor; a negative number leaves it where it is. */
static inline void pin(int cpu) {
    cpu_set_t set;
    if (cpu < 0) return;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) stop("cannot bind a thread to its processor");
}

static inline double number(const char *text, double least) {
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= least)) stop("a number on the command line is off");
    return value;
}

/* Memory of whole cache lines, not touched yet: the thread that writes first decides its ccNUMA domain. */
static inline void *lines_of(size_t bytes) {
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, (bytes + 4095) / 4096 * 4096) != 0) stop("no memory for the measurement");
    return memory;
}

#endif
