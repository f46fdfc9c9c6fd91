/* The ranks of a ring repeat an operation between neighbours, and rank 1 leaves once all have ended some of them. Each
   other rank says what it was told, and then stays: it neither calls the library again nor ends. */
#include <unistd.h>

#include "check.h"

static MPI_Comm ring;
static int ours[2], theirs[2];

static int exchange(void) { return MPI_Neighbor_alltoall(ours, 1, MPI_INT, theirs, 1, MPI_INT, ring); }

static int exchange_testing(void)
{
    MPI_Request request;
    int flag = 0, code = MPI_Ineighbor_alltoall(ours, 1, MPI_INT, theirs, 1, MPI_INT, ring, &request);
    while (code == MPI_SUCCESS && !flag) code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    return code;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int shape[1] = {size}, is_round[1] = {1}, code = MPI_SUCCESS, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Cart_create(MPI_COMM_WORLD, 1, shape, is_round, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    for (int times = 0; times < 100; times++) CHECK(exchange() == MPI_SUCCESS);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    if (rank == 1) return MPI_Finalize();
    while (code == MPI_SUCCESS) code = rank % 2 == 0 ? exchange() : exchange_testing();
    MPI_Error_string(code, text, &length);
    printf("%s\n", text);
    fflush(stdout);
    for (;;) pause();
}
