/* All ranks repeat the operation that the first argument names. One of them, the second argument, is killed from
   outside, meanwhile or before: the third argument says which. Each other rank says when it was told and what, and then
   stays: it neither calls the library again nor ends, so nobody is told by its leaving. */
#include "check.h"
#include "deaths.h"

enum { LONG_ITEMS = 40000 };

static int victim;
static MPI_Comm world, half, across;
static MPI_Group everybody, own_group, other_group;
static int *ours, *theirs;
static MPI_Request kept = MPI_REQUEST_NULL;
static int counts[64], ones[64], places[64];
static MPI_Datatype types[64];

/* The same for a communicator that the operation made, and that goes at once. */
static int made(int code, MPI_Comm *comm)
{
    if (code == MPI_SUCCESS && *comm != MPI_COMM_NULL) code = MPI_Comm_free(comm);
    return code;
}

static int wait_for(int code, MPI_Request *request)
{
    return code == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : code;
}

/* The first error of some statuses, or what the call itself said. */
static int first_error(int code, const MPI_Status *statuses, int count)
{
    for (int at = 0; code == MPI_ERR_IN_STATUS && at < count; at++)
        if (statuses[at].MPI_ERROR != MPI_SUCCESS && statuses[at].MPI_ERROR != MPI_ERR_PENDING)
            return statuses[at].MPI_ERROR;
    return code;
}

/* ---- chapter 3: the victim talks to each of the others, and they to it alone ------------------------------- */

/* What one side of a conversation does with the other rank. */
typedef int conversation(int other);

static int with_victim(conversation *talk)
{
    if (rank != victim) return talk(victim);
    for (int other = 0; other < size; other++)
        if (other != victim) TRY(talk(other));
    return MPI_SUCCESS;
}

static int talk_short(int other)
{
    return MPI_Sendrecv(ours, 1, MPI_INT, other, 1, theirs, 1, MPI_INT, other, 1, world, MPI_STATUS_IGNORE);
}

static int talk_long(int other)
{
    return MPI_Sendrecv(ours, LONG_ITEMS, MPI_INT, other, 1, theirs, LONG_ITEMS, MPI_INT, other, 1, world,
                        MPI_STATUS_IGNORE);
}

static int talk_ready_made(int other)
{
    MPI_Request requests[2];
    TRY(MPI_Recv_init(theirs, LONG_ITEMS, MPI_INT, other, 2, world, &requests[0]));
    TRY(MPI_Ssend_init(ours, LONG_ITEMS, MPI_INT, other, 2, world, &requests[1]));
    int code = MPI_Startall(2, requests);
    MPI_Status statuses[2];
    if (code == MPI_SUCCESS) code = MPI_Waitall(2, requests, statuses);
    code = first_error(code, statuses, 2);
    for (int at = 0; at < 2; at++)
        if (requests[at] != MPI_REQUEST_NULL) MPI_Request_free(&requests[at]);
    return code;
}

static int talk_synchronously(int other)
{
    if (rank < other) {
        TRY(MPI_Ssend(ours, 1, MPI_INT, other, 3, world));
        return MPI_Recv(theirs, 1, MPI_INT, other, 3, world, MPI_STATUS_IGNORE);
    }
    TRY(MPI_Recv(theirs, 1, MPI_INT, other, 3, world, MPI_STATUS_IGNORE));
    return MPI_Ssend(ours, 1, MPI_INT, other, 3, world);
}

static int talk_probing(int other)
{
    MPI_Status status;
    MPI_Message message;
    TRY(MPI_Send(ours, 1, MPI_INT, other, 4, world));
    TRY(MPI_Probe(other, 4, world, &status));
    TRY(MPI_Mprobe(other, 4, world, &message, &status));
    return MPI_Mrecv(theirs, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
}

static int talk_buffered(int other)
{
    TRY(MPI_Bsend(ours, 1, MPI_INT, other, 5, world));
    return MPI_Recv(theirs, 1, MPI_INT, other, 5, world, MPI_STATUS_IGNORE);
}

static int talk_testing(int other)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int flag = 0, code = MPI_Irecv(theirs, 1, MPI_INT, other, 6, world, &requests[0]);
    if (code == MPI_SUCCESS) code = MPI_Isend(ours, 1, MPI_INT, other, 6, world, &requests[1]);
    while (code == MPI_SUCCESS && !flag) code = MPI_Testall(2, requests, &flag, statuses);
    return first_error(code, statuses, 2);
}

