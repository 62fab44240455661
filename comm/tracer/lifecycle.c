/* Beginning and end: clocks, memory, and every way in which a program may stop. */
#define _GNU_SOURCE
#include "handles.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

rs_state_t rs_state;
RS_TLS rs_thread *rs_self RS_TLS_MODEL;

static atomic_flag lock_flag = ATOMIC_FLAG_INIT;
static pid_t owner;
static uint64_t init_mono_begin;
static int in_init;

void rs_lock_now(void)
{
    while (atomic_flag_test_and_set_explicit(&lock_flag, memory_order_acquire))
        ;
}

void rs_unlock_now(void) { atomic_flag_clear_explicit(&lock_flag, memory_order_release); }

/* The time stamp counter serves where it ticks at one rate in every state of the processor. */
static int tsc_is_invariant(void)
{
#if defined(__x86_64__) && !defined(RS_SIMULATED)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
#else
    return 0;
#endif
}

/* ---- signals ---------------------------------------------------------------------------------------------------- */

static const int fatal[] = {SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGTERM, SIGXCPU};
enum { FATAL = sizeof fatal / sizeof *fatal };
static struct sigaction before[FATAL];

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno, i = 0;
    struct sigaction *old, standard;
    while (i < FATAL && fatal[i] != number)
        i++;
    rs_end(RS_END_SIGNAL, number);
    errno = saved;
    if (i == FATAL)
        return;
    old = &before[i];
    if (old->sa_flags & SA_SIGINFO) {
        if (old->sa_sigaction != NULL)
            old->sa_sigaction(number, info, context);
        return;
    }
    if (old->sa_handler == SIG_IGN)
        return;
    if (old->sa_handler != SIG_DFL) {
        old->sa_handler(number);
        return;
    }
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    sigaction(number, &standard, NULL);
    /* Delivered when this handler returns: the program ends by the signal that struck it. */
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

