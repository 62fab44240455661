/* State of the tracer and the path that every MPI call takes.
 *
 * Every thread that calls MPI owns a table of rows (call site x operation x communicator size x size class), a table of
 * peers of those rows, and a table of phases (the stretch of computation between two call sites). A call costs two reads
 * of the clock and a few additions: each phase remembers the row it led to and the phase that followed, each row its last
 * peer, so a program that repeats itself is served without hashing.
 */
#ifndef RANKSIGHT_TRACER_H
#define RANKSIGHT_TRACER_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define RS_EXPORT __attribute__((visibility("default")))
#define RS_HIDDEN __attribute__((visibility("hidden")))
#define RS_LIKELY(x) __builtin_expect(!!(x), 1)
#define RS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RS_PC ((uint64_t)(uintptr_t)__builtin_return_address(0))
#define RS_NONE UINT32_MAX

/* ---- tables: dense items, dumped as they are, and an index of open addressing over them ------------------------- */

typedef struct {
    uint64_t a, b; /* the key */
} rs_key;

typedef struct {
    rs_key key;    /* a: return address; b: comm_size | operation << 32 | size class << 48 */
    uint64_t count, bytes, ticks;
    uint64_t peer; /* index of the peer seen last */
} rs_row;

typedef struct {
    rs_key key; /* a: row; b: rank in MPI_COMM_WORLD */
    uint64_t count, bytes;
} rs_peer;

typedef struct {
    rs_key key; /* a: return address of the call before, b: of the call that ended the stretch */
    uint64_t count, ticks, cpu;
    uint32_t next, row; /* the phase that followed last time, the row that its call led to */
} rs_phase;

typedef struct {
    char *items;
    uint32_t *index;
    uint32_t used, room, mask, limit;
    uint32_t item;
    uint64_t dropped; /* keys refused because the table may not grow any further */
} rs_table;

typedef struct rs_thread {
    rs_table rows, peers, phases;
    uint64_t last_pc, last_end, last_cpu; /* the call before: its site, when it ended, processor time at its end */
    uint64_t cpu_value, cpu_at;           /* the processor clock's last reading and the time of that reading */
    uint32_t last_phase;
    int depth;
    struct rs_thread *next;
} rs_thread;

typedef struct {
    rs_thread *thread;
    uint64_t pc, begin, end, cpu;
    uint32_t phase;
} rs_call;

enum { RS_CPU_OFF, RS_CPU_ADAPTIVE, RS_CPU_EXACT };

typedef struct {
    volatile int active; /* between MPI_Init and MPI_Finalize */
    int threaded;        /* MPI_THREAD_MULTIPLE: shared tables are locked */
    int use_tsc, cpu_mode;
    int rank, size;
    uint64_t cpu_gap;     /* ticks that may pass before the processor clock is read again */
    double ns_per_tick;
    uint64_t init_begin, init_end, final_begin, final_end; /* ticks */
    uint64_t init_mono, final_mono;                        /* CLOCK_MONOTONIC in ns at init_end and final_begin */
    uint64_t init_cpu, final_cpu;                          /* CLOCK_PROCESS_CPUTIME_ID in ns, same places */
    uint64_t pss_before, pss_end, peak_before, peak_end;   /* bytes */
    rs_thread *threads;
} rs_state_t;

extern RS_HIDDEN rs_state_t rs_state;
extern RS_HIDDEN __thread rs_thread *rs_self __attribute__((tls_model("initial-exec")));

RS_HIDDEN rs_thread *rs_thread_new(void);
RS_HIDDEN uint32_t rs_table_find(rs_table *table, uint64_t a, uint64_t b);
RS_HIDDEN int rs_table_make(rs_table *table, uint32_t item, uint32_t room, uint32_t limit);

/* ---- clocks ----------------------------------------------------------------------------------------------------- */

static inline uint64_t rs_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t rs_now(void)
{
#if defined(__x86_64__)
    if (RS_LIKELY(rs_state.use_tsc))
        return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
    return rs_clock_ns(CLOCK_MONOTONIC);
}

/* Processor time of this thread, in ns. Reading it is a system call. A stretch shorter than cpu_gap (a hundred times the
 * cost of reading) is taken as not interrupted, so that its wall time is its processor time: a time slice that another
 * process takes is longer. Overhead stays below one per cent of the run whatever the program does. */
