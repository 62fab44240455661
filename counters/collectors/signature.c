/*
 * Preloaded: the sequence of a process's MPI calls, and the weight of what it computes between them.
 *
 * Natively, with RANKSIGHT_CALLS=FILE, each call leaves 16 bytes: its number with 16 bits that differ by the count of
 * elements it names, the low half of the address it returns to, and the processor seconds since the call before returned;
 * under the tool that counts instructions, these, as nanoseconds. Under valgrind, with RANKSIGHT_PLAN=FILE, the plan gives for
 * each call its number and, in millionths, the weights of the stretch that the call ends in each sum; after the last of them, or a
 * call that is another than planned, costs are written and the process runs on without being simulated. FILE.done or
 * FILE.other is then created. The last process that has done its plan waits to be ended: what it would do is for nothing.
 * A plan goes on behind DIFFERS where occurrences differed up to there: FILE.places is created, and the weights are then
 * those of the last sum; SKIPS stands for as many calls up to which nothing is simulated.
 *
 * A jump to the real function leaves registers and stack as they are, so no prototype is needed; natively the call
 * returns to `returned` first. CALLS(X) comes from the list that reads the sequences again. TIMER is the number of
 * MPI_Wtime, which bounds stretches where the plan names it: programs read the time where a phase begins and ends.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>
#include <valgrind/callgrind.h>
#include "calls.h"
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#else
#define backtrace(frames, most) 0 /* timers are then all at one place */
#endif

#ifndef __x86_64__
#error "no jump is known for this processor"
#endif

enum { SUMS = 5 }; /* of the tool: counts, what shows how far occurrences differ, and counts where the plan goes on */
typedef struct { uint32_t call, site; double seconds; } Record;
typedef struct { uint64_t call, weight[SUMS]; } Planned;
enum { NONE, ENDS = 0xffff, NUMBER = 0xfff, ARGUMENT = 12, FORTRAN = 0x8000, DEPTH = 16, OURS = 2, FRAMES = 6, ROOM = 4096, ENDED = 10, WEIGH = VG_USERREQ_TOOL_BASE('R', 'S'), INSTRUCTIONS, GOES_ON };
enum { SKIPS = 0xfffd, DIFFERS = 0xfffe }; /* in the place of a call */

static Record records[ROOM];
static int used, file = -1, depth, timers;
static const Planned *plan, *plan_end;
static const char *plan_name;
static const uint64_t *weights;
static uint64_t to_skip; /* calls that are left until the next place */
static void *back[DEPTH];
static double began;
static pthread_t thread;

#include "code_samples.h"

static double now(void) {
    struct timespec t;
    uint64_t instructions = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, INSTRUCTIONS, 0, 0, 0, 0, 0);
    if (instructions) return 1e-9 * (double)instructions;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void flush(void) {
    if (file >= 0 && write(file, records, used * sizeof *records) != (ssize_t)(used * sizeof *records)) file = -1;
    used = 0;
}

static void record(uint32_t call, uintptr_t site, double seconds) {
    calls++;
    records[used++] = (Record){pthread_equal(pthread_self(), thread) ? call : NONE, (uint32_t)site, seconds};
    if (used == ROOM) flush();
}

static void weigh(const uint64_t *new) {
    if (weights && memcmp(new, weights, SUMS * sizeof *new) == 0) return;
    weights = new;
    VALGRIND_DO_CLIENT_REQUEST_STMT(WEIGH, new[0], new[1], new[2], new[3], new[4]);
}

/* Whether every plan.RANK has its plan.RANK.done. */
static int all_done(void) {
    char folder[PATH_MAX];
    const char *slash = strrchr(plan_name, '/');
    int left = 0;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - plan_name + 1) : 2, slash ? plan_name : "./");
    DIR *opened = opendir(folder);
    if (!opened) return 0;
    for (struct dirent *each; (each = readdir(opened)) != NULL;) {
        char done[PATH_MAX + NAME_MAX];
        if (strncmp(each->d_name, "plan.", 5) || strspn(each->d_name + 5, "0123456789") != strlen(each->d_name + 5)) continue;
        snprintf(done, sizeof done, "%s%s.done", folder, each->d_name);
        left += access(done, F_OK) != 0;
    }
    closedir(opened);
    return left == 0;
}

static void mark(const char *how) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s.%s", plan_name, how);
    close(open(name, O_CREAT | O_WRONLY, 0644));
}

static void finish(const char *how) {
    CALLGRIND_DUMP_STATS;
    plan = NULL;
    mark(how);
    if (strcmp(how, "done") == 0 && all_done()) sleep(ENDED);
    CALLGRIND_STOP_INSTRUMENTATION;
}

/* To the next line of the plan. */
static void advance(void) {
    if (++plan < plan_end && plan->call == DIFFERS) {
        plan = VALGRIND_DO_CLIENT_REQUEST_EXPR(0, GOES_ON, 0, 0, 0, 0, 0) ? plan + 1 : plan_end;
        if (plan < plan_end) mark("places");
    }
    if (plan == plan_end) finish("done");
    else if (plan->call == SKIPS) {
        to_skip = plan->weight[0];
        CALLGRIND_STOP_INSTRUMENTATION;
    } else weigh(plan->weight);
}

static void planned(uint64_t call) {
    if (call == TIMER && !timers) return;
    if (to_skip) {
        if (--to_skip) return;
        CALLGRIND_START_INSTRUMENTATION;
        advance();
    } else if (plan->call != call) finish("other");
    else advance();
}

