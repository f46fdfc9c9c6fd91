/* A token goes round; wildcards, statuses, nobody as a peer, a message to oneself. */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Status status;
    for (int lap = 0; lap < 100; lap++) {
        long token[2] = {lap, rank}, got[2] = {-1, -1};
        MPI_Request request;
        MPI_Isend(token, 2, MPI_LONG, next, lap, MPI_COMM_WORLD, &request);
        int source = lap % 2 ? MPI_ANY_SOURCE : previous, tag = lap % 3 ? lap : MPI_ANY_TAG;
        memset(&status, 0x55, sizeof status);
        MPI_Recv(got, 2, MPI_LONG, source, tag, MPI_COMM_WORLD, &status);
        CHECK(got[0] == lap && got[1] == previous);
        CHECK(status.MPI_SOURCE == previous && status.MPI_TAG == lap);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(request == MPI_REQUEST_NULL);
    }

    int untouched = 7;
    MPI_Send(&untouched, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD);
    MPI_Recv(&untouched, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    CHECK(untouched == 7 && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);

    int out = rank + 1000, in = 0;
    MPI_Request request;
    MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
    MPI_Send(&out, 1, MPI_INT, 0, 5, MPI_COMM_SELF);
    MPI_Wait(&request, &status);
    CHECK(in == out && status.MPI_SOURCE == 0);
    return end("ring");
}
