/* Requests, one and several: waited for, tested, looked at, freed, cancelled; what is null or was not
 * started; what went wrong with some of them. */
#include "check.h"

enum { COUNT = 40 };
static int left, right;
static int in[COUNT], out[COUNT];
static MPI_Request requests[2 * COUNT];
static MPI_Status statuses[2 * COUNT];

static int class_of(int code)
{
    int class_ = -1;
    CHECK(MPI_Error_class(code, &class_) == MPI_SUCCESS);
    return class_;
}

/* Receives from the left, and sends to the right. */
static void begin_all(int count)
{
    for (int index = 0; index < count; index++) {
        out[index] = 100 * rank + index;
        in[index] = -1;
        MPI_Irecv(&in[index], 1, MPI_INT, left, index, MPI_COMM_WORLD, &requests[index]);
    }
    for (int index = 0; index < count; index++)
        MPI_Isend(&out[index], 1, MPI_INT, right, index, MPI_COMM_WORLD, &requests[count + index]);
}

static void check_all(int count)
{
    for (int index = 0; index < count; index++) CHECK(in[index] == 100 * left + index);
    for (int index = 0; index < 2 * count; index++) CHECK(requests[index] == MPI_REQUEST_NULL);
}

static void check_status(int index, const MPI_Status *status)
{
    int count;
    CHECK(status->MPI_SOURCE == left && status->MPI_TAG == index);
    CHECK(MPI_Get_count(status, MPI_INT, &count) == MPI_SUCCESS && count == 1);
}

static void check_empty(const MPI_Status *status)
{
    int count = -1, flag = 1;
    CHECK(status->MPI_SOURCE == MPI_ANY_SOURCE && status->MPI_TAG == MPI_ANY_TAG);
    CHECK(MPI_Get_count(status, MPI_INT, &count) == MPI_SUCCESS && count == 0);
    CHECK(MPI_Test_cancelled(status, &flag) == MPI_SUCCESS && !flag);
}

static void one(void)
{
    int flag = 0;
    MPI_Status status;
    begin_all(1);
    while (!flag) MPI_Request_get_status(requests[0], &flag, &status);
    check_status(0, &status);
    MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
    CHECK(flag && requests[0] != MPI_REQUEST_NULL && in[0] == 100 * left);
    for (flag = 0; !flag;) MPI_Test(&requests[0], &flag, &status);
    check_status(0, &status);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    check_all(1);
    flag = 0;
    MPI_Test(&requests[0], &flag, &status);
    CHECK(flag);
    check_empty(&status);
    flag = 0;
    MPI_Request_get_status(requests[0], &flag, &status);
    CHECK(flag);
    check_empty(&status);
}