/* The count of elements that a call names, in 16 bits; `call` says which argument it is. Fortran gives its address. */
static uint32_t count(uint64_t call, void **address) {
    unsigned argument = call >> ARGUMENT & 7;
    if (argument == 0) return 0;
    void *given = address[-(int)argument]; /* registers were pushed below the address to return to */
    uint32_t value = call & FORTRAN ? *(uint32_t *)given : (uint32_t)(uintptr_t)given;
    return value * 2654435761u >> 16;
}

/* From where the time is read: timers have one place that calls MPI_Wtime for all phases, whose callers differ. Sums keep
 * what is the same in all processes, the offset in a page. */
static uintptr_t callers(void) {
    void *frames[FRAMES];
    uintptr_t sum = 0;
    int found = backtrace(frames, FRAMES);
    for (int i = OURS; i < found; i++) sum = 31 * sum + (uintptr_t)frames[i];
    return sum;
}

/* Named as the library's own functions are, so that its cost is not the application's. */
__attribute__((visibility("hidden"), used)) void PMPI_Ranksight_call(uint64_t marked, void **address) {
    uint64_t call = marked & NUMBER;
    if (plan) planned(call);
    else if (file >= 0) {
        double seconds = now() - began;
        uintptr_t site = call == TIMER ? callers() : (uintptr_t)*address;
        record((uint32_t)call | count(marked, address) << 16, site, seconds);
        if (depth < DEPTH) {
            extern char PMPI_Ranksight_return[];
            back[depth++] = *address;
            *address = PMPI_Ranksight_return;
        }
    }
}

__attribute__((visibility("hidden"), used)) void *PMPI_Ranksight_returned(void) {
    began = now();
    return back[--depth];
}

__asm__(".text\n.type PMPI_Ranksight_return, %function\nPMPI_Ranksight_return:\n\t"
        "push %rax\n\tpush %rdx\n\tsub $16, %rsp\n\tmovups %xmm0, (%rsp)\n\tcall PMPI_Ranksight_returned\n\tmov %rax, %r11\n\t"
        "movups (%rsp), %xmm0\n\tadd $16, %rsp\n\tpop %rdx\n\tpop %rax\n\tjmp *%r11\n"
        ".type PMPI_Ranksight_enter, %function\nPMPI_Ranksight_enter:\n\t.cfi_startproc\n\t"
        "push %rdi\n\tpush %rsi\n\tpush %rdx\n\tpush %rcx\n\tpush %r8\n\tpush %r9\n\tpush %rax\n\tpush %r10\n\tsub $8, %rsp\n\t.cfi_def_cfa_offset 80\n\t"
        "mov %r11, %rdi\n\tlea 72(%rsp), %rsi\n\tcall PMPI_Ranksight_call\n\t"
        "add $8, %rsp\n\tpop %r10\n\tpop %rax\n\tpop %r9\n\tpop %r8\n\tpop %rcx\n\tpop %rdx\n\tpop %rsi\n\tpop %rdi\n\t"
        "jmp *(%r10)\n\t.cfi_endproc\n");

#define SLOT(number, name, lower) __attribute__((visibility("hidden"))) void *c_##lower, *f_##lower;
CALLS(SLOT)
#define STUB(number, symbol, slot)                                                            \
    __asm__(".text\n.globl " #symbol "\n.type " #symbol ", %function\n" #symbol ":\n\t"       \
            "mov $" #number ", %r11\n\tlea " #slot "(%rip), %r10\n\tjmp PMPI_Ranksight_enter\n.size " #symbol ", . - " #symbol "\n");
#define STUBS(number, name, lower) STUB(number, MPI_##name, c_##lower) STUB((number + 0x8000), mpi_##lower##_, f_##lower)
CALLS(STUBS)
#define FILL(number, name, lower) \
    c_##lower = dlsym(RTLD_NEXT, "PMPI_" #name), f_##lower = dlsym(RTLD_NEXT, "pmpi_" #lower "_");

__attribute__((constructor)) static void fill(void) { CALLS(FILL) }

/* Called when MPI is initialised, and before it is finalised. */
__attribute__((visibility("hidden"))) void ranksight_begins(void) {
    const char *name = getenv("RANKSIGHT_CALLS");
    thread = pthread_self();
    if (name) file = open(name, O_CREAT | O_EXCL | O_WRONLY, 0644);
    if (file >= 0 && !RUNNING_ON_VALGRIND) start_sampling();
    if ((plan_name = getenv("RANKSIGHT_PLAN")) != NULL) {
        FILE *source = fopen(plan_name, "rb");
        long size = source && fseek(source, 0, SEEK_END) == 0 ? ftell(source) : 0;
        Planned *read = size > 0 ? malloc(size) : NULL;
        if (read && fseek(source, 0, SEEK_SET) == 0 && fread(read, 1, size, source) == (size_t)size) {
            plan = read;
            plan_end = read + size / sizeof *read;
            for (const Planned *each = plan; each < plan_end; each++) timers |= each->call == TIMER;
            weigh(plan->weight);
        }
        if (source) fclose(source);
    }
    began = now();
}

__attribute__((visibility("hidden"))) void ranksight_ends(void) {
    if (plan) finish("other");
    if (file < 0) return;
    record(ENDS, 0, now() - began);
    stop_sampling(getenv("RANKSIGHT_CALLS"));
    flush();
    close(file);
    file = -1;
}
