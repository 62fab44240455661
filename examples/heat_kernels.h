/* Numerical kernels: those of conjugate gradients, the material law and the walk through a table. */
#ifndef HEAT_KERNELS_H
#define HEAT_KERNELS_H

#include "heat_grid.h"

#include <stdint.h>
#include <string.h>

enum { REACTIONS = 4 };

/* y = (I + dt L_h) x by the 7-point operator; bound by memory bandwidth once the grid outgrows the caches. */
KERNEL void apply_operator(const Grid *g, const double *restrict x, double *restrict y) {
    const double c0 = g->coefficient[0], c1 = g->coefficient[1], c2 = g->coefficient[2], d = g->diagonal;
    const long s0 = g->stride[0], s1 = g->stride[1], n = g->box.extent[2];
    for (long i = 0; i < g->box.extent[0]; i++)
        for (long j = 0; j < g->box.extent[1]; j++) {
            const double *restrict a = x + row_start(g, i, j);
            double *restrict b = y + row_start(g, i, j);
            for (long k = 0; k < n; k++)
                b[k] = d * a[k] - c0 * (a[k - s0] + a[k + s0]) - c1 * (a[k - s1] + a[k + s1]) -
                       c2 * (a[k - 1] + a[k + 1]);
        }
    WORK(13 * own_cells(g));
}

/* This rank's part of the inner product. */
KERNEL double dot_product(const Grid *g, const double *x, const double *y) {
    double sum = 0;
    for (long i = 0; i < g->box.extent[0]; i++)
        for (long j = 0; j < g->box.extent[1]; j++) {
            const double *a = x + row_start(g, i, j), *b = y + row_start(g, i, j);
            for (long k = 0; k < g->box.extent[2]; k++) sum += a[k] * b[k];
        }
    WORK(2 * own_cells(g));
    return sum;
}

/* y = y + a x */
KERNEL void axpy(const Grid *g, double a, const double *restrict x, double *restrict y) {
    for (long i = 0; i < g->box.extent[0]; i++)
        for (long j = 0; j < g->box.extent[1]; j++) {
            const long row = row_start(g, i, j), end = row + g->box.extent[2];
            for (long k = row; k < end; k++) y[k] += a * x[k];
        }
    WORK(2 * own_cells(g));
}

/* y = x + b y */
KERNEL void xpby(const Grid *g, const double *restrict x, double b, double *restrict y) {
    for (long i = 0; i < g->box.extent[0]; i++)
        for (long j = 0; j < g->box.extent[1]; j++) {
            const long row = row_start(g, i, j), end = row + g->box.extent[2];
            for (long k = row; k < end; k++) y[k] = x[k] + b * y[k];
        }
    WORK(2 * own_cells(g));
}

/* Natural logarithm of a normal number x = 2^e m > 0, m in [sqrt(1/2), sqrt(2)), log m = 2 artanh((m-1)/(m+1)). */
static inline double own_log(double x) {
    uint64_t bits, shifted;
    double m, s, t, sum = 0;
    memcpy(&bits, &x, sizeof bits);
    shifted = bits - UINT64_C(0x3fe6a09e667f3bcd);
    const double e = (double)(int32_t)((int64_t)shifted >> 52);
    bits -= shifted & UINT64_C(0xfff0000000000000);
    memcpy(&m, &bits, sizeof m);
    s = (m - 1) / (m + 1);
    t = s * s;
    sum = 1.0 / 19;
    sum = sum * t + 1.0 / 17;
    sum = sum * t + 1.0 / 15;
    sum = sum * t + 1.0 / 13;
    sum = sum * t + 1.0 / 11;
    sum = sum * t + 1.0 / 9;
    sum = sum * t + 1.0 / 7;
    sum = sum * t + 1.0 / 5;
    sum = sum * t + 1.0 / 3;
    return e * 0.69314718055994530942 + 2 * s * (1 + sum * t);
}

/* Exponential for |x| < 700: x = k ln 2 + r, |r| <= ln(2) / 2, exp r by its Taylor polynomial of degree 13. */
static inline double own_exp(double x) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    const double rounded = x * 1.44269504088896340736 + magic, k = rounded - magic;
    const double r = x - k * 6.93147180369123816490e-01 - k * 1.90821492927058770002e-10;
    double p = 1.0 / 6227020800.0, scale;
    uint64_t bits;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    bits = (uint64_t)((int64_t)k + 1023) << 52;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* Temperature in kelvin of the scaled field, so chosen that it stays well above zero for |u| < 7. */
static inline double temperature(double u) { return 600 + 50 * u; }

static const double ACTIVATION[REACTIONS] = {1250, 2500, 3750, 5000}; /* energy over gas constant, in kelvin */

/* Rate of concurrent Arrhenius reactions, T^1.5 sum_i exp(-E_i / (R T)), in every cell: some two hundred operations for
 * one load and one store, so bound by computation.  `rows` past those of the grid (--imbalance) go through the grid
 * again and find the same values. */
KERNEL void material_law(const Grid *g, const double *restrict u, double *restrict rate, long rows) {
    const long n = g->box.extent[2];
    long i = 0, j = 0;
    for (long row = 0; row < rows; row++) {
        const double *restrict a = u + row_start(g, i, j);
        double *restrict b = rate + row_start(g, i, j);
        for (long k = 0; k < n; k++) {
            const double kelvin = temperature(a[k]), prefactor = 1.5 * own_log(kelvin), inverse = 1 / kelvin;
            double sum = 0;
            for (int reaction = 0; reaction < REACTIONS; reaction++)
                sum += own_exp(prefactor - ACTIVATION[reaction] * inverse);
            b[k] = sum;
        }
        if (++j == g->box.extent[1]) j = 0, i = i + 1 == g->box.extent[0] ? 0 : i + 1;
    }
    WORK(200.0 * (double)rows * (double)n);
}

typedef struct { /* a scattering site fills a cache line */
    uint32_t next;
    float properties[15];
} Site;

/* Follows a path of `hops` scattering sites; each address is what the last load brought, so bound by latency. */
KERNEL uint32_t table_lookup(const Site *table, uint32_t site, long hops) {
    for (long hop = 0; hop < hops; hop++) site = table[site].next;
    WORK(30.0 * (double)hops);
    return site;
}

#endif
