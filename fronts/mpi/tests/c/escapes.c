/* Every kind of function of the program that the library calls leaves it on its own way: it jumps, or throws
 * where this is compiled as C++ (escapes_cpp.cpp). The library goes on: nothing is half done, nobody waits. */
#include "check.h"
#include "leaves.h"

#ifdef __cplusplus
#define NAME "escapes_cpp"
#define ESCAPE() throw 7
/* Whether STATEMENT escaped. */
#define ESCAPES(STATEMENT)               \
    ([&]() -> bool {                     \
        try {                            \
            STATEMENT;                   \
        } catch (int) {                  \
            return true;                 \
        }                                \
        return false;                    \
    }())
#else
#include <setjmp.h>
static jmp_buf outside;
static int escaped;
#define NAME "escapes"
#define ESCAPE() longjmp(outside, 1)
#define ESCAPES(STATEMENT)                                                             \
    (setjmp(outside) == 0 ? ((void)(STATEMENT), escaped = 0) : (escaped = 1), escaped)
#endif

static int is_armed;

static void maybe(void)
{
    if (is_armed) ESCAPE();
}

static void combines(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    maybe();
    for (int place = 0; place < *length; place++) ((int *)inout)[place] += ((int *)in)[place];
}

static void handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    maybe();
}

static void session_handler(MPI_Session *session, int *code, ...)
{
    (void)session, (void)code;
    maybe();
}

static int copies(MPI_Comm comm, int key, void *extra, void *value, void *place, int *flag)
{
    (void)comm, (void)key, (void)extra;
    maybe();
    *(void **)place = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int deleted;

static int deletes(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    maybe();
    deleted++;
    return MPI_SUCCESS;
}

static int copies_type(MPI_Datatype type, int key, void *extra, void *value, void *place, int *flag)
{
    (void)type, (void)key, (void)extra;
    maybe();
    *(void **)place = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int deletes_type(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)value, (void)extra;
    maybe();
    deleted++;
    return MPI_SUCCESS;
}

static int query(void *state, MPI_Status *status)
{
    if (state == &is_armed) maybe();
    MPI_Status_set_elements(status, MPI_INT, 3);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = 0;
    return MPI_SUCCESS;
}

static int frees(void *state)
{
    if (state == &deleted) maybe();
    return MPI_SUCCESS;
}

static int cancels(void *state, int complete)
{
    (void)state, (void)complete;
    maybe();
    return MPI_SUCCESS;
}

/* Messages and collective operations of all still go their way. */
static void all_is_well(void)
{
    int all = 0, token = -1;
    is_armed = 0;
    MPI_Request request;
    MPI_Irecv(&token, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &request);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(token == (rank + size - 1) % size);
    CHECK(MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(all == size * (size - 1) / 2);
}

static void from_handlers(void)
{
    MPI_Errhandler own;
    MPI_Session session;
    MPI_Comm comm;
    int count;
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, own);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Send(&rank, 1, MPI_INT, size, 0, comm)));
    is_armed = 1;
    CHECK(ESCAPES(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER)));
    MPI_Request request;
    int in[2];
    CHECK(MPI_Irecv(in, 1, MPI_INT, rank, 3, comm, &request) == MPI_SUCCESS);
    is_armed = 0;
    CHECK(MPI_Send(in, 2, MPI_INT, rank, 3, comm) == MPI_SUCCESS);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Wait(&request, MPI_STATUS_IGNORE)));
    all_is_well();
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&own);
    MPI_Session_create_errhandler(session_handler, &own);
    CHECK(MPI_Session_init(MPI_INFO_NULL, own, &session) == MPI_SUCCESS);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Session_get_num_psets(session, MPI_INFO_NULL, NULL)));
    is_armed = 0;
    CHECK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count) == MPI_SUCCESS && count >= 2);
    MPI_Session_finalize(&session);
    MPI_Errhandler_free(&own);
    all_is_well();
}

