/* Sessions that begin after MPI_Finalize, one after the other, with communicators of their own. */
#include "check.h"
#include <unistd.h>

static void once(const char *tag)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm all, copy;
    int own, many, one = 1, sum = 0;
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &all) ==
          MPI_SUCCESS);
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS);
    CHECK(MPI_Comm_dup(all, &copy) == MPI_SUCCESS);
    CHECK(MPI_Comm_rank(copy, &own) == MPI_SUCCESS && own == rank);
    CHECK(MPI_Comm_size(copy, &many) == MPI_SUCCESS && many == size);
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy) == MPI_SUCCESS && sum == size);
    CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS && MPI_Comm_free(&all) == MPI_SUCCESS);
    CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (end("session_later") != MPI_SUCCESS) return 1;
    once("first");
    once("second");
    /* A process that is in no session has left its job, and may end as it likes. */
    if (is_ours() && rank % 2) _exit(0);
    return 0;
}
