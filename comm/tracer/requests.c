/* Requests that a completion or a start has to be matched with: posted receives, and everything persistent. */
#include "handles.h"

#include <stdlib.h>

volatile uint64_t rs_requests_held;
volatile int rs_cancelled;
rs_request *rs_buckets[RS_BUCKETS];

static rs_request *spare;

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
        rs_request **bucket = rs_bucket(handle);
        spare = r->next;
        *r = (rs_request){.handle = handle, .group = group, .peer = -1, .next = *bucket};
        *bucket = r;
        group->held++;
        rs_requests_held++;
    }
    rs_unlock();
    return r;
}

rs_request *rs_request_search(uint64_t handle)
{
    rs_request *r;
    rs_lock();
    for (r = *rs_bucket(handle); r != NULL && r->handle != handle;)
        r = r->next;
    rs_unlock();
    return r;
}

void rs_request_drop(rs_request *request)
{
    rs_request **at;
    rs_lock();
    for (at = rs_bucket(request->handle); *at != NULL; at = &(*at)->next)
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
    for (i = 0; i < RS_BUCKETS && rs_requests_held > 0; i++)
        for (r = rs_buckets[i]; r != NULL; r = r->next)
            if (r->kind == 'r' && (!r->persistent || r->started)) {
                rs_add_beside(r->thread, r->own, r->operation, r->comm_size, 1, 0);
                r->kind = 0;
            }
}
