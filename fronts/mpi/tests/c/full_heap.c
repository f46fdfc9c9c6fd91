/* The shared heap of a member is full of messages that nobody has received: collective operations do not wait for
 * that. In the v forms, what has no room there goes as messages; elsewhere all that need it are told who has no room. */
#include "check.h"

enum { LONG = 3 << 20, PLACE = LONG + 64, STUFFING = 1400, SMALL_STUFFING = 600, STUFF = 200 << 10, SMALL_STUFF = 20 << 10 };
enum form { GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, IALLTOALLV, FORMS };

static char *in, *out;

static char value_of(int from, int to, int at) { return (char)(from * 31 + to * 7 + at * 13 + (at >> 12)); }

/* Everybody brings blocks of one length and expects blocks of another; its own it expects as it brings it. */
static int call(enum form form, int brought, int expected)
{
    int sent[8], received[8], places[8], code = MPI_SUCCESS;
    MPI_Request request;
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

/* In operations that are no v forms, there may be no room; then that is what all are told. */
static void find_room_or_say_so(int form, int length)
{
    int code, class, text_length;
    char text[MPI_MAX_ERROR_STRING] = "";
    switch (form) {
    case 0: code = MPI_Allgather(in, length, MPI_CHAR, out, length, MPI_CHAR, MPI_COMM_WORLD); break;
    case 1: code = MPI_Alltoall(in, length, MPI_CHAR, out, length, MPI_CHAR, MPI_COMM_WORLD); break;
    default: code = MPI_Allreduce(in, out, length, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    }
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &text_length);
    if (code != MPI_SUCCESS && !(class == MPI_ERR_NO_MEM && strstr(text, "shared heap"))) fail(code, FORMS + form, length);
    meet(MPI_COMM_WORLD);
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
    static const int pairs[][2] = {{30000, 251}, {251, 30000}, {LONG, 10}, {10, LONG}, {LONG, 251}, {100000, 50000}};
    for (int full = 0; full <= size; full++) {
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
        for (int form = 0; form < 3; form++) {
            find_room_or_say_so(form, 100000);
            find_room_or_say_so(form, LONG);
        }
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
