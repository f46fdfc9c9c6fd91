/* Only here: other libraries take edges between the same two processes in another order, and name
   other classes of errors. */
#include "check.h"

static MPI_Comm ring_with(int times)
{
    MPI_Comm made;
    int next = (rank + 1) % size, before = (rank + size - 1) % size, out[8], in[8];
    for (int i = 0; i < times; i++) {
        out[i] = next;
        in[i] = before;
    }
    CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, times, in, MPI_UNWEIGHTED, times, out,
                                         MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                         &made) == MPI_SUCCESS);
    return made;
}

/* Three edges to the next: what is sent along the second one comes along the second one. */
static void order(void)
{
    MPI_Comm ring = ring_with(3);
    int before = (rank + size - 1) % size, out[3], in[3];
    for (int i = 0; i < 3; i++) out[i] = 10 * rank + i;
    CHECK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring) == MPI_SUCCESS);
    for (int i = 0; i < 3; i++) CHECK(in[i] == 10 * before + i);
    MPI_Comm_free(&ring);
}

/* A graph in which each knows the next twice, and itself. */
static void graph(void)
{
    MPI_Comm pairs;
    int index[64], edges[192], out[3], in[3];
    int other = size == 1 ? 0 : rank ^ 1;
    for (int i = 0; i < size; i++) {
        int mate = (i ^ 1) < size ? i ^ 1 : i;
        index[i] = 3 * (i + 1);
        edges[3 * i] = edges[3 * i + 2] = mate;
        edges[3 * i + 1] = i;
        if (i == rank) other = mate;
    }
    CHECK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &pairs) == MPI_SUCCESS);
    for (int i = 0; i < 3; i++) out[i] = 10 * rank + i;
    CHECK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, pairs) == MPI_SUCCESS);
    CHECK(in[0] == 10 * other && in[1] == 10 * rank + 1 && in[2] == 10 * other + 2);
    MPI_Comm_free(&pairs);
}

/* Kept operations belong together by the order in which they were made, not started. */
static void kept(void)
{
    MPI_Comm ring = ring_with(1);
    MPI_Request requests[2];
    int before = (rank + size - 1) % size, out[2] = {10 * rank, 10 * rank + 1}, in[2];
    for (int i = 0; i < 2; i++)
        CHECK(MPI_Neighbor_alltoall_init(out + i, 1, MPI_INT, in + i, 1, MPI_INT, ring,
                                         MPI_INFO_NULL, &requests[i]) == MPI_SUCCESS);
    CHECK(MPI_Start(&requests[rank % 2]) == MPI_SUCCESS);
    CHECK(MPI_Start(&requests[1 - rank % 2]) == MPI_SUCCESS);
    CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(in[0] == 10 * before && in[1] == 10 * before + 1);
    in[0] = in[1] = -1;
    CHECK(MPI_Startall(2, requests) == MPI_SUCCESS);
    for (int i = 0; i < 2; i++) {
        MPI_Status status;
        CHECK(MPI_Wait(&requests[i], &status) == MPI_SUCCESS);
        CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
        CHECK(MPI_Request_free(&requests[i]) == MPI_SUCCESS);
    }
    CHECK(in[0] == 10 * before && in[1] == 10 * before + 1);
    MPI_Comm_free(&ring);
}

/* The communicator may be freed while they go on. */
static void freed(void)
{
    MPI_Comm ring = ring_with(1);
    MPI_Request request;
    int before = (rank + size - 1) % size, in = -1;
    CHECK(MPI_Ineighbor_allgather(&rank, 1, MPI_INT, &in, 1, MPI_INT, ring, &request) ==
          MPI_SUCCESS);
    MPI_Comm_free(&ring);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && in == before);
}

static int class_of(int code)
{
    int class_;
    MPI_Error_class(code, &class_);
    return class_;
}

#define REFUSED(call, expected) CHECK(class_of(call) == expected)

static void mistakes(void)
{
    MPI_Comm ring = ring_with(1);
    MPI_Request request;
    MPI_Datatype raw;
    int out[2] = {rank, rank}, in[2], one = 1, less = -1, zero = 0;
    MPI_Aint start = 0;
    MPI_Datatype type = MPI_INT;
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(2, MPI_INT, &raw);
    REFUSED(MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD),
            MPI_ERR_TOPOLOGY);
    REFUSED(MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_NULL), MPI_ERR_COMM);
    REFUSED(MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, ring), MPI_ERR_BUFFER);
    REFUSED(MPI_Neighbor_alltoall(out, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, ring), MPI_ERR_BUFFER);
    REFUSED(MPI_Neighbor_alltoallw(MPI_IN_PLACE, &one, &start, &type, in, &one, &start, &type, ring),
            MPI_ERR_BUFFER);
    REFUSED(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, in, 1, MPI_INT, ring), MPI_ERR_BUFFER);
    REFUSED(MPI_Neighbor_alltoallv(out, &one, &zero, MPI_INT, NULL, &one, &zero, MPI_INT, ring),
            MPI_ERR_BUFFER);
    REFUSED(MPI_Neighbor_alltoall(out, -1, MPI_INT, in, 1, MPI_INT, ring), MPI_ERR_COUNT);
    REFUSED(MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, &less, &zero, MPI_INT, ring),
            MPI_ERR_COUNT);
    REFUSED(MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, NULL, &zero, MPI_INT, ring), MPI_ERR_ARG);
    REFUSED(MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, &one, NULL, MPI_INT, ring), MPI_ERR_ARG);
    REFUSED(MPI_Neighbor_alltoallw(out, &one, &start, NULL, in, &one, &start, &type, ring),
            MPI_ERR_ARG);
    REFUSED(MPI_Neighbor_allgather(out, 1, MPI_DATATYPE_NULL, in, 1, MPI_INT, ring), MPI_ERR_TYPE);
    REFUSED(MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, raw, ring), MPI_ERR_TYPE);
    REFUSED(MPI_Ineighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, ring, NULL), MPI_ERR_ARG);
    REFUSED(MPI_Neighbor_allgather_init(out, 1, MPI_INT, in, 1, MPI_INT, ring, 0, &request),
            MPI_ERR_INFO);
    /* After all this it works, and says so when the data are longer than the room for them. */
    CHECK(MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, ring) == MPI_SUCCESS);
    REFUSED(MPI_Neighbor_allgather(out, 2, MPI_INT, in, 1, MPI_INT, ring), MPI_ERR_TRUNCATE);
    CHECK(MPI_Ineighbor_allgather(out, 2, MPI_INT, in, 1, MPI_INT, ring, &request) == MPI_SUCCESS);
    REFUSED(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    CHECK(request == MPI_REQUEST_NULL);
    CHECK(MPI_Neighbor_allgather_init(out, 1, MPI_INT, in, 1, MPI_INT, ring, MPI_INFO_NULL,
                                      &request) == MPI_SUCCESS);
    CHECK(MPI_Start(&request) == MPI_SUCCESS);
    REFUSED(MPI_Start(&request), MPI_ERR_REQUEST);
    REFUSED(MPI_Cancel(&request), MPI_ERR_REQUEST);
    REFUSED(MPI_Request_free(&request), MPI_ERR_REQUEST);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
    MPI_Type_free(&raw);
    MPI_Comm_free(&ring);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    order();
    graph();
    kept();
    freed();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    mistakes();
    return end("neighborhood_edges");
}
