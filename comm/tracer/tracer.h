/* State of the tracer and the path that every MPI call takes.
 *
 * Every thread that calls MPI owns a table of records. A record is one call site with one operation, communicator size and
 * size class, reached from one call site before it; so it carries at once what the calls moved, the time inside them, and
 * the computation between the two sites. Each record remembers the record that followed it and the peer it last talked
 * to: a program that repeats itself is served by two reads of the clock and a few additions, without hashing.
 */
#ifndef RANKSIGHT_TRACER_H
#define RANKSIGHT_TRACER_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Under SimGrid's SMPI all ranks live in one process, each with a copy of the program's own variables, and time is the
 * simulator's: the tracer is linked into the program, keeps its state in such variables, and leaves signals alone. */
#ifdef RS_SIMULATED
#include <simgrid/engine.h>
#define RS_TLS
#define RS_TLS_MODEL
#else
#define RS_TLS __thread
#define RS_TLS_MODEL __attribute__((tls_model("initial-exec")))
#endif

#define RS_EXPORT __attribute__((visibility("default")))
#define RS_HIDDEN __attribute__((visibility("hidden")))
#define RS_LIKELY(x) __builtin_expect(!!(x), 1)
#define RS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#ifdef RS_SMALL /* wrappers of calls that no inner loop makes: a third of the time to compile */
#define RS_HOT static __attribute__((noinline, unused))
#else
#define RS_HOT static inline __attribute__((always_inline))
#endif
#define RS_PC ((uint64_t)(uintptr_t)__builtin_return_address(0))
#define RS_NONE UINT32_MAX

/* ---- tables: blocks of items that never move, dumped as they are, and an index of open addressing over them -------- */

typedef struct rs_record {
    uint64_t pc, key; /* return address; comm_size | operation << 32 | size class << 48 */
    uint64_t count, bytes, inside, compute;
    struct rs_record *next; /* what followed last time */
    struct rs_peer *peer;   /* who was talked to last */
    uint64_t from;          /* return address of the call before, 0: none */
    int64_t lost;           /* ticks of the computation in which the thread had no processor */
    uint64_t index;
    struct rs_record *completed; /* of a posted receive: where it was counted last time when it completed */
} rs_record;

typedef struct rs_peer {
    uint64_t owner; /* index of the record */
    int64_t rank;   /* in MPI_COMM_WORLD, -1 outside it */
    uint64_t count, bytes;
    struct rs_peer *next;
} rs_peer;

/* One entry of the event trace: a call (peer RS_NO_PEER), or a transfer that the call before it made or completed. */
typedef struct {
    uint64_t begin, end; /* ticks; of a transfer both are the end of the call */
    uint64_t bytes;
    uint32_t record;
    int32_t peer, tag, spare;
} rs_event;

#define RS_NO_PEER INT32_MIN
#define RS_NO_TAG (-1)

enum { RS_BLOCK = 256, RS_BLOCKS = 1 << 14 };

typedef struct {
    char **blocks;
    uint32_t *index; /* number of the item, 0: free; item 0 takes what finds no place */
    uint32_t used, mask, limit, item;
    uint64_t dropped; /* items refused because the table may not grow any further */
} rs_table;

#define RS_ITEM(table, at) ((table)->blocks[(at) / RS_BLOCK] + (size_t)((at) % RS_BLOCK) * (table)->item)

typedef struct rs_thread {
    rs_record *last;   /* the call before */
    uint64_t last_end; /* when it ended */
    int64_t lost;      /* ticks without a processor since then */
    int depth;
    uint64_t outer; /* call site of a Fortran binding that calls the function of C, which is recorded; else the state's */
    uint64_t cpu_value, cpu_at; /* the processor clock's last reading in ns, and the time of that reading */
    rs_table records, peers;
    rs_event *events; /* NULL: no event trace is wanted */
    uint64_t event_count, events_dropped;
    struct rs_thread *next;
} rs_thread;

typedef struct {
    rs_thread *thread;
    uint64_t pc, begin, end;
} rs_call;

enum { RS_CPU_OFF, RS_CPU_ADAPTIVE, RS_CPU_EXACT };

typedef struct {
    volatile int active; /* between MPI_Init and MPI_Finalize, or the first session's beginning and the last one's end */
    volatile int ended;  /* all has been written by the program's own will: what follows is the way out */
    int open;            /* MPI_Init and sessions that are not finalized yet */
    int threaded;        /* MPI_THREAD_MULTIPLE: shared tables are locked */
    int use_tsc, cpu_mode;
    int rank, size;
    /* Ticks that pass before the processor clock is read again. Reading it is a system call. A stretch shorter than a
     * hundred times its cost is taken as not interrupted: a time slice that another process takes is longer. So the
     * overhead stays below one per cent of the run whatever the program does. 0: at every call; UINT64_MAX: never. */
    uint64_t cpu_gap;
    uint64_t event_limit; /* events a thread may keep */
    double ns_per_tick;
    uint64_t outer; /* 0, or RS_ASK in a program of Python */
    uint64_t init_begin, init_end, final_begin; /* ticks */
    uint64_t init_mono, final_mono;                        /* CLOCK_MONOTONIC in ns at init_end and final_begin */
    uint64_t init_cpu, final_cpu;                          /* CLOCK_PROCESS_CPUTIME_ID in ns, same places */
    uint64_t pss_before, pss_end, peak_before, peak_end;   /* bytes */
    rs_thread *threads;
} rs_state_t;

