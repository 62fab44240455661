/* What is known beforehand: the solution, where the table's path leads, and the material law by libm. */
#ifndef HEAT_CHECK_H
#define HEAT_CHECK_H

#include "heat_kernels.h"

#include <math.h>

enum { MODES = 3 };
static const double PI = 3.14159265358979323846;

static double amplitude(int mode) { return 1.0 / (mode + 1); }

/* sine[mode][c] of the local cells of one dimension */
static void sine_table(const Grid *g, int d, double *sine) {
    const long n = g->box.extent[d];
    for (int mode = 0; mode < MODES; mode++)
        for (long c = 0; c < n; c++)
            sine[mode * n + c] = sin((mode + 1) * PI * (double)(g->box.low[d] + c + 1) / (double)(g->cells[d] + 1));
}

/* How much mode (k, l, m) is left after `steps`: of the discrete and of the continuous problem. */
static void decay(const Grid *g, const int mode[3], long steps, double *discrete, double *continuous) {
    double eigenvalue = 0, square = 0;
    for (int d = 0; d < 3; d++) {
        const double s = sin((mode[d] + 1) * PI / (2.0 * (double)(g->cells[d] + 1)));
        eigenvalue += 4 * g->coefficient[d] * s * s;
        square += (mode[d] + 1) * (mode[d] + 1);
    }
    *discrete = pow(1 + eigenvalue, -(double)steps);
    *continuous = exp(-PI * PI * square * g->dt * (double)steps);
}

/* Writes the field after `steps` (initialises with 0), or with `found` sums its squared differences from it:
 * (found - discrete)^2, discrete^2, (found - continuous)^2, continuous^2 and found^2. */
KERNEL void known_solution(const Grid *g, long steps, double *write, const double *found, double sums[5]) {
    double *sine[3], factor[2][MODES][MODES][MODES];
    for (int d = 0; d < 3; d++) {
        sine[d] = allocate((size_t)MODES * (size_t)g->box.extent[d], sizeof(double));
        sine_table(g, d, sine[d]);
    }
    for (int k = 0; k < MODES; k++)
        for (int l = 0; l < MODES; l++)
            for (int m = 0; m < MODES; m++) {
                const int mode[3] = {k, l, m};
                const double a = amplitude(k) * amplitude(l) * amplitude(m);
                decay(g, mode, steps, &factor[0][k][l][m], &factor[1][k][l][m]);
                factor[0][k][l][m] *= a, factor[1][k][l][m] *= a;
            }
    const int *n = g->box.extent;
    for (long i = 0; i < n[0]; i++)
        for (long j = 0; j < n[1]; j++) {
            double along[2][MODES] = {{0}};
            for (int which = 0; which < 2; which++)
                for (int k = 0; k < MODES; k++)
                    for (int l = 0; l < MODES; l++)
                        for (int m = 0; m < MODES; m++)
                            along[which][m] += factor[which][k][l][m] * sine[0][k * n[0] + i] * sine[1][l * n[1] + j];
            const long row = row_start(g, i, j);
            for (long k = 0; k < n[2]; k++) {
                double u[2] = {0, 0};
                for (int m = 0; m < MODES; m++)
                    u[0] += along[0][m] * sine[2][m * n[2] + k], u[1] += along[1][m] * sine[2][m * n[2] + k];
                if (write != NULL) write[row + k] = u[0];
                if (found != NULL) sums[4] += found[row + k] * found[row + k];
                for (int which = 0; found != NULL && which < 2; which++) {
                    const double difference = found[row + k] - u[which];
                    sums[2 * which] += difference * difference;
                    sums[2 * which + 1] += u[which] * u[which];
                }
            }
        }
    for (int d = 0; d < 3; d++) free(sine[d]);
    WORK(60 * own_cells(g));
}

/* The table holds a path through all its sites, site -> (A site + C) mod size, a full period for any power of two. */
static const uint32_t HOP_FACTOR = 2891336453u, HOP_SHIFT = 1442695041u;

KERNEL void build_table(Site *table, uint64_t sites) {
    for (uint64_t site = 0; site < sites; site++)
        table[site].next = (HOP_FACTOR * (uint32_t)site + HOP_SHIFT) & (uint32_t)(sites - 1);
}

/* Where `hops` hops lead, by squaring the affine map: what table_lookup must have found. */
static uint32_t jump(uint32_t site, uint64_t sites, unsigned long long hops) {
    uint32_t factor = HOP_FACTOR, shift = HOP_SHIFT;
    for (; hops > 0; hops /= 2) {
        if (hops % 2) site = factor * site + shift;
        shift += factor * shift, factor *= factor;
    }
    return site & (uint32_t)(sites - 1);
}

/* Largest relative difference of the material law from libm's. */
static double material_error(const Grid *g, const double *u, const double *rate) {
    double worst = 0;
    for (long i = 0; i < g->box.extent[0]; i++)
        for (long j = 0; j < g->box.extent[1]; j++)
            for (long k = row_start(g, i, j); k < row_start(g, i, j) + g->box.extent[2]; k++) {
                const double kelvin = temperature(u[k]);
                double right = 0;
                for (int reaction = 0; reaction < REACTIONS; reaction++) right += exp(-ACTIVATION[reaction] / kelvin);
                right *= pow(kelvin, 1.5);
                const double difference = fabs(rate[k] - right) / right;
                if (!(difference <= worst)) worst = isnan(difference) ? 1 : difference;
            }
    return worst;
}

#endif
