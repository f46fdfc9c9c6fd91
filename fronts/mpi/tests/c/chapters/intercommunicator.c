/* Two groups that talk to each other: made, used, copied, divided, merged. */
#include "check.h"

/* Everybody talks with everybody of the other side. */
static void talks(MPI_Comm inter)
{
    int own, processes, flag;
    CHECK(MPI_Comm_test_inter(inter, &flag) == MPI_SUCCESS && flag);
    CHECK(MPI_Comm_rank(inter, &own) == MPI_SUCCESS);
    CHECK(MPI_Comm_remote_size(inter, &processes) == MPI_SUCCESS && processes > 0);
    MPI_Request *requests = malloc(sizeof(MPI_Request) * (size_t)processes);
    for (int other = 0; other < processes; other++)
        CHECK(MPI_Isend(&own, 1, MPI_INT, other, 5, inter, &requests[other]) == MPI_SUCCESS);
    for (int other = 0; other < processes; other++) {
        int value = -1;
        MPI_Status status;
        CHECK(MPI_Recv(&value, 1, MPI_INT, other, 5, inter, &status) == MPI_SUCCESS);
        CHECK(value == other && status.MPI_SOURCE == other);
    }
    CHECK(MPI_Waitall(processes, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    free(requests);
}

static void merges(MPI_Comm inter, int is_second)
{
    MPI_Comm merged;
    int own, processes, one = 1, sum;
    CHECK(MPI_Intercomm_merge(inter, is_second, &merged) == MPI_SUCCESS);
    MPI_Comm_rank(merged, &own);
    MPI_Comm_size(merged, &processes);
    CHECK(own == rank && processes == size);
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged) == MPI_SUCCESS && sum == size);
    MPI_Comm_free(&merged);
    CHECK(MPI_Intercomm_merge(inter, !is_second, &merged) == MPI_SUCCESS);
    MPI_Comm_rank(merged, &own);
    CHECK(own == (is_second ? rank - size / 2 : rank + size - size / 2));
    MPI_Comm_free(&merged);
}

static void children(MPI_Comm inter)
{
    MPI_Comm child;
    MPI_Group local, first;
    int own, processes, result, zero = 0;
    CHECK(MPI_Comm_dup(inter, &child) == MPI_SUCCESS);
    CHECK(MPI_Comm_compare(inter, child, &result) == MPI_SUCCESS && result == MPI_CONGRUENT);
    talks(child);
    MPI_Comm_free(&child);
    MPI_Request request;
    CHECK(MPI_Comm_idup(inter, &child, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Comm_compare(inter, child, &result) == MPI_SUCCESS && result == MPI_CONGRUENT);
    talks(child);
    int one = 1, sum = 0;
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, child) == MPI_SUCCESS);
    MPI_Comm_remote_size(child, &processes);
    CHECK(sum == processes);
    MPI_Comm_free(&child);
    MPI_Comm_rank(inter, &own);
    CHECK(MPI_Comm_split(inter, own == 0 ? 4 : MPI_UNDEFINED, 0, &child) == MPI_SUCCESS);
    CHECK((child == MPI_COMM_NULL) == (own != 0));
    if (child != MPI_COMM_NULL) {
        MPI_Comm_remote_size(child, &processes);
        CHECK(processes == 1);
        talks(child);
        MPI_Comm_free(&child);
    }
    MPI_Comm_group(inter, &local);
    MPI_Group_incl(local, 1, &zero, &first);
    CHECK(MPI_Comm_create(inter, first, &child) == MPI_SUCCESS);
    CHECK((child == MPI_COMM_NULL) == (own != 0));
    if (child != MPI_COMM_NULL) talks(child), MPI_Comm_free(&child);
    MPI_Group_free(&first);
    MPI_Group_free(&local);
}

static void from_groups(MPI_Comm inter)
{
    MPI_Group local, remote;
    MPI_Comm made;
    int result;
    MPI_Comm_group(inter, &local);
    CHECK(MPI_Comm_remote_group(inter, &remote) == MPI_SUCCESS);
    CHECK(MPI_Intercomm_create_from_groups(local, 0, remote, 0, "two halves", MPI_INFO_NULL,
                                           MPI_ERRORS_RETURN, &made) == MPI_SUCCESS);
    CHECK(MPI_Comm_compare(inter, made, &result) == MPI_SUCCESS && result == MPI_CONGRUENT);
    talks(made);
    MPI_Comm_free(&made);
    MPI_Group_free(&remote);
    MPI_Group_free(&local);
}

int main(int argc, char **argv)
{
    MPI_Comm half, inter;
    int flag;
    begin(&argc, &argv);
    CHECK(MPI_Comm_test_inter(MPI_COMM_WORLD, &flag) == MPI_SUCCESS && !flag);
    if (size > 1) {
        int is_second = rank >= size / 2;
        MPI_Comm_split(MPI_COMM_WORLD, is_second, 0, &half);
        CHECK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_second ? 0 : size / 2, 17,
                                   &inter) == MPI_SUCCESS);
        MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        talks(inter);
        merges(inter, is_second);
        children(inter);
        from_groups(inter);
        CHECK(MPI_Comm_free(&inter) == MPI_SUCCESS);
        CHECK(MPI_Comm_free(&half) == MPI_SUCCESS);
    }
    return end("intercommunicator");
}
