/* The shared heap of a member, or of all, is full of messages that nobody has received: collective operations go on,
 * in communicators that were made before and in one that is made then. */
#include "check.h"

enum { LONG = 3 << 20, PLACE = LONG + 64, STUFFING = 1400, SMALL_STUFFING = 600, STUFF = 200 << 10, SMALL_STUFF = 20 << 10 };
enum form { GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, IALLTOALLV, ALLTOALLW, FORMS };
enum regular {
    BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN,
    IBCAST, IALLGATHER, IALLTOALL, IALLREDUCE, REGULAR
};

static char *in, *out;

static char value_of(int from, int to, int at) { return (char)(from * 31 + to * 7 + at * 13 + (at >> 12)); }

/* Everybody brings blocks of one length and expects blocks of another; its own it expects as it brings it. */
static int call(enum form form, int brought, int expected)
{
    int sent[8], received[8], places[8], code = MPI_SUCCESS;
    MPI_Request request;
    MPI_Datatype types[8];
    for (int member = 0; member < size; member++) {
        places[member] = member * PLACE;
        sent[member] = brought;
        received[member] = member == rank ? brought : expected;
        for (int at = 0; at < brought; at++)
            in[places[member] + at] = value_of(rank, form == GATHERV || form == ALLGATHERV ? 0 : member, at);
    }
    memset(out, 0, (size_t)size * PLACE);
    switch (form) {
    case GATHERV:
        return MPI_Gatherv(in, brought, MPI_CHAR, out, received, places, MPI_CHAR, 0, MPI_COMM_WORLD);
    case SCATTERV:
        return MPI_Scatterv(in, sent, places, MPI_CHAR, out, received[0], MPI_CHAR, 0, MPI_COMM_WORLD);
    case ALLGATHERV:
        return MPI_Allgatherv(in, brought, MPI_CHAR, out, received, places, MPI_CHAR, MPI_COMM_WORLD);
    case ALLTOALLV:
        return MPI_Alltoallv(in, sent, places, MPI_CHAR, out, received, places, MPI_CHAR, MPI_COMM_WORLD);
    case ALLTOALLW:
        for (int member = 0; member < size; member++) types[member] = MPI_CHAR;
        return MPI_Alltoallw(in, sent, places, types, out, received, places, types, MPI_COMM_WORLD);
    default:
        code = MPI_Ialltoallv(in, sent, places, MPI_CHAR, out, received, places, MPI_CHAR, MPI_COMM_WORLD, &request);
        return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
    }
}

static void fail(int code, enum form form, int length)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int text_length;
    MPI_Error_string(code, text, &text_length);
    fprintf(stderr, "rank %d: form %d, %d bytes: %s\n", rank, form, length, text);
    MPI_Abort(MPI_COMM_WORLD, 99);
}

static void agree(enum form form, int length)
{
    int code = call(form, length, length);
    if (code != MPI_SUCCESS) fail(code, form, length);
    int blocks = form == GATHERV && rank ? 0 : form == SCATTERV ? 1 : size;
    for (int from = 0; from < blocks; from++)
        for (int at = 0; at < length; at++)
            CHECK(out[from * PLACE + at] == value_of(from, form == GATHERV || form == ALLGATHERV ? 0 : rank, at));
    meet(MPI_COMM_WORLD);
}

/* Whoever takes a block is told, also where it is a full member's. */
static void differ(enum form form, int brought, int expected)
{
    int takes = form == GATHERV ? rank == 0 : form == SCATTERV ? rank != 0 : 1, class;
    int code = call(form, brought, expected);
    MPI_Error_class(code, &class);
    if (class != (takes ? MPI_ERR_TRUNCATE : MPI_SUCCESS)) fail(code, form, brought);
    meet(MPI_COMM_WORLD);
}

