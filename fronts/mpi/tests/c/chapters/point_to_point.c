/* Messages between two processes in all modes, with datatypes, with nobody, and with themselves; what
 * is too long; what cannot be. */
#include "check.h"

static int left, right;

static int class_of(int code)
{
    int class_ = -1;
    CHECK(MPI_Error_class(code, &class_) == MPI_SUCCESS);
    return class_;
}

/* Each mode, around the ring: the receive is there before the ready send. */
static void modes(void)
{
    static const int lengths[] = {0, 1, 10, 3000, 200000};
    for (int number = 0; number < 5; number++) {
        int length = lengths[number], count;
        unsigned char *out = malloc(length + 1), *in = malloc(length + 1);
        for (int mode = 0; mode < 9; mode++) {
            MPI_Request receive, send = MPI_REQUEST_NULL;
            MPI_Status status;
            for (int place = 0; place < length; place++) out[place] = pattern(rank, mode, place);
            memset(in, 0, length);
            MPI_Irecv(in, length, MPI_BYTE, left, mode, MPI_COMM_WORLD, &receive);
            meet(MPI_COMM_WORLD);
            switch (mode) {
            case 0: MPI_Send(out, length, MPI_BYTE, right, mode, MPI_COMM_WORLD); break;
            case 1: MPI_Ssend(out, length, MPI_BYTE, right, mode, MPI_COMM_WORLD); break;
            case 2: MPI_Rsend(out, length, MPI_BYTE, right, mode, MPI_COMM_WORLD); break;
            case 3: MPI_Send_c(out, length, MPI_BYTE, right, mode, MPI_COMM_WORLD); break;
            case 4: MPI_Isend(out, length, MPI_BYTE, right, mode, MPI_COMM_WORLD, &send); break;
            case 5: MPI_Issend(out, length, MPI_BYTE, right, mode, MPI_COMM_WORLD, &send); break;
            case 6: MPI_Irsend(out, length, MPI_BYTE, right, mode, MPI_COMM_WORLD, &send); break;
            case 7: MPI_Isend_c(out, length, MPI_BYTE, right, mode, MPI_COMM_WORLD, &send); break;
            case 8: MPI_Ssend_c(out, length, MPI_BYTE, right, mode, MPI_COMM_WORLD); break;
            }
            MPI_Wait(&send, MPI_STATUS_IGNORE);
            status.MPI_ERROR = 4711;
            MPI_Wait(&receive, &status);
            CHECK(send == MPI_REQUEST_NULL && receive == MPI_REQUEST_NULL);
            CHECK(status.MPI_SOURCE == left && status.MPI_TAG == mode && status.MPI_ERROR == 4711);
            CHECK(MPI_Get_count(&status, MPI_BYTE, &count) == MPI_SUCCESS && count == length);
            for (int place = 0; place < length; place++)
                CHECK(in[place] == pattern(left, mode, place));
        }
        free(out);
        free(in);
    }
}

/* A synchronous send is not over before its receive has begun. */
static void synchronous(void)
{
    int out = rank, in = -1, flag = 1;
    MPI_Request request;
    MPI_Issend(&out, 1, MPI_INT, right, 20, MPI_COMM_WORLD, &request);
    for (int look = 0; look < 100; look++) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag && request != MPI_REQUEST_NULL);
    }
    meet(MPI_COMM_WORLD);
    MPI_Recv(&in, 1, MPI_INT, left, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in == left);
}

