/* What a rank leaves, written in one go by system calls that a signal handler may make, or copied for gather.c.
 *
 * Layout of one rank's content, of which a file holds one or, gathered, several, in the machine's byte order: 16 bytes
 * of magic and version, then chunks: four letters, the size of an item (u32), the size of the chunk (u64), the items, zeros
 * to the next multiple of 8. HEAD holds the rank's numbers, WRLD the worlds that were started (spawn.c), OPER the names of
 * the operations, MAPS the executable mappings of /proc/self/maps, PYTH the functions of Python that are call
 * sites, THRD, RECS, PEER and, where asked for, EVNT the state and the tables of each thread, and DONE, empty, ends it. */
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
static const char *folder;
static char names[2][PATH], parts[2][PATH]; /* of this rank's file, and where another program of the run has taken it */
static int claimed = -1;                    /* which of them is this rank's, -1: none yet */
static char maps[MAPS];
static size_t maps_used;

/* What is to be written is listed first and goes out in as few calls as can be: a launcher that asks a process to end
 * kills it soon after. It goes to a file, or into memory as far as there is room. */
enum { PIECES = 512 };
typedef struct {
    char tag[4];
    uint32_t item;
    uint64_t bytes;
} chunk_head;
static struct iovec pieces[PIECES];
static chunk_head heads[PIECES];
static int listed;
static struct {
    int fd; /* -1: memory */
    char *memory;
    uint64_t room, bytes;
} sink;

