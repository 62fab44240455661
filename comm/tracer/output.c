/* The file of one rank, written in one go by system calls that a signal handler may make.
 *
 * Layout, in the machine's byte order: 16 bytes of magic and version, then chunks: four letters, the size of an item
 * (u32), the size of the chunk (u64), the items, zeros to the next multiple of 8. HEAD holds the rank's numbers, OPER the
 * names of the operations, MAPS the executable mappings of /proc/self/maps, and THRD, RECS, PEER and, where asked for, EVNT the
 * state and the tables of each thread. The file takes its final name when it is complete. */
#define _GNU_SOURCE
#include "tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PATH = 4096, MAPS = 1 << 18 };
static char final_name[PATH], part_name[PATH];
static char maps[MAPS];
static size_t maps_used;

/* What is to be written is listed first and goes out in as few calls as can be: a launcher that asks a process to end
 * kills it soon after. */
enum { PIECES = 512 };
typedef struct {
    char tag[4];
    uint32_t item;
    uint64_t bytes;
} chunk_head;
static struct iovec pieces[PIECES];
static chunk_head heads[PIECES];
static int listed;

static int flush(int fd)
{
    struct iovec *at = pieces, *end = pieces + listed;
    listed = 0;
    while (at < end) {
        ssize_t n = writev(fd, at, (int)(end - at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        for (; at < end && (size_t)n >= at->iov_len; at++)
            n -= (ssize_t)at->iov_len;
        if (at < end) {
            at->iov_base = (char *)at->iov_base + n;
            at->iov_len -= (size_t)n;
        }
    }
    return 0;
}

static int put(int fd, const void *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    if (listed == PIECES && flush(fd) != 0)
        return -1;
    pieces[listed].iov_base = (void *)data;
    pieces[listed++].iov_len = bytes;
    return 0;
}

static int begin_chunk(int fd, const char *tag, uint32_t item, uint64_t bytes)
{
    chunk_head *head = &heads[listed % PIECES];
    if (listed == PIECES && flush(fd) != 0)
        return -1;
    memcpy(head->tag, tag, 4);
    head->item = item;
    head->bytes = bytes;
    return put(fd, head, sizeof *head);
}

static int chunk(int fd, const char *tag, uint32_t item, const void *data, uint64_t bytes)
{
    static const char zeros[8];
    return begin_chunk(fd, tag, item, bytes) != 0 || put(fd, data, bytes) != 0 || put(fd, zeros, (size_t)(-bytes & 7));
}

static int table(int fd, const char *tag, const rs_table *t)
{
    uint32_t left = t->used, block;
    if (begin_chunk(fd, tag, t->item, (uint64_t)t->item * t->used) != 0)
        return -1;
    for (block = 0; left > 0; block++) {
        uint32_t n = left < RS_BLOCK ? left : RS_BLOCK;
        if (put(fd, t->blocks[block], (size_t)n * t->item) != 0)
            return -1;
        left -= n;
    }
    return 0;
}

static size_t slurp(const char *name, char *into, size_t room)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t n;
    if (fd < 0)
        return 0;
    while (used < room && ((n = read(fd, into + used, room - used)) > 0 || (n < 0 && errno == EINTR)))
        used += n > 0 ? (size_t)n : 0;
    close(fd);
    return used;
}

/* Only lines of executable mappings that have a file: "begin-end r-xp offset device inode path". */
static void read_maps(void)
{
    size_t used = slurp("/proc/self/maps", maps, MAPS), in = 0, out = 0;
    while (in < used) {
        char *line = maps + in, *end = memchr(line, '\n', used - in), *perms;
        size_t length;
        if (end == NULL)
            break;
        length = (size_t)(end - line) + 1;
        in += length;
        perms = memchr(line, ' ', length);
        if (perms != NULL && end - perms > 4 && perms[3] == 'x' && memchr(perms, '/', (size_t)(end - perms)) != NULL) {
            memmove(maps + out, line, length);
            out += length;
        }
    }
    maps_used = out;
}

/* Leaves an empty file that says: this rank began. */
int rs_write_begin(void)
{
    const char *folder = getenv("RANKSIGHT_TRACE_DIR");
    int fd, n;
    if (folder == NULL || folder[0] != '/' || strlen(folder) > PATH - 64)
        return -1;
    n = snprintf(final_name, sizeof final_name, "%s/rank-%06d.trace", folder, rs_state.rank);
    fd = open(final_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST) { /* another MPI_COMM_WORLD of the same run: a spawned one, or the next program of a script */
        snprintf(final_name + n - 6, sizeof final_name - (size_t)n + 6, "-%ld.trace", (long)getpid());
        fd = open(final_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    }
    if (fd < 0)
        return -1;
    close(fd);
    read_maps();
    snprintf(part_name, sizeof part_name, "%.*s.part", PATH - 8, final_name);
    return 0;
}

/* Value in bytes of the line "<name>   1234 kB". */
static uint64_t kilobytes(const char *text, size_t length, const char *name)
{
    size_t n = strlen(name), i;
    for (i = 0; i + n < length; i++)
        if ((i == 0 || text[i - 1] == '\n') && memcmp(text + i, name, n) == 0) {
            uint64_t value = 0;
            for (i += n; i < length && text[i] != '\n'; i++)
                if (text[i] >= '0' && text[i] <= '9')
                    value = value * 10 + (uint64_t)(text[i] - '0');
            return value * 1024;
        }
    return 0;
}

void rs_memory(uint64_t *pss, uint64_t *peak)
{
    char text[4096];
    if (pss != NULL)
        *pss = kilobytes(text, slurp("/proc/self/smaps_rollup", text, sizeof text), "Pss:");
    *peak = kilobytes(text, slurp("/proc/self/status", text, sizeof text), "VmHWM:");
}

static int write_all(int fd, int how, int number)
{
    static const uint32_t magic[4] = {0x534B4E52 /* RNKS */, 0x54484749 /* IGHT */, 1 /* version */, 0x01020304};
    enum { THREADS = 64 };
    static uint64_t states[THREADS][6];
    const rs_thread *t;
    unsigned n = 0;
    uint64_t head[] = {
        (uint64_t)rs_state.rank,  (uint64_t)rs_state.size,  (uint64_t)how,         (uint64_t)number,
        (uint64_t)rs_state.use_tsc, (uint64_t)rs_state.cpu_mode, rs_state.init_begin, rs_state.init_end,
        rs_state.final_begin,     rs_state.final_end,       rs_state.init_mono,    rs_state.final_mono,
        rs_state.init_cpu,        rs_state.final_cpu,       rs_state.pss_before,   rs_state.pss_end,
        rs_state.peak_before,     rs_state.peak_end,        0,
    };
    listed = 0;
    memcpy(&head[sizeof head / sizeof *head - 1], &rs_state.ns_per_tick, sizeof rs_state.ns_per_tick);
    if (put(fd, magic, sizeof magic) != 0 || chunk(fd, "HEAD", 8, head, sizeof head) != 0
        || chunk(fd, "OPER", 1, rs_operations, rs_operations_length) != 0 || chunk(fd, "MAPS", 1, maps, maps_used) != 0)
        return -1;
    for (t = rs_state.threads; t != NULL; t = t->next, n++) {
        uint64_t *state = states[n % THREADS];
        if (n > 0 && n % THREADS == 0 && flush(fd) != 0)
            return -1;
        state[0] = t->last->pc;
        state[1] = t->last_end;
        state[2] = (uint64_t)t->depth;
        state[3] = t->records.dropped;
        state[4] = t->peers.dropped;
        state[5] = t->events_dropped;
        if (chunk(fd, "THRD", 8, state, sizeof states[0]) != 0 || table(fd, "RECS", &t->records) != 0
            || table(fd, "PEER", &t->peers) != 0)
            return -1;
        if (t->events != NULL && chunk(fd, "EVNT", sizeof *t->events, t->events, sizeof *t->events * t->event_count) != 0)
            return -1;
    }
    return chunk(fd, "DONE", 1, "", 0) != 0 || flush(fd) != 0;
}

/* A full disk leaves the empty file of rs_write_begin and, whatever happens, the program's own fate as it was. */
void rs_write(int how, int number)
{
    sigset_t too_large, before;
    struct timespec at_once = {0, 0};
    int fd, failed;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &too_large, &before);
    /* After a signal every moment counts: launchers kill soon after they ask. The mappings of MPI_Init will do. */
    if (how != RS_END_SIGNAL)
        read_maps();
    if (how == RS_END_FINALIZE)
        rs_requests_close();
    fd = open(part_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd >= 0) {
        failed = write_all(fd, how, number);
        failed |= close(fd);
        if (failed || rename(part_name, final_name) != 0)
            unlink(part_name);
    }
    while (sigtimedwait(&too_large, NULL, &at_once) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
