/* In MPI_Finalize the contents of a node's ranks are gathered: one file for each group of ranks, written by its leader.
 *
 * Not every rank of a program need have the tracer: one of a program's parts may be started without it, one node may not
 * find the library. Whatever MPI does collectively would wait for those, so no message of MPI is sent: ranks that share a
 * node find each other by the name of a local socket. The first to take the name leads; the others connect to it in MPI_Init
 * and are taken up by the leader in MPI_Finalize. A member then sends its content, and the leader answers when the file is
 * complete. The leader holds one content at a time, however many ranks there are.
 *
 * Other ranks may have died, which closes their connection, or be late by hours: nobody waits for longer than a limit
 * without news. A member that has waited in vain, or whose leader is gone, writes a file of its own, as after a signal. The
 * reader recognises content that is in two files. */
#define _GNU_SOURCE
#include "tracer.h"

#ifdef RS_SIMULATED /* gathering would take the simulation's time */

void rs_gather_begin(void) {}
int rs_gather_leads(void) { return 1; }
void rs_gather_leave(void) {}
int rs_gather(void) { return 0; }

#else

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LARGEST = 4 << 20 }; /* bytes of content; larger ones, which event traces are, each rank writes by itself */
enum { NAMES = 64 };        /* groups on a node */
enum { WRITTEN = 'W' };

static enum { ALONE, LEADER, MEMBER } part;
static int channel = -1;
static ino_t channel_is; /* a program may close what it did not open, and open its own in that place */
static int group = 256;  /* ranks that share a file */
static double limit;     /* seconds without news */

static double now(void) { return (double)rs_clock_ns(CLOCK_MONOTONIC) * 1e-9; }

/* What a rank has sent may need its own calls of MPI to arrive, so a rank that waits makes some: testing a request that is
 * nobody's serves all others. */
static MPI_Request idle = MPI_REQUEST_NULL;

static int no_query(void *state, MPI_Status *status)
{
    (void)state;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}
static int no_free(void *state) { return (void)state, MPI_SUCCESS; }
static int no_cancel(void *state, int complete) { return (void)state, (void)complete, MPI_SUCCESS; }

int rs_idle_request(MPI_Request *request)
{
    return PMPI_Grequest_start(no_query, no_free, no_cancel, NULL, request);
}

static void progress(void)
{
    int done;
    if (idle != MPI_REQUEST_NULL || rs_idle_request(&idle) == MPI_SUCCESS)
        PMPI_Test(&idle, &done, MPI_STATUS_IGNORE);
}

static void end_progress(void)
{
    if (idle != MPI_REQUEST_NULL && PMPI_Grequest_complete(idle) == MPI_SUCCESS)
        PMPI_Wait(&idle, MPI_STATUS_IGNORE);
}

/* How many of some sockets are ready before the time is over. */
static int wait_for(struct pollfd *sockets, int n, double seconds)
{
    double end = now() + seconds;
    int ready;
    do {
        progress();
        ready = poll(sockets, (nfds_t)n, 1);
    } while ((ready == 0 || (ready < 0 && errno == EINTR)) && now() < end);
    return ready > 0 ? ready : 0;
}

/* Send or receive all of some bytes, waiting up to so many seconds at a time. Returns whether all went. */
static int transfer(int fd, int sends, char *data, size_t bytes, double seconds)
{
    while (bytes > 0) {
        struct pollfd one = {fd, sends ? POLLOUT : POLLIN, 0};
        ssize_t n = sends ? send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) : recv(fd, data, bytes, MSG_DONTWAIT);
        if (n > 0) {
            data += n;
            bytes -= (size_t)n;
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR) || !wait_for(&one, 1, seconds))
            return 0;
    }
    return 1;
}