extern RS_HIDDEN rs_state_t rs_state;
extern RS_HIDDEN RS_TLS rs_thread *rs_self RS_TLS_MODEL;

RS_HIDDEN void rs_lock_now(void);
RS_HIDDEN void rs_unlock_now(void);

/* Guards what threads share, where they may call at once. */
static inline void rs_lock(void)
{
    if (RS_UNLIKELY(rs_state.threaded))
        rs_lock_now();
}

static inline void rs_unlock(void)
{
    if (RS_UNLIKELY(rs_state.threaded))
        rs_unlock_now();
}

/* Call sites that are functions of Python (python.c): RS_PYTHON, which no address has, and a number. */
#define RS_PYTHON (UINT64_C(1) << 63)
#define RS_ASK 1 /* `outer`: the interpreter knows */
RS_HIDDEN void rs_python_begin(void);
RS_HIDDEN uint64_t rs_caller(const rs_thread *t, uint64_t pc);
RS_HIDDEN uint32_t rs_python_sites(const void **items, uint32_t *item); /* how many, and where and how large they are */

RS_HIDDEN rs_thread *rs_thread_new(void);
RS_HIDDEN rs_record *rs_record_find(rs_thread *thread, uint64_t from, uint64_t pc, uint64_t key);
RS_HIDDEN rs_peer *rs_peer_find(rs_thread *thread, const rs_record *record, int64_t rank);

/* ---- clocks ----------------------------------------------------------------------------------------------------- */

static inline uint64_t rs_clock_ns(clockid_t clock)
{
#ifdef RS_SIMULATED
    (void)clock;
    return (uint64_t)(simgrid_get_clock() * 1e9 + 0.5);
#else
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

#if defined(__x86_64__)
/* Not by <x86intrin.h>: every source of the tracer would take three times as long to compile. */
static inline uint64_t rs_rdtsc(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}
#endif

static inline uint64_t rs_now(void)
{
#if defined(RS_SIMULATED)
#elif defined(__x86_64__)
    if (RS_LIKELY(rs_state.use_tsc))
        return rs_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
    return rs_clock_ns(CLOCK_MONOTONIC);
}

RS_HIDDEN int64_t rs_lost(rs_thread *t, uint64_t end);
RS_HIDDEN void rs_lost_inside(rs_thread *t, rs_record *r, uint64_t end);

/* ---- the path of a call ----------------------------------------------------------------------------------------- */

RS_HOT void rs_enter(rs_call *c, uint64_t pc)
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
    c->pc = RS_LIKELY(t->outer == 0) ? pc : rs_caller(t, pc);
    c->begin = rs_now();
    if (RS_UNLIKELY(c->begin - t->cpu_at >= rs_state.cpu_gap))
        t->lost += rs_lost(t, c->begin);
}

/* Whether this call is the program's own and is recorded. */
static inline int rs_recording(const rs_call *c) { return c->thread != NULL && c->pc != 0; }

/* End of the MPI call. Returns 0 where nothing is to be recorded. */
RS_HOT int rs_leave(rs_call *c)
{
    if (RS_UNLIKELY(c->thread == NULL))
        return 0;
    c->thread->depth--;
    if (RS_UNLIKELY(c->pc == 0))
        return 0;
    c->end = rs_now();
    return 1;
}

/* Class 0 holds calls without bytes, class k > 0 those of (2^(k-2), 2^(k-1)] bytes. */
static inline unsigned rs_class(uint64_t bytes)
{
    return bytes == 0 ? 0 : bytes == 1 ? 1 : 65u - (unsigned)__builtin_clzll(bytes - 1);
}

static inline uint64_t rs_key(unsigned operation, uint32_t comm_size, uint64_t bytes)
{
    return (uint64_t)comm_size | (uint64_t)operation << 32 | (uint64_t)rs_class(bytes) << 48;
}

static __attribute__((noinline, unused)) void rs_note(rs_thread *t, uint64_t begin, uint64_t end, const rs_record *r, int peer, int tag, uint64_t bytes)
{
    if (t->event_count < rs_state.event_limit)
        t->events[t->event_count++] = (rs_event){begin, end, bytes, (uint32_t)r->index, peer, tag, 0};
    else
        t->events_dropped++;
}