static inline uint64_t rs_cpu(rs_thread *t, uint64_t now)
{
    uint64_t since = now - t->cpu_at;
    if (rs_state.cpu_mode == RS_CPU_ADAPTIVE && since < rs_state.cpu_gap)
        return t->cpu_value + (uint64_t)((double)since * rs_state.ns_per_tick);
    t->cpu_value = rs_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    t->cpu_at = rs_now();
    return t->cpu_value;
}

/* ---- the path of a call ----------------------------------------------------------------------------------------- */

static inline void rs_enter(rs_call *c, uint64_t pc)
{
    rs_thread *t = rs_self;
    c->thread = NULL;
    if (RS_UNLIKELY(!rs_state.active))
        return;
    if (RS_UNLIKELY(t == NULL) && (t = rs_thread_new()) == NULL)
        return;
    if (t->depth++ > 0) { /* called by MPI itself or by a wrapper of ours: the outer call is the program's */
        c->thread = t;
        c->pc = 0;
        return;
    }
    c->thread = t;
    c->pc = pc;
    c->begin = rs_now();
    c->cpu = rs_state.cpu_mode ? rs_cpu(t, c->begin) : 0;
}

/* End of the MPI call: closes the stretch of computation that the call ended. Returns 0 where nothing is to be recorded. */
static inline int rs_leave(rs_call *c)
{
    rs_thread *t = c->thread;
    rs_phase *phase, *before;
    uint64_t from;
    if (RS_UNLIKELY(t == NULL))
        return 0;
    t->depth--;
    if (RS_UNLIKELY(c->pc == 0))
        return 0;
    c->end = rs_now();
    from = t->last_pc;
    before = (rs_phase *)t->phases.items + t->last_phase;
    c->phase = before->next;
    phase = (rs_phase *)t->phases.items + c->phase;
    if (RS_UNLIKELY(phase->key.a != from || phase->key.b != c->pc)) {
        c->phase = rs_table_find(&t->phases, from, c->pc);
        phase = (rs_phase *)t->phases.items + c->phase;
        ((rs_phase *)t->phases.items)[t->last_phase].next = c->phase;
    }
    phase->count++;
    phase->ticks += c->begin - t->last_end;
    phase->cpu += c->cpu - t->last_cpu;
    t->last_phase = c->phase;
    t->last_pc = c->pc;
    t->last_end = c->end;
    if (rs_state.cpu_mode)
        t->last_cpu = rs_cpu(t, c->end);
    return 1;
}

/* Class 0 holds calls without bytes, class k > 0 those of (2^(k-2), 2^(k-1)] bytes. */
static inline unsigned rs_class(uint64_t bytes)
{
    return bytes == 0 ? 0 : bytes == 1 ? 1 : 65u - (unsigned)__builtin_clzll(bytes - 1);
}

static inline uint64_t rs_row_key(unsigned operation, uint32_t comm_size, uint64_t bytes)
{
    return (uint64_t)comm_size | (uint64_t)operation << 32 | (uint64_t)rs_class(bytes) << 48;
}

/* The row of the call's own operation: the phase remembers which it was. */
static inline rs_row *rs_own_row(rs_call *c, uint64_t key)
{
    rs_thread *t = c->thread;
    rs_phase *phase = (rs_phase *)t->phases.items + c->phase;
    rs_row *row = (rs_row *)t->rows.items + phase->row;
    if (RS_UNLIKELY(row->key.a != c->pc || row->key.b != key)) {
        phase->row = rs_table_find(&t->rows, c->pc, key);
        row = (rs_row *)t->rows.items + phase->row;
    }
    return row;
}

static inline void rs_row_add(rs_row *row, uint64_t count, uint64_t bytes, uint64_t ticks)
{
    row->count += count;
    row->bytes += bytes;
    row->ticks += ticks;
}

static inline void rs_row_peer(rs_thread *t, rs_row *row, int32_t peer, uint64_t count, uint64_t bytes)
{
    rs_peer *p = (rs_peer *)t->peers.items + row->peer;
    uint64_t at = (uint64_t)(row - (rs_row *)t->rows.items);
    if (RS_UNLIKELY(p->key.a != at || p->key.b != (uint64_t)(uint32_t)peer)) {
        row->peer = rs_table_find(&t->peers, at, (uint64_t)(uint32_t)peer);
        p = (rs_peer *)t->peers.items + row->peer;
    }
    p->count += count;
    p->bytes += bytes;
}

