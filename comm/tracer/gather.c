/* In MPI_Finalize the ranks' contents are gathered: one file for each group of ranks, written by the first of the group.
 *
 * Messages pass over a duplicate of MPI_COMM_WORLD that was made in MPI_Init, by PMPI calls that no count sees. A member of
 * a group says HERE; the leader answers GO to one member at a time, writes what comes, and says WRITTEN when the file is
 * complete. So the leader holds one content at a time, however many ranks there are.
 *
 * Other ranks may have died, or be late by hours: nobody waits for longer than a limit without news. A member that has
 * waited in vain says GONE and writes a file of its own, as after a signal; a leader that has waited in vain says NO to
 * whom it misses, who will not wait then. Nobody sends data who was not asked, and only receives are ever given up, which
 * MPI can cancel: MPI_Finalize finds nothing under way. A content that is in two files is told apart by the reader. */
#define _GNU_SOURCE
#include "tracer.h"

#ifdef RS_SIMULATED /* gathering would take the simulation's time */

void rs_gather_begin(void) {}
int rs_gather_leads(void) { return 1; }
void rs_gather_leave(void) {}
int rs_gather(void) { return 0; }

#else

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

enum { LARGEST = 4 << 20 }; /* bytes of content; larger ones, which event traces are, each rank writes by itself */
enum { TO_LEADER = 1, TO_MEMBER, DATA };
enum { HERE = 1, GONE, GO, NO, WRITTEN };
typedef struct {
    uint64_t what, bytes;
} word;

static MPI_Comm channel = MPI_COMM_NULL;
static int leader, members; /* world rank; ranks of the group beside it */
static double limit;        /* seconds without news */

/* RANKSIGHT_TRACE_GATHER: the limit in seconds, 0: each rank writes a file; RANKSIGHT_TRACE_GROUP: ranks a file. Both are
 * the same on every rank, as whatever preloads the tracer is. */
void rs_gather_begin(void)
{
    const char *seconds = getenv("RANKSIGHT_TRACE_GATHER"), *ranks = getenv("RANKSIGHT_TRACE_GROUP");
    int group = ranks != NULL && atoi(ranks) > 0 ? atoi(ranks) : 256;
    limit = seconds != NULL ? strtod(seconds, NULL) : 30;
    leader = rs_state.rank;
    if (!(limit > 0) || rs_state.size == 1 || group == 1 || PMPI_Comm_dup(MPI_COMM_WORLD, &channel) != MPI_SUCCESS)
        return;
    PMPI_Comm_set_errhandler(channel, MPI_ERRORS_RETURN);
    leader = rs_state.rank / group * group;
    members = (rs_state.size - leader < group ? rs_state.size - leader : group) - 1;
}

int rs_gather_leads(void) { return leader == rs_state.rank; }

/* Words are small and mostly on their way when the call returns; `from` stays as it is until the end. */
static void say(const word *from, int rank, int tag)
{
    MPI_Request request;
    if (PMPI_Isend(from, sizeof *from, MPI_BYTE, rank, tag, channel, &request) == MPI_SUCCESS)
        PMPI_Request_free(&request);
}

static void say_to_leader(uint64_t what, uint64_t bytes)
{
    static word said[3];
    static int n;
    said[n % 3] = (word){what, bytes};
    say(&said[n++ % 3], leader, TO_LEADER);
}

static void say_to_member(uint64_t what, int rank)
{
    static const word words[] = {{GO, 0}, {NO, 0}, {WRITTEN, 0}};
    say(&words[what - GO], rank, TO_MEMBER);
}

static double now(void) { return (double)rs_clock_ns(CLOCK_MONOTONIC) * 1e-9; }

static void pause_between(unsigned *tries)
{
    struct timespec moment = {0, 50000};
    if (++*tries < 200)
        sched_yield();
    else
        nanosleep(&moment, NULL);
}

