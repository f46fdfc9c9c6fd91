/* Collective operations between neighbours: in grids and graphs, in all three forms. */
#include "check.h"

/* What rank `from` sends to its neighbour in a direction. */
static int value(int from, int direction) { return 100 * from + direction; }

/* In a grid, what is sent downwards arrives from above: even if both are the same process. */
static void grid(int comes_round)
{
    MPI_Comm comm;
    MPI_Request request;
    int below, above, sent[2], received[2];
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &comes_round, 0, &comm) == MPI_SUCCESS);
    CHECK(MPI_Cart_shift(comm, 0, 1, &below, &above) == MPI_SUCCESS);
    int wanted[2] = {below == MPI_PROC_NULL ? -1 : value(below, 1),
                     above == MPI_PROC_NULL ? -1 : value(above, 0)};
    for (int i = 0; i < 2; i++) sent[i] = value(rank, i), received[i] = -1;
    CHECK(MPI_Neighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, comm) == MPI_SUCCESS);
    CHECK(received[0] == wanted[0] && received[1] == wanted[1]);

    received[0] = received[1] = -1;
    CHECK(MPI_Ineighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, comm, &request) ==
          MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(received[0] == wanted[0] && received[1] == wanted[1]);

    CHECK(MPI_Neighbor_alltoall_init(sent, 1, MPI_INT, received, 1, MPI_INT, comm, MPI_INFO_NULL,
                                     &request) == MPI_SUCCESS);
    for (int round = 0; round < 3; round++) {
        received[0] = received[1] = -1;
        sent[0] += 7, sent[1] += 7;
        CHECK(MPI_Start(&request) == MPI_SUCCESS);
        CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        for (int i = 0; i < 2; i++)
            CHECK(received[i] == (wanted[i] < 0 ? -1 : wanted[i] + 7 * (round + 1)));
    }
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS);

    received[0] = received[1] = -1;
    CHECK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, received, 1, MPI_INT, comm) == MPI_SUCCESS);
    CHECK(received[0] == (below == MPI_PROC_NULL ? -1 : below));
    CHECK(received[1] == (above == MPI_PROC_NULL ? -1 : above));
    MPI_Comm_free(&comm);
}

/* Some compilers take constants such as MPI_UNWEIGHTED for memory that is read. */
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wstringop-overread"

/* Each process sends to the next, twice as much to the one after it, and all in one column. */
static void distributed(void)
{
    MPI_Comm comm;
    MPI_Datatype column;
    int to[2] = {(rank + 1) % size, (rank + 2) % size}, counts[2] = {1, 2}, places[2] = {3, 0};
    int from[2] = {(rank + size - 1) % size, (rank + 2 * size - 2) % size};
    int sent[4], received[12];
    CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, MPI_UNWEIGHTED, 2, to,
                                         MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm) == MPI_SUCCESS);
    for (int i = 0; i < 4; i++) sent[i] = value(rank, i);
    memset(received, 0xff, sizeof received);
    CHECK(MPI_Neighbor_alltoallv(sent, counts, places, MPI_INT, received, counts, places, MPI_INT,
                                 comm) == MPI_SUCCESS);
    CHECK(received[3] == value(from[0], 3));
    CHECK(received[0] == value(from[1], 0) && received[1] == value(from[1], 1));
    CHECK(received[2] == -1);

    memset(received, 0xff, sizeof received);
    int ones[2] = {1, 1}, apart[2] = {4, 1};
    CHECK(MPI_Neighbor_allgatherv(sent, 1, MPI_INT, received, ones, apart, MPI_INT, comm) ==
          MPI_SUCCESS);
    CHECK(received[4] == value(from[0], 0) && received[1] == value(from[1], 0));

    MPI_Type_vector(2, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Datatype sent_types[2] = {MPI_INT, MPI_INT}, types[2] = {column, MPI_INT};
    int two[2] = {2, 2}, received_counts[2] = {1, 2};
    MPI_Aint starts[2] = {0, 2 * sizeof(int)}, ends[2] = {sizeof(int), 6 * sizeof(int)};
    MPI_Request request;
    memset(received, 0xff, sizeof received);
    CHECK(MPI_Ineighbor_alltoallw(sent, two, starts, sent_types, received, received_counts, ends,
                                  types, comm, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(received[1] == value(from[0], 0) && received[3] == value(from[0], 1));
    CHECK(received[6] == value(from[1], 2) && received[7] == value(from[1], 3));
    CHECK(received[0] == -1 && received[2] == -1 && received[4] == -1);
    MPI_Type_free(&column);
    MPI_Comm_free(&comm);
}

/* A star: all talk with rank 0, which is a neighbour of itself. */
static void star(void)
{
    MPI_Comm comm;
    int *index = malloc(sizeof(int) * (size_t)size), *edges = malloc(sizeof(int) * 2 * (size_t)size);
    int *received = malloc(sizeof(int) * (size_t)size);
    for (int i = 0; i < size; i++) {
        index[i] = size + i;
        edges[i] = i;
        edges[size + i] = 0;
    }
    CHECK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm) == MPI_SUCCESS);
    CHECK(MPI_Neighbor_allgather(&rank, 1, MPI_INT, received, 1, MPI_INT, comm) == MPI_SUCCESS);
    for (int i = 0; i < (rank ? 1 : size); i++) CHECK(received[i] == i);
    MPI_Comm_free(&comm);
    free(received);
    free(edges);
    free(index);
}

int main(int argc, char **argv)
{
    int code, class_;
    begin(&argc, &argv);
    grid(0);
    grid(1);
    distributed();
    star();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Neighbor_allgather(&rank, 1, MPI_INT, &class_, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Error_class(code, &class_);
    CHECK(class_ == MPI_ERR_TOPOLOGY);
    return end("neighborhood");
}
