/* Four threads in each process, each talking with its twins in the other processes. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 200, LENGTH = 30000 };

static void *talk(void *argument)
{
    int number = (int)(intptr_t)argument;
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    unsigned char *out = malloc(LENGTH), *in = malloc(LENGTH);
    for (int round = 0; round < ROUNDS; round++) {
        size_t length = round % 10 == 9 ? LENGTH : (size_t)(round % 7) * 8;
        for (size_t place = 0; place < length; place++)
            out[place] = pattern(rank, number * ROUNDS + round, place);
        MPI_Request requests[2];
        MPI_Status status;
        MPI_Irecv(in, LENGTH, MPI_BYTE, previous, number, MPI_COMM_WORLD, &requests[0]);
        if (round % 2) {
            MPI_Isend(out, length, MPI_BYTE, next, number, MPI_COMM_WORLD, &requests[1]);
            MPI_Wait(&requests[0], &status);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        } else {
            MPI_Send(out, length, MPI_BYTE, next, number, MPI_COMM_WORLD);
            MPI_Wait(&requests[0], &status);
        }
        CHECK(status.MPI_SOURCE == previous && status.MPI_TAG == number);
        for (size_t place = 0; place < length; place++)
            CHECK(in[place] == pattern(previous, number * ROUNDS + round, place));
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    pthread_t threads[THREADS];
    for (int number = 0; number < THREADS; number++)
        CHECK(pthread_create(&threads[number], NULL, talk, (void *)(intptr_t)number) == 0);
    for (int number = 0; number < THREADS; number++) pthread_join(threads[number], NULL);
    return end("threads");
}
