/* Members whose lengths differ, where one of the two takes the block for a long one and the other does not, or both
 * do: whoever takes the block is told, whoever gives it is through, and the communicator goes on. */
#include "check.h"

enum { LONG = 3 << 20, SHORT = 10, ODD = 251, PLACE = LONG + 64 };

/* Ranks 1 and 2 bring so many bytes for rank 0, which expects so many: each by a gather and by an exchange. */
static void differ(char *data, const int *brought, const int *expected)
{
    int counts[3] = {0, 0, 0}, places[3] = {0, PLACE, 2 * PLACE}, sent[3] = {0, 0, 0};
    int code, own = rank ? brought[rank - 1] : 0;
    if (rank == 0) memcpy(counts + 1, expected, 2 * sizeof *counts);
    code = MPI_Gatherv(data, own, MPI_CHAR, data, counts, places, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK((code == MPI_SUCCESS) == (rank != 0));
    meet(MPI_COMM_WORLD);
    sent[0] = own;
    code = MPI_Alltoallv(data, sent, places, MPI_CHAR, data + PLACE, counts, places, MPI_CHAR, MPI_COMM_WORLD);
    CHECK((code == MPI_SUCCESS) == (rank != 0));
    if (rank == 0) {
        int class;
        MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_TRUNCATE);
    }
    meet(MPI_COMM_WORLD);
    MPI_Request request;
    code = MPI_Igatherv(data, own, MPI_CHAR, data, counts, places, MPI_CHAR, 0, MPI_COMM_WORLD, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK((code == MPI_SUCCESS) == (rank != 0));
    meet(MPI_COMM_WORLD);
    /* Nothing is written beside the places for the blocks. */
    for (int from = 1; from < 3 && rank == 0; from++) {
        for (int at = from * PLACE + expected[from - 1]; at < (from + 1) * PLACE; at++) {
            CHECK(data[at] == 0 || (from == 2 && at < 2 * PLACE + expected[0]));
        }
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size == 3);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char *data = malloc(4 * PLACE);
    static const struct { int brought[2], expected[2]; } cases[] = {
        {{0, LONG}, {0, SHORT}},         {{0, LONG}, {0, 0}},        {{0, SHORT}, {0, LONG}},    {{0, 0}, {0, LONG}},
        {{0, LONG}, {0, LONG - 8}},      {{0, LONG - 8}, {0, LONG}}, {{0, LONG}, {0, ODD}},      {{0, ODD}, {0, LONG}},
        {{0, ODD}, {0, SHORT}},          {{LONG, LONG}, {0, SHORT}}, {{LONG, LONG}, {LONG, ODD}}, {{LONG, LONG}, {8, LONG}},
        {{LONG, SHORT}, {LONG, LONG}},   {{SHORT, LONG}, {LONG, LONG}},
    };
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        memset(data, rank ? rank + 1 : 0, 4 * PLACE);
        differ(data, cases[at].brought, cases[at].expected);
    }
    free(data);
    return end("lengths");
}
