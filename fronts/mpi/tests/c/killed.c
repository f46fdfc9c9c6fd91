/* The others wait for the rank that is named by the first argument, which ends as the second says:
   kill, abort, exit, stay. Without arguments nobody ends: tokens go round until somebody is killed. */
#include "check.h"

#include <signal.h>

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int token = 0;
    printf("rank %d is in\n", rank);
    fflush(stdout);
    if (argc < 3) {
        for (;;) {
            MPI_Request request;
            MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, &request);
            MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    int victim = atoi(argv[1]);
    if (rank == victim) {
        /* Everybody is there. */
        for (int other = 0; other < size; other++) {
            if (other != rank)
                MPI_Recv(&token, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (strcmp(argv[2], "kill") == 0) raise(SIGKILL);
        if (strcmp(argv[2], "abort") == 0) {
            printf("rank %d aborts\n", rank);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        if (strcmp(argv[2], "exit") == 0) exit(7);
    } else {
        MPI_Send(&rank, 1, MPI_INT, victim, 1, MPI_COMM_WORLD);
    }
    MPI_Recv(&token, 1, MPI_INT, victim, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("rank %d waited in vain\n", rank);
    return MPI_Finalize();
}
