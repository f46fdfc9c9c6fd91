/* Operations of the program itself: completed by another thread or before anybody waits, asked for
 * their status, freed, cancelled; functions of the program that fail or jump. */
#include "check.h"

#include <pthread.h>
#include <setjmp.h>
#include <time.h>

/* What the functions of the program are told, and how often they were called. */
struct own {
    int queries, frees, cancels, complete, code;
};

static jmp_buf outside;

static int class_of(int code)
{
    int class_ = -1;
    CHECK(MPI_Error_class(code, &class_) == MPI_SUCCESS);
    return class_;
}

static int query(void *state, MPI_Status *status)
{
    struct own *own = state;
    own->queries++;
    MPI_Status_set_elements(status, MPI_INT, 7);
    MPI_Status_set_cancelled(status, own->cancels);
    status->MPI_SOURCE = 3;
    status->MPI_TAG = 4;
    return own->code;
}

static int frees(void *state)
{
    ((struct own *)state)->frees++;
    return MPI_SUCCESS;
}

static int cancels(void *state, int complete)
{
    struct own *own = state;
    own->cancels++;
    own->complete = complete;
    return MPI_SUCCESS;
}

static int jumps(void *state, MPI_Status *status)
{
    (void)state, (void)status;
    longjmp(outside, 1);
}

static void *completes(void *request)
{
    struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
    MPI_Grequest_complete(*(MPI_Request *)request);
    return NULL;
}

static void check_status(const MPI_Status *status, int cancelled)
{
    int count, flag;
    CHECK(status->MPI_SOURCE == 3 && status->MPI_TAG == 4);
    CHECK(MPI_Get_count(status, MPI_INT, &count) == MPI_SUCCESS && count == 7);
    CHECK(MPI_Test_cancelled(status, &flag) == MPI_SUCCESS && flag == cancelled);
}

static void one(void)
{
    struct own own = {0};
    int flag = 1;
    MPI_Request request, same;
    MPI_Status status;
    MPI_Grequest_start(query, frees, cancels, &own, &request);
    MPI_Test(&request, &flag, &status);
    CHECK(!flag && own.queries == 0);
    MPI_Request_get_status(request, &flag, &status);
    CHECK(!flag);
    MPI_Cancel(&request);
    CHECK(own.cancels == 1 && !own.complete);
    MPI_Grequest_complete(request);
    MPI_Request_get_status(request, &flag, &status);
    CHECK(flag && own.queries == 1 && own.frees == 0);
    check_status(&status, 1);
    MPI_Cancel(&request);
    CHECK(own.cancels == 2 && own.complete);
    own.cancels = 0;
    MPI_Wait(&request, &status);
    CHECK(request == MPI_REQUEST_NULL && own.queries == 2 && own.frees == 1);
    check_status(&status, 0);

    /* Freed before it is complete: it is freed then. */
    MPI_Grequest_start(query, frees, cancels, &own, &request);
    same = request;
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL && own.frees == 1);
    MPI_Grequest_complete(same);
    CHECK(own.frees == 2 && own.queries == 2);
    MPI_Grequest_start(query, frees, cancels, &own, &request);
    MPI_Grequest_complete(request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL && own.frees == 3 && own.queries == 2);
}

/* Among messages, completed by another thread. */
static void several(void)
{
    struct own owns[2] = {{0}, {0}};
    int in = -1, index, flag = 0;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    pthread_t threads[2];
    for (int way = 0; way < 3; way++) {
        memset(owns, 0, sizeof owns);
        MPI_Irecv(&in, 1, MPI_INT, (rank + size - 1) % size, way, MPI_COMM_WORLD, &requests[1]);
        MPI_Request copies[2];
        for (int place = 0; place < 2; place++) {
            MPI_Grequest_start(query, frees, cancels, &owns[place], &requests[2 * place]);
            copies[place] = requests[2 * place];
            pthread_create(&threads[place], NULL, completes, &copies[place]);
        }
        MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, way, MPI_COMM_WORLD);
        if (way == 0)
            MPI_Waitall(3, requests, statuses);
        else if (way == 1)
            for (int left = 3; left > 0; left--) {
                MPI_Status status;
                MPI_Waitany(3, requests, &index, &status);
                statuses[index] = status;
            }
        else
            for (flag = 0; !flag;) MPI_Testall(3, requests, &flag, statuses);
        for (int place = 0; place < 2; place++) {
            pthread_join(threads[place], NULL);
            /* MPICH asks more than once. */
            if (is_ours()) CHECK(owns[place].queries == 1);
            CHECK(owns[place].frees == 1);
            check_status(&statuses[2 * place], 0);
        }
        for (int place = 0; place < 3; place++) CHECK(requests[place] == MPI_REQUEST_NULL);
        CHECK(in == (rank + size - 1) % size && statuses[1].MPI_TAG == way);
    }
}

/* What the functions return reaches who waits; one may jump out. */
static void refusals(void)
{
    struct own own = {.code = MPI_ERR_NAME};
    MPI_Request request;
    MPI_Status status;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Grequest_start(query, frees, cancels, &own, &request);
    MPI_Grequest_complete(request);
    CHECK(class_of(MPI_Wait(&request, &status)) == MPI_ERR_NAME);
    CHECK(own.queries == 1 && request == MPI_REQUEST_NULL);

    MPI_Grequest_start(jumps, frees, cancels, &own, &request);
    MPI_Grequest_complete(request);
    if (setjmp(outside) == 0) {
        MPI_Wait(&request, &status);
        CHECK(0);
    }
    MPI_Request message;
    int in = -1;
    MPI_Irecv(&in, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &message);
    MPI_Send(&rank, 1, MPI_INT, rank, 9, MPI_COMM_WORLD);
    MPI_Wait(&message, MPI_STATUS_IGNORE);
    CHECK(in == rank);
    MPI_Irecv(&in, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &message);
    CHECK(class_of(MPI_Grequest_complete(message)) == MPI_ERR_REQUEST);
    MPI_Cancel(&message);
    MPI_Wait(&message, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    one();
    several();
    refusals();
    return end("generalized_request");
}
