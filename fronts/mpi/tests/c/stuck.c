/* Waits for ever, in one function or another. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    int rank, value, place;
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1 && strcmp(argv[1], "any") == 0) {
        int first = rank == 0 ? 1 : 0, second = rank == 2 ? 1 : 2;
        MPI_Irecv(&value, 1, MPI_INT, first, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&value, 1, MPI_INT, second, 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitany(2, requests, &place, MPI_STATUS_IGNORE);
    }
    MPI_Recv(&value, 1, MPI_INT, (rank + 1) % 3, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
