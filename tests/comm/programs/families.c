/* Every family of operations once, each in a function of its own; what must be recorded is in test_tracer_counts.py. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KERNEL static __attribute__((noinline, noclone)) void

static int rank, size, left, right;
static double out[4096], in[4096];
static MPI_Comm world;

KERNEL blocking(void)
{
    MPI_Status status;
    if (rank % 2 == 0) {
        MPI_Send(out, 5, MPI_DOUBLE, right, 1, world);
        MPI_Recv(in, 4096, MPI_DOUBLE, left, 1, world, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, 4096, MPI_DOUBLE, MPI_ANY_SOURCE, 1, world, &status);
        MPI_Ssend(out, 5, MPI_DOUBLE, right, 1, world);
    }
    MPI_Sendrecv(out, 3, MPI_INT, right, 2, in, 100, MPI_INT, left, 2, world, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(out, 7, MPI_CHAR, right, 3, left, 3, world, &status);
}

KERNEL nonblocking(void)
{
    MPI_Request r[4];
    MPI_Status s[4];
    int i, flag = 0, index, count, indices[4];
    MPI_Irecv(in, 4096, MPI_DOUBLE, left, 1, world, &r[0]);
    MPI_Irecv(in + 200, 300, MPI_DOUBLE, MPI_ANY_SOURCE, 2, world, &r[1]);
    MPI_Isend(out, 100, MPI_DOUBLE, right, 1, world, &r[2]);
    MPI_Isend(out, 200, MPI_DOUBLE, right, 2, world, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
    for (i = 0; i < 3; i++) { /* the same receive, completed in other ways */
        MPI_Irecv(in, 4096, MPI_DOUBLE, left, 3, world, &r[0]);
        MPI_Isend(out, 9, MPI_DOUBLE, right, 3, world, &r[1]);
        if (i == 0) {
            MPI_Wait(&r[0], MPI_STATUS_IGNORE);
            MPI_Wait(&r[1], &s[0]);
        } else if (i == 1) {
            MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
            MPI_Waitany(2, r, &index, &s[0]);
        } else
            for (flag = 0; flag < 2; flag += count)
                MPI_Waitsome(2, r, &count, indices, MPI_STATUSES_IGNORE);
    }
}

KERNEL tested(void)
{
    MPI_Request r[2];
    int flag, index, count, indices[2], done;
    MPI_Irecv(in, 50, MPI_FLOAT, left, 1, world, &r[0]);
    MPI_Isend(out, 11, MPI_FLOAT, right, 1, world, &r[1]);
    for (flag = 0; !flag;)
        MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
    for (flag = 0; !flag;)
        MPI_Test(&r[1], &flag, MPI_STATUS_IGNORE);
    MPI_Irecv(in, 50, MPI_FLOAT, left, 2, world, &r[0]);
    MPI_Isend(out, 12, MPI_FLOAT, right, 2, world, &r[1]);
    for (flag = 0; !flag;)
        MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE);
    MPI_Irecv(in, 50, MPI_FLOAT, left, 3, world, &r[0]);
    MPI_Isend(out, 13, MPI_FLOAT, right, 3, world, &r[1]);
    for (done = 0; done < 2; done += flag)
        MPI_Testany(2, r, &index, &flag, MPI_STATUS_IGNORE);
    MPI_Irecv(in, 50, MPI_FLOAT, left, 4, world, &r[0]);
    MPI_Isend(out, 14, MPI_FLOAT, right, 4, world, &r[1]);
    for (done = 0; done < 2; done += count)
        MPI_Testsome(2, r, &count, indices, MPI_STATUSES_IGNORE);
}

