/* Collective operations that are kept: the members of a communicator make them in the same order, and start
 * them in any. */
#include "check.h"

enum { KINDS = 5, TIMES = 12 };

static MPI_Request kept[KINDS];
static int told, mine, sum, all[64], own;

static void make(MPI_Comm comm)
{
    MPI_Bcast_init(&told, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &kept[0]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &kept[1]);
    MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &kept[2]);
    MPI_Allgather_init(&mine, 1, MPI_INT, all, 1, MPI_INT, comm, MPI_INFO_NULL, &kept[3]);
    MPI_Exscan_init(&mine, &own, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &kept[4]);
}

static void prepare(int time)
{
    told = rank == 0 ? time : -1;
    mine = rank + time;
    sum = own = -1;
}

static void check(int time)
{
    CHECK(told == time);
    CHECK(sum == size * (size - 1) / 2 + size * time);
    for (int at = 0; at < size; at++) CHECK(all[at] == at + time);
    CHECK(rank == 0 || own == rank * (rank - 1) / 2 + rank * time);
}

/* Each member starts them in an order of its own, with other operations between. */
static void in_any_order(MPI_Comm comm)
{
    int flag, one = 1, many;
    MPI_Request between;
    make(comm);
    for (int time = 0; time < TIMES; time++) {
        prepare(time);
        for (int at = 0; at < KINDS; at++) {
            if (at == 2) MPI_Iallreduce(&one, &many, 1, MPI_INT, MPI_SUM, comm, &between);
            CHECK(MPI_Start(&kept[(at + rank + time) % KINDS]) == MPI_SUCCESS);
        }
        if (time % 3 == 0) {
            MPI_Waitall(KINDS, kept, MPI_STATUSES_IGNORE);
        } else {
            for (int at = KINDS; at--;)
                for (flag = 0; !flag;)
                    MPI_Test(&kept[(at + time) % KINDS], &flag, MPI_STATUS_IGNORE);
        }
        MPI_Wait(&between, MPI_STATUS_IGNORE);
        CHECK(many == size);
        check(time);
    }
    for (int at = 0; at < KINDS; at++) MPI_Request_free(&kept[at]);
}

/* A program that vouches for the order of all starts. */
static void in_one_order(MPI_Comm comm)
{
    MPI_Comm strict;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_strict_persistent_collective_ordering", "true");
    MPI_Comm_dup_with_info(comm, info, &strict);
    MPI_Info_free(&info);
    make(strict);
    for (int time = 0; time < TIMES; time++) {
        prepare(time);
        MPI_Startall(KINDS, kept);
        MPI_Waitall(KINDS, kept, MPI_STATUSES_IGNORE);
        check(time);
    }
    for (int at = 0; at < KINDS; at++) MPI_Request_free(&kept[at]);
    MPI_Comm_free(&strict);
}

/* Both groups of an intercommunicator. */
static void between_groups(void)
{
    MPI_Comm half, both;
    MPI_Request pair[2];
    int out = rank, in[64], far, first = rank % 2;
    if (size == 1) return;
    MPI_Comm_split(MPI_COMM_WORLD, first, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - first, 1, &both);
    MPI_Comm_remote_size(both, &far);
    MPI_Allgather_init(&out, 1, MPI_INT, in, 1, MPI_INT, both, MPI_INFO_NULL, &pair[0]);
    MPI_Barrier_init(both, MPI_INFO_NULL, &pair[1]);
    for (int time = 0; time < 3; time++) {
        memset(in, 0, sizeof in);
        MPI_Start(&pair[rank % 2]);
        MPI_Start(&pair[1 - rank % 2]);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
        for (int at = 0; at < far; at++) CHECK(in[at] == 2 * at + 1 - first);
    }
    MPI_Request_free(&pair[0]);
    MPI_Request_free(&pair[1]);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    MPI_Comm copy;
    begin(&argc, &argv);
    in_any_order(MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    in_any_order(copy);
    MPI_Comm_free(&copy);
    in_one_order(MPI_COMM_WORLD);
    between_groups();
    return end("collective_order");
}