static int talk_in_place(int other)
{
    return MPI_Sendrecv_replace(ours, 1, MPI_INT, other, 10, other, 10, world, MPI_STATUS_IGNORE);
}

static int talk_in_place_later(int other)
{
    MPI_Request request;
    int code = MPI_Isendrecv_replace(ours, 1, MPI_INT, other, 11, other, 11, world, &request);
    return wait_for(code, &request);
}

static int talk_later(int other)
{
    MPI_Request request;
    int code = MPI_Isendrecv(ours, 1, MPI_INT, other, 12, theirs, 1, MPI_INT, other, 12, world, &request);
    return wait_for(code, &request);
}

/* A ready send, which the receiver has made way for. */
static int talk_ready(int other)
{
    MPI_Request request;
    TRY(MPI_Irecv(theirs, 1, MPI_INT, other, 13, world, &request));
    int code = MPI_Sendrecv(ours, 1, MPI_INT, other, 14, theirs + 1, 1, MPI_INT, other, 14, world,
                            MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS) code = MPI_Rsend(ours, 1, MPI_INT, other, 13, world);
    return wait_for(code, &request);
}

static int talk_looking(int other)
{
    int flag = 0;
    TRY(MPI_Send(ours, 1, MPI_INT, other, 15, world));
    while (!flag) TRY(MPI_Iprobe(other, 15, world, &flag, MPI_STATUS_IGNORE));
    return MPI_Recv(theirs, 1, MPI_INT, other, 15, world, MPI_STATUS_IGNORE);
}

static int talk_picking(int other)
{
    int flag = 0;
    MPI_Message message;
    MPI_Request request;
    TRY(MPI_Send(ours, 1, MPI_INT, other, 16, world));
    while (!flag) TRY(MPI_Improbe(other, 16, world, &flag, &message, MPI_STATUS_IGNORE));
    return wait_for(MPI_Imrecv(theirs, 1, MPI_INT, &message, &request), &request);
}

/* Two requests of one tag, each completed by `complete`, which returns how many of them it has completed. */
static int talk_by(int other, int tag, int (*complete)(MPI_Request *, int *))
{
    MPI_Request requests[2];
    int code = MPI_Irecv(theirs, 1, MPI_INT, other, tag, world, &requests[0]), left = 2;
    if (code == MPI_SUCCESS) code = MPI_Issend(ours, 1, MPI_INT, other, tag, world, &requests[1]);
    while (code == MPI_SUCCESS && left > 0) {
        int completed = 0;
        code = complete(requests, &completed);
        left -= completed;
    }
    return code;
}

static int by_waitany(MPI_Request *requests, int *completed)
{
    int at;
    *completed = 1;
    return MPI_Waitany(2, requests, &at, MPI_STATUS_IGNORE);
}

static int by_testany(MPI_Request *requests, int *completed)
{
    int at;
    return MPI_Testany(2, requests, &at, completed, MPI_STATUS_IGNORE);
}

static int by_waitsome(MPI_Request *requests, int *completed)
{
    int at[2];
    MPI_Status statuses[2];
    int code = MPI_Waitsome(2, requests, completed, at, statuses);
    return first_error(code, statuses, *completed);
}

static int by_testsome(MPI_Request *requests, int *completed)
{
    int at[2];
    MPI_Status statuses[2];
    int code = MPI_Testsome(2, requests, completed, at, statuses);
    return first_error(code, statuses, *completed);
}

static int talk_by_waitany(int other) { return talk_by(other, 17, by_waitany); }
static int talk_by_testany(int other) { return talk_by(other, 18, by_testany); }
static int talk_by_waitsome(int other) { return talk_by(other, 19, by_waitsome); }
static int talk_by_testsome(int other) { return talk_by(other, 20, by_testsome); }