KERNEL persistent(void)
{
    MPI_Request r[2];
    int i;
    MPI_Recv_init(in, 4096, MPI_DOUBLE, left, 1, world, &r[0]);
    MPI_Send_init(out, 33, MPI_DOUBLE, right, 1, world, &r[1]);
    for (i = 0; i < 6; i++) {
        if (i < 2) {
            MPI_Start(&r[0]);
            MPI_Start(&r[1]);
        } else
            MPI_Startall(2, r);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

KERNEL nowhere(void)
{
    MPI_Request r[2];
    MPI_Send(out, 5, MPI_DOUBLE, MPI_PROC_NULL, 1, world);
    MPI_Recv(in, 5, MPI_DOUBLE, MPI_PROC_NULL, 1, world, MPI_STATUS_IGNORE);
    MPI_Irecv(in, 5, MPI_DOUBLE, MPI_PROC_NULL, 1, world, &r[0]);
    MPI_Isend(out, 5, MPI_DOUBLE, MPI_PROC_NULL, 1, world, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Irecv(in, 5, MPI_DOUBLE, left, 99, world, &r[0]);
    MPI_Cancel(&r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
}

KERNEL probed(void)
{
    MPI_Status status;
    MPI_Message message;
    MPI_Request request, send;
    int count;
    MPI_Isend(out, 17, MPI_INT, right, 1, world, &send);
    MPI_Mprobe(left, 1, world, &message, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    MPI_Mrecv(in, 1000, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Isend(out, 18, MPI_INT, right, 1, world, &send);
    MPI_Mprobe(left, 1, world, &message, MPI_STATUS_IGNORE);
    MPI_Imrecv(in, 1000, MPI_INT, &message, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
}

KERNEL datatypes(void)
{
    MPI_Datatype column, pair;
    MPI_Type_vector(10, 1, 4, MPI_DOUBLE, &column); /* 80 bytes over an extent of 296 */
    MPI_Type_contiguous(2, column, &pair);
    MPI_Type_commit(&column);
    MPI_Type_commit(&pair);
    MPI_Sendrecv(out, 3, column, right, 1, in, 4, column, left, 1, world, MPI_STATUS_IGNORE);
    MPI_Bcast(out, 2, pair, 0, world);
    MPI_Type_free(&column);
    MPI_Type_free(&pair);
}

KERNEL collectives(void)
{
    int i, *counts = malloc(sizeof *counts * (size_t)size), *places = malloc(sizeof *places * (size_t)size);
    for (i = 0; i < size; i++) {
        counts[i] = i + 1;
        places[i] = i * (i + 1) / 2;
    }
    MPI_Barrier(world);
    MPI_Bcast(out, 6, MPI_DOUBLE, 1, world);
    MPI_Reduce(out, in, 7, MPI_DOUBLE, MPI_SUM, 0, world);
    MPI_Allreduce(out, in, 8, MPI_DOUBLE, MPI_SUM, world);
    MPI_Scan(out, in, 9, MPI_DOUBLE, MPI_SUM, world);
    MPI_Exscan(out, in, 10, MPI_DOUBLE, MPI_SUM, world);
    MPI_Reduce_scatter(out, in, counts, MPI_DOUBLE, MPI_SUM, world);
    MPI_Reduce_scatter_block(out, in, 2, MPI_DOUBLE, MPI_SUM, world);
    MPI_Gather(out, 3, MPI_DOUBLE, in, 3, MPI_DOUBLE, 0, world);
    MPI_Gatherv(out, rank + 1, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, 0, world);
    MPI_Scatter(out, 4, MPI_DOUBLE, in, 4, MPI_DOUBLE, 0, world);
    MPI_Scatterv(out, counts, places, MPI_DOUBLE, in, rank + 1, MPI_DOUBLE, 0, world);
    MPI_Allgather(out, 5, MPI_DOUBLE, in, 5, MPI_DOUBLE, world);
    MPI_Allgatherv(out, rank + 1, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, world);
    MPI_Alltoall(out, 6, MPI_DOUBLE, in, 6, MPI_DOUBLE, world);
    for (i = 0; i < size; i++)
        counts[i] = rank + i, places[i] = 20 * i;
    MPI_Alltoallv(out, counts, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, world);
    free(counts);
    free(places);
}

KERNEL alltoallw(void)
{
    int i, counts[64], places[64];
    MPI_Datatype types[64];
    for (i = 0; i < size; i++) {
        counts[i] = 2;
        places[i] = 64 * i;
        types[i] = (rank + i) % 2 ? MPI_DOUBLE : MPI_INT;
    }
    MPI_Alltoallw(out, counts, places, types, in, counts, places, types, world);
}

KERNEL in_place(void)
{
    int i, counts[64], places[64];
    for (i = 0; i < size; i++)
        counts[i] = i + 1, places[i] = i * (i + 1) / 2;
    MPI_Allreduce(MPI_IN_PLACE, in, 8, MPI_DOUBLE, MPI_SUM, world);
    if (rank == 0) {
        MPI_Reduce(MPI_IN_PLACE, in, 7, MPI_DOUBLE, MPI_SUM, 0, world);
        MPI_Gather(MPI_IN_PLACE, 12345, MPI_DATATYPE_NULL, in, 3, MPI_DOUBLE, 0, world);
        MPI_Scatter(out, 4, MPI_DOUBLE, MPI_IN_PLACE, 12345, MPI_DATATYPE_NULL, 0, world);
    } else {
        MPI_Reduce(in, NULL, 7, MPI_DOUBLE, MPI_SUM, 0, world);
        MPI_Gather(out, 3, MPI_DOUBLE, NULL, 0, MPI_DATATYPE_NULL, 0, world);
        MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, in, 4, MPI_DOUBLE, 0, world);
    }
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 5, MPI_DOUBLE, world);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, places, MPI_DOUBLE, world);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 6, MPI_DOUBLE, world);
}

KERNEL nonblocking_collectives(void)
{
    MPI_Request r[4];
    MPI_Ibarrier(world, &r[0]);
    MPI_Ibcast(out, 6, MPI_DOUBLE, 1, world, &r[1]);
    MPI_Iallreduce(out, in, 8, MPI_DOUBLE, MPI_SUM, world, &r[2]);
    MPI_Ialltoall(out + 500, 6, MPI_DOUBLE, in + 500, 6, MPI_DOUBLE, world, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

KERNEL communicators(void)
{
    MPI_Comm half, copy;
    int i, me, n;
    for (i = 0; i < 20; i++) { /* handles are used again for communicators of another size */
        MPI_Comm_split(world, i % 2 ? rank % 2 : 0, -rank, &half);
        MPI_Comm_rank(half, &me);
        MPI_Comm_size(half, &n);
        MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, half);
        if (i % 2) /* ranks are reversed: the peer to the right here is two to the left in the world */
            MPI_Sendrecv(out, 1, MPI_DOUBLE, (me + 1) % n, 1, in, 1, MPI_DOUBLE, (me + n - 1) % n, 1, half, MPI_STATUS_IGNORE);
        MPI_Comm_free(&half);
    }
    MPI_Comm_dup(world, &copy);
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
}

KERNEL across(void)
{
    MPI_Comm half, bridge;
    int odd = rank % 2, me;
    MPI_Comm_split(world, odd, rank, &half);
    MPI_Comm_rank(half, &me);
    MPI_Intercomm_create(half, 0, world, odd ? 0 : 1, 5, &bridge);
    MPI_Bcast(out, 4, MPI_DOUBLE, odd ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL, bridge);
    MPI_Allgather(out, 2, MPI_DOUBLE, in, 2, MPI_DOUBLE, bridge);
    MPI_Alltoall(out, 3, MPI_DOUBLE, in, 3, MPI_DOUBLE, bridge);
    MPI_Gather(out, 5, MPI_DOUBLE, in, 5, MPI_DOUBLE, odd ? 0 : me == 0 ? MPI_ROOT : MPI_PROC_NULL, bridge);
    if (odd)
        MPI_Send(out, 6, MPI_DOUBLE, me, 1, bridge); /* its partner in the other group: world rank - 1 */
    else
        MPI_Recv(in, 6, MPI_DOUBLE, me, 1, bridge, MPI_STATUS_IGNORE);
    MPI_Comm_free(&bridge);
    MPI_Comm_free(&half);
}

KERNEL neighbourhood(void)
{
    MPI_Comm line, graph;
    int dims[1] = {size}, open[1] = {0}, counts[2] = {2, 5}, places[2] = {0, 8};
    MPI_Cart_create(world, 1, dims, open, 0, &line);
    MPI_Neighbor_alltoall(out, 3, MPI_DOUBLE, in, 3, MPI_DOUBLE, line);
    MPI_Neighbor_allgather(out, 4, MPI_DOUBLE, in, 4, MPI_DOUBLE, line);
    MPI_Comm_free(&line);
    MPI_Dist_graph_create_adjacent(world, 2, (int[]){right, left}, MPI_UNWEIGHTED, 2, (int[]){left, right}, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &graph);
    MPI_Neighbor_alltoallv(out, counts, places, MPI_DOUBLE, in, counts, places, MPI_DOUBLE, graph);
    MPI_Comm_free(&graph);
}

KERNEL one_sided(void)
{
    MPI_Win win;
    double *base, got = 0, one = 1, old;
    MPI_Win_allocate(64 * sizeof(double), sizeof(double), MPI_INFO_NULL, world, &base, &win);
    MPI_Win_fence(0, win);
    MPI_Put(out, 8, MPI_DOUBLE, right, 0, 8, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    MPI_Accumulate(out, 4, MPI_DOUBLE, right, 0, 4, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_fence(0, win);
    MPI_Get(&got, 1, MPI_DOUBLE, left, 0, 1, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
    MPI_Fetch_and_op(&one, &old, MPI_DOUBLE, right, 9, MPI_SUM, win);
    MPI_Win_unlock(right, win);
    MPI_Win_free(&win);
}

KERNEL files(const char *path)
{
    MPI_File file;
    MPI_Status status;
    char text[16] = "0123456789abcde";
    MPI_File_open(world, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 10 * rank, text, 10, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(world);
    MPI_File_sync(file);
    MPI_File_read_at_all(file, 10 * rank, text, 10, MPI_CHAR, &status);
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    world = MPI_COMM_WORLD;
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    blocking();
    nonblocking();
    tested();
    persistent();
    nowhere();
    probed();
    datatypes();
    collectives();
    alltoallw();
    in_place();
    nonblocking_collectives();
    communicators();
    across();
    neighbourhood();
    one_sided();
    if (argc > 1)
        files(argv[1]);
    MPI_Finalize();
    return 0;
}
