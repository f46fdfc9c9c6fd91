/* A session that is over before MPI_Init, and then rank 1 ends without MPI_Finalize: it has not left in good order. */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_finalize(&session);
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    meet(MPI_COMM_WORLD);
    if (rank == 1) exit(0);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
