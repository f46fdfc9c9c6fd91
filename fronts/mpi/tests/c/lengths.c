/* Members whose lengths differ, where one of the two takes the block for a long one and the other does not, or both
 * do: whoever takes the block is told, whoever gives it is through, and the communicator goes on. */
#include "check.h"

enum { LONG = 3 << 20, SHORT = 10 };

/* The last rank brings so many bytes for rank 0, which expects so many: each by a gather and by an exchange. */
static void differ(char *data, int brought, int expected)
{
    int counts[3] = {0, 0, 0}, places[3] = {0, 0, 0}, sent[3] = {0, 0, 0};
    int code, is_last = rank == size - 1;
    counts[size - 1] = expected;
    code = MPI_Gatherv(data, is_last ? brought : 0, MPI_CHAR, data + LONG, counts, places, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK((code == MPI_SUCCESS) == (rank != 0));
    meet(MPI_COMM_WORLD);
    if (rank) counts[size - 1] = 0;
    if (is_last) sent[0] = brought;
    code = MPI_Alltoallv(data, sent, places, MPI_CHAR, data + LONG, counts, places, MPI_CHAR, MPI_COMM_WORLD);
    CHECK((code == MPI_SUCCESS) == (rank != 0));
    if (rank == 0) {
        int class;
        MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_TRUNCATE);
    }
    meet(MPI_COMM_WORLD);
    MPI_Request request;
    code = MPI_Igatherv(data, is_last ? brought : 0, MPI_CHAR, data + LONG, counts, places, MPI_CHAR, 0,
                        MPI_COMM_WORLD, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK((code == MPI_SUCCESS) == (rank != 0));
    meet(MPI_COMM_WORLD);
    /* Nothing is written beside the place for the block. */
    for (int at = expected; at < 3 * LONG; at++) CHECK(data[LONG + at] == 0 || rank != 0);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size == 3);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char *data = calloc(4 * LONG, 1);
    memset(data, rank + 1, LONG);
    static const int lengths[][2] = {{LONG, SHORT}, {LONG, 0}, {SHORT, LONG}, {0, LONG}, {LONG, LONG - 8}, {LONG - 8, LONG}};
    for (int pair = 0; pair < 6; pair++) {
        if (rank == 0) memset(data + LONG, 0, 3 * LONG);
        differ(data, lengths[pair][0], lengths[pair][1]);
    }
    free(data);
    return end("lengths");
}
