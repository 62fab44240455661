/*
 * Kernels of known nature: each is one function that is bound by one thing, whatever compiler made it.
 *
 * Working sets are set by the sizes of the caches (--l1, --l2, --l3, in bytes): half of a level for what lives in it, in
 * the last, which others may share, what is as far above the second as below it; four times the last for memory, or what
 * --far says: of a cache that seems to be smaller than it is, as addresses are hard to translate, streams have more. Every
 * kernel runs as many rounds as --rounds says, so that a sampler sees all of them; the work of a kernel does not depend on
 * data.
 *
 *   mpicc -O2 -g microkernels.c -o microkernels -lm && mpirun -n 1 ./microkernels --rounds 4
 *
 *   computation      polynomial, division, square_root, recurrence, integer_hash, matrix_product, bytes_in_cache,
 *                    in_l1, unpredictable
 *   cache            in_l2 and in_l3 (vector loads that use all of a line and do next to nothing with it)
 *   bandwidth        sum_memory, copy_memory, triad_memory, stencil_memory
 *   latency          chase_memory and chase_l3 (each address is what the last load brought),
 *                    gather_memory and update_memory (addresses are known, and a line is used once)
 */
#include <getopt.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define KERNEL __attribute__((noipa, used))
#else
#define KERNEL __attribute__((noinline, used))
#endif
#if defined(__x86_64__) && defined(__GNUC__) /* loads of half a line: what a cache level delivers, not what decoding does */
#define WIDE __attribute__((target("avx2")))
#else
#define WIDE
#endif
typedef double Vector __attribute__((vector_size(32)));
typedef struct { /* fills a cache line */
    uint64_t next, pad[7];
} Node;

static size_t l1 = 32 << 10, l2 = 1 << 20, l3 = 32 << 20, far = 0;
static long rounds = 1;

/* ---- computation: operands stay in registers or in the first cache ---- */

/* Independent polynomials of degree 15 on registers: floating-point throughput. */
KERNEL double polynomial(long n) {
    double a[8], sum = 0;
    for (int i = 0; i < 8; i++) a[i] = 0.5 + 0.01 * i;
    for (long k = 0; k < n; k++)
        for (int i = 0; i < 8; i++) {
            double x = a[i], p = 1;
            for (int d = 0; d < 15; d++) p = p * x + 0.25;
            a[i] = 0.5 + 1e-9 * p;
        }
    for (int i = 0; i < 8; i++) sum += a[i];
    return sum;
}

/* Each quotient is the next divisor: the divider's latency. */
KERNEL double division(long n) {
    double x = 1.5;
    for (long k = 0; k < n; k++) x = 2.25 / x + 1e-3;
    return x;
}

static inline double root(double x) {
#if defined(__x86_64__)
    __asm__("sqrtsd %0, %0" : "+x"(x));
#else
    x = __builtin_sqrt(x);
#endif
    return x;
}

/* Each root is the next radicand. */
KERNEL double square_root(long n) {
    double x = 2;
    for (long k = 0; k < n; k++) x = root(x + 1.0);
    return x;
}

/* A chain of additions in order, as a sum without reordering is. */
KERNEL double recurrence(const double *a, long n, long repeats) {
    double sum = 0;
    for (long r = 0; r < repeats; r++)
        for (long k = 0; k < n; k++) sum = sum * 0.999 + a[k];
    return sum;
}

