/* Everybody sends to everybody at once, small and large, and waits for all. */
#include "check.h"

enum { ROUNDS = 8 };
static const size_t lengths[ROUNDS] = {0, 8, 48, 500, 5000, 70000, 300000, 1000000};

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int count = 2 * size;
    MPI_Request *requests = malloc(count * sizeof *requests);
    MPI_Status *statuses = malloc(count * sizeof *statuses);
    unsigned char **buffers = malloc(count * sizeof *buffers);
    for (int number = 0; number < ROUNDS; number++) {
        size_t length = lengths[number];
        for (int peer = 0; peer < size; peer++) {
            unsigned char *in = buffers[peer] = malloc(length + 1);
            MPI_Irecv(in, length, MPI_UNSIGNED_CHAR, peer, number, MPI_COMM_WORLD, &requests[peer]);
        }
        for (int peer = 0; peer < size; peer++) {
            unsigned char *out = buffers[size + peer] = malloc(length + 1);
            for (size_t place = 0; place < length; place++)
                out[place] = pattern(rank, number, place);
            MPI_Isend(out, length, MPI_UNSIGNED_CHAR, peer, number, MPI_COMM_WORLD,
                      &requests[size + peer]);
        }
        if (number % 2)
            MPI_Waitall(count, requests, statuses);
        else
            MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        for (int peer = 0; peer < size; peer++) {
            CHECK(requests[peer] == MPI_REQUEST_NULL && requests[size + peer] == MPI_REQUEST_NULL);
            if (number % 2)
                CHECK(statuses[peer].MPI_SOURCE == peer && statuses[peer].MPI_TAG == number);
            for (size_t place = 0; place < length; place++)
                CHECK(buffers[peer][place] == pattern(peer, number, place));
        }
        for (int index = 0; index < count; index++) free(buffers[index]);
    }
    /* Nothing to wait for is over at once. */
    requests[0] = MPI_REQUEST_NULL;
    MPI_Waitall(1, requests, statuses);
    MPI_Wait(&requests[0], &statuses[0]);
    CHECK(statuses[0].MPI_SOURCE == MPI_ANY_SOURCE && statuses[0].MPI_TAG == MPI_ANY_TAG);
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    free(buffers);
    free(statuses);
    free(requests);
    return end("isend_waitall");
}
