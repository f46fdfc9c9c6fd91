/* The last rank dies. Every error names it by its rank in MPI_COMM_WORLD, its process number and the cause: also errors in
   statuses, and those of communicators in which it has another rank. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

static int victim, pid;

/* The text of an error says who the dead is: `rank 3 (pid 411)`, or `rank 3 on n2 (pid 411)`. `here` is what else it is
   called there. */
static void names(int code, const char *here)
{
    char text[MPI_MAX_ERROR_STRING], first[200], wanted[200];
    int length, class_;
    MPI_Error_class(code, &class_);
    MPI_Error_string(code, text, &length);
    snprintf(first, sizeof first, "rank %d ", victim);
    snprintf(wanted, sizeof wanted, "(%spid %d) was killed by signal 9", here, pid);
    const char *name = strstr(text, first);
    if (class_ == MPI_ERR_PROC_ABORTED && name && strstr(name, wanted)) return;
    fprintf(stderr, "rank %d: \"%s... %s\" is not in \"%s\"\n", rank, first, wanted, text);
    MPI_Abort(MPI_COMM_WORLD, 98);
}

/* The ranks in a communicator that are one of the first and one of the second half, turned round. */
static MPI_Comm turned, across;

static void make_communicators(void)
{
    MPI_Comm own;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, 1 - rank % 2, 1, &across);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(turned, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(across, MPI_ERRORS_RETURN);
}

enum way { WAITALL, TESTALL, WAITSOME, TESTSOME, WAYS };

/* Two receives from the dead, by two communicators. */
static void in_statuses(enum way way)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int into[2], indices[2] = { 0, 1 }, ended = 0, code = MPI_SUCCESS;
    MPI_Irecv(&into[0], 1, MPI_INT, victim, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&into[1], 1, MPI_INT, size - 1 - victim, 1, turned, &requests[1]);
    while (code == MPI_SUCCESS) {
        ended = 2;
        switch (way) {
        case WAITALL: code = MPI_Waitall(2, requests, statuses); break;
        case TESTALL: code = MPI_Testall(2, requests, &ended, statuses); break;
        case WAITSOME: code = MPI_Waitsome(2, requests, &ended, indices, statuses); break;
        default: code = MPI_Testsome(2, requests, &ended, indices, statuses); break;
        }
        if (way == TESTALL) ended = 2;
    }
    CHECK(code == MPI_ERR_IN_STATUS && ended > 0);
    for (int at = 0; at < ended; at++) {
        const char *here[] = { "", "rank 0 of this communicator, " };
        if (statuses[at].MPI_ERROR != MPI_ERR_PENDING) names(statuses[at].MPI_ERROR, here[indices[at]]);
    }
    for (int at = 0; at < 2; at++)
        if (requests[at] != MPI_REQUEST_NULL) MPI_Request_free(&requests[at]);
}

/* Returns when all that live have come this far. */
static void meet_the_living(void)
{
    int token = 0;
    for (int other = 1; other < victim; other++) {
        if (rank == 0) MPI_Recv(&token, 1, MPI_INT, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == other) MPI_Send(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
    }
    for (int other = 1; other < victim; other++) {
        if (rank == 0) MPI_Send(&token, 1, MPI_INT, other, 9, MPI_COMM_WORLD);
        if (rank == other) MPI_Recv(&token, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int token;
    begin(&argc, &argv);
    victim = size - 1;
    pid = getpid();
    make_communicators();
    MPI_Bcast(&pid, 1, MPI_INT, victim, MPI_COMM_WORLD);
    meet(MPI_COMM_WORLD);
    if (rank == victim) raise(SIGKILL);
    names(MPI_Recv(&token, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), "");
    for (enum way way = 0; way < WAYS; way++) in_statuses(way);
    names(MPI_Barrier(turned), "rank 0 of this communicator, ");
    if (rank % 2 != victim % 2)
        names(MPI_Recv(&token, 1, MPI_INT, victim / 2, 1, across, MPI_STATUS_IGNORE),
              "rank 1 of the remote group, ");
    names(MPI_Barrier(across), "");
    meet_the_living();
    printf("names: rank %d was told who died\n", rank);
    fflush(stdout);
    return MPI_Finalize();
}
