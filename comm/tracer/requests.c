/* Requests that a completion or a start has to be told from: posted receives, and everything persistent. */
#include "tracer.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 16384

volatile uint64_t rs_requests_held;
volatile int rs_cancelled;

static rs_request *buckets[BUCKETS], *spare;

static unsigned bucket_of(uint64_t handle)
{
    return (unsigned)((handle * UINT64_C(0x9E3779B97F4A7C15)) >> 50) % BUCKETS;
}

/* A new record for `handle`, found before any older one of the same value; NULL without memory. */
rs_request *rs_request_add(uint64_t handle, rs_group *group)
{
    enum { BLOCK = 256 };
    rs_request *r;
    int i;
    rs_lock();
    if (spare == NULL && (r = calloc(BLOCK, sizeof *r)) != NULL)
        for (i = 0; i < BLOCK; i++) {
            r[i].next = spare;
            spare = &r[i];
        }
    r = spare;
    if (r != NULL) {
        spare = r->next;
        memset(r, 0, sizeof *r);
        r->handle = handle;
        r->group = group;
        group->held++;
        r->peer = -1;
        r->next = buckets[bucket_of(handle)];
        buckets[bucket_of(handle)] = r;
        rs_requests_held++;
    }
    rs_unlock();
    return r;
}

rs_request *rs_request_find(uint64_t handle)
{
    rs_request *r;
    if (rs_requests_held == 0)
        return NULL;
    rs_lock();
    for (r = buckets[bucket_of(handle)]; r != NULL && r->handle != handle;)
        r = r->next;
    rs_unlock();
    return r;
}

void rs_request_drop(rs_request *request)
{
    rs_request **at;
    rs_lock();
    for (at = &buckets[bucket_of(request->handle)]; *at != NULL; at = &(*at)->next)
        if (*at == request) {
            *at = request->next;
            request->next = spare;
            spare = request;
            rs_requests_held--;
            if (--request->group->held == 0 && request->group->dead)
                rs_group_free(request->group);
            break;
        }
    rs_unlock();
}

/* Receives that were posted and never completed by this program: counted, though their bytes are not known. */
void rs_requests_close(void)
{
    unsigned i;
    rs_request *r;
    for (i = 0; i < BUCKETS && rs_requests_held > 0; i++)
        for (r = buckets[i]; r != NULL; r = r->next)
            if (r->kind == 'r' && (!r->persistent || r->started)) {
                rs_add_beside(r->thread, r->own, r->operation, r->comm_size, 1, 0);
                r->kind = 0;
            }
}