static int to_file(int fd, struct iovec *at, struct iovec *end)
{
    while (at < end) {
        ssize_t n = writev(fd, at, (int)(end - at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = EIO;
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

static int flush(void)
{
    struct iovec *at = pieces, *end = pieces + listed;
    listed = 0;
    if (sink.fd >= 0)
        return to_file(sink.fd, at, end);
    for (; at < end; at++) {
        if (sink.bytes + at->iov_len <= sink.room)
            memcpy(sink.memory + sink.bytes, at->iov_base, at->iov_len);
        sink.bytes += at->iov_len;
    }
    return 0;
}

static int put(const void *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    if (listed == PIECES && flush() != 0)
        return -1;
    pieces[listed].iov_base = (void *)data;
    pieces[listed++].iov_len = bytes;
    return 0;
}

static int begin_chunk(const char *tag, uint32_t item, uint64_t bytes)
{
    chunk_head *head = &heads[listed % PIECES];
    if (listed == PIECES && flush() != 0)
        return -1;
    memcpy(head->tag, tag, 4);
    head->item = item;
    head->bytes = bytes;
    return put(head, sizeof *head);
}

static int chunk(const char *tag, uint32_t item, const void *data, uint64_t bytes)
{
    static const char zeros[8];
    return begin_chunk(tag, item, bytes) != 0 || put(data, bytes) != 0 || put(zeros, (size_t)(-bytes & 7));
}

static int table(const char *tag, const rs_table *t)
{
    uint32_t left = t->used, block;
    if (begin_chunk(tag, t->item, (uint64_t)t->item * t->used) != 0)
        return -1;
    for (block = 0; left > 0; block++) {
        uint32_t n = left < RS_BLOCK ? left : RS_BLOCK;
        if (put(t->blocks[block], (size_t)n * t->item) != 0)
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

static struct stat first_stderr; /* a program may put a file of its own in its place */

/* Takes a name by an empty file, which says: this rank began. */
static int claim(void)
{
    int i, fd;
    for (i = 0; i < 2; i++) { /* the second: the next program of a script has the first */
        fd = open(names[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd >= 0) {
            close(fd);
            claimed = i;
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    return -1;
}

/* At the beginning, while nothing is in a hurry: names, mappings, and the rank's name where it is sure to write one. */
int rs_output_begin(int writes)
{
    const char *world, *between, *worlds;
    folder = getenv("RANKSIGHT_TRACE_DIR");
    if (folder == NULL || folder[0] != '/' || strlen(folder) > PATH - 192)
        return -1;
    world = rs_world_name();
    between = *world == '\0' ? "" : "-of-";
    snprintf(names[0], PATH, "%s/rank-%06d%s%s.trace", folder, rs_state.rank, between, world);
    snprintf(names[1], PATH, "%s/rank-%06d%s%s-%ld.trace", folder, rs_state.rank, between, world, (long)getpid());
    for (int i = 0; i < 2; i++)
        snprintf(parts[i], PATH, "%.*s.part", PATH - 8, names[i]);
    if (writes ? claim() != 0 : access(folder, W_OK | X_OK) != 0)
        return -1;
    if (fstat(STDERR_FILENO, &first_stderr) != 0)
        memset(&first_stderr, 0, sizeof first_stderr);
    read_maps();
    rs_worlds(&worlds);
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

static int content(int how, int number)
{
    static const uint32_t magic[4] = {0x534B4E52 /* RNKS */, 0x54484749 /* IGHT */, 2 /* version */, 0x01020304};
    enum { THREADS = 64 };
    static uint64_t states[THREADS][6];
    const rs_thread *t;
    const void *functions;
    const char *worlds;
    uint32_t item, known = rs_python_sites(&functions, &item), of_worlds = rs_worlds(&worlds);
    unsigned n = 0;
    uint64_t head[] = {
        (uint64_t)rs_state.rank,    (uint64_t)rs_state.size,     (uint64_t)how,       (uint64_t)number,
        (uint64_t)rs_state.use_tsc, (uint64_t)rs_state.cpu_mode, rs_state.init_begin, rs_state.init_end,
        rs_state.final_begin,       rs_state.init_mono,          rs_state.final_mono, rs_state.init_cpu,
        rs_state.final_cpu,         rs_state.pss_before,         rs_state.pss_end,    rs_state.peak_before,
        rs_state.peak_end,          0,
    };
    listed = 0;
    memcpy(&head[sizeof head / sizeof *head - 1], &rs_state.ns_per_tick, sizeof rs_state.ns_per_tick);
    if (put(magic, sizeof magic) != 0 || chunk("HEAD", 8, head, sizeof head) != 0
        || (of_worlds > 0 && chunk("WRLD", 1, worlds, of_worlds) != 0) || chunk("OPER", 1, rs_operations, rs_operations_length) != 0 || chunk("MAPS", 1, maps, maps_used) != 0
        || (known > 0 && chunk("PYTH", item, functions, (uint64_t)item * known) != 0))
        return -1;
    for (t = rs_state.threads; t != NULL; t = t->next, n++) {
        uint64_t *state = states[n % THREADS];
        if (n > 0 && n % THREADS == 0 && flush() != 0)
            return -1;
        state[0] = t->last->pc;
        state[1] = t->last_end;
        state[2] = (uint64_t)t->depth;
        state[3] = t->records.dropped;
        state[4] = t->peers.dropped;
        state[5] = t->events_dropped;
        if (chunk("THRD", 8, state, sizeof states[0]) != 0 || table("RECS", &t->records) != 0
            || table("PEER", &t->peers) != 0)
            return -1;
        if (t->events != NULL && chunk("EVNT", sizeof *t->events, t->events, sizeof *t->events * t->event_count) != 0)
            return -1;
    }
    return chunk("DONE", 1, "", 0) != 0 || flush() != 0;
}

/* While a file or a copy is made no handler may come in between; one that writes too much gets an error, not
 * SIGXFSZ. */
static void shield(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

static void unshield(const sigset_t *before)
{
    sigset_t too_large;
    struct timespec at_once = {0, 0};
    int saved = errno;
    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    while (sigtimedwait(&too_large, NULL, &at_once) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = saved;
}

/* strerror may lock or allocate, which a handler of signals must not. */
static const char *why(int error)
{
    return error == ENOSPC    ? "No space left on device"
           : error == EDQUOT  ? "Disk quota exceeded"
           : error == EFBIG   ? "File too large"
           : error == ENOENT  ? "No such file or directory"
           : error == EACCES  ? "Permission denied"
           : error == EROFS   ? "Read-only file system"
           : error == EIO     ? "Input/output error"
                              : "it cannot be written";
}

/* One line, to the standard error that the program was started with, by one system call. */
static void tell_loss(int error, int others)
{
    char line[PATH + 256], who[64];
    struct stat now;
    int n;
    if (fstat(STDERR_FILENO, &now) != 0 || now.st_dev != first_stderr.st_dev || now.st_ino != first_stderr.st_ino)
        return;
    snprintf(who, sizeof who,
             others > 1    ? "the traces of rank %d and %d others are"
             : others == 1 ? "the traces of rank %d and %d other are"
                           : "the trace of rank %d is",
             rs_state.rank, others);
    n = snprintf(line, sizeof line, "ranksight: %s lost, %s: %s; the program itself is not affected\n", who, folder,
                 why(error));
    if (write(STDERR_FILENO, line, (size_t)(n < (int)sizeof line ? n : (int)sizeof line - 1)) < 0)
        return;
}

uint64_t rs_content_copy(char *memory, uint64_t room)
{
    sigset_t before;
    shield(&before);
    read_maps();
    sink.fd = -1;
    sink.memory = memory;
    sink.room = room;
    sink.bytes = 0;
    content(RS_END_FINALIZE, 0);
    unshield(&before);
    return sink.bytes;
}

int rs_file_open(void)
{
    return claimed < 0 && claim() != 0 ? -1 : open(parts[claimed], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

int rs_file_put(int fd, const void *data, size_t bytes)
{
    struct iovec piece = {(void *)data, bytes};
    sigset_t before;
    int failed;
    shield(&before);
    failed = to_file(fd, &piece, &piece + 1);
    unshield(&before);
    return failed;
}

int rs_file_content(int fd, int how, int number)
{
    sigset_t before;
    int failed;
    shield(&before);
    /* After a signal every moment counts: launchers kill soon after they ask. The mappings of MPI_Init will do. */
    if (how != RS_END_SIGNAL)
        read_maps();
    sink.fd = fd;
    failed = content(how, number);
    unshield(&before);
    return failed;
}

/* The file takes its final name when it is complete. Whatever failed, the program's own fate stays as it was. */
void rs_file_close(int fd, int error, int others)
{
    if (fd >= 0 && close(fd) != 0 && error == 0)
        error = errno;
    if (fd >= 0 && error == 0 && rename(parts[claimed], names[claimed]) != 0)
        error = errno;
    if (error == 0)
        return;
    if (fd >= 0)
        unlink(parts[claimed]);
    tell_loss(error, others);
}

void rs_file_drop(void)
{
    if (claimed >= 0)
        unlink(names[claimed]);
}

void rs_write(int how, int number)
{
    int fd = rs_file_open();
    rs_file_close(fd, fd < 0 || rs_file_content(fd, how, number) != 0 ? errno : 0, 0);
}