/* Multiplications, shifts and exclusive-ors of integers (the mixing steps of splitmix64). */
KERNEL uint64_t integer_hash(long n) {
    uint64_t x = 88172645463325252u, sum = 0;
    for (long k = 0; k < n; k++) {
        uint64_t z = (x += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        sum ^= z ^ (z >> 31);
    }
    return sum;
}

/* C = C + A B in blocks that stay in the first cache. */
KERNEL void matrix_product(long n, const double *restrict a, const double *restrict b, double *restrict c) {
    enum { BLOCK = 24 };
    for (long i0 = 0; i0 < n; i0 += BLOCK)
        for (long k0 = 0; k0 < n; k0 += BLOCK)
            for (long j0 = 0; j0 < n; j0 += BLOCK)
                for (long i = i0; i < i0 + BLOCK; i++)
                    for (long k = k0; k < k0 + BLOCK; k++) {
                        const double f = a[i * n + k];
                        for (long j = j0; j < j0 + BLOCK; j++) c[i * n + j] += f * b[k * n + j];
                    }
}

/* Counts letters of a text that stays in the first cache, a byte at a time. */
KERNEL long bytes_in_cache(const unsigned char *text, long n, long repeats) {
    long found = 0, words = 0;
    for (long r = 0; r < repeats; r++) {
        unsigned char before = ' ';
        for (long k = 0; k < n; k++) {
            const unsigned char c = text[k];
            found += (c | 32) == 'e';
            words += (before == ' ') & (c != ' ');
            before = c;
            __asm__ volatile("" : "+r"(found));
        }
    }
    return found + words;
}

/* Branches that depend on random bits: half are mispredicted. */
KERNEL long unpredictable(const unsigned char *bits, long n, long repeats) {
    uint64_t state = 1;
    long sum = 0;
    for (long r = 0; r < repeats; r++)
        for (long k = 0; k < n; k++) {
            state = state * UINT64_C(6364136223846793005) + bits[k];
            if (state >> 63) {
                sum += 3;
                __asm__ volatile("" : "+r"(sum)); /* keeps it a branch */
            } else {
                sum ^= 5;
                __asm__ volatile("" : "+r"(sum));
            }
        }
    return sum;
}

/* ---- caches and memory ---- */

/* Adds up half of each line with one vector load, eight sums, so that neither decoding nor additions stall it and the
 * lines come as fast as the level gives them. */
#define SUM(name)                                                                                              \
    KERNEL WIDE double name(const Vector *a, long lines, long repeats) {                                       \
        Vector s[8] = {{0}};                                                                                   \
        for (long r = 0; r < repeats; r++)                                                                     \
            for (long k = 0; k < 2 * lines; k += 16) {                                                         \
                s[0] += a[k], s[1] += a[k + 2], s[2] += a[k + 4], s[3] += a[k + 6];                            \
                s[4] += a[k + 8], s[5] += a[k + 10], s[6] += a[k + 12], s[7] += a[k + 14];                     \
            }                                                                                                  \
        double sum = 0;                                                                                        \
        for (int i = 0; i < 8; i++) sum += s[i][0] + s[i][1] + s[i][2] + s[i][3];                              \
        return sum;                                                                                            \
    }
SUM(in_l1)
SUM(in_l2)
SUM(in_l3)
SUM(sum_memory)

KERNEL WIDE void copy_memory(Vector *restrict to, const Vector *restrict from, long lines) {
    for (long k = 0; k < 2 * lines; k += 2) {
        to[k] = from[k], to[k + 1] = from[k + 1];
        __asm__ volatile("");
    }
}

KERNEL WIDE void triad_memory(Vector *restrict a, const Vector *restrict b, const Vector *restrict c, long lines) {
    const Vector f = {3, 3, 3, 3};
    for (long k = 0; k < 2 * lines; k++) a[k] = b[k] + f * c[k];
}

/* Three rows of a grid that none of the caches holds; each comes from memory once. */
KERNEL WIDE void stencil_memory(Vector *restrict to, const Vector *restrict from, long rows, long width) {
    const Vector centre = {0.5, 0.5, 0.5, 0.5}, side = {0.25, 0.25, 0.25, 0.25};
    for (long i = 1; i + 1 < rows; i++) {
        const Vector *restrict u = from + i * width;
        Vector *restrict v = to + i * width;
        for (long j = 0; j < width; j++) v[j] = centre * u[j] + side * (u[j - width] + u[j + width]);
    }
}

/* Follows a random cycle: one load at a time. */
#define CHASE(name)                                                \
    KERNEL uint64_t name(const Node *nodes, uint64_t at, long n) { \
        for (long k = 0; k < n; k++) at = nodes[at].next;          \
        return at;                                                 \
    }
CHASE(chase_l3)
CHASE(chase_memory)

static inline uint64_t shuffled(uint64_t x) { return (x * UINT64_C(0x9e3779b97f4a7c15)) >> 20; }

/* Loads from random lines of a table; the next address does not wait for the load. */
KERNEL uint64_t gather_memory(const Node *nodes, uint64_t mask, uint64_t first, long n) {
    uint64_t sum = 0;
    for (long k = 0; k < n; k++) sum += nodes[shuffled(first + (uint64_t)k) & mask].pad[0];
    return sum;
}

/* The same with a store to each (random access of the HPC Challenge). */
KERNEL void update_memory(Node *nodes, uint64_t mask, uint64_t first, long n) {
    for (long k = 0; k < n; k++) nodes[shuffled(first + (uint64_t)k) & mask].pad[1] ^= (uint64_t)k;
}

/* ---- set-up ---- */

static void *allocate(size_t bytes) {
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == NULL) {
        fprintf(stderr, "microkernels: no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(memory, 1, bytes);
    return memory;
}

/* One cycle through all nodes in random order (Sattolo's shuffle). */
KERNEL void link_nodes(Node *nodes, uint64_t count) {
    uint64_t state = 42;
    for (uint64_t i = 0; i < count; i++) nodes[i].next = i;
    for (uint64_t i = count - 1; i > 0; i--) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t j = (state >> 33) % i, kept = nodes[i].next;
        nodes[i].next = nodes[j].next;
        nodes[j].next = kept;
    }
}

KERNEL void fill(double *a, long n) {
    for (long k = 0; k < n; k++) a[k] = 1e-3 * (double)(k % 1000);
}

static size_t power_below(size_t bytes) {
    size_t power = 64;
    while (2 * power <= bytes) power *= 2;
    return power;
}

/* The power of two nearest below the geometric mean. */
static size_t between(size_t low, size_t high) {
    size_t power = 64;
    while ((double)(2 * power) * (double)(2 * power) <= (double)low * (double)high) power *= 2;
    return power;
}

static const char *const HELP =
    "usage: microkernels [--rounds R] [--l1 B] [--l2 B] [--l3 B] [--far B]\n"
    "  --rounds R          how often each kernel's work is done (default 1: some milliseconds each)\n"
    "  --l1 B, --l2 B, --l3 B   bytes of the caches (default 32768, 1048576, 33554432)\n"
    "  --far B             what memory has to serve (default 4 times the third)\n";

static size_t number(const char *text, size_t low, size_t high) {
    char *end;
    const unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != 0 || value < low || value > high) {
        fprintf(stderr, "microkernels: '%s' is not a whole number from %zu to %zu\n", text, low, high);
        exit(2);
    }
    return (size_t)value;
}

