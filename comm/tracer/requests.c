/* Requests that a completion or a start has to be matched with: posted receives, and everything persistent. */
#define _GNU_SOURCE
#include "handles.h"

#include <stdlib.h>
#include <sys/mman.h>

volatile uint64_t rs_requests_held;
volatile int rs_cancelled;

enum { FIRST = 16384, GROW = 8 }; /* buckets at first, and times as many at each growth: powers of two */
static rs_request *first[FIRST];
rs_request **rs_buckets = first;
uint64_t rs_bucket_mask = FIRST - 1;

static rs_request *spare;

/* One more record, from those that were dropped or from a block, whose pages cost nothing before they are used. */
static rs_request *fresh(void)
{
    enum { BLOCK = 4096 };
    static rs_request *block;
    static unsigned left;
    rs_request *r = spare;
    if (r != NULL) {
        spare = r->next;
        return r;
    }
    if (left == 0) {
        block = mmap(NULL, BLOCK * sizeof *block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
            return NULL;
        left = BLOCK;
    }
    left--;
    return block++;
}

/* More buckets, once each holds two requests on average. The requests of a new bucket come from one old one, where newer
 * ones are ahead of older ones, and stay in that order. Without memory all stay where they are. */
static void grow(void)
{
    uint64_t count = rs_bucket_mask + 1, i;
    rs_request **old = rs_buckets, **more = calloc(count * GROW, sizeof *more), *r, *next, *reversed;
    if (more == NULL)
        return;
    rs_buckets = more;
    rs_bucket_mask = count * GROW - 1;
    for (i = 0; i < count; i++) {
        for (reversed = NULL, r = old[i]; r != NULL; r = next) {
            next = r->next;
            r->next = reversed;
            reversed = r;
        }
        for (r = reversed; r != NULL; r = next) {
            rs_request **bucket = rs_bucket(r->handle);
            next = r->next;
            r->next = *bucket;
            *bucket = r;
        }
    }
    if (old != first)
        free(old);
}

/* A new record for `handle`, found before any older one of the same value; NULL without memory. */
rs_request *rs_request_add(uint64_t handle, rs_group *group)
{
    rs_request *r;
    rs_lock();
    r = fresh();
    if (rs_requests_held > 2 * rs_bucket_mask)
        grow();
    if (r != NULL) {
        rs_request **bucket = rs_bucket(handle);
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
    uint64_t i;
    rs_request *r;
    for (i = 0; i <= rs_bucket_mask && rs_requests_held > 0; i++)
        for (r = rs_buckets[i]; r != NULL; r = r->next)
            if (r->kind == 'r' && (!r->persistent || r->started)) {
                rs_add_beside(r->thread, r->own, r->operation, r->comm_size, 1, 0);
                r->kind = 0;
            }
}
