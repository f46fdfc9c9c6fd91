/* One mistake, named by the first argument; rank 0 makes it, or every rank. */
#include "check.h"

static int is(const char *mistake, char **argv) { return strcmp(mistake, argv[1]) == 0; }

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    int value[4] = {0};
    if (is("before", argv)) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    begin(&argc, &argv);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        if (is("rank", argv)) MPI_Send(value, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
        if (is("tag", argv)) MPI_Send(value, 1, MPI_INT, 0, -7, MPI_COMM_WORLD);
        if (is("count", argv)) MPI_Send(value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        if (is("buffer", argv)) MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        if (is("type", argv)) MPI_Send(value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD);
        if (is("comm", argv)) MPI_Send(value, 1, MPI_INT, 0, 0, MPI_COMM_NULL);
        if (is("request", argv)) {
            request = (MPI_Request)(intptr_t)0x123456789;
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        if (is("stale", argv)) {
            MPI_Irecv(value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
            MPI_Request again = request;
            MPI_Send(value, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Wait(&again, MPI_STATUS_IGNORE);
        }
        if (is("truncate", argv)) {
            MPI_Irecv(value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
            MPI_Send(value, 3, MPI_INT, 0, 0, MPI_COMM_SELF);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        if (is("op", argv))
            MPI_Allreduce(value, value + 1, 1, MPI_FLOAT, MPI_BAND, MPI_COMM_WORLD);
        if (is("abort", argv)) MPI_Abort(MPI_COMM_WORLD, 17);
        if (is("exit", argv)) exit(23);
    }
    /* Mistakes of every rank: the same one, and one of each. */
    if (is("all abort", argv)) MPI_Abort(MPI_COMM_WORLD, 17);
    if (is("all the same", argv)) MPI_Send(value, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    if (is("each its own", argv)) MPI_Send(value, 1, MPI_INT, 0, -7 - rank, MPI_COMM_WORLD);
    if (is("after", argv)) {
        MPI_Finalize();
        MPI_Send(value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    /* The others wait for rank 0, in vain. */
    MPI_Recv(value, 1, MPI_INT, 0, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    puts("nobody noticed the mistake");
    return MPI_Finalize();
}