static int sendrecv_replace(void) { return with_victim(talk_in_place); }
static int isendrecv_replace(void) { return with_victim(talk_in_place_later); }
static int isendrecv(void) { return with_victim(talk_later); }
static int rsend(void) { return with_victim(talk_ready); }
static int iprobe(void) { return with_victim(talk_looking); }
static int improbe(void) { return with_victim(talk_picking); }
static int waitany(void) { return with_victim(talk_by_waitany); }
static int testany(void) { return with_victim(talk_by_testany); }
static int waitsome(void) { return with_victim(talk_by_waitsome); }
static int testsome(void) { return with_victim(talk_by_testsome); }
static int sendrecv(void) { return with_victim(talk_short); }
static int sendrecv_long(void) { return with_victim(talk_long); }
static int persistent(void) { return with_victim(talk_ready_made); }
static int ssend(void) { return with_victim(talk_synchronously); }
static int mprobe(void) { return with_victim(talk_probing); }
static int bsend(void) { return with_victim(talk_buffered); }
static int testall(void) { return with_victim(talk_testing); }

/* Everybody receives from anybody what the victim alone sends. */
static int any_source(void)
{
    if (rank != victim) return MPI_Recv(theirs, 1, MPI_INT, MPI_ANY_SOURCE, 7, world, MPI_STATUS_IGNORE);
    for (int other = 0; other < size; other++)
        if (other != victim) TRY(MPI_Send(ours, 1, MPI_INT, other, 7, world));
    return MPI_SUCCESS;
}

/* ---- chapter 6 ---------------------------------------------------------------------------------------------- */