/* The root expects of itself something else than it brings: the others are through, however long their blocks are. */
static void disagree_with_oneself(int length)
{
    int received[8], places[8];
    for (int member = 0; member < size; member++) {
        received[member] = member ? length : length - 8;
        places[member] = member * PLACE;
    }
    memset(in, rank + 1, length);
    memset(out, 0, PLACE);
    int code = MPI_Gatherv(in, length, MPI_CHAR, out, received, places, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK((code == MPI_SUCCESS) == (rank != 0));
    for (int member = 1; member < size && rank == 0; member++)
        for (int at = 0; at < length; at++) CHECK(out[member * PLACE + at] == member + 1);
    for (int at = length - 8; at < PLACE && rank == 0; at++) CHECK(out[at] == 0);
    meet(MPI_COMM_WORLD);
}

/* Whether all ints of the result are so many times what the member with this number gives, plus so much. */
static int are(const int *result, int count, int times, int plus)
{
    for (int at = 0; at < count; at++)
        if (result[at] != times * (at % 1000) + plus) return 0;
    return 1;
}

/* Forms in which all blocks have one length: everybody gives at % 1000 + rank, to each the same. */
static void agree_regular(enum regular form, int count, MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int *given = (int *)in, *result = (int *)out, code, counts[8], each = count / size * size, ranks = size * (size - 1) / 2;
    for (int block = 0; block < size; block++) {
        counts[block] = each / size;
        for (int at = 0; at < count; at++) given[block * count + at] = at % 1000 + rank;
    }
    memset(out, 0xff, (size_t)size * PLACE);
    switch (form) {
    case BCAST: case IBCAST:
        if (rank == size - 1) memcpy(result, given, count * sizeof *given);
        code = form == BCAST ? MPI_Bcast(result, count, MPI_INT, size - 1, comm)
                             : MPI_Ibcast(result, count, MPI_INT, size - 1, comm, &request);
        break;
    case GATHER: code = MPI_Gather(given, count, MPI_INT, result, count, MPI_INT, 0, comm); break;
    case SCATTER: code = MPI_Scatter(given, count, MPI_INT, result, count, MPI_INT, 0, comm); break;
    case ALLGATHER: code = MPI_Allgather(given, count, MPI_INT, result, count, MPI_INT, comm); break;
    case IALLGATHER: code = MPI_Iallgather(given, count, MPI_INT, result, count, MPI_INT, comm, &request); break;
    case ALLTOALL: code = MPI_Alltoall(given, count, MPI_INT, result, count, MPI_INT, comm); break;
    case IALLTOALL: code = MPI_Ialltoall(given, count, MPI_INT, result, count, MPI_INT, comm, &request); break;
    case REDUCE: code = MPI_Reduce(given, result, count, MPI_INT, MPI_SUM, 0, comm); break;
    case ALLREDUCE: code = MPI_Allreduce(given, result, count, MPI_INT, MPI_SUM, comm); break;
    case IALLREDUCE: code = MPI_Iallreduce(given, result, count, MPI_INT, MPI_SUM, comm, &request); break;
    case REDUCE_SCATTER: code = MPI_Reduce_scatter(given, result, counts, MPI_INT, MPI_MAX, comm); break;
    case REDUCE_SCATTER_BLOCK: code = MPI_Reduce_scatter_block(given, result, count, MPI_INT, MPI_SUM, comm); break;
    case SCAN: code = MPI_Scan(given, result, count, MPI_INT, MPI_SUM, comm); break;
    default: code = MPI_Exscan(given, result, count, MPI_INT, MPI_SUM, comm);
    }
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) fail(code, FORMS + form, count);
    switch (form) {
    case BCAST: case IBCAST: CHECK(are(result, count, 1, size - 1)); break;
    case SCATTER: CHECK(are(result, count, 1, 0)); break;
    case GATHER: case ALLGATHER: case IALLGATHER: case ALLTOALL: case IALLTOALL:
        for (int from = 0; from < size && (form != GATHER || rank == 0); from++)
            CHECK(are(result + (size_t)from * count, count, 1, from));
        break;
    case REDUCE: CHECK(rank || are(result, count, size, ranks)); break;
    case REDUCE_SCATTER:
        for (int at = 0; at < each / size; at++)
            CHECK(result[at] == (each / size * rank + at) % 1000 + size - 1);
        break;
    case SCAN: CHECK(are(result, count, rank + 1, rank * (rank + 1) / 2)); break;
    case EXSCAN: CHECK(!rank || are(result, count, rank, rank * (rank - 1) / 2)); break;
    default: CHECK(are(result, count, size, ranks));
    }
    meet(comm);
}

