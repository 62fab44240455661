/* State of MPI handles: whom a communicator, window or file reaches, and what a request will complete. */
#ifndef RANKSIGHT_TRACER_HANDLES_H
#define RANKSIGHT_TRACER_HANDLES_H

#include "tracer.h"

/* ---- communicators ---------------------------------------------------------------------------------------------- */

typedef struct rs_group {
    uint64_t handle;
    int kind; /* 'c' communicator, 'w' window, 'f' file */
    int size, local, remote, inter, me;
    int peers;        /* length of world */
    int *world;       /* rank in MPI_COMM_WORLD of each rank that can be addressed, -1 outside it; NULL: identity */
    int slots;        /* outgoing neighbours of the topology, -1 before they were asked for */
    int *neighbour;   /* ranks of the communicator, MPI_PROC_NULL where there is none */
    int held, dead;   /* requests that point here; whether its handle was freed */
    struct rs_group *next;
} rs_group;

extern RS_HIDDEN volatile uint64_t rs_group_generation;
RS_HIDDEN rs_group *rs_group_find(uint64_t handle, int kind);
RS_HIDDEN rs_group *rs_comm_slow(MPI_Comm comm);
RS_HIDDEN rs_group *rs_win(MPI_Win win);
RS_HIDDEN rs_group *rs_file(MPI_File file);
RS_HIDDEN void rs_neighbours(rs_group *group, MPI_Comm comm);
RS_HIDDEN void rs_groups_begin(MPI_Group world);
RS_HIDDEN void rs_group_forget(uint64_t handle, int kind);
RS_HIDDEN void rs_group_free(rs_group *group); /* under the lock */

#define RS_HANDLE(x) ((uint64_t)(uintptr_t)(x))

typedef struct {
    uint64_t handle, generation;
    rs_group *group;
} rs_recent;
extern RS_HIDDEN RS_TLS rs_recent rs_recent_comm RS_TLS_MODEL;

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
    uint64_t handle;
    rs_record *own; /* the call that posted or started it */
    rs_group *group;
    uint64_t bytes;      /* of one start: sends and collectives */
    uint32_t comm_size;
    int32_t peer, tag;   /* of a persistent send; peer in MPI_COMM_WORLD */
    uint16_t operation;  /* what a completion or a start is recorded as */
    uint8_t kind;        /* 'r' receive, 's' send, 'c' collective */
    uint8_t persistent, started, null;
    rs_thread *thread;
    struct rs_request *next;
} rs_request;

extern RS_HIDDEN volatile uint64_t rs_requests_held;
extern RS_HIDDEN volatile int rs_cancelled; /* whether the program ever asked to cancel a request */
RS_HIDDEN rs_request *rs_request_add(uint64_t handle, rs_group *group);
RS_HIDDEN rs_request *rs_request_search(uint64_t handle);
RS_HIDDEN void rs_request_drop(rs_request *request);
RS_HIDDEN void rs_requests_close(void);

extern RS_HIDDEN rs_request **rs_buckets;
extern RS_HIDDEN uint64_t rs_bucket_mask; /* their number less one; more as more requests are outstanding */

/* Requests that follow each other have handles that do, numbers or addresses: their buckets share lines of the cache. */
static inline rs_request **rs_bucket(uint64_t handle)
{
    return &rs_buckets[(handle ^ handle >> 6) & rs_bucket_mask];
}

RS_HOT rs_request *rs_request_find(uint64_t handle)
{
    rs_request *r;
    if (rs_requests_held == 0)
        return NULL;
    if (RS_UNLIKELY(rs_state.threaded))
        return rs_request_search(handle);
    for (r = *rs_bucket(handle); r != NULL && r->handle != handle;)
        r = r->next;
    return r;
}

#endif