static void all(int count)
{
    int flag = 0;
    begin_all(count);
    MPI_Waitall(2 * count, requests, statuses);
    check_all(count);
    for (int index = 0; index < count; index++) check_status(index, &statuses[index]);
    begin_all(count);
    while (!flag) MPI_Request_get_status_all(2 * count, requests, &flag, statuses);
    for (int index = 0; index < count; index++) {
        check_status(index, &statuses[index]);
        CHECK(requests[index] != MPI_REQUEST_NULL);
    }
    for (flag = 0; !flag;) MPI_Testall(2 * count, requests, &flag, statuses);
    for (int index = 0; index < count; index++) check_status(index, &statuses[index]);
    check_all(count);
    MPI_Testall(2 * count, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK(flag);
}

static void any(int count)
{
    int seen[2 * COUNT] = {0}, index, flag = 0;
    MPI_Status status;
    begin_all(count);
    for (int number = 0; number < 2 * count; number++) {
        if (number % 3 == 0)
            MPI_Waitany(2 * count, requests, &index, &status);
        else if (number % 3 == 1)
            for (flag = 0; !flag;) MPI_Testany(2 * count, requests, &index, &flag, &status);
        else {
            int again;
            for (flag = 0; !flag;)
                MPI_Request_get_status_any(2 * count, requests, &index, &flag, &status);
            CHECK(requests[index] != MPI_REQUEST_NULL);
            if (index < count) check_status(index, &status);
            MPI_Waitany(1, &requests[index], &again, &status);
            CHECK(again == 0);
        }
        CHECK(index >= 0 && index < 2 * count && !seen[index]++);
        CHECK(requests[index] == MPI_REQUEST_NULL);
        if (index < count) check_status(index, &status);
    }
    check_all(count);
    MPI_Waitany(2 * count, requests, &index, &status);
    CHECK(index == MPI_UNDEFINED);
    check_empty(&status);
    MPI_Testany(2 * count, requests, &index, &flag, &status);
    CHECK(index == MPI_UNDEFINED && flag);
    MPI_Waitany(0, NULL, &index, MPI_STATUS_IGNORE);
    CHECK(index == MPI_UNDEFINED);
}

static void some(int count)
{
    int seen[2 * COUNT] = {0}, indices[2 * COUNT], outcount, through = 0;
    begin_all(count);
    for (int way = 0; through < 2 * count; way = (way + 1) % 3) {
        if (way == 0)
            MPI_Waitsome(2 * count, requests, &outcount, indices, statuses);
        else if (way == 1)
            MPI_Testsome(2 * count, requests, &outcount, indices, statuses);
        else {
            MPI_Request_get_status_some(2 * count, requests, &outcount, indices, statuses);
            for (int place = 0; place < outcount; place++)
                CHECK(requests[indices[place]] != MPI_REQUEST_NULL);
        }
        CHECK(outcount >= (way == 0 ? 1 : 0));
        for (int place = 0; place < outcount; place++) {
            int index = indices[place];
            if (index < count) check_status(index, &statuses[place]);
            if (way < 2) CHECK(!seen[index]++ && requests[index] == MPI_REQUEST_NULL && ++through);
        }
    }
    check_all(count);
    MPI_Waitsome(2 * count, requests, &outcount, indices, statuses);
    CHECK(outcount == MPI_UNDEFINED);
    MPI_Testsome(2 * count, requests, &outcount, indices, statuses);
    CHECK(outcount == MPI_UNDEFINED);
}

/* A receive without a message is cancelled; one with a message is not. */
static void cancelling(void)
{
    int value = -1, flag = 0;
    MPI_Request request;
    MPI_Status status;
    if (is_ours()) {
        MPI_Issend(&value, 1, MPI_INT, rank, 49, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Request_get_status(request, &flag, &status);
        CHECK(flag && MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS && flag);
        MPI_Wait(&request, &status);
        CHECK(MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS && flag);
    }
    MPI_Irecv(&value, 1, MPI_INT, rank, 50, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    CHECK(MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS && flag);
    CHECK(request == MPI_REQUEST_NULL);
    MPI_Irecv(&value, 1, MPI_INT, rank, 51, MPI_COMM_WORLD, &request);
    MPI_Send(&rank, 1, MPI_INT, rank, 51, MPI_COMM_WORLD);
    while (value == -1) MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    CHECK(MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS && !flag && value == rank);
}

/* What is freed goes on. */
static void freeing(void)
{
    static int data[50000];
    int got[2] = {-1, -1};
    MPI_Request request;
    meet(MPI_COMM_WORLD);
    MPI_Irecv(&got[0], 1, MPI_INT, left, 60, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
    for (int index = 0; index < 50000; index++) data[index] = rank + index;
    MPI_Send(&rank, 1, MPI_INT, right, 60, MPI_COMM_WORLD);
    MPI_Isend(data, 50000, MPI_INT, right, 61, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    int *all_of_it = malloc(sizeof data);
    MPI_Recv(all_of_it, 50000, MPI_INT, left, 61, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int index = 0; index < 50000; index++) CHECK(all_of_it[index] == left + index);
    free(all_of_it);
    CHECK(got[0] == left);
    meet(MPI_COMM_WORLD);
}

/* Some requests end with an error: which ones, the statuses say. */
static void errors(void)
{
    int big[4] = {1, 2, 3, 4}, got[3][4], indices[3], outcount, code;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int way = 0; way < 3; way++) {
        for (int index = 0; index < 3; index++) {
            MPI_Irecv(got[index], index == 1 ? 2 : 4, MPI_INT, rank, index, MPI_COMM_WORLD,
                      &requests[index]);
            MPI_Send(big, 4, MPI_INT, rank, index, MPI_COMM_WORLD);
            statuses[index].MPI_ERROR = 4711;
        }
        /* MPICH's MPI_Waitsome returns when it has found the first error. */
        if (way == 0 || (way == 2 && !is_ours()))
            code = MPI_Waitall(3, requests, statuses);
        else if (way == 1) {
            int flag = 0;
            while (!flag) code = MPI_Testall(3, requests, &flag, statuses);
        } else {
            int flag = 0;
            while (!flag) MPI_Request_get_status(requests[2], &flag, MPI_STATUS_IGNORE);
            code = MPI_Waitsome(3, requests, &outcount, indices, statuses);
            CHECK(outcount == 3 && indices[1] == 1);
        }
        CHECK(class_of(code) == MPI_ERR_IN_STATUS);
        for (int index = 0; index < 3; index++) {
            int expected = index == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
            /* MPICH fills in other statuses than these. */
            if (!is_ours()) continue;
            CHECK(class_of(statuses[index].MPI_ERROR) == expected);
            CHECK(statuses[index].MPI_SOURCE == rank && statuses[index].MPI_TAG == index);
            CHECK(requests[index] == MPI_REQUEST_NULL);
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void mistakes(void)
{
    int flag, index;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Cancel(&request)) == MPI_ERR_REQUEST);
    CHECK(class_of(MPI_Request_free(&request)) == MPI_ERR_REQUEST);
    CHECK(class_of(MPI_Waitall(-1, &request, statuses)) != MPI_SUCCESS);
    CHECK(class_of(MPI_Test(&request, NULL, statuses)) == MPI_ERR_ARG);
    if (is_ours()) { /* MPICH 5.0.2 crashes. */
        CHECK(class_of(MPI_Waitany(-1, &request, &index, statuses)) != MPI_SUCCESS);
        CHECK(class_of(MPI_Testall(1, NULL, &flag, statuses)) != MPI_SUCCESS);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    one();
    for (int count = 1; count <= COUNT; count *= 3) {
        all(count);
        any(count);
        some(count);
    }
    cancelling();
    freeing();
    errors();
    mistakes();
    return end("request");
}
