/*
 * 3-D heat conduction by implicit Euler steps and conjugate gradients on a Cartesian process grid.
 *
 * Solves u_t = div grad u on the unit cube, u = 0 on its faces, with N_d cells per dimension and the spacing
 * h_d = 1 / (N_d + 1) of their centres.  One step solves (I + dt L_h) u_new = u_old by a fixed number of CG
 * iterations.  The initial field is a sum of 27 sine modes; each is an eigenvector of the 7-point operator, so the
 * discrete solution after s steps is known: mode (k_1, k_2, k_3) shrinks by
 * (1 + sum_d 4 c_d sin^2(k_d pi h_d / 2))^-s with c_d = dt / h_d^2.  The error left is what CG leaves, in every step
 * at most 2 sqrt(kappa) ((sqrt(kappa) - 1) / (sqrt(kappa) + 1))^iterations, kappa = 1 + 4 sum_d c_d.
 *
 * Every kernel is one function that compilers neither inline, clone, split nor merge, and none of them does work that
 * depends on data: instructions and loads of a rank follow from its grid, the options and the number of ranks.
 *
 *   mpicc -O2 -g heat.c -o heat -lm && mpirun -n 8 ./heat --n 16
 */
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define KERNEL __attribute__((noipa, used)) /* no inlining, cloning, splitting, nor merging of equal bodies */
#elif defined(__GNUC__) && !defined(__clang__)
#define KERNEL __attribute__((noinline, noclone, used))
#else
#define KERNEL __attribute__((noinline, used))
#endif
/* Keeps a copying loop a loop of its kernel: compilers would call memcpy, and a profile would give the work to libc. */
#define KEEP_LOOP() __asm__ volatile("")
/* Operations of a kernel: a simulator of machines charges them instead of running a clock (benchmarks/simulated.h). */
#ifndef WORK
#define WORK(operations) ((void)0)
#endif

enum { MODES = 3, FACES = 6, AROUND = 27, REACTIONS = 4 };
static const double PI = 3.14159265358979323846;

typedef struct {
    long n, total, iterations, steps, table, crash;
    double imbalance, diffusion, check;
    int bug, wait;
} Options;

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

/* ---- numerical kernels ---- */

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

/* ---- halo exchange ---- */

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
    WORK(8.0 * ranks);
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

/* ---- solver ---- */

/* `iterations` steps of conjugate gradients from u for A u = b, where b is u as it was; returns |r| / |b|. */
KERNEL double solve_step(Grid *g, double *u, double *r, double *p, double *q, long iterations) {
    const double norm = global_dot(g, u, u);
    exchange_halo(g, u);
    apply_operator(g, u, q);
    xpby(g, u, 0, r);
    axpy(g, -1, q, r);
    xpby(g, r, 0, p);
    double rr = global_dot(g, r, r);
    const double floor = 1e-32 * norm; /* past rounding the same work goes on, but changes nothing */
    for (long it = 0; it < iterations; it++) {
        exchange_halo(g, p);
        apply_operator(g, p, q);
        const double pq = global_dot(g, p, q), alpha = rr > floor ? rr / pq : 0;
        axpy(g, alpha, p, u);
        axpy(g, -alpha, q, r);
        const double next = global_dot(g, r, r), beta = rr > floor ? next / rr : 0;
        xpby(g, r, beta, p);
        rr = next;
    }
    return sqrt(rr / norm);
}

/* Thermal energy of this rank's cells, with the heat capacity's temperature law summed as a series. */
KERNEL double ordered_energy(const Grid *g, const double *u) {
    double sum = 0;
    for (long i = 0; i < g->box.extent[0]; i++)
        for (long j = 0; j < g->box.extent[1]; j++)
            for (long k = 0; k < g->box.extent[2]; k++) {
                const double x = 1e-3 * temperature(u[row_start(g, i, j) + k]);
                double capacity = 0;
                for (int term = 8; term > 0; term--) capacity = (capacity + 1.0 / term) * x;
                sum += capacity * x;
            }
    return sum;
}

