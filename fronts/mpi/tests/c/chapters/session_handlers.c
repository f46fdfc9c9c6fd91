/* Functions that are given the error handler of the object that they make: it is told of their own mistakes.
 *
 * Only here: others take more group names, and leave these handlers alone. */
#include "check.h"

static int of_session, of_comm;

static void session_fails(MPI_Session *session, int *code, ...)
{
    of_session = *code;
    CHECK(*session == MPI_SESSION_NULL);
}

static void comm_fails(MPI_Comm *comm, int *code, ...)
{
    of_comm = *code;
    CHECK(*comm == MPI_COMM_NULL);
}

static int class_of(int code)
{
    int class_ = -1;
    CHECK(MPI_Error_class(code, &class_) == MPI_SUCCESS);
    return class_;
}

static void begins_wrongly(void)
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Errhandler handler;
    MPI_Info info;
    int code;
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "thread_level", "MPI_THREAD_SOME") == MPI_SUCCESS);
    CHECK(MPI_Session_create_errhandler(session_fails, &handler) == MPI_SUCCESS);
    code = MPI_Session_init(info, handler, &session);
    CHECK(code == of_session && class_of(code) == MPI_ERR_ARG && session == MPI_SESSION_NULL);
    CHECK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session) == code);
    CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS && MPI_Info_free(&info) == MPI_SUCCESS);
}

/* Groups that this process is no member of, and leaders that there are not. */
static void makes_wrongly(void)
{
    MPI_Session session;
    MPI_Errhandler handler;
    MPI_Group all, others;
    MPI_Comm made = MPI_COMM_NULL;
    int code, mine;
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_errhandler(comm_fails, &handler) == MPI_SUCCESS);
    CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all) == MPI_SUCCESS);
    CHECK(MPI_Group_rank(all, &mine) == MPI_SUCCESS && MPI_Group_size(all, &size) == MPI_SUCCESS);
    if (size > 1) {
        CHECK(MPI_Group_excl(all, 1, &mine, &others) == MPI_SUCCESS);
        code = MPI_Comm_create_from_group(others, "o", MPI_INFO_NULL, handler, &made);
        CHECK(code == of_comm && class_of(code) == MPI_ERR_GROUP && made == MPI_COMM_NULL);
        code = MPI_Comm_create_from_group(others, "o", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
        CHECK(class_of(code) == MPI_ERR_GROUP);
        CHECK(MPI_Group_free(&others) == MPI_SUCCESS);
    }
    of_comm = MPI_SUCCESS;
    code = MPI_Intercomm_create_from_groups(all, size, all, 0, "i", MPI_INFO_NULL, handler, &made);
    CHECK(code == of_comm && class_of(code) == MPI_ERR_RANK && made == MPI_COMM_NULL);
    CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS && MPI_Group_free(&all) == MPI_SUCCESS);
    CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    begins_wrongly();
    makes_wrongly();
    begin(&argc, &argv);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL) == MPI_SUCCESS);
    makes_wrongly();
    return end("session_handlers");
}
