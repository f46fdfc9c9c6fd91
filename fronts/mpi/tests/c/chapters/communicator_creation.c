/* Communicators made of others: copies, parts, by colors, by what processes share. */
#include "check.h"

static int class_of(int code)
{
    int class_;
    MPI_Error_class(code, &class_);
    return class_;
}

/* The sum of ones over a communicator is its size, and its ranks are right. */
static void works(MPI_Comm comm, int wanted_rank, int wanted_size)
{
    int own, processes, one = 1, sum = 0, left = -1;
    CHECK(comm != MPI_COMM_NULL);
    CHECK(MPI_Comm_rank(comm, &own) == MPI_SUCCESS && own == wanted_rank);
    CHECK(MPI_Comm_size(comm, &processes) == MPI_SUCCESS && processes == wanted_size);
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(sum == processes);
    MPI_Request request;
    MPI_Irecv(&left, 1, MPI_INT, (own + processes - 1) % processes, 3, comm, &request);
    MPI_Send(&own, 1, MPI_INT, (own + 1) % processes, 3, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(left == (own + processes - 1) % processes);
}

static void copies(void)
{
    MPI_Comm copy = MPI_COMM_NULL, copies[3];
    MPI_Request requests[3];
    MPI_Info info, used;
    char value[16];
    int length = 16, flag, result;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    CHECK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &copy) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_info(copy, &used) == MPI_SUCCESS && used != MPI_INFO_NULL);
    CHECK(MPI_Info_get_string(used, "no such key", &length, value, &flag) == MPI_SUCCESS && !flag);
    MPI_Info_free(&used);
    works(copy, rank, size);
    CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS && copy == MPI_COMM_NULL);
    CHECK(MPI_Comm_idup(MPI_COMM_WORLD, &copies[0], &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &copies[1], &requests[1]) == MPI_SUCCESS);
    CHECK(MPI_Comm_idup(MPI_COMM_SELF, &copies[2], &requests[2]) == MPI_SUCCESS);
    CHECK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    works(copies[0], rank, size);
    works(copies[1], rank, size);
    works(copies[2], 0, 1);
    CHECK(MPI_Comm_compare(copies[0], copies[1], &result) == MPI_SUCCESS);
    CHECK(result == MPI_CONGRUENT);
    for (int i = 0; i < 3; i++) CHECK(MPI_Comm_free(&copies[i]) == MPI_SUCCESS);
    MPI_Info_free(&info);
}

static void parts(void)
{
    MPI_Comm part, none, backwards;
    MPI_Group world, even, own_group;
    int every_other[1][3] = {{0, size - 1, 2}};
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part) == MPI_SUCCESS);
    works(part, (size - 1 - rank) / 2, rank % 2 ? size / 2 : (size + 1) / 2);
    MPI_Comm_free(&part);
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, rank ? MPI_UNDEFINED : 7, 0, &none) == MPI_SUCCESS);
    CHECK((none == MPI_COMM_NULL) == (rank != 0));
    if (none != MPI_COMM_NULL) MPI_Comm_free(&none);

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, every_other, &even);
    CHECK(MPI_Comm_create(MPI_COMM_WORLD, even, &part) == MPI_SUCCESS);
    CHECK((part == MPI_COMM_NULL) == (rank % 2));
    if (part != MPI_COMM_NULL) works(part, rank / 2, (size + 1) / 2), MPI_Comm_free(&part);
    MPI_Group_free(&even);

    /* Only the members call these. */
    if (rank < (size + 1) / 2) {
        int downwards[1][3] = {{(size - 1) / 2, 0, -1}};
        MPI_Group_range_incl(world, 1, downwards, &own_group);
        CHECK(MPI_Comm_create_group(MPI_COMM_WORLD, own_group, 9, &backwards) == MPI_SUCCESS);
        works(backwards, (size - 1) / 2 - rank, (size + 1) / 2);
        MPI_Comm_free(&backwards);
        CHECK(MPI_Comm_create_from_group(own_group, "a half", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                         &backwards) == MPI_SUCCESS);
        works(backwards, (size - 1) / 2 - rank, (size + 1) / 2);
        CHECK(class_of(MPI_Send(&rank, 1, MPI_INT, size, 0, backwards)) == MPI_ERR_RANK);
        CHECK(MPI_Comm_disconnect(&backwards) == MPI_SUCCESS && backwards == MPI_COMM_NULL);
        MPI_Group_free(&own_group);
    }
    MPI_Group_free(&world);
}

static void shared(void)
{
    MPI_Comm part;
    MPI_Info info;
    struct host_ranks near = host_ranks();
    int comm_type[2] = {MPI_COMM_TYPE_SHARED, MPI_COMM_TYPE_HW_GUIDED};
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
    for (int i = 0; i < 2; i++) {
        CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, comm_type[i], -rank, info, &part) ==
              MPI_SUCCESS);
        works(part, near.here - 1 - near.before, near.here);
        MPI_Comm_free(&part);
    }
    MPI_Info_free(&info);
    CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL, &part) ==
          MPI_SUCCESS);
    CHECK(part == MPI_COMM_NULL);
    CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, rank ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0,
                              MPI_INFO_NULL, &part) == MPI_SUCCESS);
    CHECK((part == MPI_COMM_NULL) == (rank != 0));
    if (part != MPI_COMM_NULL) works(part, 0, 1), MPI_Comm_free(&part);
}

static void many(void)
{
    MPI_Comm comms[40];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 40; i++) CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]) == MPI_SUCCESS);
        works(comms[39], rank, size);
        for (int i = 0; i < 40; i++) CHECK(MPI_Comm_free(&comms[i]) == MPI_SUCCESS);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    copies();
    parts();
    shared();
    many();
    return end("communicator_creation");
}
