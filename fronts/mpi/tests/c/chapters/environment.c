/* Versions, thread levels, the clock, memory; and what may be called at any time. */
#include "check.h"

int main(int argc, char **argv)
{
    int flag, level, version, subversion, length;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    double before;
    MPI_Info info;
    int *memory;

    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Get_version(&version, &subversion) == MPI_SUCCESS);
    CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION);
    CHECK(MPI_Abi_get_version(&version, &subversion) == MPI_SUCCESS);
    CHECK(version == MPI_ABI_VERSION && subversion == MPI_ABI_SUBVERSION);
    CHECK(MPI_Get_library_version(text, &length) == MPI_SUCCESS);
    CHECK(length > 0 && strlen(text) == (size_t)length);

    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS);
    CHECK(level == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE);
    CHECK(MPI_Is_thread_main(&flag) == MPI_SUCCESS && flag);
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && flag);
    CHECK(MPI_Get_processor_name(text, &length) == MPI_SUCCESS && length > 0);
    CHECK(strlen(text) == (size_t)length);

    before = MPI_Wtime();
    CHECK(MPI_Wtime() >= before && MPI_Wtick() > 0 && MPI_Wtick() < 1);
    CHECK(MPI_Pcontrol(2, "anything", 1.5) == MPI_SUCCESS);

    CHECK(MPI_Alloc_mem(1000 * sizeof *memory, MPI_INFO_NULL, &memory) == MPI_SUCCESS);
    for (flag = 0; flag < 1000; flag++) memory[flag] = flag;
    CHECK(memory[999] == 999);
    CHECK(MPI_Free_mem(memory) == MPI_SUCCESS);

    CHECK(MPI_Abi_get_info(&info) == MPI_SUCCESS);
    length = sizeof text;
    CHECK(MPI_Info_get_string(info, "mpi_aint_size", &length, text, &flag) == MPI_SUCCESS);
    CHECK(flag && atoi(text) == (int)sizeof(MPI_Aint));
    MPI_Info_free(&info);

    CHECK(end("environment") == MPI_SUCCESS);
    CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && flag);
    return 0;
}
