/* Collective operations that are started any number of times, alone and several at once, with
 * operations of the library and of the program. */
#include "check.h"

enum { MOST = 64, TIMES = 20 };

static void last(void *in, void *inout, int *length, MPI_Datatype *type)
{
    const int *first = in;
    int *second = inout;
    (void)type;
    for (int at = 0; at < *length; at++) second[at] = 3 * first[at] + second[at];
}

int main(int argc, char **argv)
{
    MPI_Request requests[7];
    MPI_Op operation;
    MPI_Datatype gaps;
    int one, mine, sum, folded, parts[2 * MOST], own[2], flag;

    begin(&argc, &argv);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    MPI_Op_create(last, 0, &operation);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Bcast_init(&one, 1, MPI_INT, size - 1, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    MPI_Allreduce_init(&mine, &folded, 1, MPI_INT, operation, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &requests[3]);
    MPI_Gather_init(&mine, 1, MPI_INT, parts, 1, gaps, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &requests[4]);
    MPI_Reduce_scatter_block_init_c(parts, own, 0, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL,
                                    &requests[5]);
    MPI_Type_free(&gaps);
    MPI_Op_free(&operation);
    for (int time = 0; time < TIMES; time++) {
        int expected = 0;
        one = rank == size - 1 ? time : -1;
        mine = rank + time;
        for (int at = 0; at < 2 * size; at++) parts[at] = -1;
        for (int at = 0; at < size; at++) expected = 3 * expected + at + time;
        if (time % 2) {
            CHECK(MPI_Startall(6, requests) == MPI_SUCCESS);
            CHECK(MPI_Waitall(6, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        } else {
            for (int at = 0; at < 6; at++) {
                CHECK(MPI_Start(&requests[at]) == MPI_SUCCESS);
                for (flag = 0; !flag;) MPI_Test(&requests[at], &flag, MPI_STATUS_IGNORE);
            }
        }
        CHECK(one == time && sum == size * (size - 1) / 2 + size * time);
        CHECK(size > 2 || folded == expected);
        for (int at = 0; at < size && rank == 0; at++)
            CHECK(parts[2 * at] == at + time && parts[2 * at + 1] == -1);
    }
    for (int at = 0; at < 6; at++) {
        CHECK(requests[at] != MPI_REQUEST_NULL);
        CHECK(MPI_Request_free(&requests[at]) == MPI_SUCCESS);
        CHECK(requests[at] == MPI_REQUEST_NULL);
    }
    return end("collective_persistent");
}