/* Another user of the node might take the name, or connect to it. */
static int own(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

static uint64_t hashed(uint64_t hash, const char *text)
{
    while (*text != '\0')
        hash = (hash ^ (unsigned char)*text++) * UINT64_C(1099511628211);
    return hash;
}

/* The name of a group: the same for all ranks of a world that leave their traces in one folder. */
static socklen_t name(struct sockaddr_un *address, const char *folder, int number)
{
    uint64_t hash = hashed(hashed(UINT64_C(14695981039346656037), folder), rs_world_name());
    int length;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "ranksight-%ld-%016llx-%d-%d", (long)geteuid(),
                      (unsigned long long)hash, rs_state.size, number);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Take the name, or connect to who has it; a group that is full lets nobody in. Returns whether there is a next to try. */
static int join(int fd, const char *folder, int number)
{
    struct sockaddr_un address;
    socklen_t length = name(&address, folder, number);
    unsigned tries;
    for (tries = 0; tries < 10000; tries++) { /* the name is taken a moment before it listens */
        if (bind(fd, (struct sockaddr *)&address, length) == 0) {
            part = listen(fd, group - 2) == 0 ? LEADER : ALONE; /* a queue holds one more than its length */
            return 0;
        }
        if (errno == EADDRINUSE && connect(fd, (struct sockaddr *)&address, length) == 0) {
            part = own(fd) ? MEMBER : ALONE;
            return part == ALONE;
        }
        if (errno == EAGAIN)
            return 1;
        if (errno != ECONNREFUSED)
            return 0;
        sched_yield();
    }
    return 1;
}

/* RANKSIGHT_TRACE_GATHER: the limit in seconds, 0: each rank writes a file; RANKSIGHT_TRACE_GROUP: ranks a file. */
void rs_gather_begin(void)
{
    const char *seconds = getenv("RANKSIGHT_TRACE_GATHER"), *ranks = getenv("RANKSIGHT_TRACE_GROUP");
    const char *folder = getenv("RANKSIGHT_TRACE_DIR");
    struct stat is;
    int number, more = 1;
    group = ranks != NULL && atoi(ranks) > 0 ? atoi(ranks) : group;
    limit = seconds != NULL ? strtod(seconds, NULL) : 30;
    if (!(limit > 0) || rs_state.size == 1 || group == 1 || folder == NULL)
        return;
    for (number = 0; number < NAMES && more; number++) {
        rs_gather_leave();
        channel = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        more = channel >= 0 && join(channel, folder, number);
    }
    if (part == ALONE || fstat(channel, &is) != 0)
        rs_gather_leave();
    else
        channel_is = is.st_ino;
}

int rs_gather_leads(void) { return part != MEMBER; }

static int channel_stands(void)
{
    struct stat is;
    return channel >= 0 && fstat(channel, &is) == 0 && S_ISSOCK(is.st_mode) && is.st_ino == channel_is;
}

/* This rank takes no part: it could not begin a trace, or is done. */
void rs_gather_leave(void)
{
    if (channel >= 0)
        close(channel);
    channel = -1;
    part = ALONE;
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

/* A leader may itself wait for others: its members are twice as patient. */
static int follow(void)
{
    char *content = malloc(LARGEST), answer = 0;
    uint64_t bytes = content != NULL ? rs_content_copy(content, LARGEST) : 0;
    int sent = bytes > 0 && bytes <= LARGEST && transfer(channel, 1, (char *)&bytes, sizeof bytes, 2 * limit)
               && transfer(channel, 1, content, bytes, 2 * limit);
    free(content);
    return sent && transfer(channel, 0, &answer, 1, 2 * limit) && answer == WRITTEN;
}

/* ---- the leader -------------------------------------------------------------------------------------------------- */

/* Take up who has connected; the leader's own socket stands first. */
static void take_up(struct pollfd *sockets, int *n)
{
    int fd;
    while (*n < group && (fd = accept4(channel, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (own(fd))
            sockets[(*n)++] = (struct pollfd){fd, POLLIN, 0};
        else
            close(fd);
    }
}

/* A member's content, into the file. Returns whether it came whole; `error` is one of the file. */
static int serve(int from, char *content, int file, int *error)
{
    uint64_t bytes;
    if (!transfer(from, 0, (char *)&bytes, sizeof bytes, limit) || bytes > LARGEST
        || !transfer(from, 0, content, bytes, limit))
        return 0;
    if (*error == 0 && rs_file_put(file, content, bytes) != 0)
        *error = errno;
    return 1;
}

/* Write what the members send until all have, or none has been heard of for the limit; those that are served come first,
 * from 1. Returns how many. */
static int collect(struct pollfd *sockets, int *n, char *content, int file, int *error)
{
    int served = 0, i;
    take_up(sockets, n);
    while (served + 1 < *n) {
        struct pollfd *waiting = sockets + 1 + served;
        if (!wait_for(waiting, *n - 1 - served, limit))
            break;
        for (i = 1 + served; i < *n; i++) {
            struct pollfd one = sockets[i];
            if (one.revents == 0)
                continue;
            if (serve(one.fd, content, file, error)) {
                sockets[i] = sockets[++served];
                sockets[served] = one;
            } else { /* it has died, or writes a file of its own */
                close(one.fd);
                sockets[i--] = sockets[--*n];
            }
        }
        take_up(sockets, n);
    }
    return served;
}

static int lead(void)
{
    struct pollfd *sockets = calloc((size_t)group, sizeof *sockets);
    char *content = malloc(LARGEST), written = WRITTEN;
    int file, error = 0, n = 1, served, i;
    if (sockets == NULL || content == NULL) {
        free(sockets);
        free(content);
        return 0;
    }
    file = rs_file_open();
    if (file < 0 || rs_file_content(file, RS_END_FINALIZE, 0) != 0)
        error = errno;
    served = collect(sockets, &n, content, file, &error);
    rs_file_close(file, error, served);
    for (i = 1; i < n; i++) {
        if (i <= served) /* or lost, which was reported: their own files would find no more room */
            send(sockets[i].fd, &written, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        close(sockets[i].fd);
    }
    free(sockets);
    free(content);
    return 1;
}

/* Whether this rank's content is in a file of its group, or was lost with it. */
int rs_gather(void)
{
    int done;
    if (!channel_stands())
        return 0;
    done = part == LEADER ? lead() : follow();
    end_progress();
    close(channel);
    channel = -1; /* what it was, leader or member, is still asked for */
    return done;
}

#endif
