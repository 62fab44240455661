/* What a call that has returned means: bytes, peers, requests. Used by the generated wrappers of C and Fortran, with
 * the handles of C. Communicators and datatypes are only looked at after MPI has accepted them. */
#ifndef RANKSIGHT_HOOKS_H
#define RANKSIGHT_HOOKS_H

#include "handles.h"

#include <stdlib.h>

#define RS_FEW 64

/* Where indices begin, and how arrays of handles are read: Fortran's wrappers define these anew. */
#define RS_BASE 0
#define RS_TYPE_AT(types, i) ((types)[i])
#define RS_REQUEST_AT(requests, i) ((requests)[i])

/* Sizes of predefined datatypes are kept: their handles are never freed. Of derived ones only that they are derived is. */
typedef struct {
    uint64_t handle, size;
} rs_known_type;
static RS_TLS rs_known_type rs_known_types[16] RS_TLS_MODEL;

static __attribute__((noinline)) uint64_t rs_size_slow(MPI_Datatype type, rs_known_type *known)
{
    MPI_Count size = 0;
    int integers, addresses, types, combiner = 0;
    PMPI_Type_size_x(type, &size);
    if (known->handle != RS_HANDLE(type) + 1) {
        PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
        known->handle = RS_HANDLE(type) + 1;
        known->size = combiner == MPI_COMBINER_NAMED && size >= 0 ? (uint64_t)size : UINT64_MAX;
    }
    return size > 0 ? (uint64_t)size : 0;
}

RS_HOT uint64_t rs_size(MPI_Datatype type)
{
    /* Addresses, MPICH's numbers and the small ones of the standard ABI differ in other bits. */
    rs_known_type *known = &rs_known_types[RS_HANDLE(type) * UINT64_C(0x9E3779B97F4A7C15) >> 60];
    if (RS_LIKELY(known->handle == RS_HANDLE(type) + 1 && known->size != UINT64_MAX))
        return known->size;
    return rs_size_slow(type, known);
}

RS_HOT uint64_t rs_bytes(MPI_Count count, MPI_Datatype type)
{
    return count > 0 ? (uint64_t)count * rs_size(type) : 0;
}

static inline uint64_t rs_status_bytes(const MPI_Status *status)
{
    MPI_Count large = 0;
    int n = 0;
#if defined(OMPI_MAJOR_VERSION)
    return status->_ucount;
#elif defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 30000000
    return (uint64_t)(unsigned)status->count_lo | (uint64_t)((unsigned)status->count_hi_and_cancelled >> 1) << 32;
#endif
    PMPI_Get_count((MPI_Status *)status, MPI_BYTE, &n);
    if (RS_LIKELY(n >= 0))
        return (uint64_t)n;
    PMPI_Get_elements_x((MPI_Status *)status, MPI_BYTE, &large); /* more than an int counts */
    return large > 0 ? (uint64_t)large : 0;
}

/* ---- calls that move nothing, or whose data are counted elsewhere ------------------------------------------------ */

static __attribute__((noinline, cold, unused)) void rs_failed(rs_call *c, unsigned op) { rs_add(c, op, 0, 0, 0); }

RS_HOT void rs_sized(rs_call *c, unsigned op, uint32_t size) { rs_add(c, op, size, 1, 0); }

RS_HOT void rs_plain(rs_call *c, unsigned op) { rs_sized(c, op, 0); }

RS_HOT void rs_on_comm(rs_call *c, unsigned op, MPI_Comm comm)
{
    rs_sized(c, op, comm == MPI_COMM_NULL ? 0 : (uint32_t)rs_comm(comm)->size);
}

/* ---- point to point ---------------------------------------------------------------------------------------------- */

/* A transfer with one peer, a rank of group `g`; nothing moves to or from MPI_PROC_NULL: its time is kept, no message is counted. */
RS_HOT void rs_transfer(rs_call *c, unsigned op, const rs_group *g, int rank, int tag, uint64_t bytes)
{
    if (RS_UNLIKELY(rank == MPI_PROC_NULL))
        rs_add(c, op, (uint32_t)g->size, 0, 0);
    else
        rs_add_peer(c->thread, rs_add(c, op, (uint32_t)g->size, 1, bytes), rs_world(g, rank), tag, bytes);
}

/* The same in addition to the call's own record. */
RS_HOT void rs_transfer_beside(rs_thread *t, rs_record *own, unsigned op, uint32_t size, int null, int peer, int tag,
                                      uint64_t bytes)
{
    rs_record *r = rs_add_beside(t, own, op, size, !null, null ? 0 : bytes);
    if (!null)
        rs_add_peer(t, r, peer, tag, bytes);
}

