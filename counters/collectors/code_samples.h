/*
 * Part of signature.c: which code a process natively runs, and when, so that code is missed that the simulated part of the
 * run never reaches.
 *
 * The thread is interrupted while it computes: every 200 microseconds by the kernel's own event, or where that may not be
 * used by a clock of its processor time, which a kernel looks at a few hundred times a second. Outside of MPI the number
 * of MPI calls before and the place in the code remain of each sample; when there is no room, every other one of them, from then on at half
 * the rate. FILE.code has a line a sample: calls before, address in the object as linked, object.
 */
#include <link.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { MOST = 1 << 15, TICK = 200000 };
typedef struct { uint32_t before; uintptr_t place; } Sample;

static Sample *samples;
static volatile int sampled;
static unsigned skipped, keep = 1;
static uint32_t calls; /* so far */
static timer_t timer;
static int event_file = -1;

static void on_tick(int number, siginfo_t *info, void *context) {
    int k;
    if (depth || ++skipped % keep) return;
    if (sampled == MOST) {
        for (k = 0; k < MOST / 2; k++) samples[k] = samples[2 * k];
        sampled = MOST / 2;
        keep *= 2;
    }
    samples[sampled++] = (Sample){calls, (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]};
}

/* Whether the kernel's event sends the signal. */
static int use_event(int number) {
    struct perf_event_attr event = {0};
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    event.type = PERF_TYPE_SOFTWARE;
    event.size = sizeof event;
    event.config = PERF_COUNT_SW_TASK_CLOCK;
    event.sample_period = TICK;
    event.wakeup_events = event.exclude_kernel = event.exclude_hv = 1;
    event_file = (int)syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (event_file < 0) return 0;
    if (fcntl(event_file, F_SETSIG, number) == 0 && fcntl(event_file, F_SETOWN_EX, &owner) == 0
        && fcntl(event_file, F_SETFL, O_ASYNC | O_NONBLOCK) == 0) return 1;
    close(event_file);
    event_file = -1;
    return 0;
}

static void start_sampling(void) {
    struct sigaction action = {0}, before;
    struct sigevent event = {0};
    struct itimerspec every = {{0, TICK}, {0, TICK}};
    int number = SIGRTMAX - 3;
    if (sigaction(number, NULL, &before) != 0 || before.sa_handler != SIG_DFL) return; /* the program's own */
    if ((samples = malloc(MOST * sizeof *samples)) == NULL) return;
    action.sa_sigaction = on_tick;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(number, &action, NULL);
    if (use_event(number)) return;
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = number;
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0) timer_settime(timer, 0, &every, NULL);
}

static int write_object(struct dl_phdr_info *info, size_t size, void *target) {
    char path[4096];
    ssize_t length = info->dlpi_name[0] ? 0 : readlink("/proc/self/exe", path, sizeof path - 1);
    int k, j;
    path[length > 0 ? length : 0] = 0;
    for (k = 0; k < sampled; k++)
        for (j = 0; j < info->dlpi_phnum; j++) {
            uintptr_t at = samples[k].place - info->dlpi_addr, first = info->dlpi_phdr[j].p_vaddr;
            if (info->dlpi_phdr[j].p_type == PT_LOAD && at >= first && at < first + info->dlpi_phdr[j].p_memsz)
                fprintf(target, "%u %lx %s\n", samples[k].before, (unsigned long)at, length > 0 ? path : info->dlpi_name);
        }
    return 0;
}

static void stop_sampling(const char *calls_name) {
    char name[4096];
    FILE *target;
    if (samples == NULL) return;
    if (event_file >= 0) close(event_file);
    else timer_delete(timer);
    snprintf(name, sizeof name, "%s.code", calls_name);
    if ((target = fopen(name, "w")) == NULL) return;
    dl_iterate_phdr(write_object, target);
    fclose(target);
}