/* A column of a matrix against a row, and every second item. */
static void datatypes(void)
{
    double matrix[6][5], row[6];
    MPI_Datatype column, pairs;
    MPI_Status status;
    int count, three[3] = {-1, -1, -1}, six[6] = {0, 1, 2, 3, 4, 5};
    MPI_Type_vector(6, 1, 5, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int line = 0; line < 6; line++)
        for (int place = 0; place < 5; place++) matrix[line][place] = 100 * rank + 10 * line + place;
    MPI_Sendrecv(&matrix[0][2], 1, column, right, 1, row, 6, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                 &status);
    for (int line = 0; line < 6; line++) CHECK(row[line] == 100 * left + 10 * line + 2);
    CHECK(MPI_Get_count(&status, column, &count) == MPI_SUCCESS && count == 1);
    MPI_Sendrecv(row, 6, MPI_DOUBLE, right, 2, &matrix[0][4], 1, column, left, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    int before = (left + size - 1) % size;
    for (int line = 0; line < 6; line++) {
        CHECK(matrix[line][4] == 100 * before + 10 * line + 2);
        CHECK(matrix[line][3] == 100 * rank + 10 * line + 3);
    }
    MPI_Sendrecv_replace(&matrix[0][1], 1, column, right, 3, left, 3, MPI_COMM_WORLD, &status);
    for (int line = 0; line < 6; line++) {
        CHECK(matrix[line][1] == 100 * left + 10 * line + 1);
        CHECK(matrix[line][0] == 100 * rank + 10 * line);
    }
    MPI_Type_free(&column);

    /* A datatype may be freed while a message of it is under way. */
    MPI_Request request;
    MPI_Type_vector(3, 1, 2, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Irecv(six, 1, pairs, left, 4, MPI_COMM_WORLD, &request);
    MPI_Type_free(&pairs);
    for (int index = 0; index < 3; index++) three[index] = 10 * rank + index;
    MPI_Send(three, 3, MPI_INT, right, 4, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    for (int index = 0; index < 3; index++)
        CHECK(six[2 * index] == 10 * left + index && six[2 * index + 1] == 2 * index + 1);
}

/* Sending and receiving at once. */
static void exchanges(void)
{
    enum { LONG = 300000 };
    int *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in), count;
    MPI_Request request;
    MPI_Status status;
    for (int length = 1; length <= LONG; length = length == 1 ? LONG : LONG + 1) {
        for (int index = 0; index < length; index++) out[index] = rank + index, in[index] = -1;
        MPI_Isendrecv(out, length, MPI_INT, right, 5, in, length, MPI_INT, left, 5, MPI_COMM_WORLD,
                      &request);
        MPI_Wait(&request, &status);
        CHECK(request == MPI_REQUEST_NULL);
        MPI_Get_count(&status, MPI_INT, &count);
        /* MPICH has no status for such requests. */
        if (is_ours()) CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 5 && count == length);
        for (int index = 0; index < length; index++) CHECK(in[index] == left + index);
        MPI_Isendrecv_replace(out, length, MPI_INT, right, 6, left, 6, MPI_COMM_WORLD, &request);
        MPI_Waitall(1, &request, &status);
        if (is_ours()) CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 6);
        for (int index = 0; index < length; index++) CHECK(out[index] == left + index);
        MPI_Sendrecv_replace_c(out, length, MPI_INT, left, 7, right, 7, MPI_COMM_WORLD, &status);
        for (int index = 0; index < length; index++) CHECK(out[index] == rank + index);
        MPI_Sendrecv(out, length, MPI_INT, right, 8, in, length, MPI_INT, MPI_ANY_SOURCE,
                     MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 8);
        meet(MPI_COMM_WORLD);
    }
    free(out);
    free(in);
}

/* Nobody is a partner too. */
static void nobody(void)
{
    int value = 17, count = -1;
    MPI_Status status;
    MPI_Request requests[3];
    CHECK(MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Ssend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && value == 17);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 0);
    MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Isendrecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, &value, 1, MPI_INT, MPI_PROC_NULL, 0,
                  MPI_COMM_WORLD, &requests[2]);
    for (int index = 0; index < 3; index++) {
        MPI_Wait(&requests[index], &status);
        CHECK(requests[index] == MPI_REQUEST_NULL);
        if (index == 0) CHECK(status.MPI_SOURCE == MPI_PROC_NULL);
    }
    int in = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, rank ? rank - 1 : MPI_PROC_NULL, 9, &in, 1, MPI_INT,
                 rank + 1 < size ? rank + 1 : MPI_PROC_NULL, 9, MPI_COMM_WORLD, &status);
    CHECK(in == (rank + 1 < size ? rank + 1 : -1));
}

