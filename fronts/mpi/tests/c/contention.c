/* Threads of one process that want the same things at once: receives of the same messages, probes that take
 * messages out, collective operations on communicators of their own, new communicators, requests that one thread
 * begins and another ends. */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>

enum { THREADS = 6, ROUNDS = 120, TAG = 7, LAST = 8 };

static MPI_Comm comms[THREADS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long sum, received;

static void count(int value)
{
    pthread_mutex_lock(&lock);
    sum += value;
    received++;
    pthread_mutex_unlock(&lock);
}

/* All threads send to the next process, all take what comes from anybody, in three ways. */
static void *same_messages(void *argument)
{
    int number = (int)(intptr_t)argument, next = (rank + 1) % size;
    for (int round = 0; round < ROUNDS; round++) {
        int out[600] = {round * THREADS + number}, in[600] = {-1};
        /* Longer ones go another way. */
        int length = round % 5 == 4 ? 600 : 1, count_of;
        MPI_Request request;
        MPI_Status status;
        MPI_Message message;
        MPI_Isend(out, length, MPI_INT, next, TAG, MPI_COMM_WORLD, &request);
        if (number % 3 == 0) {
            MPI_Recv(in, 600, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
        } else if (number % 3 == 1) {
            MPI_Mprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &message, &status);
            MPI_Get_count(&status, MPI_INT, &count_of);
            CHECK(count_of == 1 || count_of == 600);
            MPI_Mrecv(in, count_of, MPI_INT, &message, MPI_STATUS_IGNORE);
        } else {
            int flag = 0;
            while (!flag) MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
            MPI_Mrecv(in, 600, MPI_INT, &message, MPI_STATUS_IGNORE);
        }
        CHECK(status.MPI_SOURCE == (rank + size - 1) % size && status.MPI_TAG == TAG);
        count(in[0]);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return NULL;
}

/* A communicator for each thread; further ones are made and freed meanwhile. */
static void *own_communicators(void *argument)
{
    int number = (int)(intptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        int mine = rank + number, all = -1, root = round % size;
        MPI_Request request;
        MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comms[number]);
        CHECK(all == size * (size - 1) / 2 + size * number);
        MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_MAX, comms[number], &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(all == size - 1 + number);
        all = rank == root ? round : -1;
        MPI_Bcast(&all, 1, MPI_INT, root, comms[number]);
        CHECK(all == round);
        if (round % 20 == number) {
            MPI_Comm copy, half;
            MPI_Comm_dup(comms[number], &copy);
            MPI_Comm_split(copy, rank % 2, rank, &half);
            MPI_Barrier(half);
            MPI_Comm_free(&half);
            MPI_Comm_free(&copy);
        }
    }
    return NULL;
}

/* Requests that the even threads begin and the odd ones end. */
static MPI_Request handed[THREADS];
static int values[THREADS];
static pthread_barrier_t both[THREADS];

static void *two_hands(void *argument)
{
    int number = (int)(intptr_t)argument, pair = number / 2;
    for (int round = 0; round < ROUNDS; round++) {
        if (number % 2 == 0) {
            MPI_Irecv(&values[pair], 1, MPI_INT, (rank + 1) % size, LAST + pair, MPI_COMM_WORLD,
                      &handed[pair]);
            pthread_barrier_wait(&both[pair]);
            int out = round;
            MPI_Send(&out, 1, MPI_INT, (rank + size - 1) % size, LAST + pair, MPI_COMM_WORLD);
        } else {
            pthread_barrier_wait(&both[pair]);
            MPI_Wait(&handed[pair], MPI_STATUS_IGNORE);
            CHECK(values[pair] == round);
        }
        pthread_barrier_wait(&both[pair]);
    }
    return NULL;
}

static void together(void *(*work)(void *))
{
    pthread_t threads[THREADS];
    for (int number = 0; number < THREADS; number++)
        CHECK(pthread_create(&threads[number], NULL, work, (void *)(intptr_t)number) == 0);
    for (int number = 0; number < THREADS; number++) pthread_join(threads[number], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int provided = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    together(same_messages);
    long all = (long)ROUNDS * THREADS;
    CHECK(received == all && sum == all * (all - 1) / 2);
    for (int number = 0; number < THREADS; number++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[number]);
    together(own_communicators);
    for (int number = 0; number < THREADS; number++) MPI_Comm_free(&comms[number]);
    for (int pair = 0; pair < THREADS / 2; pair++) pthread_barrier_init(&both[pair], NULL, 2);
    together(two_hands);
    return end("contention");
}
