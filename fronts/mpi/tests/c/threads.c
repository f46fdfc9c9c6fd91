/* Threads in each process, each talking with its twins in the other processes: four with messages, and
 * three with collective operations, the one that began among them. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 4, GROUPS = 3, ROUNDS = 200, LENGTH = 30000 };

static MPI_Comm groups[GROUPS];

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

/* Short data and long, blocking and not, each in turn. */
static void *agree(void *argument)
{
    int number = (int)(intptr_t)argument;
    MPI_Comm comm = groups[number];
    double *mine = malloc(LENGTH), *sums = malloc(LENGTH);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        int count = round % 50 == 49 ? LENGTH / (int)sizeof *mine : 1;
        for (int place = 0; place < count; place++) mine[place] = rank + number + round + place;
        if (round % 3) {
            MPI_Allreduce(mine, sums, count, MPI_DOUBLE, MPI_SUM, comm);
        } else {
            MPI_Request request;
            MPI_Iallreduce(mine, sums, count, MPI_DOUBLE, MPI_SUM, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        for (int place = 0; place < count; place++)
            CHECK(sums[place] == size * (size - 1) / 2 + size * (double)(number + round + place));
        int said = rank == round % size ? number * ROUNDS + round : -1;
        MPI_Bcast(&said, 1, MPI_INT, round % size, comm);
        CHECK(said == number * ROUNDS + round);
        if (round % 7 == number) MPI_Barrier(comm);
    }
    free(mine);
    free(sums);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    pthread_t threads[THREADS + GROUPS];
    for (int number = 0; number < GROUPS; number++) MPI_Comm_dup(MPI_COMM_WORLD, &groups[number]);
    for (int number = 0; number < THREADS; number++)
        CHECK(pthread_create(&threads[number], NULL, talk, (void *)(intptr_t)number) == 0);
    for (int number = 1; number < GROUPS; number++)
        CHECK(pthread_create(&threads[THREADS + number], NULL, agree, (void *)(intptr_t)number) == 0);
    agree((void *)(intptr_t)0);
    for (int number = 0; number < THREADS; number++) pthread_join(threads[number], NULL);
    for (int number = 1; number < GROUPS; number++) pthread_join(threads[THREADS + number], NULL);
    for (int number = 0; number < GROUPS; number++) MPI_Comm_free(&groups[number]);
    return end("threads");
}
