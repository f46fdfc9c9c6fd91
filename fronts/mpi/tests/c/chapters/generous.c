/* What the standard does not demand, and programs count on, since other libraries have it.
 *
 * Only here: none of the others has all of it. */
#include "check.h"

/* MPI_CHAR is a small number in reductions. */
static void characters(void)
{
    signed char mine = (signed char)(-1 - rank), least = 0, sum = 0, both = 0;
    char all = 0, one = 1;
    MPI_Request request;
    MPI_Allreduce(&mine, &least, 1, MPI_CHAR, MPI_MIN, MPI_COMM_WORLD);
    CHECK(least == -size);
    MPI_Allreduce(&mine, &sum, 1, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == -size * (size + 1) / 2);
    MPI_Iallreduce(&one, &all, 1, MPI_CHAR, MPI_LAND, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(all == 1);
    mine = 1;
    both = 2;
    MPI_Reduce_local(&mine, &both, 1, MPI_CHAR, MPI_BOR);
    CHECK(both == 3);
}

/* Nothing of no datatype, to and from nobody. */
static void nobody(void)
{
    MPI_Request requests[4];
    MPI_Status status;
    CHECK(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status) ==
          MPI_SUCCESS);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Sendrecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, NULL, 0, MPI_DATATYPE_NULL,
                 MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv_init(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Send_init(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[3]);
    MPI_Startall(2, requests + 2);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[2]);
    MPI_Request_free(&requests[3]);
}

/* An edge to a process that is no node of the graph. */
static void edges(void)
{
    int index[1] = {1}, edge[1] = {size - 1}, neighbour = -1;
    MPI_Comm graph;
    CHECK(MPI_Graph_create(MPI_COMM_WORLD, 1, index, edge, 0, &graph) == MPI_SUCCESS);
    if (graph == MPI_COMM_NULL) return;
    CHECK(MPI_Graph_neighbors(graph, 0, 1, &neighbour) == MPI_SUCCESS && neighbour == size - 1);
    MPI_Comm_free(&graph);
}

/* A name that is too long is cut off. */
static void names(void)
{
    char given[2 * MPI_MAX_OBJECT_NAME], found[MPI_MAX_OBJECT_NAME];
    int letters = 0;
    MPI_Comm copy;
    MPI_Datatype pair;
    memset(given, 'n', sizeof given);
    given[sizeof given - 1] = 0;
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    CHECK(MPI_Comm_set_name(copy, given) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_name(copy, found, &letters) == MPI_SUCCESS);
    CHECK(letters == MPI_MAX_OBJECT_NAME - 1 && !strncmp(found, given, letters) && !found[letters]);
    MPI_Comm_free(&copy);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    CHECK(MPI_Type_set_name(pair, given) == MPI_SUCCESS);
    CHECK(MPI_Type_get_name(pair, found, &letters) == MPI_SUCCESS);
    CHECK(letters == MPI_MAX_OBJECT_NAME - 1);
    MPI_Type_free(&pair);
}

static void adds(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    for (int at = 0; at < *length; at++) ((int *)inout)[at] += ((int *)in)[at];
}

/* Collective operations whose requests are freed while they go on: also the long ones come to their end on
 * all members, although rank 0 asks for nothing more, and frees the communicator. */
static void freed(void)
{
    enum { LONG = 300000 };
    static int told[LONG];
    int one = 1, sum = 0, own = 0, around[2] = {-1, -1}, sides[1] = {size}, round[1] = {1};
    MPI_Comm copy, ring;
    MPI_Op operation;
    MPI_Request request;
    MPI_Op_create(adds, 1, &operation);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Cart_create(MPI_COMM_WORLD, 1, sides, round, 0, &ring);
    for (int at = 0; at < LONG; at++) told[at] = rank == 0 ? at : -1;
    MPI_Iallreduce(&one, &own, 1, MPI_INT, operation, copy, &request);
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS && request == MPI_REQUEST_NULL);
    MPI_Op_free(&operation);
    MPI_Ineighbor_allgather(&rank, 1, MPI_INT, around, 1, MPI_INT, ring, &request);
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, copy, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
    MPI_Ibcast(told, LONG, MPI_INT, 0, copy, &request);
    if (rank == 0) {
        CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
    } else {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int at = 0; at < LONG; at++) CHECK(told[at] == at);
    }
    MPI_Comm_free(&copy);
    MPI_Comm_free(&ring);
    /* A program hears of the end by other ways; here it looks until the values are there. */
    for (int flag, left = 1; left;) {
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        left = *(volatile int *)&sum != size || *(volatile int *)&own != size;
        left |= ((volatile int *)around)[0] < 0 || ((volatile int *)around)[1] < 0;
    }
    CHECK(around[0] == (rank + size - 1) % size && around[1] == (rank + 1) % size);
}

/* The last ones are not waited for: MPI_Finalize does that. */
static void left_behind(void)
{
    static int values[300000];
    MPI_Request request;
    MPI_Ibcast(values, 300000, MPI_INT, 0, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    characters();
    nobody();
    edges();
    names();
    freed();
    meet(MPI_COMM_WORLD);
    if (rank == 0) printf("generous: %d processes agree\n", size);
    fflush(stdout);
    left_behind();
    return MPI_Finalize();
}
