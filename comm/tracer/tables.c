/* Tables of one thread: blocks of items that stay where they are, and an index of open addressing. Memory comes from mmap,
 * so that neither the program's allocator nor a tool that watches it takes part, and a signal handler may read it. */
#define _GNU_SOURCE
#include "tracer.h"

#include <string.h>
#include <sys/mman.h>

static void *pages(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static uint32_t hash(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t h = (a ^ (c << 32 | c >> 32)) * UINT64_C(0x9E3779B97F4A7C15) + b;
    h ^= h >> 29;
    h *= UINT64_C(0xBF58476D1CE4E5B9);
    return (uint32_t)(h >> 32);
}

static int make(rs_table *table, uint32_t item, uint32_t limit)
{
    table->blocks = pages(sizeof *table->blocks * RS_BLOCKS);
    table->mask = 4 * RS_BLOCK - 1;
    table->index = pages(sizeof *table->index * (table->mask + 1u));
    table->item = item;
    table->limit = limit;
    if (table->blocks == NULL || table->index == NULL || (table->blocks[0] = pages((size_t)item * RS_BLOCK)) == NULL)
        return -1;
    table->used = 1;
    return 0;
}

typedef uint32_t rs_hash_of(const void *item);

static uint32_t hash_of_record(const void *item)
{
    const rs_record *r = item;
    return hash(r->from, r->pc, r->key);
}

static uint32_t hash_of_peer(const void *item)
{
    const rs_peer *p = item;
    return hash(p->owner, (uint64_t)p->rank, 0);
}

/* Room for one more item; its place in the blocks, or 0 when the table is full. */
static uint32_t room(rs_table *table, rs_hash_of *hash_of)
{
    uint32_t at = table->used, mask, i, slot, *index;
    if (at >= table->limit)
        return 0;
    if (at % RS_BLOCK == 0 && table->blocks[at / RS_BLOCK] == NULL
        && (table->blocks[at / RS_BLOCK] = pages((size_t)table->item * RS_BLOCK)) == NULL)
        return 0;
    if (at >= (table->mask + 1u) / 2) {
        mask = table->mask * 2 + 1;
        index = pages(sizeof *index * (mask + 1u));
        if (index == NULL)
            return 0;
        for (i = 1; i < at; i++) {
            for (slot = hash_of(RS_ITEM(table, i)) & mask; index[slot] != 0;)
                slot = (slot + 1) & mask;
            index[slot] = i;
        }
        munmap(table->index, sizeof *table->index * (table->mask + 1u));
        table->index = index;
        table->mask = mask;
    }
    return at;
}

static void enter(rs_table *table, uint32_t h, uint32_t at)
{
    uint32_t slot = h & table->mask;
    while (table->index[slot] != 0)
        slot = (slot + 1) & table->mask;
    table->index[slot] = at;
    table->used = at + 1; /* last: a signal handler that dumps the table sees whole items only */
}

rs_record *rs_record_find(rs_thread *t, uint64_t from, uint64_t pc, uint64_t key)
{
    rs_table *table = &t->records;
    uint32_t h = hash(from, pc, key), slot, at;
    rs_record *r;
    for (slot = h & table->mask; (at = table->index[slot]) != 0; slot = (slot + 1) & table->mask) {
        r = (rs_record *)RS_ITEM(table, at);
        if (r->pc == pc && r->key == key && r->from == from)
            return r;
    }
    at = room(table, hash_of_record);
    r = (rs_record *)RS_ITEM(table, at);
    if (at == 0) {
        table->dropped++;
        return r;
    }
    r->from = from;
    r->pc = pc;
    r->key = key;
    r->index = at;
    r->next = r->completed = (rs_record *)RS_ITEM(table, 0);
    r->peer = (rs_peer *)RS_ITEM(&t->peers, 0);
    enter(table, h, at);
    return r;
}

rs_peer *rs_peer_find(rs_thread *t, const rs_record *record, int64_t rank)
{
    rs_table *table = &t->peers;
    uint32_t h = hash(record->index, (uint64_t)rank, 0), slot, at;
    rs_peer *p;
    for (slot = h & table->mask; (at = table->index[slot]) != 0; slot = (slot + 1) & table->mask) {
        p = (rs_peer *)RS_ITEM(table, at);
        if (p->owner == record->index && p->rank == rank)
            return p;
    }
    at = room(table, hash_of_peer);
    p = (rs_peer *)RS_ITEM(table, at);
    if (at == 0) {
        table->dropped++;
        return p;
    }
    p->owner = record->index;
    p->rank = rank;
    p->next = (rs_peer *)RS_ITEM(table, 0);
    enter(table, h, at);
    return p;
}

/* Tables of the calling thread, or NULL when there is no memory for them: the thread then goes unrecorded. */
rs_thread *rs_thread_new(void)
{
    rs_thread *t = pages(sizeof *t), **tail;
    rs_record *none;
    rs_peer *nobody;
    if (t == NULL || make(&t->records, sizeof(rs_record), 1u << 20) != 0 || make(&t->peers, sizeof(rs_peer), 1u << 22) != 0)
        return NULL;
    none = (rs_record *)RS_ITEM(&t->records, 0);
    nobody = (rs_peer *)RS_ITEM(&t->peers, 0);
    none->key = UINT64_MAX; /* no call has this key, no peer this rank: first guesses miss */
    none->next = none->completed = none;
    none->peer = nobody;
    nobody->rank = INT64_MIN;
    nobody->next = nobody;
    t->last = none;
    t->outer = rs_state.outer;
    if (rs_state.event_limit > 0)
        t->events = pages(sizeof *t->events * rs_state.event_limit); /* pages cost nothing before they are written */
    t->cpu_at = t->last_end = rs_now(); /* a thread's first call ends no stretch that is known to be computation */
    t->cpu_value = rs_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    rs_lock();
    for (tail = &rs_state.threads; *tail != NULL;)
        tail = &(*tail)->next;
    *tail = t;
    rs_unlock();
    rs_self = t;
    return t;
}
