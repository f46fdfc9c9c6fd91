/* Collective operations whose blocks differ in length, some of several MiB beside some of none: blocking, started,
 * kept to be started again, in place, with datatypes with gaps, and two at once that members start in different
 * orders. tests/programs.rs runs it where a process can lay down less than such a block, too. */
#include "check.h"

enum { MOST = 8, LONG = 1500000, TIMES = 2 };
enum { BLOCKING, STARTED, KEPT, FORMS };

static MPI_Comm other;
/* An int of every two. */
static MPI_Datatype gaps;

/* Ints from one rank for another. */
static int length(int from, int to)
{
    int kind = (from + 2 * to) % 4;
    return kind == 0 ? LONG + 1000 * from + to : kind == 1 ? 0 : kind == 2 ? 7 : 5000;
}

static int value(int from, int to, int at) { return from * 1000003 + to * 10007 + at; }

/* Some of the places of a block, the last among them. */
static int next(int at, int count) { return at == count - 1 ? count : at + 997 < count ? at + 997 : count - 1; }

static void fill(int *block, int from, int to)
{
    int count = length(from, to);
    for (int at = 0; at < count; at = next(at, count)) block[at] = value(from, to, at);
}

static void check(const int *block, int from, int to, int step)
{
    int count = length(from, to);
    for (int at = 0; at < count; at = next(at, count)) CHECK(block[(size_t)at * step] == value(from, to, at));
}

/* The blocks of a row, one behind the other. */
struct row {
    int *data, counts[MOST], places[MOST], total;
};

static struct row row_of(int (*count)(int other, int root), int root, int step)
{
    struct row row = {.total = 0};
    for (int rank = 0; rank < size; rank++) {
        row.counts[rank] = count(rank, root);
        row.places[rank] = row.total;
        row.total += row.counts[rank];
    }
    row.data = calloc((size_t)row.total * step + 1, sizeof(int));
    CHECK(row.data);
    return row;
}

static int *block(struct row *row, int of, int step) { return row->data + (size_t)row->places[of] * step; }

static int to_them(int them, int root) { return (void)root, length(rank, them); }
static int from_them(int them, int root) { return (void)root, length(them, rank); }
static int to_root(int them, int root) { return length(them, root); }
static int from_root(int them, int root) { return length(root, them); }

