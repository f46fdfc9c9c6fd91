/* Attributes of communicators and datatypes: set, copied, deleted; those that are predefined. */
#include "check.h"

static int copied, deleted, refuses;

static int copies(MPI_Comm comm, int key, void *extra, void *value, void *place, int *flag)
{
    (void)comm, (void)key;
    CHECK(extra == &copied);
    copied++;
    if (refuses) return MPI_ERR_OTHER;
    *(void **)place = (char *)value + 1;
    *flag = value != NULL;
    return MPI_SUCCESS;
}

static int deletes(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value;
    CHECK(extra == &copied);
    if (refuses) return MPI_ERR_OTHER;
    deleted++;
    return MPI_SUCCESS;
}

static int copies_type(MPI_Datatype type, int key, void *extra, void *value, void *place, int *flag)
{
    (void)type, (void)key, (void)extra;
    copied++;
    *(void **)place = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int deletes_type(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)value, (void)extra;
    deleted++;
    return MPI_SUCCESS;
}

static char places[4];

static void communicators(void)
{
    MPI_Comm comm, copy;
    int key, always, never, flag;
    char *value;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    CHECK(MPI_Comm_create_keyval(copies, deletes, &key, &copied) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &always, NULL) ==
          MPI_SUCCESS);
    CHECK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &never, NULL) ==
          MPI_SUCCESS);
    CHECK(MPI_Comm_get_attr(comm, key, &value, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Comm_set_attr(comm, key, places) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_attr(comm, always, places + 2) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_attr(comm, never, places + 3) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_attr(comm, key, &value, &flag) == MPI_SUCCESS && flag && value == places);
    copied = deleted = 0;
    CHECK(MPI_Comm_dup(comm, &copy) == MPI_SUCCESS && copied == 1);
    CHECK(MPI_Comm_get_attr(copy, key, &value, &flag) == MPI_SUCCESS && value == places + 1);
    CHECK(MPI_Comm_get_attr(copy, always, &value, &flag) == MPI_SUCCESS && value == places + 2);
    CHECK(MPI_Comm_get_attr(copy, never, &value, &flag) == MPI_SUCCESS && !flag);
    /* An old value is deleted first. */
    CHECK(MPI_Comm_set_attr(copy, key, NULL) == MPI_SUCCESS && deleted == 1);
    CHECK(MPI_Comm_get_attr(copy, key, &value, &flag) == MPI_SUCCESS && flag && !value);
    CHECK(MPI_Comm_delete_attr(copy, key) == MPI_SUCCESS && deleted == 2);
    CHECK(MPI_Comm_get_attr(copy, key, &value, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS && deleted == 2);

    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    refuses = 1;
    CHECK(MPI_Comm_dup(comm, &copy) != MPI_SUCCESS);
    CHECK(MPI_Comm_delete_attr(comm, key) != MPI_SUCCESS);
    CHECK(MPI_Comm_get_attr(comm, key, &value, &flag) == MPI_SUCCESS && value == places);
    refuses = 0;
    /* The key goes, its attributes stay with the object. */
    CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && deleted == 3);
    MPI_Comm_free_keyval(&always);
    MPI_Comm_free_keyval(&never);
}

/* A key that was freed names the attributes that are there until they go, and no new key does. */
static void freed_key(void)
{
    MPI_Comm comm;
    int key, old, other, flag;
    char *value;

    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deletes, &key, &copied);
    CHECK(MPI_Comm_set_attr(comm, key, places) == MPI_SUCCESS);
    old = key;
    CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_attr(comm, old, &value, &flag) == MPI_SUCCESS && flag && value == places);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL);
    CHECK(MPI_Comm_get_attr(comm, other, &value, &flag) == MPI_SUCCESS && !flag);
    deleted = 0;
    CHECK(MPI_Comm_set_attr(comm, other, places + 1) == MPI_SUCCESS && deleted == 0);
    CHECK(MPI_Comm_delete_attr(comm, old) == MPI_SUCCESS && deleted == 1);
    if (is_ours()) CHECK(MPI_Comm_get_attr(comm, old, &value, &flag) == MPI_ERR_KEYVAL);
    CHECK(MPI_Comm_get_attr(comm, other, &value, &flag) == MPI_SUCCESS && value == places + 1);
    MPI_Comm_free_keyval(&other);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && deleted == 1);
}

static void datatypes(void)
{
    MPI_Datatype type, copy;
    int key, flag;
    char *value;
    MPI_Type_contiguous(2, MPI_INT, &type);
    CHECK(MPI_Type_create_keyval(copies_type, deletes_type, &key, NULL) == MPI_SUCCESS);
    CHECK(MPI_Type_set_attr(type, key, places) == MPI_SUCCESS);
    copied = deleted = 0;
    CHECK(MPI_Type_dup(type, &copy) == MPI_SUCCESS && copied == 1);
    CHECK(MPI_Type_get_attr(copy, key, &value, &flag) == MPI_SUCCESS && flag && value == places);
    CHECK(MPI_Type_delete_attr(copy, key) == MPI_SUCCESS && deleted == 1);
    CHECK(MPI_Type_get_attr(copy, key, &value, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Type_free(&copy) == MPI_SUCCESS && deleted == 1);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS && deleted == 2);
    CHECK(MPI_Type_set_attr(MPI_INT, key, places) == MPI_SUCCESS);
    CHECK(MPI_Type_delete_attr(MPI_INT, key) == MPI_SUCCESS && deleted == 3);
    CHECK(MPI_Type_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
}

static void predefined(void)
{
    int *value, flag;
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag) == MPI_SUCCESS);
    CHECK(flag && *value >= 32767);
    int largest = *value;
    if (size > 1 && rank < 2) {
        int received = -1;
        MPI_Request request;
        MPI_Irecv(&received, 1, MPI_INT, 1 - rank, largest, MPI_COMM_WORLD, &request);
        MPI_Send(&rank, 1, MPI_INT, 1 - rank, largest, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(received == 1 - rank);
    }
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag) == MPI_SUCCESS);
    CHECK(!flag || *value == 0 || *value == 1);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag) == MPI_SUCCESS);
    CHECK(!flag || *value >= size);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag) == MPI_SUCCESS);
    CHECK(flag && *value >= MPI_ERR_LASTCODE);
    int class_, before = *value;
    MPI_Add_error_class(&class_);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag) == MPI_SUCCESS);
    CHECK(*value == class_ && *value > before);
}

static void old_names(void)
{
    int key, flag;
    char *value;
    CHECK(MPI_Keyval_create(MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, &key, NULL) == MPI_SUCCESS);
    CHECK(MPI_Attr_put(MPI_COMM_SELF, key, places) == MPI_SUCCESS);
    CHECK(MPI_Attr_get(MPI_COMM_SELF, key, &value, &flag) == MPI_SUCCESS && value == places);
    CHECK(MPI_Attr_delete(MPI_COMM_SELF, key) == MPI_SUCCESS);
    CHECK(MPI_Attr_get(MPI_COMM_SELF, key, &value, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Keyval_free(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
}

/* Attributes of MPI_COMM_SELF are deleted when MPI ends, the last that was set first. */
static int order;

static int last(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)extra;
    if (order++ != (int)((char *)value - places)) {
        fprintf(stderr, "rank %d: attributes are deleted in the wrong order\n", rank);
        exit(1);
    }
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int keys[2];
    begin(&argc, &argv);
    communicators();
    freed_key();
    datatypes();
    predefined();
    old_names();
    for (int i = 0; i < 2; i++) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last, &keys[i], NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, keys[i], places + 1 - i);
    }
    int code = end("attribute");
    return order == 2 ? code : 1;
}
