/* Looking for messages before they are received, and taking them out. */
#include "check.h"

static int class_of(int code)
{
    int class_ = -1;
    CHECK(MPI_Error_class(code, &class_) == MPI_SUCCESS);
    return class_;
}

/* The length is learned before there is room for the message. */
static void probes(int from, int to)
{
    for (int length = 1; length < 100000; length *= 17) {
        int *out = malloc(length * sizeof *out), *in, flag = 0, count;
        MPI_Request request;
        MPI_Status status;
        for (int index = 0; index < length; index++) out[index] = rank + index;
        MPI_Isend(out, length, MPI_INT, to, 3, MPI_COMM_WORLD, &request);
        if (length % 2) MPI_Probe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, &status);
        CHECK(status.MPI_SOURCE == from && status.MPI_TAG == 3);
        memset(&status, 0x55, sizeof status);
        MPI_Iprobe(from, 3, MPI_COMM_WORLD, &flag, &status);
        CHECK(flag && status.MPI_SOURCE == from && status.MPI_TAG == 3);
        CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == length);
        in = malloc(count * sizeof *in);
        MPI_Recv(in, count, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
        for (int index = 0; index < length; index++) CHECK(in[index] == from + index);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        free(out);
        free(in);
    }
    int flag = 1;
    MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag);
}

/* Two messages are taken out and received the other way round; a receive does not get them. */
static void taken_out(int from, int to)
{
    int out[3] = {10 * rank, 10 * rank + 1, 10 * rank + 2}, in[3] = {-1, -1, -1}, flag = 0;
    MPI_Message first, second = MPI_MESSAGE_NULL;
    MPI_Request sends[3], receive;
    MPI_Status status;
    for (int index = 0; index < 3; index++)
        MPI_Isend(&out[index], 1, MPI_INT, to, 4, MPI_COMM_WORLD, &sends[index]);
    MPI_Mprobe(from, 4, MPI_COMM_WORLD, &first, &status);
    CHECK(status.MPI_SOURCE == from && status.MPI_TAG == 4 && first != MPI_MESSAGE_NULL);
    while (!flag) MPI_Improbe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &second, &status);
    CHECK(second != first && second != MPI_MESSAGE_NULL);
    CHECK(MPI_Message_fromint(MPI_Message_toint(second)) == second);
    MPI_Recv(&in[2], 1, MPI_INT, from, 4, MPI_COMM_WORLD, &status);
    MPI_Mrecv(&in[1], 1, MPI_INT, &second, &status);
    CHECK(second == MPI_MESSAGE_NULL && status.MPI_SOURCE == from && status.MPI_TAG == 4);
    MPI_Imrecv(&in[0], 1, MPI_INT, &first, &receive);
    CHECK(first == MPI_MESSAGE_NULL);
    MPI_Wait(&receive, &status);
    CHECK(status.MPI_SOURCE == from);
    for (int index = 0; index < 3; index++) CHECK(in[index] == 10 * from + index);
    MPI_Waitall(3, sends, MPI_STATUSES_IGNORE);
}

/* Messages from nobody. */
static void nobody(void)
{
    MPI_Message message;
    MPI_Status status;
    MPI_Request request;
    int flag = 0, value = 17, count;
    MPI_Probe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &status);
    CHECK(flag);
    MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status);
    CHECK(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL);
    memset(&status, 0x55, sizeof status);
    MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL && value == 17 && status.MPI_SOURCE == MPI_PROC_NULL);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 0);
    memset(&status, 0x55, sizeof status);
    MPI_Improbe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, &message, &status);
    CHECK(flag && message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL);
    MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
    MPI_Wait(&request, &status);
    CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == MPI_PROC_NULL);
}

static void mistakes(void)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int value = 0, out[2] = {1, 2};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Probe(size, 0, MPI_COMM_WORLD, &status)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Probe(0, -7, MPI_COMM_WORLD, &status)) == MPI_ERR_TAG);
    CHECK(class_of(MPI_Mrecv(&value, 1, MPI_INT, &message, &status)) == MPI_ERR_REQUEST);
    MPI_Send(out, 2, MPI_INT, rank, 5, MPI_COMM_WORLD);
    MPI_Mprobe(rank, 5, MPI_COMM_WORLD, &message, &status);
    CHECK(class_of(MPI_Mrecv(&value, 1, MPI_INT, &message, &status)) == MPI_ERR_TRUNCATE);
    /* MPICH keeps the handle, and has no status. */
    if (is_ours()) {
        CHECK(message == MPI_MESSAGE_NULL);
        CHECK(status.MPI_SOURCE == rank && status.MPI_TAG == 5);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    probes((rank + size - 1) % size, (rank + 1) % size);
    meet(MPI_COMM_WORLD);
    taken_out((rank + size - 1) % size, (rank + 1) % size);
    nobody();
    mistakes();
    return end("probe");
}
