/* Handles that lead to nothing, for every kind of object: null, freed, of another kind, and mere numbers.
 *
 *   handles             all of them: the class of each mistake, and whose error handler is told
 *   handles KIND HOW    one of them, which ends the job with its text */
#include "check.h"

/* The error handlers of a communicator of the program and of MPI_COMM_SELF write down what they are told. */
static int told_own, told_self;

static void own_handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    told_own = *code;
}

static void self_handler(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm == MPI_COMM_SELF);
    told_self = *code;
}

static MPI_Comm own;

static int no_copy(MPI_Comm comm, int key, void *extra, void *value, void *place, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)value, (void)place;
    *flag = 0;
    return MPI_SUCCESS;
}

static void nothing(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)length, (void)type;
}

static int no_query(void *state, MPI_Status *status)
{
    (void)state;
    MPI_Status_set_elements(status, MPI_INT, 0);
    return MPI_SUCCESS;
}

static int no_free(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int no_cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

/* For each kind: what uses a handle, what makes one and gives it back at once. */
static int use_comm(intptr_t handle)
{
    int value = 5;
    return MPI_Bcast(&value, 1, MPI_INT, 0, (MPI_Comm)handle);
}

static intptr_t freed_comm(void)
{
    MPI_Comm comm, copy;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    copy = comm;
    MPI_Comm_free(&comm);
    return (intptr_t)copy;
}

static int use_type(intptr_t handle)
{
    int value = 5;
    return MPI_Send(&value, 1, (MPI_Datatype)handle, MPI_PROC_NULL, 0, own);
}

static intptr_t freed_type(void)
{
    MPI_Datatype type, copy;
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Type_commit(&type);
    copy = type;
    MPI_Type_free(&type);
    return (intptr_t)copy;
}

static int use_op(intptr_t handle)
{
    int in = 1, out = 2;
    return MPI_Allreduce(&in, &out, 1, MPI_INT, (MPI_Op)handle, own);
}

static intptr_t freed_op(void)
{
    MPI_Op op, copy;
    MPI_Op_create(nothing, 1, &op);
    copy = op;
    MPI_Op_free(&op);
    return (intptr_t)copy;
}

static int use_group(intptr_t handle)
{
    MPI_Comm comm = MPI_COMM_NULL;
    return MPI_Comm_create(own, (MPI_Group)handle, &comm);
}

static intptr_t freed_group(void)
{
    MPI_Group group, copy;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    copy = group;
    MPI_Group_free(&group);
    return (intptr_t)copy;
}

static int use_request(intptr_t handle)
{
    MPI_Request request = (MPI_Request)handle;
    return MPI_Cancel(&request);
}

static intptr_t freed_request(void)
{
    MPI_Request request, copy;
    MPI_Grequest_start(no_query, no_free, no_cancel, NULL, &request);
    copy = request;
    MPI_Grequest_complete(request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return (intptr_t)copy;
}

static int use_errhandler(intptr_t handle)
{
    return MPI_Comm_set_errhandler(own, (MPI_Errhandler)handle);
}

static intptr_t freed_errhandler(void)
{
    MPI_Errhandler errhandler, copy;
    MPI_Comm_create_errhandler(own_handler, &errhandler);
    copy = errhandler;
    MPI_Errhandler_free(&errhandler);
    return (intptr_t)copy;
}

static int use_info(intptr_t handle)
{
    return MPI_Info_set((MPI_Info)handle, "key", "value");
}

static intptr_t freed_info(void)
{
    MPI_Info info, copy;
    MPI_Info_create(&info);
    copy = info;
    MPI_Info_free(&info);
    return (intptr_t)copy;
}

static int use_message(intptr_t handle)
{
    MPI_Message message = (MPI_Message)handle;
    int value;
    return MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
}

static intptr_t freed_message(void)
{
    MPI_Message message, copy;
    MPI_Request request;
    int value = 5, in;
    MPI_Isend(&value, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request);
    MPI_Mprobe(0, 3, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE);
    copy = message;
    MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return (intptr_t)copy;
}

static int use_session(intptr_t handle)
{
    int count;
    return MPI_Session_get_num_psets((MPI_Session)handle, MPI_INFO_NULL, &count);
}

static intptr_t freed_session(void)
{
    MPI_Session session, copy;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    copy = session;
    MPI_Session_finalize(&session);
    return (intptr_t)copy;
}

static int use_keyval(intptr_t handle)
{
    return MPI_Comm_set_attr(own, (int)handle, NULL);
}

static intptr_t freed_keyval(void)
{
    int key, copy;
    MPI_Comm_create_keyval(no_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    copy = key;
    MPI_Comm_free_keyval(&key);
    return copy;
}

static const struct kind {
    const char *name;
    int (*use)(intptr_t);
    intptr_t (*freed)(void);
    intptr_t null, other;
    int class_;
    /* Whether the call also has a communicator, whose error handler is the right one. */
    int has_comm;
} KINDS[] = {
    {"comm", use_comm, freed_comm, (intptr_t)MPI_COMM_NULL, (intptr_t)MPI_INT, MPI_ERR_COMM, 0},
    {"type", use_type, freed_type, (intptr_t)MPI_DATATYPE_NULL, (intptr_t)MPI_SUM, MPI_ERR_TYPE, 1},
    {"op", use_op, freed_op, (intptr_t)MPI_OP_NULL, (intptr_t)MPI_INT, MPI_ERR_OP, 1},
    {"group", use_group, freed_group, (intptr_t)MPI_GROUP_NULL, (intptr_t)MPI_COMM_WORLD,
     MPI_ERR_GROUP, 1},
    {"request", use_request, freed_request, (intptr_t)MPI_REQUEST_NULL,
     (intptr_t)MPI_MESSAGE_NO_PROC, MPI_ERR_REQUEST, 0},
    {"errhandler", use_errhandler, freed_errhandler, (intptr_t)MPI_ERRHANDLER_NULL,
     (intptr_t)MPI_INFO_ENV, MPI_ERR_ERRHANDLER, 1},
    {"info", use_info, freed_info, (intptr_t)MPI_INFO_NULL, (intptr_t)MPI_COMM_SELF, MPI_ERR_INFO, 0},
    {"message", use_message, freed_message, (intptr_t)MPI_MESSAGE_NULL, (intptr_t)MPI_REQUEST_NULL,
     MPI_ERR_REQUEST, 0},
    {"session", use_session, freed_session, (intptr_t)MPI_SESSION_NULL, (intptr_t)MPI_GROUP_EMPTY,
     MPI_ERR_SESSION, 0},
    {"keyval", use_keyval, freed_keyval, MPI_KEYVAL_INVALID, MPI_TAG_UB, MPI_ERR_KEYVAL, 1},
};

static const char *const HOW[] = {"null", "freed", "other", "garbage"};

static intptr_t handle_of(const struct kind *kind, const char *how)
{
    if (!strcmp(how, "null")) return kind->null;
    if (!strcmp(how, "freed")) return kind->freed();
    if (!strcmp(how, "other")) return kind->other;
    return 0x123456789;
}

static void check(const struct kind *kind, const char *how)
{
    intptr_t handle = handle_of(kind, how);
    int class_ = -1, code;
    told_own = told_self = MPI_SUCCESS;
    code = kind->use(handle);
    MPI_Error_class(code, &class_);
    if (class_ != kind->class_ || told_own != (kind->has_comm ? code : 0) ||
        told_self != (kind->has_comm ? 0 : code)) {
        fprintf(stderr, "%s %s: class %d, own handler %d, that of MPI_COMM_SELF %d\n", kind->name, how,
                class_, told_own, told_self);
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    if (argc > 2) {
        for (size_t number = 0; number < sizeof KINDS / sizeof *KINDS; number++)
            if (!strcmp(argv[1], KINDS[number].name)) KINDS[number].use(handle_of(&KINDS[number], argv[2]));
        puts("nobody noticed the mistake");
        return MPI_Finalize();
    }
    MPI_Errhandler handlers[2];
    MPI_Comm_create_errhandler(own_handler, &handlers[0]);
    MPI_Comm_create_errhandler(self_handler, &handlers[1]);
    MPI_Comm_set_errhandler(own, handlers[0]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handlers[1]);
    for (size_t number = 0; number < sizeof KINDS / sizeof *KINDS; number++)
        for (size_t how = 0; how < sizeof HOW / sizeof *HOW; how++) check(&KINDS[number], HOW[how]);
    /* All of them still work. */
    MPI_Comm copy;
    CHECK(MPI_Comm_dup(own, &copy) == MPI_SUCCESS && MPI_Comm_free(&copy) == MPI_SUCCESS);
    MPI_Errhandler_free(&handlers[0]);
    MPI_Errhandler_free(&handlers[1]);
    MPI_Comm_free(&own);
    return end("handles");
}
