/* Messages: the halo exchange, whose partners --bug looks up anew, and sums over all ranks. */
#ifndef HEAT_MESSAGES_H
#define HEAT_MESSAGES_H

#include "heat_kernels.h"

enum { AROUND = 27 };

/* Where a face's layer starts (own cells or halo) and the two dimensions it spans. */
static long face_layer(const Grid *g, int face, int halo, int *slow, int *fast) {
    const int d = face / 2;
    const long layer = face % 2 ? g->box.extent[d] + halo : 1 - halo;
    *slow = d == 0 ? 1 : 0;
    *fast = d == 2 ? 1 : 2;
    return layer * g->stride[d] + g->stride[*slow] + g->stride[*fast];
}

KERNEL void pack_halo(const Grid *g, int face, const double *restrict field, double *restrict buffer) {
    int slow, fast;
    const long start = face_layer(g, face, 0, &slow, &fast), s = g->stride[fast];
    for (long a = 0; a < g->box.extent[slow]; a++) {
        const double *row = field + start + a * g->stride[slow];
        for (long b = 0; b < g->box.extent[fast]; b++) {
            *buffer++ = row[b * s];
            KEEP_LOOP();
        }
    }
    WORK((double)g->box.extent[slow] * g->box.extent[fast]);
}

KERNEL void unpack_halo(const Grid *g, int face, const double *restrict buffer, double *restrict field) {
    int slow, fast;
    const long start = face_layer(g, face, 1, &slow, &fast), s = g->stride[fast];
    for (long a = 0; a < g->box.extent[slow]; a++) {
        double *row = field + start + a * g->stride[slow];
        for (long b = 0; b < g->box.extent[fast]; b++) {
            row[b * s] = *buffer++;
            KEEP_LOOP();
        }
    }
    WORK((double)g->box.extent[slow] * g->box.extent[fast]);
}

/* The rank that owns a cell, MPI_PROC_NULL for none: a search through the boxes of all ranks, to their end. */
KERNEL int find_neighbour(const Box *boxes, int ranks, int x, int y, int z) {
    int owner = MPI_PROC_NULL;
    for (int r = 0; r < ranks; r++) {
        const int *low = boxes[r].low, *n = boxes[r].extent;
        const int inside = (x >= low[0]) & (x < low[0] + n[0]) & (y >= low[1]) & (y < low[1] + n[1]) & (z >= low[2]) &
                           (z < low[2] + n[2]);
        owner ^= -inside & (owner ^ r); /* without a branch: the same work whoever asks */
    }
    return owner;
}

/* --bug: looks up anew, for the receives and for the sends of every exchange, who owns the cells around; six of the 27
 * answers are needed. */
static void search_neighbours(Grid *g) {
    for (int at = 0; at < AROUND; at++) {
        const int way[3] = {at / 9 - 1, at / 3 % 3 - 1, at % 3 - 1};
        int cell[3], apart = 0, face = 0;
        for (int d = 0; d < 3; d++) {
            cell[d] = way[d] < 0 ? g->box.low[d] - 1 : g->box.low[d] + (way[d] > 0 ? g->box.extent[d] : 0);
            if (way[d] != 0) apart++, face = 2 * d + (way[d] > 0);
        }
        const int owner = find_neighbour(g->boxes, g->ranks, cell[0], cell[1], cell[2]);
        if (apart == 1) g->neighbour[face] = owner;
    }
    WORK_OF("find_neighbour", AROUND * 8.0 * g->ranks); /* of all calls at once: a charge takes the simulator long */
}

static int face_cells(const Grid *g, int face) {
    const int *e = g->box.extent;
    return face / 2 == 0 ? e[1] * e[2] : face / 2 == 1 ? e[0] * e[2] : e[0] * e[1];
}

KERNEL void exchange_halo(Grid *g, double *field) {
    MPI_Request requests[2 * FACES];
    int count = 0;
    if (g->boxes != NULL) search_neighbours(g);
    for (int face = 0; face < FACES; face++)
        if (g->neighbour[face] != MPI_PROC_NULL)
            MPI_Irecv(g->receive[face], face_cells(g, face), MPI_DOUBLE, g->neighbour[face], face ^ 1, g->comm,
                      &requests[count++]);
    if (g->boxes != NULL) search_neighbours(g);
    for (int face = 0; face < FACES; face++)
        if (g->neighbour[face] != MPI_PROC_NULL) {
            pack_halo(g, face, field, g->send[face]);
            MPI_Isend(g->send[face], face_cells(g, face), MPI_DOUBLE, g->neighbour[face], face, g->comm,
                      &requests[count++]);
            g->messages++;
            g->bytes += (long long)sizeof(double) * face_cells(g, face);
        }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int face = 0; face < FACES; face++)
        if (g->neighbour[face] != MPI_PROC_NULL) unpack_halo(g, face, g->receive[face], field);
}

static void reduce_all(Grid *g, double *values, int count, MPI_Op op) {
    g->collectives++;
    g->collective_bytes += (long long)sizeof(double) * count;
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, op, g->comm);
}

static double global_dot(Grid *g, const double *x, const double *y) {
    double sum = dot_product(g, x, y);
    reduce_all(g, &sum, 1, MPI_SUM);
    return sum;
}

#endif