/* --wait: the energy is handed on from rank to rank, and each starts its sum only when the one before has sent. */
KERNEL double serialised_section(Grid *g, const double *u) {
    double before = 0;
    if (g->rank > 0) MPI_Recv(&before, 1, MPI_DOUBLE, g->rank - 1, FACES, g->comm, MPI_STATUS_IGNORE);
    before += ordered_energy(g, u);
    if (g->rank + 1 < g->ranks) {
        MPI_Send(&before, 1, MPI_DOUBLE, g->rank + 1, FACES, g->comm);
        g->messages++;
        g->bytes += (long long)sizeof(double);
    }
    return before;
}

/* ---- set-up and check ---- */

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

/* ---- command line ---- */

static const char HELP[] =
    "usage: heat [options]\n"
    "3-D heat conduction by implicit Euler steps and conjugate gradients, checked against the known solution.\n\n"
    "  --n N              cells per rank and dimension (weak scaling; default 16)\n"
    "  --total N          cells per dimension in total (strong scaling; uneven parts where it does not divide)\n"
    "  --iterations N     CG iterations a step, always all of them (default 25)\n"
    "  --steps N          time steps (default 2)\n"
    "  --diffusion X      diffusion number dt / h^2, mean of the three dimensions (default 0.5)\n"
    "  --lookup-table S   bytes of the look-up table per rank, such as 512Ki or 1Gi, rounded down (default 4Mi)\n"
    "  --imbalance F      rank r does 1 + F r / (ranks - 1) times the work in material_law (default 0)\n"
    "  --bug              plant a scalability bug: find_neighbour searches a list of all ranks in every exchange\n"
    "  --wait             plant a wait state: serialised_section hands a sum on from rank to rank\n"
    "  --crash RANK       that rank ends by SIGSEGV after its first step\n"
    "  --check TOL        largest relative error against the discrete solution (default: the bound that CG keeps)\n"
    "  --help             this text\n"
    "exit status: 0 results right, 1 results wrong or grid too small for the ranks, 2 bad options\n";

/* Ends all ranks alike: one line from rank 0. */
static void quit(int status, const char *format, ...) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        FILE *out = status == 0 ? stdout : stderr;
        va_list arguments;
        va_start(arguments, format);
        if (status != 0) fputs("heat: ", out);
        vfprintf(out, format, arguments);
        va_end(arguments);
        fflush(out);
    }
    MPI_Finalize();
    exit(status);
}

static long whole(const char *option, const char *text, long low, long high) {
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < low || value > high)
        quit(2, "--%s takes a whole number from %ld to %ld, not '%s'\n", option, low, high, text);
    return value;
}

static double real(const char *option, const char *text, double low, double high) {
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= low && value <= high))
        quit(2, "--%s takes a number from %g to %g, not '%s'\n", option, low, high, text);
    return value;
}

static long bytes(const char *option, const char *text) {
    static const char *const units[] = {"", "Ki", "Mi", "Gi"};
    char *end;
    double value = strtod(text, &end);
    size_t unit = 0;
    while (unit < 4 && strcmp(end, units[unit]) != 0) unit++;
    for (size_t i = 0; i < unit && unit < 4; i++) value *= 1024;
    if (end == text || unit == 4 || !(value >= 64 && value <= 17179869184.0))
        quit(2, "--%s takes bytes from 64 to 16Gi, such as 4Mi, not '%s'\n", option, text);
    return (long)value;
}