/* An operation in its three forms: blocking, started, and kept to be started again. */
#define COLLECTIVE(name, Name, ...)                                                              \
    static int name(void) { return MPI_##Name(__VA_ARGS__); }                                    \
    static int i##name(void)                                                                     \
    {                                                                                            \
        MPI_Request request;                                                                     \
        return wait_for(MPI_I##name(__VA_ARGS__, &request), &request);                           \
    }                                                                                            \
    static int kept_##name(void)                                                                 \
    {                                                                                            \
        int code = MPI_SUCCESS;                                                                  \
        if (kept == MPI_REQUEST_NULL) code = MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &kept); \
        if (code == MPI_SUCCESS) code = MPI_Start(&kept);                                        \
        return wait_for(code, &kept);                                                            \
    }
#define OPERATIONS_OF(name) OPERATION(name), OPERATION(i##name), OPERATION(kept_##name)

/* Nobody needs the ranks behind it in a prefix, so a barrier follows, which needs everybody. */
#define FOLLOWED(name)                                                                           \
    static int name##_then_barrier(void)                                                         \
    {                                                                                            \
        TRY(name());                                                                             \
        return MPI_Barrier(world);                                                               \
    }

COLLECTIVE(barrier, Barrier, world)
COLLECTIVE(bcast, Bcast, ours, 1, MPI_INT, victim, world)
COLLECTIVE(gather, Gather, ours, 1, MPI_INT, theirs, 1, MPI_INT, victim, world)
COLLECTIVE(gatherv, Gatherv, ours, rank + 1, MPI_INT, theirs, counts, places, MPI_INT, victim, world)
COLLECTIVE(scatter, Scatter, ours, 1, MPI_INT, theirs, 1, MPI_INT, victim, world)
COLLECTIVE(scatterv, Scatterv, ours, counts, places, MPI_INT, theirs, rank + 1, MPI_INT, victim, world)
COLLECTIVE(allgather, Allgather, ours, 1, MPI_INT, theirs, 1, MPI_INT, world)
COLLECTIVE(allgatherv, Allgatherv, ours, rank + 1, MPI_INT, theirs, counts, places, MPI_INT, world)
COLLECTIVE(alltoall, Alltoall, ours, 1, MPI_INT, theirs, 1, MPI_INT, world)
COLLECTIVE(alltoallv, Alltoallv, ours, ones, places, MPI_INT, theirs, ones, places, MPI_INT, world)
COLLECTIVE(alltoallw, Alltoallw, ours, ones, places, types, theirs, ones, places, types, world)
COLLECTIVE(reduce, Reduce, ours, theirs, 1, MPI_INT, MPI_SUM, victim, world)
COLLECTIVE(allreduce, Allreduce, ours, theirs, 100, MPI_INT, MPI_SUM, world)
COLLECTIVE(reduce_scatter, Reduce_scatter, ours, theirs, counts, MPI_INT, MPI_SUM, world)
COLLECTIVE(reduce_scatter_block, Reduce_scatter_block, ours, theirs, 10, MPI_INT, MPI_SUM, world)
COLLECTIVE(scan, Scan, ours, theirs, 1, MPI_INT, MPI_SUM, world)
COLLECTIVE(exscan, Exscan, ours, theirs, 1, MPI_INT, MPI_SUM, world)
FOLLOWED(scan) FOLLOWED(iscan) FOLLOWED(kept_scan) FOLLOWED(exscan) FOLLOWED(iexscan) FOLLOWED(kept_exscan)

static int bcast_long(void) { return MPI_Bcast(ours, LONG_ITEMS, MPI_INT, victim, world); }
/* The other ranks are ahead of a root that waits for room, or learn of the death in their next call. */
static int bcast_of_another(void) { return MPI_Bcast(ours, 1, MPI_INT, (victim + 1) % size, world); }
static int gather_long(void)
{
    return MPI_Gather(ours, LONG_ITEMS, MPI_INT, theirs, LONG_ITEMS, MPI_INT, (victim + 1) % size, world);
}
static int alltoall_long(void)
{
    return MPI_Alltoall(ours, LONG_ITEMS, MPI_INT, theirs, LONG_ITEMS, MPI_INT, world);
}
static int allreduce_long(void) { return MPI_Allreduce(ours, theirs, LONG_ITEMS, MPI_INT, MPI_SUM, world); }
static void sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int at = 0; at < *count; at++) ((int *)inout)[at] += ((int *)in)[at];
}
static MPI_Op own_sum;
static int allreduce_own(void) { return MPI_Allreduce(ours, theirs, 100, MPI_INT, own_sum, world); }
static int iallreduce_own(void)
{
    MPI_Request request;
    return wait_for(MPI_Iallreduce(ours, theirs, 100, MPI_INT, own_sum, world, &request), &request);
}
static int tested_ialltoall(void)
{
    MPI_Request request;
    int code = MPI_Ialltoall(ours, 100, MPI_INT, theirs, 100, MPI_INT, world, &request), flag = 0;
    while (code == MPI_SUCCESS && !flag) code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    return code;
}
static int two_at_once(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    TRY(MPI_Ibcast(ours, 1, MPI_INT, victim, world, &requests[0]));
    int code = MPI_Iallgather(ours + 1, 1, MPI_INT, theirs, 1, MPI_INT, world, &requests[1]);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Waitall(2, requests, statuses);
    return first_error(code, statuses, 2);
}
static MPI_Comm star, ring, chain;
static int neighbors(void)
{
    /* Everybody has the victim for a neighbour. */
    if (star == MPI_COMM_NULL) {
        int all[64], count = 0;
        for (int other = 0; other < size; other++)
            if (rank == victim ? other != victim : other == victim) all[count++] = other;
        TRY(MPI_Dist_graph_create_adjacent(world, count, all, MPI_UNWEIGHTED, count, all, MPI_UNWEIGHTED,
                                           MPI_INFO_NULL, 0, &star));
        MPI_Comm_set_errhandler(star, MPI_ERRORS_RETURN);
    }
    return MPI_Neighbor_alltoall(ours, 1, MPI_INT, theirs, 1, MPI_INT, star);
}
/* In a ring most ranks have neighbours that live, and that give up because of theirs. */
static int make_ring(void)
{
    int shape[1] = {size}, is_round[1] = {1};
    if (ring != MPI_COMM_NULL) return MPI_SUCCESS;
    TRY(MPI_Cart_create(world, 1, shape, is_round, 0, &ring));
    return MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
}
static int ring_allgather(void)
{
    TRY(make_ring());
    return MPI_Neighbor_allgather(ours, 1, MPI_INT, theirs, 1, MPI_INT, ring);
}
static int ring_alltoall_long(void)
{
    TRY(make_ring());
    return MPI_Neighbor_alltoall(ours, LONG_ITEMS, MPI_INT, theirs, LONG_ITEMS, MPI_INT, ring);
}
static int ring_started(void)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    TRY(make_ring());
    TRY(MPI_Ineighbor_allgather(ours, 1, MPI_INT, theirs, 1, MPI_INT, ring, &requests[0]));
    TRY(MPI_Ineighbor_alltoall(ours, 100, MPI_INT, theirs + 2, 100, MPI_INT, ring, &requests[1]));
    int code = MPI_Waitall(2, requests, statuses);
    return first_error(code, statuses, 2);
}
static int ring_tested(void)
{
    MPI_Request request;
    TRY(make_ring());
    int flag = 0, code = MPI_Ineighbor_alltoall(ours, 1, MPI_INT, theirs, 1, MPI_INT, ring, &request);
    while (code == MPI_SUCCESS && !flag) code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    return code;
}
static int ring_kept(void)
{
    int code = make_ring();
    if (code == MPI_SUCCESS && kept == MPI_REQUEST_NULL)
        code = MPI_Neighbor_alltoall_init(ours, 100, MPI_INT, theirs, 100, MPI_INT, ring, MPI_INFO_NULL, &kept);
    if (code == MPI_SUCCESS) code = MPI_Start(&kept);
    return wait_for(code, &kept);
}
/* Each rank hears from the one before it alone, and waits for nobody to whom it tells. */
static int chain_allgatherv(void)
{
    int before = (rank + size - 1) % size, behind = (rank + 1) % size, count = 10, place = 0;
    if (chain == MPI_COMM_NULL) {
        TRY(MPI_Dist_graph_create_adjacent(world, 1, &before, MPI_UNWEIGHTED, 1, &behind, MPI_UNWEIGHTED,
                                           MPI_INFO_NULL, 0, &chain));
        MPI_Comm_set_errhandler(chain, MPI_ERRORS_RETURN);
    }
    return MPI_Neighbor_allgatherv(ours, 10, MPI_INT, theirs, &count, &place, MPI_INT, chain);
}
static int barrier_across(void) { return MPI_Barrier(across); }
static int allreduce_across(void) { return MPI_Allreduce(ours, theirs, 100, MPI_INT, MPI_SUM, across); }
static int ibcast_across(void)
{
    MPI_Request request;
    int root = rank % 2 == 0 ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    TRY(wait_for(MPI_Ibcast(ours, 1, MPI_INT, root, across, &request), &request));
    return MPI_Barrier(across);
}

