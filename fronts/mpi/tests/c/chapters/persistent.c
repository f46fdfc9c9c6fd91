/* Messages that are sent and received any number of times, in all modes. */
#include "check.h"

static int class_of(int code)
{
    int class_ = -1;
    CHECK(MPI_Error_class(code, &class_) == MPI_SUCCESS);
    return class_;
}

/* A ring: the same requests in every round, completed in another way. */
static void rounds(int from, int to)
{
    enum { LENGTH = 5000 };
    static int out[4][LENGTH], in[4][LENGTH];
    static char room[LENGTH * sizeof(int) + MPI_BSEND_OVERHEAD];
    MPI_Request requests[8];
    MPI_Status statuses[8];
    void *address;
    int bytes;
    MPI_Buffer_attach(room, sizeof room);
    for (int index = 0; index < 4; index++)
        MPI_Recv_init(in[index], LENGTH, MPI_INT, from, index, MPI_COMM_WORLD, &requests[index]);
    MPI_Send_init(out[0], LENGTH, MPI_INT, to, 0, MPI_COMM_WORLD, &requests[4]);
    MPI_Ssend_init(out[1], LENGTH, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[5]);
    MPI_Bsend_init(out[2], LENGTH, MPI_INT, to, 2, MPI_COMM_WORLD, &requests[6]);
    MPI_Rsend_init_c(out[3], LENGTH, MPI_INT, to, 3, MPI_COMM_WORLD, &requests[7]);
    for (int number = 0; number < 6; number++) {
        for (int index = 0; index < 4; index++)
            for (int place = 0; place < LENGTH; place++)
                out[index][place] = rank + number + index + place, in[index][place] = -1;
        MPI_Startall(4, requests);
        meet(MPI_COMM_WORLD);
        if (number % 2)
            MPI_Startall(4, requests + 4);
        else
            for (int index = 4; index < 8; index++) MPI_Start(&requests[index]);
        if (number % 3 == 0)
            MPI_Waitall(8, requests, statuses);
        else if (number % 3 == 1)
            for (int left = 8; left > 0; left--) {
                int index;
                MPI_Status status;
                MPI_Waitany(8, requests, &index, &status);
                CHECK(index >= 0 && index < 8);
                statuses[index] = status;
            }
        else
            for (int flag = 0; !flag;) MPI_Testall(8, requests, &flag, statuses);
        for (int index = 0; index < 8; index++) CHECK(requests[index] != MPI_REQUEST_NULL);
        for (int index = 0; index < 4; index++) {
            CHECK(statuses[index].MPI_SOURCE == from && statuses[index].MPI_TAG == index);
            for (int place = 0; place < LENGTH; place++)
                CHECK(in[index][place] == from + number + index + place);
        }
        MPI_Buffer_flush();
    }
    /* None of them goes on: waiting is over at once, and any of them is none. */
    int index = 0, flag = 0;
    MPI_Waitany(8, requests, &index, &statuses[0]);
    CHECK(index == MPI_UNDEFINED);
    MPI_Wait(&requests[0], &statuses[0]);
    CHECK(requests[0] != MPI_REQUEST_NULL && statuses[0].MPI_SOURCE == MPI_ANY_SOURCE);
    CHECK(statuses[0].MPI_TAG == MPI_ANY_TAG && statuses[0].MPI_ERROR == MPI_SUCCESS);
    MPI_Test(&requests[4], &flag, MPI_STATUS_IGNORE);
    CHECK(flag && requests[4] != MPI_REQUEST_NULL);
    for (index = 0; index < 8; index++) {
        MPI_Request_free(&requests[index]);
        CHECK(requests[index] == MPI_REQUEST_NULL);
    }
    MPI_Buffer_detach(&address, &bytes);
    CHECK(address == room && bytes == (int)sizeof room);
}

/* Freed while it goes on; cancelled; with nobody. */
static void ends(void)
{
    int out = 5, in = -1, flag = 0;
    MPI_Request receive, send;
    MPI_Status status;
    MPI_Recv_init(&in, 1, MPI_INT, rank, 11, MPI_COMM_WORLD, &receive);
    MPI_Send_init(&out, 1, MPI_INT, rank, 11, MPI_COMM_WORLD, &send);
    MPI_Start(&receive);
    MPI_Cancel(&receive);
    MPI_Wait(&receive, &status);
    CHECK(MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS && flag);
    MPI_Start(&send);
    MPI_Request_free(&send);
    MPI_Start(&receive);
    MPI_Request_get_status(receive, &flag, &status);
    while (!flag) MPI_Request_get_status(receive, &flag, &status);
    CHECK(in == 5 && status.MPI_TAG == 11);
    MPI_Wait(&receive, &status);
    /* To MPICH a request that was looked at is inactive. */
    if (is_ours()) CHECK(status.MPI_SOURCE == rank && status.MPI_TAG == 11);
    MPI_Request_free(&receive);

    MPI_Recv_init(&in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &receive);
    MPI_Send_init(&out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &send);
    MPI_Start(&receive);
    MPI_Start(&send);
    MPI_Wait(&receive, &status);
    CHECK(receive != MPI_REQUEST_NULL);
    if (is_ours()) CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Request_free(&receive);
    MPI_Request_free(&send);
}

static void mistakes(void)
{
    int value = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Start(&request)) == MPI_ERR_REQUEST);
    CHECK(class_of(MPI_Send_init(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD, &request)) ==
          MPI_ERR_RANK);
    CHECK(class_of(MPI_Recv_init(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request)) ==
          MPI_ERR_COUNT);
    CHECK(class_of(MPI_Startall(-1, &request)) == MPI_ERR_COUNT ||
          class_of(MPI_Startall(-1, &request)) == MPI_ERR_ARG);
    MPI_Recv_init(&value, 1, MPI_INT, rank, 12, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    CHECK(class_of(MPI_Start(&request)) == MPI_ERR_REQUEST);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    rounds((rank + size - 1) % size, (rank + 1) % size);
    meet(MPI_COMM_WORLD);
    ends();
    mistakes();
    return end("persistent");
}
