/* What is known of communicators, windows and files: size, and the rank in MPI_COMM_WORLD of every rank in them.
 *
 * A handle may be freed, by whomever, and its value used again for another communicator. Each communicator that was seen
 * therefore carries an attribute whose deletion, wherever it comes from, makes the tracer forget what it knew. */
#include "handles.h"

#include <stdlib.h>

#define BUCKETS 1024

volatile uint64_t rs_group_generation = 1;
RS_TLS rs_recent rs_recent_comm RS_TLS_MODEL;

static rs_group *buckets[BUCKETS];
static int comm_key = MPI_KEYVAL_INVALID, win_key = MPI_KEYVAL_INVALID;
static MPI_Group world_group = MPI_GROUP_NULL;
static rs_group unknown = {.kind = '?', .slots = 0};

static unsigned bucket_of(uint64_t handle) { return (unsigned)((handle * UINT64_C(0x9E3779B97F4A7C15)) >> 54) % BUCKETS; }

rs_group *rs_group_find(uint64_t handle, int kind)
{
    rs_group *g;
    for (g = buckets[bucket_of(handle)]; g != NULL; g = g->next)
        if (g->handle == handle && g->kind == kind)
            return g;
    return NULL;
}

/* The latest ones are kept a while: another thread may be about to look at one. */
void rs_group_free(rs_group *g)
{
    enum { KEPT = 256 };
    static rs_group *kept[KEPT];
    static unsigned at;
    rs_group *old = kept[at % KEPT];
    kept[at++ % KEPT] = g;
    if (old != NULL) {
        free(old->world);
        free(old->neighbour);
        free(old);
    }
}

/* Requests in flight may still point at the record: the last of them frees it. */
void rs_group_forget(uint64_t handle, int kind)
{
    rs_group **at, *g;
    rs_lock();
    for (at = &buckets[bucket_of(handle)]; (g = *at) != NULL; at = &g->next)
        if (g->handle == handle && g->kind == kind) {
            *at = g->next;
            g->dead = 1;
            if (g->held == 0)
                rs_group_free(g);
            break;
        }
    rs_group_generation++;
    rs_unlock();
}

static int comm_deleted(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)key, (void)value, (void)extra;
    rs_group_forget(RS_HANDLE(comm), 'c');
    return MPI_SUCCESS;
}

static int win_deleted(MPI_Win win, int key, void *value, void *extra)
{
    (void)key, (void)value, (void)extra;
    rs_group_forget(RS_HANDLE(win), 'w');
    return MPI_SUCCESS;
}

void rs_groups_begin(MPI_Group world)
{
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, comm_deleted, &comm_key, NULL) != MPI_SUCCESS)
        comm_key = MPI_KEYVAL_INVALID;
    if (PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, win_deleted, &win_key, NULL) != MPI_SUCCESS)
        win_key = MPI_KEYVAL_INVALID;
    world_group = world;
}

static int *world_ranks(MPI_Group group, int n)
{
    int *from, *to, i, same = 1;
    if (n <= 0 || world_group == MPI_GROUP_NULL)
        return NULL;
    from = malloc(sizeof *from * (size_t)n);
    to = malloc(sizeof *to * (size_t)n);
    if (from != NULL && to != NULL) {
        for (i = 0; i < n; i++)
            from[i] = i;
        PMPI_Group_translate_ranks(group, n, from, world_group, to);
        for (i = 0, same = 1; i < n; i++) {
            if (to[i] == MPI_UNDEFINED || to[i] < 0)
                to[i] = -1;
            same = same && to[i] == i;
        }
    }
    free(from);
    if (same) { /* or no memory */
        free(to);
        return NULL;
    }
    return to;
}

static rs_group *keep(rs_group g, MPI_Group addressed, int n)
{
    rs_group *at = malloc(sizeof *at), *seen;
    if (at == NULL)
        return &unknown;
    *at = g;
    at->peers = n;
    at->world = world_ranks(addressed, n);
    at->slots = -1;
    at->neighbour = NULL;
    rs_lock();
    seen = rs_group_find(g.handle, g.kind);
    if (seen != NULL) { /* another thread was faster */
        rs_unlock();
        free(at->world);
        free(at);
        return seen;
    }
    at->next = buckets[bucket_of(g.handle)];
    buckets[bucket_of(g.handle)] = at;
    rs_unlock();
    return at;
}

