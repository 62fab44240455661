/*
 * Load-to-use latency of a working set, by following a random cycle of pointers through it.
 *
 *   latency BYTES STRIDE WINDOW CPU SEED SECONDS SAMPLES
 *
 * One pointer stands every STRIDE bytes: twice the line size keeps the neighbour line that prefetchers fetch along
 * out of the way.  The cycle visits all pointers of one WINDOW in random order before it goes to the next window, so
 * that a page is entered once for many loads; large pages are asked for, where the system gives them on demand.
 * Reports loads and processor time, for a warm-up and then SAMPLES times; loads are doubled until a sample takes SECONDS.
 *
 * Linking writes the nodes in the order of the cycle, so that the caches are left as a walk through all of it would; one
 * walk more, up to WARM loads, cleans the lines that they write back.  A sample goes on where the last one ended and need
 * not go round: all parts of the cycle are equal.
 */
#define _GNU_SOURCE
#include "timing.h"
#include <stdint.h>
#include <sys/mman.h>

enum { UNROLLED = 16, FEWEST = 1024, WARM = 1 << 22 };
static const size_t HUGE = (size_t)2 << 20; /* bytes of a large page */

static uint64_t state;

/* xorshift64* (Vigna, ACM Trans. Math. Softw. 42 (2016) 30): a fixed seed repeats a cycle on every machine. */
static uint64_t draw(uint64_t below) {
    state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
    return (state * UINT64_C(2685821657736338717) >> 11) % below;
}

static void shuffle(uint32_t *items, size_t count) {
    for (size_t i = count; i > 1; i--) {
        const size_t j = (size_t)draw(i);
        const uint32_t kept = items[i - 1];
        items[i - 1] = items[j], items[j] = kept;
    }
}

/* Links the nodes into one cycle, window by window; both orders are shuffled. */
static void link_cycle(char *memory, size_t nodes, size_t stride, size_t window) {
    const size_t windows = (nodes + window - 1) / window;
    uint32_t *order = malloc(windows * sizeof *order), *inner = malloc(window * sizeof *inner);
    void **previous = NULL, **first = NULL;
    if (order == NULL || inner == NULL) stop("no memory for the measurement");
    for (size_t w = 0; w < windows; w++) order[w] = (uint32_t)w;
    shuffle(order, windows);
    for (size_t w = 0; w < windows; w++) {
        const size_t start = order[w] * window, count = nodes - start < window ? nodes - start : window;
        for (size_t i = 0; i < count; i++) inner[i] = (uint32_t)i;
        shuffle(inner, count);
        for (size_t i = 0; i < count; i++) {
            void **node = (void **)(memory + (start + inner[i]) * stride);
            if (previous != NULL) *previous = node;
            if (first == NULL) first = node;
            previous = node;
        }
    }
    *previous = first;
    free(order), free(inner);
}

/* Memory on large pages where there are any, so that translations are not what is waited for. */
static char *pages_of(size_t bytes) {
    void *memory = NULL;
    if (bytes < HUGE) return lines_of(bytes);
    const size_t whole = (bytes + HUGE - 1) / HUGE * HUGE;
    if (posix_memalign(&memory, HUGE, whole) != 0) stop("no memory for the measurement");
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, whole, MADV_HUGEPAGE); /* refused where the kernel has none: ordinary pages then */
#endif
    return memory;
}

static void **follow(void **at, size_t rounds) {
    for (size_t r = 0; r < rounds; r++)
        for (int i = 0; i < UNROLLED; i++) {
            at = *at;
            __asm__ volatile("" : "+r"(at)); /* each load stays, and waits for the one before */
        }
    return at;
}

int main(int argc, char **argv) {
    if (argc != 8) stop("usage: latency BYTES STRIDE WINDOW CPU SEED SECONDS SAMPLES");
    const size_t stride = (size_t)number(argv[2], sizeof(void *)), bytes = (size_t)number(argv[1], (double)stride);
    const size_t window = (size_t)number(argv[3], (double)stride) / stride, nodes = bytes / stride;
    const double least = number(argv[6], 0);
    const int samples = (int)number(argv[7], 1);
    pin((int)number(argv[4], -1));
    state = (uint64_t)number(argv[5], 1);
    char *memory = pages_of(bytes);
    link_cycle(memory, nodes, stride, window);

    void **at = (void **)memory;
    at = follow(at, (nodes < WARM ? nodes : WARM) / UNROLLED + 1);
    size_t rounds = nodes / UNROLLED + 1;
    if (rounds > FEWEST) rounds = FEWEST;
    for (int s = -1; s < samples; s++) { /* the first is the warm-up, and finds out how long to go on */
        double seconds;
        for (;;) {
            const double start = processor_time();
            at = follow(at, rounds);
            seconds = processor_time() - start;
            if (s >= 0 || seconds >= least || rounds > ((size_t)1 << 40)) break;
            rounds *= 2;
        }
        report((double)rounds * UNROLLED, seconds, 1);
    }
    const int lost = at == NULL; /* the end of the path is used, so that it is walked */
    free(memory);
    return lost;
}
