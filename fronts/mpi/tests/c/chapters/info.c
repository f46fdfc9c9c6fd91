/* Info objects: keys in their order, lengths, copies. */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Info info, copy;
    char text[MPI_MAX_INFO_VAL];
    int count, flag, length;

    begin(&argc, &argv);
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "colour", "blue") == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "size", "17") == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "colour", "green") == MPI_SUCCESS);
    CHECK(MPI_Info_get_nkeys(info, &count) == MPI_SUCCESS && count == 2);
    CHECK(MPI_Info_get_nthkey(info, 0, text) == MPI_SUCCESS && !strcmp(text, "colour"));
    CHECK(MPI_Info_get_valuelen(info, "colour", &length, &flag) == MPI_SUCCESS);
    CHECK(flag && length == 5);
    flag = 0;
    CHECK(MPI_Info_get(info, "colour", 5, text, &flag) == MPI_SUCCESS && flag);
    CHECK(MPI_Info_get(info, "shape", 5, text, &flag) == MPI_SUCCESS && !flag);
    CHECK(!strcmp(text, "green"));
    length = 0;
    CHECK(MPI_Info_get_string(info, "colour", &length, NULL, &flag) == MPI_SUCCESS);
    CHECK(flag && length == 6);
    CHECK(MPI_Info_get_string(info, "colour", &length, text, &flag) == MPI_SUCCESS);
    CHECK(!strcmp(text, "green"));
    CHECK(MPI_Info_dup(info, &copy) == MPI_SUCCESS && copy != info);
    CHECK(MPI_Info_delete(info, "colour") == MPI_SUCCESS);
    CHECK(MPI_Info_get_valuelen(info, "colour", &length, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Info_get_nkeys(copy, &count) == MPI_SUCCESS && count == 2);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS && info == MPI_INFO_NULL);
    CHECK(MPI_Info_free(&copy) == MPI_SUCCESS);
    CHECK(MPI_Info_get_nkeys(MPI_INFO_ENV, &count) == MPI_SUCCESS);
    CHECK(MPI_Info_create_env(argc, argv, &info) == MPI_SUCCESS && info != MPI_INFO_NULL);
    length = sizeof text;
    CHECK(MPI_Info_get_string(info, "command", &length, text, &flag) == MPI_SUCCESS);
    CHECK((flag && strstr(text, "info")) || !is_ours());
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
    /* Hints of a communicator are replaced. */
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true") == MPI_SUCCESS);
    CHECK(MPI_Comm_set_info(MPI_COMM_SELF, info) == MPI_SUCCESS && MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_info(MPI_COMM_SELF, &info) == MPI_SUCCESS);
    length = sizeof text;
    CHECK(MPI_Info_get_string(info, "mpi_assert_no_any_tag", &length, text, &flag) == MPI_SUCCESS);
    CHECK(flag && !strcmp(text, "true"));
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
    return end("info");
}
