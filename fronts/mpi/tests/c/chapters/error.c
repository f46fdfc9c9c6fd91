/* Error handlers: predefined ones and the program's own, inheritance, jumping out; classes and codes. */
#include <setjmp.h>

#include "check.h"

static int calls, last;
static MPI_Comm told;
static jmp_buf place;

static void notes(MPI_Comm *comm, int *code, ...)
{
    calls++;
    last = *code;
    told = *comm;
}

static void jumps(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    last = *code;
    longjmp(place, 1);
}

static int class_of(int code)
{
    int class_ = -1;
    CHECK(MPI_Error_class(code, &class_) == MPI_SUCCESS);
    return class_;
}

static void handlers(void)
{
    MPI_Errhandler own, got, other;
    MPI_Comm copy;
    int code, value = 0;

    CHECK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got) == MPI_SUCCESS);
    CHECK(got == MPI_ERRORS_ARE_FATAL);
    CHECK(MPI_Errhandler_free(&got) == MPI_SUCCESS && got == MPI_ERRHANDLER_NULL);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    code = MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    CHECK(class_of(code) == MPI_ERR_RANK);

    CHECK(MPI_Comm_create_errhandler(notes, &own) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, own) == MPI_SUCCESS);
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_errhandler(copy, &got) == MPI_SUCCESS && got == own);
    CHECK(MPI_Errhandler_free(&got) == MPI_SUCCESS && got == MPI_ERRHANDLER_NULL);
    CHECK(MPI_Errhandler_free(&own) == MPI_SUCCESS && own == MPI_ERRHANDLER_NULL);
    /* What the function returns then differs between libraries. */
    MPI_Send(&value, -1, MPI_INT, 0, 0, copy);
    CHECK(calls == 1 && told == copy && class_of(last) == MPI_ERR_COUNT);
    CHECK(MPI_Comm_call_errhandler(copy, MPI_ERR_OTHER) == MPI_SUCCESS);
    CHECK(calls == 2 && last == MPI_ERR_OTHER);

    CHECK(MPI_Comm_create_errhandler(jumps, &other) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(copy, other) == MPI_SUCCESS);
    CHECK(MPI_Errhandler_free(&other) == MPI_SUCCESS);
    if (setjmp(place) == 0) {
        MPI_Send(&value, 1, MPI_INT, 0, -5, copy);
        CHECK(0);
    }
    CHECK(class_of(last) == MPI_ERR_TAG);
    CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS && copy == MPI_COMM_NULL);

    /* What is about no communicator is told to MPI_COMM_SELF. */
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(class_of(MPI_Comm_rank(MPI_COMM_NULL, &value)) == MPI_ERR_COMM);
    CHECK(class_of(MPI_Comm_rank((MPI_Comm)0, &value)) == MPI_ERR_COMM);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL) == MPI_SUCCESS);
}

static int own_code;

static int fails(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)in, (void)out, (void)flag;
    return own_code;
}

/* The text of a code of the program is what the program gave it, also when a call has just failed with it. */
static void own_texts(void)
{
    char text[MPI_MAX_ERROR_STRING] = "?";
    int class_, key, length;
    MPI_Comm copy = MPI_COMM_NULL;

    MPI_Add_error_class(&class_);
    MPI_Add_error_code(class_, &own_code);
    MPI_Comm_create_keyval(fails, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Comm_dup(MPI_COMM_WORLD, &copy)) == class_ || !is_ours());
    CHECK(MPI_Error_string(own_code, text, &length) == MPI_SUCCESS && length == 0 && !*text);
    MPI_Add_error_string(own_code, "nothing is copied today");
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &copy) != MPI_SUCCESS);
    CHECK(MPI_Error_string(own_code, text, &length) == MPI_SUCCESS);
    CHECK(!strcmp(text, "nothing is copied today") && length == (int)strlen(text));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_free_keyval(&key);
    MPI_Remove_error_string(own_code);
    MPI_Remove_error_code(own_code);
    MPI_Remove_error_class(class_);
}

static void codes(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int class_, code, length;

    CHECK(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length) == MPI_SUCCESS);
    CHECK(length > 0 && strlen(text) == (size_t)length);
    CHECK(MPI_Add_error_class(&class_) == MPI_SUCCESS && class_ > MPI_ERR_LASTCODE);
    CHECK(MPI_Add_error_code(class_, &code) == MPI_SUCCESS);
    CHECK(class_of(class_) == class_ && class_of(code) == class_);
    CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS && length == 0);
    CHECK(MPI_Add_error_string(code, "the soup is cold") == MPI_SUCCESS);
    CHECK(MPI_Error_string(code, text, &length) == MPI_SUCCESS);
    CHECK(!strcmp(text, "the soup is cold"));
    /* What still has a text, or codes, cannot be removed. */
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(class_of(MPI_Remove_error_code(code)) == MPI_ERR_ARG || !is_ours());
    CHECK(class_of(MPI_Remove_error_class(class_)) == MPI_ERR_ARG || !is_ours());
    CHECK(MPI_Remove_error_string(code) == MPI_SUCCESS);
    CHECK(MPI_Remove_error_code(code) == MPI_SUCCESS);
    CHECK(MPI_Remove_error_class(class_) == MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    handlers();
    own_texts();
    codes();
    return end("error");
}
