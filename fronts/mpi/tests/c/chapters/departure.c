/* The last rank goes on alone while the others are in MPI_Finalize, or past it: it looks, sends to itself,
 * and takes back what it asked of those who have left. */
#include "check.h"

enum { OWN = 5, NOTHING = 6 };

/* Nothing comes from those who have left, and that is no failure. */
static void looks(MPI_Request *waiting)
{
    int flag = 1, index, found, indices[2];
    MPI_Message message;
    MPI_Status status, statuses[2];
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    CHECK(!flag);
    MPI_Iprobe(0, NOTHING, MPI_COMM_WORLD, &flag, &status);
    CHECK(!flag);
    MPI_Improbe(MPI_ANY_SOURCE, NOTHING, MPI_COMM_WORLD, &flag, &message, &status);
    CHECK(!flag);
    for (int each = 0; each < 2; each++) {
        MPI_Test(&waiting[each], &flag, &status);
        CHECK(!flag && waiting[each] != MPI_REQUEST_NULL);
        MPI_Request_get_status(waiting[each], &flag, &status);
        CHECK(!flag);
    }
    MPI_Testany(2, waiting, &index, &flag, &status);
    CHECK(!flag);
    MPI_Testall(2, waiting, &flag, statuses);
    CHECK(!flag);
    MPI_Testsome(2, waiting, &found, indices, statuses);
    CHECK(found == 0);
}

/* A message to itself is found among receives that nobody will answer any more. */
static void alone(MPI_Request *waiting)
{
    int out = 17, in = 0, index = -1;
    MPI_Request all[3] = {waiting[0], waiting[1], MPI_REQUEST_NULL}, send;
    MPI_Status status;
    MPI_Irecv(&in, 1, MPI_INT, rank, OWN, MPI_COMM_WORLD, &all[2]);
    MPI_Isend(&out, 1, MPI_INT, rank, OWN, MPI_COMM_WORLD, &send);
    MPI_Waitany(3, all, &index, &status);
    CHECK(index == 2 && in == 17 && status.MPI_SOURCE == rank);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int places[2] = {-1, -1}, flag = 0;
    MPI_Request waiting[2];
    MPI_Status status;
    MPI_Irecv(&places[0], 1, MPI_INT, 0, NOTHING, MPI_COMM_WORLD, &waiting[0]);
    MPI_Irecv(&places[1], 1, MPI_INT, MPI_ANY_SOURCE, NOTHING, MPI_COMM_WORLD, &waiting[1]);
    meet(MPI_COMM_WORLD);
    if (rank == size - 1)
        for (double begun = MPI_Wtime(); MPI_Wtime() < begun + 0.03;) looks(waiting);
    if (rank == size - 1) alone(waiting);
    for (int each = 0; each < 2; each++) {
        MPI_Cancel(&waiting[each]);
        MPI_Wait(&waiting[each], &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag && places[each] == -1);
    }
    if (rank == size - 1) printf("departure: %d processes agree\n", size);
    fflush(stdout);
    return MPI_Finalize();
}
