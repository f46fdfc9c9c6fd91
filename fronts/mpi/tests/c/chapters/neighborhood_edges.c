/* Edges between the same two processes, and which operations between neighbours belong together. */
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
        CHECK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE) == MPI_SUCCESS);
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

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    order();
    graph();
    kept();
    freed();
    return end("neighborhood_edges");
}
