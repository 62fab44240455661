/*
 * Kernels whose reuse of memory differs: what caches of any size serve of them is judged by benchmarks/levels.py.
 * The argument n is the edge of a square or, by n^(2/3), of a cube: all kernels have about n^2 numbers.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define KERNEL __attribute__((noinline)) static
static unsigned long long state = 99;
static unsigned draw(void) { return (unsigned)((state = state * 6364136223846793005ULL + 1442695040888963407ULL) >> 33); }

KERNEL void triad(double *a, const double *b, const double *c, long n) {
    for (long i = 0; i < n; i++) a[i] = b[i] + 3.0 * c[i];
}

KERNEL void stencil(double *a, const double *b, long n) {
    for (long i = 1; i < n - 1; i++)
        for (long j = 1; j < n - 1; j++)
            for (long k = 1; k < n - 1; k++) {
                const double *at = b + (i * n + j) * n + k;
                a[(i * n + j) * n + k] = at[0] + at[1] + at[-1] + at[n] + at[-n] + at[n * n] + at[-n * n];
            }
}

KERNEL double gather(const double *a, const int *index, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += a[index[i]];
    return sum;
}

KERNEL void blocked(double *c, const double *a, const double *b, long n) {
    enum { B = 20 };
    for (long ii = 0; ii < n; ii += B)
        for (long jj = 0; jj < n; jj += B)
            for (long kk = 0; kk < n; kk += B)
                for (long i = ii; i < ii + B && i < n; i++)
                    for (long j = jj; j < jj + B && j < n; j++) {
                        double sum = c[i * n + j];
                        for (long k = kk; k < kk + B && k < n; k++) sum += a[i * n + k] * b[j * n + k];
                        c[i * n + j] = sum;
                    }
}

KERNEL long hash(const int *table, long size, long count) {
    long sum = 0;
    for (long i = 0; i < count; i++) sum += table[draw() % size];
    return sum;
}

typedef struct Node { struct Node *less, *more; long key, value[2]; } Node;

KERNEL long walk(const Node *root, long size, long count) {
    long sum = 0;
    for (long i = 0; i < count; i++) {
        long key = draw() % size;
        const Node *at = root;
        while (at->key != key) at = key < at->key ? at->less : at->more;
        sum += at->value[0];
    }
    return sum;
}

KERNEL void transpose(double *a, const double *b, long n) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) a[j * n + i] = b[i * n + j];
}

KERNEL double band(const double *matrix, const double *x, double *y, long rows, long width) {
    for (long i = 0; i < rows; i++) {
        double sum = 0;
        for (long k = 0; k < 9; k++) {
            long column = i + (k - 4) * width;
            if (column >= 0 && column < rows) sum += matrix[9 * i + k] * x[column];
        }
        y[i] = sum;
    }
    return y[0];
}

static Node *plant(Node *nodes, const int *order, long low, long high) {
    if (low >= high) return NULL;
    long key = (low + high) / 2;
    Node *node = nodes + order[key];
    *node = (Node){plant(nodes, order, low, key), plant(nodes, order, key + 1, high), key, {key, 0}};
    return node;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    long n = argc > 1 ? atol(argv[1]) : 64, all = n * n, edge = lround(cbrt((double)all));
    double *a = calloc(all, sizeof *a), *b = calloc(all, sizeof *b), *c = calloc(all, sizeof *c);
    double *cube = calloc(edge * edge * edge, sizeof *cube), *next = calloc(edge * edge * edge, sizeof *next);
    double *matrix = calloc(9 * all, sizeof *matrix), sum = 0;
    int *order = malloc(all * sizeof *order), *table = calloc(3 * all, sizeof *table);
    Node *nodes = malloc(all * sizeof *nodes);
    for (long i = 0; i < all; i++) order[i] = (int)i;
    for (long i = all - 1; i > 0; i--) {
        long other = draw() % (i + 1);
        int number = order[i];
        order[i] = order[other], order[other] = number;
    }
    Node *root = plant(nodes, order, 0, all);
    for (int turn = 0; turn < 3; turn++) {
        for (int k = 0; k < 2; k++) triad(a, b, c, all);
        for (int k = 0; k < 2; k++) stencil(next, cube, edge);
        for (int k = 0; k < 2; k++) sum += gather(b, order, all);
        if (turn == 0) blocked(c, a, b, n);
        sum += hash(table, 3 * all, 2 * all) + walk(root, all, all);
        for (int k = 0; k < 2; k++) transpose(a, b, n);
        for (int k = 0; k < 2; k++) sum += band(matrix, b, a, all, n);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("%g\n", sum);
    MPI_Finalize();
    return 0;
}
