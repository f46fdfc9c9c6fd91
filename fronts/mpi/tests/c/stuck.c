/* Waits for ever, in one function or another. */
#define _XOPEN_SOURCE 700
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Ticks of the timer until the handler returns no more: time enough to fall asleep in the operation. */
#define TICKS 20

static volatile sig_atomic_t is_in_operation, ticks;
static int first_pid;

static void tick(int number)
{
    (void)number;
    if (!is_in_operation || ++ticks < TICKS) return;
    kill(first_pid, SIGUSR1);
    for (;;) pause();
}

/* Rank 2 is held by a handler in an operation that is over for the others, who wait for it in the next one. */
static void be_held(int rank)
{
    int own = 1, sum, pid = (int)getpid();
    struct itimerval every = {{0, 50000}, {0, 50000}};
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    if (rank == 0) sigprocmask(SIG_BLOCK, &wanted, NULL);
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    first_pid = pid;
    if (rank == 2) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = tick;
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &every, NULL);
    }
    if (rank == 0) sigwaitinfo(&wanted, NULL);
    is_in_operation = 1;
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* All are in one operation, in a function of the program. */
static void sleep_in_function(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
    for (;;) pause();
}

static void reduce_for_ever(void)
{
    int own = 1, sum;
    MPI_Op operation;
    MPI_Op_create(sleep_in_function, 1, &operation);
    MPI_Allreduce(&own, &sum, 1, MPI_INT, operation, MPI_COMM_WORLD);
}

/* Rank 2 comes to no operation in which the others wait for messages that are none of the program's. */
static void be_late(const char *where, int rank)
{
    int own = 1, all[2], size = 3, is_circle = 1;
    MPI_Group group;
    MPI_Comm ring, other;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &is_circle, 0, &ring);
    if (rank == 2) pause();
    if (strcmp(where, "group") == 0) MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &other);
    MPI_Neighbor_allgather(&own, 1, MPI_INT, all, 1, MPI_INT, ring);
}

int main(int argc, char **argv)
{
    int rank, value, place;
    const char *what = argc > 1 ? argv[1] : "";
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(what, "any") == 0) {
        int first = rank == 0 ? 1 : 0, second = rank == 2 ? 1 : 2;
        MPI_Irecv(&value, 1, MPI_INT, first, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&value, 1, MPI_INT, second, 3, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitany(2, requests, &place, MPI_STATUS_IGNORE);
    }
    if (strcmp(what, "function") == 0) reduce_for_ever();
    if (strcmp(what, "held") == 0) be_held(rank);
    if (strcmp(what, "group") == 0 || strcmp(what, "neighbours") == 0) be_late(what, rank);
    MPI_Recv(&value, 1, MPI_INT, (rank + 1) % 3, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
