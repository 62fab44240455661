/* A rank's part of the grid, and what makes a function a kernel. */
#ifndef HEAT_GRID_H
#define HEAT_GRID_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define KERNEL __attribute__((noipa, used)) /* no inlining, cloning, splitting, nor merging of equal bodies */
#elif defined(__GNUC__) && !defined(__clang__)
#define KERNEL __attribute__((noinline, noclone, used))
#else
#define KERNEL __attribute__((noinline, used))
#endif
/* Keeps a copying loop a loop of its kernel: compilers would call memcpy, and a profile would give the work to libc. */
#define KEEP_LOOP() __asm__ volatile("")
/* Operations of a kernel: a simulator of machines charges them instead of running a clock (simulated/charged.h). */
#ifndef WORK
#define WORK(operations) ((void)0)
#define WORK_OF(kernel, operations) ((void)0)
#endif

enum { FACES = 6 };

typedef struct { /* which cells a rank owns: from low up to, not including, low + extent */
    int low[3], extent[3];
} Box;

typedef struct {
    MPI_Comm comm;
    int rank, ranks, dims[3], at[3], neighbour[FACES]; /* faces: low and high of dimension 0, 1, 2 */
    Box box, *boxes;                                   /* boxes: those of all ranks, with --bug only */
    long cells[3], side[3];                            /* all cells, and local ones with halo, per dimension */
    long stride[3];
    double coefficient[3], diagonal, dt;
    double *send[FACES], *receive[FACES];
    long long messages, bytes, collectives, collective_bytes;
} Grid;

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (memory == NULL) {
        fprintf(stderr, "heat: no memory for %zu items of %zu bytes\n", count, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static size_t volume(const Grid *g) { return (size_t)g->side[0] * (size_t)g->side[1] * (size_t)g->side[2]; }

static inline double own_cells(const Grid *g) {
    return (double)g->box.extent[0] * g->box.extent[1] * g->box.extent[2];
}

/* First cell of row (i, j) of the local grid, halo not counted. */
static inline long row_start(const Grid *g, long i, long j) {
    return (i + 1) * g->stride[0] + (j + 1) * g->stride[1] + 1;
}

#endif
