/* Says whose library this is, and computes something with everybody. */
#include "check.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0, sum = 0, major = 0, minor = 0;
    MPI_Get_library_version(version, &length);
    MPI_Abi_get_version(&major, &minor);
    CHECK(length == (int)strlen(version) && major == 1 && minor == 0);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    if (rank == 0) printf("library: %.5s\n", version);
    return end("whose");
}