/* ---- communicators ---------------------------------------------------------------------------------------------- */

typedef struct rs_group {
    uint64_t handle;
    int kind; /* 'c' communicator, 'w' window, 'f' file */
    int size, local, remote, inter, me;
    int peers;        /* length of world */
    int *world;       /* rank in MPI_COMM_WORLD of each rank that can be addressed, -1 outside it; NULL: identity */
    int slots;        /* outgoing neighbours of the topology, -1 before they were asked for */
    int *neighbour;   /* ranks of the communicator, MPI_PROC_NULL where there is none */
    struct rs_group *next;
} rs_group;

extern RS_HIDDEN volatile uint64_t rs_group_generation;
RS_HIDDEN rs_group *rs_group_find(uint64_t handle, int kind);
RS_HIDDEN rs_group *rs_comm_slow(MPI_Comm comm);
RS_HIDDEN rs_group *rs_win(MPI_Win win);
RS_HIDDEN rs_group *rs_file(MPI_File file);
RS_HIDDEN void rs_neighbours(rs_group *group, MPI_Comm comm);
RS_HIDDEN void rs_groups_begin(void);
RS_HIDDEN void rs_group_forget(uint64_t handle, int kind);

#define RS_HANDLE(x) ((uint64_t)(uintptr_t)(x))

typedef struct {
    uint64_t handle, generation;
    rs_group *group;
} rs_recent;
extern RS_HIDDEN __thread rs_recent rs_recent_comm __attribute__((tls_model("initial-exec")));

static inline rs_group *rs_comm(MPI_Comm comm)
{
    rs_recent *r = &rs_recent_comm;
    if (RS_LIKELY(r->handle == RS_HANDLE(comm) && r->generation == rs_group_generation))
        return r->group;
    return rs_comm_slow(comm);
}

static inline int rs_world(const rs_group *g, int rank)
{
    if (rank < 0 || rank >= g->peers)
        return -1;
    return g->world == NULL ? rank : g->world[rank];
}

/* ---- requests --------------------------------------------------------------------------------------------------- */

typedef struct rs_request {
    uint64_t handle, pc, ticks;
    rs_group *group;
    uint64_t generation;
    uint64_t bytes;      /* of one start: sends and collectives */
    uint32_t comm_size;
    int32_t peer;        /* in MPI_COMM_WORLD, -1: known at completion or none */
    uint16_t operation;  /* what a completion or a start is recorded as */
    uint8_t kind;        /* 'r' receive, 's' send, 'c' collective */
    uint8_t persistent, started, null;
    rs_thread *thread;
    struct rs_request *next, *older;
} rs_request;

extern RS_HIDDEN volatile uint64_t rs_requests_held;
RS_HIDDEN rs_request *rs_request_add(uint64_t handle);
RS_HIDDEN rs_request *rs_request_find(uint64_t handle);
RS_HIDDEN void rs_request_drop(rs_request *request);
RS_HIDDEN void rs_requests_close(void);

/* ---- beginning and end ------------------------------------------------------------------------------------------ */

enum { RS_END_FINALIZE, RS_END_EXIT, RS_END_ABORT, RS_END_SIGNAL };
RS_HIDDEN void rs_before_init(void);
RS_HIDDEN void rs_after_init(rs_call *c, int result, int provided);
RS_HIDDEN void rs_before_finalize(const rs_call *c);
RS_HIDDEN void rs_after_finalize(void);
RS_HIDDEN void rs_end(int how, int number);
RS_HIDDEN void rs_write(int how, int number);
RS_HIDDEN int rs_write_begin(void);
RS_HIDDEN void rs_memory(uint64_t *pss, uint64_t *peak);
RS_HIDDEN void rs_lock(void);
RS_HIDDEN void rs_unlock(void);

extern RS_HIDDEN const char rs_operations[]; /* generated: one line an operation, name and kind */
extern RS_HIDDEN const unsigned rs_operations_length;

#endif