/* Records the call itself, and the computation that it ended. Called exactly once a call. */
RS_HOT rs_record *rs_add(rs_call *c, unsigned operation, uint32_t comm_size, uint64_t count, uint64_t bytes)
{
    rs_thread *t = c->thread;
    uint64_t key = rs_key(operation, comm_size, bytes);
    rs_record *r = t->last->next;
    if (RS_UNLIKELY(r->pc != c->pc || r->key != key)) {
        r = rs_record_find(t, t->last->pc, c->pc, key);
        t->last->next = r;
    }
    r->count += count;
    r->bytes += bytes;
    r->inside += c->end - c->begin;
    r->compute += c->begin - t->last_end;
    t->last = r;
    t->last_end = c->end;
    if (RS_UNLIKELY(t->lost != 0)) {
        r->lost += t->lost;
        t->lost = 0;
    }
    if (RS_UNLIKELY(c->end - t->cpu_at >= rs_state.cpu_gap))
        rs_lost_inside(t, r, c->end);
    if (RS_UNLIKELY(t->events != NULL))
        rs_note(t, c->begin, t->last_end, r, RS_NO_PEER, RS_NO_TAG, bytes); /* with the clock that was read, as the table */
    return r;
}

/* Records something in addition to the call `own`, at its call site: a receive that completed, the second half of a Sendrecv. */
RS_HOT rs_record *rs_add_beside(rs_thread *t, rs_record *own, unsigned operation, uint32_t comm_size, uint64_t count,
                                       uint64_t bytes)
{
    uint64_t key = rs_key(operation, comm_size, bytes);
    rs_record *r = own->completed;
    if (RS_UNLIKELY(r->key != key || r->pc != own->pc)) {
        r = rs_record_find(t, 0, own->pc, key);
        own->completed = r;
    }
    r->count += count;
    r->bytes += bytes;
    return r;
}

RS_HOT void rs_add_peer(rs_thread *t, rs_record *r, int rank, int tag, uint64_t bytes)
{
    rs_peer *p = r->peer->next;
    if (RS_UNLIKELY(p->rank != rank || p->owner != r->index)) {
        p = rs_peer_find(t, r, rank);
        r->peer->next = p;
    }
    r->peer = p;
    p->count++;
    p->bytes += bytes;
    if (RS_UNLIKELY(t->events != NULL))
        rs_note(t, t->last_end, t->last_end, r, rank, tag, bytes);
}

/* ---- beginning and end ------------------------------------------------------------------------------------------ */

enum { RS_END_FINALIZE, RS_END_EXIT, RS_END_ABORT, RS_END_SIGNAL };
RS_HIDDEN void rs_before_init(void);
RS_HIDDEN void rs_after_init(rs_call *c, int result, int provided);
RS_HIDDEN int rs_before_session(void);
RS_HIDDEN void rs_after_session(rs_call *c, int first, MPI_Group world);
RS_HIDDEN void rs_before_finalize(rs_call *c, unsigned operation);
RS_HIDDEN void rs_after_finalize(const rs_call *c);
RS_HIDDEN void rs_end(int how, int number);
RS_HIDDEN void rs_memory(uint64_t *pss, uint64_t *peak);

/* ---- what is left behind: this rank's content, and the files (output.c, gather.c) ---------------------------------- */

RS_HIDDEN int rs_output_begin(int writes);
RS_HIDDEN uint64_t rs_content_copy(char *memory, uint64_t room); /* its bytes, copied where there is room for all */
RS_HIDDEN int rs_file_open(void);             /* descriptor, or -1 and errno */
RS_HIDDEN int rs_file_put(int fd, const void *data, size_t bytes);
RS_HIDDEN int rs_file_content(int fd, int how, int number);
RS_HIDDEN void rs_file_close(int fd, int error, int others); /* reports the loss, of this rank and `others` */
RS_HIDDEN void rs_file_drop(void);
RS_HIDDEN void rs_write(int how, int number);

/* ---- processes that the program starts (spawn.c) ------------------------------------------------------------------- */

typedef struct {
    char **commands, ***arguments; /* to be passed on */
    char **own, *variables[8], name[64];
    int n, root;
} rs_spawn;
RS_HIDDEN void rs_spawn_begin(rs_spawn *s, MPI_Comm comm, int root, int n, char **commands, char ***arguments,
                              const MPI_Info *infos);
RS_HIDDEN void rs_spawn_end(rs_spawn *s, int result, const MPI_Comm *others);
RS_HIDDEN const char *rs_world_name(void); /* empty: the one that was launched */
RS_HIDDEN uint32_t rs_worlds(const char **text); /* bytes of what is known of this world and those it started */

RS_HIDDEN int rs_idle_request(MPI_Request *request); /* one that ends when it is completed by hand; its error */
RS_HIDDEN void rs_gather_begin(void);
RS_HIDDEN int rs_gather_leads(void); /* whether this rank writes a file for others or itself in any case */
RS_HIDDEN void rs_gather_leave(void);
RS_HIDDEN int rs_gather(void);

extern RS_HIDDEN const char rs_operations[]; /* generated: one line an operation, name and kind */
extern RS_HIDDEN const unsigned rs_operations_length;
extern RS_HIDDEN const unsigned rs_init_operation, rs_session_operation;

#endif
