/* A session that is over before MPI_Init, and then the end of the job: by MPI_Abort, or by a mistake that
 * is fatal. Or one that begins after MPI_Finalize, where nobody may come back. */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Session session;
    if (strcmp(argv[1], "late") == 0) {
        begin(&argc, &argv);
        MPI_Finalize();
    }
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_finalize(&session);
    if (strcmp(argv[1], "session") == 0) {
        int count;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Session_get_num_psets(session, (MPI_Info)0, &count);
    }
    if (strcmp(argv[1], "late") != 0) begin(&argc, &argv);
    meet(MPI_COMM_WORLD);
    if (rank == 0 && strcmp(argv[1], "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 3);
    if (rank == 0 && strcmp(argv[1], "mistake") == 0) MPI_Send(NULL, -1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("nobody noticed\n");
    return MPI_Finalize();
}