static void from_attributes(void)
{
    MPI_Comm comm, copy = MPI_COMM_NULL;
    int key;
    MPI_Comm_create_keyval(copies, deletes, &key, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_attr(comm, key, &key);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Comm_dup(comm, &copy)) && copy == MPI_COMM_NULL);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Comm_delete_attr(comm, key)));
    /* Whether the attribute is there after that is not said; the key can be used. */
    is_armed = 0;
    MPI_Comm_set_attr(comm, key, &key);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Comm_set_attr(comm, key, NULL)));
    all_is_well();
    MPI_Comm_set_attr(comm, key, &key);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Comm_free(&comm)));
    all_is_well();
    MPI_Comm_free_keyval(&key);

    MPI_Datatype type, twin = MPI_DATATYPE_NULL;
    MPI_Type_create_keyval(copies_type, deletes_type, &key, NULL);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_set_attr(type, key, &key);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Type_dup(type, &twin)) && twin == MPI_DATATYPE_NULL);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Type_delete_attr(type, key)));
    is_armed = 0;
    MPI_Type_set_attr(type, key, &key);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Type_free(&type)));
    all_is_well();
    MPI_Type_free_keyval(&key);
}

static void from_requests(void)
{
    MPI_Request request, all[2];
    int flag, index, in = -1;
    MPI_Grequest_start(query, frees, cancels, &is_armed, &request);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Cancel(&request)));
    MPI_Grequest_complete(request);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE)));
    is_armed = 0;
    if (request != MPI_REQUEST_NULL) CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    all_is_well();
    /* Out of a wait for several, whose others are not lost. */
    MPI_Grequest_start(query, frees, cancels, &is_armed, &all[0]);
    MPI_Irecv(&in, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &all[1]);
    MPI_Grequest_complete(all[0]);
    MPI_Send(&rank, 1, MPI_INT, rank, 5, MPI_COMM_WORLD);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Waitall(2, all, MPI_STATUSES_IGNORE)));
    all_is_well();
    CHECK(all[0] == MPI_REQUEST_NULL);
    CHECK(MPI_Wait(&all[1], MPI_STATUS_IGNORE) == MPI_SUCCESS && in == rank);
    /* What frees it is called at its end. */
    MPI_Grequest_start(query, frees, cancels, &deleted, &request);
    MPI_Grequest_complete(request);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE)));
    CHECK(request == MPI_REQUEST_NULL);
    MPI_Grequest_start(query, frees, cancels, &deleted, &request);
    MPI_Grequest_complete(request);
    is_armed = 1;
    CHECK(ESCAPES(MPI_Request_free(&request)));
    all_is_well();
}

/* On all processes at once; those of whom nobody needs a value call no operation. */
static void from_operations(void)
{
    MPI_Op op;
    MPI_Op_create(combines, 1, &op);
    for (int round = 0; round < 6; round++) {
        int mine[3] = {rank, 1, 2}, result[3] = {0, 0, 0}, counts[48], has_escaped;
        for (int place = 0; place < size; place++) counts[place] = place == 0 ? 3 : 0;
        is_armed = 1;
        switch (round) {
        case 0: has_escaped = ESCAPES(MPI_Allreduce(mine, result, 3, MPI_INT, op, MPI_COMM_WORLD)); break;
        case 1: has_escaped = ESCAPES(MPI_Reduce(mine, result, 3, MPI_INT, op, 0, MPI_COMM_WORLD)); break;
        case 2: has_escaped = ESCAPES(MPI_Scan(mine, result, 3, MPI_INT, op, MPI_COMM_WORLD)); break;
        case 3: has_escaped = ESCAPES(MPI_Exscan(mine, result, 3, MPI_INT, op, MPI_COMM_WORLD)); break;
        case 4:
            has_escaped =
                ESCAPES(MPI_Reduce_scatter(mine, result, counts, MPI_INT, op, MPI_COMM_WORLD));
            break;
        default: has_escaped = ESCAPES(MPI_Reduce_local(mine, result, 3, MPI_INT, op)); break;
        }
        if (round == 5 || (round == 0 && size > 1)) CHECK(has_escaped);
        all_is_well();
        CHECK(MPI_Allreduce(mine, result, 3, MPI_INT, op, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(result[0] == size * (size - 1) / 2 && result[1] == size && result[2] == 2 * size);
    }
    MPI_Op_free(&op);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int round = 0; round < 5; round++) {
        from_handlers();
        from_attributes();
        from_requests();
        from_operations();
    }
    return end(NAME);
}
