/* Tables of one thread: dense items and an index of open addressing. Memory comes from mmap, so that neither the
 * program's allocator nor a tool that watches it takes part, and a signal handler may read it. */
#define _GNU_SOURCE
#include "tracer.h"

#include <string.h>
#include <sys/mman.h>

static void *pages(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static uint32_t slot_of(uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ (b << 32 | b >> 32)) * UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 29;
    h *= UINT64_C(0xBF58476D1CE4E5B9);
    return (uint32_t)(h >> 32);
}

int rs_table_make(rs_table *table, uint32_t item, uint32_t room, uint32_t limit)
{
    table->items = pages((size_t)item * room);
    table->index = pages(sizeof(uint32_t) * room * 2);
    table->item = item;
    table->room = room;
    table->mask = room * 2 - 1;
    table->limit = limit;
    table->used = 1; /* item 0 takes what finds no place, its key is never asked for */
    table->dropped = 0;
    if (table->items == NULL || table->index == NULL)
        return -1;
    ((rs_key *)table->items)->a = ((rs_key *)table->items)->b = UINT64_MAX;
    return 0;
}

static int grow(rs_table *table)
{
    uint32_t room = table->room * 2, mask = room * 2 - 1, i;
    char *items;
    uint32_t *index;
    if (room > table->limit)
        return -1;
    index = pages(sizeof(uint32_t) * room * 2);
    if (index == NULL)
        return -1;
    items = mremap(table->items, (size_t)table->item * table->room, (size_t)table->item * room, MREMAP_MAYMOVE);
    if (items == MAP_FAILED) {
        munmap(index, sizeof(uint32_t) * room * 2);
        return -1;
    }
    table->items = items;
    for (i = 1; i < table->used; i++) {
        const rs_key *key = (const rs_key *)(items + (size_t)table->item * i);
        uint32_t slot = slot_of(key->a, key->b) & mask;
        while (index[slot] != 0)
            slot = (slot + 1) & mask;
        index[slot] = i;
    }
    munmap(table->index, sizeof(uint32_t) * table->room * 2);
    table->index = index;
    table->room = room;
    table->mask = mask;
    return 0;
}

/* Place of the item with key (a, b), made on first sight; place 0 when the table is full. */
uint32_t rs_table_find(rs_table *table, uint64_t a, uint64_t b)
{
    uint32_t slot = slot_of(a, b) & table->mask, at;
    rs_key *key;
    while ((at = table->index[slot]) != 0) {
        key = (rs_key *)(table->items + (size_t)table->item * at);
        if (key->a == a && key->b == b)
            return at;
        slot = (slot + 1) & table->mask;
    }
    if (table->used == table->room) {
        if (grow(table) != 0) {
            table->dropped++;
            return 0;
        }
        slot = slot_of(a, b) & table->mask;
        while (table->index[slot] != 0)
            slot = (slot + 1) & table->mask;
    }
    at = table->used;
    key = (rs_key *)(table->items + (size_t)table->item * at);
    key->a = a;
    key->b = b;
    table->index[slot] = at;
    table->used = at + 1; /* last: a signal handler that dumps the table sees whole items only */
    return at;
}

/* Tables of the calling thread, or NULL when there is no memory for them: the thread then goes unrecorded. */
rs_thread *rs_thread_new(void)
{
    rs_thread *t = pages(sizeof *t);
    if (t == NULL)
        return NULL;
    if (rs_table_make(&t->rows, sizeof(rs_row), 256, 1u << 20) != 0
        || rs_table_make(&t->peers, sizeof(rs_peer), 256, 1u << 22) != 0
        || rs_table_make(&t->phases, sizeof(rs_phase), 256, 1u << 20) != 0)
        return NULL;
    t->cpu_at = rs_now();
    t->cpu_value = rs_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    t->last_end = t->cpu_at; /* a thread's first call ends no stretch that is known to be computation */
    t->last_cpu = t->cpu_value;
    rs_lock();
    t->next = NULL;
    rs_thread **tail = &rs_state.threads;
    while (*tail != NULL)
        tail = &(*tail)->next;
    *tail = t;
    rs_unlock();
    rs_self = t;
    return t;
}
