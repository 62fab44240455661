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
 * Here are the solver and the program; its kernels, messages, check and options are headers next to it, compiled as one.
 *
 *   mpicc -O2 -g heat.c -o heat -lm && mpirun -n 8 ./heat --n 16
 */
#include "heat_check.h"
#include "heat_messages.h"
#include "heat_options.h"

#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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
