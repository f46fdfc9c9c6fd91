/* Buffered sends: buffers of the process and of a communicator, of the program and of the library. */
#include "check.h"

static int class_of(int code)
{
    int class_ = -1;
    CHECK(MPI_Error_class(code, &class_) == MPI_SUCCESS);
    return class_;
}

enum { LENGTH = 100000, EACH = 3 };
static int in[LENGTH];
static char room[EACH * (LENGTH * sizeof(int) + MPI_BSEND_OVERHEAD)];

/* All send before anybody receives; what was sent may be changed at once. */
static void exchange(MPI_Comm comm, int tag, int started)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    int *out = malloc(LENGTH * sizeof *out);
    MPI_Request request;
    for (int number = 0; number < EACH; number++) {
        for (int place = 0; place < LENGTH; place++) out[place] = rank + number + place;
        if (started) {
            MPI_Ibsend(out, LENGTH, MPI_INT, to, tag, comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Bsend(out, LENGTH, MPI_INT, to, tag, comm);
        }
        memset(out, 0, LENGTH * sizeof *out);
    }
    free(out);
    meet(comm);
    for (int number = 0; number < EACH; number++) {
        MPI_Recv(in, LENGTH, MPI_INT, from, tag, comm, MPI_STATUS_IGNORE);
        for (int place = 0; place < LENGTH; place++) CHECK(in[place] == from + number + place);
    }
}

/* Every second item of an array. */
static void datatypes(void)
{
    int out[10], got[5];
    MPI_Datatype second;
    MPI_Type_vector(5, 1, 2, MPI_INT, &second);
    MPI_Type_commit(&second);
    for (int index = 0; index < 10; index++) out[index] = index;
    MPI_Bsend(out, 1, second, rank, 9, MPI_COMM_WORLD);
    MPI_Type_free(&second);
    MPI_Recv(got, 5, MPI_INT, rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int index = 0; index < 5; index++) CHECK(got[index] == 2 * index);
}

static void of_process(void)
{
    void *address;
    int bytes;
    MPI_Count many;
    MPI_Request request;
    MPI_Buffer_attach(room, sizeof room);
    exchange(MPI_COMM_WORLD, 1, 0);
    MPI_Buffer_flush();
    exchange(MPI_COMM_WORLD, 2, 1);
    request = MPI_REQUEST_NULL;
    MPI_Buffer_iflush(&request);
    CHECK(request != MPI_REQUEST_NULL);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(request == MPI_REQUEST_NULL);
    datatypes();
    MPI_Buffer_detach(&address, &bytes);
    CHECK(address == room && bytes == (int)sizeof room);

    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    exchange(MPI_COMM_WORLD, 3, 0);
    datatypes();
    MPI_Buffer_detach_c(&address, &many);
    CHECK(address == MPI_BUFFER_AUTOMATIC);
}

static void of_communicator(void)
{
    void *address;
    int bytes;
    MPI_Comm copy;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_attach_buffer(copy, room, sizeof room);
    exchange(copy, 4, 0);
    MPI_Comm_flush_buffer(copy);
    exchange(copy, 5, 0);
    request = MPI_REQUEST_NULL;
    MPI_Comm_iflush_buffer(copy, &request);
    CHECK(request != MPI_REQUEST_NULL);
    MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
    MPI_Comm_detach_buffer(copy, &address, &bytes);
    CHECK(address == room && bytes == (int)sizeof room);
    MPI_Comm_free(&copy);
}

static void mistakes(void)
{
    void *address;
    int bytes;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Buffer_attach(room, -1)) == MPI_ERR_ARG ||
          class_of(MPI_Buffer_attach(room, -1)) == MPI_ERR_BUFFER);
    CHECK(MPI_Buffer_attach(room, 1000) == MPI_SUCCESS);
    CHECK(class_of(MPI_Buffer_attach(room, 1000)) == (is_ours() ? MPI_ERR_BUFFER : MPI_ERR_OTHER));
    CHECK(class_of(MPI_Bsend(room, -1, MPI_CHAR, 0, 0, MPI_COMM_WORLD)) == MPI_ERR_COUNT);
    CHECK(MPI_Bsend(room, 10, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Buffer_detach(&address, &bytes) == MPI_SUCCESS && bytes == 1000);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    of_process();
    of_communicator();
    mistakes();
    return end("buffer");
}