RS_HOT void rs_send(rs_call *c, unsigned op, MPI_Count count, MPI_Datatype type, int dest, int tag,
                           MPI_Comm comm)
{
    rs_transfer(c, op, rs_comm(comm), dest, tag, rs_bytes(count, type));
}

static inline void rs_recv(rs_call *c, unsigned op, const rs_group *g, const MPI_Status *status)
{
    rs_transfer(c, op, g, status->MPI_SOURCE, status->MPI_TAG, rs_status_bytes(status));
}

/* The receiving half of a call that also sends. */
static inline void rs_recv_half(rs_call *c, unsigned op, MPI_Comm comm, const MPI_Status *status)
{
    const rs_group *g = rs_comm(comm);
    int null = status->MPI_SOURCE == MPI_PROC_NULL;
    rs_transfer_beside(c->thread, c->thread->last, op, (uint32_t)g->size, null, rs_world(g, status->MPI_SOURCE),
                       status->MPI_TAG, rs_status_bytes(status));
}

/* A request that will complete or start as operation `op`; `kind` as in rs_request. NULL without memory. */
static inline rs_request *rs_request_new(rs_call *c, unsigned op, int kind, rs_group *g, uint64_t handle)
{
    rs_request *r = rs_request_add(handle, g);
    if (r == NULL)
        return NULL;
    r->own = c->thread->last;
    r->comm_size = (uint32_t)g->size;
    r->operation = (uint16_t)op;
    r->kind = (uint8_t)kind;
    r->thread = c->thread;
    return r;
}

/* A receive is posted: time and computation are recorded now, under class 0 with no message yet; the message at completion. */
RS_HOT void rs_await(rs_call *c, unsigned op, rs_group *g, int source, uint64_t handle)
{
    if (source != MPI_PROC_NULL)
        rs_request_new(c, op, 'r', g, handle);
}

RS_HOT void rs_irecv(rs_call *c, unsigned op, int source, MPI_Comm comm, uint64_t handle)
{
    rs_group *g = rs_comm(comm);
    rs_add(c, op, (uint32_t)g->size, 0, 0);
    rs_await(c, op, g, source, handle);
}

/* A persistent request: `op` is what each start counts as. */
static inline void rs_persist(rs_call *c, unsigned op, int kind, rs_group *g, int rank, int tag, uint64_t bytes,
                              uint64_t handle)
{
    rs_request *r = rs_request_new(c, op, kind, g, handle);
    if (r == NULL)
        return;
    r->bytes = bytes;
    r->peer = kind == 's' ? rs_world(g, rank) : -1;
    r->null = rank == MPI_PROC_NULL && kind != 'c';
    r->tag = tag;
    r->persistent = 1;
}

static inline void rs_start(rs_call *c, uint64_t handle)
{
    rs_request *r = rs_request_find(handle);
    if (r == NULL)
        return;
    r->started = 1;
    r->own = c->thread->last;
    r->thread = c->thread;
    if (r->kind == 's')
        rs_transfer_beside(c->thread, r->own, r->operation, r->comm_size, r->null, r->peer, r->tag, r->bytes);
    else if (r->kind == 'c')
        rs_add_beside(c->thread, r->own, r->operation, r->comm_size, 1, r->bytes);
}

/* A request has completed with `status`: where it was a receive, its bytes are known now. */
RS_HOT void rs_done(rs_call *c, rs_request *r, const MPI_Status *status)
{
    rs_record *own = r->own;
    int cancelled = 0, null;
    if (r->kind == 'r' && (!r->persistent || r->started)) {
        if (RS_UNLIKELY(rs_cancelled))
            PMPI_Test_cancelled((MPI_Status *)status, &cancelled);
        null = r->null || cancelled || status->MPI_SOURCE == MPI_PROC_NULL;
        if (r->thread != c->thread) /* posted by another thread: its tables are its own */
            own = rs_record_find(c->thread, 0, own->pc, own->key);
        rs_transfer_beside(c->thread, own, r->operation, r->comm_size, null,
                           null ? -1 : rs_world(r->group, status->MPI_SOURCE), status->MPI_TAG,
                           null ? 0 : rs_status_bytes(status));
    }
    if (r->persistent)
        r->started = 0;
    else
        rs_request_drop(r);
}

/* Before a completion: the record of its request, or NULL. */
#define RS_FIND(call, request) rs_request *rs_r = rs_recording(call) ? rs_request_find(RS_HANDLE(request)) : NULL

/* Those of `n` requests, or NULL where none is known. */
#define RS_FIND_MANY(call, n, requests) \
    rs_request *rs_few[RS_FEW], **rs_r = rs_recording(call) ? RS_FIND_ALL(rs_few, n, requests) : NULL; \
    int rs_n = (n); \
    (void)rs_n
