/* Only here: which class of error a mistake has is not said by the standard in all cases. */
#include "check.h"

static int class_of(int code)
{
    int class_;
    MPI_Error_class(code, &class_);
    return class_;
}

#define REFUSED(call, expected) CHECK(class_of(call) == expected)

static void mistakes(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Comm ring, alone;
    MPI_Request request;
    MPI_Datatype raw;
    int out[2] = {rank, rank}, in[2], one = 1, less = -1, zero = 0;
    MPI_Aint start = 0;
    MPI_Datatype type = MPI_INT;
    CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next,
                                         MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring) == MPI_SUCCESS);
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
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
    /* Where nobody has neighbours no buffer is looked at. */
    CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL,
                                         MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0,
                                         &alone) == MPI_SUCCESS);
    CHECK(MPI_Neighbor_alltoall(NULL, 1, MPI_INT, NULL, 1, MPI_INT, alone) == MPI_SUCCESS);
    MPI_Comm_free(&alone);
    MPI_Type_free(&raw);
    MPI_Comm_free(&ring);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    mistakes();
    return end("neighborhood_refusals");
}