static void watch_signals(void)
{
    struct sigaction mine;
    stack_t own, now;
    int i;
    if (sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE)) { /* a stack that overflowed cannot run a handler */
        memset(&own, 0, sizeof own);
        own.ss_size = 65536;
        own.ss_sp = mmap(NULL, own.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (own.ss_sp != MAP_FAILED)
            sigaltstack(&own, NULL);
    }
    for (i = 0; i < FATAL; i++) {
        if (sigaction(fatal[i], NULL, &before[i]) != 0)
            continue;
        if (!(before[i].sa_flags & SA_SIGINFO) && before[i].sa_handler == SIG_IGN)
            continue;
        mine = before[i];
        mine.sa_sigaction = on_signal;
        mine.sa_flags = (before[i].sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO | SA_ONSTACK;
        sigaction(fatal[i], &mine, NULL);
    }
}

/* ---- the ends --------------------------------------------------------------------------------------------------- */

static volatile int survived; /* a signal that made this rank write a file of its own */

/* Write what there is, once or, after a signal that the program survives, again. A forked child owns nothing. */
void rs_end(int how, int number)
{
    static atomic_flag busy = ATOMIC_FLAG_INIT;
    if (!rs_state.active || rs_state.ended || getpid() != owner || atomic_flag_test_and_set(&busy))
        return;
    rs_state.ended = how != RS_END_SIGNAL;
    survived = how == RS_END_SIGNAL;
    if (how != RS_END_FINALIZE && rs_state.final_begin == 0) {
        rs_state.final_begin = rs_now();
        rs_state.final_mono = rs_clock_ns(CLOCK_MONOTONIC);
        rs_state.final_cpu = rs_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        rs_memory(how == RS_END_SIGNAL ? NULL : &rs_state.pss_end, &rs_state.peak_end);
        rs_write(how, number);
        rs_state.final_begin = 0;
    } else
        rs_write(how, number);
    atomic_flag_clear(&busy);
}

static void at_exit(void) { rs_end(RS_END_EXIT, 0); }

#ifndef RS_SIMULATED
RS_EXPORT void _exit(int status) /* MPI libraries and programs in distress leave this way, past atexit */
{
    rs_end(RS_END_EXIT, 0);
    for (;;)
        syscall(SYS_exit_group, status);
}

RS_EXPORT void _Exit(int status) { _exit(status); }
#endif

/* Both clocks at one instant: of some pairs the one that was read fastest, as a rank may lose its core in between. */
static void both_clocks(uint64_t *ticks, uint64_t *ns)
{
    uint64_t best = UINT64_MAX;
    int i;
    for (i = 0; i < 8; i++) {
        uint64_t begin = rs_now(), mono = rs_clock_ns(CLOCK_MONOTONIC), end = rs_now();
        if (end - begin < best) {
            best = end - begin;
            *ticks = begin + best / 2;
            *ns = mono;
        }
    }
}

void rs_before_init(void)
{
    if (in_init++ > 0 || rs_state.active)
        return;
    rs_state.use_tsc = tsc_is_invariant();
    rs_memory(&rs_state.pss_before, &rs_state.peak_before);
    both_clocks(&rs_state.init_begin, &init_mono_begin);
}

/* Ticks from the last reading to `end`, a moment ago, in which this thread had no processor; reads the clock anew. The
 * system call is where a thread is likely to lose its processor: that is after `end`, and before the next stretch. */
int64_t rs_lost(rs_thread *t, uint64_t end)
{
    uint64_t value = rs_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t lost = (int64_t)(end - t->cpu_at) - (int64_t)((double)(value - t->cpu_value) / rs_state.ns_per_tick);
    t->cpu_value = value;
    t->cpu_at = rs_now();
    return lost;
}

/* What was lost inside MPI is nobody's computation; reading the clock counts as part of the call. */
void rs_lost_inside(rs_thread *t, rs_record *r, uint64_t end)
{
    rs_lost(t, end);
    r->inside += t->cpu_at - end;
    t->last_end = t->cpu_at;
}

static void choose_cpu_clock(void)
{
    const char *mode = getenv("RANKSIGHT_CPU_TIME");
    uint64_t begin = rs_now();
    int i;
    for (i = 0; i < 16; i++)
        rs_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    rs_state.cpu_gap = (rs_now() - begin) / 16 * 100;
    rs_state.cpu_mode = RS_CPU_ADAPTIVE;
    if (mode != NULL && strcmp(mode, "exact") == 0) {
        rs_state.cpu_mode = RS_CPU_EXACT;
        rs_state.cpu_gap = 0;
    } else if (mode != NULL && strcmp(mode, "off") == 0) {
        rs_state.cpu_mode = RS_CPU_OFF;
        rs_state.cpu_gap = UINT64_MAX;
    }
}

/* Events are kept where RANKSIGHT_TRACE_EVENTS says how many; the first so many, so that memory stays within its bound. */
static void choose_events(void)
{
    const char *limit = getenv("RANKSIGHT_TRACE_EVENTS");
    unsigned long long n = limit != NULL ? strtoull(limit, NULL, 10) : 0;
    rs_state.event_limit = n < 1u << 28 ? n : 1u << 28;
}

/* Rank and size are known: the trace begins. `operation` is what the program has called, at `c`. */
static void begin(const rs_call *c, unsigned operation, MPI_Group world)
{
    rs_thread *t;
    choose_cpu_clock();
    choose_events();
    rs_python_begin();
    if (rs_output_begin(rs_gather_leads()) != 0 || (t = rs_thread_new()) == NULL) {
        rs_gather_leave();
        return;
    }
    rs_groups_begin(world);
    owner = getpid();
#ifndef RS_SIMULATED
    atexit(at_exit);
    watch_signals();
#endif
    rs_state.init_cpu = rs_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    both_clocks(&rs_state.init_end, &rs_state.init_mono);
    t->last = rs_record_find(t, 0, t->outer == 0 ? c->pc : rs_caller(t, c->pc), rs_key(operation, 0, 0));
    t->last->count++;
    t->last->inside = rs_state.init_end - rs_state.init_begin;
    t->last_end = rs_state.init_end;
    t->cpu_at = rs_now();
    t->cpu_value = rs_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    rs_state.active = 1;
}

/* First estimate of the length of a tick, for runs that end at once. */
static void estimate_tick(void)
{
    uint64_t ticks, ns;
    both_clocks(&rs_state.init_end, &rs_state.init_mono);
    ticks = rs_state.init_end - rs_state.init_begin;
    ns = rs_state.init_mono - init_mono_begin;
    rs_state.ns_per_tick = ticks > 0 && ns > 0 ? (double)ns / (double)ticks : 1.0;
}

void rs_after_init(rs_call *c, int result, int provided)
{
    MPI_Group world = MPI_GROUP_NULL;
    if (--in_init > 0 || result != MPI_SUCCESS)
        return;
    rs_state.open++;
    if (rs_state.active)
        return;
    rs_state.threaded = provided == MPI_THREAD_MULTIPLE;
    estimate_tick();
    PMPI_Comm_rank(MPI_COMM_WORLD, &rs_state.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &rs_state.size);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    rs_gather_begin();
    begin(c, rs_init_operation, world);
}

/* Sessions: a program may have several, one after the other too, and may never call MPI_Init. The ranks of the group
 * mpi://WORLD stand for those of MPI_COMM_WORLD. Returns whether the trace begins, or goes on after a pause, with it. */
static uint64_t resumed;

int rs_before_session(void)
{
    if (rs_state.active || in_init > 0)
        return 0;
    if (rs_state.threads == NULL)
        rs_before_init();
    resumed = rs_now();
    return 1;
}

/* After a pause, which counts as computation. */
static void resume(const rs_call *c, MPI_Group world)
{
    rs_thread *t;
    rs_groups_begin(world);
    for (t = rs_state.threads; t != NULL; t = t->next)
        t->depth = 0;
    rs_state.ended = 0;
    rs_state.final_begin = 0;
    rs_state.active = 1;
    if ((t = rs_self) != NULL) {
        rs_call here = {.thread = t, .pc = c->pc, .begin = resumed, .end = rs_now()};
        rs_add(&here, rs_session_operation, 0, 1, 0);
    }
}

void rs_after_session(rs_call *c, int first, MPI_Group world)
{
    if (first && rs_state.threads == NULL)
        in_init--;
    if (world == MPI_GROUP_NULL) /* the session could not be had */
        return;
    rs_state.open++;
    if (!first) {
        PMPI_Group_free(&world);
    } else if (rs_state.threads == NULL) {
        rs_state.threaded = 1; /* the session's level is not known: locks cost little */
        estimate_tick();
        PMPI_Group_rank(world, &rs_state.rank);
        PMPI_Group_size(world, &rs_state.size);
        begin(c, rs_session_operation, world);
    } else
        resume(c, world);
}

/* Everything is written here: MPI_Finalize is the last call in which ranks can communicate, and may not return. */
void rs_before_finalize(rs_call *c, unsigned operation)
{
    uint64_t ticks;
    if (!rs_state.active || rs_state.ended || !rs_recording(c) || --rs_state.open > 0)
        return;
    both_clocks(&ticks, &rs_state.final_mono);
    rs_state.final_cpu = rs_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    rs_memory(&rs_state.pss_end, &rs_state.peak_end);
    rs_state.final_begin = c->end = c->begin; /* where the last stretch of computation ends */
    rs_state.final_mono -= (int64_t)((double)(int64_t)(ticks - rs_state.final_begin) * rs_state.ns_per_tick);
    rs_requests_close();
    rs_add(c, operation, 0, 1, 0);
    if (!rs_gather()) {
        rs_end(RS_END_FINALIZE, 0);
    } else {
        rs_state.ended = 1;
        if (survived && !rs_gather_leads())
            rs_file_drop(); /* what a signal made this rank write is in the group's file, to its end */
    }
}

void rs_after_finalize(const rs_call *c)
{
    if (rs_state.ended && (c->thread == NULL || c->pc != 0)) /* else called by a binding that is not done yet */
        rs_state.active = 0;
}
