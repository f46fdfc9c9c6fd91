/* Statuses: counts and elements, and the fields that programs set. */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Status status;
    MPI_Datatype record, none;
    MPI_Count wide;
    int count, flag;

    begin(&argc, &argv);
    memset(&status, 0, sizeof status);
    MPI_Type_create_struct(2, (const int[]){1, 2}, (const MPI_Aint[]){0, 8},
                           (const MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &record);
    MPI_Type_commit(&record);

    CHECK(MPI_Status_set_elements(&status, MPI_INT, 7) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 7);
    CHECK(MPI_Get_elements(&status, MPI_INT, &count) == MPI_SUCCESS && count == 7);
    CHECK(MPI_Get_count(&status, MPI_BYTE, &count) == MPI_SUCCESS && count == 28);
    CHECK(MPI_Get_count(&status, MPI_DOUBLE, &count) == MPI_SUCCESS && count == MPI_UNDEFINED);

    /* Two records and a half: an int, and one of the doubles. */
    CHECK(MPI_Status_set_elements_c(&status, MPI_BYTE, 2 * 20 + 12) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&status, record, &count) == MPI_SUCCESS && count == MPI_UNDEFINED);
    CHECK(MPI_Get_elements(&status, record, &count) == MPI_SUCCESS && count == 8);
    CHECK(MPI_Get_elements_x(&status, record, &wide) == MPI_SUCCESS && wide == 8);
    wide = -1;
    CHECK(MPI_Get_elements_c(&status, record, &wide) == MPI_SUCCESS && wide == 8);
    CHECK(MPI_Status_set_elements_x(&status, MPI_BYTE, 2 * 20) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&status, record, &count) == MPI_SUCCESS && count == 2);
    CHECK(MPI_Get_count_c(&status, record, &wide) == MPI_SUCCESS && wide == 2);
    CHECK(MPI_Get_elements(&status, record, &count) == MPI_SUCCESS && count == 6);

    /* More than an int holds. */
    CHECK(MPI_Status_set_elements_c(&status, MPI_BYTE, (MPI_Count)1 << 40) == MPI_SUCCESS);
    CHECK(MPI_Get_count_c(&status, MPI_BYTE, &wide) == MPI_SUCCESS && wide == (MPI_Count)1 << 40);
    CHECK(MPI_Get_count(&status, MPI_BYTE, &count) == MPI_SUCCESS && count == MPI_UNDEFINED);

    /* Nothing at all. */
    MPI_Type_contiguous(0, MPI_INT, &none);
    CHECK(MPI_Status_set_elements(&status, MPI_INT, 0) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&status, none, &count) == MPI_SUCCESS && count == 0);
    CHECK(MPI_Get_count(&status, MPI_DOUBLE, &count) == MPI_SUCCESS && count == 0);

    CHECK(MPI_Status_set_source(&status, 3) == MPI_SUCCESS && status.MPI_SOURCE == 3);
    CHECK(MPI_Status_get_source(&status, &count) == MPI_SUCCESS && count == 3);
    CHECK(MPI_Status_set_tag(&status, 9) == MPI_SUCCESS && status.MPI_TAG == 9);
    CHECK(MPI_Status_get_tag(&status, &count) == MPI_SUCCESS && count == 9);
    CHECK(MPI_Status_set_error(&status, MPI_ERR_TAG) == MPI_SUCCESS);
    CHECK(MPI_Status_get_error(&status, &count) == MPI_SUCCESS && count == MPI_ERR_TAG);
    CHECK(MPI_Status_set_cancelled(&status, 1) == MPI_SUCCESS);
    CHECK(MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS && flag);
    CHECK(MPI_Status_set_cancelled(&status, 0) == MPI_SUCCESS);
    CHECK(MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS && !flag);

    MPI_Type_free(&none);
    MPI_Type_free(&record);
    return end("status");
}
