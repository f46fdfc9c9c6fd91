/* Objects that the program frees while operations still need them: the functions of the program that are
 * called at the end are told of objects that they can use.
 *
 * Only here: MPICH 5.0.2 fails an assertion when a datatype is freed before its operation is over. */
#include "check.h"

static int calls, failures;

/* The program's own integers, with a gap behind each. */
static void adds(void *in, void *inout, int *length, MPI_Datatype *type)
{
    MPI_Aint lower, extent;
    int bytes;
    char name[MPI_MAX_OBJECT_NAME];
    int letters = 0;
    CHECK(MPI_Type_get_extent(*type, &lower, &extent) == MPI_SUCCESS);
    CHECK(lower == 0 && extent == 2 * sizeof(int));
    CHECK(MPI_Type_size(*type, &bytes) == MPI_SUCCESS && bytes == sizeof(int));
    CHECK(MPI_Type_get_name(*type, name, &letters) == MPI_SUCCESS && strcmp(name, "gaps") == 0);
    for (int at = 0; at < *length; at++) ((int *)inout)[2 * at] += ((int *)in)[2 * at];
    calls++;
}

static MPI_Datatype gaps(void)
{
    MPI_Datatype made;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &made);
    MPI_Type_set_name(made, "gaps");
    MPI_Type_commit(&made);
    return made;
}

static void check_sums(const int *sums)
{
    CHECK(sums[0] == size * (size - 1) / 2 && sums[2] == size);
    CHECK(sums[1] == -1 && sums[3] == -1);
}

/* Datatypes are freed before operations of the program combine items of them. */
static void datatypes(void)
{
    int mine[4] = {rank, 0, 1, 0}, sums[4] = {-1, -1, -1, -1}, again[4];
    MPI_Op operation;
    MPI_Datatype one = gaps(), other = gaps(), next;
    MPI_Request request, kept;
    MPI_Op_create(adds, 1, &operation);
    MPI_Iallreduce(mine, sums, 2, one, operation, MPI_COMM_WORLD, &request);
    MPI_Allreduce_init(mine, again, 2, other, operation, MPI_COMM_WORLD, MPI_INFO_NULL, &kept);
    CHECK(MPI_Type_free(&one) == MPI_SUCCESS && MPI_Type_free(&other) == MPI_SUCCESS);
    CHECK(MPI_Op_free(&operation) == MPI_SUCCESS);
    next = gaps();
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    check_sums(sums);
    CHECK(MPI_Type_free(&next) == MPI_SUCCESS);
    for (int time = 0; time < 3; time++) {
        for (int at = 0; at < 4; at++) again[at] = -1;
        CHECK(MPI_Start(&kept) == MPI_SUCCESS && MPI_Wait(&kept, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        check_sums(again);
    }
    CHECK(MPI_Request_free(&kept) == MPI_SUCCESS);
    CHECK(size == 1 || calls > 0);
}

static void fails(MPI_Comm *comm, int *code, ...)
{
    int own = -1, many = -1, class_ = -1;
    CHECK(MPI_Comm_rank(*comm, &own) == MPI_SUCCESS && own == rank);
    CHECK(MPI_Comm_size(*comm, &many) == MPI_SUCCESS && many == size);
    MPI_Error_class(*code, &class_);
    CHECK(class_ == MPI_ERR_TRUNCATE);
    failures++;
}

/* A communicator and its handler are freed before a receive in it fails. */
static void handlers(void)
{
    int two[2] = {1, 2}, room = 0;
    MPI_Comm copy;
    MPI_Errhandler handler;
    MPI_Request request, receive;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_create_errhandler(fails, &handler);
    MPI_Comm_set_errhandler(copy, handler);
    MPI_Errhandler_free(&handler);
    MPI_Irecv(&room, 1, MPI_INT, rank, 1, copy, &receive);
    MPI_Isend(two, 2, MPI_INT, rank, 1, copy, &request);
    CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS && copy == MPI_COMM_NULL);
    CHECK(MPI_Wait(&receive, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(failures == 1);
}

static int copies(MPI_Comm comm, int key, void *state, void *value, void *copied, int *flag)
{
    int many = -1;
    (void)key;
    (void)state;
    CHECK(MPI_Comm_size(comm, &many) == MPI_SUCCESS && many == size);
    *(void **)copied = value;
    *flag = 1;
    return MPI_SUCCESS;
}

/* A communicator, and a key, are freed while a copy is being made. */
static void attributes(void)
{
    static int value;
    int key, freed, flag = 0;
    void *found = NULL;
    MPI_Comm parent, copy;
    MPI_Request request;
    MPI_Comm_create_keyval(copies, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_set_attr(parent, key, &value);
    MPI_Comm_idup(parent, &copy, &request);
    freed = key;
    MPI_Comm_free_keyval(&freed);
    CHECK(MPI_Comm_free(&parent) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_attr(copy, key, &found, &flag) == MPI_SUCCESS && flag && found == &value);
    CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    datatypes();
    handlers();
    attributes();
    return end("freed_early");
}