static rs_group *known(uint64_t handle, int kind)
{
    rs_group *found;
    rs_lock();
    found = rs_group_find(handle, kind);
    rs_unlock();
    return found;
}

/* Only asked for communicators that a call of MPI has just accepted. */
rs_group *rs_comm_slow(MPI_Comm comm)
{
    rs_group g = {.handle = RS_HANDLE(comm), .kind = 'c'}, *found;
    MPI_Group group;
    uint64_t generation = rs_group_generation;
    if (comm == MPI_COMM_NULL)
        return &unknown;
    found = known(g.handle, 'c');
    if (found == NULL) {
        PMPI_Comm_test_inter(comm, &g.inter);
        PMPI_Comm_size(comm, &g.local);
        PMPI_Comm_rank(comm, &g.me);
        if (g.inter) {
            PMPI_Comm_remote_size(comm, &g.remote);
            PMPI_Comm_remote_group(comm, &group);
        } else
            PMPI_Comm_group(comm, &group);
        g.size = g.local + g.remote;
        found = keep(g, group, g.inter ? g.remote : g.local);
        PMPI_Group_free(&group);
        if (comm_key != MPI_KEYVAL_INVALID && found != &unknown)
            PMPI_Comm_set_attr(comm, comm_key, found);
    }
    rs_recent_comm = (rs_recent){g.handle, generation, found};
    return found;
}

/* A window or file whose group is known: all of its ranks are addressed, or none. */
static rs_group *of_group(uint64_t handle, int kind, MPI_Group group)
{
    rs_group g = {.handle = handle, .kind = kind}, *found;
    PMPI_Group_size(group, &g.size);
    PMPI_Group_rank(group, &g.me);
    g.local = g.size;
    found = keep(g, group, kind == 'w' ? g.size : 0);
    PMPI_Group_free(&group);
    return found;
}

rs_group *rs_win(MPI_Win win)
{
    rs_group *found = win == MPI_WIN_NULL ? &unknown : known(RS_HANDLE(win), 'w');
    MPI_Group group;
    if (found != NULL)
        return found;
    if (PMPI_Win_get_group(win, &group) != MPI_SUCCESS)
        return &unknown;
    found = of_group(RS_HANDLE(win), 'w', group);
    if (win_key != MPI_KEYVAL_INVALID && found != &unknown)
        PMPI_Win_set_attr(win, win_key, found);
    return found;
}

/* Files carry no attributes: MPI_File_close makes the tracer forget. */
rs_group *rs_file(MPI_File file)
{
    rs_group *found = file == MPI_FILE_NULL ? &unknown : known(RS_HANDLE(file), 'f');
    MPI_Group group;
    if (found != NULL)
        return found;
    if (PMPI_File_get_group(file, &group) != MPI_SUCCESS)
        return &unknown;
    return of_group(RS_HANDLE(file), 'f', group);
}

/* Outgoing neighbours of the communicator's topology, in the order of the send buffer's blocks. */
void rs_neighbours(rs_group *g, MPI_Comm comm)
{
    int kind = MPI_UNDEFINED, n = 0, in = 0, weighted = 0, i, *to = NULL, *spare, *w, *w2;
    if (g->slots >= 0 || g == &unknown)
        return;
    PMPI_Topo_test(comm, &kind);
    if (kind == MPI_CART) {
        PMPI_Cartdim_get(comm, &n);
        to = malloc(sizeof *to * (size_t)(2 * n + 1));
        for (i = 0; to != NULL && i < n; i++)
            PMPI_Cart_shift(comm, i, 1, &to[2 * i], &to[2 * i + 1]);
        n *= 2;
    } else if (kind == MPI_GRAPH) {
        PMPI_Graph_neighbors_count(comm, g->me, &n);
        to = malloc(sizeof *to * (size_t)(n + 1));
        if (to != NULL)
            PMPI_Graph_neighbors(comm, g->me, n, to);
    } else if (kind == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(comm, &in, &n, &weighted);
        to = malloc(sizeof *to * (size_t)(n + 1));
        spare = malloc(sizeof *spare * (size_t)(2 * in + n + 1));
        if (to != NULL && spare != NULL) {
            w = weighted ? spare + in : MPI_UNWEIGHTED;
            w2 = weighted ? spare + 2 * in : MPI_UNWEIGHTED;
            PMPI_Dist_graph_neighbors(comm, in, spare, w, n, to, w2);
        }
        free(spare);
    }
    g->neighbour = to;
    g->slots = to == NULL ? 0 : n;
}
