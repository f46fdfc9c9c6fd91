/* Every form of a collective operation does the same: blocking, started, persistent, each with counts of
 * both widths. And the twins for large counts of functions that send and receive one message. */
#include "check.h"

enum { MOST = 64, EACH = 2 };

#define LIST(...) __VA_ARGS__

/* Runs all six forms. The arguments before the communicator are given for either width of counts. */
#define ALL_FORMS(name, started, shorts, longs, check)                                              \
    do {                                                                                            \
        MPI_Request request;                                                                        \
        int again;                                                                                  \
        fill();                                                                                     \
        CHECK(MPI_##name(shorts, MPI_COMM_WORLD) == MPI_SUCCESS && check);                           \
        fill();                                                                                     \
        CHECK(MPI_##name##_c(longs, MPI_COMM_WORLD) == MPI_SUCCESS && check);                        \
        fill();                                                                                     \
        CHECK(MPI_##started(shorts, MPI_COMM_WORLD, &request) == MPI_SUCCESS);                       \
        CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && check);                        \
        fill();                                                                                     \
        CHECK(MPI_##started##_c(longs, MPI_COMM_WORLD, &request) == MPI_SUCCESS);                    \
        CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && check);                        \
        CHECK(MPI_##name##_init(shorts, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_SUCCESS);     \
        for (again = 0; again < 2; again++) {                                                       \
            fill();                                                                                 \
            CHECK(MPI_Start(&request) == MPI_SUCCESS);                                              \
            CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && check);                    \
        }                                                                                           \
        CHECK(MPI_Request_free(&request) == MPI_SUCCESS);                                           \
        CHECK(MPI_##name##_init_c(longs, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_SUCCESS);    \
        for (again = 0; again < 2; again++) {                                                       \
            fill();                                                                                 \
            CHECK(MPI_Start(&request) == MPI_SUCCESS);                                              \
            CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && check);                    \
        }                                                                                           \
        CHECK(MPI_Request_free(&request) == MPI_SUCCESS);                                           \
    } while (0)

/* The same where both widths have the same arguments. */
#define BOTH(name, started, arguments, check) ALL_FORMS(name, started, LIST(arguments), LIST(arguments), check)

static int from[EACH * MOST], into[EACH * MOST], root;
static int counts[MOST], places[MOST], offsets[MOST];
static MPI_Count wide_counts[MOST];
static MPI_Aint wide_places[MOST], wide_offsets[MOST];
static MPI_Datatype types[MOST];

/* The value at a place of what a process brings. */
static int value(int process, int place)
{
    return 1000 * process + place;
}

static void fill(void)
{
    for (int place = 0; place < EACH * MOST; place++) from[place] = value(rank, place), into[place] = -1;
}

/* Whether there is what a process has at some place, whole, and nothing behind the last. */
static int has(int block, int process, int place)
{
    return into[EACH * block] == value(process, place) &&
           into[EACH * block + 1] == value(process, place + 1);
}

static int is_clear(int block)
{
    return into[EACH * block] == -1;
}

static int has_all_at_root(void)
{
    for (int process = 0; process < size && rank == root; process++)
        if (!has(process, process, 0)) return 0;
    return rank == root ? is_clear(size) : is_clear(0);
}

static int has_own_of_root(void) { return has(0, root, EACH * rank) && is_clear(1); }

static int has_all(void)
{
    for (int process = 0; process < size; process++)
        if (!has(process, process, 0)) return 0;
    return is_clear(size);
}

static int has_from_all(void)
{
    for (int process = 0; process < size; process++)
        if (!has(process, process, EACH * rank)) return 0;
    return is_clear(size);
}

/* Whether there are the sums over the first processes, of the values at these places. */
static int has_sums(int processes, int place)
{
    for (int at = 0; at < EACH; at++)
        if (into[at] != 1000 * (processes * (processes - 1) / 2) + processes * (place + at)) return 0;
    return is_clear(1);
}

static int has_sum_at_root(void) { return rank == root ? has_sums(size, 0) : is_clear(0); }
static int has_sum(void) { return has_sums(size, 0); }
static int has_own_sum(void) { return has_sums(size, EACH * rank); }
static int has_sum_until_here(void) { return has_sums(rank + 1, 0); }
static int has_sum_before(void) { return rank == 0 || has_sums(rank, 0); }

/* What goes to all must be there before. */
static int broadcast_well(void)
{
    int well = from[0] == value(root, 0) && from[1] == value(root, 1);
    return well && from[2] == value(rank, 2);
}

static void with_root(void)
{
    BOTH(Bcast, Ibcast, LIST(from, EACH, MPI_INT, root), broadcast_well());
    BOTH(Gather, Igather, LIST(from, EACH, MPI_INT, into, EACH, MPI_INT, root), has_all_at_root());
    ALL_FORMS(Gatherv, Igatherv, LIST(from, EACH, MPI_INT, into, counts, places, MPI_INT, root),
              LIST(from, EACH, MPI_INT, into, wide_counts, wide_places, MPI_INT, root),
              has_all_at_root());
    BOTH(Scatter, Iscatter, LIST(from, EACH, MPI_INT, into, EACH, MPI_INT, root), has_own_of_root());
    ALL_FORMS(Scatterv, Iscatterv, LIST(from, counts, places, MPI_INT, into, EACH, MPI_INT, root),
              LIST(from, wide_counts, wide_places, MPI_INT, into, EACH, MPI_INT, root),
              has_own_of_root());
    BOTH(Reduce, Ireduce, LIST(from, into, EACH, MPI_INT, MPI_SUM, root), has_sum_at_root());
}

static void without_root(void)
{
    BOTH(Allgather, Iallgather, LIST(from, EACH, MPI_INT, into, EACH, MPI_INT), has_all());
    ALL_FORMS(Allgatherv, Iallgatherv, LIST(from, EACH, MPI_INT, into, counts, places, MPI_INT),
              LIST(from, EACH, MPI_INT, into, wide_counts, wide_places, MPI_INT), has_all());
    BOTH(Alltoall, Ialltoall, LIST(from, EACH, MPI_INT, into, EACH, MPI_INT), has_from_all());
    ALL_FORMS(Alltoallv, Ialltoallv,
              LIST(from, counts, places, MPI_INT, into, counts, places, MPI_INT),
              LIST(from, wide_counts, wide_places, MPI_INT, into, wide_counts, wide_places, MPI_INT),
              has_from_all());
    ALL_FORMS(Alltoallw, Ialltoallw, LIST(from, counts, offsets, types, into, counts, offsets, types),
              LIST(from, wide_counts, wide_offsets, types, into, wide_counts, wide_offsets, types),
              has_from_all());
    BOTH(Allreduce, Iallreduce, LIST(from, into, EACH, MPI_INT, MPI_SUM), has_sum());
    ALL_FORMS(Reduce_scatter, Ireduce_scatter, LIST(from, into, counts, MPI_INT, MPI_SUM),
              LIST(from, into, wide_counts, MPI_INT, MPI_SUM), has_own_sum());
    BOTH(Reduce_scatter_block, Ireduce_scatter_block, LIST(from, into, EACH, MPI_INT, MPI_SUM),
         has_own_sum());
    BOTH(Scan, Iscan, LIST(from, into, EACH, MPI_INT, MPI_SUM), has_sum_until_here());
    BOTH(Exscan, Iexscan, LIST(from, into, EACH, MPI_INT, MPI_SUM), has_sum_before());
}

/* To the next process and from the one before: what was sent in one way is received in another. */
static void one_message(void)
{
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    const MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request out, in;
    MPI_Message message;

#define RECEIVED has(0, before, 0) && is_clear(1)
#define BEGIN(call) fill(); CHECK(MPI_Irecv_c(into, EACH, MPI_INT, before, 1, comm, &in) == MPI_SUCCESS); \
    CHECK((call) == MPI_SUCCESS); CHECK(MPI_Wait(&in, MPI_STATUS_IGNORE) == MPI_SUCCESS && RECEIVED)
#define ENDED(call) BEGIN(call); CHECK(MPI_Wait(&out, MPI_STATUS_IGNORE) == MPI_SUCCESS)
#define KEPT(call) fill(); CHECK((call) == MPI_SUCCESS); \
    CHECK(MPI_Irecv_c(into, EACH, MPI_INT, before, 1, comm, &in) == MPI_SUCCESS); meet(comm); \
    CHECK(MPI_Start(&out) == MPI_SUCCESS && MPI_Wait(&in, MPI_STATUS_IGNORE) == MPI_SUCCESS && RECEIVED); \
    CHECK(MPI_Wait(&out, MPI_STATUS_IGNORE) == MPI_SUCCESS && MPI_Request_free(&out) == MPI_SUCCESS)

    static char room[4096], more[4096];
    void *place;
    MPI_Count bytes;
    CHECK(MPI_Buffer_attach_c(room, sizeof room) == MPI_SUCCESS);
    BEGIN(MPI_Bsend_c(from, EACH, MPI_INT, next, 1, comm));
    ENDED(MPI_Ibsend_c(from, EACH, MPI_INT, next, 1, comm, &out));
    KEPT(MPI_Bsend_init_c(from, EACH, MPI_INT, next, 1, comm, &out));
    CHECK(MPI_Buffer_detach_c(&place, &bytes) == MPI_SUCCESS);
    CHECK(place == room && bytes == sizeof room);
    CHECK(MPI_Comm_attach_buffer_c(comm, more, sizeof more) == MPI_SUCCESS);
    BEGIN(MPI_Bsend_c(from, EACH, MPI_INT, next, 1, comm));
    CHECK(MPI_Comm_detach_buffer_c(comm, &place, &bytes) == MPI_SUCCESS);
    CHECK(place == more && bytes == sizeof more);

    ENDED(MPI_Issend_c(from, EACH, MPI_INT, next, 1, comm, &out));
    KEPT(MPI_Send_init_c(from, EACH, MPI_INT, next, 1, comm, &out));
    KEPT(MPI_Ssend_init_c(from, EACH, MPI_INT, next, 1, comm, &out));
    KEPT(MPI_Rsend_init(from, EACH, MPI_INT, next, 1, comm, &out));
    KEPT(MPI_Rsend_init_c(from, EACH, MPI_INT, next, 1, comm, &out));
    fill();
    CHECK(MPI_Irecv(into, EACH, MPI_INT, before, 1, comm, &in) == MPI_SUCCESS);
    meet(comm);
    CHECK(MPI_Rsend_c(from, EACH, MPI_INT, next, 1, comm) == MPI_SUCCESS);
    CHECK(MPI_Wait(&in, MPI_STATUS_IGNORE) == MPI_SUCCESS && RECEIVED);
    fill();
    CHECK(MPI_Recv_init_c(into, EACH, MPI_INT, before, 1, comm, &in) == MPI_SUCCESS);
    CHECK(MPI_Start(&in) == MPI_SUCCESS);
    meet(comm);
    CHECK(MPI_Irsend_c(from, EACH, MPI_INT, next, 1, comm, &out) == MPI_SUCCESS);
    CHECK(MPI_Wait(&in, MPI_STATUS_IGNORE) == MPI_SUCCESS && RECEIVED);
    CHECK(MPI_Wait(&out, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Request_free(&in) == MPI_SUCCESS);

#define SENT(call) fill(); CHECK(MPI_Isend_c(from, EACH, MPI_INT, next, 1, comm, &out) == MPI_SUCCESS); \
    CHECK((call) == MPI_SUCCESS && MPI_Wait(&out, MPI_STATUS_IGNORE) == MPI_SUCCESS)
    SENT(MPI_Recv_c(into, EACH, MPI_INT, before, 1, comm, MPI_STATUS_IGNORE));
    CHECK(RECEIVED);
    SENT(MPI_Mprobe(before, 1, comm, &message, MPI_STATUS_IGNORE));
    CHECK(MPI_Mrecv_c(into, EACH, MPI_INT, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS && RECEIVED);
    SENT(MPI_Mprobe(before, 1, comm, &message, MPI_STATUS_IGNORE));
    CHECK(MPI_Imrecv_c(into, EACH, MPI_INT, &message, &in) == MPI_SUCCESS);
    CHECK(MPI_Wait(&in, MPI_STATUS_IGNORE) == MPI_SUCCESS && RECEIVED);

    fill();
    CHECK(MPI_Sendrecv_c(from, EACH, MPI_INT, next, 1, into, EACH, MPI_INT, before, 1, comm,
                         MPI_STATUS_IGNORE) == MPI_SUCCESS && RECEIVED);
    fill();
    CHECK(MPI_Isendrecv_c(from, EACH, MPI_INT, next, 1, into, EACH, MPI_INT, before, 1, comm, &in) ==
          MPI_SUCCESS);
    CHECK(MPI_Wait(&in, MPI_STATUS_IGNORE) == MPI_SUCCESS && RECEIVED);
    fill();
    into[0] = value(rank, 0), into[1] = value(rank, 1);
    CHECK(MPI_Isendrecv_replace_c(into, EACH, MPI_INT, next, 1, before, 1, comm, &in) == MPI_SUCCESS);
    CHECK(MPI_Wait(&in, MPI_STATUS_IGNORE) == MPI_SUCCESS && RECEIVED);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size < MOST);
    for (int process = 0; process < size; process++) {
        wide_counts[process] = counts[process] = EACH;
        wide_places[process] = places[process] = EACH * process;
        wide_offsets[process] = offsets[process] = EACH * process * (int)sizeof(int);
        types[process] = MPI_INT;
    }
    for (root = 0; root < size; root++) with_root();
    without_root();
    one_message();
    return end("twins");
}
