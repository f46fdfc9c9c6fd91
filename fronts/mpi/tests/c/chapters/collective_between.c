/* Collective operations between two groups, done and started: every root on either side, groups of
 * different size, operations of the library and of the program. */
#include "check.h"

enum { MOST = 64 };

static MPI_Comm between;
static int own_size, far_size, own_rank, is_low;

/* The value that a process of a group has for one of the other. */
static int value(int low, int from, int to)
{
    return (low ? 1000 : 2000) + 30 * from + to;
}

static int far_value(int from)
{
    return value(!is_low, from, own_rank);
}

/* in - inout, which does not commute: the order is that of the ranks. It is not associative either,
 * so more than two values may give anything. */
static void subtract(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    for (int at = 0; at < *length; at++) ((int *)inout)[at] = ((int *)in)[at] - ((int *)inout)[at];
}

/* The root as this process names it: process `root` of the low group or of the high one. */
static int named(int in_low, int root)
{
    if (in_low != is_low) return root;
    return own_rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

static void with_root(int in_low, int root)
{
    int name = named(in_low, root), is_root = name == MPI_ROOT, is_far = name >= 0;
    int data[3] = {-1, -1, -1}, all[4 * MOST], counts[MOST], places[MOST], sum = 0;
    MPI_Request request;

    if (is_root) data[0] = 5, data[1] = 6;
    MPI_Bcast(data, 2, MPI_INT, name, between);
    CHECK(is_root || is_far ? data[0] == 5 && data[1] == 6 : data[0] == -1);
    data[2] = is_root ? 9 : -1;
    MPI_Ibcast(data + 2, 1, MPI_INT, name, between, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(data[2] == (is_root || is_far ? 9 : -1));

    for (int at = 0; at < 4 * MOST; at++) all[at] = -1;
    data[0] = value(is_low, own_rank, root);
    MPI_Gather(data, 1, MPI_INT, all, 1, MPI_INT, name, between);
    for (int from = 0; from < far_size; from++) {
        CHECK(all[from] == (is_root ? far_value(from) : -1));
        counts[from] = from % 2, places[from] = 2 * from + 1;
        all[from] = -1;
    }
    MPI_Gatherv(data, own_rank % 2, MPI_INT, all, counts, places, MPI_INT, name, between);
    for (int from = 0; from < far_size; from++)
        CHECK(all[2 * from + 1] == (is_root && from % 2 ? far_value(from) : -1));

    for (int to = 0; to < far_size; to++) all[2 * to] = all[2 * to + 1] = value(is_low, root, to);
    data[0] = data[1] = -1;
    MPI_Scatter(all, 2, MPI_INT, data, 2, MPI_INT, name, between);
    CHECK(data[0] == (is_far ? far_value(root) : -1) && data[1] == data[0]);
    data[0] = -1;
    MPI_Scatterv(all, counts, places, MPI_INT, data, own_rank % 2, MPI_INT, name, between);
    CHECK(data[0] == (is_far && own_rank % 2 ? far_value(root) : -1));

    data[0] = own_rank + 1, data[1] = -1;
    MPI_Reduce(data, data + 1, 1, MPI_INT, MPI_SUM, name, between);
    for (int from = 0; from < far_size; from++) sum += from + 1;
    CHECK(data[1] == (is_root ? sum : -1));
}

static void without_root(void)
{
    int one[2] = {value(is_low, own_rank, 0), 4}, all[4 * MOST], parts[4 * MOST], counts[MOST];
    int far_counts[MOST], places[MOST], sum = 0, folded, sums[4 * MOST];
    MPI_Op operation;
    MPI_Request requests[3];

    for (int at = 0; at < 4 * MOST; at++) all[at] = -1;
    MPI_Barrier(between);
    MPI_Allgather(one, 2, MPI_INT, all, 2, MPI_INT, between);
    for (int from = 0; from < far_size; from++) {
        CHECK(all[2 * from] == value(!is_low, from, 0) && all[2 * from + 1] == 4);
        far_counts[from] = 1 + from % 2, places[from] = 3 * (far_size - 1 - from);
    }
    MPI_Allgatherv(one, 1 + own_rank % 2, MPI_INT, all, far_counts, places, MPI_INT, between);
    for (int from = 0; from < far_size; from++) {
        CHECK(all[places[from]] == value(!is_low, from, 0));
        CHECK(from % 2 == 0 || all[places[from] + 1] == 4);
    }
    for (int to = 0; to < far_size; to++) parts[to] = value(is_low, own_rank, to);
    MPI_Alltoall(parts, 1, MPI_INT, all, 1, MPI_INT, between);
    for (int from = 0; from < far_size; from++) {
        CHECK(all[from] == far_value(from));
        all[from] = -1;
    }
    for (int to = 0; to < far_size; to++) counts[to] = (own_rank + to) % 2, places[to] = to;
    MPI_Alltoallv(parts, counts, places, MPI_INT, all, counts, places, MPI_INT, between);
    for (int from = 0; from < far_size; from++)
        CHECK(all[from] == (counts[from] ? far_value(from) : -1));

    MPI_Op_create(subtract, 0, &operation);
    one[0] = 10 * own_rank + is_low;
    MPI_Allreduce(one, &sum, 1, MPI_INT, MPI_SUM, between);
    CHECK(sum == 5 * far_size * (far_size - 1) + far_size * !is_low);
    MPI_Allreduce(one, &folded, 1, MPI_INT, operation, between);
    CHECK(far_size > 2 || folded == (far_size == 1 ? !is_low : -10));
    for (int at = 0; at < own_size * far_size; at++) sums[at] = own_rank + at;
    MPI_Reduce_scatter_block(sums, all, far_size, MPI_INT, MPI_SUM, between);
    for (int at = 0; at < far_size; at++)
        CHECK(all[at] == far_size * (far_size - 1) / 2 + far_size * (own_rank * far_size + at));

    sum = folded = -1;
    MPI_Iallreduce(one, &sum, 1, MPI_INT, MPI_SUM, between, &requests[0]);
    MPI_Iallreduce(one, &folded, 1, MPI_INT, operation, between, &requests[1]);
    MPI_Ibarrier(between, &requests[2]);
    MPI_Op_free(&operation);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    CHECK(sum == 5 * far_size * (far_size - 1) + far_size * !is_low);
    CHECK(far_size > 2 || folded == (far_size == 1 ? !is_low : -10));
}

int main(int argc, char **argv)
{
    MPI_Comm own;
    int low_size;

    begin(&argc, &argv);
    if (size == 1) return end("collective_between");
    low_size = (size + 2) / 3;
    is_low = rank < low_size;
    MPI_Comm_split(MPI_COMM_WORLD, is_low, rank, &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, is_low ? low_size : 0, 3, &between);
    MPI_Comm_rank(between, &own_rank);
    MPI_Comm_size(between, &own_size);
    MPI_Comm_remote_size(between, &far_size);
    for (int again = 0; again < 3; again++) {
        for (int root = 0; root < low_size; root++) with_root(1, root);
        for (int root = 0; root < size - low_size; root++) with_root(0, root);
        without_root();
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&own);
    return end("collective_between");
}