/* From anybody, with any tag; messages of one sender keep their order. */
static void anybody(void)
{
    enum { EACH = 20 };
    int next[64] = {0}, value;
    MPI_Status status;
    MPI_Request *requests = malloc(EACH * size * sizeof *requests);
    int(*values)[2] = malloc(EACH * sizeof *values);
    for (int number = 0; number < EACH; number++) {
        values[number][0] = number;
        values[number][1] = rank;
        for (int peer = 0; peer < size; peer++)
            MPI_Isend(values[number], 2, MPI_INT, peer, number % 3, MPI_COMM_WORLD,
                      &requests[number * size + peer]);
    }
    for (int number = 0; number < EACH * size; number++) {
        int pair[2];
        MPI_Recv(pair, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        value = pair[0];
        CHECK(pair[1] == status.MPI_SOURCE && status.MPI_TAG == value % 3);
        CHECK(next[status.MPI_SOURCE]++ == value);
    }
    MPI_Waitall(EACH * size, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(values);
}

/* A message that is too long is received as far as there is room, and told of. */
static void truncation(void)
{
    int out[4] = {1, 2, 3, 4}, in[4] = {0, 0, 0, -1};
    MPI_Status status;
    MPI_Request request;
    MPI_Send(out, 4, MPI_INT, rank, 30, MPI_COMM_WORLD);
    CHECK(class_of(MPI_Recv(in, 2, MPI_INT, rank, 30, MPI_COMM_WORLD, &status)) ==
          MPI_ERR_TRUNCATE);
    CHECK(status.MPI_SOURCE == rank && status.MPI_TAG == 30 && in[3] == -1);
    MPI_Irecv(in, 2, MPI_INT, rank, 31, MPI_COMM_WORLD, &request);
    MPI_Send(out, 4, MPI_INT, rank, 31, MPI_COMM_WORLD);
    CHECK(class_of(MPI_Wait(&request, &status)) == MPI_ERR_TRUNCATE);
    CHECK(request == MPI_REQUEST_NULL && status.MPI_SOURCE == rank && status.MPI_TAG == 31);
    CHECK(class_of(MPI_Sendrecv(out, 4, MPI_INT, rank, 32, in, 1, MPI_INT, rank, 32, MPI_COMM_WORLD,
                                &status)) == MPI_ERR_TRUNCATE);
    CHECK(in[3] == -1);
    MPI_Send(out, 1, MPI_INT, rank, 33, MPI_COMM_WORLD);
    CHECK(MPI_Recv(in, 4, MPI_INT, rank, 33, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
}

/* What cannot be is refused, by its class. */
static void mistakes(void)
{
    int value = 0;
    MPI_Request request;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Datatype raw;
    CHECK(class_of(MPI_Send(&value, -1, MPI_INT, 0, 0, comm)) == MPI_ERR_COUNT);
    CHECK(class_of(MPI_Ssend(&value, 1, MPI_DATATYPE_NULL, 0, 0, comm)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Rsend(&value, 1, MPI_INT, size, 0, comm)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Send(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Bsend(&value, 1, MPI_INT, 0, -1, comm)) == MPI_ERR_TAG);
    CHECK(class_of(MPI_Send(&value, 1, MPI_INT, 0, MPI_ANY_TAG, comm)) == MPI_ERR_TAG);
    CHECK(class_of(MPI_Recv(&value, 1, MPI_INT, -77, 0, comm, MPI_STATUS_IGNORE)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Recv(&value, 1, MPI_INT, 0, -77, comm, MPI_STATUS_IGNORE)) == MPI_ERR_TAG);
    CHECK(class_of(MPI_Irecv(&value, -1, MPI_INT, 0, 0, comm, &request)) == MPI_ERR_COUNT);
    CHECK(class_of(MPI_Isend(&value, 1, MPI_INT, size, 0, comm, &request)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Isend(&value, 1, MPI_INT, 0, 0, comm, NULL)) != MPI_SUCCESS);
    CHECK(class_of(MPI_Send(NULL, 1, MPI_INT, 0, 0, comm)) == MPI_ERR_BUFFER);
    CHECK(class_of(MPI_Sendrecv(&value, 1, MPI_INT, 0, 0, &value, -1, MPI_INT, 0, 0, comm,
                                MPI_STATUS_IGNORE)) == MPI_ERR_COUNT);
    CHECK(class_of(MPI_Sendrecv_replace(&value, 1, MPI_INT, 0, -9, 0, 0, comm,
                                        MPI_STATUS_IGNORE)) == MPI_ERR_TAG);
    CHECK(class_of(MPI_Isendrecv(&value, 1, MPI_INT, 99, 0, &value, 1, MPI_INT, 0, 0, comm,
                                 &request)) == MPI_ERR_RANK);
    MPI_Type_contiguous(2, MPI_INT, &raw);
    CHECK(class_of(MPI_Send(&value, 1, raw, 0, 0, comm)) == MPI_ERR_TYPE);
    MPI_Type_free(&raw);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_NULL)) == MPI_ERR_COMM);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    modes();
    synchronous();
    datatypes();
    exchanges();
    nobody();
    anybody();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    truncation();
    mistakes();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return end("point_to_point");
}