static Options parse(int argc, char **argv) {
    static const struct option known[] = {
        {"n", required_argument, NULL, 'n'},         {"total", required_argument, NULL, 't'},
        {"iterations", required_argument, NULL, 'i'}, {"steps", required_argument, NULL, 's'},
        {"diffusion", required_argument, NULL, 'd'}, {"lookup-table", required_argument, NULL, 'l'},
        {"imbalance", required_argument, NULL, 'm'}, {"bug", no_argument, NULL, 'b'},
        {"wait", no_argument, NULL, 'w'},            {"crash", required_argument, NULL, 'c'},
        {"check", required_argument, NULL, 'k'},     {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    Options o = {.iterations = 25, .steps = 2, .table = 4 << 20, .crash = -1, .diffusion = 0.5, .check = -1};
    int key, at = 0;
    opterr = 0;
    while ((key = getopt_long(argc, argv, ":", known, &at)) != -1) {
        const char *name = key == '?' || key == ':' ? "" : known[at].name;
        switch (key) {
        case 'n': o.n = whole(name, optarg, 1, 4096); break;
        case 't': o.total = whole(name, optarg, 1, 1 << 20); break;
        case 'i': o.iterations = whole(name, optarg, 1, 1000000); break;
        case 's': o.steps = whole(name, optarg, 1, 1000000); break;
        case 'd': o.diffusion = real(name, optarg, 1e-6, 1e6); break;
        case 'l': o.table = bytes(name, optarg); break;
        case 'm': o.imbalance = real(name, optarg, 0, 1000); break;
        case 'b': o.bug = 1; break;
        case 'w': o.wait = 1; break;
        case 'c': o.crash = whole(name, optarg, 0, INT_MAX); break;
        case 'k': o.check = real(name, optarg, 0, 1e300); break;
        case 'h': quit(0, "%s", HELP); break;
        case ':': quit(2, "option '%s' needs a value; --help lists the options\n", argv[optind - 1]); break;
        default: quit(2, "no option '%s'; --help lists them\n", argv[optind - 1]);
        }
    }
    if (optind < argc) quit(2, "no argument '%s' is taken; --help lists the options\n", argv[optind]);
    if (o.n && o.total) quit(2, "--n and --total exclude each other: cells per rank, or in total\n");
    if (!o.n && !o.total) o.n = 16;
    return o;
}

/* ---- program ---- */

static void set_up(Grid *g, const Options *o) {
    const int periods[3] = {0, 0, 0};
    double inverse = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &g->ranks);
    MPI_Dims_create(g->ranks, 3, g->dims);
    MPI_Cart_create(MPI_COMM_WORLD, 3, g->dims, periods, 0, &g->comm);
    MPI_Comm_rank(g->comm, &g->rank);
    MPI_Cart_coords(g->comm, g->rank, 3, g->at);
    if (o->crash >= g->ranks) quit(2, "--crash %ld: there are ranks 0 to %d\n", o->crash, g->ranks - 1);
    for (int d = 0; d < 3; d++) {
        g->cells[d] = o->total ? o->total : o->n * g->dims[d];
        if (g->cells[d] < g->dims[d])
            quit(1, "%ld cells cannot be shared by %d ranks along dimension %d; take more cells or fewer ranks\n",
                 g->cells[d], g->dims[d], d);
        g->box.low[d] = (int)(g->cells[d] * g->at[d] / g->dims[d]);
        g->box.extent[d] = (int)(g->cells[d] * (g->at[d] + 1) / g->dims[d]) - g->box.low[d];
        g->side[d] = g->box.extent[d] + 2;
        inverse += (double)(g->cells[d] + 1) * (double)(g->cells[d] + 1);
        MPI_Cart_shift(g->comm, d, 1, &g->neighbour[2 * d], &g->neighbour[2 * d + 1]);
    }
    g->stride[2] = 1, g->stride[1] = g->side[2], g->stride[0] = g->side[1] * g->side[2];
    g->dt = 3 * o->diffusion / inverse;
    g->diagonal = 1 + 6 * o->diffusion;
    for (int d = 0; d < 3; d++) g->coefficient[d] = g->dt * (double)(g->cells[d] + 1) * (double)(g->cells[d] + 1);
    for (int face = 0; face < FACES; face++) {
        g->send[face] = allocate((size_t)face_cells(g, face), sizeof(double));
        g->receive[face] = allocate((size_t)face_cells(g, face), sizeof(double));
    }
    if (o->bug) {
        g->boxes = allocate((size_t)g->ranks, sizeof(Box));
        g->collectives++, g->collective_bytes += (long long)sizeof(Box);
        MPI_Allgather(&g->box, sizeof(Box), MPI_BYTE, g->boxes, sizeof(Box), MPI_BYTE, g->comm);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const Options o = parse(argc, argv);
    Grid g = {.comm = MPI_COMM_NULL};
    set_up(&g, &o);

    double *field[5]; /* u, r, p, q and the rate of the material law */
    for (int f = 0; f < 5; f++) field[f] = allocate(volume(&g), sizeof(double));
    double *u = field[0], *rate = field[4], sums[5] = {0}, residual = 0, energy = 0;
    uint64_t sites = 1;
    while (2 * sites * sizeof(Site) <= (uint64_t)o.table) sites *= 2;
    Site *table = allocate(sites, sizeof(Site));
    const uint32_t first = (uint32_t)g.rank & (uint32_t)(sites - 1);
    uint32_t site = first;
    build_table(table, sites);
    known_solution(&g, 0, u, NULL, NULL);

    const long rows = (long)g.box.extent[0] * g.box.extent[1], hops = rows * g.box.extent[2];
    const double share = g.ranks > 1 ? (double)g.rank / (g.ranks - 1) : 0;
    const long all_rows = rows + lround(o.imbalance * share * (double)rows);
    g.collectives++;
    MPI_Barrier(g.comm);
    const double start = MPI_Wtime();
    for (long step = 0; step < o.steps; step++) {
        residual = solve_step(&g, u, field[1], field[2], field[3], o.iterations);
        material_law(&g, u, rate, all_rows);
        site = table_lookup(table, site, hops);
        if (o.wait) energy = serialised_section(&g, u);
        if (o.crash == g.rank) {
            signal(SIGSEGV, SIG_DFL);
            raise(SIGSEGV);
        }
    }
    double worst[3] = {MPI_Wtime() - start, 0, 0};

    known_solution(&g, o.steps, NULL, u, sums);
    worst[1] = material_error(&g, u, rate);
    worst[2] = site != jump(first, sites, (unsigned long long)hops * (unsigned long long)o.steps);
    if (o.wait) { /* the sum that was handed on must be the sum of all ranks' parts */
        double total = ordered_energy(&g, u);
        reduce_all(&g, &total, 1, MPI_SUM);
        if (g.rank == g.ranks - 1 && fabs(energy - total) > 1e-10 * fabs(total)) worst[2] = 1;
    }
    reduce_all(&g, sums, 5, MPI_SUM);
    reduce_all(&g, worst, 3, MPI_MAX);
    g.collectives++, g.collective_bytes += 4 * (long long)sizeof(long long);
    long long counts[4] = {g.messages, g.bytes, g.collectives, g.collective_bytes};
    MPI_Allreduce(MPI_IN_PLACE, counts, 4, MPI_LONG_LONG, MPI_SUM, g.comm);

    const double root = sqrt(1 + 12 * o.diffusion); /* of the condition number's bound */
    const double bound = (double)o.steps * (2 * root * pow((root - 1) / (root + 1), (double)o.iterations) + 1e-13);
    const double tolerance = o.check < 0 ? bound : o.check, error = sqrt(sums[0] / sums[1]);
    const int right = error <= tolerance && worst[1] < 1e-12 && worst[2] == 0;
    if (g.rank == 0) {
        printf("grid: %ld x %ld x %ld\n", g.cells[0], g.cells[1], g.cells[2]);
        printf("processes: %d x %d x %d\n", g.dims[0], g.dims[1], g.dims[2]);
        printf("steps: %ld\niterations: %ld\nresidual: %.3e\n", o.steps, o.iterations, residual);
        printf("error (discrete solution): %.3e\nerror allowed: %.3e\n", error, tolerance);
        printf("error (continuous solution): %.3e\n", sqrt(sums[2] / sums[3]));
        printf("error (material law): %.3e\ntable path and sums: %s\n", worst[1], worst[2] == 0 ? "right" : "wrong");
        printf("norm of the solution: %.15e\n", sqrt(sums[4]));
        printf("solve time: %.6f s\n", worst[0]);
        printf("messages sent: %lld\nbytes sent: %lld\n", counts[0], counts[1]);
        printf("collective calls: %lld\ncollective bytes: %lld\n", counts[2], counts[3]);
        printf("%s\n", right ? "check passed" : "check FAILED");
    }
    for (int f = 0; f < 5; f++) free(field[f]);
    for (int face = 0; face < FACES; face++) free(g.send[face]), free(g.receive[face]);
    free(table), free(g.boxes);
    MPI_Comm_free(&g.comm);
    MPI_Finalize();
    return right ? 0 : 1;
}
