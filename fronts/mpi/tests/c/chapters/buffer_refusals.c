/* Only here: MPI_IN_PLACE is no address, and other libraries use it as one where it may not be. */
#include "check.h"

static int class_of(int code)
{
    int class_;
    MPI_Error_class(code, &class_);
    return class_;
}

#define REFUSED(call) CHECK(class_of(call) == MPI_ERR_BUFFER)

static void messages(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype gappy;
    char packed[64];
    int one = 1, place = 0;
    MPI_Aint far = 0;

    MPI_Type_vector(2, 1, 2, MPI_INT, &gappy);
    MPI_Type_commit(&gappy);
    REFUSED(MPI_Send(MPI_IN_PLACE, 1, MPI_INT, rank, 0, MPI_COMM_WORLD));
    REFUSED(MPI_Send(MPI_IN_PLACE, 1, gappy, rank, 0, MPI_COMM_WORLD));
    REFUSED(MPI_Isend(MPI_IN_PLACE, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request));
    REFUSED(MPI_Recv(MPI_IN_PLACE, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    REFUSED(MPI_Irecv(MPI_IN_PLACE, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request));
    REFUSED(MPI_Recv_init(MPI_IN_PLACE, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &request));
    REFUSED(MPI_Sendrecv(&one, 1, MPI_INT, rank, 0, MPI_IN_PLACE, 1, MPI_INT, rank, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE));
    REFUSED(MPI_Pack(MPI_IN_PLACE, 1, MPI_INT, packed, sizeof packed, &place, MPI_COMM_WORLD));
    REFUSED(MPI_Pack(&one, 1, MPI_INT, MPI_IN_PLACE, sizeof packed, &place, MPI_COMM_WORLD));
    REFUSED(MPI_Unpack(MPI_IN_PLACE, sizeof packed, &place, &one, 1, MPI_INT, MPI_COMM_WORLD));
    REFUSED(MPI_Unpack(packed, sizeof packed, &place, MPI_IN_PLACE, 1, MPI_INT, MPI_COMM_WORLD));
    REFUSED(MPI_Pack_external("external32", &one, 1, MPI_INT, MPI_IN_PLACE, sizeof packed, &far));
    REFUSED(MPI_Unpack_external("external32", MPI_IN_PLACE, sizeof packed, &far, &one, 1, MPI_INT));
    CHECK(request == MPI_REQUEST_NULL && place == 0 && far == 0);
    MPI_Type_free(&gappy);
}

/* All members make the same mistake, so all find it before anybody waits. */
static void collective(void)
{
    int one = 1, values[16] = {0}, counts[16], places[16];
    MPI_Datatype types[16];

    for (int at = 0; at < size; at++) counts[at] = 1, places[at] = 0, types[at] = MPI_INT;
    REFUSED(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD));
    REFUSED(MPI_Allreduce(&one, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    REFUSED(MPI_Scan(&one, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    REFUSED(MPI_Allgather(&one, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, MPI_COMM_WORLD));
    REFUSED(MPI_Reduce_scatter(values, MPI_IN_PLACE, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    REFUSED(MPI_Alltoallv(values, counts, places, MPI_INT, MPI_IN_PLACE, counts, places, MPI_INT,
                          MPI_COMM_WORLD));
    REFUSED(MPI_Alltoallw(values, counts, places, types, MPI_IN_PLACE, counts, places, types,
                          MPI_COMM_WORLD));
}

static void local(void)
{
    int values[2] = {1, 2}, others[2] = {3, 4};

    REFUSED(MPI_Reduce_local(MPI_IN_PLACE, values, 2, MPI_INT, MPI_SUM));
    REFUSED(MPI_Reduce_local(values, MPI_IN_PLACE, 2, MPI_INT, MPI_SUM));
    REFUSED(MPI_Reduce_local(values, values, 2, MPI_INT, MPI_SUM));
    CHECK(MPI_Reduce_local(values, values, 0, MPI_INT, MPI_SUM) == MPI_SUCCESS);
    CHECK(MPI_Reduce_local(values, others, 2, MPI_INT, MPI_SUM) == MPI_SUCCESS);
    CHECK(others[0] == 4 && others[1] == 6);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    messages();
    collective();
    local();
    return end("buffer_refusals");
}