/* Ends what was begun in one of the forms, again where it was kept. */
static void finish(int form, MPI_Request *request)
{
    if (form == BLOCKING) return;
    for (int time = 0; time < TIMES; time++) {
        if (form == KEPT) CHECK(MPI_Start(request) == MPI_SUCCESS);
        CHECK(MPI_Wait(request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        if (form == STARTED) return;
    }
    MPI_Request_free(request);
}

/* Calls an operation in a form: its arguments, and a name for each. */
#define CALL(form, request, blocking, started, kept, ...)                                         \
    do {                                                                                          \
        if (form == BLOCKING) CHECK(blocking(__VA_ARGS__, MPI_COMM_WORLD) == MPI_SUCCESS);        \
        if (form == STARTED) CHECK(started(__VA_ARGS__, MPI_COMM_WORLD, &request) == MPI_SUCCESS); \
        if (form == KEPT)                                                                         \
            CHECK(kept(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_SUCCESS);     \
        finish(form, &request);                                                                   \
    } while (0)

static void to_all(int form)
{
    MPI_Request request = MPI_REQUEST_NULL;
    struct row in = row_of(to_them, 0, 1), out = row_of(from_them, 0, 1);
    for (int to = 0; to < size; to++) fill(block(&in, to, 1), rank, to);
    CALL(form, request, MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, in.data, in.counts, in.places, MPI_INT,
         out.data, out.counts, out.places, MPI_INT);
    for (int from = 0; from < size; from++) check(block(&out, from, 1), from, rank, 1);
    free(out.data);
    /* The same into ints with gaps between them. */
    MPI_Datatype sent[MOST], got[MOST];
    int sent_places[MOST], got_places[MOST];
    out = row_of(from_them, 0, 2);
    for (int rank = 0; rank < size; rank++) {
        sent[rank] = MPI_INT;
        got[rank] = gaps;
        sent_places[rank] = in.places[rank] * (int)sizeof(int);
        got_places[rank] = out.places[rank] * 2 * (int)sizeof(int);
    }
    CALL(form, request, MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, in.data, in.counts, sent_places, sent,
         out.data, out.counts, got_places, got);
    for (int from = 0; from < size; from++) check(block(&out, from, 2), from, rank, 2);
    free(in.data);
    free(out.data);
}

/* In place the blocks between two are equally long. */
static void in_place(int form)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int counts[MOST], places[MOST], total = 0;
    for (int them = 0; them < size; them++) {
        counts[them] = length(0, them + rank);
        places[them] = total;
        total += counts[them];
    }
    int *data = calloc((size_t)total + 1, sizeof(int));
    for (int them = 0; them < size; them++)
        for (int at = 0; at < counts[them]; at = next(at, counts[them]))
            data[places[them] + at] = value(rank, them, at);
    CALL(form, request, MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, MPI_IN_PLACE, NULL, NULL,
         MPI_DATATYPE_NULL, data, counts, places, MPI_INT);
    for (int them = 0; them < size; them++)
        for (int at = 0; at < counts[them]; at = next(at, counts[them])) {
            /* Twice, where it was started twice: the blocks are back then. */
            int theirs = form == KEPT ? value(rank, them, at) : value(them, rank, at);
            CHECK(data[places[them] + at] == theirs);
        }
    free(data);
}

static void gathers(int form, int root, int is_in_place)
{
    MPI_Request request = MPI_REQUEST_NULL;
    struct row all = row_of(to_root, root, 1);
    int *own = calloc((size_t)length(rank, root) + 1, sizeof(int));
    void *sent = own;
    fill(own, rank, root);
    if (is_in_place && rank == root) {
        fill(block(&all, rank, 1), rank, root);
        sent = MPI_IN_PLACE;
    }
    CALL(form, request, MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, sent, length(rank, root), MPI_INT, all.data,
         all.counts, all.places, MPI_INT, root);
    if (rank == root)
        for (int from = 0; from < size; from++) check(block(&all, from, 1), from, root, 1);
    memset(all.data, 0, (size_t)all.total * sizeof(int));
    sent = own;
    if (is_in_place) {
        fill(block(&all, rank, 1), rank, root);
        sent = MPI_IN_PLACE;
    }
    CALL(form, request, MPI_Allgatherv, MPI_Iallgatherv, MPI_Allgatherv_init, sent, length(rank, root), MPI_INT,
         all.data, all.counts, all.places, MPI_INT);
    for (int from = 0; from < size; from++) check(block(&all, from, 1), from, root, 1);
    free(all.data);
    free(own);
}

static void scatters(int form, int root, int is_in_place)
{
    MPI_Request request = MPI_REQUEST_NULL;
    struct row all = row_of(from_root, root, 1);
    int *own = calloc((size_t)length(root, rank) + 1, sizeof(int));
    int stays = is_in_place && rank == root;
    if (rank == root)
        for (int to = 0; to < size; to++) fill(block(&all, to, 1), root, to);
    CALL(form, request, MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, all.data, all.counts, all.places, MPI_INT,
         stays ? MPI_IN_PLACE : own, length(root, rank), MPI_INT, root);
    check(stays ? block(&all, rank, 1) : own, root, rank, 1);
    free(all.data);
    free(own);
}

/* Two communicators, an operation in each, started in one order here and in the other there; then the first of
 * them is waited for before the other one is begun. */
static void two_at_once(void)
{
    MPI_Comm comms[2] = {MPI_COMM_WORLD, other};
    MPI_Request requests[2];
    struct row in = row_of(to_them, 0, 1), out[2];
    for (int to = 0; to < size; to++) fill(block(&in, to, 1), rank, to);
    for (int number = 0; number < 2; number++) out[number] = row_of(from_them, 0, 1);
    for (int time = 0; time < 2; time++) {
        int first = rank % 2;
        for (int number = first, left = 2; left > 0; number = !number, left--)
            MPI_Ialltoallv(in.data, in.counts, in.places, MPI_INT, out[number].data, out[number].counts,
                           out[number].places, MPI_INT, comms[number], &requests[number]);
        if (time == 0) MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        for (int number = 0; number < 2; number++)
            for (int from = 0; from < size; from++) check(block(&out[number], from, 1), from, rank, 1);
    }
    /* Who has begun the one already comes to the other all the same. */
    if (rank % 2) {
        MPI_Ialltoallv(in.data, in.counts, in.places, MPI_INT, out[1].data, out[1].counts, out[1].places, MPI_INT,
                       other, &requests[1]);
    }
    MPI_Alltoallv(in.data, in.counts, in.places, MPI_INT, out[0].data, out[0].counts, out[0].places, MPI_INT,
                  MPI_COMM_WORLD);
    if (rank % 2 == 0) {
        MPI_Ialltoallv(in.data, in.counts, in.places, MPI_INT, out[1].data, out[1].counts, out[1].places, MPI_INT,
                       other, &requests[1]);
    }
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    for (int number = 0; number < 2; number++)
        for (int from = 0; from < size; from++) check(block(&out[number], from, 1), from, rank, 1);
    for (int number = 0; number < 2; number++) free(out[number].data);
    free(in.data);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size <= MOST);
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    for (int form = 0; form < FORMS; form++) {
        to_all(form);
        in_place(form);
        for (int root = 0; root < size; root += size > 2 ? size - 1 : 1)
            for (int is_in_place = 0; is_in_place < 2; is_in_place++) {
                gathers(form, root, is_in_place);
                scatters(form, root, is_in_place);
            }
    }
    two_at_once();
    MPI_Type_free(&gaps);
    MPI_Comm_free(&other);
    return end("long_blocks");
}
