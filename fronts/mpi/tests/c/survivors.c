/* The last rank exits without MPI_Finalize; the others are told, and talk to each other without it. */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int token = 0, class_ = -1, victim = size - 1;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    meet(MPI_COMM_WORLD);
    if (rank == victim) _Exit(7);
    int code = MPI_Recv(&token, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class_);
    CHECK(class_ == MPI_ERR_PROC_ABORTED);
    /* Whatever the launcher does about it comes now. */
    for (double begun = MPI_Wtime(); MPI_Wtime() < begun + 0.5;) continue;
    MPI_Sendrecv(&rank, 1, MPI_INT, victim - 1 - rank, 2, &token, 1, MPI_INT, victim - 1 - rank, 2,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(token == victim - 1 - rank);
    printf("rank %d goes on\n", rank);
    fflush(stdout);
    return MPI_Finalize();
}
