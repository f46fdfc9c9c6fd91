/* Handles as integers and back, in the names of the ABI and in those of Fortran. */
#include "check.h"

int main(int argc, char **argv)
{
    MPI_Comm copy;
    MPI_Info info;
    MPI_Datatype type;

    begin(&argc, &argv);
    CHECK(MPI_Comm_toint(MPI_COMM_WORLD) == 0x101 && MPI_Type_toint(MPI_INT) == 0x209);
    CHECK(MPI_Comm_fromint(0x101) == MPI_COMM_WORLD);
    CHECK(MPI_Request_fromint(MPI_Request_toint(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    CHECK(MPI_Comm_fromint(MPI_Comm_toint(copy)) == copy);
    CHECK(MPI_Comm_f2c(MPI_Comm_c2f(copy)) == copy);
    MPI_Comm_free(&copy);
    MPI_Info_create(&info);
    CHECK(MPI_Info_fromint(MPI_Info_toint(info)) == info);
    MPI_Info_free(&info);
    MPI_Type_contiguous(3, MPI_INT, &type);
    CHECK(MPI_Type_f2c(MPI_Type_c2f(type)) == type);
    CHECK(PMPI_Type_f2c(PMPI_Type_c2f(type)) == type);
    CHECK(PMPI_Message_f2c(PMPI_Message_c2f(MPI_MESSAGE_NULL)) == MPI_MESSAGE_NULL);
    MPI_Type_free(&type);
    CHECK(type == MPI_DATATYPE_NULL);
    return end("conversion");
}