#define RS_FREE_MANY() if (rs_r != NULL && rs_r != rs_few) free(rs_r)
#define RS_FIND_ALL(few, n, requests) __extension__({ \
    rs_request **rs_all = rs_requests_held == 0 || (n) <= 0 ? NULL : (n) <= RS_FEW ? (few) : malloc(sizeof *rs_all * (size_t)(n)); \
    int rs_any = 0; \
    for (int rs_i = 0; rs_all != NULL && rs_i < (n); rs_i++) \
        rs_any |= (rs_all[rs_i] = rs_request_find(RS_HANDLE(RS_REQUEST_AT(requests, rs_i)))) != NULL; \
    if (!rs_any && rs_all != (few)) \
        free(rs_all); \
    rs_any ? rs_all : NULL; \
})

/* A status for the call where the program ignores it and the tracer needs it; likewise those of `n` requests. */
#define RS_NEED_STATUS(needed, status) \
    MPI_Status rs_status; \
    if ((needed) && (status) == MPI_STATUS_IGNORE) \
        (status) = &rs_status
#define RS_NEED_STATUSES(n, statuses) \
    MPI_Status rs_some[RS_FEW], *rs_own = NULL; \
    if (rs_r != NULL && (statuses) == MPI_STATUSES_IGNORE \
        && (rs_own = (n) > RS_FEW ? malloc(sizeof *rs_own * (size_t)(n)) : rs_some) != NULL) \
        (statuses) = rs_own
#define RS_FREE_STATUSES() if (rs_own != NULL && rs_own != rs_some) free(rs_own)

/* After it: one of several has completed, or all have. */
RS_HOT void rs_done_one(rs_call *c, rs_request **all, int at, const MPI_Status *status)
{
    if (at >= 0 && all[at] != NULL)
        rs_done(c, all[at], status);
}

RS_HOT void rs_done_all(rs_call *c, rs_request **all, int n, const MPI_Status *statuses)
{
    for (int i = 0; i < n && statuses != MPI_STATUSES_IGNORE; i++)
        rs_done_one(c, all, i, &statuses[i]);
}

static inline void rs_forget_request(rs_request *r)
{
    if (r->kind == 'r' && !r->persistent) { /* freed while in flight: it will complete unseen */
        r->persistent = 1;
        r->started = 1;
        r->handle = UINT64_MAX;
    } else
        rs_request_drop(r);
}

/* ---- matched probes: the message remembers its communicator ------------------------------------------------------ */

#define RS_MESSAGE(x) (RS_HANDLE(x) ^ UINT64_C(1) << 63)

static inline void rs_probed(rs_call *c, MPI_Message message, MPI_Comm comm)
{
    if (message != MPI_MESSAGE_NULL && message != MPI_MESSAGE_NO_PROC)
        rs_request_new(c, 0, 'm', rs_comm(comm), RS_MESSAGE(message));
}

static inline rs_group *rs_probed_on(MPI_Message message)
{
    static rs_group nowhere = {.kind = '?'};
    rs_request *r = rs_request_find(RS_MESSAGE(message));
    rs_group *g = r == NULL ? &nowhere : r->group;
    if (r != NULL)
        rs_request_drop(r);
    return g;
}

/* ---- collectives: bytes that this rank contributes --------------------------------------------------------------- */

/* Of counts of any width. */
#define RS_SUM(counts, n) __extension__({ \
    uint64_t rs_sum = 0; \
    for (int rs_i = 0; rs_i < (n); rs_i++) \
        rs_sum += (counts)[rs_i] > 0 ? (uint64_t)(counts)[rs_i] : 0; \
    rs_sum; \
})

/* Ranks that a rank addresses: the others of an intercommunicator, all of an intracommunicator. */
static inline int rs_addressed(const rs_group *g) { return g->inter ? g->remote : g->local; }

static inline int rs_idle_root(const rs_group *g, int root) { return g->inter && root == MPI_PROC_NULL; }

#define RS_BYTES_ROOTED(g, root, count, type) (rs_idle_root(g, root) ? 0 : rs_bytes(count, type))

/* A rooted operation that collects: the root of an intercommunicator gives nothing. */
#define RS_BYTES_TO_ROOT(g, root, count, type) \
    ((g)->inter && ((root) == MPI_ROOT || (root) == MPI_PROC_NULL) ? 0 : rs_bytes(count, type))

static inline int rs_is_root(const rs_group *g, int root) { return g->inter ? root == MPI_ROOT : root == g->me; }