/* ---- chapter 7 ---------------------------------------------------------------------------------------------- */

static int comm_dup(void)
{
    MPI_Comm comm;
    return made(MPI_Comm_dup(world, &comm), &comm);
}
static int dup_with_info(void)
{
    MPI_Comm comm;
    return made(MPI_Comm_dup_with_info(world, MPI_INFO_NULL, &comm), &comm);
}
static int idup(void)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request;
    return made(wait_for(MPI_Comm_idup(world, &comm, &request), &request), &comm);
}
static int two_idups(void)
{
    MPI_Comm comms[2] = {MPI_COMM_NULL, MPI_COMM_NULL};
    MPI_Request requests[2];
    MPI_Status statuses[2];
    TRY(MPI_Comm_idup(world, &comms[0], &requests[0]));
    TRY(MPI_Comm_idup(world, &comms[1], &requests[1]));
    int code = MPI_Waitall(2, requests, statuses);
    code = first_error(code, statuses, 2);
    if (code != MPI_SUCCESS) return code;
    TRY(MPI_Comm_free(&comms[0]));
    return MPI_Comm_free(&comms[1]);
}
static int split(void)
{
    MPI_Comm comm;
    return made(MPI_Comm_split(world, rank % 2, -rank, &comm), &comm);
}
static int split_type(void)
{
    MPI_Comm comm;
    return made(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm), &comm);
}
static int create(void)
{
    MPI_Comm comm;
    return made(MPI_Comm_create(world, own_group, &comm), &comm);
}
static int create_group(void)
{
    MPI_Comm comm;
    return made(MPI_Comm_create_group(world, everybody, 8, &comm), &comm);
}
static int create_from_group(void)
{
    MPI_Comm comm;
    return made(MPI_Comm_create_from_group(everybody, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), &comm);
}
static int used_at_once(void)
{
    MPI_Comm comm;
    TRY(MPI_Comm_dup(world, &comm));
    TRY(MPI_Allreduce(ours, theirs, 1, MPI_INT, MPI_SUM, comm));
    return MPI_Comm_free(&comm);
}
static int disconnect(void)
{
    MPI_Comm comm;
    TRY(MPI_Comm_dup(world, &comm));
    return MPI_Comm_disconnect(&comm);
}
static int intercomm_create(void)
{
    MPI_Comm comm;
    return made(MPI_Intercomm_create(half, 0, world, rank % 2 == 0 ? 1 : 0, 9, &comm), &comm);
}
static int intercomm_create_from_groups(void)
{
    MPI_Comm comm;
    return made(MPI_Intercomm_create_from_groups(own_group, 0, other_group, 0, "halves", MPI_INFO_NULL,
                                                 MPI_ERRORS_RETURN, &comm),
                &comm);
}
static int intercomm_merge(void)
{
    MPI_Comm comm;
    return made(MPI_Intercomm_merge(across, rank % 2, &comm), &comm);
}
static int intercomm_dup(void)
{
    MPI_Comm comm;
    return made(MPI_Comm_dup(across, &comm), &comm);
}
static int intercomm_idup(void)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request;
    return made(wait_for(MPI_Comm_idup(across, &comm, &request), &request), &comm);
}
static int intercomm_split(void)
{
    MPI_Comm comm;
    return made(MPI_Comm_split(across, 0, rank, &comm), &comm);
}
static int intercomm_create_of_groups(void)
{
    MPI_Comm comm;
    return made(MPI_Comm_create(across, own_group, &comm), &comm);
}
static int cart_create(void)
{
    MPI_Comm comm;
    int shape[1] = {size}, is_round[1] = {1};
    return made(MPI_Cart_create(world, 1, shape, is_round, 0, &comm), &comm);
}
static int cart_sub(void)
{
    MPI_Comm grid, comm;
    int shape[2] = {2, size / 2}, is_round[2] = {1, 1}, remains[2] = {1, 0};
    TRY(MPI_Cart_create(world, 2, shape, is_round, 0, &grid));
    TRY(made(MPI_Cart_sub(grid, remains, &comm), &comm));
    return MPI_Comm_free(&grid);
}
static int graph_create(void)
{
    MPI_Comm comm;
    int index[64], edges[64];
    for (int at = 0; at < size; at++) {
        index[at] = at + 1;
        edges[at] = (at + 1) % size;
    }
    return made(MPI_Graph_create(world, size, index, edges, 0, &comm), &comm);
}
static int dist_graph_create(void)
{
    MPI_Comm comm;
    int source = rank, degree = 1, destination = (rank + 1) % size;
    return made(MPI_Dist_graph_create(world, 1, &source, &degree, &destination, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                      &comm),
                &comm);
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

/* Making an intercommunicator begins within each group, whose members know nothing of the other one. Over hosts one
   of them may have made it when another is told of a death in the other group: the first would then wait in the next
   round for the other, which lives and does not come. On one host all of a round have it or none. */
static const struct operation operations[] = {
    OPERATION(sendrecv), OPERATION(sendrecv_long), OPERATION(persistent), OPERATION(ssend), OPERATION(mprobe),
    OPERATION(bsend), OPERATION(testall), OPERATION(any_source), OPERATION(sendrecv_replace),
    OPERATION(isendrecv_replace), OPERATION(isendrecv), OPERATION(rsend), OPERATION(iprobe), OPERATION(improbe),
    OPERATION(waitany), OPERATION(testany), OPERATION(waitsome), OPERATION(testsome), OPERATIONS_OF(barrier),
    OPERATIONS_OF(bcast), OPERATIONS_OF(gather), OPERATIONS_OF(gatherv), OPERATIONS_OF(scatter),
    OPERATIONS_OF(scatterv), OPERATIONS_OF(allgather), OPERATIONS_OF(allgatherv), OPERATIONS_OF(alltoall),
    OPERATIONS_OF(alltoallv), OPERATIONS_OF(alltoallw), OPERATIONS_OF(reduce), OPERATIONS_OF(allreduce),
    OPERATIONS_OF(reduce_scatter), OPERATIONS_OF(reduce_scatter_block), OPERATION(scan_then_barrier),
    OPERATION(iscan_then_barrier), OPERATION(kept_scan_then_barrier), OPERATION(exscan_then_barrier),
    OPERATION(iexscan_then_barrier), OPERATION(kept_exscan_then_barrier), OPERATION(bcast_long),
    OPERATION(bcast_of_another), OPERATION(gather_long), OPERATION(alltoall_long), OPERATION(allreduce_long),
    OPERATION(allreduce_own), OPERATION(iallreduce_own), OPERATION(tested_ialltoall), OPERATION(two_at_once),
    OPERATION(neighbors), OPERATION(ring_allgather), OPERATION(ring_alltoall_long), OPERATION(ring_started),
    OPERATION(ring_tested), OPERATION(ring_kept), OPERATION(chain_allgatherv), OPERATION(barrier_across),
    OPERATION(allreduce_across), OPERATION(ibcast_across), OPERATION(comm_dup), OPERATION(dup_with_info),
    OPERATION(idup), OPERATION(two_idups), OPERATION(split), OPERATION(split_type), OPERATION(create),
    OPERATION(create_group), OPERATION(create_from_group), OPERATION(used_at_once), OPERATION(disconnect),
    OPERATION_HERE(intercomm_create), OPERATION_HERE(intercomm_create_from_groups), OPERATION(intercomm_merge),
    OPERATION(intercomm_dup), OPERATION(intercomm_idup), OPERATION(intercomm_split),
    OPERATION(intercomm_create_of_groups), OPERATION(cart_create), OPERATION(cart_sub), OPERATION(graph_create),
    OPERATION(dist_graph_create),
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static void prepare(void)
{
    int ranks[64], count = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_group(world, &everybody);
    MPI_Comm_split(world, rank % 2, 0, &half);
    MPI_Comm_group(half, &own_group);
    for (int other = (rank + 1) % 2; other < size; other += 2) ranks[count++] = other;
    MPI_Group_incl(everybody, count, ranks, &other_group);
    MPI_Intercomm_create(half, 0, world, rank % 2 == 0 ? 1 : 0, 0, &across);
    MPI_Op_create(sum, 1, &own_sum);
    ours = calloc((size_t)LONG_ITEMS * size, sizeof *ours);
    theirs = calloc((size_t)LONG_ITEMS * size, sizeof *theirs);
    MPI_Buffer_attach(malloc(1 << 20), 1 << 20);
    for (int at = 0; at < size; at++) {
        counts[at] = at + 1;
        ones[at] = 1;
        places[at] = at * 65;
        types[at] = MPI_INT;
    }
    star = ring = chain = MPI_COMM_NULL;
    MPI_Comm all[] = {MPI_COMM_WORLD, MPI_COMM_SELF, world, half, across};
    for (int at = 0; at < 5; at++) MPI_Comm_set_errhandler(all[at], MPI_ERRORS_RETURN);
}

int main(int argc, char **argv)
{
    const struct operation *operation = chosen(operations, OPERATIONS, argv[1]);
    int code, flag;
    begin(&argc, &argv);
    victim = atoi(argv[2]);
    prepare();
    CHECK(operation->run() == MPI_SUCCESS);
    has_begun(rank);
    if (strcmp(argv[3], "later") == 0)
        while (rank != victim && MPI_Iprobe(victim, 99, world, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS) continue;
    long long told_ns = repeat(operation, &code);
    int class = -1, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    was_told(rank, told_ns, class == MPI_ERR_PROC_ABORTED, text);
    for (;;) pause();
}
