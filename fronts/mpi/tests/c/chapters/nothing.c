/* Only here: MPI_IN_PLACE is an address like others where there is nothing to move. An empty array of bytes
   has it in some languages, so programs in them pass it without knowing. */
#include "check.h"

#define MOST 16
#define NOTHING ((void *)1)
#define WORKS(call) CHECK((call) == MPI_SUCCESS)

static MPI_Datatype empty;
static int none[MOST], one[MOST], start[MOST];
static MPI_Aint far[MOST];

static void messages(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, count;
    MPI_Datatype kinds[2] = {MPI_BYTE, empty};
    MPI_Status status;

    for (int at = 0; at < 2; at++) {
        MPI_Request requests[2];
        WORKS(MPI_Irecv(NOTHING, at, kinds[at], before, at, MPI_COMM_WORLD, &requests[0]));
        WORKS(MPI_Isend(NOTHING, at, kinds[at], next, at, MPI_COMM_WORLD, &requests[1]));
        WORKS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        WORKS(MPI_Sendrecv(NOTHING, at, kinds[at], next, at, NOTHING, at, kinds[at], before, at,
                           MPI_COMM_WORLD, &status));
        WORKS(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK(count == 0 && status.MPI_SOURCE == before);
        WORKS(MPI_Send_init(NOTHING, at, kinds[at], next, at, MPI_COMM_WORLD, &requests[0]));
        WORKS(MPI_Recv_init(NOTHING, at, kinds[at], before, at, MPI_COMM_WORLD, &requests[1]));
        WORKS(MPI_Startall(2, requests));
        WORKS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        WORKS(MPI_Request_free(&requests[0]));
        WORKS(MPI_Request_free(&requests[1]));
    }
}

static void packing(void)
{
    MPI_Datatype kinds[2] = {MPI_BYTE, empty};

    for (int at = 0; at < 2; at++) {
        int place = 0;
        MPI_Aint far_place = 0;
        WORKS(MPI_Pack(NOTHING, at, kinds[at], NOTHING, 0, &place, MPI_COMM_WORLD));
        WORKS(MPI_Pack(NULL, at, kinds[at], NULL, 0, &place, MPI_COMM_WORLD));
        WORKS(MPI_Unpack(NOTHING, 0, &place, NOTHING, at, kinds[at], MPI_COMM_WORLD));
        WORKS(MPI_Unpack(NULL, 0, &place, NULL, at, kinds[at], MPI_COMM_WORLD));
        WORKS(MPI_Pack_external("external32", NOTHING, at, kinds[at], NOTHING, 0, &far_place));
        WORKS(MPI_Unpack_external("external32", NOTHING, 0, &far_place, NOTHING, at, kinds[at]));
        CHECK(place == 0 && far_place == 0);
    }
    WORKS(MPI_Reduce_local(NOTHING, NOTHING, 0, MPI_INT, MPI_SUM));
}

/* Nobody has anything. */
static void collective(void)
{
    MPI_Datatype kinds[2] = {MPI_BYTE, empty}, types[MOST];

    for (int at = 0; at < 2; at++) {
        MPI_Datatype kind = kinds[at];
        int *counts = at ? one : none;
        for (int process = 0; process < size; process++) types[process] = kind;
        WORKS(MPI_Bcast(NOTHING, at, kind, 0, MPI_COMM_WORLD));
        WORKS(MPI_Gather(NOTHING, at, kind, NOTHING, at, kind, 0, MPI_COMM_WORLD));
        WORKS(MPI_Gatherv(NOTHING, at, kind, NOTHING, counts, start, kind, 0, MPI_COMM_WORLD));
        WORKS(MPI_Scatter(NOTHING, at, kind, NOTHING, at, kind, 0, MPI_COMM_WORLD));
        WORKS(MPI_Scatterv(NOTHING, counts, start, kind, NOTHING, at, kind, 0, MPI_COMM_WORLD));
        WORKS(MPI_Allgather(NOTHING, at, kind, NOTHING, at, kind, MPI_COMM_WORLD));
        WORKS(MPI_Allgatherv(NOTHING, at, kind, NOTHING, counts, start, kind, MPI_COMM_WORLD));
        WORKS(MPI_Alltoall(NOTHING, at, kind, NOTHING, at, kind, MPI_COMM_WORLD));
        WORKS(MPI_Alltoallv(NOTHING, counts, start, kind, NOTHING, counts, start, kind,
                            MPI_COMM_WORLD));
        WORKS(MPI_Alltoallw(NOTHING, counts, start, types, NOTHING, counts, start, types,
                            MPI_COMM_WORLD));
    }
    WORKS(MPI_Allreduce(NOTHING, NOTHING, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    WORKS(MPI_Reduce(NOTHING, NOTHING, 0, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD));
    WORKS(MPI_Scan(NOTHING, NOTHING, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    WORKS(MPI_Exscan(NOTHING, NOTHING, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    WORKS(MPI_Reduce_scatter(NOTHING, NOTHING, none, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    WORKS(MPI_Reduce_scatter_block(NOTHING, NOTHING, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
}

/* Rank 0 alone has something: who has nothing, root or not, is not taken for one whose data are in place. */
static void some(void)
{
    int counts[MOST] = {1}, mine = 7, all[MOST];

    for (int root = 0; root < size; root++) {
        int has = rank == 0, is_root = rank == root;
        memset(all, 0, sizeof all);
        WORKS(MPI_Gatherv(has ? &mine : NOTHING, has, MPI_INT, is_root ? (void *)all : NOTHING, counts,
                          start, MPI_INT, root, MPI_COMM_WORLD));
        CHECK(all[0] == (is_root ? 7 : 0));
        memset(all, 0, sizeof all);
        WORKS(MPI_Scatterv(is_root ? (void *)&mine : NOTHING, counts, start, MPI_INT,
                           has ? (void *)all : NOTHING, has, MPI_INT, root, MPI_COMM_WORLD));
        CHECK(all[0] == (has ? 7 : 0));
    }
    memset(all, 0, sizeof all);
    WORKS(MPI_Allgatherv(rank == 0 ? &mine : NOTHING, rank == 0, MPI_INT, all, counts, start, MPI_INT,
                         MPI_COMM_WORLD));
    CHECK(all[0] == 7);
}

static void neighbours(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Datatype kinds[2] = {MPI_BYTE, empty};
    MPI_Comm ring;

    WORKS(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next,
                                         MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring));
    for (int at = 0; at < 2; at++) {
        MPI_Datatype kind = kinds[at];
        WORKS(MPI_Neighbor_allgather(NOTHING, at, kind, NOTHING, at, kind, ring));
        WORKS(MPI_Neighbor_allgatherv(NOTHING, at, kind, NOTHING, &at, start, kind, ring));
        WORKS(MPI_Neighbor_alltoall(NOTHING, at, kind, NOTHING, at, kind, ring));
        WORKS(MPI_Neighbor_alltoallv(NOTHING, &at, start, kind, NOTHING, &at, start, kind, ring));
        WORKS(MPI_Neighbor_alltoallw(NOTHING, &at, far, &kind, NOTHING, &at, far, &kind, ring));
    }
    WORKS(MPI_Comm_free(&ring));
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int at = 0; at < MOST; at++) one[at] = 1;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    messages();
    packing();
    collective();
    some();
    neighbours();
    MPI_Type_free(&empty);
    return end("nothing");
}