/* A collective operation of each form goes on at once: they may end in any order. */
static void several(int count, MPI_Comm comm)
{
    MPI_Request requests[3];
    int *given = (int *)in, *sums = (int *)out, *all = sums + count, *told = all + size * count;
    for (int at = 0; at < count; at++) given[at] = at % 1000 + rank, told[at] = rank ? -1 : at % 1000;
    MPI_Iallreduce(given, sums, count, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Iallgather(given, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD, &requests[1]);
    MPI_Ibcast(told, count, MPI_INT, 0, comm, &requests[2]);
    CHECK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(are(sums, count, size, size * (size - 1) / 2) && are(told, count, 1, 0));
    for (int from = 0; from < size; from++) CHECK(are(all + (size_t)from * count, count, 1, from));
    meet(comm);
}

/* What others have taken on one communicator makes room for a short block on another, whatever there is room for. */
static void make_room_for(MPI_Comm comm)
{
    static char few[12000], mine[12000];
    int lengths[8], places[8];
    for (int length = 0; length < LONG / 4; length += 4 << 10) {
        for (int member = 0; member < size; member++) lengths[member] = length, places[member] = 0;
        CHECK(MPI_Scatterv(in, lengths, places, MPI_CHAR, out, length, MPI_CHAR, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
        few[0] = (char)(length >> 12);
        if (rank) mine[0] = 0;
        CHECK(MPI_Bcast(rank ? mine : few, sizeof few, MPI_CHAR, 0, comm) == MPI_SUCCESS);
        CHECK(!rank || mine[0] == (char)(length >> 12));
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    in = calloc(size, PLACE);
    out = calloc(size, PLACE);
    char *stuff = calloc(STUFF, 1);
    MPI_Request requests[STUFFING + SMALL_STUFFING];
    static const int lengths[] = {251, 1000, 30000, 100000, LONG};
    static const int counts[] = {1, 60, 3000, 30000, LONG / 4};
    static const int pairs[][2] = {{30000, 251}, {251, 30000}, {LONG, 10}, {10, LONG}, {LONG, 251}, {100000, 50000}};
    /* Each of them in turn, of many the first; then all. */
    for (int full = 0; full <= size; full += size > 3 ? size : 1) {
        int gives = full == size || full == rank, to = (rank + 1) % size, from = (rank + size - 1) % size;
        int takes = full == size || full == from;
        for (int number = 0; number < STUFFING + SMALL_STUFFING && gives; number++)
            MPI_Isend(stuff, number < STUFFING ? STUFF : SMALL_STUFF, MPI_CHAR, to, number, MPI_COMM_WORLD,
                      &requests[number]);
        meet(MPI_COMM_WORLD);
        for (enum form form = 0; form < FORMS; form++) {
            for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) agree(form, lengths[at]);
            for (size_t at = 0; at < sizeof pairs / sizeof *pairs; at++) differ(form, pairs[at][0], pairs[at][1]);
        }
        disagree_with_oneself(1000);
        disagree_with_oneself(LONG);
        MPI_Comm made;
        CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &made) == MPI_SUCCESS);
        for (enum regular form = 0; form < REGULAR; form++)
            for (size_t at = 0; at < sizeof counts / sizeof *counts; at++) {
                agree_regular(form, counts[at], MPI_COMM_WORLD);
                if (at < 3) agree_regular(form, counts[at], made);
            }
        several(1000, made);
        several(LONG / 16, made);
        make_room_for(made);
        CHECK(MPI_Comm_free(&made) == MPI_SUCCESS);
        for (int number = 0; number < STUFFING + SMALL_STUFFING && takes; number++)
            MPI_Recv(stuff, STUFF, MPI_CHAR, from, number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (gives) MPI_Waitall(STUFFING + SMALL_STUFFING, requests, MPI_STATUSES_IGNORE);
        agree(ALLTOALLV, LONG);
    }
    free(in);
    free(out);
    free(stuff);
    return end("full_heap");
}
