/* One rank after the other leaves with MPI_Finalize and runs on, while three others are in one operation with it: each
 * of the three is told at once, and of the one that has left. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <time.h>
#include <unistd.h>

enum { BARRIER, ALLREDUCE, BCAST, REDUCE, ALLGATHER, GATHER, SCAN, ALLTOALL, IBARRIER, DUP, SPLIT, OPERATIONS };
static const char *names[] = {"MPI_Barrier", "MPI_Allreduce", "MPI_Bcast",    "MPI_Reduce",
                              "MPI_Allgather", "MPI_Gather",  "MPI_Scan",     "MPI_Alltoall",
                              "MPI_Ibarrier",  "MPI_Comm_dup", "MPI_Comm_split"};
/* How long one that has left runs on, and how long a survivor calls at most. */
static const double STAYS_S = 2.5, CALLS_S = 20;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int call(int operation, MPI_Comm comm)
{
    int one = 1, all[4], sent[4] = {1, 2, 3, 4};
    MPI_Comm made;
    MPI_Request request;
    int code = MPI_SUCCESS;
    switch (operation) {
    case BARRIER: return MPI_Barrier(comm);
    case ALLREDUCE: return MPI_Allreduce(&one, all, 1, MPI_INT, MPI_SUM, comm);
    case BCAST: return MPI_Bcast(&one, 1, MPI_INT, 0, comm);
    case REDUCE: return MPI_Reduce(&one, all, 1, MPI_INT, MPI_SUM, 0, comm);
    case ALLGATHER: return MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, comm);
    case GATHER: return MPI_Gather(&one, 1, MPI_INT, all, 1, MPI_INT, 0, comm);
    case SCAN: return MPI_Scan(&one, all, 1, MPI_INT, MPI_SUM, comm);
    case ALLTOALL: return MPI_Alltoall(sent, 1, MPI_INT, all, 1, MPI_INT, comm);
    case IBARRIER:
        code = MPI_Ibarrier(comm, &request);
        return code ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
    case DUP: code = MPI_Comm_dup(comm, &made); break;
    default: code = MPI_Comm_split(comm, 0, 0, &made); break;
    }
    if (code == MPI_SUCCESS) MPI_Comm_free(&made);
    return code;
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size == OPERATIONS + 3);
    int half = size / 2, last = -1;
    MPI_Comm comms[OPERATIONS], survivors;
    int stays = rank == 0 || rank == half || rank == half + 1;
    MPI_Comm_split(MPI_COMM_WORLD, stays, rank, &survivors);
    for (int operation = 0, leaver = 0; operation < OPERATIONS; operation++) {
        do leaver++;
        while (leaver == half || leaver == half + 1);
        int takes_part = stays || rank == leaver;
        MPI_Comm_split(MPI_COMM_WORLD, takes_part ? 0 : MPI_UNDEFINED, rank, &comms[operation]);
        if (takes_part) MPI_Comm_set_errhandler(comms[operation], MPI_ERRORS_RETURN);
        if (rank == leaver) last = operation;
    }
    if (!stays) {
        MPI_Barrier(comms[last]);
        usleep(100000);
        MPI_Finalize();
        for (double until = now() + STAYS_S; now() < until;) usleep(50000);
        return 0;
    }
    for (int operation = 0, leaver = 0; operation < OPERATIONS; operation++) {
        do leaver++;
        while (leaver == half || leaver == half + 1);
        MPI_Barrier(comms[operation]);
        double begun = now();
        int code = MPI_SUCCESS, class_ = 0, length;
        while (code == MPI_SUCCESS && now() < begun + CALLS_S) code = call(operation, comms[operation]);
        char text[MPI_MAX_ERROR_STRING] = "";
        if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
        MPI_Error_class(code, &class_);
        printf("%s rank %d told %d of %d after %.0f ms: %s\n", names[operation], rank,
               class_ == MPI_ERR_PROC_ABORTED, leaver, (now() - begun) * 1000, text);
        fflush(stdout);
        MPI_Barrier(survivors);
    }
    return MPI_Finalize();
}
