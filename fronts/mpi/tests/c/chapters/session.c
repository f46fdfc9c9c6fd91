/* Sessions: before MPI_Init, beside it, with sets of processes and communicators of their own. */
#include "check.h"

static int called;

static void handles(MPI_Session *session, int *code, ...)
{
    (void)session;
    called = *code;
}

static MPI_Session opened(MPI_Errhandler handler)
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Info info, used;
    char value[64];
    int length = sizeof value, flag;
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "thread_level", "MPI_THREAD_SINGLE") == MPI_SUCCESS);
    CHECK(MPI_Session_init(info, handler, &session) == MPI_SUCCESS);
    CHECK(session != MPI_SESSION_NULL && MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Session_get_info(session, &used) == MPI_SUCCESS);
    CHECK(MPI_Info_get_string(used, "thread_level", &length, value, &flag) == MPI_SUCCESS && flag);
    CHECK(!strncmp(value, "MPI_THREAD_", 11));
    MPI_Info_free(&used);
    return session;
}

/* The ranks of the set, and a sum over a communicator of it. */
static void of_set(MPI_Session session, const char *name, const char *tag, int *own, int *many)
{
    MPI_Group group;
    MPI_Comm comm;
    MPI_Info info;
    char text[16];
    int one = 1, sum = 0, length = sizeof text, flag;
    CHECK(MPI_Group_from_session_pset(session, name, &group) == MPI_SUCCESS);
    MPI_Group_rank(group, own);
    MPI_Group_size(group, many);
    CHECK(MPI_Session_get_pset_info(session, name, &info) == MPI_SUCCESS);
    CHECK(MPI_Info_get_string(info, "mpi_size", &length, text, &flag) == MPI_SUCCESS && flag);
    CHECK(atoi(text) == *many);
    MPI_Info_free(&info);
    CHECK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) ==
          MPI_SUCCESS);
    CHECK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == *many);
    MPI_Group_free(&group);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
}

static void names(MPI_Session session)
{
    int count, has_world = 0, has_self = 0;
    char name[MPI_MAX_PSET_NAME_LEN];
    CHECK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count) == MPI_SUCCESS && count >= 2);
    for (int i = 0; i < count; i++) {
        int length = 0, room;
        CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL) == MPI_SUCCESS);
        CHECK(length > 1);
        room = length;
        CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &room, name) == MPI_SUCCESS);
        CHECK((int)strlen(name) == length - 1);
        has_world |= !strcmp(name, "mpi://WORLD");
        has_self |= !strcmp(name, "mpi://SELF");
    }
    CHECK(has_world && has_self);
}

/* Memory for buffered messages of a session's communicators. */
static void buffers(MPI_Session session)
{
    static char room[4096];
    void *place = NULL;
    int bytes = 0;
    MPI_Count many = 0;
    MPI_Request request = MPI_REQUEST_NULL;

    CHECK(MPI_Session_attach_buffer(session, room, sizeof room) == MPI_SUCCESS);
    CHECK(MPI_Session_flush_buffer(session) == MPI_SUCCESS);
    CHECK(MPI_Session_iflush_buffer(session, &request) == MPI_SUCCESS);
    CHECK(request != MPI_REQUEST_NULL);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Session_detach_buffer(session, &place, &bytes) == MPI_SUCCESS);
    CHECK(place == room && bytes == sizeof room);
    CHECK(MPI_Session_attach_buffer_c(session, room + 1, sizeof room - 1) == MPI_SUCCESS);
    CHECK(MPI_Session_detach_buffer_c(session, &place, &many) == MPI_SUCCESS);
    CHECK(place == room + 1 && many == sizeof room - 1);
}

/* Messages on communicators of the session, and on those made of them, wait in its buffer. */
static void buffered(MPI_Session session)
{
    static char room[1000 + MPI_BSEND_OVERHEAD];
    void *place = NULL;
    int bytes = 0, out = 5, in, own, class_ = -1;
    MPI_Group group, derived;
    MPI_Comm comms[3];
    CHECK(MPI_Group_from_session_pset(session, "mpi://SELF", &group) == MPI_SUCCESS);
    CHECK(MPI_Group_rank(group, &own) == MPI_SUCCESS);
    CHECK(MPI_Group_incl(group, 1, &own, &derived) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_from_group(derived, "buffered", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                     &comms[0]) == MPI_SUCCESS);
    CHECK(MPI_Comm_dup(comms[0], &comms[1]) == MPI_SUCCESS);
    CHECK(MPI_Comm_split(comms[1], 0, 0, &comms[2]) == MPI_SUCCESS);
    CHECK(MPI_Session_attach_buffer(session, room, sizeof room) == MPI_SUCCESS);
    for (int which = 0; which < 3; which++) {
        CHECK(MPI_Bsend(&out, 1, MPI_INT, 0, 3, comms[which]) == MPI_SUCCESS);
        in = 0;
        CHECK(MPI_Recv(&in, 1, MPI_INT, 0, 3, comms[which], MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(in == 5);
    }
    CHECK(MPI_Session_detach_buffer(session, &place, &bytes) == MPI_SUCCESS && place == room);
    for (int which = 0; which < 3; which++) {
        MPI_Error_class(MPI_Bsend(&out, 1, MPI_INT, 0, 3, comms[which]), &class_);
        CHECK(class_ == MPI_ERR_BUFFER || !is_ours());
        CHECK(MPI_Comm_free(&comms[which]) == MPI_SUCCESS);
    }
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS && MPI_Group_free(&derived) == MPI_SUCCESS);
}

static void handlers(MPI_Session session)
{
    MPI_Errhandler handler, before;
    int class_, count;
    CHECK(MPI_Session_create_errhandler(handles, &handler) == MPI_SUCCESS);
    CHECK(MPI_Session_get_errhandler(session, &before) == MPI_SUCCESS);
    CHECK(before == MPI_ERRORS_RETURN);
    CHECK(MPI_Session_set_errhandler(session, handler) == MPI_SUCCESS);
    CHECK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER) == MPI_SUCCESS);
    MPI_Error_class(called, &class_);
    CHECK(class_ == MPI_ERR_OTHER);
    CHECK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS);
    called = MPI_SUCCESS;
    CHECK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count) == MPI_SUCCESS);
    CHECK(called == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    int own, many, flag;
    MPI_Session first = opened(MPI_ERRORS_RETURN), second;
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && !flag);
    of_set(first, "mpi://SELF", "alone", &own, &many);
    CHECK(own == 0 && many == 1);
    of_set(first, "mpi://WORLD", "all", &rank, &size);
    names(first);
    buffers(first);
    buffered(first);
    handlers(first);
    CHECK(MPI_Session_finalize(&first) == MPI_SUCCESS && first == MPI_SESSION_NULL);

    /* Again, and beside MPI_Init, and after MPI_Finalize. */
    second = opened(MPI_ERRORS_ARE_FATAL);
    begin(&argc, &argv);
    of_set(second, "mpi://WORLD", "beside", &own, &many);
    CHECK(own == rank && many == size);
    if (end("session") != MPI_SUCCESS) return 1;
    of_set(second, "mpi://WORLD", "after", &own, &many);
    CHECK(own == rank && many == size);
    CHECK(MPI_Session_finalize(&second) == MPI_SUCCESS);
    return 0;
}