#define RS_BYTES_GATHER(g, sb, sc, st, rc, rt, root) \
    ((sb) == MPI_IN_PLACE ? rs_bytes(rc, rt) : RS_BYTES_TO_ROOT(g, root, sc, st))
#define RS_BYTES_GATHERV(g, sb, sc, st, rcs, rt, root) \
    ((sb) == MPI_IN_PLACE ? rs_bytes((rcs)[(g)->me], rt) : RS_BYTES_TO_ROOT(g, root, sc, st))
#define RS_BYTES_SCATTER(g, sc, st, rb, rc, rt, root) \
    (rs_is_root(g, root) ? (uint64_t)rs_addressed(g) * rs_bytes(sc, st) : RS_BYTES_ROOTED(g, root, rc, rt))
#define RS_BYTES_SCATTERV(g, scs, st, rb, rc, rt, root) \
    (rs_is_root(g, root) ? RS_SUM(scs, rs_addressed(g)) * rs_size(st) : RS_BYTES_ROOTED(g, root, rc, rt))
#define RS_BYTES_ALLGATHER(g, sb, sc, st, rc, rt) ((sb) == MPI_IN_PLACE ? rs_bytes(rc, rt) : rs_bytes(sc, st))
#define RS_BYTES_ALLGATHERV(g, sb, sc, st, rcs, rt) \
    ((sb) == MPI_IN_PLACE ? rs_bytes((rcs)[(g)->me], rt) : rs_bytes(sc, st))
#define RS_BYTES_ALLTOALL(g, sb, sc, st, rc, rt) \
    ((uint64_t)rs_addressed(g) * ((sb) == MPI_IN_PLACE ? rs_bytes(rc, rt) : rs_bytes(sc, st)))
#define RS_BYTES_ALLTOALLV(g, sb, scs, st, rcs, rt) \
    ((sb) == MPI_IN_PLACE ? RS_SUM(rcs, rs_addressed(g)) * rs_size(rt) : RS_SUM(scs, rs_addressed(g)) * rs_size(st))
#define RS_BYTES_ALLTOALLW(g, sb, scs, sts, rcs, rts) \
    ((sb) == MPI_IN_PLACE ? RS_SUM_TYPED(rcs, rts, rs_addressed(g)) : RS_SUM_TYPED(scs, sts, rs_addressed(g)))
#define RS_BYTES_REDUCE_SCATTER(g, rcs, type) (RS_SUM(rcs, (g)->local) * rs_size(type))

#define RS_SUM_TYPED(counts, types, n) __extension__({ \
    uint64_t rs_total = 0; \
    for (int rs_i = 0; rs_i < (n); rs_i++) \
        rs_total += rs_bytes((counts)[rs_i], RS_TYPE_AT(types, rs_i)); \
    rs_total; \
})

/* Neighbourhood collectives send one block to each neighbour that exists: `block` is the bytes to neighbour rs_i. */
#define RS_NEIGHBOUR_BYTES(g, comm, block) __extension__({ \
    uint64_t rs_total = 0; \
    rs_neighbours(g, comm); \
    for (int rs_i = 0; rs_i < (g)->slots; rs_i++) \
        if ((g)->neighbour[rs_i] != MPI_PROC_NULL) \
            rs_total += (block); \
    rs_total; \
})

/* Each of them is a peer. */
#define RS_NEIGHBOURS(call, op, comm, block) do { \
    rs_group *rs_g = rs_comm(comm); \
    rs_record *rs_own = rs_add((call), (op), (uint32_t)rs_g->size, 1, RS_NEIGHBOUR_BYTES(rs_g, comm, block)); \
    for (int rs_i = 0; rs_i < rs_g->slots; rs_i++) \
        if (rs_g->neighbour[rs_i] != MPI_PROC_NULL) \
            rs_add_peer((call)->thread, rs_own, rs_world(rs_g, rs_g->neighbour[rs_i]), RS_NO_TAG, (block)); \
} while (0)

/* ---- one-sided and files ----------------------------------------------------------------------------------------- */

static inline void rs_rma(rs_call *c, unsigned op, MPI_Count count, MPI_Datatype type, int target, MPI_Win win)
{
    rs_transfer(c, op, rs_win(win), target, RS_NO_TAG, target == MPI_PROC_NULL ? 0 : rs_bytes(count, type));
}

static inline void rs_on_win(rs_call *c, unsigned op, MPI_Win win) { rs_sized(c, op, (uint32_t)rs_win(win)->size); }

static inline void rs_on_file(rs_call *c, unsigned op, MPI_File file, uint64_t bytes)
{
    rs_add(c, op, (uint32_t)rs_file(file)->size, 1, bytes);
}

#endif
