/* Copies of communicators and what is attached to them; freed handles are noticed. */
#include "check.h"

static int copied, deleted;

static int copies(MPI_Comm comm, int key, void *extra, void *value, void *place, int *flag)
{
    (void)key;
    CHECK(comm == MPI_COMM_WORLD && extra == &copied);
    copied++;
    *(void **)place = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int deletes(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    MPI_Comm copy, gone;
    MPI_Datatype type;
    char name[MPI_MAX_OBJECT_NAME];
    int key, length, result, class_, data[6] = {0}, all[2] = {0, 0}, pair[2];

    begin(&argc, &argv);
    CHECK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length) == MPI_SUCCESS);
    CHECK(!strcmp(name, "MPI_COMM_WORLD") && length == 14);
    CHECK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length) == MPI_SUCCESS);
    CHECK(!strcmp(name, "MPI_COMM_NULL") && length == 13);
    CHECK(MPI_Comm_get_parent(&copy) == MPI_SUCCESS && copy == MPI_COMM_NULL);
    CHECK(MPI_Comm_create_keyval(copies, deletes, &key, &copied) == MPI_SUCCESS);
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == MPI_SUCCESS);
    CHECK(MPI_Comm_compare(MPI_COMM_WORLD, copy, &result) == MPI_SUCCESS);
    CHECK(result == MPI_CONGRUENT);
    CHECK(MPI_Comm_get_name(copy, name, &length) == MPI_SUCCESS && length == 0);
    CHECK(MPI_Comm_set_name(copy, "a copy") == MPI_SUCCESS);
    CHECK(MPI_Comm_get_name(copy, name, &length) == MPI_SUCCESS && !strcmp(name, "a copy"));

    /* A datatype of the program, through a collective operation. */
    CHECK(MPI_Type_contiguous(3, MPI_INT, &type) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&type) == MPI_SUCCESS);
    if (rank == 0)
        for (length = 0; length < 6; length++) data[length] = length + 1;
    CHECK(MPI_Bcast(data, 2, type, 0, copy) == MPI_SUCCESS);
    for (length = 0; length < 6; length++) CHECK(data[length] == length + 1);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    pair[0] = 1;
    pair[1] = rank;
    CHECK(MPI_Allreduce(pair, all, 2, MPI_INT, MPI_SUM, copy) == MPI_SUCCESS);
    CHECK(all[0] == size && all[1] == size * (size - 1) / 2);

    gone = copy;
    CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS && copy == MPI_COMM_NULL);
    CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Comm_rank((MPI_Comm)MPI_GROUP_EMPTY, &result), &class_);
    CHECK(class_ == MPI_ERR_COMM);
    CHECK(gone != MPI_COMM_NULL);
    return end("communicator");
}