/* Give a receive up; returns whether it is: otherwise a message was faster, and is there. */
static int give_up(MPI_Request *request)
{
    MPI_Status status;
    int cancelled = 1;
    if (*request == MPI_REQUEST_NULL)
        return 1;
    PMPI_Cancel(request);
    if (PMPI_Wait(request, &status) == MPI_SUCCESS)
        PMPI_Test_cancelled(&status, &cancelled);
    return cancelled;
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

/* Whether the request completed within so many seconds and without an error. */
static int completes(MPI_Request *request, double seconds)
{
    double end = now() + seconds;
    unsigned tries = 0;
    int done = 0;
    for (;;) {
        if (PMPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return 0;
        if (done || now() > end)
            return done;
        pause_between(&tries);
    }
}

/* The leader's next word; NO where none came in time. A leader may itself wait for others. */
static uint64_t hear(void)
{
    word heard = {NO, 0};
    MPI_Request request;
    if (PMPI_Irecv(&heard, sizeof heard, MPI_BYTE, leader, TO_MEMBER, channel, &request) != MPI_SUCCESS)
        return NO;
    if (!completes(&request, 2 * limit) && give_up(&request))
        return NO;
    return heard.what;
}

static int follow(void)
{
    uint64_t bytes = rs_content_size();
    char *content = bytes <= LARGEST ? malloc(bytes) : NULL;
    MPI_Request request;
    int sent;
    if (content == NULL) {
        say_to_leader(GONE, 0);
        return 0;
    }
    rs_content_copy(content);
    say_to_leader(HERE, bytes);
    if (hear() != GO) {
        say_to_leader(GONE, 0);
        free(content);
        return 0;
    }
    sent = PMPI_Isend(content, (int)bytes, MPI_BYTE, leader, DATA, channel, &request) == MPI_SUCCESS
           && completes(&request, limit); /* the content stays: an unfinished send reads it */
    return sent && hear() == WRITTEN;
}

/* ---- the leader -------------------------------------------------------------------------------------------------- */

typedef struct {
    enum { ABSENT, WAITING, SERVED, AWAY } state;
    uint64_t bytes;
} member;

typedef struct {
    member *members; /* by rank in the group, from 1 */
    int left, served;     /* how many have neither sent nor gone; whose content is on its way, 0: nobody's */
    int next;             /* where the search for one that waits goes on */
    word heard;
    char *content;
    MPI_Request words, data;
} service;

static int listen(service *s)
{
    return PMPI_Irecv(&s->heard, sizeof s->heard, MPI_BYTE, MPI_ANY_SOURCE, TO_LEADER, channel, &s->words) == MPI_SUCCESS;
}

/* A member spoke. */
static void attend(service *s, int rank)
{
    int who = rank - leader;
    member *m = &s->members[who];
    if (s->heard.what == HERE && s->heard.bytes <= LARGEST && m->state == ABSENT) {
        m->state = WAITING;
        m->bytes = s->heard.bytes;
    } else if (s->heard.what == GONE && m->state != SERVED && m->state != AWAY) {
        if (s->served == who && !give_up(&s->data))
            return; /* it came after all */
        s->served = s->served == who ? 0 : s->served;
        m->state = AWAY;
        s->left--;
    }
}

/* Ask the next one that waits; returns whether there is one. */
static int serve(service *s)
{
    int i, who;
    for (i = 0; i < members; i++) {
        who = 1 + (s->next + i) % members;
        if (s->members[who].state != WAITING)
            continue;
        s->next = who;
        s->served = who;
        if (PMPI_Irecv(s->content, (int)s->members[who].bytes, MPI_BYTE, leader + who, DATA, channel, &s->data) != MPI_SUCCESS) {
            s->data = MPI_REQUEST_NULL;
            s->served = 0;
            return 0;
        }
        say_to_member(GO, leader + who);
        return 1;
    }
    return 0;
}

/* Write what the members send until all have, or none has said a word for the limit. Returns 0 or an error of the file. */
static int collect(service *s, int fd, int error)
{
    double news = now();
    unsigned tries = 0;
    MPI_Status status;
    int done;
    if (!listen(s))
        return error;
    while (s->left > 0 && now() - news < limit) {
        int heard = 0;
        if (PMPI_Test(&s->words, &heard, &status) != MPI_SUCCESS)
            break; /* a rank has failed, and the library says so */
        if (heard) {
            attend(s, status.MPI_SOURCE);
            if (!listen(s))
                break;
        }
        done = 0;
        if (s->served != 0 && PMPI_Test(&s->data, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            break;
        if (done) {
            member *m = &s->members[s->served];
            if (error == 0 && rs_file_put(fd, s->content, m->bytes) != 0)
                error = errno;
            m->state = SERVED;
            s->served = 0;
            s->left--;
        }
        if (heard || done || (s->served == 0 && serve(s))) {
            news = now();
            tries = 0;
        } else
            pause_between(&tries);
    }
    if (s->served != 0)
        give_up(&s->data);
    give_up(&s->words);
    return error;
}

static int lead(void)
{
    service s = {.left = members, .words = MPI_REQUEST_NULL, .data = MPI_REQUEST_NULL};
    int fd, error = 0, i;
    s.members = calloc((size_t)members + 1, sizeof *s.members);
    s.content = malloc(LARGEST);
    if (s.members == NULL || s.content == NULL) {
        rs_gather_leave();
        return 0;
    }
    rs_content_size(); /* the mappings anew */
    fd = rs_file_open();
    if (fd < 0 || rs_file_content(fd, RS_END_FINALIZE, 0) != 0)
        error = errno;
    error = collect(&s, fd, error);
    rs_file_close(fd, error, members);
    for (i = 1; i <= members; i++) {
        if (s.members[i].state == SERVED)
            say_to_member(WRITTEN, leader + i); /* or lost, which has been told: their own files would find no more room */
        else if (s.members[i].state != AWAY)
            say_to_member(NO, leader + i);
    }
    free(s.members);
    free(s.content);
    return 1;
}

/* This rank will take no part: it could not begin a trace. */
void rs_gather_leave(void)
{
    int i;
    if (channel == MPI_COMM_NULL)
        return;
    if (leader != rs_state.rank)
        say_to_leader(GONE, 0);
    for (i = 1; leader == rs_state.rank && i <= members; i++)
        say_to_member(NO, leader + i);
}

/* Whether this rank's content is in a file of its group, or was lost with it. */
int rs_gather(void)
{
    if (channel == MPI_COMM_NULL)
        return 0;
    return leader == rs_state.rank ? lead() : follow();
}

#endif