static void options(int argc, char **argv) {
    static const struct option known[] = {{"rounds", 1, 0, 'r'}, {"l1", 1, 0, '1'}, {"l2", 1, 0, '2'},
                                          {"l3", 1, 0, '3'},     {"far", 1, 0, 'f'},  {"help", 0, 0, 'h'}, {0}};
    for (int given; (given = getopt_long(argc, argv, "", known, NULL)) != -1;) switch (given) {
            case 'r': rounds = (long)number(optarg, 1, 1000000); break;
            case '1': l1 = number(optarg, 1 << 10, 1 << 30); break;
            case '2': l2 = number(optarg, 1 << 12, 1 << 30); break;
            case '3': l3 = number(optarg, 1 << 14, 1 << 30); break;
            case 'f': far = number(optarg, 1 << 16, (size_t)1 << 34); break;
            case 'h': fputs(HELP, stdout); exit(0);
            default: fputs(HELP, stderr); exit(2);
        }
    if (optind < argc) {
        fprintf(stderr, "microkernels: no argument '%s' is taken\n", argv[optind]);
        exit(2);
    }
}

int main(int argc, char **argv) {
    double check = 0;
    options(argc, argv);
    MPI_Init(&argc, &argv);
    const size_t large = power_below(far ? far : 4 * l3), inner = between(l2, l3);
    Node *nodes = allocate(large), *near = allocate(inner);
    double *a = allocate(large), *b = allocate(large / 2);
    const long lines = (long)(large / 64), n = 96, bulk = (long)(l3 > (32 << 20) ? l3 : 32 << 20);
    const long passes = 1 + 4 * bulk / (long)large; /* small caches are swept more often, so that a sampler sees it */
    unsigned char *text = allocate(l1 / 2);
    for (size_t k = 0; k < l1 / 2; k++) text[k] = (unsigned char)(k * 2654435761u >> 7);
    link_nodes(nodes, large / sizeof(Node));
    link_nodes(near, inner / sizeof(Node));
    fill(a, (long)(large / 8));
    fill(b, (long)(large / 16));
    for (long r = 0; r < rounds; r++) {
        check += polynomial(100000) + division(800000) + square_root(600000) + (double)integer_hash(3000000);
        check += recurrence(a, (long)(l1 / 16), (long)(2000000 / (l1 / 16)));
        for (int times = 0; times < 8; times++) matrix_product(n, b, b + n * n, b + 2 * n * n);
        check += (double)bytes_in_cache(text, (long)(l1 / 2), (long)(6000000 / (l1 / 2)));
        check += (double)unpredictable(text, (long)(l1 / 2), (long)(700000 / (l1 / 2)));
        check += in_l1((const Vector *)a, (long)(l1 / 128), 64 * bulk / (long)l1);
        check += in_l2((const Vector *)a, (long)(l2 / 128), 40 * bulk / (long)l2);
        check += in_l3((const Vector *)a, (long)(inner / 64), 12 * bulk / (long)inner + 1);
        check += sum_memory((const Vector *)a, lines, passes);
        for (long times = 0; times < passes; times++) {
            copy_memory((Vector *)a, (const Vector *)b, lines / 2);
            triad_memory((Vector *)a, (const Vector *)b, (const Vector *)(a + large / 16), lines / 2);
            stencil_memory((Vector *)b, (const Vector *)a, (long)(large / 2 / 32) / 1024, 1024);
        }
        check += (double)chase_memory(nodes, (uint64_t)r, 30000) + (double)chase_l3(near, (uint64_t)r, 60000);
        check += (double)gather_memory(nodes, large / sizeof(Node) - 1, 2 * (uint64_t)r << 22, 1500000);
        update_memory(nodes, large / sizeof(Node) - 1, (2 * (uint64_t)r + 1) << 22, 1500000);
    }
    printf("check %.17g\n", check);
    free(nodes), free(near), free(a), free(b), free(text);
    MPI_Finalize();
    return 0;
}
